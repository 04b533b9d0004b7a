//! Where the processor time of the servers goes: what a lock and its release cost one server, as
//! our scripts, as scripts that do nothing with the same words, and as the two commands of a lock
//! without tokens, queue or wake-ups.
//!
//! `cargo bench -p quorate-benches --bench scripts`; `QUORATE_BENCH_ROUNDS` sets its length
//! (default 40, about half a minute). It starts its own server. Processor time is what the server
//! itself reports (`INFO cpu`); all three have their turns on one connection.

use std::process::ExitCode;

use fred::{
    clients::Client,
    interfaces::ClientLike,
    types::{ClusterHash, CustomCommand, Value},
};
use futures::future::join_all;
use quorate_benches::{
    common::{self, median},
    floor::{self, CALLS, MUTEX_ACQUIRE, MUTEX_RELEASE, Nodes, Script},
    report::{self, Length, Promised, Report},
};
use quorate_support::{RedisServer, Reply};
use tokio::runtime::Runtime;

/// So many locks have their turn at once.
const LOCKS: usize = 64;
/// How many requests leave together.
const TOGETHER: [usize; 3] = [1, 8, 32];

const BARS: Promised = Promised::always(&["scripts_1", "scripts_8", "scripts_32"]);

const PLAIN_RELEASE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0";

/// Answers as many requests, with as many entries each.
fn idle(keys: usize, width: usize) -> String {
    let entries = format!("local r = {{}} for i = 1, #KEYS / {keys} * {width} do r[i] = 1 end");
    format!("{entries} return cmsgpack.pack(r)")
}

/// Who takes and gives back locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Ours,
    Idle,
    Plain,
}

const SIDES: [Side; 3] = [Side::Ours, Side::Idle, Side::Plain];

/// The scripts by their hashes.
struct Bench {
    client: Client,
    acquire: Script<4, 7>,
    release: Script<3, 7>,
    idle: [Value; 2],
    plain: Value,
    /// Grows with each round, so that a token is higher than the last one.
    round: u64,
}

fn main() -> ExitCode {
    report::run(BARS, measure)
}

fn measure(length: Length) -> Report {
    let servers = common::servers(1);
    let runtime = Runtime::new().expect("a runtime");
    let mut bench = runtime.block_on(Bench::start(&servers));
    let mut report = Report::default();
    report.table([
        "requests in a call",
        "our scripts, us",
        "scripts that do nothing, the same words",
        "`SET NX PX`, and compare and delete",
        "ours / those two",
        "limit",
    ]);
    for together in TOGETHER {
        let times = SIDES.map(|_| Vec::new());
        let times = runtime.block_on(bench.turns(&servers[0], together, length, times));
        let [ours, idle, plain] = times.map(|mut times| median(&mut times));
        let ratio = report.bar(&format!("scripts_{together}"), ours / plain, 1.5);
        let shown = [ours, idle, plain].map(|time| format!("{time:.1}"));
        let [ours, idle, plain] = shown;
        report.row([together.to_string(), ours, idle, plain, ratio, "1.50".to_owned()]);
    }
    report
}

impl Bench {
    async fn start(servers: &[RedisServer]) -> Self {
        let nodes = Nodes::connect(servers, floor::DEADLINE).await;
        let (acquire, release) =
            (nodes.load(&MUTEX_ACQUIRE).await, nodes.load(&MUTEX_RELEASE).await);
        nodes.close().await;
        let client = floor::connect(&servers[0]).await;
        let load =
            async |source: String| run(&client, "SCRIPT", vec!["LOAD".into(), source.into()]).await;
        let idle = [load(idle(4, 5)).await, load(idle(3, 3)).await];
        let plain = load(PLAIN_RELEASE.to_owned()).await;
        Self { client, acquire, release, idle, plain, round: 1_000_000 }
    }

