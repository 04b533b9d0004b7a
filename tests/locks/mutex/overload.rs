//! A client that wants more locks at once than it asks for at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use quorate::{
    Quorate,
    embedded::{self, EmbeddedVoter, Fault, FaultGuard},
};
use tokio::{task::JoinSet, time::sleep};

use quorate_tests::fixture::{Stopwatch, ms, secs};

/// As `docs/protocol.md` says.
const AT_ONCE: usize = 256;

/// A client with a patience of 2 s, and its voters.
async fn client() -> (Vec<EmbeddedVoter>, Quorate) {
    let voters = embedded::voters(3);
    let client = Quorate::builder().embedded(&voters).quorum_timeout(secs(2)).connect().await;
    (voters, client.expect("all voters answer"))
}

/// Replies take so long that everybody has come by then.
fn slow(voters: &[EmbeddedVoter]) -> Vec<FaultGuard> {
    let delay = Fault::Delay { there: ms(0), back: ms(100) };
    voters.iter().map(|voter| voter.fault(delay)).collect()
}

/// Counts the calls that are sent to a voter.
fn counted(voter: &EmbeddedVoter) -> Arc<AtomicUsize> {
    let count = Arc::<AtomicUsize>::default();
    let calls = Arc::clone(&count);
    voter.fault_each(move |sent| {
        calls.fetch_add(usize::from(sent.script() == Some("mutex/acquire")), Ordering::Relaxed);
        Vec::new()
    });
    count
}

/// Takes a thousand locks, each its own.
fn a_thousand(client: &Quorate) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for number in 0..1000 {
        let mutex = client.mutex(number.to_string());
        tasks.spawn(async move {
            let guard = mutex.lock().await.expect("all voters answer");
            guard.release().await.expect("all voters answer");
        });
    }
    tasks
}

#[tokio::test(start_paused = true)]
async fn no_more_attempts_are_made_at_once_and_everybody_gets_in() {
    let (voters, client) = client().await;
    let calls = counted(&voters[0]);
    let slow = slow(&voters);
    let mut tasks = a_thousand(&client);
    sleep(ms(50)).await;
    assert_eq!(voters[0].runs("mutex/acquire"), AT_ONCE as u64);
    // One left at once, and another; the others gathered.
    let calls = calls.load(Ordering::Relaxed);
    assert!(calls <= 2 + AT_ONCE / 32 + 1, "{calls} calls");
    while let Some(done) = tasks.join_next().await {
        done.expect("no task failed");
    }
    drop(slow);
}

#[tokio::test(start_paused = true)]
async fn whoever_cannot_wait_for_its_turn_is_told_that_this_client_is_overloaded() {
    let (voters, client) = client().await;
    let silent: Vec<_> = voters.iter().map(|voter| voter.fault(Fault::DropReplies)).collect();
    let mut tasks = a_thousand(&client);
    sleep(ms(50)).await;
    let error = client.mutex("x").lock_within(ms(100)).await.expect_err("none ended");
    assert!(error.is_overloaded() && !error.is_no_quorum(), "{error}");
    let told = "lock `x` was not asked for in 100ms: this client has 256 attempts under way, \
                and makes no more at once";
    assert_eq!(error.to_string(), told);
    assert_eq!(voters[0].keys().iter().filter(|key| key.contains("{x}")).count(), 0);
    drop(silent);
    let guard = client.mutex("x").try_lock().await.expect("its turn comes within the patience");
    assert!(guard.is_some());
    while let Some(done) = tasks.join_next().await {
        done.expect("no task failed");
    }
}

#[tokio::test(start_paused = true)]
async fn releases_and_renewals_do_not_wait_for_their_turn() {
    let (voters, client) = client().await;
    let held = client.mutex("held").lease(ms(900)).lock().await.expect("it is free");
    let released = client.mutex("released").lock().await.expect("it is free");
    // Acquires alone are not answered.
    for voter in &voters {
        voter.fault_each(|sent| {
            let silent = sent.script() == Some("mutex/acquire");
            if silent { vec![Fault::DropReplies] } else { Vec::new() }
        });
    }
    let _tasks = a_thousand(&client);
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
    let mut tasks = JoinSet::new();
    for number in 0..5000 {
        let mutex = client.mutex(number.to_string()).lease(secs(3));
        tasks.spawn(async move { mutex.lock().await.expect("it is free") });
    }
    let guards = tasks.join_all().await;
    let far = Fault::Delay { there: ms(50), back: ms(50) };
    let _far: Vec<_> = voters.iter().map(|voter| voter.fault(far)).collect();
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
    let mut tasks = a_thousand(&client);
    sleep(ms(1)).await;
    assert_eq!(calls.load(Ordering::Relaxed), AT_ONCE);
    while let Some(done) = tasks.join_next().await {
        done.expect("no task failed");
    }
    let none = Quorate::builder().embedded(&voters).batch_size(0).connect().await;
    assert!(none.is_err_and(|error| error.is_invalid()));
}

/// What is known in a line is told at once: its first has had an answer, and need not ask again.
#[tokio::test(start_paused = true)]
async fn whoever_finds_a_line_for_its_lock_hears_what_is_known_there_without_a_turn() {
    let (voters, client) = client().await;
    let held = client.mutex("held").lock().await.expect("it is free");
    let waiting = client.mutex("held");
    let waiting = tokio::spawn(async move { waiting.lock().await.map(drop) });
    sleep(ms(50)).await;
    // From here on acquires alone are not answered.
    for voter in &voters {
        voter.fault_each(|sent| {
            let silent = sent.script() == Some("mutex/acquire");
            if silent { vec![Fault::DropReplies] } else { Vec::new() }
        });
    }
    let _tasks = a_thousand(&client);
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
    let _silent: Vec<_> = voters.iter().map(|voter| voter.fault(Fault::DropReplies)).collect();
    let _tasks = a_thousand(&client);
    sleep(ms(50)).await;
    let first = client.mutex("x");
    let _first = tokio::spawn(async move { first.lock().await.map(drop) });
    sleep(ms(1)).await;
    let within = client.mutex("x").lock_within(ms(20)).await.expect_err("nobody asked");
    assert!(within.is_overloaded(), "{within}");
}
