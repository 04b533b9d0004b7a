//! Servers that answer rubbish: an error or *unknown*, and never a panic, a hang, a grant, or memory
//! without bound.
//!
//! Such a server is a real one behind something that reads each request, has it run, and spoils the
//! reply.

use std::{
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};

use futures::{FutureExt, future::LocalBoxFuture};
use quorate_tests::prelude::*;
use rand::{RngExt, seq::IndexedRandom};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// How a reply is spoilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoilt {
    /// Any bytes.
    Random,
    /// Some of it, and then the end.
    Truncated,
    /// Some of it, and then nothing.
    Unfinished,
    /// It says that more follows than there can be.
    Huge,
    /// Lists in lists.
    Nested,
    /// Of the right shape, with other numbers. None of them is that of a grant.
    Numbers,
    /// An error, as servers have them or not.
    Errors,
    Late,
    /// So each later request on that connection gets the reply to one before: from a majority, this
    /// can be a grant, which no client can tell from one of its own.
    Twice,
    /// A text that does not end.
    Forever,
}

use Spoilt::{Errors, Forever, Huge, Late, Nested, Numbers, Random, Truncated, Twice, Unfinished};

const ALL: [Spoilt; 10] =
    [Random, Truncated, Unfinished, Huge, Nested, Numbers, Errors, Late, Twice, Forever];

/// Before a server, while it lives.
struct Spoiler {
    port: u16,
    /// Whether replies are spoilt: of scripts, or of everything.
    scripts: Arc<AtomicBool>,
    all: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Spoiler {
    async fn start(server: &RedisServer, how: Spoilt) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let port = listener.local_addr().expect("it has one").port();
        let (scripts, all) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (to, flags) = (server.port(), (Arc::clone(&scripts), Arc::clone(&all)));
        let task = tokio::spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", to)).await.expect("it is up");
                let (scripts, all) = flags.clone();
                let is_spoilt = move |name: &str| {
                    all.load(SeqCst) || scripts.load(SeqCst) && name.starts_with("EVAL")
                };
                open.spawn(carry(client, server, how, is_spoilt));
            }
        });
        Self { port, scripts, all, task }
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn spoil(&self, scripts: bool, all: bool) {
        self.scripts.store(scripts, SeqCst);
        self.all.store(all, SeqCst);
    }
}

impl Drop for Spoiler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(
    client: TcpStream,
    server: TcpStream,
    how: Spoilt,
    is_spoilt: impl Fn(&str) -> bool + Send + 'static,
) -> Option<()> {
    let ((asks, mut hears), (answers, mut runs)) = (client.into_split(), server.into_split());
    let (mut asks, mut answers) = (BufReader::new(asks), BufReader::new(answers));
    loop {
        let request = message(&mut asks).await?;
        let mut words = request.split(|byte| *byte == b'\n');
        // The first may come without the lengths of its words.
        let name = if request[0] == b'*' { words.nth(2)? } else { words.next()? };
        let name = String::from_utf8_lossy(name).trim().to_uppercase();
        runs.write_all(&request).await.ok()?;
        let reply = message(&mut answers).await?;
        // What it listens to comes unasked, and one reply for each channel.
        if name.contains("SUBSCRIBE") {
            hears.write_all(&reply).await.ok()?;
            let there = tokio::io::copy(&mut asks, &mut runs);
            tokio::try_join!(there, tokio::io::copy(&mut answers, &mut hears)).ok()?;
        }
        if is_spoilt(&name) {
            spoil(how, &reply, &mut hears).await?;
        } else {
            hears.write_all(&reply).await.ok()?;
        }
    }
}

/// So many lists stand in one another. The decoder that fred has calls itself for each: of several
/// hundreds it overflows its stack, and ends the process.
const DEPTH: usize = 40;

