//! A lock that one holds at a time, on the voters: a hash of the hold and its count, with the lease
//! as its expiry, and the queue of those who wait in order.

use std::{sync::Arc, time::Duration};

use super::request::{Form, millis, number, token};
use crate::{
    coordinator::{Ask, LockInfo, LockRecord},
    engine::{Rules, Ticket},
    keys::{KeyScheme, MutexKeys},
    node::Call,
    scripts::{fair, mutex, redisson},
    settings::Settings,
    words::{HoldId, LockName},
};

/// How a mutex is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MutexTerms {
    pub(super) rules: Rules,
    /// How long a place in the queue counts without being asked from; `None` where there is no
    /// queue.
    pub(super) waiting: Option<Duration>,
    /// Whoever waits does so in the queue, from the beginning.
    pub(super) is_fair: bool,
    /// Programs in Java lock by the same records.
    pub(super) is_shared_with_java: bool,
    /// For how long the fence is remembered; `None` where that is for ever.
    pub(super) keep: Option<Duration>,
}

impl MutexTerms {
    pub(super) fn new(settings: &Settings, rules: Rules, is_fair: bool) -> Self {
        let is_shared_with_java = settings.keys.is_shared_with_java();
        // Java knows nothing of the queue: its release calls nobody there.
        let has_queue = is_fair || !is_shared_with_java;
        let waiting = has_queue.then(|| settings.waiting(rules.terms.lease));
        // Java counts on from what it finds, and from 1 where that has ended.
        let keep = (!is_shared_with_java).then_some(settings.fence_memory);
        Self { rules, waiting, is_fair, is_shared_with_java, keep }
    }

    /// As an argument.
    fn keep_ms(&self) -> String {
        self.keep.map(millis).unwrap_or_default()
    }

    /// As an argument: whether a release is told on the lock's channel whoever is called.
    fn aloud(&self) -> &'static str {
        if self.is_shared_with_java { "1" } else { "" }
    }
}

/// A mutex, or a fair mutex.
#[derive(Clone, Debug)]
pub(super) struct MutexRecord {
    made: Arc<MadeMutex>,
    /// From which place in the queue it is asked for.
    place: Option<HoldId>,
}

/// What is the same for every request.
#[derive(Debug)]
struct MadeMutex {
    info: LockInfo,
    keys: MutexKeys,
    forms: Arc<MutexForms>,
}

/// What is the same for every lock.
#[derive(Debug)]
pub(super) struct MutexForms {
    pub(super) terms: MutexTerms,
    acquire: Form,
    from_a_place: Form,
    renew: Form,
    release: Form,
}

impl MutexForms {
    /// `calls`: what the channels begin with on which clients are called.
    pub(super) fn new(calls: &str, terms: MutexTerms) -> Self {
        let MutexTerms { rules, waiting, .. } = terms;
        let (lease, keep) = (millis(rules.terms.lease), terms.keep_ms());
        let wait = waiting.map(millis).unwrap_or_default();
        Self {
            terms,
            acquire: Form::new(&mutex::ACQUIRE, rules, &[&lease, &keep]),
            from_a_place: Form::new(&fair::ACQUIRE, rules, &[calls, &lease, &keep, &wait]),
            renew: Form::new(&mutex::RENEW, rules, &[&lease, &keep]),
            release: Form::new(&mutex::RELEASE, rules, &[calls, terms.aloud()]),
        }
    }
}

impl MutexRecord {
    pub(super) fn new(name: LockName, scheme: &KeyScheme, forms: Arc<MutexForms>) -> Self {
        let keys = scheme.mutex(&name);
        let info = LockInfo {
            kind: if forms.terms.is_fair { "fair_mutex" } else { "mutex" },
            name,
            key: Arc::clone(&keys.lock),
            channel: Some(Arc::clone(&keys.channel)),
            is_shared: false,
            permits: None,
            is_fenced: true,
            granted_under: None,
            barred_by: None,
            waiting: forms.terms.waiting,
            is_fair: forms.terms.is_fair,
        };
        Self { made: Arc::new(MadeMutex { info, keys, forms }), place: None }
    }

    pub(super) fn rules(&self) -> Rules {
        self.made.forms.terms.rules
    }

