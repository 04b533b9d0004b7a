//! Compiles the simulation of the planted copy.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    copy::{self, ALIVE},
    plant::Plant,
};

/// What cargo tells tests about the crate that they belong to.
const TOLD: [&str; 6] = [
    "CARGO_BIN_",
    "CARGO_CRATE_",
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_PRIMARY_",
    "CARGO_TARGET_TMPDIR",
];

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
    // So many schedules take too long in a program that is not optimized.
    cargo.args(["test", "--release", "--no-run", "--test", "sim", "--all-features"]);
    cargo.args(["--locked", "--offline", "--message-format", "json-render-diagnostics"]);
    cargo.current_dir(&copy).env("CARGO_TARGET_DIR", target).env_remove(ALIVE);
    for (name, _) in env::vars_os() {
        if TOLD.iter().any(|told| name.to_string_lossy().starts_with(told)) {
            cargo.env_remove(name);
        }
    }
    let output = cargo.output().expect("cargo can be run");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the planted copy does not compile:\n{told}");
    program(&String::from_utf8_lossy(&output.stdout))
        .unwrap_or_else(|| panic!("cargo names no program:\n{told}"))
}

/// The only program among what cargo says it has made.
fn program(messages: &str) -> Option<PathBuf> {
    let (_, rest) = messages.split_once(r#""executable":""#)?;
    let (path, _) = rest.split_once('"')?;
    Some(path.replace(r"\\", r"\").into())
}
