//! The simulation finds bugs: each of those planted here is caught by a law that it breaks.
//!
//! ```sh
//! cargo test --test plants -- --nocapture     # with a table of what caught which
//! ```
//!
//! The library itself has no switch for that. A copy of it has: `copy` plants all bugs into one
//! copy of the crate under `target/tmp`, where the environment says which of them is alive; `build`
//! compiles the copy's simulation once, and `hunt` runs it for each. A plant that does not fit the
//! code any more fails the test by its name: it has to be planted anew in the code as it is now.

mod build;
mod copy;
mod hunt;
mod plant;
#[path = "../support/mod.rs"]
mod support;

mod acquiring;
mod further;
mod holding;
mod order;
mod quarantine;
mod rw;
mod scripts;
mod tokens;
mod waiting;

use std::{fmt::Write, path::Path};

use futures::{StreamExt, stream};

use copy::ALIVE;
use hunt::{Catch, first, hunt};
use plant::Plant;

/// The most that a plant is hunted for.
const SCHEDULES: u64 = 2_000;

/// With no plant alive.
const CALM_SCHEDULES: u64 = 200;

/// Each hunt uses all processors, but not at its end.
const AT_ONCE: usize = 2;

#[tokio::test]
async fn every_planted_bug_is_caught_by_a_law_that_it_breaks() {
    let plants = all();
    let program = build::build(&plants);
    let calm = hunt(&program, None, CALM_SCHEDULES).await;
    assert!(matches!(calm, Catch::Nothing), "where no plant is alive this is broken: {calm}");
    let mut catches: Vec<(usize, Catch)> = stream::iter(plants.iter().enumerate())
        .map(async |(place, plant)| (place, hunt(&program, Some(plant), SCHEDULES).await))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    catches.sort_unstable_by_key(|(place, _)| *place);
    let hunted = || plants.iter().copied().zip(catches.iter().map(|(_, catch)| catch));
    println!("{}", table(hunted()));
    let complaints: Vec<String> =
        hunted().filter_map(|(plant, catch)| complaint(&program, plant, catch)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn no_two_plants_have_the_same_name() {
    let mut names: Vec<&str> = all().iter().map(|plant| plant.name).collect();
    names.sort_unstable();
    let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn every_plant_can_be_dead() {
    for plant in all() {
        let asks = plant.edits.iter().any(|edit| edit.replace.contains(plant::PLANTED));
        let is_script = plant.edits.iter().all(|edit| edit.file.starts_with("lua/"));
        assert!(asks || is_script, "{}", plant.name);
    }
}

fn all() -> Vec<&'static Plant> {
    [
        acquiring::PLANTS,
        waiting::PLANTS,
        holding::PLANTS,
        scripts::PLANTS,
        further::PLANTS,
        order::PLANTS,
        rw::PLANTS,
        tokens::PLANTS,
        quarantine::PLANTS,
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn table<'a>(hunted: impl Iterator<Item = (&'a Plant, &'a Catch)>) -> String {
    let mut table = format!("{:<34} {:<24} {:>6}  what it does\n", "plant", "caught by", "seed");
    for (plant, catch) in hunted {
        let (law, seed) = match catch {
            Catch::Law { law, seed, .. } => (&**law, &**seed),
            Catch::Nothing => ("-", "-"),
            Catch::Trouble(_) => ("?", "?"),
        };
        writeln!(table, "{:<34} {law:<24} {seed:>6}  {}", plant.name, plant.what)
            .expect("a string takes all");
    }
    table
}

fn complaint(program: &Path, plant: &Plant, catch: &Catch) -> Option<String> {
    if let Catch::Law { all, .. } = catch
        && plant.caught_by.iter().any(|law| all.iter().any(|broken| broken == law))
    {
        return None;
    }
    let Plant { name, what, caught_by, .. } = plant;
    Some(format!(
        "`{name}` ({what}) should be caught by one of {caught_by:?} and was by: {catch}\n\
         see it: {ALIVE}={name} QUORATE_SIM_FIRST={} QUORATE_SIM_SEEDS={SCHEDULES} {} --exact \
         sweep::sweep --nocapture",
        first(plant),
        program.display()
    ))
}
