//! Servers, clients of them, and the time that things take.

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use quorate::{Builder, Quorate};

use quorate_support::{Proxy, RedisServer, Reply, Settings, without_lasting};
use tokio::runtime::Handle;

use crate::until;

pub const MS: fn(u64) -> Duration = Duration::from_millis;

/// A server with these flags forgets nothing by a restart.
pub const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// The key under which the mutex of this name stands.
pub fn key(name: &str) -> String {
    format!("quorate:{{{name}}}")
}

/// Starts servers side by side.
pub fn servers(count: usize) -> Vec<RedisServer> {
    servers_with(count, &[])
}

pub fn servers_with(count: usize, flags: &[&str]) -> Vec<RedisServer> {
    RedisServer::start_many(&Settings::new().flags(flags), count)
}

/// A proxy before each server.
pub async fn proxies(servers: &[RedisServer]) -> Vec<Proxy> {
    let mut proxies = Vec::new();
    for server in servers {
        proxies.push(Proxy::start(server.port()).await);
    }
    proxies
}

/// A client of these servers that a busy machine does not make impatient.
pub fn builder(servers: &[RedisServer]) -> Builder {
    patient(Quorate::builder().voters(servers.iter().map(RedisServer::url)))
}

/// A client that reaches its servers through these proxies.
pub fn builder_through(proxies: &[Proxy]) -> Builder {
    patient(Quorate::builder().voters(proxies.iter().map(Proxy::url)))
}

/// With a lease that is too short for as much patience: no request waits for longer than a tenth of
/// it.
pub fn leased(builder: Builder, lease: Duration) -> Builder {
    builder.lease(lease).longest_lease(lease).voter_deadline((lease / 10).min(PATIENCE))
}

/// So many servers, and a client of them.
pub async fn servers_and_client(count: usize) -> (Vec<RedisServer>, Quorate) {
    let servers = servers(count);
    let client = connect(builder(&servers)).await;
    (servers, client)
}

/// However long a busy machine takes for it. The client stands for a process of its own, so it
/// shares no thread with those of other tests.
pub async fn connect(builder: Builder) -> Quorate {
    let builder = builder.runtime(Handle::current());
    builder.connect_timeout(Duration::from_mins(1)).connect().await.expect("a majority answers")
}

/// No server has a key.
pub fn are_empty<'a>(servers: impl IntoIterator<Item = &'a RedisServer>) -> bool {
    servers.into_iter().all(|server| without_lasting(server.keys()).is_empty())
}

/// The count under which this hold stands on a server; nothing where it has no vote.
pub fn count(server: &RedisServer, name: &str, hold: &str) -> Option<u32> {
    match server.command(&["HGET", &key(name), hold]).expect("HGET is answered") {
        Reply::Text(count) => Some(count.parse().expect("a count")),
        _ => None,
    }
}

pub fn votes_for(server: &RedisServer, name: &str, hold: &str) -> bool {
    count(server, name, hold).is_some()
}

/// How often a server ran these commands since its counters were last set to zero, inside scripts
/// and outside.
pub fn calls(server: &RedisServer, commands: &[&str]) -> u64 {
    commands.iter().map(|command| server.calls(command)).sum()
}

/// The names of the commands that clients send to a server. Counting begins with the client's next
/// look, and goes on for `time`. MONITOR does not show CONFIG.
pub fn watched(server: &RedisServer, time: Duration) -> Vec<String> {
    let mut monitor = TcpStream::connect(("127.0.0.1", server.port())).expect("it is up");
    monitor.write_all(b"MONITOR\r\n").expect("it reads");
    let (mut begun, mut commands) = (None, Vec::new());
    for line in BufReader::new(monitor).lines() {
        // `+<seconds since 1970> [0 <address, or lua>] "<COMMAND>" ..`
        let line = line.expect("it goes on");
        let mut words = line.trim_start_matches('+').splitn(4, ' ');
        let mut next = || words.next().unwrap_or_default();
        let (at, _, from, command) = (next(), next(), next(), next());
        if from == "lua]" || from.is_empty() {
            continue;
        }
        let at = Duration::from_secs_f64(at.parse().expect("a time"));
        let name = command.split('"').nth(1).unwrap_or(command);
        match begun {
            None if name == "EVAL" => begun = Some(at),
            None => {}
            Some(begun) if at > begun + time => break,
            Some(_) => commands.push(name.to_owned()),
        }
    }
    commands
}

