//! The process on the other side of a connection.

// Watched by a pidfd, and not by the end of its connection: its children may have the connection
// open, and a process id alone may be another process by now
// (`a_killed_programs_locks_are_free_within_50_ms_whether_or_not_its_children_live`).

use std::{future::pending, os::fd::OwnedFd};

use tokio::net::unix::pipe::Receiver;

/// The process that opened a connection; `None` if this process cannot see it, as in a container.
// A pidfd is no pipe, but becomes readable like one when the process dies.
pub(super) struct Peer(Option<Receiver>);

impl Peer {
    pub(super) fn of(process: Option<i32>) -> Self {
        let opened = process.and_then(open);
        Self(opened.and_then(|fd| Receiver::from_owned_fd_unchecked(fd).ok()))
    }

    /// Completes when it has died.
    pub(super) async fn died(&self) {
        match &self.0 {
            // This fails only when the runtime ends.
            Some(process) => drop(process.readable().await),
            None => pending().await,
        }
    }
}

#[cfg(target_os = "linux")]
fn open(process: i32) -> Option<OwnedFd> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    pidfd_open(Pid::from_raw(process)?, PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn open(_process: i32) -> Option<OwnedFd> {
    None
}
