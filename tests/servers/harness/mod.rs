//! The harness does what it says: servers start, end and never leak; clusters form, fail over and
//! move their slots; the proxy spoils as told.

mod cluster;
mod proxy;
mod sentinel;
mod servers;
mod settings;

use std::time::Duration;

use quorate_support::Reply;
use rustix::process::{Pid, test_kill_process};

/// Long enough for a reply that is on its way; only waited out where none may come.
const SILENCE: Duration = Duration::from_millis(150);

fn text(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

fn is_alive(pid: u32) -> bool {
    let pid = Pid::from_raw(pid.try_into().expect("a process id")).expect("not zero");
    test_kill_process(pid).is_ok()
}
