//! Votes that are split between clients. Who gives votes back calls all who listen there.

use std::sync::Mutex;

use quorate_tests::prelude::*;
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// Since when the lock is free, and the longest time until somebody had it.
struct Gaps {
    free: Stopwatch,
    longest: Duration,
}

/// Takes the lock again and again.
async fn contend(client: Quorate, gaps: Arc<Mutex<Gaps>>, mut chance: StdRng) {
    loop {
        sleep(ms(chance.random_range(0..60))).await;
        let guard = client.redisson().mutex("a").lock().await.expect("all voters answer");
        {
            let mut gaps = gaps.lock().unwrap();
            gaps.longest = gaps.longest.max(gaps.free.time());
        }
        sleep(ms(chance.random_range(0..30))).await;
        gaps.lock().unwrap().free = Stopwatch::start();
        if chance.random_ratio(1, 3) {
            drop(guard);
        } else {
            guard.release().await.expect("all voters answer");
        }
    }
}

// Whoever gives its votes back calls all who listen. Those would ask again at once, all together,
// and split the votes as before, for as long as nothing changes.
#[tokio::test(start_paused = true)]
async fn a_split_ends_although_those_who_give_back_call_each_other() {
    for seed in 0..4 {
        let voters = embedded::voters(5);
        let delays = [(0, 1), (0, 0), (7, 7), (2, 2), (4, 0)];
        let far = voters.iter().zip(delays).map(|(voter, (there, back))| {
            voter.fault(Fault::Delay { there: ms(there), back: ms(back) })
        });
        let _far: Vec<_> = far.collect();
        let builder = Quorate::builder().embedded(&voters).seed(seed);
        let gaps = Gaps { free: Stopwatch::start(), longest: Duration::ZERO };
        let gaps = Arc::new(Mutex::new(gaps));
        let mut tasks = tokio::task::JoinSet::new();
        for client in 0..3 {
            let quorum = builder.clone().seed(seed + client).connect().await.expect("they answer");
            for task in 0..6 {
                let chance = StdRng::seed_from_u64(100 * seed + 10 * client + task);
                tasks.spawn(contend(quorum.clone(), Arc::clone(&gaps), chance));
            }
        }
        sleep(secs(10)).await;
        let gaps = gaps.lock().unwrap();
        let longest = gaps.longest.max(gaps.free.time());
        println!("seed {seed}: {longest:?} at most until somebody has the lock");
        assert!(longest < ms(200), "seed {seed}: nobody has the lock for {longest:?}");
    }
}
