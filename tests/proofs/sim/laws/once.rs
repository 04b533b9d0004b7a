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
/// take out more.
fn without_ended(before: &[Record], after: &[Record]) -> Vec<Record> {
    let mut before = before.to_vec();
    let Some(ends) = after.iter().find(|record| record.key.ends_with(":semaphore:ends")) else {
        return before;
    };
    // The key ends with the last of its members.
    let end = |field: &(String, String)| field.1.parse::<i64>().expect("a moment");
    let last = ends.fields.iter().map(end).max();
    let Some(now) = last.zip(ends.left_ms).map(|(last, left)| last - left) else { return before };
    let is_left = |member: &str| ends.fields.iter().any(|(other, _)| other == member);
    let of_before = before.iter().find(|record| record.key == ends.key);
    let members = of_before.into_iter().flat_map(|record| &record.fields);
    let ended: Vec<String> = members
        .filter(|field| end(field) < now && !is_left(&field.0))
        .map(|(member, _)| member.clone())
        .collect();
    for record in &mut before {
        record.fields.retain(|(member, _)| !ended.contains(member));
    }
    before
}
