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
#[derive(Clone)]
pub(super) struct ServerLife {
    run_id: String,
    /// What its fingerprint calls its data; nothing where that is gone, until a client looks.
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
        self.kept = kept;
    }

    /// The next one begins now, with a copy of the data of another, which both say that they keep.
    pub(super) fn begin_with_copy(&mut self, other: &Self, now: Moment) {
        (self.durable, self.known, self.named) = (other.durable, other.known, other.named);
        self.birth.clone_from(&other.birth);
        self.begin_again(true, now, now);
    }

    /// It claims to run, and to have forgotten nothing, for so long by now.
    pub(super) fn claim_uptime(&mut self, uptime: Duration, now: Moment) {
        self.up = Elapsed { then: uptime, at: now };
        self.known = self.up;
    }

    /// The fingerprint is gone, alone or with all else.
    pub(super) fn lose_fingerprint(&mut self) {
        self.birth.clear();
    }

    /// The data get a name, and are known from now on.
    fn name(&mut self, name: String, now: Moment) {
        (self.birth, self.known) = (name, Elapsed::begin(now));
        (self.named, self.kept) = (now, now);
    }

    /// A client knows that data that were called so lack something.
    pub(super) fn rename(&mut self, lost: &Birth, now: Moment) {
        if self.birth == lost.data() {
            self.name(lost.rename(&fresh_id()), now);
        }
    }

    /// What it says to a client that looks, and leaves a fingerprint where there is none.
    pub(super) fn identity(&mut self, now: Moment) -> Identity {
        if self.birth.is_empty() {
            self.name(fresh_id(), now);
        }
        let (age, began) = (now.since(self.named), self.kept.since(self.named));
        Identity {
            run_id: self.run_id.clone(),
            birth: Some(Birth {
                fingerprint: "".into(),
                name: self.birth.as_str().into(),
                age,
                began,
            }),
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
