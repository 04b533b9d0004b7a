//! Many that read one lock, against as many mutexes that nobody waits for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use quorate::{Mutex, Quorate, RwLock};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    common::{Bars, clients, close},
    median, patient,
    support::{RedisServer, Reply},
};

/// What the reads may take of the time of as many cycles of mutexes: a user who reads one lock
/// rather than lock one of many should not feel it. As a throughput, 0.8 of the mutexes'.
const LIMIT: f64 = 1.25;
/// Until all are under way.
const WARM_UP: Duration = Duration::from_millis(50);
/// In which cycles are counted before the other side has its turn.
const BLOCK: Duration = Duration::from_millis(200);
const SIDES: [&str; 2] = ["mutexes, each its own", "reads of one lock"];

enum Lock {
    Own(Mutex),
    Shared(RwLock),
}

/// What one side came to in one block.
struct Measured {
    per_second: f64,
    /// What one script took on a server.
    script_us: f64,
}

pub(crate) async fn compare(bars: &mut Bars, servers: &[RedisServer], tasks: usize, rounds: usize) {
    let clients = clients(servers, tasks, patient).await;
    let own = |client: &Quorate, task| Lock::Own(client.mutex(&format!("bench:own:{task}")));
    let shared = |client: &Quorate, _| Lock::Shared(client.rw_lock("bench:shared"));
    let sides = [locks(&clients, tasks, own), locks(&clients, tasks, shared)];
    for side in &sides {
        block(servers, side).await;
    }
    let mut ratios = Vec::new();
    let mut measured = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        // Who goes first changes each round.
        for side in (0..2).map(|side| (side + round) % 2) {
            measured[side].push(block(servers, &sides[side]).await);
        }
        ratios.push(measured[1][round].per_second / measured[0][round].per_second);
    }
    close(clients).await;
    let ratio = median(ratios);
    for ((side, blocks), ratio) in SIDES.into_iter().zip(measured).zip([1.0, ratio]) {
        let per_second = median(blocks.iter().map(|block| block.per_second).collect());
        let script_us = median(blocks.iter().map(|block| block.script_us).collect());
        println!("    {side:30} {per_second:11.0} {ratio:10.2} {script_us:11.1}");
    }
    bars.add(&format!("read_cost_{tasks}"), ratio.recip(), LIMIT);
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
async fn block(servers: &[RedisServer], locks: &[Arc<Lock>]) -> Measured {
    let (cycles, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut tasks = JoinSet::new();
    let scripts_before = scripts(servers);
    for lock in locks.iter().cloned() {
        let (cycles, ended) = (Arc::clone(&cycles), Arc::clone(&ended));
        tasks.spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                lock.cycle().await;
                cycles.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    sleep(WARM_UP).await;
    let (started, before) = (Instant::now(), cycles.load(Ordering::Relaxed));
    sleep(BLOCK).await;
    let (took, after) = (started.elapsed(), cycles.load(Ordering::Relaxed));
    ended.store(true, Ordering::Relaxed);
    while let Some(task) = tasks.join_next().await {
        task.expect("every cycle succeeds");
    }
    let [(calls, us), (calls_before, us_before)] = [scripts(servers), scripts_before];
    Measured {
        per_second: number(after - before) / took.as_secs_f64(),
        script_us: number(us - us_before) / number(calls - calls_before),
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

/// How many scripts all the servers have run, and how long that took in microseconds.
fn scripts(servers: &[RedisServer]) -> (u64, u64) {
    let of = |server: &RedisServer| {
        let reply = server.command(&["INFO", "commandstats"]).expect("it answers");
        let Reply::Text(stats) = reply else { panic!("no text: {reply:?}") };
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:"));
        let mut numbers = line.into_iter().flat_map(|line| line.split(',')).map(|field| {
            let (_, number) = field.split_once('=').expect("a name and a number");
            // Those that come first are whole numbers, and the others are not asked for.
            number.parse().unwrap_or(0)
        });
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    };
    let sum = |(calls, us), (more, longer)| (calls + more, us + longer);
    servers.iter().map(of).fold((0, 0), sum)
}

fn number(count: u64) -> f64 {
    f64::from(u32::try_from(count).expect("a block is not that long"))
}
