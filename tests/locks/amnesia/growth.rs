//! Each hold's token is higher than those of all holds before it.

use quorate_tests::prelude::*;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};

use crate::{
    amnesia::inside::{LEASE, builder, client, client_on, old_voters, old_with_client},
    cancel::kinds::Access,
};

claims!(everywhere:
    tokens_grow_whoever_holds_the_lock,
    whoever_enters_again_keeps_the_token,
);

const HOUR_MICROS: i64 = 3_600_000_000;

/// What has a token.
pub(crate) const EXCLUSIVE: [Access; 4] =
    [Access::Lock, Access::FairLock, Access::Write, Access::Lead];

/// That of a hold, which is given back.
pub(crate) async fn token_of(access: Access, client: &Quorate) -> Token {
    let held = access.have(client, None).await;
    let token = held.token().expect("it is exclusive");
    held.release().await.expect("a majority confirms");
    token
}

/// A client on a machine whose wall clock is wrong by so many microseconds.
async fn client_at(voters: &[EmbeddedVoter], micros: i64) -> Quorate {
    let machine = Machine::new(format!("{micros} us"));
    machine.jump_wall_clock(micros);
    client_on(&machine, voters).await
}

async fn tokens_grow_whoever_holds_the_lock(on: Fixture) {
    let clients = [on.client().await, on.client().await, on.client().await];
    for one_lock in [&[Access::Lock, Access::FairLock][..], &[Access::Write], &[Access::Lead]] {
        let mut last = None;
        for (round, access) in one_lock.iter().cycle().take(8).enumerate() {
            let token = Some(token_of(*access, &clients[round % 3]).await);
            assert!(token > last, "{access:?}: {token:?} after {last:?}");
            last = token;
            // Reads have none.
            drop(Access::Read.have(&clients[0], None).await);
        }
    }
}

async fn whoever_enters_again_keeps_the_token(on: Fixture) {
    let (client, owner) = (on.client().await, Owner::new());
    let mutex = client.mutex("a").owner(&owner);
    let guard = mutex.lock().await.unwrap();
    let token = guard.token();
    let (again, third) = (guard.reenter().await.unwrap(), mutex.lock().await.unwrap());
    assert_eq!((again.token(), third.token()), (token, token));
    for guard in [guard, again] {
        guard.release().await.unwrap();
    }
    assert_eq!(third.token(), token);
    third.release().await.unwrap();
    assert!(mutex.lock().await.unwrap().token() > token, "it is another hold");
}

