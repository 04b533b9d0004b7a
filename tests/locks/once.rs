//! What users of `Quorate::once` rely on. Each test's name is the claim.

use std::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    time::SystemTime,
};

use quorate::{Firing, OnceGuard, OnceOutcome};
use quorate_tests::{inside::drop_script, prelude::*};

const DONE: &str = "quorate:{a}:once:done";

fn ran<T>(outcome: OnceOutcome<T>) -> T {
    match outcome {
        OnceOutcome::Ran { value, marked: true } => value,
        OnceOutcome::Ran { .. } => panic!("it is not confirmed"),
        _ => panic!("it has passed"),
    }
}

fn passed<T>(outcome: &OnceOutcome<T>) -> u64 {
    match outcome {
        OnceOutcome::Passed { latest, .. } => *latest,
        _ => panic!("it was done again"),
    }
}

async fn works(_: Token) -> Result<(), Error> {
    Ok(())
}

async fn must_not_work(_: Token) -> Result<(), Error> {
    panic!("it is done")
}

/// What each voter has stored of which firing is done.
fn stored(voters: &[EmbeddedVoter]) -> Vec<Option<u64>> {
    let stored = |voter: &EmbeddedVoter| match voter.command(&["GET", DONE]).unwrap() {
        embedded::Reply::Text(text) => Some(text.split(' ').next().unwrap().parse().unwrap()),
        _ => None,
    };
    voters.iter().map(stored).collect()
}

fn store(voter: &EmbeddedVoter, firing: u64) {
    let now = voters_clock(voter).as_millis();
    voter.command(&["SET", DONE, &format!("{firing} {now} 86400000")]).unwrap();
}

claims!(three:
    of_machines_whose_timers_fire_together_and_late_one_does_the_work,
    who_waits_takes_over_from_work_that_fails,
    a_holder_that_was_ended_by_force_stores_nothing,
    after_at_most_once_work_that_fails_is_not_done_again,
    what_is_forgotten_is_done_again,
    a_look_says_which_firing_is_done,
);

async fn of_machines_whose_timers_fire_together_and_late_one_does_the_work(on: Fixture) {
    let clients = [on.client().await, on.client().await, on.client().await];
    let done = AtomicU32::new(0);
    for firing in [7_u64, 8, 1 << 40] {
        let runs = clients.iter().map(|client| {
            let work = async |_| {
                sleep(ms(50)).await;
                Ok::<_, Error>(done.fetch_add(1, SeqCst))
            };
            let once = client.once("a");
            async move { once.run(firing, work).await.unwrap() }
        });
        let outcomes = join_all(runs).await;
        let did = outcomes.iter().filter(|it| matches!(it, OnceOutcome::Ran { marked: true, .. }));
        assert_eq!(did.count(), 1, "{outcomes:?}");
        for late in [firing, firing - 1] {
            let late = clients[0].once("a").run(late, must_not_work).await.unwrap();
            assert_eq!(passed(&late), firing);
        }
    }
    assert_eq!(done.load(SeqCst), 3);
    // The mutex of the name is another lock, and has no memory.
    let guard = clients[0].mutex("a").lock().await.unwrap();
    let other = clients[1].once("a").run(9_u64 << 40, works).await.unwrap();
    ran(other);
    on.release(guard.release()).await;
    on.until_only(&[DONE]).await;
}

async fn who_waits_takes_over_from_work_that_fails(on: Fixture) {
    let (ada, ben) = (on.client().await, on.client().await);
    let guard = ada.once("a").enter(7_u64).await.unwrap().expect("it is due");
    let waits = tokio::spawn(ben.once("a").run(7_u64, works));
    on.until_queued().await;
    let busy = ben.once("a").enter_or_busy(7_u64, Duration::ZERO).await.unwrap_err();
    assert!(busy.is_busy() && busy.holder() == Some(guard.hold()), "{busy}");
    on.release(guard.release()).await;
    ran(waits.await.unwrap().unwrap());
    let failed = ada.once("a").run(8_u64, async |_| Err::<(), _>(busy)).await.unwrap_err();
    assert!(failed.is_busy());
    ran(ben.once("a").run(8_u64, works).await.unwrap());
}

async fn a_holder_that_was_ended_by_force_stores_nothing(on: Fixture) {
    let client = on.client().await;
    let guard = client.once("a").enter(7_u64).await.unwrap().expect("it is due");
    client.admin().end(LockKind::Once, "a", guard.hold()).await.unwrap();
    let lost = guard.done().await.unwrap_err();
    assert!(lost.is_lost() || lost.is_not_entered(), "{lost}");
    assert!(on.keys().iter().all(|keys| !keys.contains(&DONE.to_owned())));
    ran(client.once("a").run(7_u64, works).await.unwrap());
}

