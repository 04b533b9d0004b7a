//! What must not be left on the voters.

use std::time::Duration;

use quorate::{
    HoldId,
    embedded::{EmbeddedVoter, Reply},
};
use tokio::time::sleep;

pub(crate) const LOCK: &str = "quorate:{a}";
const WRITER: &str = "quorate:{a}:rw:writer";
const READERS: &str = "quorate:{a}:rw:readers";
const ENDS: &str = "quorate:{a}:semaphore:ends";
const LEADER: &str = "quorate:{a}:election";
const QUEUES: [&str; 4] = [
    "quorate:{a}:queue",
    "quorate:{a}:rw:queue",
    "quorate:{a}:semaphore:queue",
    "quorate:{a}:election:queue",
];

/// No hold but `allowed` has a vote of any of these voters.
pub(crate) fn only(voters: &[EmbeddedVoter], allowed: Option<&HoldId>) -> Result<(), String> {
    for voter in voters {
        for (hold, _) in votes(voter) {
            if allowed.is_none_or(|allowed| allowed.as_str() != hold) {
                return Err(format!("{} still has a vote for {hold}", voter.label()));
            }
        }
    }
    Ok(())
}

/// Nobody waits in a queue of any of these voters.
pub(crate) fn nobody_waits(voters: &[EmbeddedVoter]) -> Result<(), String> {
    for voter in voters {
        if voter.keys().iter().any(|key| QUEUES.contains(&&**key)) {
            return Err(format!("{} still has a queue", voter.label()));
        }
    }
    Ok(())
}

/// All who wait in a queue of these voters do so for a mutex that is not fair.
pub(crate) fn nobody_waits_in_order(voters: &[EmbeddedVoter]) -> Result<(), String> {
    for voter in voters {
        for queue in QUEUES {
            let Ok(Reply::List(places)) = voter.command(&["ZRANGE", queue, "0", "-1"]) else {
                return Err(format!("{} has no list of places", voter.label()));
            };
            let is_ordered =
                |place: &&Reply| !matches!(place, Reply::Text(text) if text.contains(":~"));
            if let Some(place) = places.iter().find(is_ordered) {
                return Err(format!("{} still has the place {place:?}", voter.label()));
            }
        }
    }
    Ok(())
}

/// The keys but for those that remember tokens, or with how many permits somebody asked: they
/// outlast their locks.
fn keys_but_fences(voter: &EmbeddedVoter) -> Vec<String> {
    let mut keys = voter.keys();
    keys.retain(|key| !key.ends_with(":fence") && !key.ends_with(":permits"));
    keys
}

/// No voter has a key, and nobody listens to any lock's channel. Those by which clients are called
/// stay for as long as they live.
pub(crate) fn nothing(voters: &[EmbeddedVoter]) -> Result<(), String> {
    for voter in voters {
        let (keys, mut subscriptions) = (keys_but_fences(voter), voter.subscriptions());
        subscriptions.retain(|channel| !channel.starts_with("quorate:calls:"));
        if !keys.is_empty() || !subscriptions.is_empty() {
            let label = voter.label();
            return Err(format!("{label} still has keys {keys:?}, listeners {subscriptions:?}"));
        }
    }
    Ok(())
}

/// Every voter has this hold's vote, with this count.
pub(crate) fn counts(voters: &[EmbeddedVoter], hold: &HoldId, count: u32) -> Result<(), String> {
    let expected = vec![(hold.as_str().to_owned(), count.to_string())];
    for voter in voters {
        let votes = votes(voter);
        if votes != expected {
            return Err(format!("{} has votes {votes:?}, not {expected:?}", voter.label()));
        }
    }
    Ok(())
}

/// Every voter has this leader, and the same value of it, which is one of these.
pub(crate) fn says(voters: &[EmbeddedVoter], hold: &HoldId, one_of: &[&str]) -> Result<(), String> {
    let said: Vec<_> = voters.iter().map(votes).collect();
    let is_one = |said: &str| one_of.iter().any(|value| said.ends_with(&format!(" ={value}")));
    match &said[0][..] {
        [(by, what)] if by == hold.as_str() && is_one(what) => {}
        other => return Err(format!("{other:?} is not {hold} with one of {one_of:?}")),
    }
    if said.iter().any(|other| *other != said[0]) {
        return Err(format!("the voters do not agree: {said:?}"));
    }
    Ok(())
}

/// No key stays for ever.
pub(crate) fn all_expire(voters: &[EmbeddedVoter]) -> Result<(), String> {
    for voter in voters {
        for key in voter.keys() {
            let left = voter.command(&["PTTL", &key]).expect("PTTL is answered");
            if !matches!(left, Reply::Int(0..)) {
                return Err(format!("{} of {}: {left:?} left", key, voter.label()));
            }
        }
    }
    Ok(())
}

