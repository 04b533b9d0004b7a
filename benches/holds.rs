//! What many holds of one client cost while they are kept: processor time, memory, and whether all
//! of them last. And the memory of a client that holds nothing.
//!
//! `cargo bench -p quorate-benches --bench holds`, about three minutes, on Linux;
//! `QUORATE_BENCH_HOLDS=10000` restricts it to so many. It starts its own three servers. The client
//! has default settings; each lock is held by a guard of its own and renewed.

use std::{env, process::ExitCode, time::Duration};

use futures::{StreamExt, stream};
use quorate::{MutexGuard, Quorate};
use quorate_benches::{
    common,
    report::{self, Length, Promised, Report},
};
use quorate_support::RedisServer;
use rustix::time::{ClockId, clock_gettime};
use tokio::time::sleep;

const BARS: Promised = Promised {
    long: &[
        "lost_10000",
        "lost_100000",
        "client_percent_10000",
        "client_percent_100000",
        "servers_percent_100000",
        "kib_per_hold_10000",
        "kib_per_hold_100000",
        "unconfirmed_100000",
        "mib_left_100000",
        "kib_per_client",
    ],
    short: &[
        "lost_200",
        "client_percent_200",
        "kib_per_hold_200",
        "unconfirmed_200",
        "kib_per_client",
    ],
};

const SERVERS: f64 = 3.0;
/// So many are connected to see what one keeps.
const CLIENTS: u16 = 32;

/// How much is measured.
#[derive(Clone, Copy)]
struct Size {
    counts: &'static [u32],
    lease: Duration,
    /// How long they are kept before anything is measured: for longer than the first renewals take.
    settle: Duration,
    /// How long processor time is measured.
    window: Duration,
    /// After which the memory that is left is read.
    after: Duration,
}

impl Size {
    fn of(length: Length) -> Self {
        let seconds = Duration::from_secs;
        Self {
            counts: length.pick(&[1_000, 10_000, 100_000], &[200]),
            lease: length.pick(seconds(30), seconds(3)),
            settle: length.pick(seconds(15), seconds(1)),
            window: length.pick(seconds(30), seconds(1)),
            after: length.pick(seconds(5), Duration::ZERO),
        }
    }
}

/// What so many holds came to.
struct Kept {
    /// Of one core.
    client_percent: f64,
    servers_percent: f64,
    kib_per_hold: f64,
    lost: f64,
    unconfirmed: f64,
    mib_left: f64,
    seconds_to_take: f64,
    seconds_to_release: f64,
}

fn main() -> ExitCode {
    report::run(BARS, measure)
}

fn measure(length: Length) -> Report {
    let size = Size::of(length);
    let mut report = Report::default();
    // Before anything else: what was given back is used again, and would not be seen.
    let kib_per_client = common::in_a_task(kib_per_client());
    report.table([
        "holds",
        "client, % of a core",
        "servers, % of a core each",
        "KiB each in the client",
        "lost",
        "releases not confirmed",
        "MiB left afterwards",
        "seconds to take all",
        "seconds to release all",
    ]);
    let only = env::var("QUORATE_BENCH_HOLDS").ok();
    let wanted = |count: &&u32| only.as_ref().is_none_or(|only| *only == count.to_string());
    for &count in size.counts.iter().filter(wanted) {
        let kept = common::in_a_task(keep(count, size));
        // For each 10,000: what one renewal costs is the same.
        let share = f64::from(count) / 10_000.0;
        let client = report.bar(
            &format!("client_percent_{count}"),
            kept.client_percent,
            // Less for each where there are many: more of them leave in one call.
            (2.0 * share.max(1.0)).min(15.0),
        );
        let mut servers = format!("{:.2}", kept.servers_percent);
        if count == 100_000 {
            servers = report.bar("servers_percent_100000", kept.servers_percent, 8.0);
        }
        let memory = report.bar(&format!("kib_per_hold_{count}"), kept.kib_per_hold, 2.0);
        let lost = report.bar(&format!("lost_{count}"), kept.lost, 0.0);
        let unconfirmed = report.bar(&format!("unconfirmed_{count}"), kept.unconfirmed, 0.0);
        let left = report.bar(&format!("mib_left_{count}"), kept.mib_left, 16.0);
        report.row([
            count.to_string(),
            client,
            servers,
            memory,
            lost,
            unconfirmed,
            left,
            format!("{:.2}", kept.seconds_to_take),
            format!("{:.2}", kept.seconds_to_release),
        ]);
    }
    report.table(["connected clients", "KiB each"]);
    let each = report.bar("kib_per_client", kib_per_client, 400.0);
    report.row([CLIENTS.to_string(), each]);
    report
}