async fn after_at_most_once_work_that_fails_is_not_done_again(on: Fixture) {
    let client = on.client().await;
    let once = client.once("a").at_most_once();
    let failed = once.run(7_u64, async |_| Err::<(), _>(Failed)).await;
    assert!(matches!(failed, Err(Failed)));
    assert_eq!(passed(&client.once("a").run(7_u64, must_not_work).await.unwrap()), 7);
    ran(once.run(8_u64, works).await.unwrap());
}

#[derive(Debug)]
struct Failed;

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        panic!("it is held: {error}")
    }
}

async fn what_is_forgotten_is_done_again(on: Fixture) {
    let client = on.client().await;
    assert!(!client.admin().forget_once("a").await.unwrap(), "nothing is known");
    ran(client.once("a").run(7_u64, works).await.unwrap());
    assert!(client.admin().forget_once("a").await.unwrap());
    ran(client.once("a").run(6_u64, works).await.unwrap());
}

async fn a_look_says_which_firing_is_done(on: Fixture) {
    let client = on.client().await;
    let once = client.once("a");
    assert_eq!(once.inspect().await.unwrap().done, None);
    ran(once.run(7_u64, works).await.unwrap());
    let guard = once.enter(8_u64).await.unwrap().expect("it is due");
    let seen = client.admin().look(LockKind::Once, "a").await.unwrap();
    assert_eq!(seen.done.map(|done| done.firing), Some(7));
    assert!(seen.is_done_stored() && seen.votes(guard.hold()) >= 2);
    on.release(guard.release()).await;
    assert!(client.admin().forget_once("a").await.unwrap());
    assert_eq!(once.inspect().await.unwrap().done, None);
}

#[tokio::test(start_paused = true)]
async fn a_look_says_whether_a_majority_knows_which_firing_is_done() {
    let (voters, client) = with_client(3).await;
    store(&voters[0], 7);
    store(&voters[1], 6);
    let seen = client.once("a").inspect().await.unwrap();
    let done = seen.done.unwrap();
    assert_eq!(done.when, SystemTime::UNIX_EPOCH + voters_clock(&voters[0]));
    assert!(done.firing == 7 && !seen.is_done_stored());
    let each = seen.voters.iter().map(|view| view.state.as_ref().unwrap().done);
    assert!(each.map(|done| done.map(|done| done.firing)).eq([Some(7), Some(6), None]));
    assert_eq!(client.admin().jobs().await.unwrap(), ["a"]);
    passed(&client.once("a").run(7_u64, must_not_work).await.unwrap());
    assert!(client.once("a").inspect().await.unwrap().is_done_stored());
}

#[tokio::test(start_paused = true)]
async fn a_firing_is_remembered_for_as_long_as_that_is_wished() {
    let (voters, client) = with_client(3).await;
    let once = client.once("a").keep(secs(60));
    ran(once.run(7_u64, works).await.unwrap());
    sleep(secs(59)).await;
    assert_eq!(passed(&once.run(7_u64, must_not_work).await.unwrap()), 7);
    // Who looks at it does not prolong that, and neither does a copy.
    voters[0].command(&["DEL", DONE]).unwrap();
    assert_eq!(passed(&once.run(7_u64, must_not_work).await.unwrap()), 7);
    sleep(ms(100)).await;
    assert_eq!(stored(&voters), [Some(7); 3]);
    sleep(secs(1)).await;
    assert_eq!(stored(&voters), [None; 3]);
    ran(once.run(7_u64, works).await.unwrap());
}

// It was stored by one of three, for a holder that died before a second one had it.
#[tokio::test(start_paused = true)]
async fn one_voter_that_knows_is_enough_and_a_majority_does_before_anybody_is_told() {
    let (voters, client) = with_client(3).await;
    store(&voters[0], 7);
    let waits = tokio::spawn(client.once("a").run(7_u64, must_not_work));
    assert_eq!(passed(&waits.await.unwrap().unwrap()), 7);
    sleep(ms(10)).await;
    assert_eq!(stored(&voters), [Some(7); 3]);
    // Nobody is told where no majority stores it.
    let builder = Quorate::builder().embedded(&voters).quorum_timeout(secs(2));
    let client = builder.connect().await.unwrap();
    store(&voters[0], 8);
    for voter in &voters[1..] {
        let mut notes = 0;
        voter.fault_each(move |sent| {
            let is_note = sent.script() == Some("once/note");
            notes += u32::from(is_note);
            if is_note && notes > 1 { vec![Fault::DropRequests] } else { Vec::new() }
        });
    }
    let told = client.once("a").run(8_u64, must_not_work).await.unwrap_err();
    assert!(told.is_not_entered(), "{told}");
    heal(&voters);
    assert_eq!(passed(&client.once("a").run(8_u64, must_not_work).await.unwrap()), 8);
}

