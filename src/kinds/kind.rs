//! What the kinds of locks differ in: a row of data for each. And the *form* of a kind: what all
//! its requests with the same settings have in common.

use std::{sync::Arc, time::Duration};

use crate::{
    proto::{HoldId, HolderKind, LockKind, Rules},
    scripts::{Script, election, mutex, rw, semaphore},
    settings::Settings,
};

/// One kind of lock: its scripts, and the names of its keys.
///
/// A script's header names its keys and arguments by labels. A key is called `<stem>:<label>`,
/// unless `names` says otherwise; the label of the record is `lock`. So a new kind is its Lua and
/// one more of these rows.
// Data, and no trait with an implementation for each kind: four of these made the same requests by
// hand, six times over.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing of a kind")]
pub(crate) struct Kind {
    /// Its name in metrics and traces.
    pub(crate) name: &'static str,
    /// Its name for users and operators.
    pub(crate) lock: LockKind,
    /// What a hold of it does with it.
    pub(crate) holder: fn(&HoldId) -> HolderKind,
    /// Several holds may have it at once.
    pub(crate) is_shared: bool,
    /// Its holds have tokens.
    pub(crate) is_fenced: bool,
    /// Waiters get it in the order of asking. Otherwise one task of a client at a time has a place
    /// in the queue, and voters remove a place whose client does not listen when they wake it.
    pub(crate) is_fair: bool,
    /// Programs of another library lock by the same records. Their release publishes on the lock's
    /// channel, and wakes nobody in our queue.
    pub(crate) is_foreign: bool,
    /// What the other library calls a lock with a queue of its own, and the script that asks
    /// whether anybody waits there.
    pub(crate) foreign_queue: Option<(&'static str, &'static Script)>,
    /// Waiters have places in a queue on the voters.
    pub(crate) has_queue: bool,
    /// Voters forget its latest token some time after its last hold.
    // Not Redisson's: Java counts on from what it finds, and from 1 where nothing is left.
    pub(crate) forgets_fence: bool,
    /// What the names of its keys begin with, behind `<prefix>:{<name>}`.
    pub(crate) stem: &'static str,
    /// What the name of its record ends with, behind that.
    pub(crate) record: &'static str,
    /// The keys and channels that are not called by their labels, with what stands before and
    /// behind the stem.
    pub(crate) names: &'static [(&'static str, [&'static str; 2])],
    /// The label of the key that no other lock has, if the record is not it.
    pub(crate) identity: Option<&'static str>,
    /// The label of the key that identifies the other side of a read/write lock.
    pub(crate) other_side: Option<&'static str>,
    /// The kind that its holder may have besides, at once: a writer may read.
    pub(crate) grants: Option<&'static Kind>,
    /// What the ids of its holds end with.
    pub(crate) ending: &'static str,
    pub(crate) acquire: &'static Script,
    pub(crate) renew: &'static Script,
    pub(crate) release: &'static Script,
    /// `None`: its leases cannot be shortened.
    pub(crate) shorten: Option<&'static Script>,
    /// Ends a named hold by force.
    pub(crate) end: &'static Script,
    /// Deletes its queue, and values under its keys that no lock has written.
    pub(crate) clear: &'static Script,
    /// Says who has it and who waits; and the number of lists in the answer.
    pub(crate) look: (&'static Script, usize),
    /// Says who leads an election.
    pub(crate) leader: Option<&'static Script>,
}

impl PartialEq for Kind {
    // Each kind is one static.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

pub(crate) static MUTEX: Kind = Kind {
    name: "mutex",
    lock: LockKind::Mutex,
    holder: |hold| if hold.is_parked() { HolderKind::Parked } else { HolderKind::Mutex },
    is_shared: false,
    is_fenced: true,
    is_fair: false,
    is_foreign: false,
    foreign_queue: None,
    has_queue: true,
    forgets_fence: true,
    stem: "",
    record: "",
    names: &[],
    identity: None,
    other_side: None,
    grants: None,
    ending: "",
    acquire: &mutex::ACQUIRE,
    renew: &mutex::RENEW,
    release: &mutex::RELEASE,
    shorten: Some(&mutex::SHORTEN),
    end: &mutex::FORCE_RELEASE,
    clear: &mutex::CLEAR,
    look: (&mutex::INSPECT, 1),
    leader: None,
};

/// The same lock as the mutex of its name.
// With the same records and the same queue: otherwise the two would not exclude each other, and a
// plain waiter would pass the fair ones (`mutex_passes_the_queue`).
pub(crate) static FAIR_MUTEX: Kind = Kind { name: "fair_mutex", is_fair: true, ..MUTEX };

/// Its record has the leader's value in place of a count.
pub(crate) static ELECTION: Kind = Kind {
    name: "election",
    lock: LockKind::Election,
    holder: |_| HolderKind::Leader,
    is_fair: true,
    stem: ":election",
    names: &[("channel", ["", ":news"])],
    acquire: &election::ACQUIRE,
    renew: &election::RENEW,
    leader: Some(&election::LOOK),
    ..MUTEX
};

/// A mutex that remembers what is done, under a key of its own.
pub(crate) static ONCE: Kind =
    Kind { name: "once", lock: LockKind::Once, is_fair: true, stem: ":once", ..MUTEX };

pub(crate) static WRITE: Kind = Kind {
    name: "write",
    lock: LockKind::RwLock,
    holder: |hold| if hold.reads() { HolderKind::Read } else { HolderKind::Write },
    is_fair: true,
    stem: ":rw",
    record: ":writer",
    other_side: Some("readers"),
    grants: Some(&READ),
    acquire: &rw::ACQUIRE,
    renew: &rw::RENEW,
    release: &rw::RELEASE,
    end: &rw::FORCE_RELEASE,
    clear: &rw::CLEAR,
    look: (&rw::INSPECT, 3),
    ..MUTEX
};

pub(crate) static READ: Kind = Kind {
    name: "read",
    is_shared: true,
    is_fenced: false,
    record: ":readers",
    other_side: Some("writer"),
    grants: None,
    shorten: Some(&rw::SHORTEN),
    ..WRITE
};

pub(crate) static SEMAPHORE: Kind = Kind {
    name: "semaphore",
    lock: LockKind::Semaphore,
    holder: |_| HolderKind::Permit,
    is_shared: true,
    is_fenced: false,
    is_fair: true,
    stem: ":semaphore",
    record: ":slots",
    acquire: &semaphore::ACQUIRE,
    renew: &semaphore::RENEW,
    release: &semaphore::RELEASE,
    shorten: Some(&semaphore::SHORTEN),
    end: &semaphore::FORCE_RELEASE,
    clear: &semaphore::CLEAR,
    look: (&semaphore::INSPECT, 2),
    ..MUTEX
};

/// The kinds for which a client makes forms when it connects.
pub(super) static ALL: [&Kind; 7] =
    [&MUTEX, &FAIR_MUTEX, &ONCE, &ELECTION, &READ, &WRITE, &SEMAPHORE];

/// The kind of lock that is held or waited for if this key exists. `end`: what the key has behind
/// `<prefix>:{<name>}`.
// Only records and queues: tokens, and the marks of forced ends, last longer than holds.
pub(crate) fn kind_of(end: &str) -> Option<LockKind> {
    let shows = |kind: &&&Kind| {
        end.strip_prefix(kind.stem).is_some_and(|end| end == kind.record || end == ":queue")
    };
    ALL.iter().find(shows).map(|kind| kind.lock)
}

// Forms.

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
    wakeup_channels: Arc<str>,
    /// The arguments that requests with the usual lease share: to acquire, to renew and to release.
    // Made once, as they are the same for every lock: `lock` and `release` allocate less.
    usual: [Arc<[Arc<str>]>; 3],
}

impl Form {
    fn new(
        kind: &'static Kind,
        rules: Rules,
        preference: Preference,
        wakeup_channels: &Arc<str>,
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
        let (wakeup_channels, usual) = (Arc::clone(wakeup_channels), Default::default());
        Self { kind, rules, waiting, keep, preference, wakeup_channels, usual }.with_usual()
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
            "calls" => Arc::clone(&self.wakeup_channels),
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
    wakeup_channels: Arc<str>,
    made: Vec<Arc<Form>>,
}

impl Forms {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut forms =
            Self { wakeup_channels: settings.keys.wakeup_channels().into(), made: Vec::new() };
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
        made.unwrap_or_else(|| {
            Arc::new(Form::new(kind, rules, preference, &self.wakeup_channels, settings))
        })
    }
}
