//! Machines that their hypervisors pause: no clock of theirs sees it.

use quorate_tests::prelude::*;

use crate::amnesia::inside::{LEASE, TRUSTED, client, client_on, old_voters};

/// Nothing runs on the machine for so long, and its clocks stand still.
async fn pause(machine: &Machine, time: Duration) {
    machine.stall();
    machine.set_clock_rate(-1_000_000);
    sleep(time).await;
    machine.set_clock_rate(0);
    machine.resume();
}

/// The client counts every voter.
async fn counts_all(client: &Quorate) -> bool {
    let seen = client.mutex("none").inspect().await.expect("a majority answers");
    seen.voters.iter().all(|view| view.quarantine.is_none())
}

// By Ada's clock no time has passed. Nothing can tell her before a voter answers, whatever that
// answers to: only tokens help until then.
#[tokio::test(start_paused = true)]
async fn a_hold_from_before_a_long_pause_ends_at_the_first_answers_of_a_majority() {
    for fixed in [false, true] {
        let voters = old_voters(3);
        let machine = Machine::new("ada");
        let (ada, ben) = (client_on(&machine, &voters).await, client(&voters).await);
        let mutex = ada.mutex("a");
        let mutex = if fixed { mutex.lease_fixed(LEASE) } else { mutex };
        let guard = mutex.lock().await.unwrap();
        pause(&machine, secs(40)).await;
        let second = ben.mutex("a").try_lock().await.unwrap().expect("her lease has ended");
        assert!(guard.is_held() && second.token() > guard.token());
        let other = ada.mutex("b").try_lock().await.unwrap().expect("locks at once");
        assert!(other.is_held());
        assert!(!guard.is_held() && guard.lost().await.is_lost(), "fixed: {fixed}");
        assert!(counts_all(&ada).await && second.is_held());
    }
}

/// The clock of the voter that answers first after a pause seems to have moved, until another shows
/// the same.
#[tokio::test(start_paused = true)]
async fn a_quarantine_that_a_pause_hid_for_a_moment_is_counted_once() {
    let (snapshotter, _recording) = record();
    let voters = old_voters(3);
    let machine = Machine::new("ada");
    let ada = client_on(&machine, &voters).await;
    let lock = async |name: &str| {
        ada.mutex(name).lock().await.expect("two count").release().await.expect("they confirm");
    };
    lock("a").await;
    voters[0].restart_empty();
    sleep(secs(5)).await;
    lock("b").await;
    let mut reasons = counted(&snapshotter, "quorate_quarantines_total").into_keys();
    assert!(reasons.next().is_some_and(|reason| reason == "embedded-1 restarted"));
    pause(&machine, secs(2)).await;
    lock("c").await;
    let reasons: Vec<_> = counted(&snapshotter, "quorate_quarantines_total").into_keys().collect();
    assert_eq!(reasons, ["embedded-1 clock_moved"]);
    assert!(!counts_all(&ada).await);
}

// What passed of a lease is gone, and no more: a hold whose lease was longer than the pause goes
// on, and is renewed at once.
#[tokio::test(start_paused = true)]
async fn after_a_short_pause_no_voter_is_kept_out_and_locks_are_there_at_once() {
    for time in [ms(100), secs(1), secs(12)] {
        let voters = old_voters(3);
        let machine = Machine::new("ada");
        let ours = [client_on(&machine, &voters).await, client_on(&machine, &voters).await];
        let guard = ours[0].mutex("a").lock().await.unwrap();
        let fixed = ours[1].mutex("b").lease_fixed(LEASE).lock().await.unwrap();
        sleep(secs(5)).await;
        pause(&machine, time).await;
        let watch = Stopwatch::start();
        for (number, client) in ours.iter().enumerate() {
            let name = format!("c{number}");
            assert!(client.mutex(&name).try_lock().await.unwrap().is_some(), "{time:?}");
            assert!(client.fair_mutex(&name).try_lock().await.unwrap().is_some(), "{time:?}");
            assert!(client.rw_lock(&name).try_read().await.unwrap().is_some(), "{time:?}");
        }
        assert_eq!(watch.time(), ms(0), "{time:?}");
        assert!(counts_all(&ours[0]).await && counts_all(&ours[1]).await, "{time:?}");
        assert!(guard.is_held() && guard.votes() == 3, "{time:?}");
        // Never more than there was, and by no more less than clocks may differ by after 5 s.
        let left = fixed.remaining() + secs(5) + time;
        assert!(left <= TRUSTED && left >= TRUSTED.saturating_sub(ms(60)), "{time:?}: {left:?}");
        sleep(2 * LEASE).await;
        assert!(guard.is_held() && !fixed.is_held(), "{time:?}");
    }
}

// The first voter that shows the pause does not count yet, and no third one makes up for it.
#[tokio::test(start_paused = true)]
async fn after_a_pause_locks_are_there_at_once_although_a_minority_is_away() {
    let voters = old_voters(3);
    let machine = Machine::new("ada");
    let ada = client_on(&machine, &voters).await;
    voters[2].kill();
    sleep(secs(1)).await;
    pause(&machine, secs(40)).await;
    let guard = ada.mutex("a").try_lock().await.expect("both count").expect("it is free");
    assert!(guard.is_held() && guard.votes() == 2);
}

// The votes are given before the pause and heard of after it.
#[tokio::test(start_paused = true)]
async fn votes_that_came_before_a_pause_are_as_old_as_they_are() {
    let voters = old_voters(3);
    let machine = Machine::new("ada");
    let (ada, ben) = (client_on(&machine, &voters).await, client(&voters).await);
    let slow = all(&voters, Fault::Delay { there: ms(0), back: ms(50) });
    let asks = ada.mutex("a").lease_fixed(LEASE).try_lock();
    let asks = tokio::spawn(machine.run(asks));
    sleep(ms(10)).await;
    drop(slow);
    pause(&machine, secs(40)).await;
    let guard = asks.await.unwrap().unwrap().expect("it was free");
    let second = ben.mutex("a").try_lock().await.unwrap().expect("her votes have ended");
    drop(ada.mutex("b").try_lock().await.unwrap());
    assert!(!guard.is_held() && second.is_held());
}
