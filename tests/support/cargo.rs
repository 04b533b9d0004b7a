//! Cargo, called by a test.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
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

/// The profile by which this test was compiled.
pub fn profile() -> String {
    let program = env::current_exe().expect("it runs");
    let folder = program.ancestors().nth(2).and_then(Path::file_name).expect("it is in `deps`");
    match folder.to_string_lossy() {
        dev if dev == "debug" => "dev".to_owned(),
        other => other.into_owned(),
    }
}

/// Compiles one program with these arguments, and returns where it is. What cargo has told the test
/// is not passed on.
pub fn compile(mut cargo: Command) -> PathBuf {
    cargo.args(["--locked", "--offline", "--message-format", "json-render-diagnostics"]);
    for (name, _) in env::vars_os() {
        if TOLD.iter().any(|told| name.to_string_lossy().starts_with(told)) {
            cargo.env_remove(name);
        }
    }
    let output = cargo.output().expect("cargo can be run");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "it does not compile:\n{told}");
    program(&String::from_utf8_lossy(&output.stdout))
        .unwrap_or_else(|| panic!("cargo names no program:\n{told}"))
}

/// The only program among what cargo says it has made.
fn program(messages: &str) -> Option<PathBuf> {
    let (_, rest) = messages.split_once(r#""executable":""#)?;
    let (path, _) = rest.split_once('"')?;
    Some(path.replace(r"\\", r"\").into())
}