/// Holds of every kind and their counts. Of those that read or have permits no voter has one: they
/// have entered once. Of several permits of a hold each has an entry.
fn votes(voter: &EmbeddedVoter) -> Vec<(String, String)> {
    let mut votes = Vec::new();
    for key in [LOCK, WRITER, LEADER] {
        votes.extend(pairs(voter, &["HGETALL", key]));
    }
    let readers = pairs(voter, &["ZRANGE", READERS, "0", "-1", "WITHSCORES"]).into_iter();
    votes.extend(readers.map(|(hold, _)| (hold, "1".to_owned())));
    let permits = pairs(voter, &["ZRANGE", ENDS, "0", "-1", "WITHSCORES"]).into_iter();
    let permits = permits.filter(|(hold, _)| !hold.contains('+'));
    votes.extend(permits.map(|(hold, _)| (hold, "1".to_owned())));
    votes
}

fn pairs(voter: &EmbeddedVoter, words: &[&str]) -> Vec<(String, String)> {
    let text = |reply: &Reply| match reply {
        Reply::Text(text) => text.clone(),
        other => panic!("no text: {other:?}"),
    };
    match voter.command(words).expect("it is answered") {
        Reply::List(all) => all.chunks(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect(),
        other => panic!("no list: {other:?}"),
    }
}

pub(crate) fn renewals(voters: &[EmbeddedVoter]) -> u64 {
    let scripts = ["mutex/renew", "rw/renew", "semaphore/renew", "election/renew"];
    voters.iter().flat_map(|voter| scripts.map(|script| voter.runs(script))).sum()
}

/// Waits until the check is passed; its last complaint where it is not in time.
pub(crate) async fn within(
    limit: Duration,
    check: impl Fn() -> Result<(), String>,
) -> Result<(), String> {
    let step = Duration::from_millis(5);
    for _ in 0..limit.as_millis() / step.as_millis() {
        if check().is_ok() {
            return Ok(());
        }
        sleep(step).await;
    }
    check().map_err(|why| format!("after {limit:?} {why}"))
}

#[tokio::test(start_paused = true)]
async fn the_checks_catch_what_is_left_behind() {
    let voters = quorate::embedded::voters(3);
    let quorum = quorate::Quorate::builder().embedded(&voters).connect().await.expect("it answers");
    assert_eq!(nothing(&voters), Ok(()));
    let guard = quorum.mutex("a").lock().await.expect("it is free");
    assert!(only(&voters, None).is_err() && nothing(&voters).is_err());
    assert_eq!(nobody_waits(&voters), Ok(()));
    let waiter = quorum.fair_mutex("a");
    let waiter = tokio::spawn(async move { waiter.lock().await });
    within(Duration::from_secs(1), || nobody_waits(&voters).map_or(Ok(()), |()| Err("yet".into())))
        .await
        .expect("it waits");
    waiter.abort();
    within(Duration::from_secs(1), || nobody_waits(&voters)).await.expect("it has left");
    assert_eq!(only(&voters, Some(guard.hold())), Ok(()));
    assert_eq!(counts(&voters, guard.hold(), 1), Ok(()));
    voters[2].command(&["HSET", LOCK, guard.hold().as_str(), "2"]).expect("it is set");
    assert!(counts(&voters, guard.hold(), 1).is_err());
    voters[2].command(&["HSET", LOCK, "stray:1", "1"]).expect("it is planted");
    assert!(only(&voters, Some(guard.hold())).is_err());
    let before = renewals(&voters);
    sleep(Duration::from_secs(30)).await;
    assert!(renewals(&voters) > before);
}

#[tokio::test(start_paused = true)]
async fn the_checks_catch_what_a_read_or_a_write_leaves_behind() {
    let voters = quorate::embedded::voters(3);
    let quorum = quorate::Quorate::builder().embedded(&voters).connect().await.expect("it answers");
    let lock = quorum.rw_lock("a");
    let read = lock.read().await.expect("it is free");
    assert!(only(&voters, None).is_err());
    assert_eq!(counts(&voters, read.hold(), 1), Ok(()));
    let writer = tokio::spawn(async move { lock.write().await });
    within(Duration::from_secs(1), || nobody_waits(&voters).map_or(Ok(()), |()| Err("yet".into())))
        .await
        .expect("it waits");
    let before = renewals(&voters);
    sleep(Duration::from_secs(30)).await;
    assert!(renewals(&voters) > before);
    read.release().await.expect("all confirm");
    let written = writer.await.expect("no panic").expect("it is free");
    assert_eq!(only(&voters, Some(written.hold())), Ok(()));
    let under = written.read().await.expect("all answer");
    assert!(only(&voters, Some(written.hold())).is_err());
    assert!(counts(&voters, written.hold(), 1).is_err());
    drop(under);
}
