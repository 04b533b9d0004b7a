//! Bugs of locks that are waited for in a queue: fair mutexes and read/write locks.

use quorate::{Mutex, embedded::Reply};
use quorate_tests::{inside::fault_client, prelude::*};

use crate::{
    fair::{Waiters, release},
    rw,
};

const QUEUE: &str = "quorate:{a}:queue";

async fn fair(voters: &[EmbeddedVoter]) -> Mutex {
    client(voters).await.fair_mutex("a")
}

fn waits(mutex: Mutex) -> JoinHandle<MutexGuard> {
    tokio::spawn(async move { mutex.lock().await.expect("all voters answer") })
}

/// The second run found the vote taken, by the very hold that it ran for.
#[tokio::test(start_paused = true)]
async fn a_request_that_runs_twice_does_not_queue_whom_it_gave_the_vote() {
    let voters = embedded::voters(3);
    let twice = all(&voters, Fault::RunTwice);
    let guard = fair(&voters).await.lock().await.expect("it is free");
    drop(twice);
    for voter in &voters {
        assert_eq!(voter.keys(), ["quorate:{a}", "quorate:{a}:fence"]);
    }
    drop(guard);
}

/// The deadlines that were left of the others made the queue look as if one of them was missing.
#[tokio::test(start_paused = true)]
async fn whoever_comes_back_after_the_queue_was_deleted_does_not_lose_its_place_again() {
    let voters = embedded::voters(1);
    let guard = fair(&voters).await.lock().await.expect("it is free");
    let first = waits(fair(&voters).await);
    sleep(ms(10)).await;
    let second = waits(fair(&voters).await);
    sleep(ms(10)).await;
    voters[0].command(&["DEL", QUEUE]).expect("it is there");
    // Each tells its place again within a third of five seconds.
    sleep(ms(1_700)).await;
    assert_eq!(voters[0].command(&["ZCARD", QUEUE]), Ok(Reply::Int(2)));
    guard.release().await.expect("it is held");
    let first = timeout(secs(1), first).await.expect("it is its turn").expect("no panic");
    assert!(!second.is_finished());
    drop(first);
    drop(second.await);
}

/// With less time left than voters have to answer, a waiter that no voter could be reached for bid
/// again without a pause.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_reaches_nobody_just_before_its_limit_does_not_spin() {
    let voters = embedded::voters(3);
    let guard = fair(&voters).await.lock().await.expect("it is free");
    let waiter = fair(&voters).await;
    let waiting = tokio::spawn(async move { waiter.lock_within(secs(1)).await.map(drop_all) });
    sleep(ms(900)).await;
    let breaks = all(&voters, Fault::CutBeforeRun);
    for voter in &voters {
        voter.cut(InFlight::Lost);
    }
    // Nothing was cut short: what broke broke before the limit.
    assert!(waiting.await.expect("no panic").expect_err("nobody answers").is_no_quorum());
    drop(breaks);
    drop(guard);
}

/// A bid that lost its majority while other answers were on their way was ended by whatever ends
/// the wait for one's turn, and passed for one that was refused: the lock was another's, it said.
/// Here by connections that broke, and with them calls that may be lost.
#[tokio::test(start_paused = true)]
async fn a_bid_without_a_quorum_is_not_refused_when_calls_may_be_lost() {
    let voters = embedded::voters(5);
    let mutex = fair(&voters).await;
    hear_calls(&voters, &mutex).await;
    let far = all(&voters, way(ms(50)));
    let waiter = tokio::spawn(async move { mutex.lock_within(ms(150)).await.map(drop_all) });
    sleep(ms(20)).await;
    for voter in &voters[..3] {
        voter.cut(InFlight::Lost);
        voter.kill();
    }
    assert!(waiter.await.expect("no panic").expect_err("a majority is away").is_no_quorum());
    drop(far);
}

