//! Every kind of lock on voters that forget: whoever holds it holds it alone.

use quorate_tests::prelude::*;

use crate::{
    amnesia::inside::{LEASE, TRUSTED, client, client_on, cut_off, old_voters},
    cancel::kinds::Access::{
        self, BothPermits, FairLock, Lead, Lock, Permit, Read, Several, Write,
    },
};

/// Ada holds by the first two of three voters, and the second comes back empty. She does not tell
/// it again. Ben has seen the restart, and Cleo comes then; they want what she has, or what it
/// excludes.
async fn is_held_by_one(taken: Access, wanted: Access) {
    let voters = old_voters(3);
    let machine = Machine::new("ada");
    let (ada, ben) = (client_on(&machine, &voters).await, client(&voters).await);
    cut_off(&voters[2], &machine);
    let watch = Stopwatch::start();
    let held = taken.have(&ada, None).await;
    sleep(secs(1)).await;
    voters[1].restart_empty();
    for voter in &voters {
        cut_off(voter, &machine);
    }
    let cleo = client(&voters).await;
    while watch.time() + secs(1) < TRUSTED {
        assert!(held.is_held(), "{taken:?}: after {:?}", watch.time());
        for other in [&ben, &cleo] {
            let tried = wanted.ask(other, How::Try, None).await;
            assert!(!matches!(tried, Ok(Some(_))), "{taken:?}, {wanted:?}: two have it");
        }
        sleep(secs(1)).await;
    }
    sleep(secs(3)).await;
    assert!(!held.is_held(), "{taken:?}");
    heal(&voters);
    let mut entered = None;
    while entered.is_none() {
        assert!(watch.time() < 2 * LEASE + secs(5), "{taken:?}: nobody gets it any more");
        entered = wanted.ask(&ben, How::Try, None).await.ok().flatten();
        sleep(ms(200)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_voter_that_comes_back_empty_gives_no_kind_of_lock_to_a_second() {
    for taken in [Lock, FairLock, Write, Lead, Several] {
        is_held_by_one(taken, taken).await;
    }
    for (taken, wanted) in [(Read, Write), (Permit, BothPermits), (BothPermits, Permit)] {
        is_held_by_one(taken, wanted).await;
    }
}