// Each restart takes the data of one of three, and a later run brings back what is done.
#[tokio::test(start_paused = true)]
async fn voters_that_lose_their_data_one_after_the_other_forget_no_firing() {
    let (voters, client) = with_client(3).await;
    ran(client.once("a").run(7_u64, works).await.unwrap());
    for voter in [0, 1, 2, 0] {
        voters[voter].restart_empty();
        sleep(ms(100)).await;
        // It says that nothing is done, and that does not count.
        assert_eq!(passed(&client.once("a").run(7_u64, must_not_work).await.unwrap()), 7);
        sleep(secs(31)).await;
        assert_eq!(stored(&voters), [Some(7); 3]);
    }
}

// What is done is stored by the first two of three. One of these is away, and the other one forgets
// it when the lock was given: then nobody can know.
#[tokio::test(start_paused = true)]
async fn a_voter_in_quarantine_does_not_say_that_nothing_is_done() {
    let voters = embedded::voters(3);
    let builder = Quorate::builder().embedded(&voters).quorum_timeout(secs(2));
    let client = builder.connect().await.unwrap();
    voters[2].kill();
    ran(client.once("a").run(7_u64, works).await.unwrap());
    voters[2].restart();
    sleep(secs(31)).await;
    voters[0].stop();
    drop_script(&voters, "once/note");
    let runs = tokio::spawn(client.once("a").run(7_u64, must_not_work));
    sleep(ms(500)).await;
    voters[1].restart_empty();
    sleep(ms(500)).await;
    heal(&voters);
    let refused = runs.await.unwrap().unwrap_err();
    assert!(refused.is_not_entered() || refused.is_lost(), "{refused}");
    voters[0].resume();
    sleep(secs(31)).await;
    assert_eq!(passed(&client.once("a").run(7_u64, must_not_work).await.unwrap()), 7);
}

#[tokio::test(start_paused = true)]
async fn work_that_is_done_keeps_its_value_where_no_majority_confirms_it() {
    let voters = embedded::voters(3);
    let builder = Quorate::builder().embedded(&voters).quorum_timeout(secs(2));
    let client = builder.connect().await.unwrap();
    let work = async |_| {
        drop_script(&voters, "once/note");
        Ok::<_, Error>(42)
    };
    let outcome = client.once("a").run(7_u64, work).await.unwrap();
    assert_eq!(outcome, OnceOutcome::Ran { value: 42, marked: false });
    heal(&voters);
    let again = client.once("a").run(7_u64, async |_| Ok::<_, Error>(43)).await.unwrap();
    assert_eq!(again, OnceOutcome::Ran { value: 43, marked: true });
}

// Longer than voters may be silent for, and shorter than the lease. The next holder would do it
// again.
#[tokio::test(start_paused = true)]
async fn what_is_done_is_stored_after_an_outage_that_the_lock_outlives() {
    let (voters, client) = with_client(3).await;
    let work = async |_| {
        voters[1..].iter().for_each(|voter| voter.fault_each(|_| vec![Fault::DropRequests]));
        Ok::<_, Error>(())
    };
    let outage = async {
        sleep(secs(20)).await;
        heal(&voters);
    };
    let (outcome, ()) = tokio::join!(client.once("a").run(7_u64, work), outage);
    ran(outcome.unwrap());
    assert_eq!(passed(&client.once("a").run(7_u64, must_not_work).await.unwrap()), 7);
}

#[tokio::test(start_paused = true)]
async fn a_run_costs_one_request_for_the_lock_two_for_what_is_done_and_one_release() {
    let (on, client) = Fixture::with_client(3).await;
    ran(client.once("a").run(7_u64, works).await.unwrap());
    for (script, runs) in [("mutex/acquire", 1), ("once/note", 2), ("mutex/release", 1)] {
        assert_eq!(on.runs(script).unwrap(), [runs; 3], "{script}");
    }
    passed(&client.once("a").run(7_u64, must_not_work).await.unwrap());
    assert_eq!(on.runs("once/note").unwrap(), [3; 3]);
}

