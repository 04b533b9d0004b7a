//! Requests that wait to leave. What gathers while calls are on their way leaves together.
//!
//! A call carries requests of one script with the same shared arguments, for one part of the voter
//! and with one deadline: they share a lane. A server answers nobody else while it runs a call, so
//! the requests of a call are about few slots of semaphores together. While fewer than two calls of
//! a lane are on their way, the next leaves at once. Otherwise it leaves a millisecond after the
//! one before: with a distant voter, waiting for the answers of the two would limit a client to two
//! calls a round trip. Where the call before had company, the voter's task lets the tasks that are
//! ready ask first.
//!
//! Two requests of one hold never change their order, and no call has both. If one of them waits,
//! the next joins a lane only after all that waits in the lane of the first has left. A request
//! for a lock leaves after all releases of that lock that were queued before it. Locks that many
//! read have two exceptions. A read may leave before the release of another read. If releases of
//! reads wait in two lanes, a write waits for the later one only.

// Why not one queue, and why callers do not send for themselves: decision 3 of `docs/design.md`.

use std::{collections::VecDeque, hash::Hash, sync::Arc, time::Duration};

use rustc_hash::FxHashMap;

use super::{Call, Outcome, ReplyTo};
use crate::{clock::Moment, proto::Slots, scripts::Answer};

/// So many calls of a lane are on their way without a pause between them.
const AT_ONCE: usize = 2;
/// Between two calls of a lane, where more are on their way.
const PACE: Duration = Duration::from_millis(1);

/// So many lanes are kept, used or not; and where requests have left, room for so many.
const FEW: usize = 1024;

/// A request that waits to leave, and who waits for its answer.
#[derive(Debug)]
pub(super) struct Queued {
    /// Of this request alone.
    pub(super) call: Call,
    /// It is sent again until it is answered; where the client is dropped, no longer than until
    /// then: the lease that it ends is over by then, if the voter has run all that was sent before.
    pub(super) owed_until: Option<Moment>,
    /// Who waits for the answer. They may have gone.
    pub(super) asker: Option<ReplyTo>,
    /// The shard that did not answer when it was asked first.
    pub(super) shard: Option<usize>,
    pub(super) asked: Moment,
}

/// What requests of one call have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Group {
    script: &'static str,
    shared: Arc<[Arc<str>]>,
    part: u16,
    deadline: Duration,
    longest: Duration,
}

/// Requests that leave now, as one call.
#[derive(Debug)]
pub(super) struct Departure {
    pub(super) lane: LaneId,
    pub(super) requests: Vec<Queued>,
    /// One request, and no other call of its lane is under way.
    pub(super) alone: bool,
}

/// All requests to one voter that have not left.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// How many requests a call carries at most.
    most: usize,
    /// By what hashes fast: nobody outside chooses the groups.
    by_group: FxHashMap<Group, LaneId>,
    /// Those of which something waits or is on its way.
    all: FxHashMap<LaneId, Lane>,
    /// How many lanes and requests there have been.
    count: u64,
    /// The lanes with requests in them, by when those came there first.
    turns: VecDeque<LaneId>,
    /// What leaves before anything else, because something else must follow it.
    urgent: VecDeque<(LaneId, Vec<Queued>)>,
    /// Where the latest request of a hold waits; and the latest release of a lock, by what it gives
    /// back: whichever hold that was, the next one follows it. With the number of the request.
    latest: FxHashMap<u64, (LaneId, u64)>,
}

/// The number of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LaneId(u64);

#[derive(Debug)]
struct Lane {
    group: Group,
    /// Each with its number.
    waiting: VecDeque<(u64, Queued)>,
    under_way: usize,
    /// When a call last left.
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
        // where that is this lane: no call has two requests of one hold.
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
            // The release before leaves first, so who waits for this one waits for both. Not for
            // reads: there may be many, and their releases are to leave together.
            self.hurry(before);
        }
        self.latest.insert(request.party, (id, number));
    }

    /// The lane of a call, which may be a new one.
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

    /// What leaves next, if anything may.
    pub(super) fn take(&mut self, now: Moment) -> Option<Departure> {
        let (id, requests) = self.urgent.pop_front().or_else(|| {
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

    /// When something may leave that may not now.
    pub(super) fn due(&self) -> Option<Moment> {
        let latest = self.turns.iter().filter_map(|id| self.all[id].latest);
        latest.map(|latest| latest + PACE).min()
    }

    /// A call has come to something.
    pub(super) fn ended(&mut self, id: LaneId) {
        let lane = self.lane(id);
        lane.under_way -= 1;
        let is_unused = lane.under_way == 0 && lane.waiting.is_empty();
        // There are as many as slots in use: few are kept.
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
        // Alone in its call, a request gains nothing by waiting.
        self.most == 1 || lane.under_way < AT_ONCE || paced
    }

    /// All that waits in a lane leaves before what comes.
    // A lane keeps its order, so what stands before the request in question leaves with it.
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
        let mut slots = 0;
        let fits = |(_, queued): &&(u64, Queued)| {
            slots += queued.call.requests[0].weight;
            slots <= Slots::AT_ONCE
        };
        let count = lane.waiting.iter().take(*most).take_while(fits).count();
        let departs = |(number, queued): (u64, Queued)| {
            let request = &queued.call.requests[0];
            for told in [request.party, request.gives_back()] {
                if latest.get(&told) == Some(&(id, number)) {
                    latest.remove(&told);
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

/// How much of this room is enough, if it is far too much: a crowd may have come and gone.
fn less_room(room: usize, needed: usize) -> Option<usize> {
    (room > FEW && needed < room / 4).then_some(room / 2)
}

fn shrink<K: Eq + Hash, V>(table: &mut FxHashMap<K, V>) {
    if let Some(less) = less_room(table.capacity(), table.len()) {
        table.shrink_to(less);
    }
}

impl Queued {
    /// Whoever asked may have gone: then nobody misses the answer.
    pub(super) fn answer(&mut self, answer: Outcome<Answer>) {
        if let Some(asker) = self.asker.take() {
            asker.send(answer);
        }
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
