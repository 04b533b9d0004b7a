//! A lock that one holds at a time, on the voters: a hash of the hold and its count, with the lease
//! as its expiry, and the queue of those who wait.

use std::{sync::Arc, time::Duration};

use super::{
    request::{self, Form, LockAsked, flag, millis, ticket, token},
    speech::Speech,
};
use crate::{
    acquire::{Ask, ElectionAsked, ForeignQueue, LockInfo, LockRecord},
    keys::{MutexKeys, Word},
    proto::{HoldId, HolderKind, LockName, Rules},
    scripts::{election, mutex},
    settings::Settings,
    voter::Call,
};

/// Which of those it is that one holds at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExclusiveKind {
    Mutex,
    FairMutex,
    Election,
}

impl ExclusiveKind {
    pub(super) const ALL: [Self; 3] = [Self::Mutex, Self::FairMutex, Self::Election];

    /// As metrics and traces call it.
    fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::FairMutex => "fair_mutex",
            Self::Election => "election",
        }
    }

    /// Waiters come in the order of asking.
    fn is_fair(self) -> bool {
        self != Self::Mutex
    }
}

/// How a mutex is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MutexTerms {
    pub(crate) rules: Rules,
    pub(crate) kind: ExclusiveKind,
    /// How long a place in the queue counts without being asked from; `None` where there is no
    /// queue.
    pub(crate) waiting: Option<Duration>,
    /// Programs lock by the same records that stand in no queue of ours, nor are called.
    pub(crate) is_foreign: bool,
    /// For how long the fence is remembered; `None` where that is for ever.
    pub(crate) keep: Option<Duration>,
}

impl MutexTerms {
    pub(crate) fn new(settings: &Settings, rules: Rules, kind: ExclusiveKind) -> Self {
        let lease = rules.terms.lease;
        let waiting = match kind {
            // There a client may listen at another server than the one that calls.
            ExclusiveKind::Mutex if settings.in_cluster => settings.waiting_briefly(lease),
            _ => settings.waiting(lease),
        };
        Self {
            rules,
            kind,
            waiting: Some(waiting),
            is_foreign: false,
            keep: Some(settings.fence_memory),
        }
    }

    /// As an argument.
    fn keep_ms(&self) -> String {
        self.keep.map(millis).unwrap_or_default()
    }

    /// As an argument: programs listen to the lock's channel that know nothing of the queue.
    fn aloud(&self) -> &'static str {
        if self.is_foreign { "1" } else { "" }
    }
}

/// A mutex, a fair mutex or an election.
#[derive(Clone, Debug)]
pub(crate) struct MutexRecord {
    made: Arc<MadeMutex>,
    /// From which place in the queue it is asked for.
    place: Option<HoldId>,
    /// What the candidate says that asks for it. It stands in its record in place of a count.
    speech: Option<Arc<Speech>>,
}

/// What is the same for every request.
#[derive(Debug)]
struct MadeMutex {
    info: LockInfo,
    keys: MutexKeys,
    forms: Arc<MutexForms>,
    foreign_queue: Option<ForeignQueue>,
}

/// What is the same for every lock.
#[derive(Debug)]
pub(crate) struct MutexForms {
    pub(super) terms: MutexTerms,
    /// What the channels begin with on which clients are called.
    calls: Box<str>,
    acquire: Form,
    renew: Form,
    release: Form,
}

impl MutexForms {
    pub(super) fn new(calls: &str, terms: MutexTerms) -> Self {
        let MutexTerms { rules, waiting, .. } = terms;
        let (lease, keep) = (millis(rules.terms.lease), terms.keep_ms());
        let wait = waiting.map(millis).unwrap_or_default();
        let (acquire, renew) = match terms.kind {
            ExclusiveKind::Election => (&election::ACQUIRE, &election::RENEW),
            ExclusiveKind::Mutex | ExclusiveKind::FairMutex => (&mutex::ACQUIRE, &mutex::RENEW),
        };
        Self {
            terms,
            calls: calls.into(),
            acquire: Form::new(acquire, rules, &[calls, &lease, &keep, &wait]),
            renew: Form::new(renew, rules, &[&lease, &keep]),
            release: Form::new(&mutex::RELEASE, rules, &[calls, terms.aloud()]),
        }
    }
}

impl MutexRecord {
    pub(crate) fn new(
        name: LockName,
        keys: MutexKeys,
        forms: Arc<MutexForms>,
        foreign_queue: Option<ForeignQueue>,
    ) -> Self {
        let kind = forms.terms.kind;
        let info = LockInfo {
            kind: kind.name(),
            name,
            key: Arc::clone(&keys.lock),
            is_shared: false,
            permits: None,
            is_fenced: true,
            granted_under: None,
            barred_by: None,
            waiting: forms.terms.waiting,
            is_fair: kind.is_fair(),
        };
        let made = MadeMutex { info, keys, forms, foreign_queue };
        Self { made: Arc::new(made), place: None, speech: None }
    }

    /// The same as a candidate asks for it.
    pub(super) fn with_speech(&self, speech: &Arc<Speech>) -> Self {
        Self { speech: Some(Arc::clone(speech)), ..self.clone() }
    }

