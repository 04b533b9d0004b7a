//! What all requests of one kind have in common, whatever the lock.

use std::{sync::Arc, time::Duration};

use super::kind::{ALL, Kind};
use crate::{proto::Rules, scripts::Script, settings::Settings};

/// Whom a reader of an [`RwLock`](crate::RwLock) lets pass. Writers come in the order of asking
/// among themselves in any case.
///
/// It is the reader's, and each reader goes by its own. Users of one lock should name the same one;
/// where they do not, they still never wait for each other in a circle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preference {
    /// A reader waits only for the writer that holds: readers who come and go can keep a writer
    /// waiting for ever.
    Readers,
    /// A reader comes behind every writer that waits, whoever asked first: writers who come and go
    /// can keep a reader waiting for ever. The default.
    #[default]
    Writers,
    /// A reader comes behind the writers that asked before it, and before those that ask after it.
    /// Readers between two writers enter together. Nobody waits for ever, where all readers
    /// name it.
    Fair,
}

/// How locks of a kind are asked for, and the arguments that follow from it.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(super) kind: &'static Kind,
    pub(super) rules: Rules,
    /// How long a place in the queue counts that does not ask again; `None`: there is no queue.
    pub(super) waiting: Option<Duration>,
    /// For how long the fence is remembered; `None`: for ever.
    keep: Option<Duration>,
    preference: Preference,
    /// What the channels begin with on which clients are called.
    calls: Arc<str>,
    /// The arguments that requests share with the usual lease, made once: to acquire, to renew and
    /// to release.
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
        // In a cluster a client may listen at another server than the one that calls, and what an
        // `RSpinLock` of Redisson gives back calls nobody.
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

    /// The same for the other kind that its holders may have besides.
    pub(super) fn of(&self, kind: &'static Kind) -> Self {
        Self { kind, ..self.clone() }.with_usual()
    }

    /// The arguments that all requests of a script share, without the command that publishes.
    pub(super) fn shared(&self, script: &'static Script, lease: Duration) -> Arc<[Arc<str>]> {
        let Kind { acquire, renew, release, .. } = self.kind;
        let usual = [acquire, renew, release].into_iter().position(|usual| **usual == *script);
        match usual.filter(|_| lease == self.lease()) {
            Some(usual) => Arc::clone(&self.usual[usual]),
            // Who enters again may want it for longer, and a read under a write has its own lease.
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
            // Programs listen to the lock's channel that know nothing of the queue.
            "aloud" => if self.kind.is_foreign { "1" } else { "" }.into(),
            other => unreachable!("{}: no lock has `{other}`", script.name),
        };
        labels.map(word).collect()
    }

    /// Where in the queue of a read/write lock it comes.
    pub(super) fn turn(&self) -> &'static str {
        match self.preference {
            _ if !self.kind.is_shared => "next",
            Preference::Fair if crate::mutant!("reader_comes_first") => "first",
            Preference::Fair => "next",
            Preference::Readers => "first",
            Preference::Writers => "last",
        }
    }
}

/// The forms of a client's locks. Those for its own settings are made once.
#[derive(Debug)]
pub(crate) struct Forms {
    calls: Arc<str>,
    made: Vec<Arc<Form>>,
}

impl Forms {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut forms = Self { calls: settings.keys.calls().into(), made: Vec::new() };
        // An invalid lease is an error of the call that locks.
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