    /// Microseconds for a lock and its release, of each turn of each side.
    async fn turns(
        &mut self,
        server: &RedisServer,
        together: usize,
        length: Length,
        mut times: [Vec<f64>; 3],
    ) -> [Vec<f64>; 3] {
        let cycles = length.pick(50, 2);
        for _ in 0..length.rounds(40, 2) {
            for (side, times) in SIDES.into_iter().zip(&mut times) {
                let before = common::used(server);
                for _ in 0..cycles {
                    self.round += 1;
                    self.cycle(side, together).await;
                }
                let count = f64::from(u32::try_from(cycles * LOCKS).expect("not that many"));
                let time = common::used(server).saturating_sub(before);
                times.push(time.as_secs_f64() * 1e6 / count);
            }
        }
        times
    }

    /// All locks are taken and given back.
    async fn cycle(&self, side: Side, together: usize) {
        let calls = (0..LOCKS).step_by(together).map(|first| first..first + together);
        let (mut taken, mut given) = (Vec::new(), Vec::new());
        for locks in calls {
            if side == Side::Plain {
                for lock in locks {
                    let (key, hold) = (format!("plain:{{{lock}}}"), hold(lock));
                    let words = [&key, &hold, "NX", "PX", "30000"].map(Value::from);
                    taken.push(run(&self.client, "SET", words.to_vec()));
                    let words = vec![self.plain.clone(), 1.into(), key.into(), hold.into()];
                    given.push(run(&self.client, "EVALSHA", words));
                }
            } else {
                let [acquire, release] = match side {
                    Side::Ours => [self.acquire.sha1().clone(), self.release.sha1().clone()],
                    _ => self.idle.clone(),
                };
                let locks: Vec<usize> = locks.collect();
                taken.push(run(&self.client, "EVALSHA", self.taking(acquire, &locks)));
                given.push(run(&self.client, "EVALSHA", giving(release, &locks)));
            }
        }
        for answers in [join_all(taken).await, join_all(given).await] {
            for answer in answers {
                assert!(!is_refused(&answer), "{side:?}: {answer:?}");
            }
        }
    }

    fn taking(&self, sha1: Value, locks: &[usize]) -> Vec<Value> {
        let keys = locks.iter().flat_map(|lock| floor::keys(&lock.to_string()));
        // As a clock in microseconds is, mostly: a block of numbers further.
        let token = (64 * self.round).to_string();
        let own = locks
            .iter()
            .flat_map(|lock| [hold(*lock), token.clone(), String::new()].map(Value::from));
        call(sha1, keys.collect(), &[CALLS, "30000", "600000", "5000"], own)
    }
}

fn giving(sha1: Value, locks: &[usize]) -> Vec<Value> {
    let keys = locks.iter().flat_map(|lock| {
        let keys = floor::keys(&lock.to_string());
        floor::first_three(&keys).clone()
    });
    let own = locks.iter().flat_map(|lock| {
        [hold(*lock), "0".to_owned(), String::new(), String::new()].map(Value::from)
    });
    call(sha1, keys.collect(), &[CALLS, "", "PUBLISH"], own)
}

fn call(
    sha1: Value,
    keys: Vec<Value>,
    shared: &[&str],
    own: impl Iterator<Item = Value>,
) -> Vec<Value> {
    let count = i64::try_from(keys.len()).expect("not that many");
    let mut words = vec![sha1, count.into()];
    words.extend(keys);
    words.extend(shared.iter().map(|word| Value::from(*word)));
    words.push(floor::packed(own.collect::<Vec<_>>().iter()));
    words
}

/// As long as ours are.
fn hold(lock: usize) -> String {
    format!("01234567-89ab-cdef-0123-456789abcdef:{lock:02}123456789012")
}

/// An answer of a script, or of a command, that says no.
fn is_refused(answer: &Value) -> bool {
    match answer {
        Value::Integer(count) => *count != 1,
        Value::Bytes(packed) => {
            let entries = quorate_support::unpacked(packed);
            let Some(Reply::List(entries)) = entries else { return true };
            entries.first() != Some(&Reply::Int(1))
        }
        other => other.as_str().as_deref() != Some("OK"),
    }
}

async fn run(client: &Client, name: &'static str, words: Vec<Value>) -> Value {
    let command = CustomCommand::new_static(name, ClusterHash::Custom(0), false);
    client.custom(command, words).await.expect("the server answers")
}