/// What each script of a mutex runs once, except a brief renewal, and what is asked of a server on
/// a new connection does not.
pub const SCRIPTS: [&str; 3] = ["exists", "hexists", "hdel"];

pub fn forget_calls(server: &RedisServer) {
    server.command(&["CONFIG", "RESETSTAT"]).expect("the counters can be reset");
}

/// How many connections a server has accepted.
pub fn accepted(server: &RedisServer) -> usize {
    let count = server.info(&["INFO", "stats"], "total_connections_received");
    count.expect("it answers").parse().expect("a number")
}

/// How many clients are connected to a server.
pub fn connections(server: &RedisServer) -> usize {
    let clients = server.command(&["CLIENT", "LIST"]).expect("it answers").text();
    // One of them asks.
    clients.lines().count() - 1
}

/// How many listen to the channel of an election; `SHARDNUMSUB` are those that use its slot.
pub fn subscribers(server: &RedisServer, kind: &str, name: &str) -> i64 {
    let channel = format!("{}:election:news", key(name));
    match server.command(&["PUBSUB", kind, &channel]) {
        Ok(Reply::List(list)) => match list[..] {
            [_, Reply::Int(count)] => count,
            _ => panic!("no count: {list:?}"),
        },
        other => panic!("no list: {other:?}"),
    }
}

/// How many clients are called on this server when they are next in a queue.
pub fn called(server: &RedisServer) -> usize {
    let channels = server.command(&["PUBSUB", "CHANNELS", "quorate:calls:*"]);
    channels.expect("it answers").texts().len()
}

/// Waits until so many places stand in the queue of the mutex `a`, on each server.
pub async fn until_queued(servers: &[RedisServer], places: i64) {
    let stand = |server: &RedisServer| {
        server.command(&["ZCARD", "quorate:{a}:queue"]) == Ok(Reply::Int(places))
    };
    until!("they stand in the queue", servers.iter().all(stand));
}

/// The time since the first call in this process, on one monotonic clock for all threads.
#[expect(clippy::disallowed_methods, reason = "real servers live in real time")]
pub fn now() -> Duration {
    static BEGINNING: OnceLock<Instant> = OnceLock::new();
    BEGINNING.get_or_init(Instant::now).elapsed()
}

pub fn since(earlier: Duration) -> Duration {
    now().saturating_sub(earlier)
}

/// What something took, and what it came to.
pub async fn timed<T>(what: impl Future<Output = T>) -> (Duration, T) {
    let started = now();
    let output = what.await;
    (since(started), output)
}

pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Tells the threads of a scope that it is over, also where the test has failed: a scope waits for
/// them.
#[derive(Debug)]
pub struct Ending<'a>(pub &'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// A server of a busy machine may need so long for an answer, and is not silent.
const PATIENCE: Duration = Duration::from_secs(2);

/// For tests that are not about a silent voter.
pub fn patient(builder: Builder) -> Builder {
    builder.voter_deadline(PATIENCE)
}

/// How many of `full` rounds to run: a tenth, unless `QUORATE_TEST_SIZE` names a percentage.
pub fn rounds(full: u64) -> u64 {
    (full * knob("QUORATE_TEST_SIZE", 10) / 100).max(1)
}

/// A number from the environment, for longer runs.
pub fn knob(name: &str, otherwise: u64) -> u64 {
    env::var(name).map_or(otherwise, |text| text.parse().expect("the knob is a number"))
}
