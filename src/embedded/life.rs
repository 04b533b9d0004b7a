//! What a voter says of itself: since when it runs, and which data it has.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::{
    clock::Moment,
    proto::{ClockOffset, Persistence, ServerInfo},
    voter::{Birth, Identity},
};

/// A voter's life from one start to the next.
pub(super) struct ServerLife {
    run_id: String,
    /// The name of its data.
    pub(super) birth: String,
    durable: bool,
    /// Since its start.
    up: Elapsed,
    /// Since it has forgotten nothing.
    known: Elapsed,
    /// Since when its data have their name.
    named: Moment,
    /// It started with what it had then.
    kept: Moment,
    /// They got their name in this life.
    is_renamed: bool,
}

/// A time that goes on from what it was at a moment.
#[derive(Clone, Copy)]
struct Elapsed {
    then: Duration,
    at: Moment,
}

impl Elapsed {
    fn begin(at: Moment) -> Self {
        Self { then: Duration::ZERO, at }
    }

    /// In whole seconds.
    fn by(self, now: Moment) -> Duration {
        let by = self.then.saturating_add(now.since(self.at));
        Duration::from_secs(by.as_secs())
    }
}

impl ServerLife {
    /// The first one begins now; it has kept all of nothing.
    pub(super) fn begin(now: Moment) -> Self {
        let begun = Elapsed::begin(now);
        Self {
            run_id: fresh_id(),
            birth: fresh_id(),
            durable: true,
            up: begun,
            known: begun,
            named: now,
            kept: now,
            is_renamed: true,
        }
    }

    /// The next one begins now; a `durable` voter says that it still has all that it ever had. It
    /// has what it had when that was `kept`.
    pub(super) fn begin_again(&mut self, durable: bool, kept: Moment, now: Moment) {
        let begun = Elapsed::begin(now);
        if !(durable && self.durable) {
            self.known = begun;
        }
        (self.run_id, self.up, self.durable) = (fresh_id(), begun, durable);
        (self.kept, self.is_renamed) = (kept, false);
    }

    /// It claims to run, and to have forgotten nothing, for so long by now.
    pub(super) fn claim_uptime(&mut self, uptime: Duration, now: Moment) {
        self.up = Elapsed { then: uptime, at: now };
        self.known = self.up;
    }

    /// The data are deleted.
    pub(super) fn forget(&mut self, now: Moment) {
        (self.birth, self.known) = (fresh_id(), Elapsed::begin(now));
        (self.named, self.kept, self.is_renamed) = (now, now, true);
    }

    /// A client knows that the data lack something; they get one other name in a life.
    pub(super) fn rename(&mut self, now: Moment) {
        if !self.is_renamed {
            self.forget(now);
        }
    }

    pub(super) fn identity(&self, now: Moment) -> Identity {
        let (age, began) = (now.since(self.named), self.kept.since(self.named));
        Identity {
            run_id: self.run_id.clone(),
            birth: Some(Birth { mark: "".into(), name: self.birth.as_str().into(), age, began }),
            age: self.known.by(now),
            durable: self.durable,
            ..Identity::default()
        }
    }

    pub(super) fn survey(&self, clock: ClockOffset, now: Moment) -> ServerInfo {
        ServerInfo {
            run_id: self.run_id.clone(),
            software: "embedded".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            is_primary: true,
            uptime: self.up.by(now),
            replicas: 0,
            memory_used: 0,
            memory_limit: None,
            eviction_policy: "noeviction".into(),
            persistence: Persistence {
                appendonly: self.durable,
                appendfsync: Some(if self.durable { "always" } else { "no" }.into()),
                no_appendfsync_on_rewrite: Some(false),
                save: Some(String::new()),
                ..Persistence::default()
            },
            needs_all_slots: None,
            clock: Some(clock),
            missing_rights: Vec::new(),
        }
    }
}

fn fresh_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{:040x}", NEXT.fetch_add(1, Ordering::Relaxed))
}
