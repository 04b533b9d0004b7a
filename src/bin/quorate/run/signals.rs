//! Signals that this process gets.

use std::{future::poll_fn, io, task::Poll};

use nix::sys::signal::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// Those that would end this process, stop it, or tell of the command.
const HEARD: [Signal; 9] = [
    Signal::SIGCHLD,
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

#[derive(Debug)]
pub(crate) struct Signals(Vec<(Signal, Stream)>);

impl Signals {
    /// From here on none of them ends this process. One that was ignored before stays so, as for a
    /// program under `nohup`.
    pub(crate) fn listen() -> io::Result<Self> {
        let ignored = ignored();
        let heard = HEARD
            .into_iter()
            .filter(|kind| *kind == Signal::SIGCHLD || ignored >> (*kind as i32 - 1) & 1 == 0);
        let streams = heard.map(|kind| Ok((kind, signal(SignalKind::from_raw(kind as i32))?)));
        Ok(Self(streams.collect::<io::Result<_>>()?))
    }

    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (kind, stream) in &mut self.0 {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*kind);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Whether it asks this process to end.
pub(crate) fn ends(signal: Signal) -> bool {
    matches!(signal, Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP | Signal::SIGQUIT)
}

/// A bit for each; nothing is known of it except on Linux.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