/// One voter refused, one was away, one did not answer: a call of the first ended the bid, which
/// then passed for one that a majority had refused. The next one was cut off by the limit.
#[tokio::test(start_paused = true)]
async fn a_bid_that_a_call_ends_before_a_majority_answered_is_not_refused() {
    let voters = embedded::voters(3);
    let mutex = fair(&voters).await;
    hear_calls(&voters, &mutex).await;
    let guard = fair(&voters).await.lock().await.expect("it is free");
    let waiter = tokio::spawn(async move { mutex.lock_within(ms(2_050)).await.map(drop_all) });
    sleep(ms(10)).await;
    let silence = voters[2].fault(Fault::DropRequests);
    voters[1].kill();
    // A bid is made anew after 1,667 ms. It finds no quorum in 200 ms, a pause of 30 ms at most
    // follows, and then the bid that is called. The last one has 100 ms of 200.
    sleep(ms(1_940)).await;
    drop(guard);
    assert!(waiter.await.expect("no panic").expect_err("one voter answers").is_no_quorum());
    drop(silence);
}

/// A bid that lost its majority before the last voter had answered left its vote there until the
/// next bid, and took another one then.
#[tokio::test(start_paused = true)]
async fn a_bid_without_a_quorum_gives_back_what_comes_after_it() {
    for (kind, script) in
        [("fair", "mutex/acquire"), ("read", "rw/acquire"), ("write", "rw/acquire")]
    {
        let (voters, client) = with_client(3).await;
        let _far = all(&voters[2..], way(ms(1)));
        voters[..2].iter().for_each(EmbeddedVoter::kill);
        let waiter = tokio::spawn(async move {
            match kind {
                "fair" => client.fair_mutex("a").lock().await.map(drop),
                "read" => client.rw_lock("a").read().await.map(drop),
                _ => client.rw_lock("a").write().await.map(drop),
            }
        });
        // The pauses between bids are 20 ms and more. A vote lasts until its answer has arrived, and
        // the undo in return. A look lets come what is due, so there is one look at a moment.
        for _ in 0..20 {
            sleep(ms(10)).await;
            if !without_lasting(voters[2].keys()).is_empty() {
                sleep(ms(6)).await;
                assert_eq!(without_lasting(voters[2].keys()), [""; 0], "{kind}");
            }
        }
        assert!(voters[2].runs(script) > 2, "{kind}");
        waiter.abort();
    }
}

/// As the one before, as whoever needs that vote sees it: a holder that never had it, and whose
/// other voter dies. It lost its lock with two of three voters well.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_reaches_a_minority_takes_no_lock_from_its_holder() {
    for kind in [Kind::Mutex, Kind::FairMutex] {
        let voters = embedded::voters(3);
        let builder = || Quorate::builder().embedded(&voters).quorum_timeout(secs(60));
        let holder = builder().lease(secs(3)).connect().await.expect("all voters answer");
        let apart = voters[2].fault(Fault::DropRequests);
        let guard = Client::new(holder, kind).mutex("a").lock().await;
        let guard = guard.expect("it is free on two of three");
        drop(apart);
        let machine = Machine::new("apart");
        let waiter = builder().machine(&machine).connect().await.expect("all voters answer");
        fault_client(&voters[..2], "apart", Fault::CutBeforeRun);
        fault_client(&voters[2..], "apart", way(ms(1)));
        let waiting = waits(waiter.fair_mutex("a"));
        sleep(ms(100)).await;
        voters[1].kill();
        sleep(secs(30)).await;
        assert!(!waiting.is_finished() && guard.is_held(), "{kind:?}");
        waiting.abort();
        guard.release().await.expect("two of three confirm");
    }
}

/// Each bid owed an undo to a voter that nothing was sent to, and where that stayed away for a
/// lease it counted as a vote that was leaked.
#[tokio::test(start_paused = true)]
async fn a_bid_owes_nothing_to_a_voter_that_it_did_not_reach() {
    let (snapshotter, _recording) = record();
    let voters = embedded::voters(3);
    let guard = fair(&voters).await.lock().await.expect("it is free");
    let waiter = fair(&voters).await;
    voters[2].kill();
    let entered = waiter.lock_within(secs(60)).await;
    assert!(entered.expect("two of three answer").is_none());
    assert!(voters[1].runs("mutex/acquire") > 30, "it bid from time to time");
    assert_eq!(added(&snapshotter, metric::LEAKED_VOTES, None), 0);
    drop(guard);
}

