//! Each hold's token is higher than those of all holds before it.

use std::time::Duration;

use quorate::{
    Owner, Quorate, Token,
    embedded::{EmbeddedVoter, Fault, Machine},
};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use tokio::time::sleep;

use crate::amnesia::inside::{LEASE, builder, client, client_on, old_voters};
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
};

claims!(everywhere:
    tokens_grow_whoever_holds_the_lock_and_by_whichever_mutex,
    tokens_grow_from_write_to_write_whatever_is_read_in_between,
    whoever_enters_again_keeps_the_token,
);

const HOUR_MICROS: i64 = 3_600_000_000;

/// The ways to take the lock `a`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Mutex,
    Fair,
    Write,
}

impl Way {
    /// Takes it and gives it back.
    pub(crate) async fn token(self, client: &Quorate) -> Token {
        macro_rules! token {
            ($lock:expr) => {{
                let guard = $lock.await.expect("a majority answers");
                let token = guard.token();
                guard.release().await.expect("a majority confirms");
                token
            }};
        }
        match self {
            Self::Mutex => token!(client.mutex("a").lock()),
            Self::Fair => token!(client.fair_mutex("a").lock()),
            Self::Write => token!(client.rw_lock("a").write()),
        }
    }
}

/// A client on a machine whose wall clock is wrong by so many microseconds.
async fn client_at(voters: &[EmbeddedVoter], micros: i64) -> Quorate {
    let machine = Machine::new(format!("{micros} us"));
    machine.jump_wall_clock(micros);
    client_on(&machine, voters).await
}

// Fair or not, it is the same lock.
async fn tokens_grow_whoever_holds_the_lock_and_by_whichever_mutex(on: Fixture) {
    let clients = [on.client().await, on.client().await, on.client().await];
    let mut last = None;
    for round in 0..12 {
        let way = if round % 2 == 0 { Way::Mutex } else { Way::Fair };
        let token = Some(way.token(&clients[round % 3]).await);
        assert!(token > last, "{token:?} after {last:?}");
        last = token;
    }
}

