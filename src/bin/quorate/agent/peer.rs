//! The process on the other side: its death is noticed at once, even if
//! another process still has its connection open.

use std::{future::pending, os::fd::OwnedFd};

use tokio::net::unix::pipe::Receiver;

/// The process that opened a connection; nothing is heard of one that this process cannot see. What
/// it is watched by is no pipe, and can be waited for like one.
pub(super) struct Peer(Option<Receiver>);

impl Peer {
    pub(super) fn of(process: Option<i32>) -> Self {
        let opened = process.and_then(open);
        Self(opened.and_then(|fd| Receiver::from_owned_fd_unchecked(fd).ok()))
    }

    /// Completes when it has died, and not when it has only closed the connection.
    pub(super) async fn died(&self) {
        match &self.0 {
            // It fails only where the runtime ends.
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
