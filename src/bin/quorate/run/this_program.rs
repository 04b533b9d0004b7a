//! This program, started once more for a part of its own work.

use std::{env, ffi::CStr, os::unix::process::CommandExt, path::PathBuf, process::Command};

/// Runs the same file, also where another one was installed in its place meanwhile.
pub(crate) fn again() -> Command {
    let of_this_process = PathBuf::from("/proc/self/exe");
    let path = if cfg!(target_os = "linux") && of_this_process.exists() {
        of_this_process
    } else {
        env::current_exe().unwrap_or_else(|_| "quorate".into())
    };
    let mut command = Command::new(path);
    command.arg0("quorate");
    command
}

/// What lists of processes call it, where that is not by the name of the file.
pub(crate) fn rename(name: &CStr) {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_name(name);
    #[cfg(not(target_os = "linux"))]
    let _ = name;
}
