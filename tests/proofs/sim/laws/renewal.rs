//! No script takes the vote of another's hold, a renewal shortens nothing, and nobody gives up what
//! somebody holds.

use std::time::Duration;

use quorate::embedded::{Ran, Record};

use super::Law;
use crate::sim::{
    locks::{Vote, votes},
    world::{World, locked},
};

/// `elapsed`: the time since `before` was so.
pub(crate) fn ran(
    world: &World,
    voter: usize,
    run: &Ran<'_>,
    (before, elapsed): (&[Record], Duration),
    after: &[Record],
) {
    let Some(hold) = run.args().next() else { return };
    if locked(&world.ledger).wild.contains(&voter) {
        return;
    }
    let script = run.script();
    // A read/write lock has its votes in two records.
    let keys: Vec<&str> = run.keys().take(if script.starts_with("rw/") { 2 } else { 1 }).collect();
    // Whatever the voter's clock does within its allowance, by now such a vote has not expired.
    let gone_ms = i64::try_from((elapsed * 101 / 100).as_millis()).unwrap_or(i64::MAX) + 2;
    let after = votes(after, &keys);
    for vote in votes(before, &keys) {
        let left_ms = vote.left_ms.map(|ms| ms - gone_ms);
        if left_ms.is_some_and(|ms| ms < 0) {
            continue;
        }
        let now = after.iter().find(|now| now.hold == vote.hold);
        if vote.hold != hold {
            if now.is_none() {
                let whose = vote.hold;
                let what = format!("{script} for {hold} took the vote of {whose} on voter {voter}");
                world.breach(Law::RenewalNeverHarms, None, what);
            }
            continue;
        }
        let keeps = script.ends_with("/acquire") || script.ends_with("/renew");
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
    let gives_up = run.script().ends_with("/release") && run.args().nth(1) == Some("0");
    if gives_up && world.held().iter().any(|held| held.hold == hold) {
        let what = format!("the votes of {hold} are given back while it is held");
        world.breach(Law::RenewalNeverHarms, None, what);
    }
}
