//! What one client holds, and until when it relies on each hold: the deadline that it was told last.
//!
//! The library may have renewed a hold beyond that. It is given back at the told deadline all the
//! same, as the client trusts no other.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::wire::{KindName, micros};
use crate::{clock, lock::LockHeld};

/// The longest time that a program has to end its work before a loss. The library gives leaders as
/// much.
const GRACE: Duration = Duration::from_secs(10);
/// How often a client is looked after, at the least and at the most.
const BEAT: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(2_500)];

/// By so much two deadlines may differ that are one.
const MOMENT: Duration = Duration::from_millis(10);

pub(super) struct Held {
    pub(super) lock: Arc<LockHeld>,
    pub(super) kind: KindName,
    /// It stays until its deadline if its process dies.
    pub(super) outlives: bool,
    lease: Duration,
    told: Duration,
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
        let (lock, told) = (Arc::new(lock), Duration::ZERO);
        let mut held = Self { lock, kind, outlives, lease, told, is_ending: false };
        let deadline_us = held.tell();
        (held, deadline_us)
    }

    /// The deadline to send to the client: the library's, on the clock that both can read.
    /// No later than it was told before, if that was later.
    pub(super) fn tell(&mut self) -> u64 {
        // The clock first: what passes in between makes it earlier.
        let now = clock::monotonic();
        let deadline = micros(now + self.lock.remaining());
        self.told = self.told.max(Duration::from_micros(deadline));
        micros(self.told)
    }

    /// After an extension.
    pub(super) fn tell_extended(&mut self, lease: Duration) -> u64 {
        self.lease = self.lease.max(lease);
        self.tell()
    }
}

/// What is to be said of the holds, and done with them.
#[derive(Default)]
pub(super) struct Look {
    pub(super) deadlines: Vec<(u64, u64)>,
    pub(super) ending: Vec<u64>,
    /// Their deadline has come.
    pub(super) over: Vec<(u64, Held)>,
}

#[derive(Default)]
pub(super) struct Holds {
    held: HashMap<u64, Held>,
    latest: u64,
    /// When to look after them next.
    next: Option<Duration>,
}

impl Holds {
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Its number.
    pub(super) fn insert(&mut self, held: Held) -> u64 {
        self.latest += 1;
        let look = (clock::monotonic() + beat(held.lease)).min(held.told);
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

    /// Those that end with their process.
    pub(super) fn take_those_of_the_dead(&mut self) -> Vec<Held> {
        self.held.extract_if(|_, held| !held.outlives).map(|(_, held)| held).collect()
    }

    /// How long until the next look.
    pub(super) fn until_look(&self) -> Option<Duration> {
        let next = self.next.filter(|_| !self.is_empty())?;
        Some(next.saturating_sub(clock::monotonic()))
    }

    /// How long a client may rely on any of them.
    pub(super) fn until_last(&self) -> Duration {
        let last = self.held.values().map(|held| held.told).max().unwrap_or_default();
        last.saturating_sub(clock::monotonic())
    }

    /// `renews`: the client lives, so the renewed deadlines of its holds are sent to it.
    pub(super) fn look(&mut self, renews: bool) -> Look {
        let now = clock::monotonic();
        let (mut look, mut next) = (Look::default(), None::<Duration>);
        // A hold that the library ends at the same moment has the library's reason.
        let is_over = |held: &Held| now >= held.told && held.lock.remaining() > MOMENT;
        look.over = self.held.extract_if(|_, held| is_over(held)).collect();
        for (id, held) in &mut self.held {
            let before = held.told;
            if renews && Duration::from_micros(held.tell()) > before {
                look.deadlines.push((*id, micros(held.told)));
            }
            let is_ending = held.told.saturating_sub(now) <= GRACE.min(held.lease / 3);
            if is_ending && !held.is_ending {
                look.ending.push(*id);
            }
            held.is_ending = is_ending;
            let again = (now + beat(held.lease)).min(held.told).max(now + MOMENT / 10);
            next = Some(next.map_or(again, |next| next.min(again)));
        }
        self.next = next;
        look
    }

    /// All that were not said to end before.
    pub(super) fn all_end(&mut self) -> Vec<u64> {
        let fresh = self.held.iter_mut().filter(|(_, held)| !held.is_ending);
        let mark = |(id, held): (&u64, &mut Held)| {
            held.is_ending = true;
            *id
        };
        fresh.map(mark).collect()
    }
}

fn beat(lease: Duration) -> Duration {
    (lease / 12).clamp(BEAT[0], BEAT[1])
}
