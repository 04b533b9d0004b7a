//! A lock that one holds at a time, on the voters: a hash of the hold and its count, with the lease
//! as its expiry, and the queue of those who wait in order.

use std::{sync::Arc, time::Duration};

use super::request::{fencing, millis, request};
use crate::{
    coordinator::{Ask, Record},
    engine::Ticket,
    keys::{KeyScheme, MutexKeys},
    node::{Call, Outcome},
    scripts::{Answer, fair, mutex},
    words::{HoldId, LockName},
};

/// How a release is told; a cluster may do it otherwise.
const PUBLISH: &str = "PUBLISH";

/// How a lock is waited for.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// Whoever asks first when it is free.
    None,
    /// By tickets; a place counts for so long without being asked from.
    Fair { waiting: Duration },
    /// The same, as it is asked for from a place in the queue.
    From { place: HoldId, waiting: Duration },
}

#[derive(Clone, Debug)]
pub(super) struct MutexRecord {
    name: LockName,
    keys: MutexKeys,
    deadline: Duration,
    order: Order,
    /// For how long the fence is remembered; `None` where its holds have no tokens.
    fence: Option<Duration>,
}

impl MutexRecord {
    /// `deadline`: how long each voter has to answer.
    pub(super) fn new(
        name: LockName,
        scheme: &KeyScheme,
        deadline: Duration,
        order: Order,
        fence: Option<Duration>,
    ) -> Self {
        Self { keys: scheme.mutex(&name), name, deadline, order, fence }
    }

    pub(super) fn inspect(&self) -> Call {
        let MutexKeys { lock, queue, alive, .. } = &self.keys;
        request(&mutex::INSPECT, self.deadline, [lock, queue, alive], [])
    }

    /// Ends a named hold; its mark stays for `marker`.
    pub(super) fn force_release(&self, hold: &HoldId, marker: Duration) -> Call {
        let MutexKeys { lock, revoked, queue, alive, channel, calls, .. } = &self.keys;
        let args = [hold.as_str(), &millis(marker), channel, PUBLISH, calls];
        request(&mutex::FORCE_RELEASE, self.deadline, [lock, revoked, queue, alive], args)
    }

    /// Takes out who waits, and what is none of its records.
    pub(super) fn clear(&self) -> Call {
        let MutexKeys { lock, revoked, fence, queue, alive, .. } = &self.keys;
        request(&mutex::CLEAR, self.deadline, [lock, revoked, fence, queue, alive], [])
    }

    /// `place`: the one to leave, or nothing.
    fn give_back(&self, hold: &HoldId, count: u32, place: &str, wake: bool) -> Call {
        let MutexKeys { lock, queue, alive, channel, calls, .. } = &self.keys;
        let channel = if wake { channel } else { "" };
        let args = [hold.as_str(), &count.to_string(), place, channel, PUBLISH, calls];
        request(&mutex::RELEASE, self.deadline, [lock, queue, alive], args)
    }
}

impl Record for MutexRecord {
    fn kind(&self) -> &'static str {
        match self.order {
            Order::None => "mutex",
            Order::Fair { .. } | Order::From { .. } => "fair_mutex",
        }
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn key(&self) -> &Arc<str> {
        &self.keys.lock
    }

    fn is_fenced(&self) -> bool {
        self.fence.is_some()
    }

    fn channel(&self) -> &Arc<str> {
        &self.keys.channel
    }

    fn acquire(&self, ask: &Ask<'_>) -> Call {
        let MutexKeys { lock, queue, alive, fence, calls, .. } = &self.keys;
        let (hold, count, lease) = (ask.hold.as_str(), ask.count.to_string(), millis(ask.lease));
        let (floor, keep) = fencing(ask.token, self.fence);
        let keys = [lock, queue, alive, fence];
        let Order::From { waiting, .. } = &self.order else {
            let args = [hold, &count, &lease, &floor, &keep];
            return request(&mutex::ACQUIRE, self.deadline, keys, args);
        };
        let ticket = ask.ticket.map(|Ticket(number)| number.to_string()).unwrap_or_default();
        let args = [hold, &count, &lease, &floor, &keep, &ticket, &millis(*waiting), calls];
        request(&fair::ACQUIRE, self.deadline, keys, args)
    }

    fn renew(&self, ask: &Ask<'_>) -> Call {
        let MutexKeys { lock, revoked, fence, .. } = &self.keys;
        let (token, keep) = fencing(ask.token, self.fence);
        let args = [ask.hold.as_str(), &ask.count.to_string(), &millis(ask.lease), &token, &keep];
        request(&mutex::RENEW, self.deadline, [lock, revoked, fence], args)
    }

    fn release(&self, hold: &HoldId, count: u32, wake: bool) -> Call {
        let place = match &self.order {
            Order::From { place, .. } => place.as_str(),
            Order::None | Order::Fair { .. } => "",
        };
        self.give_back(hold, count, place, wake)
    }

    fn undo(&self, hold: &HoldId, wake: bool) -> Call {
        if crate::mutant!("undo_leaves_the_queue") {
            return self.release(hold, 0, wake);
        }
        self.give_back(hold, 0, "", wake)
    }

    fn in_queue(&self, place: &HoldId) -> Option<(Arc<dyn Record>, Duration)> {
        let Order::Fair { waiting } = self.order else { return None };
        let order = Order::From { place: place.clone(), waiting };
        Some((Arc::new(Self { order, ..self.clone() }), waiting))
    }

    fn ticket(&self, outcome: &mut Outcome<Answer>) -> Option<Ticket> {
        outcome.as_mut().ok()?.take_ticket().map(Ticket)
    }
}
