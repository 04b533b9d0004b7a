//! What the log says: spans and events with the fields that are promised.
//!
//! Alone in its process: what a thread without a listener says first nobody hears from then on.

use std::{
    fmt::Write,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::{self, Receiver, Sender},
    },
};

use quorate_tests::{prelude::*, scene};
use tokio::runtime::Handle;
use tracing::{
    Event, Id, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Record},
};

/// By level, or `span`, and name: every field that had a value.
type Seen = BTreeMap<(String, String), BTreeSet<String>>;

/// Takes note of all that is logged.
#[derive(Clone, Default)]
struct VoterEvents(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    spans: Vec<&'static str>,
    seen: Seen,
    /// Every event, as people read it.
    lines: Vec<String>,
}

/// The fields of one record; that of the message apart.
#[derive(Default)]
struct Fields {
    names: BTreeSet<String>,
    message: String,
    /// The other fields with their values.
    values: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => {
                self.names.insert(name.to_owned());
                write!(self.values, " {name}={value:?}").expect("texts take all");
            }
        }
    }
}

impl Noted {
    fn note(&mut self, level: &str, name: &str, fields: Fields) {
        let known = self.seen.entry((level.to_owned(), name.to_owned())).or_default();
        known.extend(fields.names);
    }
}

impl Subscriber for VoterEvents {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("quorate")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        let mut noted = self.0.lock().unwrap();
        noted.spans.push(span.metadata().name());
        noted.note("span", span.metadata().name(), fields);
        Id::from_u64(noted.spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        let mut noted = self.0.lock().unwrap();
        let name = noted.spans[usize::try_from(span.into_u64()).unwrap() - 1];
        noted.note("span", name, fields);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = event.metadata().level().to_string().to_lowercase();
        let message = std::mem::take(&mut fields.message);
        let mut noted = self.0.lock().unwrap();
        noted.lines.push(format!("{level}: {message}{}", fields.values));
        noted.note(&level, &message, fields);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The tables in the documentation of the crate.
fn promised() -> Seen {
    let page = read_file("src/lib.rs");
    let rows = page.lines().filter_map(|line| line.strip_prefix("//! | ")?.strip_suffix(" |"));
    let rows = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    // What is in backquotes is a field.
    let fields = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let levels = ["error", "warn", "info", "debug"];
    rows.filter_map(|row| match row[..] {
        [level, event, cell] if levels.contains(&level) => {
            Some(((level.to_owned(), event.to_owned()), fields(cell)))
        }
        [span @ ("`acquire`" | "`renew`" | "`release`"), cell] => {
            Some((("span".to_owned(), span.trim_matches('`').to_owned()), fields(cell)))
        }
        _ => None,
    })
    .collect()
}

/// A thread tells the log.
fn all_is_told() {
    assert!(quorate::log::flush(Duration::from_mins(1)), "the log is told all");
}

async fn life_goes_on() {
    let voters = embedded::voters(4);
    for voter in &voters {
        voter.set_uptime(Duration::from_hours(1));
    }
    voters[3].kill();
    let builder = Quorate::builder().embedded(&voters).client_name("web-1");
    let client = builder.connect().await.unwrap();
    let mutex = client.mutex("a").note("job 42");
    let guard = mutex.lock().await.unwrap();
    sleep(Duration::from_secs(11)).await;
    guard.release().await.unwrap();
    // Said once of each hold: nobody else gives it back.
    let guard = mutex.lock().await.unwrap();
    assert!(mutex.lock_within(Duration::from_secs(70)).await.unwrap().is_none());
    guard.release().await.unwrap();
    let rw = client.rw_lock("a");
    let guard = rw.write().await.unwrap();
    assert!(rw.write_within(Duration::from_secs(70)).await.unwrap().is_none());
    guard.release().await.unwrap();
    // Said once of each semaphore.
    let few = client.semaphore("a", 1).acquire().await.unwrap();
    few.release().await.unwrap();
    for _ in 0..2 {
        client.semaphore("a", 3).acquire().await.unwrap().release().await.unwrap();
    }
    let guard = mutex.lock().await.unwrap();
    voters[0].restart_empty();
    sleep(Duration::from_secs(1)).await;
    voters.iter().for_each(EmbeddedVoter::kill);
    assert!(guard.lost().await.is_lost());
    assert!(mutex.try_lock().await.is_err());
    voters.iter().for_each(EmbeddedVoter::restart_empty);
    drop(client.close().await);
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn spans_and_events_have_the_fields_that_are_promised() {
    let listener = VoterEvents::default();
    let listening = tracing::subscriber::set_default(listener.clone());
    life_goes_on().await;
    drop(listening);
    all_is_told();
    let Noted { seen, lines, .. } = std::mem::take(&mut *listener.0.lock().unwrap());
    let promised = promised();
    for (what, fields) in &seen {
        assert_eq!(promised.get(what), Some(fields), "of {what:?}");
    }
    // The others need a cluster, or the same server twice.
    assert_eq!(seen.len(), 19, "{seen:#?}");
    let fewer = "warn: others use the semaphore with fewer permits lock=\"a\" permits=3 fewer=1";
    let said = lines.iter().filter(|line| line.contains("fewer permits")).collect::<Vec<_>>();
    assert_eq!(said, [fewer]);
    let behind = |line: &&String| line.contains("behind a hold of its own client");
    assert_eq!(lines.iter().filter(behind).count(), 2, "{lines:#?}");
    quorum_changes(&lines);
    one_server_twice().await;
}

#[tokio::test]
async fn a_cluster_that_one_dead_primary_takes_as_a_whole_is_warned_of_once() {
    for (setting, warnings) in [("yes", 1), ("no", 0)] {
        let cluster = Cluster::start_with(3, 0, &["--cluster-require-full-coverage", setting]);
        let listener = VoterEvents::default();
        let listening = tracing::subscriber::set_default(listener.clone());
        let voters = quorate::Cluster::new(cluster.urls()).voters(3);
        let builder = Quorate::builder().cluster(voters).voter_deadline(Duration::from_secs(2));
        let client = scene::connect(builder).await;
        let mutex = client.mutex("a").note("job 42");
        mutex.lock().await.unwrap().release().await.unwrap();
        drop(client.close().await);
        drop(listening);
        all_is_told();
        let noted = std::mem::take(&mut *listener.0.lock().unwrap());
        let lines = noted.lines.iter().filter(|line| line.contains("takes the whole cluster"));
        assert_eq!(lines.count(), warnings, "{setting}: {:?}", noted.lines);
        let all = promised();
        assert!(noted.seen.iter().all(|(what, fields)| all.get(what) == Some(fields)));
    }
}

// Each trouble that is a warning has an end that is one: a voter that was not reached, one that
// lost its data, and a majority that was away.
#[tokio::test(start_paused = true)]
async fn who_logs_at_warn_sees_the_end_of_each_trouble() {
    let voters = embedded::voters(3);
    for voter in &voters {
        voter.set_uptime(Duration::from_hours(1));
    }
    voters[2].kill();
    let listener = VoterEvents::default();
    let listening = tracing::subscriber::set_default(listener.clone());
    let client = Quorate::builder().embedded(&voters).connect().await.unwrap();
    voters[2].restart();
    sleep(Duration::from_secs(1)).await;
    voters[0].restart_empty();
    sleep(Duration::from_secs(40)).await;
    voters[1].kill();
    voters[2].kill();
    sleep(Duration::from_secs(1)).await;
    voters[1].restart();
    sleep(Duration::from_secs(1)).await;
    drop(client.close().await);
    drop(listening);
    all_is_told();
    let noted = std::mem::take(&mut *listener.0.lock().unwrap());
    let warnings = noted.lines.iter().filter_map(|line| line.strip_prefix("warn: "));
    let warnings: Vec<_> = warnings.collect();
    let expected = [
        "not reached yet; it is tried again and again voter=embedded-3",
        "connected voter=embedded-3",
        "connection lost voter=embedded-1",
        "connected voter=embedded-1",
        "voter in quarantine: its votes count for no new lock voter=embedded-1",
        "quarantine over: the voter's votes count for new locks voter=embedded-1",
        "connection lost voter=embedded-2",
        "connection lost voter=embedded-3",
        "no quorum: no lock is given or renewed answering=1",
        "connected voter=embedded-2",
        "the quorum is back answering=2",
    ];
    let are_so = warnings.iter().zip(expected).all(|(said, wanted)| said.starts_with(wanted));
    assert!(are_so && warnings.len() == expected.len(), "{warnings:#?}");
    assert!(warnings[4].ends_with(" ends_in=30s"), "{}", warnings[4]);
}

// What a server says of itself is asked every ten seconds, and logged once, however long it lasts.
#[tokio::test]
async fn a_server_that_evicts_refuses_or_has_no_mark_is_told_of_once_and_so_is_the_end() {
    let server = RedisServer::start();
    let set = |policy: &str, maxmemory: &str| {
        for (name, value) in [("maxmemory-policy", policy), ("maxmemory", maxmemory)] {
            server.command(&["CONFIG", "SET", name, value]).expect("it is set");
        }
    };
    let listener = VoterEvents::default();
    let listening = tracing::subscriber::set_default(listener.clone());
    let client = scene::connect(Quorate::builder().voter(server.url())).await;
    let lines = |text: &str| {
        let noted = listener.0.lock().unwrap();
        noted.lines.iter().filter(|line| line.starts_with(text)).count()
    };
    let said = async |text: &str| eventually_async(text, async || lines(text) > 0).await;
    set("allkeys-lru", "100mb");
    said("error: votes may be gone at any time").await;
    sleep(Duration::from_secs(11)).await;
    // Full, and evicting no more.
    set("noeviction", "1");
    said("warn: the server deletes no votes any more").await;
    said("warn: the voter takes no new votes").await;
    set("noeviction", "0");
    said("warn: the voter takes new votes again").await;
    // No fingerprint: whoever reads one fails.
    let fingerprint = "quorate:{%voter}";
    server.command(&["DEL", fingerprint]).unwrap();
    server.command(&["HSET", fingerprint, "a", "1"]).unwrap();
    said("warn: the fingerprint of a server cannot be read").await;
    sleep(Duration::from_secs(11)).await;
    assert_eq!(lines("warn: the fingerprint of a server cannot be read"), 1);
    // The end is told on another connection too.
    server.command(&["DEL", fingerprint]).unwrap();
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
    said("warn: the fingerprint of a server can be read again").await;
    assert_eq!(lines("error: votes may be gone at any time"), 1);
    drop(client.close().await);
    drop(listening);
    all_is_told();
    let all = promised();
    let noted = std::mem::take(&mut *listener.0.lock().unwrap());
    assert!(noted.seen.iter().all(|(what, fields)| all.get(what) == Some(fields)), "{noted:?}");
}

// All have just started without their data, and so each would be in quarantine.
async fn one_server_twice() {
    let voters = embedded::voters(2);
    voters.iter().for_each(EmbeddedVoter::restart_empty);
    let [one, other] = [&voters[0], &voters[1]];
    let strict = || Quorate::builder().restart_guard(RestartGuard::Strict);
    let told = async |builder: quorate::Builder| {
        let listener = VoterEvents::default();
        let listening = tracing::subscriber::set_default(listener.clone());
        let connected = builder.connect().await.map(drop);
        drop(listening);
        all_is_told();
        let noted = std::mem::take(&mut *listener.0.lock().unwrap());
        let lines = noted.lines.into_iter();
        (connected, lines.filter(|line| line.contains("quarantine")).count())
    };
    let (twice, quarantines) = told(strict().embedded([one, other, one])).await;
    let error = twice.expect_err("two voters are one server");
    assert!(error.is_invalid() && error.to_string().contains("are the same server"), "{error}");
    assert_eq!(quarantines, 0, "that is not what is wrong");
    let (once, quarantines) = told(strict().embedded([one, other])).await;
    assert_eq!((once.is_ok(), quarantines), (true, 2));
}

// The first is emptied while the fourth is down; later all are killed, the first of them first.
fn quorum_changes(lines: &[String]) {
    let of = |text: &str| lines.iter().filter(|line| line.contains(text)).collect::<Vec<_>>();
    let missing = "missing=embedded-1, embedded-4";
    let lost = format!(
        "warn: no quorum: no lock is given or renewed answering=2 needed=3 voters=4 {missing}"
    );
    assert_eq!(of("no quorum"), [&lost; 2]);
    let back = "warn: the quorum is back answering=3 needed=3 voters=4 missing=";
    let came = of("the quorum is back");
    assert_eq!(came, [&format!("{back}embedded-4"); 2]);
}

/// Takes a minute for the first warning, or until it may go on.
struct SlowLog {
    is_taken: Arc<AtomicBool>,
    go_on: Mutex<Receiver<()>>,
    is_over: Arc<AtomicBool>,
}

/// The test's side of it.
struct SlowLogTest {
    is_taken: Arc<AtomicBool>,
    goes_on: Sender<()>,
    is_over: Arc<AtomicBool>,
}

fn slow_log() -> (SlowLog, SlowLogTest) {
    let (goes_on, go_on) = mpsc::channel();
    let [is_taken, is_over] = [(); 2].map(|()| Arc::<AtomicBool>::default());
    let test =
        SlowLogTest { is_taken: Arc::clone(&is_taken), goes_on, is_over: Arc::clone(&is_over) };
    (SlowLog { is_taken, go_on: Mutex::new(go_on), is_over }, test)
}

impl Subscriber for SlowLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("quorate")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if *event.metadata().level() == Level::WARN && !self.is_taken.swap(true, SeqCst) {
            let _ = self.go_on.lock().unwrap().recv_timeout(Duration::from_mins(1));
            self.is_over.store(true, SeqCst);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

const SHORT: Duration = Duration::from_secs(5);

/// One of three servers ends, and the log takes its time for that. The lock is held for two leases
/// more, and others are given meanwhile.
async fn is_kept(log: SlowLogTest, place: impl FnOnce(Builder) -> Builder) {
    let mut servers = servers(3);
    let settings = place(leased(builder(&servers), SHORT));
    let client = settings.connect_timeout(MS(60_000)).connect().await.expect("all are up");
    let guard = client.mutex("a").lock().await.expect("all are up");
    servers[2].kill();
    eventually_async("the log is told", async || log.is_taken.load(SeqCst)).await;
    let watch = Stopwatch::start();
    while watch.time() < 2 * SHORT {
        client.mutex("b").lock().await.expect("two are up").release().await.expect("two are up");
        assert!(guard.is_held(), "{}", guard.lost().await);
        sleep(MS(100)).await;
    }
    assert!(!log.is_over.load(SeqCst), "nothing has waited for the log");
    log.goes_on.send(()).expect("it takes its time");
    drop(client.close().await);
}

#[test]
fn a_log_that_blocks_costs_no_lock_on_the_thread_of_the_clients() {
    let (log, test) = slow_log();
    tracing::subscriber::set_global_default(log).expect("other tests listen for themselves");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(is_kept(test, |settings| settings));
}

#[tokio::test]
async fn a_log_that_blocks_does_not_block_the_runtime_that_a_client_was_given() {
    let (log, test) = slow_log();
    let _listening = tracing::subscriber::set_default(log);
    is_kept(test, |settings| settings.runtime(Handle::current())).await;
}

// A clock that goes to and fro by more than a voter's may, at each answer.
#[tokio::test(start_paused = true)]
async fn a_quarantine_that_goes_on_is_told_once_and_makes_one_task() {
    let (snapshotter, _recording) = record();
    let voters = embedded::voters(3);
    for voter in &voters {
        voter.set_uptime(Duration::from_hours(1));
    }
    let listener = VoterEvents::default();
    let listening = tracing::subscriber::set_default(listener.clone());
    let client = Quorate::builder().embedded(&voters).connect().await.unwrap();
    // What connecting has begun is over.
    sleep(Duration::from_secs(1)).await;
    let mut holds = Vec::new();
    let alive = || Handle::current().metrics().num_alive_tasks();
    let before = alive();
    for number in 0..300 {
        voters[0].jump_clock(if number % 2 == 0 { 6_000 } else { -6_000 });
        holds.push(client.mutex(format!("{number}")).lock().await.expect("two count"));
        sleep(Duration::from_millis(10)).await;
    }
    let more = alive().saturating_sub(before);
    let counts = counted(&snapshotter, metric::QUARANTINES);
    let reasons: Vec<_> = counts.iter().collect();
    for hold in holds {
        hold.release().await.expect("two confirm");
    }
    sleep(Duration::from_secs(40)).await;
    drop(client.close().await);
    drop(listening);
    all_is_told();
    let noted = std::mem::take(&mut *listener.0.lock().unwrap());
    let about = |text: &str| noted.lines.iter().filter(|line| line.contains(text)).count();
    let told = (about("voter in quarantine"), about("quarantine over"));
    assert_eq!(told, (1, 1), "{:#?}", noted.lines);
    assert_eq!(reasons, [(&"embedded-1 clock_moved".to_owned(), &1.0)]);
    assert!(more <= 3, "{more} tasks more");
}
