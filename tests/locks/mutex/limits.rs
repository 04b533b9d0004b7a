//! A caller that gives the voters less time than they need.

use futures::future::BoxFuture;
use quorate_tests::prelude::*;

/// There and back.
const TRIP: Duration = ms(40);

fn far(voters: &[EmbeddedVoter]) -> Vec<FaultGuard> {
    all(voters, Fault::Delay { there: TRIP / 2, back: TRIP / 2 })
}

/// Asks for a lock with this limit, and says whether it got it; a guard is given back.
type Ask = fn(Quorate, Duration) -> BoxFuture<'static, Result<bool, Error>>;

macro_rules! ask {
    ($client:ident, $limit:ident => $guard:expr) => {
        |$client, $limit| Box::pin(async move { Ok($guard.is_some()) })
    };
}

const KINDS: [(&str, Ask); 10] = [
    ("mutex", ask!(client, limit => client.mutex("a").lock_within(limit).await?)),
    (
        "mutex, or busy",
        ask!(client, limit => {
            match client.mutex("a").lock_or_busy(limit).await {
                Err(error) if error.is_busy() => None,
                entered => Some(entered?),
            }
        }),
    ),
    ("fair mutex", ask!(client, limit => client.fair_mutex("a").lock_within(limit).await?)),
    ("read", ask!(client, limit => client.rw_lock("a").read_within(limit).await?)),
    ("write", ask!(client, limit => client.rw_lock("a").write_within(limit).await?)),
    (
        "permits",
        ask!(client, limit => {
            client.semaphore("a", 3).acquire_many_within(2, limit).await?
        }),
    ),
    ("election", ask!(client, limit => client.election("a").campaign_within("x", limit).await?)),
    (
        "several",
        ask!(client, limit => {
            let locks = [client.fair_mutex("a").into(), client.rw_lock("b").writing()];
            client.lock_all(locks).lock_within(limit).await?
        }),
    ),
    (
        "read under the own write",
        ask!(client, limit => {
            let lock = client.rw_lock("a").owner(&Owner::new());
            let Some(_write) = lock.write_within(limit).await? else { return Ok(false) };
            lock.read_within(limit).await?
        }),
    ),
    (
        "once more",
        ask!(client, limit => {
            let mutex = client.mutex("a").owner(&Owner::new());
            let Some(_guard) = mutex.lock_within(limit).await? else { return Ok(false) };
            mutex.lock_within(limit).await?
        }),
    ),
];

/// Several are asked for together, and then one of them is waited for.
fn trips(kind: &str) -> u32 {
    if kind == "several" { 2 } else { 1 }
}

// What had no time to answer was not silent.
#[tokio::test(start_paused = true)]
async fn a_limit_shorter_than_a_round_trip_is_no_silence_of_the_voters() {
    for (kind, ask) in KINDS {
        let voters = embedded::voters(3);
        let (ours, theirs) = (client(&voters).await, client(&voters).await);
        let _far = far(&voters);
        for limit in [0, 1, 5, 19, 39, 41].map(ms) {
            let entered = ask(ours.clone(), limit).await;
            assert!(matches!(entered, Ok(true)), "{kind}, {limit:?}: {entered:?}");
            // Until it is given back.
            sleep(secs(1)).await;
        }
        let _guards = (
            theirs.mutex("a").lock().await.unwrap(),
            theirs.rw_lock("a").write().await.unwrap(),
            theirs.semaphore("a", 3).acquire_many(2).await.unwrap(),
            theirs.election("a").campaign("y").await.unwrap(),
        );
        for limit in [41, 39, 19, 5, 1, 0].map(ms) {
            let watch = Stopwatch::start();
            let entered = ask(ours.clone(), limit).await;
            assert!(matches!(entered, Ok(false)), "{kind}, {limit:?}: {entered:?}");
            let most = trips(kind) * TRIP + ms(4);
            assert!(watch.time() <= most, "{kind}, {limit:?}: {:?}", watch.time());
        }
    }
}

// A voter has 200 ms to answer, and never longer. The silence of a whole deadline is one, however
// short the limit.
#[tokio::test(start_paused = true)]
async fn voters_that_do_not_answer_within_their_deadline_are_silent_whatever_the_limit() {
    for (kind, ask) in KINDS {
        let voters = embedded::voters(3);
        let builder = Quorate::builder().embedded(&voters).voter_deadline(ms(200));
        let ours = builder.connect().await.expect("all voters answer");
        let _silence = all(&voters, Fault::DropRequests);
        for limit in [0, 5, 199, 300].map(ms) {
            let watch = Stopwatch::start();
            let error = ask(ours.clone(), limit).await.expect_err("nobody answers");
            assert!(error.is_no_quorum(), "{kind}, {limit:?}: {error}");
            let (took, most) = (watch.time(), limit.max(trips(kind) * ms(200)));
            assert!(took >= ms(200) && took <= most + ms(4), "{kind}, {limit:?}: {took:?}");
        }
    }
}

// Behind it another task asks, whose attempt comes to nothing: it goes away.
#[tokio::test(start_paused = true)]
async fn a_limit_that_comes_while_another_task_asks_is_no_silence_when_that_one_goes_away() {
    let (voters, client) = with_client(3).await;
    let _far = far(&voters);
    let first = tokio::spawn(client.mutex("a").lock());
    sleep(ms(1)).await;
    let second = tokio::spawn(client.mutex("a").lock_within(ms(10)));
    sleep(ms(20)).await;
    first.abort();
    let entered = second.await.expect("no panic").expect("all voters answer");
    assert!(entered.is_some(), "nobody else wants it");
}