/// One whole request or reply.
async fn message(from: &mut BufReader<OwnedReadHalf>) -> Option<Vec<u8>> {
    let (mut whole, mut left) = (Vec::new(), 1_usize);
    while left > 0 {
        let begin = whole.len();
        from.read_until(b'\n', &mut whole).await.ok().filter(|length| *length > 0)?;
        left -= 1;
        let count = str::from_utf8(&whole[begin + 1..]).ok()?.trim().parse::<usize>().ok();
        match (whole[begin], count) {
            (b'*' | b'~' | b'>', Some(count)) => left += count,
            (b'%', Some(pairs)) => left += 2 * pairs,
            (b'$' | b'=', Some(length)) => {
                let text = whole.len();
                whole.resize(text + length + 2, 0);
                from.read_exact(&mut whole[text..]).await.ok()?;
            }
            _ => {}
        }
    }
    Some(whole)
}

async fn spoil(how: Spoilt, reply: &[u8], to: &mut OwnedWriteHalf) -> Option<()> {
    let chance = || rand::rng().random_range(0..reply.len());
    let cut = &reply[..chance()];
    match how {
        Random => {
            let bytes: Vec<u8> = (0..chance().min(64)).map(|_| rand::random()).collect();
            to.write_all(&bytes).await.ok()?;
        }
        Truncated => {
            to.write_all(cut).await.ok()?;
            return None;
        }
        Unfinished => to.write_all(cut).await.ok()?,
        Huge => {
            let heads = ["$9223372036854775807", "*2147483647", "%1000000000", ":1e99", "*-7"];
            let head = *heads.choose(&mut rand::rng()).expect("there are some");
            to.write_all(format!("{head}\r\n:1\r\n").as_bytes()).await.ok()?;
        }
        Nested => {
            to.write_all(format!("{}:1\r\n", "*1\r\n".repeat(DEPTH)).as_bytes()).await.ok()?;
        }
        Numbers => to.write_all(&other_numbers(reply)).await.ok()?,
        Errors => {
            let all = "NOSCRIPT MOVED ASK TRYAGAIN LOADING READONLY NOAUTH OOM BUSY NOPERM X";
            let all: Vec<_> = all.split(' ').collect();
            let code = all.choose(&mut rand::rng()).expect("there are some");
            to.write_all(format!("-{code} 7 \u{fffd}:0 y\r\n").as_bytes()).await.ok()?;
        }
        Late => {
            sleep(secs(3)).await;
            to.write_all(reply).await.ok()?;
        }
        Twice => to.write_all(&[reply, reply].concat()).await.ok()?,
        Forever => {
            to.write_all(b"$9223372036854775807\r\n").await.ok()?;
            loop {
                to.write_all(&b"a".repeat(64 * 1024)).await.ok()?;
                sleep(MS(1)).await;
            }
        }
    }
    Some(())
}

/// A reply of a script, which is packed, becomes a list; in a text each number becomes another.
fn other_numbers(reply: &[u8]) -> Vec<u8> {
    let drawn = || {
        let extremes = [i64::MIN, i64::MAX, -2, 0, 1 << 53, (1 << 53) - 1, 4_102_444_800_000];
        *extremes.choose(&mut rand::rng()).expect("there are some")
    };
    let text = String::from_utf8_lossy(reply);
    if reply[0] != b'$' || !text.contains("run_id") {
        let code = *[0, 2, 3, 4, 5, -1].choose(&mut rand::rng()).expect("there are some");
        let [ms, token, ticket] = [(); 3].map(|()| drawn());
        let token = token.to_string();
        let id = if rand::random() { "$0\r\n\r\n" } else { "$3\r\na:1\r\n" };
        return format!(
            "*5\r\n:{code}\r\n:{ms}\r\n{id}${}\r\n{token}\r\n:{ticket}\r\n",
            token.len()
        )
        .into_bytes();
    }
    let (_, info) = text.split_once("\r\n").expect("it has a length");
    let lines = info.lines().map(|line| match line.split_once(':') {
        Some((name, value)) if value.parse::<f64>().is_ok() => format!("{name}:{}\r\n", drawn()),
        _ => format!("{line}\r\n"),
    });
    let info = lines.collect::<String>();
    format!("${}\r\n{info}\r\n", info.len()).into_bytes()
}

/// In KiB, of this process.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or_default()
}

/// No more than this, in KiB, whatever servers send.
const ROOM: u64 = 512 * 1024;

async fn spoilers(servers: &[RedisServer], how: Spoilt) -> Vec<Spoiler> {
    join_all(servers.iter().map(|server| Spoiler::start(server, how))).await
}

