//! Many that read one lock, against as many mutexes that nobody waits for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use quorate::{Mutex, Quorate, RwLock};
use rustix::time::{ClockId, clock_gettime};
use tokio::{task::JoinSet, time::sleep};

use crate::median;
use quorate_benches::{
    common::{clients, close},
    report::Report,
};
use quorate_support::{RedisServer, Reply};

/// What the reads may take of the time of as many cycles of mutexes: a user who reads one lock
/// rather than lock one of many should not feel it. As a throughput, 0.8 of the mutexes'.
const LIMIT: f64 = 1.25;
const SIDES: [&str; 2] = ["mutexes, each its own", "reads of one lock"];

enum Lock {
    Own(Mutex),
    Shared(RwLock),
}

/// What one side came to in one block.
struct Measured {
    per_second: f64,
    /// The time of the processors that one cycle took in this process, and in all servers.
    client_us: f64,
    servers_us: f64,
    /// What one script took on a server.
    script_us: f64,
}

/// `length`: of a block, in which cycles are counted before the other side has its turn; longer
/// where most of those who take part have not come twice by then: they begin in step.
pub(crate) async fn compare(
    report: &mut Report,
    servers: &[RedisServer],
    tasks: usize,
    rounds: usize,
    length: Duration,
) {
    let clients = clients(servers, tasks, |builder| builder).await;
    let own = |client: &Quorate, task| Lock::Own(client.mutex(format!("bench:own:{task}")));
    let shared = |client: &Quorate, _| Lock::Shared(client.rw_lock("bench:shared"));
    let sides = [locks(&clients, tasks, own), locks(&clients, tasks, shared)];
    for side in &sides {
        block(servers, side, length).await;
    }
    let mut ratios = Vec::new();
    let mut measured = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        // Who goes first changes each round.
        for side in (0..2).map(|side| (side + round) % 2) {
            measured[side].push(block(servers, &sides[side], length).await);
        }
        ratios.push(measured[1][round].per_second / measured[0][round].per_second);
    }
    close(clients).await;
    let ratio = median(ratios);
    for ((side, blocks), ratio) in SIDES.into_iter().zip(measured).zip([1.0, ratio]) {
        let median = |figure: fn(&Measured) -> f64| median(blocks.iter().map(figure).collect());
        print!("    {side:21} {:11.0} {ratio:8.2}", median(|block| block.per_second));
        print!(" {:11.1}", median(|block| block.client_us));
        print!(" {:11.1}", median(|block| block.servers_us));
        println!(" {:11.1}", median(|block| block.script_us));
    }
    let cell = report.bar(&format!("read_cost_{tasks}"), ratio.recip(), LIMIT);
    report.row([tasks.to_string(), cell, format!("{LIMIT:.2}")]);
}

fn locks(
    clients: &[Quorate],
    tasks: usize,
    lock: impl Fn(&Quorate, usize) -> Lock,
) -> Vec<Arc<Lock>> {
    (0..tasks).map(|task| Arc::new(lock(&clients[task % clients.len()], task))).collect()
}

/// All enter and leave, again and again, for a while.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
async fn block(servers: &[RedisServer], locks: &[Arc<Lock>], length: Duration) -> Measured {
    let (cycles, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut tasks = JoinSet::new();
    let at_first = Spent::by_now(servers);
    for lock in locks {
        let (lock, cycles, ended) = (Arc::clone(lock), Arc::clone(&cycles), Arc::clone(&ended));
        tasks.spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                lock.cycle().await;
                cycles.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let before = at_least(locks.len(), &cycles).await;
    let started = Instant::now();
    sleep(length).await;
    let after = at_least(3 * locks.len(), &cycles).await;
    let took = started.elapsed();
    ended.store(true, Ordering::Relaxed);
    while let Some(task) = tasks.join_next().await {
        task.expect("every cycle succeeds");
    }
    let (all, now) = (number(cycles.load(Ordering::Relaxed)), Spent::by_now(servers));
    Measured {
        per_second: number(after - before) / took.as_secs_f64(),
        client_us: (now.client_us - at_first.client_us) / all,
        servers_us: (now.servers_us - at_first.servers_us) / all,
        script_us: (now.scripts_us - at_first.scripts_us) / (now.scripts - at_first.scripts),
    }
}

/// Waits for so many, and returns how many there are.
async fn at_least(count: usize, cycles: &AtomicU64) -> u64 {
    loop {
        let now = cycles.load(Ordering::Relaxed);
        if now >= count as u64 {
            return now;
        }
        sleep(Duration::from_millis(1)).await;
    }
}

impl Lock {
    async fn cycle(&self) {
        let released = match self {
            Self::Own(mutex) => mutex.lock().await.expect("a majority answers").release().await,
            Self::Shared(lock) => lock.read().await.expect("a majority answers").release().await,
        };
        released.expect("a majority confirms");
    }
}

/// What has been spent so far.
#[derive(Default)]
struct Spent {
    client_us: f64,
    servers_us: f64,
    /// How many scripts the servers have run, and how long that took.
    scripts: f64,
    scripts_us: f64,
}

impl Spent {
    #[expect(clippy::disallowed_methods, reason = "the time that this process has spent")]
    fn by_now(servers: &[RedisServer]) -> Self {
        let clock = clock_gettime(ClockId::ProcessCPUTime);
        let client = Duration::try_from(clock).expect("time goes forward").as_secs_f64();
        let mut spent = Self { client_us: client * 1e6, ..Self::default() };
        for server in servers {
            let reply = server.command(&["INFO", "all"]).expect("it answers");
            let Reply::Text(info) = reply else { panic!("no text: {reply:?}") };
            spent.servers_us += field(&info, "used_cpu_user:").expect("it is told") * 1e6;
            spent.servers_us += field(&info, "used_cpu_sys:").expect("it is told") * 1e6;
            // Not there before the first.
            spent.scripts += field(&info, "cmdstat_evalsha:calls=").unwrap_or(0.0);
            spent.scripts_us += scripts_us(&info).unwrap_or(0.0);
        }
        spent
    }
}

fn scripts_us(info: &str) -> Option<f64> {
    let (_, fields) = info.split_once("cmdstat_evalsha:")?;
    field(fields.split_once(',')?.1, "usec=")
}

/// The number behind a name, at the start of a line.
fn field(info: &str, name: &str) -> Option<f64> {
    let text = info.lines().find_map(|line| line.strip_prefix(name))?;
    text.split(',').next()?.trim().parse().ok()
}

fn number(count: u64) -> f64 {
    f64::from(u32::try_from(count).expect("a block is not that long"))
}
