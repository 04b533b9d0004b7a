//! What two locks at once and a campaign cost beside a mutex, and when a hundred observers have
//! heard of a new leader.
//!
//! `cargo bench -p quorate-benches --bench kinds`; `QUORATE_BENCH_ROUNDS` sets its length (default
//! 200, some 20 seconds). It starts its own servers. Sides take turns, block by block, so whatever
//! else the machine does meanwhile falls on all of them.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use futures::future::join_all;
use quorate::{Observed, Observer, Quorate};
use quorate_benches::{
    common::{self, Times},
    report::{self, Length, Promised, Report},
};
use quorate_support::RedisServer;

/// Of two locks at once, against one mutex.
const TWO_LIMIT: f64 = 1.4;
/// Of a campaign, against a mutex: its value goes along, and the news of it.
const CAMPAIGN_LIMIT: f64 = 1.4;
/// In milliseconds: from the resignation until the last of a hundred observers has heard of the new
/// leader, on one machine with the servers.
const HEARD_LIMIT: f64 = 50.0;
const OBSERVERS: usize = 100;
const BARS: Promised = Promised::always(&[
    "two_locks_p50",
    "two_locks_p99",
    "campaign_p50",
    "campaign_p99",
    "heard_by_100_p50",
    "heard_by_100_p99",
]);

fn main() -> ExitCode {
    report::run(BARS, |length| common::in_a_task(measure(length)))
}

/// Lock and release, in microseconds each.
#[derive(Clone, Copy)]
enum Side {
    Mutex,
    TwoLocks,
    Campaign,
}

impl Side {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
    async fn cycle(self, quorum: &Quorate) -> Duration {
        let started = Instant::now();
        let released = match self {
            Self::Mutex => quorum.mutex("one").lock().await.expect("it is free").release().await,
            Self::TwoLocks => {
                let two = quorum.lock_all([quorum.mutex("two"), quorum.mutex("three")]);
                two.lock().await.expect("both are free").release().await
            }
            Self::Campaign => {
                let election = quorum.election("four");
                election.campaign("10.0.0.1:80").await.expect("nobody leads").resign().await
            }
        };
        released.expect("a majority confirms");
        started.elapsed()
    }
}

async fn measure(length: Length) -> Report {
    let servers = common::servers(3);
    let quorum = Quorate::connect(servers.iter().map(RedisServer::url)).await;
    let quorum = quorum.expect("the servers answer");
    let (rounds, block) = (length.rounds(200, 4), length.pick(50, 5));
    let sides = [Side::Mutex, Side::TwoLocks, Side::Campaign];
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for side in sides {
        for _ in 0..length.pick(100, 5) {
            side.cycle(&quorum).await;
        }
    }
    for round in 0..rounds {
        for turn in 0..sides.len() {
            let side = (round + turn) % sides.len();
            for _ in 0..block {
                times[side].push(sides[side].cycle(&quorum).await);
            }
        }
    }
    let [mutex, two, campaign] = times.map(Times::new);
    let mut report = Report::default();
    report.table([
        "lock and release, 3 servers",
        "compared with a mutex",
        "median",
        "p99",
        "limit",
    ]);
    for (bar, what, times, limit) in [
        ("two_locks", "two mutexes at once", two, TWO_LIMIT),
        ("campaign", "campaign and resign", campaign, CAMPAIGN_LIMIT),
    ] {
        let ratio = |percent| times.percentile(percent) / mutex.percentile(percent);
        let p50 = report.bar(&format!("{bar}_p50"), ratio(50), limit);
        let p99 = report.bar(&format!("{bar}_p99"), ratio(99), limit);
        let us = format!("{:.0} us, {:.0} us", mutex.percentile(50), times.percentile(50));
        report.row([what.to_owned(), us, p50, p99, format!("{limit:.2}")]);
    }
    heard(&mut report, &servers, length).await;
    drop(quorum.close().await);
    report
}

/// A leader resigns while another candidate waits: when has each observer heard of the next?
async fn heard(report: &mut Report, servers: &[RedisServer], length: Length) {
    let clients = common::clients(servers, 10, |builder| builder).await;
    let mut observers: Vec<Observer> = (0..OBSERVERS)
        .map(|number| clients[number % clients.len()].election("heard").observe())
        .collect();
    let mut times = Vec::new();
    let mut leads = clients[0].election("heard").campaign("0").await.expect("nobody leads");
    for number in 1..=length.rounds(200, 3) {
        let election = clients[number % clients.len()].election("heard");
        let waiting = election.clone();
        let value = number.to_string();
        let said = value.clone();
        let next = tokio::spawn(async move { waiting.campaign(said).await });
        while election.inspect().await.is_ok_and(|seen| seen.waiting.is_empty()) {
            tokio::task::yield_now().await;
        }
        let heard = observers.iter_mut().map(|observer| until_led(observer, &value));
        let (took, released) = tokio::join!(timed(join_all(heard)), leads.resign());
        released.expect("a majority confirms");
        times.push(took);
        leads = next.await.expect("it does not panic").expect("its turn has come");
    }
    let times = Times::new(times);
    report.table(["a leader resigns, 100 observers", "median", "99th percentile", "limit"]);
    let ms = |percent| times.percentile(percent) / 1000.0;
    let p50 = report.bar("heard_by_100_p50", ms(50), HEARD_LIMIT);
    let p99 = report.bar("heard_by_100_p99", ms(99), HEARD_LIMIT);
    let limit = format!("{HEARD_LIMIT:.0} ms");
    report.row(["the last has heard of the next, in ms".to_owned(), p50, p99, limit]);
    drop((observers, leads));
    common::close(clients).await;
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
async fn timed<T>(what: impl Future<Output = T>) -> Duration {
    let started = Instant::now();
    what.await;
    started.elapsed()
}

async fn until_led(observer: &mut Observer, value: &str) {
    loop {
        match observer.next().await.expect("the client is open") {
            Observed::Leader(leader) if leader.text() == Some(value) => return,
            _ => {}
        }
    }
}