fn through<'a>(spoilers: impl IntoIterator<Item = &'a Spoiler>) -> Builder {
    let voters = Quorate::builder().voters(spoilers.into_iter().map(Spoiler::url));
    leased(voters, secs(8)).quorum_timeout(secs(2))
}

/// All servers answer so: nothing is granted, and all is well once they are.
async fn is_known_for_rubbish(how: Spoilt) {
    let servers = servers(3);
    let spoilers = spoilers(&servers, how).await;
    let all = |scripts, all| spoilers.iter().for_each(|spoiler| spoiler.spoil(scripts, all));
    let other = connect(leased(builder(&servers), secs(8))).await;
    let client = connect(through(&spoilers)).await;
    let held = other.mutex("a").lock().await.expect("all are up");
    let is_refused = |taken: Result<Option<MutexGuard>, Error>| {
        assert!(!matches!(taken, Ok(Some(_))), "{how:?}: a grant");
    };
    for is_all in [false, true] {
        all(true, is_all);
        for _ in 0..8 {
            let free = timeout(secs(20), client.mutex("b").try_lock()).await.expect("it is told");
            if let Ok(Some(guard)) = free {
                drop(timeout(secs(20), guard.release()).await.expect("it is told"));
            }
            let taken = timeout(secs(20), client.mutex("a").try_lock()).await.expect("it is told");
            is_refused(taken);
        }
        let leader = timeout(secs(20), client.election("e").leader()).await.expect("it is told");
        assert!(!matches!(leader, Ok(Some(_))), "{how:?}: {leader:?}");
        drop(timeout(secs(20), client.mutex("a").inspect()).await.expect("it is told"));
        drop(timeout(secs(20), client.survey()).await.expect("it is told"));
    }
    // Nor who comes now.
    let late = through(&spoilers).connect_timeout(secs(3)).connect();
    let late = timeout(secs(20), late).await.expect("it is told");
    if let Ok(late) = late {
        let taken = timeout(secs(20), late.mutex("a").try_lock()).await.expect("it is told");
        is_refused(taken);
    }
    all(false, false);
    assert!(held.is_held(), "{how:?}");
    held.release().await.expect("all are up");
    until!(&format!("{how:?}: it is given again"), {
        matches!(client.mutex("a").try_lock().await, Ok(Some(_)))
    });
}

/// Whether a test does not panic.
async fn ends_well(how: Spoilt, test: LocalBoxFuture<'static, ()>) -> (Spoilt, bool) {
    (how, AssertUnwindSafe(test).catch_unwind().await.is_ok())
}

/// One server of three answers so: nobody notices.
async fn is_a_minority(how: Spoilt) {
    let servers = servers(3);
    let spoilers = spoilers(&servers, how).await;
    let client = connect(through(&spoilers)).await;
    let held = client.mutex("held").lock().await.expect("all are up");
    for is_all in [false, true] {
        spoilers[0].spoil(true, is_all);
        for _ in 0..8 {
            let mutex = client.mutex("a");
            let guard = timeout(secs(20), mutex.lock()).await.expect("two answer");
            guard.expect("two answer").release().await.expect("two answer");
        }
    }
    // Until it was renewed.
    sleep(secs(9)).await;
    assert!(held.is_held(), "{how:?}");
    held.release().await.expect("two answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_that_answer_rubbish_grant_nothing_and_a_minority_of_them_takes_nothing() {
    let before = memory();
    let by_all = ALL.into_iter().filter(|how| *how != Twice);
    // One after the other: with all nineteen at once, a busy machine has no 800 ms for the servers that
    // answer well.
    let all =
        join_all(by_all.map(|how| ends_well(how, is_known_for_rubbish(how).boxed_local()))).await;
    let minority = join_all(ALL.map(|how| ends_well(how, is_a_minority(how).boxed_local()))).await;
    let failed = [all, minority]
        .map(|tests| tests.into_iter().filter(|it| !it.1).map(|it| it.0).collect::<Vec<_>>());
    assert!(failed.iter().all(Vec::is_empty), "all answer so, and a minority: {failed:?}");
    let grown = memory().saturating_sub(before);
    println!("memory grew by {} MiB", grown / 1024);
    assert!(grown < ROOM, "{grown} KiB");
}
