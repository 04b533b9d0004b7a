//! A read/write lock on the voters: a hash of the hold that writes and its count, the holds that
//! read with a deadline each, and one queue of all who wait.

use std::{sync::Arc, time::Duration};

use super::{
    Access, Preference,
    request::{fencing, millis, request},
};
use crate::{
    coordinator::{Ask, Record},
    engine::Ticket,
    keys::{KeyScheme, RwKeys},
    node::{Call, Outcome},
    scripts::{Answer, rw},
    words::{HoldId, HoldIds, LockName},
};

/// From where it is asked for.
#[derive(Clone, Debug)]
enum From {
    /// From nowhere yet.
    Anywhere,
    /// From a place in the queue.
    Place(HoldId),
    /// From under a write of the same owner.
    Write(HoldId),
}

#[derive(Clone, Debug)]
pub(super) struct RwRecord {
    name: LockName,
    keys: RwKeys,
    deadline: Duration,
    access: Access,
    preference: Preference,
    /// How long a place in the queue counts without being asked from.
    waiting: Duration,
    /// For how long the fence is remembered; `None` where writes have no tokens.
    fence: Option<Duration>,
    from: From,
}

impl RwRecord {
    /// `deadline`: how long each voter has to answer.
    pub(super) fn new(
        name: LockName,
        scheme: &KeyScheme,
        deadline: Duration,
        (waiting, fence): (Duration, Option<Duration>),
        (access, preference): (Access, Preference),
    ) -> Self {
        let keys = scheme.rw_lock(&name);
        Self { name, keys, deadline, access, preference, waiting, fence, from: From::Anywhere }
    }

    pub(super) fn inspect(&self) -> Call {
        let RwKeys { writer, readers, queue, alive, writers, .. } = &self.keys;
        request(&rw::INSPECT, self.deadline, [writer, readers, queue, alive, writers], [])
    }

    /// Ends a named hold; its mark stays for `marker`.
    pub(super) fn force_release(&self, hold: &HoldId, marker: Duration) -> Call {
        let RwKeys { writer, readers, revoked, queue, alive, writers, calls, .. } = &self.keys;
        let keys = [writer, readers, revoked, queue, alive, writers];
        let args = [hold.as_str(), &millis(marker), calls];
        request(&rw::FORCE_RELEASE, self.deadline, keys, args)
    }

    /// Takes out who waits, and what is none of its records.
    pub(super) fn clear(&self) -> Call {
        let RwKeys { writer, readers, revoked, fence, queue, alive, writers, .. } = &self.keys;
        let keys = [writer, readers, revoked, fence, queue, alive, writers];
        request(&rw::CLEAR, self.deadline, keys, [])
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

    /// `place`: the one to leave, or nothing.
    fn give_back(&self, hold: &HoldId, count: u32, place: &str) -> Call {
        let RwKeys { writer, readers, queue, alive, writers, calls, .. } = &self.keys;
        let args = [hold.as_str(), &count.to_string(), place, calls];
        request(&rw::RELEASE, self.deadline, [writer, readers, queue, alive, writers], args)
    }
}

impl Record for RwRecord {
    fn kind(&self) -> &'static str {
        self.mode()
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn key(&self) -> &Arc<str> {
        match self.access {
            Access::Read => &self.keys.readers,
            Access::Write => &self.keys.writer,
        }
    }

    fn is_fenced(&self) -> bool {
        self.access == Access::Write && self.fence.is_some()
    }

    /// Whoever waits does so in the queue, so nothing is ever told here.
    fn channel(&self) -> &Arc<str> {
        &self.keys.calls
    }

    fn is_shared(&self) -> bool {
        self.access == Access::Read
    }

    fn granted_under(&self) -> Option<&Arc<str>> {
        (self.access == Access::Read).then_some(&self.keys.writer)
    }

    fn barred_by(&self) -> Option<&Arc<str>> {
        (self.access == Access::Write).then_some(&self.keys.readers)
    }

    fn under(&self, hold: &HoldId) -> Option<Arc<dyn Record>> {
        let from = From::Write(hold.clone());
        Some(Arc::new(Self { access: Access::Read, from, ..self.clone() }))
    }

    fn hold(&self, ids: &HoldIds) -> HoldId {
        match &self.from {
            From::Write(hold) => ids.under(hold),
            From::Anywhere | From::Place(_) => ids.fresh(),
        }
    }

    fn acquire(&self, ask: &Ask<'_>) -> Call {
        let RwKeys { writer, readers, queue, alive, writers, fence, calls, .. } = &self.keys;
        let (hold, mode, count) = (ask.hold.as_str(), self.mode(), ask.count.to_string());
        let (lease, wait) = (millis(ask.lease), millis(self.waiting));
        let (floor, keep) = fencing(ask.token, self.fence);
        let ticket = ask.ticket.map(|Ticket(number)| number.to_string()).unwrap_or_default();
        let turn = self.turn();
        let args = [hold, mode, &count, &lease, &floor, &keep, &ticket, turn, &wait, calls];
        request(&rw::ACQUIRE, self.deadline, [writer, readers, queue, alive, writers, fence], args)
    }

    fn renew(&self, ask: &Ask<'_>) -> Call {
        let RwKeys { writer, readers, revoked, fence, .. } = &self.keys;
        let (count, lease) = (ask.count.to_string(), millis(ask.lease));
        let (token, keep) = fencing(ask.token, self.fence);
        let args = [ask.hold.as_str(), self.mode(), &count, &lease, &token, &keep];
        request(&rw::RENEW, self.deadline, [writer, readers, revoked, fence], args)
    }

    fn release(&self, hold: &HoldId, count: u32, _wake: bool) -> Call {
        let place = match &self.from {
            From::Place(place) => place.as_str(),
            From::Anywhere | From::Write(_) => "",
        };
        self.give_back(hold, count, place)
    }

    fn undo(&self, hold: &HoldId, _wake: bool) -> Call {
        self.give_back(hold, 0, "")
    }

    fn in_queue(&self, place: &HoldId) -> Option<(Arc<dyn Record>, Duration)> {
        let from = From::Place(place.clone());
        Some((Arc::new(Self { from, ..self.clone() }), self.waiting))
    }

    fn ticket(&self, outcome: &mut Outcome<Answer>) -> Option<Ticket> {
        outcome.as_mut().ok()?.take_ticket().map(Ticket)
    }
}
