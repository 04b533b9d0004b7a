//! A semaphore on the voters: who has which slot, until when each of them counts, and the queue of
//! those who wait.

use std::{iter::once, sync::Arc, time::Duration};

use super::request::{self, Form, LockAsked, flag, millis, ticket};
use crate::{
    acquire::{Ask, LockInfo, LockRecord},
    keys::{SemaphoreKeys, Word},
    proto::{Circle, HoldId, LockName, Rules, Slots},
    scripts::semaphore,
    voter::Call,
};

/// How a semaphore is asked for, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SemaphoreTerms {
    pub(super) rules: Rules,
    /// How long a place in the queue counts without being asked from.
    pub(super) waiting: Duration,
}

/// Of how many permits a semaphore is, and how many of them are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PermitsWanted {
    pub(super) permits: u16,
    pub(super) wanted: u16,
}

/// A semaphore, for so many of its permits.
#[derive(Clone, Debug)]
pub(super) struct SemaphoreRecord {
    made: Arc<MadeSemaphore>,
    /// From which place in the queue it is asked for.
    place: Option<HoldId>,
}

/// What is the same for every request.
#[derive(Debug)]
struct MadeSemaphore {
    info: LockInfo,
    keys: SemaphoreKeys,
    forms: Arc<SemaphoreForms>,
    wanted: PermitsWanted,
}

/// What is the same for every semaphore.
#[derive(Debug)]
pub(super) struct SemaphoreForms {
    pub(super) terms: SemaphoreTerms,
    acquire: Form,
    renew: Form,
    release: Form,
}

impl SemaphoreForms {
    /// `calls`: what the channels begin with on which clients are called.
    pub(super) fn new(calls: &str, terms: SemaphoreTerms) -> Self {
        let SemaphoreTerms { rules, waiting } = terms;
        let lease = millis(rules.terms.lease);
        Self {
            terms,
            acquire: Form::new(&semaphore::ACQUIRE, rules, &[calls, &lease, &millis(waiting)]),
            renew: Form::new(&semaphore::RENEW, rules, &[calls, &lease]),
            release: Form::new(&semaphore::RELEASE, rules, &[calls]),
        }
    }
}

impl SemaphoreRecord {
    pub(super) fn new(
        name: LockName,
        keys: SemaphoreKeys,
        forms: Arc<SemaphoreForms>,
        wanted: PermitsWanted,
    ) -> Self {
        // Who has some enters again by asking for as many.
        let key = match wanted.wanted {
            1 => Arc::clone(&keys.slots),
            many => format!("{} {many}", keys.slots).into(),
        };
        let info = LockInfo {
            kind: "semaphore",
            name,
            key,
            is_shared: true,
            permits: Some(wanted.permits),
            is_fenced: false,
            granted_under: None,
            barred_by: None,
            waiting: Some(forms.terms.waiting),
            is_fair: true,
        };
        Self { made: Arc::new(MadeSemaphore { info, keys, forms, wanted }), place: None }
    }

    /// `place`: the one to leave, or nothing.
    fn give_back(&self, hold: &HoldId, count: u32, place: Option<&HoldId>) -> Call {
        let SemaphoreKeys { slots, ends, queue, served, alive, .. } = &self.made.keys;
        let keys = [slots, ends, queue, served, alive];
        let args = [Word::number(count), request::place(place)];
        self.weighed(self.made.forms.release.request(keys, hold, args))
    }

    /// For a hold of so many slots as are wanted.
    fn weighed(&self, call: Call) -> Call {
        call.weighing(self.made.wanted.wanted)
    }
}

impl LockAsked for SemaphoreRecord {
    fn inspect(&self, from: u64) -> Call {
        let SemaphoreKeys { slots, ends, queue, alive, permits, .. } = &self.made.keys;
        let form = Form::new(&semaphore::INSPECT, self.rules(), &[]);
        let keys = [slots, ends, queue, alive, permits];
        let asked = form.fill(keys.map(Word::from), once(Word::number(from)), None);
        asked.weighing(Slots::AT_ONCE)
    }

    fn force_release(&self, hold: &HoldId, marker: Duration) -> Call {
        let SemaphoreKeys { slots, ends, revoked, queue, served, alive, calls, .. } =
            &self.made.keys;
        let form = Form::new(&semaphore::FORCE_RELEASE, self.rules(), &[calls]);
        let keys = [slots, ends, revoked, queue, served, alive];
        form.request(keys, hold, [(&millis(marker)).into()])
    }

    fn clear(&self) -> Call {
        let SemaphoreKeys { slots, ends, revoked, queue, served, alive, permits, .. } =
            &self.made.keys;
        let form = Form::new(&semaphore::CLEAR, self.rules(), &[]);
        form.question([slots, ends, revoked, queue, served, alive, permits])
    }
}

impl LockRecord for SemaphoreRecord {
    fn info(&self) -> &LockInfo {
        &self.made.info
    }

    fn rules(&self) -> Rules {
        self.made.forms.terms.rules
    }

    fn at_place(&self, place: &HoldId) -> Arc<dyn LockRecord> {
        Arc::new(Self { place: Some(place.clone()), ..self.clone() })
    }

    fn acquire(&self, ask: &Ask<'_>) -> Call {
        let SemaphoreKeys { slots, ends, queue, served, alive, permits, .. } = &self.made.keys;
        let keys = [slots, ends, queue, served, alive, permits];
        let PermitsWanted { permits, wanted } = self.made.wanted;
        let Circle { start, .. } = Circle::of(ask.hold, permits);
        let floors = ask.slots.map(Slots::text);
        debug_assert_eq!(ask.lease, self.rules().terms.lease, "it is entered again by a renewal");
        let [permits, wanted, start] = [permits, wanted, start].map(Word::number);
        let args = [permits, wanted, start, floors.as_ref().into(), ticket(ask.ticket)];
        self.weighed(self.made.forms.acquire.request(keys, ask.hold, args))
    }

    fn renew(&self, ask: &Ask<'_>) -> Call {
        let MadeSemaphore { keys, forms, wanted, .. } = &*self.made;
        let SemaphoreKeys { slots, ends, revoked, queue, served, alive, permits, calls } = keys;
        let keys = [slots, ends, revoked, queue, served, alive, permits];
        let given = ask.slots.expect("whoever has permits has slots").text();
        let args = [Word::number(wanted.permits), (&given).into(), flag(ask.is_anew)];
        if ask.lease == forms.terms.rules.terms.lease {
            return self.weighed(forms.renew.request(keys, ask.hold, args));
        }
        // Somebody has entered again and wanted it for longer.
        let longer = Form::new(&semaphore::RENEW, self.rules(), &[calls, &millis(ask.lease)]);
        self.weighed(longer.request(keys, ask.hold, args))
    }

    fn release(&self, hold: &HoldId, count: u32) -> Call {
        self.give_back(hold, count, self.place.as_ref())
    }

    fn shorten(&self, hold: &HoldId, lease: Duration) -> Option<Call> {
        let MadeSemaphore { keys: SemaphoreKeys { slots, ends, .. }, wanted, .. } = &*self.made;
        let form = Form::new(&semaphore::SHORTEN, self.rules(), &[]);
        let lease = millis(lease);
        let args = [(&lease).into(), Word::number(wanted.wanted)];
        Some(self.weighed(form.request([slots, ends], hold, args)))
    }

    fn undo(&self, hold: &HoldId) -> Call {
        self.give_back(hold, 0, None)
    }
}
