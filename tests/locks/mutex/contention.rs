//! Many at the same moment.

use std::time::Duration;

use futures::future::join_all;
use quorate::MutexGuard;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::{task::JoinSet, time::timeout};

use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
    kind::Client,
};

claims!(everywhere of both:
    of_several_tries_at_the_same_moment_one_wins,
);

// Whoever won keeps the lock until all have their answers, so a second winner would show; and the
// lock is free at the start, so somebody has to win.
async fn one_wins(on: &Fixture, clients: &[Client]) {
    for round in 0..10 {
        let mut tries = JoinSet::new();
        for client in clients {
            tries.spawn(client.mutex("a").try_lock());
        }
        let answers = tries.join_all().await.into_iter();
        let winners: Vec<MutexGuard> = answers.filter_map(Result::unwrap).collect();
        assert_eq!(winners.len(), 1, "in round {round}");
        for winner in winners {
            winner.release().await.unwrap();
        }
        on.until_clean().await;
    }
}

// Of separate clients, and of one.
async fn of_several_tries_at_the_same_moment_one_wins(on: Fixture) {
    let clients = join_all((0..8).map(|_| on.client())).await;
    one_wins(&on, &clients).await;
    one_wins(&on, &vec![clients[0].clone(); 8]).await;
}

/// A way to a voter and back takes between these, and changes all the time.
const ROUND_TRIP: std::ops::RangeInclusive<u64> = 10..=14;

/// How long it takes from the start of sixteen until one has the lock. `waits`: they wait for it.
async fn time_to_a_winner(voters: usize, waits: bool, seed: u64) -> Duration {
    let mut on = Fixture::embedded(voters);
    let mut chance = StdRng::seed_from_u64(seed);
    let mut contenders = JoinSet::new();
    for number in 0..16 {
        let client = on.builder().seed(seed * 100 + number).connect().await.unwrap();
        let mutex = client.mutex("a");
        contenders.spawn(async move {
            if waits { Some(mutex.lock().await.unwrap()) } else { mutex.try_lock().await.unwrap() }
        });
    }
    let watch = Stopwatch::start();
    let winner = loop {
        for voter in 0..voters {
            on.delay(voter, ms(chance.random_range(ROUND_TRIP)));
        }
        if let Ok(ended) = timeout(ms(1), contenders.join_next()).await
            && let Some(won) = ended.expect("one wins").unwrap()
        {
            break won;
        }
        assert!(watch.time() < secs(5), "nobody won with seed {seed}");
    };
    let time = watch.time();
    drop(winner);
    contenders.abort_all();
    time
}

/// Sixteen clients start within one round trip, 100 times, and in the first round the votes split.
/// Of those that try, the hold with the most keeps them and asks the others again half a round trip
/// later: two rounds and a half. Of those that wait all give them back, and the first in the queue
/// is called. Three of the longest round trips bound both.
#[tokio::test(start_paused = true)]
async fn of_sixteen_at_once_somebody_wins_within_two_rounds() {
    for (voters, waits) in [(4, true), (5, true), (4, false), (5, false)] {
        let mut times = Vec::new();
        for seed in 0..100 {
            times.push(time_to_a_winner(voters, waits, seed).await);
        }
        times.sort_unstable();
        let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        let most = ms(3 * ROUND_TRIP.end());
        assert!(p99 <= most, "{voters} voters: median {median:?}, p99 {p99:?}");
    }
}
