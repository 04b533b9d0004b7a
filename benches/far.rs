//! Voters that are far away: what a lock costs in round trips, alone and where many want it.
//!
//! `cargo bench -p quorate-benches --bench far`, about two minutes. It starts its own three servers
//! for each distance, each behind a proxy that delays both ways, and each way by up to a third more
//! as is drawn anew each time. The clients have the settings that users have by default.
//!
//! A round trip is that of a `PING` to all servers, until a majority has answered. It is measured
//! in turn with the locks, over the same proxies.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use fred::{clients::Client, interfaces::ClientLike};
use futures::{
    future::join_all,
    stream::{FuturesUnordered, StreamExt},
};
use quorate::Quorate;
use quorate_benches::{
    common, floor,
    report::{self, Length, Promised, Report},
};
use quorate_support::{Proxy, RedisServer};
use tokio::{task::JoinSet, time::sleep};

const SERVERS: usize = 3;
const MAJORITY: usize = 2;
/// One way, in milliseconds.
const DISTANCES: &[u32] = &[1, 10, 50, 150];
const SHORT_DISTANCES: &[u32] = &[2];
const BARS: Promised = Promised {
    long: &[
        "far_lock_1",
        "far_lock_150",
        "far_release_150",
        "far_handoff_150",
        "far_crowd_150",
        "far_failures",
    ],
    short: &["far_lock_2", "far_release_2", "far_handoff_2", "far_crowd_2", "far_failures"],
};

fn main() -> ExitCode {
    report::run(BARS, |length| common::in_a_task(measure(length)))
}

async fn measure(length: Length) -> Report {
    let distances = length.pick(DISTANCES, SHORT_DISTANCES);
    // Those that mostly wait do not disturb each other.
    let (near, far): (Vec<u32>, Vec<u32>) = distances.iter().partition(|one_way| **one_way < 20);
    let mut found = Vec::new();
    for one_way in near {
        found.push(Found::at(one_way, length).await);
    }
    found.extend(join_all(far.into_iter().map(|one_way| Found::at(one_way, length))).await);
    let mut report = Report::default();
    report.table([
        "one way, ms",
        "a round trip to the majority, ms",
        "lock, round trips",
        "release, round trips",
        "hand-off, round trips",
        "grants a second: 2 clients",
        "20 clients",
    ]);
    for found in &found {
        found.write(&mut report);
    }
    let failures: u32 = found.iter().map(|found| found.failures).sum();
    report.bar("far_failures", f64::from(failures), 0.0);
    report
}

/// What was measured at one distance.
struct Found {
    one_way: u32,
    trip: Duration,
    lock: Duration,
    release: Duration,
    handoff: Duration,
    /// Grants a second.
    two: f64,
    twenty: f64,
    failures: u32,
}

impl Found {
    async fn at(one_way: u32, length: Length) -> Self {
        let place = Place::far_away(Duration::from_millis(one_way.into())).await;
        let times = length.pick(if one_way < 20 { 200 } else { 60 }, 5);
        let alone = alone(&place, times).await;
        // Grants vary with the drawn delays: so many that a twentieth more would show.
        let within = alone.trip * length.pick(200, 10);
        let (handoff, two, two_failed) = contended(&place, 2, within).await;
        let (_, twenty, twenty_failed) = contended(&place, 20, within).await;
        let failures = alone.failures + two_failed + twenty_failed;
        let Alone { trip, lock, release, .. } = alone;
        Self { one_way, trip, lock, release, handoff, two, twenty, failures }
    }

    fn write(&self, report: &mut Report) {
        let trips = |time: Duration| time.div_duration_f64(self.trip);
        let name = |what: &str| format!("far_{what}_{}", self.one_way);
        let lock = report.bar(&name("lock"), trips(self.lock), 1.15);
        let release = report.bar(&name("release"), trips(self.release), 1.15);
        let handoff = report.bar(&name("handoff"), trips(self.handoff), 2.1);
        report.bar(&name("crowd"), self.two / self.twenty, 1.0);
        report.row([
            self.one_way.to_string(),
            format!("{:.2}", self.trip.as_secs_f64() * 1e3),
            lock,
            release,
            handoff,
            format!("{:.2}", self.two),
            format!("{:.2}", self.twenty),
        ]);
    }
}

