//! Every mutant is hunted, and caught by a law that it breaks.

use std::{collections::BTreeSet, env, fmt::Write, thread};

use futures::{StreamExt, stream};

use super::{
    hunt::{ALIVE, Catch, SWEEP, hunt, program},
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
    let calm = hunt(None, CALM_SCHEDULES).await;
    assert!(matches!(calm, Catch::Nothing), "where no mutant is alive this is broken: {calm}");
    // Each uses all processors, but not at its end.
    let at_once = thread::available_parallelism().map_or(2, usize::from);
    let catches: Vec<Catch> = stream::iter(&hunted)
        .map(|mutant| hunt(Some(mutant), schedules))
        .buffered(at_once)
        .collect()
        .await;
    let caught = || hunted.iter().copied().zip(&catches);
    println!("{}", table(caught()));
    let complaints: Vec<String> =
        caught().filter_map(|(mutant, catch)| complaint(mutant, catch, schedules)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let found: BTreeSet<&Law> =
        caught().flat_map(|(mutant, catch)| found_by(mutant, catch)).collect();
    let every = Law::NoPanic as usize + 1;
    assert!(only.is_some() || found.len() == every, "no other law finds anything: {found:?}");
}

fn table<'a>(caught: impl Iterator<Item = (&'a Mutant, &'a Catch)>) -> String {
    let mut table = format!("{:<32} {:<24} {:>9}\n", "mutant", "caught by", "seed");
    for (mutant, catch) in caught {
        let (law, seed) = match catch {
            Catch::Law { law, seed, .. } => (&**law, &**seed),
            Catch::Nothing => ("-", "-"),
            Catch::Trouble(_) => ("?", "?"),
        };
        writeln!(table, "{:<32} {law:<24} {seed:>9}", mutant.name).expect("a string takes all");
    }
    table
}

/// The laws that found it, of those that it is to break.
fn found_by<'a>(mutant: &'a Mutant, catch: &'a Catch) -> Vec<&'a Law> {
    let Catch::Law { all, .. } = catch else { return Vec::new() };
    mutant.breaks.iter().filter(|law| all.contains(&format!("{law:?}"))).collect()
}

fn complaint(mutant: &Mutant, catch: &Catch, schedules: u64) -> Option<String> {
    let Mutant { name, breaks, from, .. } = mutant;
    if !found_by(mutant, catch).is_empty() {
        return None;
    }
    Some(format!(
        "`{name}` should be caught by one of {breaks:?} and was by: {catch}\n\
         see it: {ALIVE}={name} QUORATE_SIM_FIRST={from} QUORATE_SIM_SEEDS={schedules} {} {}",
        program().display(),
        SWEEP.join(" ")
    ))
}