/// What ended a pause was counted for a mutex, and not for what is waited for in a queue.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_pause_is_counted_as_a_timer_in_a_queue_too() {
    let (snapshotter, _recording) = record();
    let voters = embedded::voters(3);
    let waiter = fair(&voters).await;
    voters.iter().for_each(EmbeddedVoter::kill);
    // A pause is between 20 and 750 ms.
    assert!(waiter.lock_within(secs(2)).await.expect_err("all are away").is_no_quorum());
    assert!(added(&snapshotter, metric::WAKEUPS, Some("timer")) >= 2);
}

/// While its client hears no voter a place stands, and the pauses between its bids grew longer than
/// it lives with a short lease: whoever asked later passed in such a gap.
#[tokio::test(start_paused = true)]
async fn a_pause_between_bids_is_shorter_than_a_place_lives() {
    for seed in 0..20 {
        let voters = embedded::voters(3);
        let machine = Machine::new("first");
        let client = async |number: u64, machine: &Machine| {
            let builder = Quorate::builder().embedded(&voters).seed(2 * seed + number);
            let builder = builder.lease(ms(400)).longest_lease(secs(3)).machine(machine);
            Client::new(builder.connect().await.expect("all voters answer"), Kind::FairMutex)
        };
        let (first, second) = (client(0, &machine).await, client(1, &Machine::new("other")).await);
        let guard = fair(&voters).await.lock().await.expect("it is free");
        let mut waiters = Waiters::of(&Fixture::of(&voters).of_kind(Kind::FairMutex)).await;
        waiters.come(first.mutex("a"), release).await;
        waiters.come(second.mutex("a"), release).await;
        // It tells its place every 133 ms, and voters have 40 ms to answer.
        fault_client(&voters, "first", Fault::DropReplies);
        sleep(ms(390)).await;
        heal(&voters);
        sleep(ms(200)).await;
        guard.release().await.expect("it is held");
        waiters.must_enter_in_order().await;
    }
}

/// It stayed the first in the queue, and all others waited behind it for as long as it waited.
#[tokio::test(start_paused = true)]
async fn a_waiter_whose_grants_cannot_count_keeps_a_free_lock_from_nobody() {
    type Hamper = fn(&[EmbeddedVoter], &Machine);
    let slow: Hamper = |voters, _| fault_client(voters, "hampered", way(ms(50)));
    let fast: Hamper = |_, machine| machine.set_clock_rate(20_000);
    let empty: Hamper = |voters, _| voters.iter().for_each(EmbeddedVoter::restart_empty);
    let hampers = [
        // From the beginning, or from when its place stands.
        ("it hears every answer too late", slow, ms(0), ms(300)),
        ("it hears every answer too late at last", slow, secs(10), ms(5_600)),
        ("its clock is too fast", fast, ms(0), ms(300)),
        ("the voters have forgotten, as it knows", empty, secs(10), ms(300)),
    ];
    for (what, hamper, after, within) in hampers {
        for kind in [Kind::Mutex, Kind::FairMutex] {
            let voters = embedded::voters(3);
            let machine = Machine::new("hampered");
            let builder = Quorate::builder().embedded(&voters).machine(&machine);
            let hampered = builder.voter_deadline(ms(50)).connect().await.expect("all answer");
            // This one believes that nothing is ever forgotten.
            let other = Quorate::builder().embedded(&voters).restart_guard(RestartGuard::Off);
            let other = other.connect().await.expect("all answer");
            let guard = other.mutex("a").lock().await.expect("it is free");
            if after.is_zero() {
                hamper(&voters, &machine);
            }
            let lock = Client::new(hampered, kind).mutex("a");
            let waiting = tokio::spawn(lock.lock_within(secs(300)));
            sleep(secs(60)).await;
            if !after.is_zero() {
                hamper(&voters, &machine);
            }
            // It was the holder's before the voters forgot.
            drop(guard.release().await);
            for _ in 0..10 {
                let watch = Stopwatch::start();
                let entered = other.fair_mutex("a").lock_within(secs(60)).await;
                let guard = entered.expect("all answer").expect("it is free");
                assert!(watch.time() <= within, "{what}, {kind:?}: {:?}", watch.time());
                guard.release().await.expect("all answer");
                sleep(ms(700)).await;
            }
            waiting.abort();
        }
    }
}

