//! Whoever holds a lock is told where another may have had it meanwhile, and not where only one
//! voter after the other was without its vote.

use quorate_tests::{inside, prelude::*};

use crate::amnesia::inside::{LEASE, client, client_on, cut_off, old_voters, old_with_client};

claims!(three: whoever_holds_by_a_bare_majority_is_told_that_another_had_the_lock_beside_it);

const RECORD: &str = "quorate:{a}";
/// The other client must have the lock before the first renewal, which comes after a third of it and
/// gives the holder the lost vote again.
const SHORT: Duration = secs(12);

/// A server of a busy machine that answers late would be connected to anew, and a voter that comes
/// back has all holds renewed at once.
fn patient(builder: Builder) -> Builder {
    builder.lease(SHORT).voter_deadline(SHORT / 10)
}

async fn is_told(held: &MutexGuard, within: Duration) {
    let told = timeout(within, held.lost()).await.expect("at the next renewal");
    let why = "a majority of voters no longer had its vote";
    assert!(told.is_lost() && told.to_string().contains(why), "{told}");
    assert!(!held.is_held());
}

/// Another client has the lock and gives it back.
async fn passes(ben: &Quorate, held: &MutexGuard) {
    let other = ben.mutex("a").lock_within(secs(2)).await.expect("all answer").expect("it is free");
    assert!(other.token() > held.token());
    other.release().await.expect("all confirm");
}

fn forget(voter: &EmbeddedVoter) {
    voter.command(&["DEL", RECORD]).expect("it runs");
}

// Ada has the votes of the first two. The second loses its record, and Ben gets the lock by the
// last two.
async fn whoever_holds_by_a_bare_majority_is_told_that_another_had_the_lock_beside_it(on: Fixture) {
    let (ada, _apart) = on.client_apart_from(2, patient).await;
    let ben = on.connect(patient(on.builder())).await;
    let held = ada.mutex("a").lock().await.expect("two are up");
    until!("both vote", held.votes() == 2);
    on.command(1, &["DEL", RECORD]);
    passes(&ben, &held).await;
    is_told(&held, on.at_most(SHORT / 2)).await;
    assert!(held.release().await.unwrap_err().is_lost());
    on.until_clean().await;
}

// Ben has it by the first two, which lost their records. Ada hears of the first in one renewal, and
// of the second in the next one.
#[tokio::test(start_paused = true)]
async fn what_a_renewal_found_counts_together_with_what_the_next_one_finds() {
    let voters = old_voters(3);
    let machine = Machine::new("ada");
    let (ada, ben) = (client_on(&machine, &voters).await, client(&voters).await);
    let held = ada.mutex("a").lock().await.expect("it is free");
    sleep(secs(1)).await;
    cut_off(&voters[1], &machine);
    voters[..2].iter().for_each(forget);
    passes(&ben, &held).await;
    sleep(LEASE / 3).await;
    assert!(held.is_held(), "it may have lost the first alone");
    inside::heal(&voters);
    is_told(&held, LEASE / 3).await;
}

fn distances(voters: &[EmbeddedVoter]) -> Vec<FaultGuard> {
    let delays = [1, 9, 30].map(|way_ms| Fault::Delay { there: ms(way_ms), back: ms(way_ms) });
    voters.iter().zip(delays).map(|(voter, delay)| voter.fault(delay)).collect()
}

// Each time a majority still has the vote. The first loses it before the first renewal.
#[tokio::test(start_paused = true)]
async fn losses_at_one_voter_after_the_other_lose_no_hold() {
    let (voters, ada) = old_with_client(3).await;
    let _ways = distances(&voters);
    for first in 0..3 {
        let held = ada.mutex("a").lock().await.expect("it is free");
        until!("all vote", held.votes() == 3);
        for voter in (0..9).map(|number| (first + number) % 3) {
            forget(&voters[voter]);
            sleep(LEASE / 3).await;
            until!("it has it again", voters[voter].keys().contains(&RECORD.to_owned()));
            // It is renewed once more.
            sleep(ms(200)).await;
            assert!(held.is_held() && held.votes() == 3);
        }
        held.release().await.expect("all confirm");
        sleep(ms(200)).await;
    }
}

