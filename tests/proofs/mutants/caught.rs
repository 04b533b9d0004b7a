//! Every mutant is hunted, and caught by a law that it breaks.

use std::{collections::BTreeSet, env, thread};

use futures::{StreamExt, stream};

use super::{
    hunt::{ALIVE, Catch, NOTHING, SWEEP, hunt, program},
    list::{ALL, Mutant},
};
use crate::sim::laws::Law;

/// The most schedules in which a mutant is hunted.
const SCHEDULES: u64 = 4_000;

/// With no mutant alive.
const CALM_SCHEDULES: u64 = 200;

#[tokio::test]
async fn every_mutant_is_caught_by_a_law_that_it_breaks() {
    let only = env::var(ALIVE).ok();
    let hunted: Vec<&Mutant> =
        ALL.iter().filter(|mutant| only.as_ref().is_none_or(|only| only == mutant.name)).collect();
    assert!(!hunted.is_empty(), "there is no mutant `{only:?}`");
    let schedules = env::var("QUORATE_MUTANT_SEEDS").map_or(SCHEDULES, |text| {
        text.parse().unwrap_or_else(|_| panic!("QUORATE_MUTANT_SEEDS={text} is not a number"))
    });
    let calm = hunt(None, CALM_SCHEDULES).await.expect_err("no mutant is alive");
    assert_eq!(calm, NOTHING, "and no law is broken");
    // Each uses all processors, but not at its end.
    let at_once = thread::available_parallelism().map_or(2, usize::from);
    let catches: Vec<Result<Catch, String>> = stream::iter(&hunted)
        .map(|mutant| hunt(Some(mutant), schedules))
        .buffered(at_once)
        .collect()
        .await;
    let caught = || hunted.iter().copied().zip(&catches);
    for (mutant, catch) in caught() {
        let (law, seed) = match catch {
            Ok(Catch { seed, laws }) => (laws.last().map_or("?", String::as_str), &**seed),
            Err(_) => ("-", "-"),
        };
        println!("{:<32} {law:<24} {seed:>9}", mutant.name);
    }
    let complaints: Vec<String> =
        caught().filter_map(|(mutant, catch)| complaint(mutant, catch, schedules)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let found: BTreeSet<Law> =
        caught().flat_map(|(mutant, catch)| found_by(mutant, catch)).collect();
    let every = Law::NoPanic as usize + 1;
    assert!(only.is_some() || found.len() == every, "no other law finds anything: {found:?}");
}

/// The laws that found it, of those that it is to break.
fn found_by(mutant: &Mutant, catch: &Result<Catch, String>) -> Vec<Law> {
    let is_broken =
        |law: &Law| catch.as_ref().is_ok_and(|it| it.laws.contains(&format!("{law:?}")));
    mutant.breaks.iter().copied().filter(is_broken).collect()
}

fn complaint(mutant: &Mutant, catch: &Result<Catch, String>, schedules: u64) -> Option<String> {
    let Mutant { name, breaks, from, .. } = mutant;
    if !found_by(mutant, catch).is_empty() {
        return None;
    }
    Some(format!(
        "`{name}` should be caught by one of {breaks:?} and was by: {catch:?}\n\
         see it: {ALIVE}={name} QUORATE_SIM_FIRST={from} QUORATE_SIM_SEEDS={schedules} {} {}",
        program().display(),
        SWEEP.join(" ")
    ))
}
