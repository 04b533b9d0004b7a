//! What must not be left on the voters.

use quorate::embedded::Record;
use quorate_tests::prelude::*;

use crate::cancel::kinds::Access;

const LOCK: &str = "quorate:{a}";
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

/// Holds, places or keys of a voter, and what it has of each.
type Votes = Vec<(String, String)>;

/// Finds one who may not be on any of these voters.
fn none(
    voters: &[EmbeddedVoter],
    what: &str,
    is_left: impl Fn(&(String, String)) -> bool,
    entries: impl Fn(&EmbeddedVoter) -> Votes,
) -> Result<(), String> {
    for voter in voters {
        if let Some(left) = entries(voter).iter().find(|entry| is_left(entry)) {
            return Err(format!("{} still has {what} {left:?}", voter.label()));
        }
    }
    Ok(())
}

/// No hold but `allowed` has a vote of any of these voters.
pub(crate) fn only(voters: &[EmbeddedVoter], allowed: Option<&HoldId>) -> Result<(), String> {
    let is_allowed = |hold: &str| allowed.is_some_and(|allowed| allowed.as_str() == hold);
    none(voters, "a vote for", |(hold, _)| !is_allowed(hold), votes)
}

/// Nobody waits in a queue of any of these voters.
pub(crate) fn nobody_waits(voters: &[EmbeddedVoter]) -> Result<(), String> {
    none(voters, "the place", |_| true, places)
}

/// All who wait in a queue of these voters do so for a mutex that is not fair.
pub(crate) fn nobody_waits_in_order(voters: &[EmbeddedVoter]) -> Result<(), String> {
    none(voters, "the place", |(place, _)| !place.contains(":~"), places)
}

/// No key stays for ever.
pub(crate) fn all_expire(voters: &[EmbeddedVoter]) -> Result<(), String> {
    let left = |record: Record| (record.key, format!("{:?}", record.left_ms));
    let keys = |voter: &EmbeddedVoter| voter.records().into_iter().map(left).collect();
    none(voters, "for ever", |(_, left)| left == "None", keys)
}

/// No voter has a key, and nobody listens to any lock's channel. Keys that remember tokens, or with
/// how many permits somebody asked, outlast their locks; the channels by which clients are called
/// stay for as long as they live.
pub(crate) fn nothing(voters: &[EmbeddedVoter]) -> Result<(), String> {
    for voter in voters {
        let (mut keys, mut channels) = (voter.keys(), voter.subscriptions());
        keys.retain(|key| !key.ends_with(":fence") && !key.ends_with(":permits"));
        channels.retain(|channel| !channel.starts_with("quorate:calls:"));
        if !keys.is_empty() || !channels.is_empty() {
            return Err(format!("{} has keys {keys:?}, listeners {channels:?}", voter.label()));
        }
    }
    Ok(())
}

/// Every voter has one vote, for this hold, and with the same count, which is right.
fn all_have(
    voters: &[EmbeddedVoter],
    hold: &HoldId,
    is_right: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let all: Vec<_> = voters.iter().map(votes).collect();
    let is_one = |votes: &Votes| votes.len() == 1 && votes[0].0 == hold.as_str();
    if all.iter().all(|votes| is_one(votes) && is_right(&votes[0].1) && *votes == all[0]) {
        return Ok(());
    }
    Err(format!("the voters have {all:?} for {hold}"))
}

/// Every voter has this hold's vote, with this count.
pub(crate) fn counts(voters: &[EmbeddedVoter], hold: &HoldId, count: u32) -> Result<(), String> {
    all_have(voters, hold, |stored| stored == count.to_string())
}

/// Every voter has this leader, and the same record of it, with this value.
pub(crate) fn says(voters: &[EmbeddedVoter], hold: &HoldId, value: &str) -> Result<(), String> {
    all_have(voters, hold, |stored| stored.ends_with(&format!(" ={value}")))
}

fn entries(voter: &EmbeddedVoter, keys: &[&str]) -> Votes {
    let records = voter.records().into_iter().filter(|record| keys.contains(&&*record.key));
    records.flat_map(|record| record.fields).collect()
}

/// Holds of every kind and their counts. Of those that read or have permits no voter has one: they
/// have entered once. Of several permits of a hold each has an entry.
fn votes(voter: &EmbeddedVoter) -> Votes {
    let permits = entries(voter, &[ENDS]).into_iter().filter(|(hold, _)| !hold.contains('+'));
    let shared = entries(voter, &[READERS]).into_iter().chain(permits);
    let shared = shared.map(|(hold, _)| (hold, "1".into()));
    entries(voter, &[LOCK, WRITER, LEADER]).into_iter().chain(shared).collect()
}

fn places(voter: &EmbeddedVoter) -> Votes {
    entries(voter, &QUEUES)
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
    for (access, key, value) in [
        (Access::Lock, LOCK, "HSET"),
        (Access::Read, READERS, "ZADD"),
        (Access::Write, WRITER, "HSET"),
        (Access::Permit, ENDS, "ZADD"),
    ] {
        let voters = quorate::embedded::voters(3);
        let quorum = Quorate::builder().embedded(&voters).connect().await.expect("it answers");
        assert_eq!(nothing(&voters), Ok(()));
        let held = access.have(&quorum, None).await;
        let (hold, other) = (held.hold().clone(), quorum.clone());
        assert!(only(&voters, None).is_err() && nothing(&voters).is_err(), "{access:?}");
        assert_eq!((only(&voters, Some(&hold)), counts(&voters, &hold, 1)), (Ok(()), Ok(())));
        assert_eq!((nobody_waits(&voters), all_expire(&voters)), (Ok(()), Ok(())));
        let waiter = tokio::spawn(access.excludes().enter_and_leave(other));
        sleep(Duration::from_millis(5)).await;
        assert!(nobody_waits(&voters).is_err() && nobody_waits_in_order(&voters).is_err());
        waiter.abort();
        within(Duration::from_secs(1), || nobody_waits(&voters)).await.expect("it has left");
        let before = renewals(&voters);
        sleep(Duration::from_secs(30)).await;
        assert!(renewals(&voters) > before, "{access:?}");
        let (field, score) = if value == "HSET" { ("stray:1", "1") } else { ("9", "stray:1") };
        voters[2].command(&[value, key, field, score]).expect("it is planted");
        assert!(only(&voters, Some(&hold)).is_err() && counts(&voters, &hold, 1).is_err());
    }
}
