//! A voter's life: from one start to the next.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::{
    clock::Moment,
    voter::{Birth, Identity},
};

/// What a voter says about itself since its last start.
#[derive(Debug)]
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
#[derive(Clone, Copy, Debug)]
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
    pub(super) fn first(now: Moment) -> Self {
        let (run_id, birth) = (fresh_id(), fresh_id());
        let begun = Elapsed::begin(now);
        let (named, kept, is_renamed) = (now, now, true);
        Self { run_id, birth, durable: true, up: begun, known: begun, named, kept, is_renamed }
    }

    /// The next one begins now; a `durable` voter says that it still has all that it ever had. It
    /// has what it had when that was `kept`.
    pub(super) fn next(&mut self, durable: bool, kept: Moment, now: Moment) {
        let begun = Elapsed::begin(now);
        let known = if durable && self.durable { self.known } else { begun };
        let (birth, named) = (std::mem::take(&mut self.birth), self.named);
        let (run_id, up, is_renamed) = (fresh_id(), begun, false);
        *self = Self { run_id, birth, durable, up, known, named, kept, is_renamed };
    }

    /// It claims to run, and to have forgotten nothing, for so long by now.
    pub(super) fn claim(&mut self, time: Duration, now: Moment) {
        self.up = Elapsed { then: time, at: now };
        self.known = self.up;
    }

    /// The data are deleted.
    pub(super) fn wipe(&mut self, now: Moment) {
        self.birth = fresh_id();
        self.known = Elapsed::begin(now);
        (self.named, self.kept, self.is_renamed) = (now, now, true);
    }

    /// A client knows that the data lack something; they get one other name in a life.
    pub(super) fn rename(&mut self, now: Moment) {
        if !self.is_renamed {
            self.wipe(now);
        }
    }

    pub(super) fn uptime(&self, now: Moment) -> Duration {
        self.up.by(now)
    }

    pub(super) fn identity(&self, now: Moment) -> Identity {
        let (age, began) = (now.since(self.named), self.kept.since(self.named));
        Identity {
            run_id: self.run_id.clone(),
            birth: Some(Birth { mark: "".into(), name: self.birth.as_str().into(), age, began }),
            age: self.known.by(now),
            durable: self.durable,
            overlap: Duration::ZERO,
            refuses: None,
            memory: None,
        }
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
