//! Requests that wait to leave. Requests that gather while calls are on their way leave together.
//!
//! A call carries requests of one script with the same shared arguments, for one part of the voter
//! and with one deadline: these requests share a lane. While fewer than two calls of a lane are on
//! their way, the next call leaves at once. Otherwise it leaves a millisecond after the one before.
//!
//! Two requests of one hold never change their order, and no call has both. If one of them waits,
//! all that waits in its lane leaves before the next one joins a lane. A request for a lock leaves
//! after all releases of that lock that were queued before it, with two exceptions:
//!
//! - A read may leave before the release of another read.
//! - If releases of reads wait in two lanes, a write waits for the later one only.

// Why not one queue, and why callers do not send for themselves: design 3.

use std::{collections::VecDeque, hash::Hash, sync::Arc, time::Duration};

use rustc_hash::FxHashMap;

use super::{Call, Outcome, ReplyTo};
use crate::{clock::Moment, proto::Slots, scripts::Answer};

/// How many calls of a lane may be on their way without a pause between them.
// With one, the next would wait for its answer, or a millisecond, though the server may be idle.
// With many, each call would carry few requests, and alone a request costs a server more than twice
// as much (design 3).
const AT_ONCE: usize = 2;
/// The pause between two calls of a lane while `AT_ONCE` calls or more are on their way.
// Not until an answer comes: that would limit a client to two calls per round trip, which is few
// with a distant voter.
const PACE: Duration = Duration::from_millis(1);

/// How many unused lanes are kept, and the room of a queue below which nothing is given back.
// In a cluster there are as many lanes as hash slots in use. Ten thousand releases at once took 15
// MiB of tables and queues.
const FEW: usize = 1024;

/// A request that waits to leave.
pub(super) struct Queued {
    /// A call with this request alone.
    pub(super) call: Call,
    /// Set for a request that is repeated until it is answered. A client that was dropped stops
    /// then: the lease that the request ends is over.
    pub(super) owed_until: Option<Moment>,
    /// Where the first answer goes.
    pub(super) asker: Option<ReplyTo>,
    /// The shard that did not answer when the request was sent first.
    pub(super) shard: Option<usize>,
    pub(super) asked: Moment,
}

/// What the requests of one call have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Group {
    script: &'static str,
    shared: Arc<[Arc<str>]>,
    part: u16,
    deadline: Duration,
    longest: Duration,
}

/// Requests that leave now, as one call.
pub(super) struct Departure {
    pub(super) lane: LaneId,
    pub(super) requests: Vec<Queued>,
    /// The call has one request, and no other call of its lane is under way.
    pub(super) alone: bool,
}

/// All requests to one voter that have not left.
#[derive(Default)]
pub(super) struct Lanes {
    /// How many requests a call carries at most.
    most: usize,
    // A fast hash, as nobody outside chooses the groups: SipHash took 5 % of the instructions.
    by_group: FxHashMap<Group, LaneId>,
    // By number: with two copies of its group, each waiting request took room for nothing.
    all: FxHashMap<LaneId, Lane>,
    /// How many lanes and requests there have been.
    count: u64,
    /// The lanes with waiting requests, in the order in which they are served.
    turns: VecDeque<LaneId>,
    /// Calls that leave before all others, because a waiting request must follow them.
    urgent: VecDeque<(LaneId, Vec<Queued>)>,
    /// The lane and the number of the latest waiting request: of each party, and of the releases
    /// of each lock, by [`Request::gives_back`](super::Request::gives_back).
    latest: FxHashMap<u64, (LaneId, u64)>,
}

/// The number of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LaneId(u64);

struct Lane {
    group: Group,
    /// Each request with its number.
    waiting: VecDeque<(u64, Queued)>,
    under_way: usize,
    /// When the latest call left.
    latest: Option<Moment>,
}

impl Lanes {
    pub(super) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    pub(super) fn are_empty(&self) -> bool {
        self.turns.is_empty() && self.urgent.is_empty()
    }

    /// Puts a request behind all others of its lane.
    pub(super) fn push(&mut self, queued: Queued, part: u16) {
        let request = Arc::clone(&queued.call.requests[0]);
        let votes = queued.call.script.votes;
        let id = self.lane_of(&queued.call, part);
        // An undo that overtook its acquire would leave a vote until the lease ends (law 6). Also
        // if that is this lane: no call has two requests of one hold.
        if let Some(&(before, _)) = self.latest.get(&request.party) {
            self.hurry(before);
        }
        if votes {
            // Otherwise the vote that this client has just given back would be refused to its next
            // task, which would need another round trip (law 8).
            for released in request.awaits() {
                if let Some(&(release, _)) = self.latest.get(&released) {
                    self.hurry(release);
                }
            }
        }
        self.count += 1;
        let number = self.count;
        let lane = self.lane(id);
        lane.waiting.push_back((number, queued));
        if lane.waiting.len() == 1 {
            self.turns.push_back(id);
        }
        if !votes
            && let Some((before, _)) = self.latest.insert(request.gives_back(), (id, number))
            && before != id
            && !request.reads
        {
            // A release of a guard has another deadline than an undo, and so another lane. Only the
            // latest is remembered: a request that follows both could overtake the first, and find
            // the lock taken by the very hold that this client has released.
            // Not for reads: with 10,000 readers, 620 calls were on their way.
            self.hurry(before);
        }
        self.latest.insert(request.party, (id, number));
    }