/// Each bid waited for leave among all first attempts of its client. So the place was forgotten
/// meanwhile, and whoever came later entered first.
#[tokio::test(start_paused = true)]
async fn a_place_stands_while_its_client_asks_for_thousands_of_other_locks() {
    let voters = embedded::voters(3);
    let machine = Machine::new("busy");
    let busy = Quorate::builder().embedded(&voters).machine(&machine).voter_deadline(ms(1_200));
    let busy = Client::new(busy.connect().await.expect("all answer"), Kind::FairMutex);
    let on = Fixture::of(&voters).of_kind(Kind::FairMutex);
    let guard = fair(&voters).await.lock().await.expect("it is free");
    let mut waiters = Waiters::of(&on).await;
    waiters.come(busy.mutex("a"), release).await;
    fault_client(&voters, "busy", way(ms(500)));
    // 128 at once: they are asked for within 16 s. A place lives for 5 s.
    let ask = |number: u32| turn(busy.mutex(number.to_string()));
    let _crowd: JoinSet<()> = (0..16 * 128).map(ask).collect();
    sleep(secs(7)).await;
    waiters.come(on.client().await.mutex("a"), release).await;
    sleep(secs(1)).await;
    guard.release().await.expect("it is held");
    waiters.must_enter_in_order().await;
}

/// What was left of the queue still named the writer: it kept readers out, or the script failed,
/// where its deadline was gone. The writer comes back with its next bid.
#[tokio::test(start_paused = true)]
async fn a_writer_keeps_nobody_out_where_its_place_was_lost_with_a_part_of_the_queue() {
    for lost in [&["queue"][..], &["alive"], &["queue", "alive"]] {
        let voters = embedded::voters(3);
        let on = Fixture::of(&voters);
        let client = on.client().await;
        let reading = client.rw_lock("a").read().await.unwrap();
        let writer = rw::write(&client);
        rw::until_waiting(&client, 1, 0).await;
        for (voter, part) in
            voters.iter().flat_map(|voter| lost.iter().map(move |part| (voter, part)))
        {
            voter.command(&["DEL", &format!("quorate:{{a}}:rw:{part}")]).unwrap();
        }
        let other = client.rw_lock("a").try_read().await;
        let other = other.expect("no script fails").expect("nobody is known to wait");
        rw::until_waiting(&client, 1, 0).await;
        assert!(client.rw_lock("a").try_read().await.unwrap().is_none(), "{lost:?}");
        on.release(other.release()).await;
        on.release(reading.release()).await;
        on.release(writer.await.unwrap().release()).await;
        on.until_clean().await;
    }
}

/// A request takes so long to arrive, and its answer too.
fn way(time: Duration) -> Fault {
    Fault::Delay { there: time, back: time }
}

/// Waits once, so that the client listens for calls.
async fn hear_calls(voters: &[EmbeddedVoter], mutex: &Mutex) {
    let guard = fair(voters).await.lock().await.expect("it is free");
    assert!(mutex.lock_within(ms(100)).await.expect("all voters answer").is_none());
    guard.release().await.expect("it is held");
}

fn drop_all(guard: Option<MutexGuard>) -> usize {
    guard.into_iter().map(drop).count()
}