    pub(super) fn inspect(&self) -> Call {
        let MutexKeys { lock, queue, alive, fence, .. } = &self.made.keys;
        Form::new(&mutex::INSPECT, self.rules(), &[]).question([lock, queue, alive, fence])
    }

    /// Ends a named hold; its mark stays for `marker`.
    pub(super) fn force_release(&self, hold: &HoldId, marker: Duration) -> Call {
        let MutexKeys { lock, revoked, queue, alive, channel, calls, .. } = &self.made.keys;
        let aloud = self.made.forms.terms.aloud();
        let form = Form::new(&mutex::FORCE_RELEASE, self.rules(), &[calls, aloud]);
        let args = [millis(marker).into(), Arc::clone(channel)];
        form.request([lock, revoked, queue, alive], hold, args)
    }

    /// Takes out who waits, and what is none of its records.
    pub(super) fn clear(&self) -> Call {
        let MutexKeys { lock, revoked, fence, queue, alive, .. } = &self.made.keys;
        let form = Form::new(&mutex::CLEAR, self.rules(), &[]);
        form.question([lock, revoked, fence, queue, alive])
    }

    /// `place`: the one to leave, or nothing.
    fn give_back(&self, hold: &HoldId, count: u32, place: Option<&HoldId>, wake: bool) -> Call {
        let MutexKeys { lock, queue, alive, channel, .. } = &self.made.keys;
        let place = place.map_or_else(|| "".into(), |place| Arc::clone(place.text()));
        // Java waits voter by voter: to its waiters also a minority's vote is worth a call.
        let wake = wake || self.made.forms.terms.is_shared_with_java;
        let channel = if wake { Arc::clone(channel) } else { "".into() };
        self.made.forms.release.request([lock, queue, alive], hold, [number(count), place, channel])
    }
}

impl LockRecord for MutexRecord {
    fn info(&self) -> &LockInfo {
        &self.made.info
    }

    fn at_place(&self, place: &HoldId) -> Arc<dyn LockRecord> {
        Arc::new(Self { place: Some(place.clone()), ..self.clone() })
    }

    fn look_for_java(&self) -> Option<Call> {
        self.made.forms.terms.is_shared_with_java.then(|| {
            let [waiting, timeouts] = &KeyScheme::fair_lock_in_java(&self.made.info.name);
            Form::new(&redisson::QUEUE, self.rules(), &[]).question([waiting, timeouts])
        })
    }

    fn acquire(&self, ask: &Ask<'_>) -> Call {
        let MadeMutex { keys: MutexKeys { lock, queue, alive, fence, .. }, .. } = &*self.made;
        let keys = [lock, queue, alive, fence];
        let floor = token(ask.token);
        debug_assert_eq!(ask.lease, self.rules().terms.lease, "it is entered again by a renewal");
        if self.place.is_none() {
            return self.made.forms.acquire.request(keys, ask.hold, [floor]);
        }
        let ticket = ask.ticket.map_or_else(|| "".into(), |Ticket(ticket)| number(ticket));
        self.made.forms.from_a_place.request(keys, ask.hold, [floor, ticket])
    }

    fn renew(&self, ask: &Ask<'_>) -> Call {
        let MadeMutex { keys: MutexKeys { lock, revoked, fence, .. }, forms, .. } = &*self.made;
        let MutexForms { terms, renew, .. } = &**forms;
        let (keys, args) = ([lock, revoked, fence], [number(ask.count), token(ask.token)]);
        if ask.lease == terms.rules.terms.lease {
            return renew.request(keys, ask.hold, args);
        }
        // Somebody has entered again and wanted it for longer.
        let renewed = [millis(ask.lease), terms.keep_ms()];
        let longer = Form::new(&mutex::RENEW, self.rules(), &[&renewed[0], &renewed[1]]);
        longer.request(keys, ask.hold, args)
    }

    fn release(&self, hold: &HoldId, count: u32, wake: bool) -> Call {
        self.give_back(hold, count, self.place.as_ref(), wake)
    }

    fn undo(&self, hold: &HoldId, wake: bool) -> Call {
        if crate::mutant!("undo_leaves_the_queue") {
            return self.release(hold, 0, wake);
        }
        self.give_back(hold, 0, None, wake)
    }
}
