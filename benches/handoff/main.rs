//! Handing a contended lock on, over five nodes, with 2 to 1,000 waiters: how long it takes from
//! just before the release until the next one has its guard, and what it costs.
//!
//! `cargo bench -p quorate-benches --bench handoff`; `QUORATE_BENCH_ROUNDS` sets how many hand-offs
//! of each kind are timed (default 400, some 30 seconds in all). It starts its own servers.
//!
//! The floor is the same scripts, sent by hand with the same client library to the same servers: a
//! release that calls the next one, and when a majority has called, one bid that a majority grants.
//! Floor, fair mutex, mutex and semaphore take turns, block by block, so whatever else the machine
//! does falls on all of them. Meanwhile all waiters wait, those in a queue refreshing their places.
//!
//! Then 1,000 tasks of one client want a mutex all the time, over three nodes, and 1,000 of each of
//! two clients: how often it goes from one task to the next, mostly without a word to the nodes.
//!
//! Costs are counted apart, where nobody refreshes and while nobody comes: whatever is counted then
//! is caused by hand-offs.

mod crowd;
mod relay;
mod within;

use std::{
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crowd::{Crowd, Lock};
use quorate::{Builder, Quorate};
use quorate_benches::{
    common::{self, Times, clients, close},
    report::{self, Length, Promised, Report},
    tally::{self, Attempts},
};
use quorate_support::RedisServer;
use relay::Relay;

const CROWDS: &[usize] = &[2, 10, 100, 1000];
const SHORT_CROWDS: &[usize] = &[2, 20];
/// The most that a hand-off may take, as a multiple of the floor.
const TIME_LIMIT: f64 = 1.5;
/// The most attempts that a hand-off may cause.
const ATTEMPTS_LIMIT: f64 = 1.5;
/// The most by which its cost may grow from the smallest crowd to the largest.
const GROWTH_LIMIT: f64 = 1.5;
/// Until whoever has come sleeps, and the last answers of a hand-off are here.
const SETTLE: Duration = Duration::from_millis(10);
const BARS: Promised = Promised {
    long: &[
        "handoff_p50_2",
        "handoff_p50_10",
        "handoff_p50_100",
        "handoff_p50_1000",
        "permit_handoff_p50_2",
        "permit_handoff_p50_10",
        "permit_handoff_p50_100",
        "permit_handoff_p50_1000",
        "attempts_per_grant_2",
        "attempts_per_grant_10",
        "attempts_per_grant_100",
        "attempts_per_grant_1000",
        "handoff_scripts_growth",
        "handoff_commands_growth",
    ],
    short: &[
        "handoff_p50_2",
        "handoff_p50_20",
        "permit_handoff_p50_2",
        "permit_handoff_p50_20",
        "attempts_per_grant_2",
        "attempts_per_grant_20",
        "handoff_scripts_growth",
        "handoff_commands_growth",
    ],
};
const SIDES: [&str; 4] =
    ["the same scripts, raw", "fair mutex", "mutex", "semaphore of one permit"];

fn main() -> ExitCode {
    report::run(BARS, |length| common::in_a_task(measure(length)))
}

async fn measure(length: Length) -> Report {
    let (crowds, rounds) = (length.pick(CROWDS, SHORT_CROWDS), length.rounds(400, 20));
    let attempts = Attempts::record();
    let servers = common::servers(5);
    let mut report = Report::default();
    println!("hand-off{:33}     p50 us    p99 us   count   p50/floor", "");
    let mut times = Vec::new();
    for &waiters in crowds {
        println!("{waiters} waiters");
        times.push(time(&servers, waiters, rounds).await);
    }
    println!("\ncost of a hand-off{:23}   attempts   scripts  commands", "");
    let mut costs = Vec::new();
    for &waiters in crowds {
        println!("{waiters} waiters");
        costs.push(count(&servers, waiters, rounds.div_ceil(4), &attempts).await);
    }
    report.table([
        "waiters",
        "fair mutex / floor",
        "mutex / floor",
        "semaphore / floor",
        "fair mutex: attempts per grant",
        "mutex: attempts per grant",
    ]);
    for ((waiters, [fair, plain, permit]), [fair_cost, plain_cost]) in
        crowds.iter().zip(times).zip(&costs)
    {
        let time = report.bar(&format!("handoff_p50_{waiters}"), fair, TIME_LIMIT);
        let attempts = format!("attempts_per_grant_{waiters}");
        let attempts = report.bar(&attempts, fair_cost.attempts, ATTEMPTS_LIMIT);
        let plain_attempts = format!("{:.2}", plain_cost.attempts);
        let permit = report.bar(&format!("permit_handoff_p50_{waiters}"), permit, TIME_LIMIT);
        let plain = format!("{plain:.2}");
        report.row([waiters.to_string(), time, plain, permit, attempts, plain_attempts]);
    }
    let [time, attempts] = [TIME_LIMIT, ATTEMPTS_LIMIT].map(two_decimals);
    let [limit, none] = ["limit".to_owned(), String::new()];
    report.row([limit, time.clone(), none.clone(), time, attempts, none]);
    let [[fewest, _], .., [most, _]] = costs[..] else { panic!("there are two crowds or more") };
    let (few, many) = (crowds[0], crowds[crowds.len() - 1]);
    let growth = format!("one hand-off of the fair mutex: {many} waiters / {few} waiters");
    report.table([&growth, "times", "limit"]);
    let scripts = most.scripts / fewest.scripts;
    let scripts = report.bar("handoff_scripts_growth", scripts, GROWTH_LIMIT);
    report.row(["scripts that the servers run".to_owned(), scripts, two_decimals(GROWTH_LIMIT)]);
    let commands = most.commands / fewest.commands;
    let commands = report.bar("handoff_commands_growth", commands, GROWTH_LIMIT);
    report.row([
        "commands, with those of the scripts".to_owned(),
        commands,
        two_decimals(GROWTH_LIMIT),
    ]);
    report.table(["clients of 1,000 tasks", "mutex: hand-overs a second", "smaller share"]);
    for clients in [1, 2] {
        let (tasks, time) = length.pick((1_000, 3_000), (20, 100));
        let time = Duration::from_millis(time);
        let pace = within::measure(&servers[..3], clients, tasks, time).await;
        let (a_second, share) = (format!("{:.0}", pace.a_second), two_decimals(pace.smaller_share));
        println!("{clients} clients of {tasks} tasks: {a_second} hand-overs a second, {share}");
        report.row([clients.to_string(), a_second, share]);
    }
    report
}

fn two_decimals(limit: f64) -> String {
    format!("{limit:.2}")
}

/// Times all sides with so many waiters, in turns. Returns the medians of fair mutex, mutex and
/// semaphore, as multiples of the floor's.
async fn time(servers: &[RedisServer], waiters: usize, rounds: usize) -> [f64; 3] {
    let clients = clients(servers, waiters, |builder| builder).await;
    let mut raw = Relay::connect(servers).await;
    let mut fair = Crowd::gather(&clients, waiters, fair).await;
    let mut plain = Crowd::gather(&clients, waiters, plain).await;
    let mut permit = Crowd::gather(&clients, waiters, permit).await;
    let mut times: [Vec<Duration>; 4] = Default::default();
    let block = fair.longest_block();
    raw.hand_on(block).await;
    for round in 0..rounds.div_ceil(block) {
        // Who goes first changes each round.
        for side in (0..4).map(|side| (side + round) % 4) {
            times[side].extend(match side {
                0 => raw.hand_on(block).await,
                1 => fair.hand_on(block).await,
                2 => plain.hand_on(block).await,
                _ => permit.hand_on(block).await,
            });
            match side {
                0 => {}
                1 => fair.refill(block).await,
                2 => plain.refill(block).await,
                _ => permit.refill(block).await,
            }
        }
    }
    let times = times.map(Times::new);
    let ratios = times.each_ref().map(|side| side.percentile(50) / times[0].percentile(50));
    for ((side, times), ratio) in SIDES.into_iter().zip(&times).zip(ratios) {
        let (p50, p99) = (times.percentile(50), times.percentile(99));
        println!("    {side:30} {p50:17.1} {p99:9.1} {:7} {ratio:11.2}", times.count());
    }
    fair.dismiss().await;
    plain.dismiss().await;
    permit.dismiss().await;
    close(clients).await;
    raw.close().await;
    [ratios[1], ratios[2], ratios[3]]
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

/// Counts what hand-offs cost with so many waiters: those of the fair mutex, and of the mutex.
async fn count(
    servers: &[RedisServer],
    waiters: usize,
    rounds: usize,
    attempts: &Attempts,
) -> [Cost; 2] {
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
    [fair_cost, plain_cost]
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

fn permit(client: &Quorate) -> Lock {
    Lock::Permit(client.semaphore("bench:permit", 1))
}

/// Does nothing of its own accord for as long as the bench takes, and gives up on no voter.
fn unhurried(builder: Builder) -> Builder {
    let long = Duration::from_mins(10);
    let deadline = Duration::from_secs(10);
    common::long_lived(builder).waiter_deadline(long).poll_interval(long).voter_deadline(deadline)
}
