//! Many at the same moment.

use quorate::Mutex;
use quorate_tests::prelude::*;
use rand::{RngExt, SeedableRng, rngs::StdRng};

claims!(everywhere of both: of_several_tries_at_the_same_moment_one_wins);

// Whoever won keeps the lock until all have their answers, so a second winner would show; and the
// lock is free at the start, so somebody has to win.
async fn one_wins(on: &Fixture, clients: &[Client]) {
    for round in 0..10 {
        let tries: JoinSet<_> = clients.iter().map(|client| client.mutex("a").try_lock()).collect();
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

/// A way to a voter takes between these, and so does the way back: each request another time.
const WAY: std::ops::RangeInclusive<u64> = 5..=7;

/// How long it takes from the start of sixteen until one has the lock. `waits`: they wait for it.
async fn time_to_a_winner(voters: usize, waits: bool, seed: u64) -> Duration {
    let voters = embedded::voters(voters);
    let mut mutexes = Vec::new();
    for number in 0..16 {
        let builder = Quorate::builder().embedded(&voters).seed(seed * 100 + number);
        mutexes.push(builder.connect().await.unwrap().mutex("a"));
    }
    for (number, voter) in (0..).zip(&voters) {
        let mut chance = StdRng::seed_from_u64(seed * 10 + number);
        voter.fault_each(move |_| {
            let [there, back] = [(); 2].map(|()| ms(chance.random_range(WAY)));
            vec![Fault::Delay { there, back }]
        });
    }
    let watch = Stopwatch::start();
    let contend = |mutex: Mutex| async move {
        if waits { Some(mutex.lock().await.unwrap()) } else { mutex.try_lock().await.unwrap() }
    };
    let mut contenders: JoinSet<_> = mutexes.into_iter().map(contend).collect();
    loop {
        let ended = contenders.join_next().await;
        if ended.unwrap_or_else(|| panic!("nobody won with seed {seed}")).unwrap().is_some() {
            break watch.time();
        }
    }
}

/// Sixteen clients start at once, 100 times, and mostly the votes split. Of those that try, the hold
/// with the most keeps them and asks the others again half a round trip later; where voters gave
/// different tokens, storing one takes another: three and a half of the longest round trips. Of
/// those that wait all give their votes back and ask from their places, whose tickets may differ.
#[tokio::test(start_paused = true)]
async fn of_sixteen_at_once_somebody_wins_within_a_few_round_trips() {
    let longest = ms(2 * WAY.end());
    for (waits, most) in [(false, longest * 7 / 2), (true, longest * 6)] {
        for voters in [4, 5] {
            for seed in 0..100 {
                let time = time_to_a_winner(voters, waits, seed).await;
                assert!(time <= most, "{voters} voters, {waits}, seed {seed}: {time:?}");
            }
        }
    }
}
