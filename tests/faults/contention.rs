//! Clients contend for one lock while voters are killed, stopped and cut off; a checker reads who
//! trusted to hold it.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    thread,
    time::Duration,
};

use quorate::{Error, Mutex, MutexGuard, Quorate};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use tokio::{
    runtime,
    time::{sleep, timeout},
};

use crate::{
    history::{History, overlap},
    scene::{MS, are_empty, connect, knob, now, proxies, servers_with, since},
    support::{Proxy, RedisServer, eventually},
};

const CLIENTS: u64 = 8;
const VOTERS: usize = 5;
/// Of five: a majority is always left.
const TROUBLED: usize = 2;
const LEASE: Duration = Duration::from_secs(1);

/// What the clients share.
#[derive(Debug, Default)]
struct Contest {
    history: History,
    over: AtomicBool,
    grants: AtomicU64,
    losses: AtomicU64,
    silences: AtomicU64,
}

/// `QUORATE_FAULT_SECONDS` makes it longer, `QUORATE_FAULT_SEED` repeats the choices of a run.
///
/// Killed servers keep their data, as their clients were promised. Without it a voter would forget
/// whom it gave its vote to.
#[test]
fn nobody_ever_trusts_a_lock_that_another_one_trusts() {
    let seed = knob("QUORATE_FAULT_SEED", rand::random());
    let length = Duration::from_secs(knob("QUORATE_FAULT_SECONDS", 10));
    println!("QUORATE_FAULT_SEED={seed} QUORATE_FAULT_SECONDS={}", length.as_secs());

    let servers = servers_with(VOTERS, &["--appendonly", "yes", "--appendfsync", "always"]);
    let network = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let network = network.expect("a runtime");
    let proxies = network.block_on(proxies(&servers));
    let mut voters: Vec<_> =
        servers.into_iter().zip(proxies).map(|(server, proxy)| Node { server, proxy }).collect();
    let urls: Vec<String> = voters.iter().map(|voter| voter.proxy.url()).collect();
    let contest = Contest::default();

    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (urls, contest) = (&urls, &contest);
            let chance = StdRng::seed_from_u64(seed.wrapping_add(1 + client));
            scope.spawn(move || compete(urls, contest, chance));
        }
        let chance = StdRng::seed_from_u64(seed);
        network.block_on(harm(&mut voters, length, chance));
        contest.over.store(true, SeqCst);
    });

    let Contest { history, grants, losses, silences, .. } = contest;
    let spans = history.into_spans();
    println!("{grants:?} grants, {losses:?} lost, {silences:?} without a quorum for long");
    assert!(spans.len() as u64 > length.as_secs(), "only {} holds", spans.len());
    if let Some((one, other)) = overlap(spans) {
        panic!("two holders at the same moment: {one:?} and {other:?}");
    }
    eventually("no key is left", || are_empty(voters.iter().map(|voter| &voter.server)));
}

/// One client, with a runtime of its own.
fn compete(urls: &[String], contest: &Contest, mut chance: StdRng) {
    let own = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    own.block_on(async {
        let quorum = connect(Quorate::builder().voters(urls).lease(LEASE)).await;
        while !contest.over.load(SeqCst) {
            match turn(&quorum.mutex("a"), contest, &mut chance).await {
                Ok(()) => {}
                Err(error) if error.is_lost() => drop(contest.losses.fetch_add(1, SeqCst)),
                Err(error) if error.is_no_quorum() => drop(contest.silences.fetch_add(1, SeqCst)),
                // The lease, or what goes on in the background, ends it.
                Err(error) if error.is_unconfirmed() => {}
                Err(error) => panic!("{error}"),
            }
        }
        quorum.close().await;
    });
}

/// Holds the lock once, in one of the ways in which users do.
async fn turn(mutex: &Mutex, contest: &Contest, chance: &mut StdRng) -> Result<(), Error> {
    let short = MS(chance.random_range(0..8));
    match chance.random_range(0..16) {
        0 => {
            // Renewed a few times.
            let guard = entered(mutex.lock().await?, contest);
            contest.history.trust(&guard, MS(chance.random_range(300..1500))).await;
            guard.release().await
        }
        1 => {
            // Kept beyond its end.
            let guard = entered(mutex.clone().lease_fixed(LEASE / 2).lock().await?, contest);
            contest.history.trust(&guard, 2 * LEASE).await;
            drop(guard.release().await.expect_err("it was lost"));
            Ok(())
        }
        2..5 => {
            let guard = entered(mutex.lock().await?, contest);
            contest.history.trust(&guard, short).await;
            drop(guard);
            Ok(())
        }
        5 | 6 => {
            let guard = entered(mutex.lock().await?, contest);
            let again = guard.reenter().await?;
            contest.history.trust(&guard, short).await;
            guard.release().await?;
            contest.history.trust(&again, short).await;
            again.release().await
        }
        7..10 => {
            // Given up, unless it is very quick.
            let Ok(locked) = timeout(4 * short, mutex.lock()).await else { return Ok(()) };
            contest.history.trust(&entered(locked?, contest), short).await;
            Ok(())
        }
        _ => {
            let guard = entered(mutex.lock().await?, contest);
            contest.history.trust(&guard, short).await;
            guard.release().await
        }
    }
}

fn entered(guard: MutexGuard, contest: &Contest) -> MutexGuard {
    contest.grants.fetch_add(1, SeqCst);
    guard
}

/// A server and the way to it.
struct Node {
    server: RedisServer,
    proxy: Proxy,
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    Kill,
    Stop,
    Cut,
    Refuse,
    BlackHole,
    HoldReplies,
    Delay,
}

impl Harm {
    const ALL: [Self; 7] = [
        Self::Kill,
        Self::Stop,
        Self::Cut,
        Self::Refuse,
        Self::BlackHole,
        Self::HoldReplies,
        Self::Delay,
    ];
}

impl Node {
    async fn suffer(&mut self, harm: Harm) {
        match harm {
            Harm::Kill => self.server.kill(),
            Harm::Stop => self.server.stop(),
            Harm::Cut => self.proxy.cut().await,
            Harm::Refuse => {
                self.proxy.refuse().await;
                self.proxy.cut().await;
            }
            Harm::BlackHole => self.proxy.black_hole(),
            Harm::HoldReplies => self.proxy.hold_replies(),
            Harm::Delay => self.proxy.delay(MS(40), MS(40)),
        }
    }

    fn recover(&mut self, harm: Harm) {
        match harm {
            Harm::Kill => self.server.restart(),
            Harm::Stop => self.server.resume(),
            Harm::Cut => {}
            Harm::Refuse => self.proxy.accept(),
            Harm::BlackHole | Harm::HoldReplies | Harm::Delay => self.proxy.pass(),
        }
    }
}

/// Never more than a minority at a time, and each whole again before the next.
async fn harm(voters: &mut [Node], length: Duration, mut chance: StdRng) {
    let started = now();
    while since(started) < length {
        let mut places: Vec<usize> = (0..VOTERS).collect();
        places.shuffle(&mut chance);
        places.truncate(chance.random_range(1..=TROUBLED));
        let harms: Vec<_> = places
            .into_iter()
            .map(|place| (place, Harm::ALL[chance.random_range(0..Harm::ALL.len())]))
            .collect();
        for &(place, harm) in &harms {
            voters[place].suffer(harm).await;
        }
        sleep(MS(chance.random_range(20..700))).await;
        for (place, harm) in harms {
            voters[place].recover(harm);
        }
        sleep(MS(chance.random_range(0..300))).await;
    }
}
