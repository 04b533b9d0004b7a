//! Handing a contended lock on, over five nodes, with 2 to 1,000 waiters: how long it takes from
//! just before the release until the next one has its guard, and what it costs.
//!
//! `cargo bench --bench handoff`; `QUORATE_BENCH_ROUNDS` sets how many hand-offs of each kind are
//! timed (default 400, some 30 seconds in all). It starts its own servers.
//!
//! The floor is the same scripts, sent by hand with the same client library to the same servers: a
//! release that calls the next one, and when a majority has called, one bid that a majority grants.
//! Floor, fair mutex and mutex take turns, block by block, so whatever else the machine does falls
//! on all of them. Meanwhile all waiters wait, those of the fair mutex refreshing their places.
//!
//! Costs are counted apart, where nobody refreshes and while nobody comes: whatever is counted then
//! is caused by hand-offs.

#[path = "../common/mod.rs"]
mod common;
mod crowd;
#[path = "../floor/mod.rs"]
mod floor;
mod relay;
#[path = "../../tests/support/mod.rs"]
mod support;
mod tally;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use common::{Bars, clients, close};
use crowd::{Crowd, Lock};
use quorate::{Builder, Quorate};
use relay::Relay;
use support::RedisServer;
use tally::Attempts;

const CROWDS: [usize; 4] = [2, 10, 100, 1000];
/// The most that a hand-off may take, as a multiple of the floor.
const TIME_LIMIT: f64 = 1.5;
/// The most attempts that a hand-off may cause.
const ATTEMPTS_LIMIT: f64 = 1.5;
/// The most by which its cost may grow from the smallest crowd to the largest.
const GROWTH_LIMIT: f64 = 1.5;
/// Until whoever has come sleeps, and the last answers of a hand-off are here.
const SETTLE: Duration = Duration::from_millis(10);
const SIDES: [&str; 3] = ["the same scripts, raw", "fair mutex", "mutex"];

#[tokio::main]
async fn main() {
    let rounds = common::rounds(400);
    let attempts = Attempts::record();
    // In a task, as in a service: `main` itself stands outside the runtime's workers.
    let measured = tokio::spawn(async move {
        let servers: Vec<RedisServer> = (0..5).map(|_| RedisServer::start()).collect();
        let mut bars = Bars::default();
        println!("hand-off{:33}     p50 us    p99 us   count   p50/floor", "");
        for waiters in CROWDS {
            println!("{waiters} waiters");
            time(&mut bars, &servers, waiters, rounds).await;
        }
        println!("\ncost of a hand-off{:23}   attempts   scripts  commands", "");
        let mut costs = Vec::new();
        for waiters in CROWDS {
            println!("{waiters} waiters");
            costs.push(count(&mut bars, &servers, waiters, rounds.div_ceil(4), &attempts).await);
        }
        let [fewest, most] = [costs[0], costs[costs.len() - 1]];
        bars.add("handoff_scripts_growth", most.scripts / fewest.scripts, GROWTH_LIMIT);
        bars.add("handoff_commands_growth", most.commands / fewest.commands, GROWTH_LIMIT);
        bars.print();
    });
    measured.await.expect("the measuring task ends");
}