/// What a client of three servers keeps that holds nothing.
async fn kib_per_client() -> f64 {
    let servers = common::servers(3);
    let connect = async || {
        let builder = Quorate::builder().voters(servers.iter().map(RedisServer::url));
        let client = builder.connect().await.expect("the servers answer");
        drop(client.mutex("first").lock().await.expect("nobody has it"));
        client
    };
    // What is made once.
    let mut clients = vec![connect().await];
    let before = common::resident();
    for _ in 0..CLIENTS {
        clients.push(connect().await);
    }
    let kib = (common::resident() - before) / 1024.0 / f64::from(CLIENTS);
    common::close(clients).await;
    kib
}

async fn keep(count: u32, size: Size) -> Kept {
    let servers = common::servers(3);
    let builder = Quorate::builder().voters(servers.iter().map(RedisServer::url));
    let builder = builder.lease(size.lease).longest_lease(size.lease);
    let client = builder.connect().await.expect("the servers answer");
    drop(client.mutex("first").lock().await.expect("nobody has it"));
    let before = common::resident();

    let started = shown(ClockId::Monotonic);
    let guards: Vec<MutexGuard> = stream::iter(0..count)
        .map(|number| client.mutex(number.to_string()))
        .map(|mutex| async move { mutex.lock().await.expect("nobody has it") })
        .buffer_unordered(256)
        .collect()
        .await;
    let seconds_to_take = shown(ClockId::Monotonic) - started;
    sleep(size.settle).await;

    let (ours, theirs) = (shown(ClockId::ProcessCPUTime), used_by(&servers));
    let started = shown(ClockId::Monotonic);
    sleep(size.window).await;
    let window = shown(ClockId::Monotonic) - started;
    let client_percent = (shown(ClockId::ProcessCPUTime) - ours) / window * 100.0;
    let servers_percent = (used_by(&servers) - theirs) / window * 100.0 / SERVERS;
    let kib_per_hold = (common::resident() - before) / 1024.0 / f64::from(count);
    let lost = guards.iter().map(|guard| f64::from(u8::from(!guard.is_held()))).sum();

    let started = shown(ClockId::Monotonic);
    let releases: Vec<_> = guards.into_iter().map(|guard| tokio::spawn(guard.release())).collect();
    let mut unconfirmed = 0.0;
    for release in releases {
        let released = release.await.expect("no panic");
        unconfirmed += f64::from(u8::from(released.is_err()));
    }
    let seconds_to_release = shown(ClockId::Monotonic) - started;
    sleep(size.after).await;
    let mib_left = ((common::resident() - before) / 1024.0 / 1024.0).max(0.0);
    drop(client.close().await);
    Kept {
        client_percent,
        servers_percent,
        kib_per_hold,
        lost,
        unconfirmed,
        mib_left,
        seconds_to_take,
        seconds_to_release,
    }
}

/// What a clock shows, in seconds.
#[expect(clippy::disallowed_methods, reason = "the time is measured")]
fn shown(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
        .as_secs_f64()
}

/// The processor time of all servers so far, in seconds.
fn used_by(servers: &[RedisServer]) -> f64 {
    servers.iter().map(common::used).sum::<Duration>().as_secs_f64()
}