    /// The question who leads.
    pub(super) fn asked(self: &Arc<Self>) -> ElectionAsked {
        let keys = &self.made.keys;
        let form = Form::new(&election::LOOK, self.rules(), &[]);
        let (look, news) = (form.question([keys.lock(), keys.fence()]), keys.channel().into());
        ElectionAsked { record: Arc::clone(self) as _, look, news }
    }

    /// `place`: the one to leave, or nothing.
    fn give_back(&self, hold: &HoldId, count: u32, place: Option<&HoldId>) -> Call {
        let MadeMutex { keys, forms, .. } = &*self.made;
        let args = [Word::number(count), request::place(place), keys.channel()];
        forms.release.request([keys.lock(), keys.queue(), keys.alive()], hold, args)
    }
}

impl LockAsked for MutexRecord {
    fn inspect(&self, _from: u64) -> Call {
        let keys = &self.made.keys;
        let keys = [keys.lock(), keys.queue(), keys.alive(), keys.fence()];
        Form::new(&mutex::INSPECT, self.rules(), &[]).question(keys)
    }

    fn force_release(&self, hold: &HoldId, marker: Duration) -> Call {
        let MadeMutex { keys, forms, .. } = &*self.made;
        let shared = [&*forms.calls, forms.terms.aloud()];
        let form = Form::new(&mutex::FORCE_RELEASE, self.rules(), &shared);
        let (marker, channel) = (millis(marker), keys.channel());
        let keys = [keys.lock(), keys.revoked(), keys.queue(), keys.alive()];
        form.request(keys, hold, [(&marker).into(), channel])
    }

    fn clear(&self) -> Call {
        let keys = &self.made.keys;
        let form = Form::new(&mutex::CLEAR, self.rules(), &[]);
        form.question([keys.lock(), keys.revoked(), keys.fence(), keys.queue(), keys.alive()])
    }

    fn leader_asked(self: Arc<Self>) -> Option<ElectionAsked> {
        (self.made.forms.terms.kind == ExclusiveKind::Election).then(|| self.asked())
    }
}

impl LockRecord for MutexRecord {
    fn info(&self) -> &LockInfo {
        &self.made.info
    }

    fn rules(&self) -> Rules {
        self.made.forms.terms.rules
    }

    fn kind_of(&self, _hold: &HoldId) -> HolderKind {
        if self.speech.is_some() { HolderKind::Leader } else { HolderKind::Mutex }
    }

    fn channel(&self) -> Option<Arc<str>> {
        self.is_foreign().then(|| self.made.keys.channel().into())
    }

    fn at_place(&self, place: &HoldId) -> Arc<dyn LockRecord> {
        Arc::new(Self { place: Some(place.clone()), ..self.clone() })
    }

    fn is_foreign(&self) -> bool {
        self.made.forms.terms.is_foreign
    }

    fn foreign_queue(&self) -> Option<&ForeignQueue> {
        self.made.foreign_queue.as_ref()
    }

    fn acquire(&self, ask: &Ask<'_>) -> Call {
        let MadeMutex { keys, forms, .. } = &*self.made;
        let (floor, ticket, channel) = (token(ask.token), ticket(ask.ticket), keys.channel());
        let keys = [keys.lock(), keys.queue(), keys.alive(), keys.fence()];
        debug_assert_eq!(ask.lease, self.rules().terms.lease, "it is entered again by a renewal");
        let Some(speech) = &self.speech else {
            return forms.acquire.request(keys, ask.hold, [floor, ticket]);
        };
        forms.acquire.request(keys, ask.hold, [floor, ticket, (&speech.first()).into(), channel])
    }

    fn renew(&self, ask: &Ask<'_>) -> Call {
        let MadeMutex { keys, forms, .. } = &*self.made;
        let MutexForms { terms, renew, .. } = &**forms;
        let channel = keys.channel();
        let keys = [keys.lock(), keys.revoked(), keys.fence()];
        let (token, [known, anew]) = (token(ask.token), [ask.is_known, ask.is_anew].map(flag));
        if let Some(speech) = &self.speech {
            debug_assert_eq!(ask.lease, terms.rules.terms.lease, "nobody enters it again");
            let says = speech.latest(ask.token);
            return renew.request(keys, ask.hold, [token, (&says).into(), channel, anew]);
        }
        let args = [Word::number(ask.count), token, known, anew];
        if ask.lease == terms.rules.terms.lease {
            return renew.request(keys, ask.hold, args);
        }
        // Somebody has entered again and wanted it for longer.
        let renewed = [millis(ask.lease), terms.keep_ms()];
        let longer = Form::new(&mutex::RENEW, self.rules(), &[&renewed[0], &renewed[1]]);
        longer.request(keys, ask.hold, args)
    }

    fn release(&self, hold: &HoldId, count: u32) -> Call {
        self.give_back(hold, count, self.place.as_ref())
    }

    fn shorten(&self, hold: &HoldId, lease: Duration) -> Option<Call> {
        let form = Form::new(&mutex::SHORTEN, self.rules(), &[]);
        let keys = [self.made.keys.lock(), self.made.keys.alive()];
        Some(form.request(keys, hold, [(&millis(lease)).into()]))
    }

    fn undo(&self, hold: &HoldId) -> Call {
        if crate::mutant!("undo_leaves_the_queue") {
            return self.release(hold, 0);
        }
        self.give_back(hold, 0, None)
    }
}
