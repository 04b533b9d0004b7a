//! What the benches share: the clients that take part, and the runtime.

use std::time::Duration;

use quorate::{Builder, Quorate};
use quorate_support::{RedisServer, Settings};
use tokio::runtime::Runtime;

/// The most clients that take part, however many tasks they have between them.
const CLIENTS: usize = 10;
/// Less than a tenth of the default lease, which limits it as well.
const PATIENCE: Duration = Duration::from_secs(2);

pub fn servers(count: usize) -> Vec<RedisServer> {
    RedisServer::start_many(&Settings::new(), count)
}

/// Of clients of these servers. A server is a voter of several sets in one run, so each size has
/// names of its own: clients of one name must agree about the voters.
pub fn builder(urls: impl IntoIterator<Item = String>) -> Builder {
    let urls: Vec<String> = urls.into_iter().collect();
    Quorate::builder().prefix(format!("voters{}", urls.len())).voters(urls)
}

/// With a lease longer than any bench, and names of its own: clients of one name must agree about
/// the longest lease too.
pub fn long_lived(builder: Builder) -> Builder {
    let long = Duration::from_mins(10);
    builder.lease(long).longest_lease(long).prefix("minutes")
}

/// Clients for so many tasks. What is late is to be measured, so they give up on no voter before
/// long.
pub async fn clients(
    servers: &[RedisServer],
    tasks: usize,
    set: fn(Builder) -> Builder,
) -> Vec<Quorate> {
    let mut clients = Vec::new();
    for _ in 0..tasks.min(CLIENTS) {
        let builder = builder(servers.iter().map(RedisServer::url)).voter_deadline(PATIENCE);
        clients.push(set(builder).connect().await.expect("the servers answer"));
    }
    clients
}

pub async fn close(clients: Vec<Quorate>) {
    for client in clients {
        drop(client.close().await);
    }
}

/// Runs in a task, as in a service: the caller of `block_on` stands outside the runtime's workers.
pub fn in_a_task<T: Send + 'static>(bench: impl Future<Output = T> + Send + 'static) -> T {
    let runtime = Runtime::new().expect("a runtime");
    let measured = runtime.block_on(async { tokio::spawn(bench).await });
    measured.expect("the measuring task ends")
}

/// The processor time of a server so far, as it says itself.
pub fn used(server: &RedisServer) -> Duration {
    let seconds = |name| {
        let text = server.info(&["INFO", "cpu"], name).expect("it says so");
        text.parse::<f64>().expect("a number")
    };
    Duration::from_secs_f64(seconds("used_cpu_user") + seconds("used_cpu_sys"))
}

/// The memory of this process, in bytes, on Linux.
pub fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is there");
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024.0
}

/// The one in the middle.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Times of one kind, in order.
#[derive(Debug)]
pub struct Times(Vec<Duration>);

impl Times {
    pub fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// In microseconds.
    pub fn percentile(&self, percent: usize) -> f64 {
        self.permille(10 * percent)
    }

    /// In microseconds.
    pub fn permille(&self, permille: usize) -> f64 {
        self.0[self.0.len() * permille / 1000].as_secs_f64() * 1e6
    }
}
