//! A read/write lock on the voters: a hash of the hold that writes and its count, the holds that
//! read with a deadline each, and one queue of all who wait.

use std::{sync::Arc, time::Duration};

use super::request::{self, Form, LockAsked, flag, millis, ticket, token};
use crate::{
    acquire::{Ask, LockInfo, LockRecord},
    keys::{RwKeys, Word},
    proto::{HoldId, HoldIds, LockName, Rules},
    scripts::{mutex, rw},
    settings::Settings,
    voter::Call,
};

/// To read, among others, or to write, alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// With other readers.
    Read,
    /// With nobody else.
    Write,
}

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

/// How a read/write lock is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RwTerms {
    pub(crate) rules: Rules,
    pub(crate) access: Access,
    pub(crate) preference: Preference,
    /// How long a place in the queue counts without being asked from.
    pub(crate) waiting: Duration,
    /// For how long the fence of writes is remembered.
    pub(crate) keep: Duration,
}

/// From where it is asked for.
#[derive(Clone, Debug)]
enum Stand {
    /// From nowhere yet.
    Anywhere,
    /// From a place in the queue.
    Place(HoldId),
    /// From under a write of the same owner.
    Write(HoldId),
}

/// A read/write lock, to read or to write.
#[derive(Clone, Debug)]
pub(super) struct RwRecord {
    made: Arc<MadeRw>,
    stand: Stand,
}

/// What is the same for every request.
#[derive(Debug)]
struct MadeRw {
    info: LockInfo,
    keys: RwKeys,
    forms: Arc<RwForms>,
}

/// What is the same for every lock.
#[derive(Debug)]
pub(super) struct RwForms {
    pub(super) terms: RwTerms,
    /// What the channels begin with on which clients are called.
    calls: Box<str>,
    acquire: Form,
    renew: Form,
    release: Form,
}

impl RwForms {
    pub(super) fn new(calls: &str, terms: RwTerms) -> Self {
        let lease = terms.rules.terms.lease;
        Self {
            terms,
            calls: calls.into(),
            acquire: terms.acquisition(calls, lease),
            renew: terms.renewal(lease),
            release: Form::new(&rw::RELEASE, terms.rules, &[calls]),
        }
    }
}

impl RwTerms {
    pub(crate) fn new(
        settings: &Settings,
        rules: Rules,
        access: Access,
        preference: Preference,
    ) -> Self {
        let waiting = settings.waiting(rules.terms.lease);
        Self { rules, access, preference, waiting, keep: settings.fence_memory }
    }

    /// `read` and `write` tell its two sides from each other and from all other locks.
    pub(crate) fn info(
        &self,
        name: LockName,
        read: &Arc<str>,
        write: &Arc<str>,
        waiting: Option<Duration>,
    ) -> LockInfo {
        let writes = self.access == Access::Write;
        let of = |key: &Arc<str>, access: bool| access.then(|| Arc::clone(key));
        LockInfo {
            kind: self.mode(),
            name,
            key: Arc::clone(if writes { write } else { read }),
            is_shared: !writes,
            permits: None,
            is_fenced: writes,
            granted_under: of(write, !writes),
            barred_by: of(read, writes),
            waiting,
            is_fair: waiting.is_some(),
        }
    }

    fn mode(&self) -> &'static str {
        match self.access {
            Access::Read => "read",
            Access::Write => "write",
        }
    }

    /// Where in the queue it comes.
    fn turn(&self) -> &'static str {
        match (self.access, self.preference) {
            (Access::Read, Preference::Fair) if crate::mutant!("reader_comes_first") => "first",
            (Access::Write, _) | (Access::Read, Preference::Fair) => "next",
            (Access::Read, Preference::Readers) => "first",
            (Access::Read, Preference::Writers) => "last",
        }
    }

    fn acquisition(&self, calls: &str, lease: Duration) -> Form {
        let (lease, keep) = (millis(lease), millis(self.keep));
        let wait = millis(self.waiting);
        let shared = [calls, self.mode(), self.turn(), &lease, &keep, &wait];
        Form::new(&rw::ACQUIRE, self.rules, &shared)
    }

    fn renewal(&self, lease: Duration) -> Form {
        let (lease, keep) = (millis(lease), millis(self.keep));
        Form::new(&rw::RENEW, self.rules, &[self.mode(), &lease, &keep])
    }
}

impl RwRecord {
    pub(super) fn new(name: LockName, keys: RwKeys, forms: Arc<RwForms>) -> Self {
        Self { made: Arc::new(MadeRw::new(name, keys, forms)), stand: Stand::Anywhere }
    }

    /// The keys that `rw/acquire` takes, in their order.
    fn asked(&self) -> [Word<'_>; 6] {
        let MadeRw { keys, .. } = &*self.made;
        let [queue, alive, writers] = [keys.queue(), keys.alive(), keys.writers()];
        [keys.writer(), keys.readers(), queue, alive, writers, keys.fence()]
    }

