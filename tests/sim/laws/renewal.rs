//! No script takes the vote of another's hold, a renewal shortens nothing, and nobody gives up what
//! somebody holds.

use std::time::Duration;

use quorate::embedded::{Ran, Record};

use super::Law;
use crate::world::{World, locked};

/// `elapsed`: the time since `before` was so.
pub(crate) fn ran(
    world: &World,
    voter: usize,
    run: &Ran<'_>,
    (before, elapsed): (&[Record], Duration),
    after: &[Record],
) {
    let (Some(key), Some(hold)) = (run.keys().next(), run.args().next()) else { return };
    let script = run.script();
    let Some((holder, was_left_ms)) = holder(before, key) else { return };
    // Whatever the voter's clock does within its allowance, by now the vote has not expired.
    let gone_ms = i64::try_from((elapsed * 101 / 100).as_millis()).unwrap_or(i64::MAX) + 2;
    let left_ms = was_left_ms.map(|ms| ms - gone_ms);
    if left_ms.is_some_and(|ms| ms < 0) || locked(&world.ledger).wild.contains(&voter) {
        return;
    }
    let now = self::holder(after, key);
    if holder != hold {
        if now.is_none_or(|(now, _)| now != holder) {
            let what = format!("{script} for {hold} took the vote of {holder} on voter {voter}");
            world.breach(Law::RenewalNeverHarms, None, what);
        }
        return;
    }
    let keeps = matches!(script, "mutex/acquire" | "fair/acquire" | "mutex/renew");
    let shortened = |now_left_ms: Option<i64>| now_left_ms.is_some() && now_left_ms < left_ms;
    match now {
        Some((now, now_left_ms)) if keeps && now == hold && !shortened(now_left_ms) => {}
        _ if keeps => {
            let what = format!("{script} shortened the vote of {hold} on voter {voter}");
            world.breach(Law::RenewalNeverHarms, None, what);
        }
        _ => check_giving_up(world, run, hold),
    }
}

/// A vote is given back only for a hold that is over.
fn check_giving_up(world: &World, run: &Ran<'_>, hold: &str) {
    let gives_up = run.script() == "mutex/release" && run.args().nth(1) == Some("0");
    if gives_up && world.held().iter().any(|held| held.hold == hold) {
        let what = format!("the votes of {hold} are given back while it is held");
        world.breach(Law::RenewalNeverHarms, None, what);
    }
}

fn holder<'a>(records: &'a [Record], key: &str) -> Option<(&'a str, Option<i64>)> {
    let record = records.iter().find(|record| record.key == key)?;
    let (hold, _) = record.fields.first()?;
    Some((hold, record.left_ms))
}