// Each is away for longer than its vote lasts, and the next one goes when it is back.
#[tokio::test(start_paused = true)]
async fn voters_that_are_away_one_after_the_other_lose_no_hold() {
    let (voters, ada) = old_with_client(3).await;
    let _ways = distances(&voters);
    let held = ada.mutex("a").lock().await.expect("it is free");
    for voter in (0..9).map(|number| number % 3) {
        let away = voters[voter].fault(Fault::DropRequests);
        sleep(LEASE + LEASE / 2).await;
        drop(away);
        until!("all vote", held.votes() == 3);
        assert!(held.is_held());
    }
}

// The first comes back empty, and shows another hold. For a moment that may be a bid; the second is
// all that is left of the majority, and the third is away.
#[tokio::test(start_paused = true)]
async fn a_hold_is_lost_at_once_where_another_stays_on_its_majority_and_not_where_one_asks() {
    for (stays, is_told) in [(ms(100), false), (LEASE, true)] {
        let voters = old_voters(3);
        let machine = Machine::new("ada");
        let ada = client_on(&machine, &voters).await;
        cut_off(&voters[2], &machine);
        let held = ada.mutex("a").lock().await.expect("two are up");
        sleep(secs(1)).await;
        voters[0].restart_empty();
        voters[0].command(&["HSET", RECORD, "z:1", "1"]).expect("it is free");
        let stays_ms = stays.as_millis().to_string();
        voters[0].command(&["PEXPIRE", RECORD, &stays_ms]).expect("it is there");
        let told = timeout(secs(2), held.lost()).await;
        assert_eq!(told.is_ok(), is_told, "{stays:?}");
        assert_eq!(held.is_held(), !is_told);
    }
}

/// Two tasks of a client want the lock: the second has it from the first, which may have it for a
/// moment.
async fn handed_on(ada: &Quorate, first_has_it: Duration) -> MutexGuard {
    let mutex = ada.mutex("a");
    let first = async {
        let guard = mutex.lock().await.expect("two answer");
        sleep(first_has_it).await;
        guard
    };
    let second = mutex.lock();
    tokio::pin!(second);
    let first = tokio::select! {
        biased;
        first = first => first,
        _ = &mut second => unreachable!("it stands behind"),
    };
    let hold = first.hold().clone();
    drop(first);
    let second = second.await.expect("it is handed on");
    assert_eq!(*second.hold(), hold);
    second
}

#[tokio::test(start_paused = true)]
async fn whoever_has_a_hold_from_another_task_is_told_as_well() {
    let voters = old_voters(3);
    let machine = Machine::new("ada");
    let (ada, ben) = (client_on(&machine, &voters).await, client(&voters).await);
    cut_off(&voters[2], &machine);
    let held = handed_on(&ada, ms(0)).await;
    forget(&voters[1]);
    passes(&ben, &held).await;
    is_told(&held, LEASE / 2).await;
}

// The third voter grants when the first task has the lock, or when the second has it.
#[tokio::test(start_paused = true)]
async fn whoever_has_a_hold_from_another_task_knows_of_each_vote_for_it() {
    for first_has_it in [ms(0), ms(40)] {
        let (voters, ada) = old_with_client(3).await;
        let _slow = voters[2].fault(Fault::Delay { there: ms(10), back: ms(10) });
        let held = handed_on(&ada, first_has_it).await;
        sleep(ms(100)).await;
        assert_eq!(held.votes(), 3);
        forget(&voters[0]);
        sleep(LEASE / 2).await;
        assert!(held.is_held() && held.votes() == 3, "{first_has_it:?}");
    }
}