/// Servers behind proxies.
struct Place {
    _servers: Vec<RedisServer>,
    proxies: Vec<Proxy>,
    pings: Vec<Client>,
}

impl Place {
    async fn far_away(one_way: Duration) -> Self {
        let servers = common::servers(SERVERS);
        let (mut proxies, mut pings) = (Vec::new(), Vec::new());
        for server in &servers {
            let proxy = Proxy::start(server.port()).await;
            proxy.delay_unevenly(one_way, one_way, one_way / 3);
            pings.push(floor::connect_to(&proxy.url()).await);
            proxies.push(proxy);
        }
        Self { _servers: servers, proxies, pings }
    }

    async fn connect(&self) -> Quorate {
        let urls = self.proxies.iter().map(Proxy::url);
        Quorate::connect(urls).await.expect("the servers answer")
    }

    /// A round trip to a majority.
    async fn trip(&self) -> Duration {
        let started = Instant::now();
        let mut pongs: FuturesUnordered<_> =
            self.pings.iter().map(|client| client.ping::<String>(None)).collect();
        for _ in 0..MAJORITY {
            pongs.next().await.expect("there are more").expect("it answers");
        }
        let took = started.elapsed();
        // What is late now is not to be ahead of the next.
        pongs.for_each(async |_| ()).await;
        took
    }
}

/// What was measured of one client alone.
struct Alone {
    trip: Duration,
    lock: Duration,
    release: Duration,
    failures: u32,
}

async fn alone(place: &Place, times: usize) -> Alone {
    let client = place.connect().await;
    let (mut trips, mut locks, mut releases, mut failures) = (vec![], vec![], vec![], 0);
    for _ in 0..times {
        trips.push(place.trip().await);
        let started = Instant::now();
        let Ok(guard) = client.mutex("alone").lock().await else {
            failures += 1;
            continue;
        };
        locks.push(started.elapsed());
        let started = Instant::now();
        match guard.release().await {
            Ok(()) => releases.push(started.elapsed()),
            Err(_) => failures += 1,
        }
    }
    drop(client.close().await);
    let [trip, lock, release] = [trips, locks, releases].map(median);
    Alone { trip, lock, release, failures }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(Duration::MAX)
}

/// So many clients want one lock, over and over: how long a hand-off takes, how many grants there
/// were a second, and how often one failed.
async fn contended(place: &Place, count: usize, within: Duration) -> (Duration, f64, u32) {
    let clients = join_all((0..count).map(|_| place.connect())).await;
    let (over, epoch) = (Arc::new(AtomicBool::new(false)), Instant::now());
    let released = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for client in &clients {
        let (mutex, over) = (client.mutex("contended"), Arc::clone(&over));
        let released = Arc::clone(&released);
        tasks.spawn(async move {
            let (mut handoffs, mut failures) = (Vec::new(), 0);
            while !over.load(Ordering::Relaxed) {
                let Ok(guard) = mutex.lock().await else {
                    failures += 1;
                    continue;
                };
                let now = epoch.elapsed();
                let before = Duration::from_nanos(released.load(Ordering::Relaxed));
                handoffs.push(now.saturating_sub(before));
                let nanos = epoch.elapsed().as_nanos();
                released.store(u64::try_from(nanos).expect("not for ages"), Ordering::Relaxed);
                failures += u32::from(guard.release().await.is_err());
            }
            (handoffs, failures)
        });
    }
    let started = Instant::now();
    sleep(within).await;
    over.store(true, Ordering::Relaxed);
    let (mut handoffs, mut failures) = (Vec::new(), 0);
    for (times, failed) in tasks.join_all().await {
        handoffs.extend(times);
        failures += failed;
    }
    let took = started.elapsed();
    common::close(clients).await;
    let grants = u32::try_from(handoffs.len()).expect("not that many");
    (median(handoffs), f64::from(grants) / took.as_secs_f64(), failures)
}