/// Times all sides with so many waiters, in turns.
async fn time(bars: &mut Bars, servers: &[RedisServer], waiters: usize, rounds: usize) {
    let clients = clients(servers, waiters, |builder| builder).await;
    let mut raw = Relay::connect(servers).await;
    let mut fair = Crowd::gather(&clients, waiters, fair).await;
    let mut plain = Crowd::gather(&clients, waiters, plain).await;
    let mut times: [Vec<Duration>; 3] = Default::default();
    let block = fair.longest_block();
    raw.hand_on(block).await;
    for round in 0..rounds.div_ceil(block) {
        // Who goes first changes each round.
        for side in (0..3).map(|side| (side + round) % 3) {
            times[side].extend(match side {
                0 => raw.hand_on(block).await,
                1 => fair.hand_on(block).await,
                _ => plain.hand_on(block).await,
            });
            match side {
                0 => {}
                1 => fair.refill(block).await,
                _ => plain.refill(block).await,
            }
        }
    }
    let medians = times.map(|mut times| {
        times.sort_unstable();
        let at = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1e6;
        (at(50), at(99), times.len())
    });
    let floor = medians[0].0;
    for (side, (p50, p99, count)) in SIDES.into_iter().zip(medians) {
        println!("    {side:30} {p50:17.1} {p99:9.1} {count:7} {:11.2}", p50 / floor);
    }
    bars.add(&format!("handoff_p50_{waiters}"), medians[1].0 / floor, TIME_LIMIT);
    fair.dismiss().await;
    plain.dismiss().await;
    close(clients).await;
    raw.close().await;
}

/// What one hand-off costs.
#[derive(Clone, Copy)]
struct Cost {
    /// Attempts to gather a majority, from the release on.
    attempts: f64,
    /// What is asked of the servers, all of them together.
    scripts: f64,
    /// The same with what the scripts themselves call.
    commands: f64,
}

/// Counts what hand-offs cost with so many waiters. Returns that of the fair mutex.
async fn count(
    bars: &mut Bars,
    servers: &[RedisServer],
    waiters: usize,
    rounds: usize,
    attempts: &Attempts,
) -> Cost {
    let clients = clients(servers, waiters, unhurried).await;
    let mut fair = Crowd::gather(&clients, waiters, fair).await;
    let fair_cost = cost(servers, &mut fair, rounds, &attempts.fair).await;
    fair.dismiss().await;
    let mut plain = Crowd::gather(&clients, waiters, plain).await;
    let plain_cost = cost(servers, &mut plain, rounds, &attempts.plain).await;
    plain.dismiss().await;
    close(clients).await;
    for (side, cost) in [(SIDES[1], fair_cost), (SIDES[2], plain_cost)] {
        let Cost { attempts, scripts, commands } = cost;
        println!("    {side:30} {attempts:17.2} {scripts:9.1} {commands:9.1}");
    }
    bars.add(&format!("attempts_per_grant_{waiters}"), fair_cost.attempts, ATTEMPTS_LIMIT);
    fair_cost
}

async fn cost(
    servers: &[RedisServer],
    crowd: &mut Crowd,
    rounds: usize,
    attempts: &AtomicU64,
) -> Cost {
    let counts =
        || [attempts.load(Ordering::SeqCst), tally::scripts(servers), tally::commands(servers)];
    let block = crowd.longest_block();
    let (mut sums, mut count) = ([0; 3], 0);
    for _ in 0..rounds.div_ceil(block) {
        let before = counts();
        crowd.hand_on(block).await;
        for (sum, (after, before)) in sums.iter_mut().zip(counts().into_iter().zip(before)) {
            *sum += after - before;
        }
        count += block as u64;
        // Who stands in a queue does so by an attempt from before, which is counted at its end.
        sums[0] -= if crowd.is_fair() { block as u64 } else { 0 };
        // Asking costs one command for itself, and two for the scripts.
        sums[2] -= 3 * servers.len() as u64;
        crowd.refill(block).await;
    }
    let number = |count: u64| f64::from(u32::try_from(count).expect("a bench is not that long"));
    let [attempts, scripts, commands] = sums.map(|sum| number(sum) / number(count));
    Cost { attempts, scripts, commands }
}

fn fair(client: &Quorate) -> Lock {
    Lock::Fair(client.fair_mutex("bench:fair"))
}

fn plain(client: &Quorate) -> Lock {
    Lock::Plain(client.mutex("bench:plain"))
}

/// Does nothing of its own accord for as long as the bench takes, and gives up on no voter.
fn unhurried(builder: Builder) -> Builder {
    let long = Duration::from_mins(10);
    let deadline = Duration::from_secs(10);
    builder.lease(long).waiter_deadline(long).poll(long).voter_deadline(deadline)
}
