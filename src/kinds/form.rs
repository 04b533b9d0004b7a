//! What all requests of one kind of lock have in common, whatever the lock is called.

use std::{sync::Arc, time::Duration};

use super::kind::{ALL, Kind};
use crate::{proto::Rules, scripts::Script, settings::Settings};

/// Which writers a reader of an [`RwLock`](crate::RwLock) lets pass. Writers always enter in the
/// order of asking among themselves.
///
/// Each reader has its own preference. Users of one lock should name the same; if they do not, they
/// still never wait for each other in a circle.
// A preference is nothing but the reader's ticket. With a rule for each preference, readers and
// writers that name different ones could wait for each other for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preference {
    /// A reader waits only for the writer that holds the lock. Readers who come and go can keep a
    /// writer waiting for ever.
    Readers,
    /// A reader comes behind every writer that waits, whoever asked first. Writers who come and go
    /// can keep a reader waiting for ever. The default.
    #[default]
    Writers,
    /// A reader comes behind the writers that asked before it, and before those that ask after it.
    /// Readers between two writers enter together. If all readers name it, nobody waits for ever.
    Fair,
}

/// How locks of a kind are asked for, and the arguments that follow from that.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(super) kind: &'static Kind,
    pub(super) rules: Rules,
    /// How long voters keep a place in the queue whose waiter does not ask again. `None`: there is
    /// no queue.
    pub(super) waiting: Option<Duration>,
    /// For how long voters remember the token. `None`: for ever.
    keep: Option<Duration>,
    preference: Preference,
    /// What the channels for wake-ups begin with.
    calls: Arc<str>,
    /// The arguments that requests with the usual lease share: to acquire, to renew and to release.
    // Made once, as they are the same for every lock: `lock` and `release` allocate less.
    usual: [Arc<[Arc<str>]>; 3],
}

impl Form {
    fn new(
        kind: &'static Kind,
        rules: Rules,
        preference: Preference,
        calls: &Arc<str>,
        settings: &Settings,
    ) -> Self {
        let lease = rules.terms.lease;
        // A server sees that a client does not listen when it wakes it, and passes over a dead one.
        // Not in a cluster, where the client may listen at another server, nor at the release of an
        // `RSpinLock` of Redisson, which wakes nobody. There, dead waiters must be forgotten
        // sooner.
        let brief = !kind.is_fair && (settings.in_cluster || kind.is_foreign);
        let waiting = if brief { settings.waiting_briefly(lease) } else { settings.waiting(lease) };
        let waiting = Some(waiting).filter(|_| kind.has_queue);
        let keep = Some(settings.fence_memory).filter(|_| kind.forgets_fence);
        let (calls, usual) = (Arc::clone(calls), Default::default());
        Self { kind, rules, waiting, keep, preference, calls, usual }.with_usual()
    }

    fn with_usual(self) -> Self {
        let Kind { acquire, renew, release, .. } = self.kind;
        let usual = [acquire, renew, release].map(|script| self.written(script, self.lease()));
        Self { usual, ..self }
    }

    pub(super) fn lease(&self) -> Duration {
        self.rules.terms.lease
    }

    /// The same for another kind, which its holders may have besides.
    pub(super) fn of(&self, kind: &'static Kind) -> Self {
        Self { kind, ..self.clone() }.with_usual()
    }

    /// The arguments that all requests of a script share, without the command that publishes.
    // Requests that share them can leave in one call of the script (design 3). The command is
    // another one in a cluster, so the voter adds it.
    pub(super) fn shared(&self, script: &'static Script, lease: Duration) -> Arc<[Arc<str>]> {
        let Kind { acquire, renew, release, .. } = self.kind;
        let usual = [acquire, renew, release].into_iter().position(|usual| **usual == *script);
        match usual.filter(|_| lease == self.lease()) {
            Some(usual) => Arc::clone(&self.usual[usual]),
            // A further entry may ask for a longer lease, and a read under a write has its own.
            None => self.written(script, lease),
        }
    }

    fn written(&self, script: &Script, lease: Duration) -> Arc<[Arc<str>]> {
        let millis = |time: Option<Duration>| match time {
            // The settings see to it that leases are whole milliseconds.
            Some(time) => time.as_millis().to_string().into(),
            None => "".into(),
        };
        let labels = script.shared.iter().filter(|label| **label != "publish");
        let word = |label: &&'static str| match *label {
            "calls" => Arc::clone(&self.calls),
            "lease_ms" => millis(Some(lease)),
            "keep_ms" => millis(self.keep),
            "wait_ms" => millis(self.waiting),
            "mode" => self.kind.name.into(),
            "turn" => self.turn().into(),
            // Also on the lock's channel: waiters of the other library know nothing of the queue.
            "aloud" => if self.kind.is_foreign { "1" } else { "" }.into(),
            other => unreachable!("{}: no lock has `{other}`", script.name),
        };
        labels.map(word).collect()
    }

    /// Where in the queue of a read/write lock its places come.
    pub(super) fn turn(&self) -> &'static str {
        match self.preference {
            // Writers keep the order of asking, whatever readers prefer (law 4).
            _ if !self.kind.is_shared => "next",
            Preference::Fair if crate::mutant!("reader_comes_first") => "first",
            Preference::Fair => "next",
            Preference::Readers => "first",
            Preference::Writers => "last",
        }
    }
}

/// The forms of a client's locks. For the client's own settings they are made once.
#[derive(Debug)]
pub(crate) struct Forms {
    calls: Arc<str>,
    made: Vec<Arc<Form>>,
}

impl Forms {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut forms = Self { calls: settings.keys.calls().into(), made: Vec::new() };
        // If the lease cannot be used, the call that locks says so.
        if let Ok(rules) = settings.rules(settings.lease) {
            let form = |kind| forms.of(kind, rules, Preference::default(), settings);
            forms.made = ALL.map(form).to_vec();
        }
        forms
    }

    pub(crate) fn of(
        &self,
        kind: &'static Kind,
        rules: Rules,
        preference: Preference,
        settings: &Settings,
    ) -> Arc<Form> {
        let is_this = |made: &&Arc<Form>| {
            *made.kind == *kind && made.rules == rules && made.preference == preference
        };
        let made = self.made.iter().find(is_this).cloned();
        made.unwrap_or_else(|| Arc::new(Form::new(kind, rules, preference, &self.calls, settings)))
    }
}