async fn tokens_grow_from_write_to_write_whatever_is_read_in_between(on: Fixture) {
    let clients = [on.client().await, on.client().await];
    let mut last = None;
    for round in 0..8 {
        let client = &clients[round % 2];
        let token = Some(Way::Write.token(client).await);
        assert!(token > last, "{token:?} after {last:?}");
        last = token;
        let reading = client.rw_lock("a").read().await.unwrap();
        reading.release().await.unwrap();
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

/// The token that everybody has after a hold, and the next one that a client an hour behind gets
/// when some voters have forgotten.
async fn is_lower(way: Way, forget: impl FnOnce(&[EmbeddedVoter])) -> bool {
    let voters = old_voters(5);
    let (ahead, behind) =
        (client_at(&voters, HOUR_MICROS).await, client_at(&voters, -HOUR_MICROS).await);
    let token = way.token(&ahead).await;
    sleep(ms(1)).await;
    forget(&voters[..2]);
    way.token(&behind).await <= token
}

// Two of five, on which those that are asked first answer first: a majority that counts has always
// one that knows.
#[tokio::test(start_paused = true)]
async fn what_a_minority_forgot_takes_no_token_back() {
    for way in [Way::Mutex, Way::Fair, Way::Write] {
        let delete = |voters: &[EmbeddedVoter]| {
            for voter in voters {
                let keys = ["quorate:{a}:fence", "quorate:{a}:rw:fence"];
                let deleted = keys.map(|key| voter.command(&["DEL", key]).unwrap());
                assert!(deleted.contains(&quorate::embedded::Reply::Int(1)));
            }
        };
        assert!(!is_lower(way, delete).await, "{way:?}: deleted");
        let restart =
            |voters: &[EmbeddedVoter]| voters.iter().for_each(EmbeddedVoter::restart_empty);
        assert!(!is_lower(way, restart).await, "{way:?}: restarted");
    }
}

// The same, to show that clocks an hour apart are a trouble.
#[tokio::test(start_paused = true)]
async fn what_all_voters_forgot_takes_tokens_back_to_the_wall_clocks() {
    let voters = old_voters(5);
    let (ahead, behind) =
        (client_at(&voters, HOUR_MICROS).await, client_at(&voters, -HOUR_MICROS).await);
    let token = Way::Mutex.token(&ahead).await;
    for voter in &voters {
        voter.command(&["DEL", "quorate:{a}:fence"]).unwrap();
    }
    assert!(Way::Mutex.token(&behind).await < token);
    sleep(ms(1)).await;
    assert!(Way::Mutex.token(&ahead).await > token, "its clock is as far ahead as before");
}

/// Clients an hour apart take a lock in turn, by majorities of chance, while voters forget one
/// after the other. As long as one is in quarantine all others are needed but one.
async fn majorities_of_chance(way: Way, grants: u64, seed: u64) {
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
        let token = Some(way.token(client).await);
        assert!(token > last, "{token:?} after {last:?}: {way:?}, seed {seed}, grant {grant}");
        last = token;
        drop(deaf);
        sleep(Duration::from_micros(chance.random_range(0..2_000))).await;
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_grow_by_majorities_of_chance_over_clients_an_hour_apart_while_voters_forget() {
    let on = Fixture::embedded(1);
    for (seed, way) in [Way::Mutex, Way::Fair, Way::Write].into_iter().enumerate() {
        majorities_of_chance(way, on.rounds(10_000, (300, 0)), seed as u64).await;
    }
}

const DECADE_MICROS: i64 = 10 * 365 * 24 * HOUR_MICROS;

/// What clocks inside the process show when they begin.
const EPOCH: Duration = secs(1_700_000_000);

/// By how much a token is ahead of a clock that is right.
fn ahead(token: Token, watch: Stopwatch) -> Duration {
    Duration::from_micros(u64::from(token)).saturating_sub(EPOCH + watch.time())
}

// A voter takes no floor that is further ahead of its own clock than half of the memory. So when it
// has forgotten the token, the other client's clock has passed that.
#[tokio::test(start_paused = true)]
async fn a_clients_clock_that_was_ahead_by_years_takes_no_token_back() {
    for way in [Way::Mutex, Way::Fair, Way::Write] {
        let (voters, watch) = (old_voters(3), Stopwatch::start());
        let (ada, ben) = (client_at(&voters, DECADE_MICROS).await, client(&voters).await);
        let mut last = way.token(&ada).await;
        assert!(ahead(last, watch) <= Duration::from_mins(5), "{last:?}");
        for forgotten in [false, true, true] {
            if forgotten {
                sleep(Duration::from_mins(10) + ms(1)).await;
                assert!(voters.iter().all(|voter| voter.keys().is_empty()));
            }
            for client in [&ben, &ada] {
                let token = way.token(client).await;
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
    let token = Way::Mutex.token(&ada).await;
    assert_eq!(ahead(token, watch), ms(0));
}

// Somebody wrote the highest number that there is under the fence. Each voter says so once.
#[tokio::test(start_paused = true)]
async fn a_count_of_tokens_that_is_at_its_end_blocks_no_lock_for_long() {
    for way in [Way::Mutex, Way::Fair, Way::Write] {
        let voters = old_voters(3);
        let ours = client(&voters).await;
        for key in ["quorate:{a}:fence", "quorate:{a}:rw:fence"] {
            for voter in &voters {
                voter.command(&["SET", key, "9007199254740991", "PX", "86400000"]).unwrap();
            }
        }
        let token = tokio::time::timeout(secs(1), way.token(&ours)).await.expect("it is given");
        assert!(u64::from(token) < 2_000_000_000_000_000, "{token:?}");
    }
}

// Nothing is left on the voters but the wall clock counts.
#[tokio::test(start_paused = true)]
async fn a_fence_expires_with_its_memory_and_tokens_grow_nevertheless() {
    let usual = Duration::from_mins(10);
    for memory in [usual, secs(60)] {
        let voters = old_voters(3);
        let mut settings = builder(&voters);
        if memory != usual {
            settings = settings.fence_memory(memory);
        }
        let ours = settings.connect().await.unwrap();
        let fences = || voters.iter().map(|voter| voter.keys().len()).sum::<usize>();
        let token = Way::Mutex.token(&ours).await;
        sleep(memory.saturating_sub(secs(1))).await;
        assert_eq!(fences(), 3, "{memory:?}");
        let second = Way::Mutex.token(&ours).await;
        sleep(memory.saturating_sub(secs(1))).await;
        assert_eq!(fences(), 3, "each hold makes it last as long again");
        sleep(secs(2)).await;
        assert_eq!(fences(), 0, "{memory:?}");
        assert!(token < second && second < Way::Mutex.token(&ours).await);
    }
}