    /// `place`: the one to leave, or nothing.
    fn give_back(&self, hold: &HoldId, count: u32, place: Option<&HoldId>) -> Call {
        let MadeRw { keys, forms, .. } = &*self.made;
        let keys = [keys.writer(), keys.readers(), keys.queue(), keys.alive(), keys.writers()];
        forms.release.request(keys, hold, [Word::number(count), request::place(place)])
    }
}

impl LockAsked for RwRecord {
    fn inspect(&self, _from: u64) -> Call {
        Form::new(&rw::INSPECT, self.rules(), &[]).question(self.asked())
    }

    fn force_release(&self, hold: &HoldId, marker: Duration) -> Call {
        let form = Form::new(&rw::FORCE_RELEASE, self.rules(), &[&self.made.forms.calls]);
        let [writer, readers, queue, alive, writers, _] = self.asked();
        let keys = [writer, readers, self.made.keys.revoked(), queue, alive, writers];
        form.request(keys, hold, [(&millis(marker)).into()])
    }

    fn clear(&self) -> Call {
        let form = Form::new(&rw::CLEAR, self.rules(), &[]);
        let [writer, readers, queue, alive, writers, fence] = self.asked();
        let revoked = self.made.keys.revoked();
        form.question([writer, readers, revoked, fence, queue, alive, writers])
    }
}

impl MadeRw {
    fn new(name: LockName, keys: RwKeys, forms: Arc<RwForms>) -> Self {
        let terms = &forms.terms;
        let info = terms.info(name, &keys.readers, &keys.writer, Some(terms.waiting));
        Self { info, keys, forms }
    }
}

impl LockRecord for RwRecord {
    fn info(&self) -> &LockInfo {
        &self.made.info
    }

    fn rules(&self) -> Rules {
        self.made.forms.terms.rules
    }

    /// Readers whom writers go on to pass would hold up those behind them that let none pass.
    fn line(&self) -> &'static str {
        self.made.forms.terms.turn()
    }

    fn under(&self, hold: &HoldId) -> Option<Arc<dyn LockRecord>> {
        let MadeRw { info, keys, forms } = &*self.made;
        let forms = RwForms::new(&forms.calls, RwTerms { access: Access::Read, ..forms.terms });
        let made = MadeRw::new(info.name.clone(), keys.clone(), Arc::new(forms));
        Some(Arc::new(Self { made: Arc::new(made), stand: Stand::Write(hold.clone()) }))
    }

    fn hold(&self, ids: &HoldIds) -> HoldId {
        match &self.stand {
            Stand::Write(hold) => ids.under(hold),
            Stand::Anywhere | Stand::Place(_) => self.info().fresh(ids),
        }
    }

    fn at_place(&self, place: &HoldId) -> Arc<dyn LockRecord> {
        Arc::new(Self { stand: Stand::Place(place.clone()), ..self.clone() })
    }

    fn acquire(&self, ask: &Ask<'_>) -> Call {
        let keys = self.asked();
        let RwForms { terms, calls, acquire, .. } = &*self.made.forms;
        let args = [token(ask.token), ticket(ask.ticket)];
        if ask.lease == terms.rules.terms.lease {
            return acquire.request(keys, ask.hold, args);
        }
        // A read under a write has its own lease.
        terms.acquisition(calls, ask.lease).request(keys, ask.hold, args)
    }

    fn renew(&self, ask: &Ask<'_>) -> Call {
        let MadeRw { keys, forms, .. } = &*self.made;
        let RwForms { terms, renew, .. } = &**forms;
        let keys = [keys.writer(), keys.readers(), keys.revoked(), keys.fence()];
        let args = [Word::number(ask.count), token(ask.token), flag(ask.is_anew)];
        if ask.lease == terms.rules.terms.lease {
            return renew.request(keys, ask.hold, args);
        }
        // Somebody has entered again and wanted it for longer.
        terms.renewal(ask.lease).request(keys, ask.hold, args)
    }

    fn release(&self, hold: &HoldId, count: u32) -> Call {
        let place = match &self.stand {
            Stand::Place(place) => Some(place),
            Stand::Anywhere | Stand::Write(_) => None,
        };
        self.give_back(hold, count, place)
    }

    fn shorten(&self, hold: &HoldId, lease: Duration) -> Option<Call> {
        let MadeRw { keys, forms, .. } = &*self.made;
        let (script, key) = match forms.terms.access {
            Access::Read => (&rw::SHORTEN, keys.readers()),
            Access::Write => (&mutex::SHORTEN, keys.writer()),
        };
        let form = Form::new(script, self.rules(), &[]);
        Some(form.request([key, keys.alive()], hold, [(&millis(lease)).into()]))
    }

    fn undo(&self, hold: &HoldId) -> Call {
        self.give_back(hold, 0, None)
    }
}
