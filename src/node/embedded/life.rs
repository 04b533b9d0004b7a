//! A voter's life: from one start to the next.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use super::voter::EmbeddedVoter;
use crate::{clock::Moment, node::Identity};

/// What a voter says about itself since its last start.
#[derive(Debug)]
pub(super) struct Life {
    run_id: String,
    durable: bool,
    /// For how long it claims to have run at a moment.
    claimed: Duration,
    at: Moment,
}

impl Life {
    /// One that begins now; a `durable` voter still has all that it ever had.
    pub(super) fn begin(durable: bool, now: Moment) -> Self {
        Self { run_id: fresh_run_id(), durable, claimed: Duration::ZERO, at: now }
    }

    pub(super) fn identity(&self, now: Moment) -> Identity {
        let uptime = self.claimed.saturating_add(now.since(self.at));
        Identity {
            run_id: self.run_id.clone(),
            uptime: Duration::from_secs(uptime.as_secs()),
            durable: self.durable,
        }
    }
}

/// What a voter tells on a new connection.
#[derive(Debug)]
pub(super) struct News {
    pub(super) identity: Identity,
    /// By its own clock, since 1970.
    pub(super) shown: Duration,
}

impl EmbeddedVoter {
    /// Lets the voter claim to have run for so long by now; from here on that grows with the
    /// runtime's time, whatever the voter's own clock does, and starts over with each restart.
    ///
    /// Clients are told at each new connection: a voter that is to be old when they meet it is
    /// made so before.
    pub fn set_uptime(&self, uptime: Duration) {
        self.0.act(|state| {
            state.life.claimed = uptime;
            state.life.at = state.now;
        });
    }
}

fn fresh_run_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{:040x}", NEXT.fetch_add(1, Ordering::Relaxed))
}