#[tokio::test(start_paused = true)]
async fn what_would_close_the_job_and_what_may_be_forgotten_is_refused() {
    let (voters, client) = with_client(3).await;
    let once = client.once("a");
    let now = SystemTime::UNIX_EPOCH + voters_clock(&voters[0]);
    for (firing, told) in [
        (Firing::at(now + secs(62)), "ahead of the voters' clocks"),
        (Firing::at(now + secs(1 << 33)), "ahead of the voters' clocks"),
        (Firing::at(now - secs(86_500)), "and voters remember one for 86400s"),
        (Firing::from(1 << 53), "the firing 9007199254740992 is 2^53 or more"),
    ] {
        let error = once.run(firing, must_not_work).await.unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains(told), "{error}");
    }
    for keep in [secs(29), secs(401 * 86_400)] {
        assert_invalid(&once.clone().keep(keep).enter(7_u64).await.unwrap_err(), "`keep` of");
    }
    assert_eq!(stored(&voters), [None; 3]);
    ran(once.run(Firing::at(now + secs(50)), works).await.unwrap());
}

fn voters_clock(voter: &EmbeddedVoter) -> Duration {
    let embedded::Reply::List(time) = voter.command(&["TIME"]).unwrap() else { panic!("no time") };
    let embedded::Reply::Text(seconds) = &time[0] else { panic!("no time: {time:?}") };
    secs(seconds.parse().unwrap())
}

#[test]
fn machines_up_to_a_period_apart_name_the_same_firing() {
    let (day, at) = (secs(86_400), |seconds| SystemTime::UNIX_EPOCH + secs(seconds));
    let firing = |seconds, offset| Firing::every(day, secs(offset), at(seconds)).number();
    assert_eq!([0, 86_399, 86_400].map(|now| firing(now, 0)), [0, 0, 1]);
    assert_eq!([7_199, 7_200, 93_599, 93_600].map(|now| firing(now, 7_200)), [0, 0, 0, 1]);
}

// Nobody who was there during the change had this job. A late machine of the new voters alone asks.
#[tokio::test(start_paused = true)]
async fn a_change_of_the_voters_takes_along_what_is_done() {
    let voters = embedded::voters(6);
    let (old, new) = voters.split_at(3);
    let first = Quorate::builder().embedded(old).voter_configuration(1).connect().await.unwrap();
    ran(first.once("a").run(7_u64, works).await.unwrap());
    first.close().await.expect("all confirm");
    let both = Quorate::builder()
        .embedded(new)
        .replacing(old)
        .voter_configuration(2)
        .connect()
        .await
        .unwrap();
    assert_eq!(both.admin().copy_once().await.unwrap(), 1);
    assert_eq!(stored(&voters), [Some(7); 6]);
    // Who runs a job in this step reads and writes both.
    ran(both.once("a").run(8_u64, works).await.unwrap());
    sleep(ms(10)).await;
    assert_eq!(stored(&voters), [Some(8); 6]);
    both.close().await.expect("all confirm");
    // A longest lease and a minute later.
    sleep(secs(120)).await;
    let last = Quorate::builder().embedded(new).voter_configuration(2).connect().await.unwrap();
    sleep(secs(31)).await;
    assert_eq!(passed(&last.once("a").run(8_u64, must_not_work).await.unwrap()), 8);
}

// A majority of one set has it, and no majority of the other.
#[tokio::test(start_paused = true)]
async fn in_both_sets_a_majority_of_each_stores_what_is_done() {
    let voters = embedded::voters(6);
    let (old, new) = voters.split_at(3);
    let both = Quorate::builder().embedded(new).replacing(old).quorum_timeout(secs(2));
    let both = both.connect().await.unwrap();
    let work = async |_| {
        drop_script(&old[1..], "once/note");
        Ok::<_, Error>(())
    };
    let outcome = both.once("a").run(7_u64, work).await.unwrap();
    assert_eq!(outcome, OnceOutcome::Ran { value: (), marked: false });
}

#[test]
fn calls_can_be_spawned() {
    fn spawns<T: Send + 'static>(_: T) {}
    fn check(quorum: &Quorate) {
        spawns(quorum.once("a").run(7_u64, works));
        spawns(quorum.once("a").enter(7_u64));
        spawns(None::<OnceGuard>);
    }
    let _ = check;
}