/// Clients an hour apart take a lock in turn, by majorities of chance, while voters forget one
/// after the other. As long as one is in quarantine all others are needed but one.
async fn majorities_of_chance(way: Access, grants: u64, seed: u64) {
    let mut chance = StdRng::seed_from_u64(seed);
    let voters = old_voters(5);
    let mut clients = Vec::new();
    for micros in [-HOUR_MICROS, 0, HOUR_MICROS] {
        clients.push(client_at(&voters, micros).await);
    }
    let (mut last, mut forgetful) = (None, None);
    for grant in 0..grants {
        // Where it is over before anybody has taken the lock, the clocks alone are left.
        if grant % 10 == 5 {
            forgetful = None;
            sleep(LEASE + secs(1)).await;
        }
        if grant % 10 == 0 {
            let voter = chance.random_range(0..5);
            voters[voter].restart_empty();
            forgetful = Some(voter);
        }
        let mut others: Vec<usize> = (0..5).filter(|voter| Some(*voter) != forgetful).collect();
        others.shuffle(&mut chance);
        others.truncate(chance.random_range(0..others.len() - 2));
        let deaf: Vec<_> =
            others.iter().map(|voter| voters[*voter].fault(Fault::DropRequests)).collect();
        let client = &clients[chance.random_range(0..3)];
        let token = Some(token_of(way, client).await);
        assert!(token > last, "{token:?} after {last:?}: {way:?}, seed {seed}, grant {grant}");
        last = token;
        drop(deaf);
        sleep(Duration::from_micros(chance.random_range(0..2_000))).await;
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_grow_by_majorities_of_chance_over_clients_an_hour_apart_while_voters_forget() {
    let on = Fixture::embedded(1);
    for (seed, way) in EXCLUSIVE.into_iter().enumerate() {
        majorities_of_chance(way, on.rounds(10_000, (300, 0)), seed as u64).await;
    }
}

const DECADE_MICROS: i64 = 10 * 365 * 24 * HOUR_MICROS;

/// What clocks inside the process show when they begin.
const EPOCH: Duration = secs(1_700_000_000);
/// By how much the last number of a block is above the first, which is the clock.
const BLOCK: Duration = Duration::from_micros(63);

/// By how much a token is ahead of a clock that is right.
fn ahead(token: Token, watch: Stopwatch) -> Duration {
    Duration::from_micros(u64::from(token)).saturating_sub(EPOCH + watch.time())
}

// A voter takes no floor that is further ahead of its own clock than half of the memory. So when it
// has forgotten the token, the other client's clock has passed that.
#[tokio::test(start_paused = true)]
async fn a_clients_clock_that_was_ahead_by_years_takes_no_token_back() {
    for way in EXCLUSIVE {
        let (voters, watch) = (old_voters(3), Stopwatch::start());
        let (ada, ben) = (client_at(&voters, DECADE_MICROS).await, client(&voters).await);
        let mut last = token_of(way, &ada).await;
        assert!(ahead(last, watch) <= Duration::from_mins(5), "{last:?}");
        for forgotten in [false, true, true] {
            if forgotten {
                sleep(Duration::from_mins(10) + ms(1)).await;
                assert!(voters.iter().all(|voter| voter.keys().is_empty()));
            }
            for client in [&ben, &ada] {
                let token = token_of(way, client).await;
                assert!(token > last, "{token:?} after {last:?}: {way:?}");
                last = token;
            }
        }
    }
}

// Of its own other locks, too.
#[tokio::test(start_paused = true)]
async fn a_client_whose_clock_has_been_set_right_asks_for_the_right_tokens() {
    let (voters, watch) = (old_voters(3), Stopwatch::start());
    let machine = Machine::new("ada");
    let ada = client_on(&machine, &voters).await;
    machine.jump_wall_clock(DECADE_MICROS);
    ada.mutex("other").lock().await.unwrap().release().await.unwrap();
    machine.jump_wall_clock(-DECADE_MICROS);
    let token = token_of(Access::Lock, &ada).await;
    assert_eq!(ahead(token, watch), BLOCK);
}

// Somebody wrote the highest number that there is under the fence. Each voter says so once.
#[tokio::test(start_paused = true)]
async fn a_count_of_tokens_that_is_at_its_end_blocks_no_lock_for_long() {
    for way in EXCLUSIVE {
        let (voters, ours) = old_with_client(3).await;
        for key in ["quorate:{a}:fence", "quorate:{a}:rw:fence", "quorate:{a}:election:fence"] {
            for voter in &voters {
                voter.command(&["SET", key, "9007199254740991", "PX", "86400000"]).unwrap();
            }
        }
        let token = tokio::time::timeout(secs(1), token_of(way, &ours)).await.expect("it is given");
        assert!(u64::from(token) < 2_000_000_000_000_000, "{token:?}");
    }
}

// Nothing is left on the voters but the wall clock counts.
#[tokio::test(start_paused = true)]
async fn a_fence_expires_with_its_memory_and_tokens_grow_nevertheless() {
    let memory = secs(60);
    let voters = old_voters(3);
    let ours = builder(&voters).fence_memory(memory).connect().await.unwrap();
    let fences = || voters.iter().map(|voter| voter.keys().len()).sum::<usize>();
    let mut last = token_of(Access::Lock, &ours).await;
    sleep(memory.saturating_sub(secs(1))).await;
    assert_eq!(fences(), 3);
    for left in [3, 0] {
        let token = token_of(Access::Lock, &ours).await;
        assert!(token > last, "{token} after {last}");
        last = token;
        // Each hold makes it last as long again.
        sleep(if left == 0 { memory + secs(1) } else { memory.saturating_sub(secs(1)) }).await;
        assert_eq!(fences(), left);
    }
    assert!(token_of(Access::Lock, &ours).await > last);
}
