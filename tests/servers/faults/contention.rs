//! Clients contend for one lock while voters are killed, stopped and cut off, by a mutex or by a
//! fair one as it comes; a checker reads who trusted to hold it.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    thread,
    time::Duration,
};

use quorate::{Error, MutexGuard, Quorate};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::{runtime, time::timeout};

use crate::faults::harm::{harm, network, nodes};
use quorate_support::eventually;
use quorate_tests::{
    failures::Failures,
    history::{History, overlap},
    kind::{Client, Kind, Lock},
    scene::{Ending, MS, are_empty, connect, knob},
};

const CLIENTS: u64 = 8;
const LEASE: Duration = Duration::from_secs(4);
/// Of a hold that is not renewed.
const FIXED: Duration = Duration::from_secs(1);

/// What the clients share.
#[derive(Debug, Default)]
struct Contest {
    history: History,
    over: AtomicBool,
    grants: AtomicU64,
    failures: Failures,
}

/// `QUORATE_FAULT_SECONDS` makes it longer, `QUORATE_FAULT_SEED` repeats the choices of a run.
#[test]
fn nobody_ever_trusts_a_lock_that_another_one_trusts() {
    let seed = knob("QUORATE_FAULT_SEED", rand::random());
    let length = Duration::from_secs(knob("QUORATE_FAULT_SECONDS", 10));
    println!("QUORATE_FAULT_SEED={seed} QUORATE_FAULT_SECONDS={}", length.as_secs());

    let network = network();
    let mut voters = network.block_on(nodes());
    let urls: Vec<String> = voters.iter().map(|voter| voter.proxy.url()).collect();
    let contest = Contest::default();

    thread::scope(|scope| {
        let _ending = Ending(&contest.over);
        for client in 0..CLIENTS {
            let (urls, contest) = (&urls, &contest);
            let chance = StdRng::seed_from_u64(seed.wrapping_add(1 + client));
            scope.spawn(move || compete(urls, contest, chance));
        }
        let chance = StdRng::seed_from_u64(seed);
        network.block_on(harm(&mut voters, length, chance));
        // A busy machine may have let too few through to judge by.
        eventually("there are enough holds to judge by", || {
            contest.history.len() as u64 > length.as_secs()
        });
    });

    let Contest { history, grants, failures, .. } = contest;
    let spans = history.into_spans();
    println!("{grants:?} grants, {failures}");
    if let Some((one, other)) = overlap(spans) {
        panic!("two holders at the same moment: {one:?} and {other:?}");
    }
    eventually("no key is left", || are_empty(voters.iter().map(|voter| &voter.server)));
}

/// One client, with a runtime of its own.
fn compete(urls: &[String], contest: &Contest, mut chance: StdRng) {
    let own = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    own.block_on(async {
        let builder = Quorate::builder().voters(urls).lease(LEASE);
        let quorum = connect(builder.voter_deadline(LEASE / 10)).await;
        while !contest.over.load(SeqCst) {
            let kind = if chance.random() { Kind::FairMutex } else { Kind::Mutex };
            let lock = Client::new(quorum.clone(), kind).mutex("a");
            contest.failures.note(turn(lock, contest, &mut chance).await);
        }
        quorum.close().await;
    });
}

/// Holds the lock once, in one of the ways in which users do.
async fn turn(mutex: Lock, contest: &Contest, chance: &mut StdRng) -> Result<(), Error> {
    let short = MS(chance.random_range(0..8));
    match chance.random_range(0..16) {
        0 => {
            // Renewed a few times.
            let guard = entered(mutex.lock().await?, contest);
            contest.history.trust(&guard, MS(chance.random_range(300..3000))).await;
            guard.release().await
        }
        1 => {
            // Kept beyond its end.
            let guard = entered(mutex.lease_fixed(FIXED).lock().await?, contest);
            contest.history.trust(&guard, 3 * FIXED).await;
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