    /// The lane of a call. Makes it if it is new.
    fn lane_of(&mut self, call: &Call, part: u16) -> LaneId {
        let Call { script, deadline, longest, .. } = *call;
        let shared = Arc::clone(&call.shared);
        let group = Group { script: script.name, shared, part, deadline, longest };
        if let Some(&lane) = self.by_group.get(&group) {
            return lane;
        }
        self.count += 1;
        let id = LaneId(self.count);
        self.by_group.insert(group.clone(), id);
        let waiting = VecDeque::new();
        self.all.insert(id, Lane { group, waiting, under_way: 0, latest: None });
        id
    }

    fn lane(&mut self, id: LaneId) -> &mut Lane {
        self.all.get_mut(&id).expect("it stays while anything of it waits or is on its way")
    }

    /// The next call that may leave now.
    pub(super) fn take(&mut self, now: Moment) -> Option<Departure> {
        let (id, requests) = self.urgent.pop_front().or_else(|| {
            // Lanes take turns. If one lane went on until it is empty, renewals would wait behind
            // all acquires of a crowd.
            let turn = self.turns.iter().position(|lane| self.is_due(*lane, now))?;
            let id = self.turns.remove(turn)?;
            let requests = self.take_from(id);
            if !self.lane(id).waiting.is_empty() {
                self.turns.push_back(id);
            }
            Some((id, requests))
        })?;
        let lane = self.lane(id);
        let alone = requests.len() == 1 && lane.under_way == 0;
        lane.under_way += 1;
        lane.latest = Some(now);
        Some(Departure { lane: id, requests, alone })
    }

    /// When the next call may leave.
    pub(super) fn due(&self) -> Option<Moment> {
        let latest = self.turns.iter().filter_map(|id| self.all[id].latest);
        latest.map(|latest| latest + PACE).min()
    }

    /// A call of this lane was answered, or given up.
    pub(super) fn end_call(&mut self, id: LaneId) {
        let lane = self.lane(id);
        lane.under_way -= 1;
        let is_unused = lane.under_way == 0 && lane.waiting.is_empty();
        // A lane of an urgent call looks unused, as its requests were taken out. They still leave.
        if is_unused
            && self.all.len() > FEW
            && !self.urgent.iter().any(|(urgent, _)| *urgent == id)
            && let Some(lane) = self.all.remove(&id)
        {
            self.by_group.remove(&lane.group);
            shrink(&mut self.all);
            shrink(&mut self.by_group);
        }
    }

    fn is_due(&self, id: LaneId, now: Moment) -> bool {
        let lane = &self.all[&id];
        let paced = lane.latest.is_none_or(|latest| now >= latest + PACE);
        // With calls of one request, a pause gathers nothing.
        self.most == 1 || lane.under_way < AT_ONCE || paced
    }

    /// Has all that waits in a lane leave before any later request.
    // Not the request in question alone: those before it in the lane may be what it must follow.
    fn hurry(&mut self, id: LaneId) {
        self.turns.retain(|turn| *turn != id);
        while !self.lane(id).waiting.is_empty() {
            let requests = self.take_from(id);
            self.urgent.push_back((id, requests));
        }
    }

    fn take_from(&mut self, id: LaneId) -> Vec<Queued> {
        let Self { most, all, latest, .. } = self;
        let lane = all.get_mut(&id).expect("it stays while anything of it waits");
        // A server runs nothing else during a call. One about thousands of slots of a semaphore
        // kept it from everybody for a tenth of a second.
        let mut slots = 0;
        let fits = |(_, queued): &&(u64, Queued)| {
            slots += queued.call.requests[0].weight;
            slots <= Slots::AT_ONCE
        };
        let count = lane.waiting.iter().take(*most).take_while(fits).count();
        let departs = |(number, queued): (u64, Queued)| {
            let request = &queued.call.requests[0];
            for key in [request.party, request.gives_back()] {
                // A later request may stand there: that one is still to be followed.
                if latest.get(&key) == Some(&(id, number)) {
                    latest.remove(&key);
                }
            }
            queued
        };
        let taken = lane.waiting.drain(..count).map(departs).collect();
        if let Some(less) = less_room(lane.waiting.capacity(), lane.waiting.len()) {
            lane.waiting.shrink_to(less);
        }
        shrink(latest);
        taken
    }
}

/// How much room to keep if this is far too much, as after a crowd.
// By half at a time, and only if a quarter is needed: a queue that goes up and down would otherwise
// be allocated anew each time.
fn less_room(room: usize, needed: usize) -> Option<usize> {
    (room > FEW && needed < room / 4).then_some(room / 2)
}

fn shrink<K: Eq + Hash, V>(table: &mut FxHashMap<K, V>) {
    if let Some(less) = less_room(table.capacity(), table.len()) {
        table.shrink_to(less);
    }
}

impl Queued {
    /// Passes an answer on. Only the first goes to the asker.
    pub(super) fn answer(&mut self, answer: Outcome<Answer>) {
        if let Some(asker) = self.asker.take() {
            asker.send(answer);
        }
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
