//! The line of one client: what a fair mutex does not have.

use quorate::Mutex;
use quorate_tests::{inside, prelude::*};

claims!(inside: from_one_client_only_one_candidate_goes_out);

// The lock is another client's. Of the sixteen waiters only the first asks, and only once: the
// client has listened since it connected. The holder has asked once.
async fn from_one_client_only_one_candidate_goes_out(on: Fixture) {
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let client = on.client().await;
    // Until it is known to be called.
    sleep(ms(1)).await;
    let waiting: JoinSet<_> = (0..16).map(|_| turn(client.mutex("a"))).collect();
    on.until_queued().await;
    sleep(ms(100)).await;
    assert_eq!(on.runs("mutex/acquire").unwrap(), vec![2; on.voters()]);
    guard.release().await.unwrap();
    waiting.join_all().await;
    on.until_clean().await;
}

/// How a caller waits in line, and what it is told.
type Told = JoinHandle<(Result<bool, Error>, Duration)>;

/// Comes into line now; measures from its coming on.
async fn waits(mutex: Mutex, limit: Option<Duration>) -> Told {
    let watch = Stopwatch::start();
    let waiter = tokio::spawn(async move {
        let entered = match limit {
            Some(limit) => mutex.lock_within(limit).await.map(|guard| guard.is_some()),
            None => mutex.lock().await.map(|_| true),
        };
        (entered, watch.time())
    });
    sleep(ms(1)).await;
    waiter
}

/// That it was told of the silence between these times after its coming.
async fn must_hear_of_silence(told: Told, (least, most): (Duration, Duration)) {
    let (entered, after) = told.await.expect("no panic");
    let error = entered.expect_err("no voter answers");
    assert!(error.is_no_quorum() && error.voters().len() == 3, "{error}");
    assert!(after >= least && after <= most, "told after {after:?}: {error}");
}

/// Callers of a lock whose voters are silent: when each comes after the one before it, its limit, and
/// between which times after its coming it is told so, all in ms.
type Silent = (u64, Option<u64>, (u64, u64));

// The patience of a caller is its own, wherever it stands: 2 s from its coming. The last attempt begins
// no later than that ends, and takes 200 ms.
const PATIENT: Silent = (1, None, (1_990, 2_202));

const SILENT_LINES: [&[Silent]; 4] = [
    // The first has asked for 100 ms of 200: nothing is known, which is not a no. What its attempt
    // comes to is worth waiting for.
    &[PATIENT, (1, Some(100), (100, 202))],
    &[PATIENT, PATIENT, PATIENT, PATIENT, PATIENT, PATIENT, (1, Some(2_600), (2_600, 2_602))],
    // Whoever stood before has asked the same voters: patience does not begin anew when another
    // comes first. The second has 50 ms in front, too few for an answer.
    &[(1, Some(1_900), (1_900, 1_901)), (1, Some(1_950), (1_950, 1_951)), PATIENT],
    &[PATIENT, (1_900, None, (2_000, 2_202))],
];

#[tokio::test(start_paused = true)]
async fn each_in_a_silent_line_is_told_so_when_its_own_patience_or_limit_ends() {
    for line in SILENT_LINES {
        let (voters, client) = impatient().await;
        let _silence = all(&voters, Fault::DropRequests);
        let mut told = Vec::new();
        for (after, limit, _) in line {
            sleep(ms(after - 1)).await;
            told.push(waits(client.mutex("a"), limit.map(ms)).await);
        }
        for (told, (.., (least, most))) in told.into_iter().zip(line) {
            must_hear_of_silence(told, (ms(*least), ms(*most))).await;
        }
    }
}

// All servers are started anew, and are then in quarantine: whoever has named a time long enough
// for that gets the lock. What a client bears without a limit is another matter.
#[tokio::test(start_paused = true)]
async fn a_limit_that_the_caller_names_outlasts_an_outage() {
    let (voters, client) = impatient().await;
    let silence = all(&voters, Fault::DropRequests);
    let limit = secs(90);
    let watch = Stopwatch::start();
    let mutex = tokio::spawn(client.mutex("a").lock_within(limit));
    let fair = tokio::spawn(client.fair_mutex("b").lock_within(limit));
    let write = tokio::spawn(client.rw_lock("c").write_within(limit));
    sleep(secs(40)).await;
    drop(silence);
    let _mutex = mutex.await.expect("no panic").expect("all voters answer").expect("it is free");
    let _fair = fair.await.expect("no panic").expect("all voters answer").expect("it is free");
    let _write = write.await.expect("no panic").expect("all voters answer").expect("it is free");
    assert!(watch.time() < secs(42), "{:?}", watch.time());
}

