//! A client that wants more locks at once than it asks for at once.

use std::{
    ops::Range,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use quorate_tests::prelude::*;

/// As `docs/protocol.md` says.
const AT_ONCE: u32 = 128;
/// All of them have had their turn after four answers.
const CROWD: u32 = 4 * AT_ONCE;

/// A client with a patience of 2 s, and its voters.
async fn client() -> (Vec<EmbeddedVoter>, Quorate) {
    let voters = embedded::voters(3);
    let client = Quorate::builder().embedded(&voters).quorum_timeout(secs(2)).connect().await;
    (voters, client.expect("all voters answer"))
}

/// Replies take so long that everybody has come by then.
fn slow(voters: &[EmbeddedVoter]) -> Vec<FaultGuard> {
    all(voters, Fault::Delay { there: ms(0), back: ms(100) })
}

/// From here on everything else is.
fn no_acquire_is_answered(voters: &[EmbeddedVoter]) {
    for voter in voters {
        voter.fault_each(|sent| {
            let silent = sent.script() == Some("mutex/acquire");
            if silent { vec![Fault::DropReplies] } else { Vec::new() }
        });
    }
}

/// Counts the calls that are sent to a voter.
fn counted(voter: &EmbeddedVoter) -> Arc<AtomicU32> {
    let count = Arc::<AtomicU32>::default();
    let calls = Arc::clone(&count);
    voter.fault_each(move |sent| {
        calls.fetch_add(u32::from(sent.script() == Some("mutex/acquire")), Ordering::Relaxed);
        Vec::new()
    });
    count
}

/// Takes so many locks, each its own.
fn a_crowd(client: &Quorate) -> JoinSet<()> {
    take(client, 0..CROWD)
}

fn take(client: &Quorate, numbers: Range<u32>) -> JoinSet<()> {
    let take = |mutex: quorate::Mutex| async move {
        let guard = mutex.lock().await.expect("all voters answer");
        guard.release().await.expect("all voters answer");
    };
    numbers.map(|number| take(client.mutex(number.to_string()))).collect()
}

/// Takes so many others, and keeps them.
async fn keep(client: &Quorate, count: usize) -> Vec<MutexGuard> {
    let mutex = |number| client.mutex(format!("held {number}")).lease(secs(3));
    let guards: JoinSet<_> = (0..count).map(|number| mutex(number).lock()).collect();
    guards.join_all().await.into_iter().map(|guard| guard.expect("it is free")).collect()
}

#[tokio::test(start_paused = true)]
async fn no_more_attempts_are_made_at_once_and_everybody_gets_in() {
    let (voters, client) = client().await;
    let calls = counted(&voters[0]);
    let slow = slow(&voters);
    let tasks = a_crowd(&client);
    sleep(ms(50)).await;
    assert_eq!(voters[0].runs("mutex/acquire"), u64::from(AT_ONCE));
    // One left at once, and another; the others gathered.
    let calls = calls.load(Ordering::Relaxed);
    assert!(calls <= 2 + AT_ONCE / 32 + 1, "{calls} calls");
    tasks.join_all().await;
    drop(slow);
}

#[tokio::test(start_paused = true)]
async fn whoever_cannot_wait_for_its_turn_is_told_that_this_client_is_overloaded() {
    let (voters, client) = client().await;
    let silent = all(&voters, Fault::DropReplies);
    let tasks = a_crowd(&client);
    sleep(ms(50)).await;
    let error = client.mutex("x").lock_within(ms(100)).await.expect_err("none ended");
    assert!(error.is_overloaded() && !error.is_no_quorum(), "{error}");
    let told = "lock `x` was not asked for in 100ms: this client has 128 attempts under way, \
                and makes no more at once";
    assert_eq!(error.to_string(), told);
    assert_eq!(voters[0].keys().iter().filter(|key| key.contains("{x}")).count(), 0);
    drop(silent);
    let guard = client.mutex("x").try_lock().await.expect("its turn comes within the patience");
    assert!(guard.is_some());
    tasks.join_all().await;
}

#[tokio::test(start_paused = true)]
async fn releases_and_renewals_do_not_wait_for_their_turn() {
    let (voters, client) = client().await;
    let held = client.mutex("held").lease(ms(900)).lock().await.expect("it is free");
    let released = client.mutex("released").lock().await.expect("it is free");
    no_acquire_is_answered(&voters);
    let _tasks = a_crowd(&client);
    sleep(ms(50)).await;
    released.release().await.expect("it is confirmed");
    sleep(secs(3)).await;
    assert!(held.is_held(), "renewed several times");
}

// A renewal is due after a second and must be there two seconds later. With 128 rounds at once, of
// 100 ms each, half of the holds would be renewed by then.
#[tokio::test(start_paused = true)]
async fn a_client_with_distant_voters_keeps_thousands_of_holds() {
    let (voters, client) = client().await;
    let guards = keep(&client, 5000).await;
    let _far = all(&voters, Fault::Delay { there: ms(50), back: ms(50) });
    sleep(secs(7)).await;
    assert_eq!(guards.iter().filter(|guard| !guard.is_held()).count(), 0, "lost");
}

#[tokio::test(start_paused = true)]
async fn without_batches_each_request_leaves_by_itself_at_once() {
    let voters = embedded::voters(3);
    let client = Quorate::builder().embedded(&voters).batch_size(1).connect().await;
    let client = client.expect("all voters answer");
    let calls = counted(&voters[0]);
    let _slow = slow(&voters);
    let tasks = a_crowd(&client);
    sleep(ms(1)).await;
    assert_eq!(calls.load(Ordering::Relaxed), AT_ONCE);
    tasks.join_all().await;
}

#[tokio::test(start_paused = true)]
async fn callers_that_go_away_before_their_turn_send_nothing() {
    let (voters, client) = client().await;
    let _silent = all(&voters, Fault::DropReplies);
    let tasks = take(&client, 0..10_000);
    sleep(ms(50)).await;
    drop(tasks);
    sleep(secs(60)).await;
    for voter in &voters {
        let asked = voter.runs("mutex/acquire");
        assert!(asked <= u64::from(AT_ONCE), "{asked} were asked for");
    }
}

// While ten thousand want locks of their own, each answer takes 20 ms, one voter is silent, and a
// thousand holds are to be renewed every second.
#[tokio::test(start_paused = true)]
async fn ten_thousand_get_their_locks_beside_a_thousand_holds_and_a_silent_voter_delays_nobody() {
    let mut took = Vec::new();
    for is_silent in [false, true] {
        let (voters, client) = client().await;
        let held = keep(&client, 1_000).await;
        let mut faults = all(&voters, Fault::Delay { there: ms(10), back: ms(10) });
        if is_silent {
            faults.push(voters[2].fault(Fault::DropReplies));
        }
        let watch = Stopwatch::start();
        take(&client, 0..10_000).join_all().await;
        took.push(watch.time());
        sleep(secs(3)).await;
        assert_eq!(held.iter().filter(|guard| !guard.is_held()).count(), 0, "lost");
    }
    let [without, with] = took[..] else { panic!("two runs") };
    assert!(with <= without + without / 10, "{with:?} with a silent voter, {without:?} without");
}

/// The first in line has an answer, and the others are told of it at once.
#[tokio::test(start_paused = true)]
async fn whoever_finds_a_line_for_its_lock_hears_what_is_known_there_without_a_turn() {
    let (voters, client) = client().await;
    let held = client.mutex("held").lock().await.expect("it is free");
    let waiting = client.mutex("held");
    let waiting = tokio::spawn(async move { waiting.lock().await.map(drop) });
    sleep(ms(50)).await;
    no_acquire_is_answered(&voters);
    let _tasks = a_crowd(&client);
    sleep(ms(50)).await;
    let watch = Stopwatch::start();
    let taken = client.mutex("held").try_lock().await.expect("the line knows who has it");
    assert!(taken.is_none());
    assert_eq!(watch.time(), ms(0), "no turn is waited for");
    waiting.abort();
    held.release().await.expect("it is confirmed");
}

/// Whoever stands behind one that waits for its turn is not told that voters are silent.
#[tokio::test(start_paused = true)]
async fn behind_one_that_waits_for_its_turn_nobody_is_told_of_silent_voters() {
    let (voters, client) = client().await;
    let _silent = all(&voters, Fault::DropReplies);
    let _tasks = a_crowd(&client);
    sleep(ms(50)).await;
    let first = client.mutex("x");
    let _first = tokio::spawn(async move { first.lock().await.map(drop) });
    sleep(ms(1)).await;
    let watch = Stopwatch::start();
    let within = client.mutex("x").lock_within(ms(20)).await.expect_err("nobody asked");
    assert!(within.is_overloaded() && watch.time() == ms(20), "{within}, {:?}", watch.time());
    let at_once = client.mutex("x").lock_within(ms(0)).await.expect_err("nobody asked");
    assert!(at_once.is_overloaded() && watch.time() == ms(20), "{at_once}, {:?}", watch.time());
    // The first one gives up, and asked nobody either.
    let y = client.mutex("y");
    for (first, next) in [(ms(100), ms(90)), (ms(100), ms(99)), (ms(100), ms(150))] {
        let next = async {
            sleep(ms(1)).await;
            y.lock_within(next).await
        };
        for within in <[_; 2]>::from(tokio::join!(y.lock_within(first), next)) {
            let within = within.expect_err("nobody asked");
            assert!(within.is_overloaded(), "{within}");
        }
    }
}

/// That no quorum answered the first of them is old by then.
#[tokio::test(start_paused = true)]
async fn behind_one_that_waits_for_leave_to_ask_again_nobody_is_told_what_it_heard_before() {
    let (voters, client) = client().await;
    let _silent = all(&voters, Fault::DropReplies);
    let (x, first) = (client.mutex("x"), client.mutex("x"));
    let _first = tokio::spawn(async move { first.lock().await.map(drop) });
    sleep(ms(50)).await;
    let _crowd = a_crowd(&client);
    sleep(ms(250)).await;
    let within = x.lock_within(ms(20)).await.expect_err("nobody asks");
    assert!(within.is_overloaded(), "{within}");
}

/// What is said in a line counts for those who stood there, and not for those who came later.
#[tokio::test(start_paused = true)]
async fn nobody_is_told_what_was_known_before_it_came() {
    let (voters, client) = client().await;
    // A lock with a fixed lease does not go from task to task without the voters.
    let x = client.mutex("x").lease_fixed(secs(30));
    let _slow = slow(&voters);
    let (first, second) = (x.clone(), x.clone());
    let first = tokio::spawn(async move { first.lock().await });
    sleep(ms(1)).await;
    // Stands behind it, comes first when the lock is granted, and waits for leave then.
    let _second = tokio::spawn(async move { second.lock_within(ms(400)).await.map(drop) });
    sleep(ms(90)).await;
    no_acquire_is_answered(&voters);
    let _crowd = a_crowd(&client);
    let guard = first.await.expect("no panic").expect("all voters answer");
    sleep(ms(1)).await;
    guard.release().await.expect("it is confirmed");
    let within = x.lock_within(ms(500)).await.expect_err("it is free, as far as is known");
    assert!(within.is_overloaded(), "{within}");
}

/// Another client has `x`. Of this one a crowd of tasks want other locks, then a task wants `x` and
/// waits for leave to ask, then another crowd want other locks.
async fn one_waits_for_leave_in_a_crowd(
    x: impl AsyncFnOnce(&Quorate),
) -> (Quorate, MutexGuard, [JoinSet<()>; 2], Vec<FaultGuard>) {
    let (voters, client) = client().await;
    let other = Quorate::builder().embedded(&voters).connect().await.expect("all voters answer");
    let held = other.mutex("x").lock().await.expect("it is free");
    let slow = slow(&voters);
    let before = a_crowd(&client);
    sleep(ms(1)).await;
    x(&client).await;
    sleep(ms(1)).await;
    let after = take(&client, CROWD..2 * CROWD);
    sleep(ms(1)).await;
    (client, held, [before, after], slow)
}

/// A task that wants `x`, and says when it has had it.
fn want_x(client: &Quorate, name: &'static str, had: &Arc<Mutex<Vec<&'static str>>>) {
    let (mutex, had) = (client.mutex("x"), Arc::clone(had));
    tokio::spawn(async move {
        let guard = mutex.lock().await.expect("all voters answer");
        had.lock().unwrap().push(name);
        guard.release().await.expect("all voters answer");
    });
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_leave_to_ask_has_its_place_in_line_already() {
    let had = Arc::default();
    let first = async |client: &Quorate| want_x(client, "first", &had);
    let (client, held, _crowd, _slow) = one_waits_for_leave_in_a_crowd(first).await;
    want_x(&client, "second", &had);
    // By then the first has been refused, and the others still ask.
    sleep(ms(600)).await;
    want_x(&client, "third", &had);
    sleep(ms(10)).await;
    held.release().await.expect("it is confirmed");
    sleep(secs(5)).await;
    assert_eq!(*had.lock().unwrap(), ["first", "second", "third"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_stands_behind_one_that_was_refused_hears_that_at_its_limit() {
    let had = Arc::default();
    let first = async |client: &Quorate| want_x(client, "first", &had);
    let (client, _held, _crowd, _slow) = one_waits_for_leave_in_a_crowd(first).await;
    let watch = Stopwatch::start();
    let within = client.mutex("x").lock_within(ms(650)).await.expect("who has it is known");
    assert!(within.is_none() && watch.time() == ms(650), "{:?}", watch.time());
}

/// The first in line gives up at the same moment, and the next one comes first with its limit over.
#[tokio::test(start_paused = true)]
async fn a_limit_that_has_come_waits_for_no_leave_to_ask() {
    let (voters, client) = client().await;
    let other = Quorate::builder().embedded(&voters).connect().await.expect("all voters answer");
    let _held = other.mutex("x").lock().await.expect("it is free");
    let watch = Stopwatch::start();
    let x = client.mutex("x");
    let second = async {
        sleep(ms(10)).await;
        no_acquire_is_answered(&voters);
        let crowd = a_crowd(&client);
        sleep(ms(10)).await;
        (x.lock_within(ms(80)).await, crowd)
    };
    let (first, (second, _crowd)) = tokio::join!(x.lock_within(ms(100)), second);
    for within in [first, second] {
        assert!(within.expect("the line knows who has it").is_none());
    }
    assert_eq!(watch.time(), ms(100));
    // Of several locks it is the limit for all.
    let several = [client.mutex("a"), client.mutex("b")];
    let several = client.lock_all(several).lock_within(ms(80)).await.expect_err("nobody asks");
    assert!(several.is_overloaded() && watch.time() == ms(180), "{several}, {:?}", watch.time());
}
