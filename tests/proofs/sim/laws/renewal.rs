//! No script takes the vote of another's hold or moves its deadline, a renewal shortens nothing, and
//! nobody gives up what somebody holds. A voter that is full keeps and ends what it has.

use crate::sim::{locks::votes, prelude::*, voters::OUT_OF_MEMORY};

/// `elapsed`: the time since `before` was so.
pub(crate) fn ran(
    world: &World,
    voter: usize,
    run: &Ran<'_>,
    (before, elapsed): (&[Record], Duration),
    after: &[Record],
) {
    let Some(hold) = run.arg("hold") else { return };
    if locked(&world.ledger).wild.contains(&voter) {
        return;
    }
    let script = run.script();
    let after = votes(after, &keys(run));
    for (vote, left_ms) in standing(run, (before, elapsed)) {
        let now = after.iter().find(|now| now.hold == vote.hold);
        let is_passed_on = script == "mutex/pass" && run.arg("former") == Some(vote.hold);
        if vote.hold != hold && !is_passed_on {
            let (whose, ends_ms) = (vote.hold, now.map(|now| now.ends_ms));
            if ends_ms.is_none() {
                let what = format!("{script} for {hold} took the vote of {whose} on voter {voter}");
                world.breach(Law::RenewalNeverHarms, None, what);
            } else if ends_ms != Some(vote.ends_ms) {
                let what = format!("{script} for {hold} moved the end of {whose} on voter {voter}");
                world.breach(Law::ReadersApart, None, what);
            }
            continue;
        }
        let keeps = script.ends_with("/acquire") || script.ends_with("/renew");
        if keeps && is_elsewhere(run, &vote) {
            continue;
        }
        let is_shorter = |now: &Vote<'_>| now.left_ms.is_some() && now.left_ms < left_ms;
        match now {
            Some(now) if keeps && !is_shorter(now) => {}
            _ if keeps => {
                let what = format!("{script} shortened the vote of {hold} on voter {voter}");
                world.breach(Law::RenewalNeverHarms, None, what);
            }
            _ => check_giving_up(world, run, hold),
        }
    }
}

/// A vote is given back only for a hold that is over.
fn check_giving_up(world: &World, run: &Ran<'_>, hold: &str) {
    let gives_up = run.script().ends_with("/release") && run.arg("count") == Some("0");
    if gives_up && world.held().iter().any(|held| held.hold == hold) {
        let what = format!("the votes of {hold} are given back while it is held");
        world.breach(Law::RenewalNeverHarms, None, what);
    }
}

/// A script failed on a voter that is full: it asked for something new.
pub(crate) fn refused(world: &World, voter: usize, run: &Ran<'_>, before: (&[Record], Duration)) {
    let Ok((-1, _, message)) = run.answer() else { return };
    let hold = run.arg("hold").filter(|_| message.starts_with(OUT_OF_MEMORY));
    let Some(hold) = hold else { return };
    // Who copies what is done has no hold.
    let is_copy = run.script() == "once/note" && hold.is_empty();
    let asks = is_copy || run.script().ends_with("/acquire") || run.script().ends_with("/renew");
    let is_wild = locked(&world.ledger).wild.contains(&voter);
    if !asks || !is_wild && standing(run, before).any(|(vote, _)| vote.hold == hold) {
        let what = format!("voter {voter} is full and refuses {} for {hold}", run.script());
        world.breach(Law::RenewalNeverHarms, None, what);
    }
}

/// The keys of the votes that a script is about: a read/write lock and a semaphore have them in two
/// records.
fn keys<'a>(run: &'a Ran<'_>) -> Vec<&'a str> {
    let in_two = run.script().starts_with("rw/") || run.script().starts_with("semaphore/");
    run.keys().take(if in_two { 2 } else { 1 }).collect()
}

/// Whether slots of a semaphore are not those that the hold asks for now: it has no use for them.
fn is_elsewhere(run: &Ran<'_>, vote: &Vote<'_>) -> bool {
    let goes_on = run.arg("floors").is_some_and(|floors| !floors.is_empty());
    let given = run.arg("given").map(|given| {
        let ranges = given.split(',').filter_map(|range| range.split_once('-'));
        let ends = ranges.filter_map(|(one, last)| Some((one.parse().ok()?, last.parse().ok()?)));
        let mut slots: Vec<u32> = ends.flat_map(|(one, last)| one..=last).collect();
        slots.sort_unstable();
        slots
    });
    goes_on || given.is_some_and(|given| given != vote.slots)
}

/// The votes that have not expired since, whatever the voter's clock did within its allowance, and
/// what is left of each.
fn standing<'a>(
    run: &Ran<'_>,
    (before, elapsed): (&'a [Record], Duration),
) -> impl Iterator<Item = (Vote<'a>, Option<i64>)> {
    let gone_ms = i64::try_from((elapsed * 101 / 100).as_millis()).unwrap_or(i64::MAX) + 2;
    let left = move |vote: Vote<'a>| {
        let left_ms = vote.left_ms.map(|ms| ms - gone_ms);
        left_ms.is_none_or(|ms| ms >= 0).then_some((vote, left_ms))
    };
    votes(before, &keys(run)).into_iter().filter_map(left)
}
