//! What a voter says of itself: since when it runs, and how old its data are.

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
    /// The name of its data; empty after the fingerprint was lost, until a client looks.
    pub(super) birth: String,
    durable: bool,
    /// Since its start.
    up: Elapsed,
    /// Since it last forgot something.
    // Not the uptime: this time goes on over a restart that forgets nothing, and begins anew when
    // the data are deleted, although the server did not restart (design 5).
    complete: Elapsed,
    /// When its data got their name.
    named: Moment,
    /// When the data that it started with were written.
    kept: Moment,
    /// The latest time, since 1970, that its clock showed to a client that looked: since its data
    /// have their name, and if it has forgotten nothing since.
    looked: Duration,
}

/// A time that has passed, and goes on.
// Not the moment of its beginning: a test makes a voter older than the clock of its runtime.
#[derive(Clone, Copy)]
struct Elapsed {
    then: Duration,
    at: Moment,
}

impl Elapsed {
    fn begin(at: Moment) -> Self {
        Self { then: Duration::ZERO, at }
    }

    /// In whole seconds, as servers say it.
    fn by(self, now: Moment) -> Duration {
        let by = self.then.saturating_add(now.since(self.at));
        Duration::from_secs(by.as_secs())
    }
}

impl ServerLife {
    pub(super) fn begin(now: Moment) -> Self {
        let begun = Elapsed::begin(now);
        Self {
            run_id: fresh_id(),
            birth: fresh_id(),
            // It has written all that it has, which is nothing.
            durable: true,
            up: begun,
            complete: begun,
            named: now,
            kept: now,
            looked: Duration::ZERO,
        }
    }

    /// Begins the next life. A `durable` voter says that it has forgotten nothing, even if its data
    /// are as old as `kept`.
    pub(super) fn begin_again(&mut self, durable: bool, kept: Moment, now: Moment) {
        let begun = Elapsed::begin(now);
        // Before and after, as at a server: one that writes from now on may have lost what it had
        // not written before.
        let forgets = !(durable && self.durable);
        if forgets {
            self.complete = begun;
        }
        // Data of an earlier moment have an earlier look.
        if forgets || kept < now {
            self.looked = Duration::ZERO;
        }
        (self.run_id, self.up, self.durable, self.kept) = (fresh_id(), begun, durable, kept);
    }

    /// Begins the next life with a copy of another voter's data: both say that they kept them.
    pub(super) fn begin_with_copy(&mut self, other: &Self, now: Moment) {
        (self.durable, self.complete, self.named) = (other.durable, other.complete, other.named);
        // The name is all that gives a copy away (guarantee 4, `copied`).
        self.birth.clone_from(&other.birth);
        self.begin_again(true, now, now);
    }

    /// Claims to run, and to have forgotten nothing, for so long by now.
    pub(super) fn claim_uptime(&mut self, uptime: Duration, now: Moment) {
        self.up = Elapsed { then: uptime, at: now };
        self.complete = self.up;
    }

    pub(super) fn lose_fingerprint(&mut self) {
        self.birth.clear();
    }

    fn name(&mut self, name: String, now: Moment) {
        (self.birth, self.complete) = (name, Elapsed::begin(now));
        (self.named, self.kept, self.looked) = (now, now, Duration::ZERO);
    }

    /// Gives other names to the data of this name, in which a client misses something.
    pub(super) fn rename(&mut self, lost: Option<&Birth>, now: Moment) {
        // Once: several clients find the same loss, and each new name would be another loss.
        if let Some(lost) = lost.filter(|lost| self.birth == lost.data()) {
            self.name(lost.rename(&fresh_id()), now);
        }
    }

    /// What it says to a client that looks. `shown`: what its clock shows, since 1970.
    pub(super) fn identity(&mut self, shown: Duration, now: Moment) -> Identity {
        // Clients write the fingerprint, so it is missing until one looks
        // (`data_without_a_fingerprint_have_no_name_until_a_client_looks`).
        if self.birth.is_empty() {
            self.name(fresh_id(), now);
        }
        let (age, began) = (now.since(self.named), self.kept.since(self.named));
        self.looked = self.looked.max(shown);
        Identity {
            run_id: self.run_id.clone(),
            birth: Some(Birth {
                fingerprint: "".into(),
                name: self.birth.as_str().into(),
                age,
                began,
                set_back: self.looked.saturating_sub(shown),
            }),
            age: self.complete.by(now),
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
    // A number and no chance, so that a simulation repeats itself.
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{:040x}", NEXT.fetch_add(1, Ordering::Relaxed))
}
