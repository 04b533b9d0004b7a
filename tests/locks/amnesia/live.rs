//! Clients take one lock in turn over real servers without persistence, which are killed and come
//! back empty, one at a time and at bad moments, and are cut off.

use std::{
    sync::{
        Mutex as StdMutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use quorate::{Error, MutexGuard, Quorate};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::{
    runtime::{self, Runtime},
    time::{sleep, timeout},
};

use quorate_support::{Proxy, RedisServer, eventually};
use quorate_tests::{
    failures::Failures,
    history::{History, overlap},
    resource::Resource,
    scene::{MS, are_empty, connect, knob, proxies, rounds, servers},
};

const VOTERS: usize = 5;
const CLIENTS: u64 = 6;
/// The longest there is: so far apart servers forget.
const LEASE: Duration = Duration::from_secs(1);

/// What the clients share.
#[derive(Debug, Default)]
struct Contest {
    resource: Resource,
    history: History,
    wrong: StdMutex<Vec<String>>,
    over: AtomicBool,
    grants: AtomicU64,
    failures: Failures,
}

/// `QUORATE_TEST_SIZE=100` makes it ten thousand grants, `QUORATE_FAULT_SEED` repeats the choices
/// of a run.
#[test]
fn tokens_grow_and_nobody_holds_with_another_while_servers_restart_empty_in_turn() {
    let seed = knob("QUORATE_FAULT_SEED", rand::random());
    let grants = rounds(10_000);
    println!("QUORATE_FAULT_SEED={seed}, {grants} grants");

    let network = network();
    let mut servers = servers(VOTERS);
    let proxies = network.block_on(proxies(&servers));
    let urls: Vec<String> = proxies.iter().map(Proxy::url).collect();
    let contest = Contest::default();

    let restarts = thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (urls, contest) = (&urls, &contest);
            let chance = StdRng::seed_from_u64(seed.wrapping_add(1 + client));
            scope.spawn(move || compete(urls, contest, chance));
        }
        let chance = StdRng::seed_from_u64(seed);
        let restarts = network.block_on(harm(&mut servers, &proxies, &contest, grants, chance));
        contest.over.store(true, SeqCst);
        restarts
    });

    let Contest { history, wrong, grants, failures, .. } = contest;
    println!("{restarts} restarts, {grants:?} grants, {failures}");
    assert!(restarts > 1, "nothing was forgotten");
    let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(wrong.is_empty(), "seed {seed}: {wrong:?}");
    if let Some((one, other)) = overlap(history.into_spans()) {
        panic!("seed {seed}: two holders at the same moment: {one:?} and {other:?}");
    }
    eventually("no key is left", || are_empty(&servers));
}

/// Where the proxies live.
fn network() -> Runtime {
    let network = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    network.expect("a runtime")
}

/// Until there were so many grants, one server after the other is killed as somebody enters, and
/// comes back empty; connections are cut meanwhile. How often a server was killed.
async fn harm(
    servers: &mut [RedisServer],
    proxies: &[Proxy],
    contest: &Contest,
    grants: u64,
    mut chance: StdRng,
) -> u64 {
    let so_far = || contest.grants.load(SeqCst);
    let mut restarts = 0;
    while so_far() < grants {
        let (seen, server) = (so_far(), chance.random_range(0..VOTERS));
        eventually("somebody enters", || so_far() > seen);
        servers[server].kill();
        sleep(MS(chance.random_range(0..300))).await;
        servers[server].restart();
        restarts += 1;
        let pause = LEASE + MS(chance.random_range(0..500));
        for _ in 0..3 {
            sleep(pause / 3).await;
            let proxy = &proxies[chance.random_range(0..VOTERS)];
            if chance.random() {
                proxy.refuse().await;
                proxy.cut().await;
                sleep(MS(chance.random_range(0..50))).await;
                proxy.accept();
            } else {
                proxy.cut().await;
            }
        }
    }
    restarts
}

/// One client, with a runtime of its own.
fn compete(urls: &[String], contest: &Contest, mut chance: StdRng) {
    let own = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    own.block_on(async {
        let builder = Quorate::builder().voters(urls).lease(LEASE).longest_lease(LEASE);
        let quorum = connect(builder).await;
        while !contest.over.load(SeqCst) {
            contest.failures.note(turn(&quorum, contest, &mut chance).await);
        }
        quorum.close().await;
    });
}

/// Holds the lock once: mostly for a moment, at times for longer than a lease.
async fn turn(quorum: &Quorate, contest: &Contest, chance: &mut StdRng) -> Result<(), Error> {
    let length = match chance.random_range(0..200) {
        0 => LEASE + LEASE / 2,
        1..20 => MS(20),
        _ => MS(0),
    };
    let guard = if chance.random() {
        quorum.fair_mutex("a").lock().await?
    } else {
        // Given up now and then: votes that were asked for are given back.
        let patience = MS(chance.random_range(1..200));
        let Ok(entered) = timeout(patience, quorum.mutex("a").lock()).await else { return Ok(()) };
        entered?
    };
    show(&guard, contest);
    contest.history.trust(&guard, length).await;
    guard.release().await
}

fn show(guard: &MutexGuard, contest: &Contest) {
    contest.grants.fetch_add(1, SeqCst);
    let token = guard.token();
    if let Some(before) = contest.resource.show(token, || guard.is_held()) {
        let wrong = format!("{token} of {} after {before}", guard.hold());
        contest.wrong.lock().unwrap_or_else(PoisonError::into_inner).push(wrong);
    }
}
