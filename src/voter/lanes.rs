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

use std::{
    collections::VecDeque,
    hash::{Hash, Hasher},
    mem,
    sync::Arc,
    time::Duration,
};

use rustc_hash::FxHashMap;

use super::{Call, Outcome, ReplyTo, by_hash::ByHash};
use crate::{clock::Moment, proto::Slots, scripts::Answer};

/// So many calls of a lane are on their way without a pause between them.
const AT_ONCE: usize = 2;
/// Between two calls of a lane, where more are on their way.
const PACE: Duration = Duration::from_millis(1);

/// Room for so many requests that wait is kept when they have left.
const FEW: usize = 1024;
/// The room of so many lanes that are no more is kept, for those to come.
const SPARE: usize = 8;

/// A request that waits to leave, and who waits for its answer.
#[derive(Debug)]
pub(super) struct Queued {
    /// Of this request alone.
    pub(super) call: Call,
    /// It is sent again until it is answered; where the client is dropped, no longer than until
    /// then.
    pub(super) owed_until: Option<Moment>,
    /// Who waits for the answer. They may have gone.
    pub(super) asker: Option<ReplyTo>,
    /// And whoever asked the same meanwhile.
    pub(super) others: Vec<ReplyTo>,
    /// The shard that did not answer when it was asked first.
    pub(super) shard: Option<usize>,
    pub(super) asked: Moment,
}

/// What requests of one call have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Group {
    script: &'static str,
    shared: SharedArgs,
    part: u16,
    deadline: Duration,
    longest: Duration,
}

/// The arguments that requests share: mostly the very same, and few different ones of one script.
#[derive(Clone, Debug, Eq)]
struct SharedArgs(Arc<[Arc<str>]>);

impl PartialEq for SharedArgs {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Hash for SharedArgs {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.0.len().hash(to);
    }
}

/// Requests that leave now, as one call.
#[derive(Debug)]
pub(super) struct Departure {
    pub(super) lane: LaneId,
    pub(super) requests: Vec<Queued>,
    /// One request, and no other call of its lane is under way.
    pub(super) alone: bool,
}

impl Departure {
    fn of(lane: LaneId, requests: Vec<Queued>) -> Self {
        Self { lane, requests, alone: false }
    }
}

/// All requests to one voter that have not left.
#[derive(Debug)]
pub(super) struct Lanes {
    /// How many requests a call carries at most.
    most: usize,
    /// By what hashes fast: nobody outside chooses the groups.
    by_group: FxHashMap<Group, LaneId>,
    /// Each at its number.
    all: Vec<Lane>,
    /// The numbers of those that are no more.
    unused: Vec<LaneId>,
    /// The room of some of them.
    spare: Vec<VecDeque<Queued>>,
    /// The lanes with requests in them, by when those came there first.
    turns: VecDeque<LaneId>,
    /// What leaves before anything else, because something else must follow it.
    urgent: VecDeque<Departure>,
    /// Where the latest request of a hold waits.
    latest: ByHash<LanePlace>,
    /// Where the latest release of a lock waits, by what it gives back: whichever hold that was,
    /// the next one follows it.
    releases: ByHash<LanePlace>,
}

/// The number of a lane. While anything of the lane waits or is on its way, no other lane has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaneId(usize);

