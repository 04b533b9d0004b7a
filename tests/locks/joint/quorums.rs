//! A client of two sets needs a majority of each.

use quorate::{
    LockKind, Quorate, Side,
    embedded::{EmbeddedVoter, Fault, Machine},
};
use quorate_tests::{
    fixture::{Stopwatch, ms, secs},
    inside::fault_client,
};
use tokio::time::sleep;

use super::{Changed, builder, changes};
use crate::cancel::kinds::{
    Access::{BothPermits, FairLock, Lead, Lock, Permit, Read, Write},
    Ask,
};

/// Whether two clients exclude each other from every kind of lock, whichever comes first.
async fn exclude_each_other(one: &Quorate, other: &Quorate) {
    for (first, second) in [(one, other), (other, one)] {
        for (had, wanted) in [
            (Lock, Lock),
            (Lock, FairLock),
            (FairLock, FairLock),
            (Write, Write),
            (Write, Read),
            (Read, Write),
            (Permit, BothPermits),
            (Lead, Lead),
        ] {
            let held = had.have(first, None).await;
            let tried = wanted.ask(second, Ask::Try, None).await.unwrap();
            assert!(tried.is_none(), "{had:?}, {wanted:?}");
            held.release().await.unwrap();
        }
        let read = Read.have(first, None).await;
        Read.ask(second, Ask::Try, None)
            .await
            .unwrap()
            .expect("both read")
            .release()
            .await
            .unwrap();
        read.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_of_both_sets_excludes_clients_of_either() {
    for changed in changes() {
        let both = changed.with_both().await;
        exclude_each_other(&both, &changed.with_old().await).await;
        exclude_each_other(&both, &changed.with_both().await).await;
        exclude_each_other(&both, &changed.with_new().await).await;
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_woken_across_the_sets_and_tokens_grow() {
    for changed in changes() {
        let clients = [changed.with_old().await, changed.with_both().await];
        hand_over(&clients).await;
        let clients = [changed.with_both().await, changed.with_new().await];
        hand_over(&clients).await;
    }
}

// The leader of both sets resigns while it does not reach the new voters, which go on naming it. A
// candidate that has the old voters alone leads at once.
#[tokio::test(start_paused = true)]
async fn of_two_that_a_set_names_each_the_one_that_has_resigned_is_not_the_leader() {
    let changed = Changed::of(3, 0, 3);
    let machine = Machine::new("ada");
    let ada = changed.both_sets().machine(&machine).connect().await.unwrap();
    let (ben, observer) = (changed.with_old().await, changed.with_both().await);
    let leadership = ada.election("e").campaign("ada").await.unwrap();
    sleep(secs(1)).await;
    fault_client(changed.new_ones(), "ada", Fault::DropRequests);
    assert!(leadership.resign().await.unwrap_err().is_unconfirmed());
    let leads = ben.election("e").campaign("ben").await.unwrap();
    // It has told its token.
    sleep(ms(100)).await;
    let watch = Stopwatch::start();
    for _ in 0..20 {
        let led_by = observer.election("e").leader().await.unwrap().expect("somebody leads");
        assert_eq!((led_by.text(), led_by.token()), (Some("ben"), leads.token()));
        assert!(watch.time() < secs(5), "the vote of the one that resigned stands");
        sleep(ms(100)).await;
    }
    // Where the old voters do not answer it cannot be known.
    changed.old_ones().iter().for_each(EmbeddedVoter::stop);
    assert!(observer.election("e").leader().await.unwrap_err().is_no_quorum());
}

/// The lock goes from the one to the other and back, soon after each release.
async fn hand_over([one, other]: &[Quorate; 2]) {
    let mut token = None;
    for (from, to) in [(one, other), (other, one), (one, other)] {
        let held = from.mutex("m").lock().await.unwrap();
        assert!(Some(held.token()) > token, "{:?} after {token:?}", held.token());
        token = Some(held.token());
        let waiter = tokio::spawn(to.mutex("m").lock());
        sleep(secs(1)).await;
        let released = Stopwatch::start();
        held.release().await.unwrap();
        let next = waiter.await.unwrap().unwrap();
        let took = released.time();
        assert!(took < ms(100), "{took:?}");
        assert!(Some(next.token()) > token, "{:?} after {token:?}", next.token());
        token = Some(next.token());
        next.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_majority_of_either_set_there_is_no_lock_and_the_error_says_which_set_lacks_what()
{
    let changed = Changed::of(3, 0, 3);
    let client = changed.both_sets().quorum_timeout(ms(100)).connect().await.unwrap();
    changed.all[3].kill();
    changed.all[4].kill();
    let error = client.mutex("m").lock().await.unwrap_err();
    assert!(error.is_no_quorum());
    let told = error.to_string();
    assert!(told.starts_with("no quorum of 2 of 3 new and 2 of 3 old for lock `m`"), "{told}");
    assert!(told.contains(", 1 of the old voters gave a usable answer ("), "{told}");
    assert!(told.contains("embedded-4 (old): unreachable: killed"), "{told}");
    let sides = error.voters().iter().map(|report| report.side);
    let (new, old) = (Some(Side::New), Some(Side::Old));
    assert_eq!(sides.collect::<Vec<_>>(), [new, new, new, old, old, old]);
    let status = client.status().await;
    assert!(!status.has_quorum());
    let sets: Vec<_> = status.sets().map(|set| set.to_string()).collect();
    assert_eq!(
        sets,
        ["3 of 3 new votes count, 2 are needed", "1 of 3 old votes count, 2 are needed"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_voter_in_both_sets_is_asked_once() {
    let changed = Changed::of(2, 3, 0);
    let client = changed.with_both().await;
    let runs =
        |script: &str| changed.all.iter().map(|voter| voter.runs(script)).collect::<Vec<_>>();
    let guard = client.mutex("m").lock().await.unwrap();
    assert_eq!(guard.votes(), 5);
    guard.release().await.unwrap();
    sleep(secs(1)).await;
    assert_eq!((runs("mutex/acquire"), runs("mutex/release")), (vec![1; 5], vec![1; 5]));
}

#[tokio::test(start_paused = true)]
async fn inspection_and_force_see_the_holds_of_clients_of_one_set() {
    let changed = Changed::of(3, 0, 3);
    let (old, both) = (changed.with_old().await, changed.with_both().await);
    let held = old.mutex("m").lock().await.unwrap();
    let seen = both.mutex("m").inspect().await.unwrap();
    assert_eq!(seen.holder().map(|holder| &holder.hold), Some(held.hold()));
    assert!(!seen.is_free);
    assert_eq!(seen.token, Some(held.token()));
    assert!(both.admin().end(LockKind::Mutex, "m", held.hold()).await.unwrap() >= 3);
    sleep(secs(4)).await;
    assert!(!held.is_held(), "it was ended by force");
    let held = both.mutex("m").lock().await.unwrap();
    let seen = both.mutex("m").inspect().await.unwrap();
    assert_eq!(seen.holder().map(|holder| &holder.hold), Some(held.hold()));
    held.release().await.unwrap();
    assert!(both.mutex("m").inspect().await.unwrap().is_free);
}

/// Two names of one server in two sets would be two voters, of which one has no vote.
#[tokio::test(start_paused = true)]
async fn the_same_voter_is_in_both_sets_however_often_it_is_named() {
    let voter = EmbeddedVoter::new("only");
    let one = std::slice::from_ref(&voter);
    let client = builder().embedded(one).replacing(one).connect().await.unwrap();
    let status = client.status().await;
    let sides: Vec<_> = status.voters.iter().map(|voter| voter.side).collect();
    assert_eq!(sides, [Some(Side::Both)]);
    assert_eq!(status.needed(), 1);
    client.mutex("m").lock().await.unwrap().release().await.unwrap();
    let nobody = builder().embedded(one).replacing(quorate::VoterSet::new()).connect().await;
    assert_eq!(nobody.unwrap_err().to_string(), "there are no voters to replace");
}