// As where the second is told of it.
#[tokio::test(start_paused = true)]
async fn patience_does_not_begin_anew_when_one_before_gives_up() {
    let (voters, client) = impatient().await;
    let _silence = all(&voters, Fault::DropRequests);
    let first = waits(client.mutex("a"), Some(ms(1_900))).await;
    let second = waits(client.mutex("a"), Some(ms(1_950))).await;
    let third = waits(client.mutex("a"), None).await;
    must_hear_of_silence(first, (ms(1_900), ms(1_901))).await;
    sleep(ms(20)).await;
    second.abort();
    must_hear_of_silence(third, (ms(2_000), ms(2_202))).await;
}

// The last attempt begins when 2 s are over: the line goes on.
#[tokio::test(start_paused = true)]
async fn an_answer_to_the_first_in_line_ends_the_silence_for_all() {
    let (voters, client) = impatient().await;
    let silence = all(&voters, Fault::DropRequests);
    let mut told = Vec::new();
    for _ in 0..5 {
        told.push(waits(client.mutex("a"), None).await);
    }
    sleep(ms(1_700)).await;
    drop(silence);
    for told in told {
        assert!(told.await.expect("no panic").0.expect("all voters answer"));
    }
}

// With a lease of 400 ms voters have 40 ms to answer, and it takes them 60.
#[tokio::test(start_paused = true)]
async fn voters_that_are_too_slow_for_the_first_in_line_are_not_so_for_one_with_more_time() {
    let (voters, client) = impatient().await;
    let _far = all(&voters, Fault::Delay { there: ms(30), back: ms(30) });
    let hurried = waits(client.mutex("a").lease(ms(400)), None).await;
    let other = waits(client.mutex("a"), None).await;
    must_hear_of_silence(hurried, (ms(2_000), ms(2_042))).await;
    let (entered, after) = other.await.expect("no panic");
    assert!(entered.expect("all voters answer") && after <= ms(2_202), "{after:?}");
}

// Another client holds the lock. One of this client's waits in the queue of the fair mutex of the
// same name, which is the same lock, and asks nobody on behalf of the line.
#[tokio::test(start_paused = true)]
async fn what_was_heard_long_ago_does_not_shorten_the_patience() {
    let (voters, client) = impatient().await;
    let holder = inside::client(&voters).await;
    let guard = holder.mutex("a").lock().await.expect("it is free");
    let fair = tokio::spawn(client.fair_mutex("a").lock());
    sleep(ms(10)).await;
    let short = all(&voters, Fault::DropRequests);
    assert!(client.mutex("a").try_lock().await.expect_err("nobody answers").is_no_quorum());
    sleep(ms(50)).await;
    drop(short);
    sleep(secs(15)).await;
    let short = all(&voters, Fault::DropRequests);
    let waiter = waits(client.mutex("a"), None).await;
    sleep(ms(300)).await;
    assert!(!waiter.is_finished(), "{:?}", waiter.await);
    drop(short);
    guard.release().await.expect("it is held");
    drop(fair.await.expect("no panic").expect("all voters answer"));
    assert!(waiter.await.expect("no panic").0.expect("all voters answer"));
}

// As the one before: that it was another's then says nothing now.
#[tokio::test(start_paused = true)]
async fn what_was_heard_long_ago_is_no_answer_to_a_hurried_caller() {
    let (voters, client) = impatient().await;
    let holder = inside::client(&voters).await;
    let _guard = holder.mutex("a").lock().await.expect("it is free");
    let fair = tokio::spawn(client.fair_mutex("a").lock());
    sleep(ms(10)).await;
    assert!(client.mutex("a").try_lock().await.expect("all voters answer").is_none());
    sleep(secs(15)).await;
    let _silence = all(&voters, Fault::DropRequests);
    let hurried = waits(client.mutex("a"), Some(ms(100))).await;
    // The voters have as long to answer, whatever the limit.
    must_hear_of_silence(hurried, (ms(200), ms(202))).await;
    fair.abort();
}
