//! What one client holds, and until when it relies on each hold: the deadline that it got last.
//!
//! The library may have renewed a hold for longer. It is released at the client's deadline even so:
//! from then on the client does not rely on it, and others need not wait.

use std::{collections::HashMap, mem, sync::Arc, time::Duration};

use super::wire::{KindName, micros};
use crate::{clock, lock::LockHeld};

/// The longest time that a program has to end its work before a loss.
// As long as the library gives to leaders (`Leadership::ending`).
const GRACE: Duration = Duration::from_secs(10);
/// The shortest and the longest time between two pings of a client.
const BEAT: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(2_500)];

/// The longest difference between two deadlines of the same moment.
const MOMENT: Duration = Duration::from_millis(10);

pub(super) struct Held {
    pub(super) lock: Arc<LockHeld>,
    pub(super) kind: KindName,
    /// It stays until its deadline if its process dies.
    pub(super) outlives: bool,
    lease: Duration,
    /// The deadline that its client got last.
    deadline: Duration,
    /// Whether its client was warned of its end.
    is_ending: bool,
}

impl Held {
    /// A hold, and the deadline to send to its client.
    pub(super) fn new(
        lock: LockHeld,
        kind: KindName,
        outlives: bool,
        lease: Duration,
    ) -> (Self, u64) {
        let (lock, deadline) = (Arc::new(lock), Duration::ZERO);
        let mut held = Self { lock, kind, outlives, lease, deadline, is_ending: false };
        let deadline_us = held.move_deadline();
        (held, deadline_us)
    }

    /// The deadline to send to the client: the library's, on the clock that both can read.
    pub(super) fn move_deadline(&mut self) -> u64 {
        // The clock first: time that passes in between makes the deadline earlier (law 2).
        let now = clock::monotonic();
        let deadline = micros(now + self.lock.remaining());
        // Never back: the client relies on the later one already, and releasing at an earlier one
        // would let another in beside it.
        self.deadline = self.deadline.max(Duration::from_micros(deadline));
        micros(self.deadline)
    }

    pub(super) fn extend_deadline(&mut self, lease: Duration) -> u64 {
        self.lease = self.lease.max(lease);
        self.move_deadline()
    }
}

/// What a look at the holds found: holds by their numbers.
#[derive(Default)]
pub(super) struct Look {
    /// The new deadlines to send.
    pub(super) deadlines: Vec<(u64, u64)>,
    /// The holds whose client is to be warned.
    pub(super) ending: Vec<u64>,
    /// The holds to release: their deadline has come.
    pub(super) expired: Vec<(u64, Held)>,
}

#[derive(Default)]
pub(super) struct Holds {
    held: HashMap<u64, Held>,
    latest: u64,
    /// When to look next.
    next: Option<Duration>,
}

impl Holds {
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Adds a hold, and returns its number.
    pub(super) fn insert(&mut self, held: Held) -> u64 {
        // Never used again: a late request for a hold that has ended must not reach another one.
        self.latest += 1;
        let look = (clock::monotonic() + beat(held.lease)).min(held.deadline);
        self.next = Some(self.next.map_or(look, |next| next.min(look)));
        self.held.insert(self.latest, held);
        self.latest
    }

    pub(super) fn get(&mut self, hold: u64) -> Option<&mut Held> {
        self.held.get_mut(&hold)
    }

    pub(super) fn remove(&mut self, hold: u64) -> Option<Held> {
        self.held.remove(&hold)
    }

    /// Takes the holds that end with their process.
    pub(super) fn take_ending_with_process(&mut self) -> Vec<Held> {
        self.held.extract_if(|_, held| !held.outlives).map(|(_, held)| held).collect()
    }

    /// How long until the next look.
    pub(super) fn until_look(&self) -> Option<Duration> {
        let next = self.next.filter(|_| !self.is_empty())?;
        Some(next.saturating_sub(clock::monotonic()))
    }

    /// How long a client may rely on any of them.
    pub(super) fn until_last(&self) -> Duration {
        let last = self.held.values().map(|held| held.deadline).max().unwrap_or_default();
        last.saturating_sub(clock::monotonic())
    }

    /// `renews`: the client lives, so the renewed deadlines of its holds are sent to it.
    pub(super) fn look(&mut self, renews: bool) -> Look {
        let now = clock::monotonic();
        let (mut look, mut next) = (Look::default(), None::<Duration>);
        // A hold that the library ends at the same moment is left to it: the client then gets the
        // library's reason for the loss.
        let has_expired = |held: &Held| now >= held.deadline && held.lock.remaining() > MOMENT;
        look.expired = self.held.extract_if(|_, held| has_expired(held)).collect();
        for (id, held) in &mut self.held {
            let before = held.deadline;
            if renews && Duration::from_micros(held.move_deadline()) > before {
                look.deadlines.push((*id, micros(held.deadline)));
            }
            let is_ending = held.deadline.saturating_sub(now) <= GRACE.min(held.lease / 3);
            if is_ending && !held.is_ending {
                look.ending.push(*id);
            }
            held.is_ending = is_ending;
            // At least a millisecond later: a hold that is left to the library has no time left,
            // and would be looked at without a pause.
            let again = (now + beat(held.lease)).min(held.deadline).max(now + MOMENT / 10);
            next = Some(next.map_or(again, |next| next.min(again)));
        }
        self.next = next;
        look
    }

    /// Marks all holds as ending, and returns those whose client was not warned before.
    pub(super) fn mark_all_ending(&mut self) -> Vec<u64> {
        let marked = self.held.iter_mut();
        marked
            .filter_map(|(id, held)| (!mem::replace(&mut held.is_ending, true)).then_some(*id))
            .collect()
    }
}

fn beat(lease: Duration) -> Duration {
    // The library renews after a third of the lease. So a client has the new deadline soon after
    // that, with time for several pings before the old one.
    (lease / 12).clamp(BEAT[0], BEAT[1])
}
