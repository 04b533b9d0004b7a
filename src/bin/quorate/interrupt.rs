//! Signals that ask this program to end, where no command runs under a lock.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Code, Failure};

/// SIGINT, SIGTERM and SIGHUP. From the first one that was listened to on, they do not end the
/// process by themselves.
#[derive(Debug)]
pub(crate) struct Interrupts([Signal; 3]);

impl Interrupts {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = || -> io::Result<Self> {
            let [interrupt, terminate, hangup] =
                [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
            Ok(Self([signal(interrupt)?, signal(terminate)?, signal(hangup)?]))
        };
        listen().map_err(|cause| Failure::new(Code::System, format!("signals: {cause}")))
    }

    /// Returns when one of them has come.
    pub(crate) async fn next(&mut self) {
        let Self([interrupt, terminate, hangup]) = self;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
