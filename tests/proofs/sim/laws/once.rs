//! A script that runs twice leaves the voter as it was after the first time.

use crate::sim::prelude::*;

pub(crate) fn ran(world: &World, run: &Ran<'_>, before: &[Record], after: &[Record]) {
    if run.again() && without_ended(before, after) != after && !is_let_in(run, before) {
        let what = format!("{} ran again and made {after:?} of {before:?}", run.script());
        world.breach(Law::Once, None, what);
    }
}

/// A call with several requests can run twice. One of them may be refused in the first run and
/// granted in the second, because a later one has freed permits: as if it had run only then.
fn is_let_in(run: &Ran<'_>, before: &[Record]) -> bool {
    let mut members = before.iter().flat_map(|record| &record.fields);
    run.script() == "semaphore/acquire"
        && run.answer().is_ok_and(|(code, ..)| code == 1)
        && members.all(|(member, _)| Some(&**member) != run.arg("hold"))
}

/// A call takes out only some of the members whose leases have ended, and so the second run may
/// take out more. Both run at one moment.
fn without_ended(before: &[Record], after: &[Record]) -> Vec<Record> {
    let mut kept = before.to_vec();
    for ends in before.iter().filter(|record| record.key.ends_with(ENDS)) {
        let end = |field: &(String, String)| field.1.parse::<i64>().expect("a moment");
        let last = ends.fields.iter().map(end).max();
        // The key ends with the last of its members, or in a millisecond where that one has ended.
        let now = match last.zip(ends.left_ms) {
            Some((last, left)) if left > 1 => last - left,
            _ => i64::MAX,
        };
        let members = after.iter().filter(|record| record.key == ends.key);
        let left: Vec<_> = members.flat_map(|record| &record.fields).map(|(one, _)| one).collect();
        let is_ended = |field: &&(String, String)| end(field) < now && !left.contains(&&field.0);
        let ended: Vec<_> = ends.fields.iter().filter(is_ended).map(|(one, _)| one).collect();
        let semaphore = ends.key.trim_end_matches(ENDS);
        let is_its = |key: &str| key.strip_prefix(semaphore).is_some_and(|key| KEYS.contains(&key));
        for record in kept.iter_mut().filter(|record| is_its(&record.key)) {
            record.fields.retain(|(member, _)| !ended.contains(&member));
        }
    }
    kept.retain(|record| !record.fields.is_empty());
    kept
}

const ENDS: &str = ":semaphore:ends";
const KEYS: [&str; 2] = [ENDS, ":semaphore:slots"];

#[tokio::test(start_paused = true)]
async fn a_second_run_may_take_out_more_of_any_semaphore_whose_leases_have_ended() {
    let voter = EmbeddedVoter::new("a");
    let tell = |words: &[&str]| voter.command(words).expect("it runs");
    let now = 1_700_000_000_000_i64;
    for (semaphore, members) in [("a", vec![("a:1", 400)]), ("b", vec![("b:1", -1), ("b:2", 400)])]
    {
        let [ends, slots] = KEYS.map(|key| format!("{semaphore}{key}"));
        for (slot, (member, left)) in members.iter().enumerate() {
            tell(&["ZADD", &ends, &(now + left).to_string(), member]);
            tell(&["ZADD", &slots, &slot.to_string(), member]);
        }
        for key in [ends, slots] {
            tell(&["PEXPIRE", &key, "400"]);
        }
    }
    let before = voter.records();
    let take_out = |member| KEYS.map(|key| tell(&["ZREM", &format!("b{key}"), member]));
    take_out("b:1");
    let after = voter.records();
    assert_eq!(without_ended(&before, &after), after);
    take_out("b:2");
    let after = voter.records();
    assert_ne!(without_ended(&before, &after), after, "its lease has not ended");
}
