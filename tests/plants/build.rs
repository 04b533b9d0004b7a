//! Compiles the simulation of the planted copy.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    copy::{self, ALIVE},
    plant::Plant,
    support::{compile, profile},
};

/// Where the copy is.
fn copy() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted")
}

/// Makes the copy and compiles it once; returns the program that runs its simulation.
pub(crate) fn build(plants: &[&Plant]) -> PathBuf {
    let copy = copy();
    copy::make(plants, &copy);
    // Where the crate's own simulation is compiled: then no dependency is compiled again.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder in the target");
    let mut cargo = Command::new(env!("CARGO"));
    // So many schedules take too long in a program that is not optimized at all.
    let profile = Some(profile()).filter(|profile| profile != "dev");
    let profile = profile.as_deref().unwrap_or("release");
    let features = ["--all-features", "--profile", profile];
    cargo.args(["test", "--no-run", "--test", "sim"]).args(features);
    cargo.current_dir(&copy).env("CARGO_TARGET_DIR", target).env_remove(ALIVE);
    compile(cargo)
}