#[derive(Debug)]
struct Lane {
    group: Group,
    waiting: VecDeque<Queued>,
    /// How many requests have left it.
    left: u64,
    under_way: usize,
    /// When a call last left.
    latest: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LanePlace {
    lane: LaneId,
    /// The place among all requests of its lane.
    number: u64,
}

impl Lanes {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            by_group: FxHashMap::default(),
            all: Vec::new(),
            unused: Vec::new(),
            spare: Vec::new(),
            turns: VecDeque::new(),
            urgent: VecDeque::new(),
            latest: ByHash::default(),
            releases: ByHash::default(),
        }
    }

    pub(super) fn are_empty(&self) -> bool {
        self.turns.is_empty() && self.urgent.is_empty()
    }

    /// Puts a request behind all others of its lane, unless the latest of its hold says the same
    /// and waits still: then that answers both.
    pub(super) fn push(&mut self, request: Queued, part: u16) {
        let (votes, party) = (request.call.script.votes, request.call.party());
        let lane = self.lane_of(&request.call, part);
        if let Some(&before) = self.latest.get(&party) {
            let same = self.waiting(before).filter(|same| same.says_the_same_as(&request));
            if let Some(same) = same.filter(|_| before.lane == lane) {
                same.join(request);
                return;
            }
            self.hurry(before.lane);
        }
        if votes {
            for released in request.call.requests[0].awaits() {
                if let Some(&release) = self.releases.get(&released) {
                    self.hurry(release.lane);
                }
            }
        }
        let there = &mut self.all[lane.0];
        if there.waiting.is_empty() {
            self.turns.push_back(lane);
        }
        let place = LanePlace { lane, number: there.left + there.waiting.len() as u64 };
        let (released, is_read) = {
            let request = &request.call.requests[0];
            (request.gives_back(), request.reads())
        };
        there.waiting.push_back(request);
        if !votes
            && let Some(before) = self.releases.insert(released, place)
            && before.lane != lane
            && !is_read
        {
            // The release before leaves first, so who waits for this one waits for both. Not for
            // reads: there may be many, and their releases are to leave together.
            self.hurry(before.lane);
        }
        self.latest.insert(party, place);
    }

    /// The lane of a call, which may be a new one.
    fn lane_of(&mut self, call: &Call, part: u16) -> LaneId {
        let Call { script, shared, deadline, longest, .. } = call;
        let shared = SharedArgs(Arc::clone(shared));
        let group =
            Group { script: script.name, shared, part, deadline: *deadline, longest: *longest };
        if let Some(&lane) = self.by_group.get(&group) {
            return lane;
        }
        let lane = self.unused.pop().unwrap_or(LaneId(self.all.len()));
        self.by_group.insert(group.clone(), lane);
        let waiting = self.spare.pop().unwrap_or_default();
        match self.all.get_mut(lane.0) {
            Some(before) => (before.group, before.waiting) = (group, waiting),
            None => self.all.push(Lane::new(group, waiting)),
        }
        lane
    }

    /// What leaves next, if anything may.
    pub(super) fn take(&mut self, now: Moment) -> Option<Departure> {
        let mut departure = self.urgent.pop_front().or_else(|| {
            let turn = self.turns.iter().position(|lane| self.is_due(*lane, now))?;
            let lane = self.turns.remove(turn)?;
            let requests = self.take_from(lane);
            if !self.all[lane.0].waiting.is_empty() {
                self.turns.push_back(lane);
            }
            Some(Departure::of(lane, requests))
        })?;
        let lane = &mut self.all[departure.lane.0];
        departure.alone = departure.requests.len() == 1 && lane.under_way == 0;
        lane.under_way += 1;
        lane.latest = Some(now);
        Some(departure)
    }

    /// When something may leave that may not now.
    pub(super) fn due(&self) -> Option<Moment> {
        let lanes = self.turns.iter().map(|lane| &self.all[lane.0]);
        lanes.filter_map(|lane| lane.latest.map(|latest| latest + PACE)).min()
    }

    /// A call has come to something.
    pub(super) fn ended(&mut self, id: LaneId) {
        let lane = &mut self.all[id.0];
        lane.under_way -= 1;
        let leaves = self.urgent.iter().any(|departure| departure.lane == id);
        if lane.under_way == 0 && lane.waiting.is_empty() && !leaves {
            // There are as many as slots in use.
            self.by_group.remove(&lane.group);
            lane.latest = None;
            let room = mem::take(&mut lane.waiting);
            if self.spare.len() < SPARE {
                self.spare.push(room);
            }
            self.unused.push(id);
        }
        if self.by_group.is_empty() && self.all.len() > FEW {
            (self.all, self.unused) = (Vec::new(), Vec::new());
        }
    }

    fn waiting(&mut self, LanePlace { lane, number }: LanePlace) -> Option<&mut Queued> {
        let lane = &mut self.all[lane.0];
        let place = usize::try_from(number.checked_sub(lane.left)?).ok()?;
        lane.waiting.get_mut(place)
    }

    fn is_due(&self, lane: LaneId, now: Moment) -> bool {
        let lane = &self.all[lane.0];
        let paced = lane.latest.is_none_or(|latest| now >= latest + PACE);
        // Alone in its call, a request gains nothing by waiting.
        self.most == 1 || lane.under_way < AT_ONCE || paced
    }

    /// All that waits in a lane leaves before what comes.
    fn hurry(&mut self, lane: LaneId) {
        self.turns.retain(|turn| *turn != lane);
        while !self.all[lane.0].waiting.is_empty() {
            let requests = self.take_from(lane);
            self.urgent.push_back(Departure::of(lane, requests));
        }
    }

    fn take_from(&mut self, id: LaneId) -> Vec<Queued> {
        let lane = &mut self.all[id.0];
        let mut slots = 0;
        let fits = |queued: &&Queued| {
            slots += queued.call.requests[0].weight;
            slots <= Slots::AT_ONCE
        };
        let count = lane.waiting.iter().take(self.most).take_while(fits).count();
        let requests: Vec<_> = lane.waiting.drain(..count).collect();
        for request in &requests {
            let this = LanePlace { lane: id, number: lane.left };
            let party = request.call.party();
            if self.latest.get(&party) == Some(&this) {
                self.latest.remove(&party);
            }
            let released = request.call.requests[0].gives_back();
            if self.releases.get(&released) == Some(&this) {
                self.releases.remove(&released);
            }
            lane.left += 1;
        }
        if let Some(less) = less_room(lane.waiting.capacity(), lane.waiting.len()) {
            lane.waiting.shrink_to(less);
        }
        for table in [&mut self.latest, &mut self.releases] {
            if let Some(less) = less_room(table.capacity(), table.len()) {
                table.shrink_to(less);
            }
        }
        requests
    }
}

/// How much of this room is enough, if it is far too much: a crowd may have come and gone.
fn less_room(room: usize, needed: usize) -> Option<usize> {
    (room > FEW && needed < room / 4).then_some(room / 2)
}

impl Lane {
    fn new(group: Group, waiting: VecDeque<Queued>) -> Self {
        Self { group, waiting, left: 0, under_way: 0, latest: None }
    }
}

impl Queued {
    fn says_the_same_as(&self, other: &Self) -> bool {
        self.call.requests[..] == other.call.requests[..]
    }

    /// Answers whoever asks for `other` too.
    fn join(&mut self, other: Self) {
        self.owed_until = self.owed_until.max(other.owed_until);
        self.shard = self.shard.or(other.shard);
        self.others.extend(other.asker.into_iter().chain(other.others));
    }

    /// Whoever asked may have gone: then nobody misses the answer.
    pub(super) fn answer(self, answer: Outcome<Answer>) {
        for other in self.others {
            other.send(answer.clone());
        }
        if let Some(asker) = self.asker {
            asker.send(answer);
        }
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
