//! A voter's life: from one start to the next.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::{
    clock::Moment,
    node::{Birth, Identity},
};

/// What a voter says about itself since its last start.
#[derive(Debug)]
pub(super) struct ServerLife {
    run_id: String,
    /// The name of its data.
    birth: String,
    durable: bool,
    /// For how long it claims to have run at a moment.
    pub(super) claimed: Duration,
    pub(super) at: Moment,
}

impl ServerLife {
    /// The first one begins now; it has kept all of nothing.
    pub(super) fn first(now: Moment) -> Self {
        let (run_id, birth) = (fresh_id(), fresh_id());
        Self { run_id, birth, durable: true, claimed: Duration::ZERO, at: now }
    }

    /// The next one begins now; a `durable` voter still has all that it ever had.
    pub(super) fn next(&mut self, durable: bool, now: Moment) {
        let birth = if durable { std::mem::take(&mut self.birth) } else { fresh_id() };
        *self = Self { birth, durable, ..Self::first(now) };
    }

    /// The data are deleted.
    pub(super) fn wipe(&mut self) {
        self.birth = fresh_id();
    }

    pub(super) fn identity(&self, now: Moment) -> Identity {
        let uptime = self.claimed.saturating_add(now.since(self.at));
        let uptime = Duration::from_secs(uptime.as_secs());
        identity(&self.run_id, &self.birth, uptime, self.durable)
    }
}

/// What is told by these.
pub(super) fn identity(run_id: &str, birth: &str, uptime: Duration, durable: bool) -> Identity {
    Identity {
        run_id: run_id.to_owned(),
        birth: Some(Birth { mark: "".into(), name: birth.into(), is_new: false }),
        age: uptime,
        durable,
        overlap: Duration::ZERO,
        refuses: None,
        memory: None,
    }
}

/// What a voter tells on a new connection.
#[derive(Debug)]
pub(super) struct LifeNews {
    pub(super) identity: Identity,
    /// By its own clock, since 1970.
    pub(super) shown: Duration,
}

fn fresh_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{:040x}", NEXT.fetch_add(1, Ordering::Relaxed))
}
