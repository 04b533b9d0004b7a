//! What there is: voters, users, and what is under way between them.

use crate::{
    network::{Names, Way, put_in_order},
    queue_model::{
        requests::{Kind, Request},
        rules::{Broken, Budget, Rules, Start},
        voter::{OWN, SLOTS},
        waiter::Loss,
    },
};

/// There may be fewer; the others never do anything.
pub(crate) const MOST_VOTERS: usize = 3;
pub(crate) const MOST_PLACES: usize = 4;
pub(crate) const MOST_CLIENTS: usize = 3;

/// One moment. There are no clocks in it: each round of requests has a deadline, which may pass at
/// any moment, in the order of one user's rounds; and a vote may end once that of its round has.
/// Voters are in the order of what they contain, so that situations that differ by their names are
/// one state.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) struct State {
    pub(crate) voters: [Voter; MOST_VOTERS],
    pub(crate) names: Names,
    pub(crate) places: [Place; MOST_PLACES],
    /// Its client has died.
    pub(crate) dead: [bool; MOST_PLACES],
    pub(crate) budget: Budget,
    /// Somebody won before one that was before it.
    pub(crate) overtaken: bool,
    /// Somebody wrote between a write and the read under it.
    pub(crate) parted: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Voter {
    pub(crate) writer: Option<Vote>,
    /// By place, and of each those of its bids and of its read under its write.
    pub(crate) readers: [[Option<Vote>; SLOTS]; MOST_PLACES],
    pub(crate) queue: [Option<Entry>; MOST_PLACES],
    pub(crate) lines: [Way<Request>; MOST_CLIENTS],
    /// The voter's answers to the last round of each place, for as long as it is open. Whether one
    /// to a bid was heard is decided when the place acts on it: until then both are possible.
    pub(crate) answers: [Option<Answer>; MOST_PLACES],
    /// By place: those that stood here before it first asked, and have not been lost here since.
    pub(crate) stood: [u8; MOST_PLACES],
    /// By place: what the voter may have forgotten, and has to have ended before it counts again.
    pub(crate) forgot: [Option<Round>; MOST_PLACES],
    /// By place: the last round in which its hold had this vote, as its client knows; kept only
    /// where voters forget.
    pub(crate) known: [Option<u8>; MOST_PLACES],
}

/// A vote, until the deadline of this round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Vote {
    /// Given to a request that outlived its connection: nothing need take it back.
    pub(crate) excused: bool,
    pub(crate) until: Round,
}

/// What was asked from a place that leads to a deadline: the bid, and then renewals and reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Round {
    /// None of somebody who is gone. Small, as a state has many.
    place: Option<u8>,
    pub(crate) bid: u8,
    pub(crate) number: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Entry {
    pub(crate) ticket: u8,
    /// Made by a request that outlived its connection.
    pub(crate) excused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Answer {
    pub(crate) granted: bool,
    /// By a voter that may have forgotten somebody's vote.
    pub(crate) uncounted: bool,
    pub(crate) ticket: u8,
    /// There is an entry with this ticket.
    pub(crate) stands: bool,
}

/// One call of `lock()`, `read()` or `write()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) phase: Phase,
    /// Bids so far.
    pub(crate) bids: u8,
    /// Zero until it is fixed.
    pub(crate) ticket: u8,
    /// Rounds since the bid that won.
    pub(crate) rounds: u8,
    /// The last of them is under way.
    pub(crate) open: bool,
    /// The round whose deadline is that of the hold.
    pub(crate) trusted: u8,
    /// How many deadlines have passed: that of the bid, and those of later rounds.
    pub(crate) passed: u8,
    pub(crate) read: Read,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    #[default]
    Idle,
    Bidding,
    /// Between two bids.
    Waiting,
    Holding,
    /// The write has ended; the read that was asked for under it has not.
    Reading,
    Gone,
}

/// A read under the own write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Read {
    #[default]
    None,
    /// Whether somebody else has won to write since.
    Asked {
        parted: bool,
    },
    /// Until the deadline of this round.
    Held(u8),
    Ended,
}

impl State {
    pub(crate) fn first(rules: &Rules) -> Self {
        let nobody = Round::OF_NOBODY;
        let taken = Vote { until: nobody, excused: true };
        let is_free = matches!(rules.bounds.start, Start::Free | Start::Held(_));
        let writer = Some(taken).filter(|_| !is_free);
        let mut first = Self {
            voters: [Voter::default(); MOST_VOTERS],
            names: Names::FIRST,
            places: [Place::default(); MOST_PLACES],
            dead: [false; MOST_PLACES],
            budget: rules.bounds.budget,
            overtaken: false,
            parted: false,
        };
        first.voters[..rules.voters()].iter_mut().for_each(|voter| voter.writer = writer);
        match rules.bounds.start {
            Start::Free | Start::Taken => {}
            Start::Queued(place) => first.queue_up(place, rules),
            Start::Held(place) => {
                first.call(place, rules);
                first.deliver(None, rules);
                first.come_in(place, rules);
            }
        }
        first
    }

    fn queue_up(&mut self, place: usize, rules: &Rules) {
        self.call(place, rules);
        for voter in 0..rules.quorum_of(place).fewest() {
            self.arrive(rules.client_of(place), voter, rules);
        }
        self.lose(place, Loss { heard: 0b011, undo_last: false }, rules);
        self.drop_void();
        self.put_in_order(rules);
    }

    /// Takes away what changes nothing whenever it arrives: fewer orders to look at.
    pub(crate) fn drop_void(&mut self) {
        for voter in &mut self.voters {
            let before = *voter;
            let is_absent = |it: Request| {
                let stays = it.kind != Kind::Leave || before.queue[it.place].is_none();
                stays && !before.has_vote(it)
            };
            for line in voter.lines.iter_mut().filter(|line| !line.is_quiet()) {
                line.drop_void(is_absent);
            }
        }
    }

    /// Puts the voters in order, each with its name.
    pub(crate) fn put_in_order(&mut self, rules: &Rules) {
        let are_alike = |left, right| right < rules.voters() && rules.are_alike(left, right);
        put_in_order(&mut self.voters, &mut self.names, are_alike);
    }

    /// It waits in the queue, or is about to.
    pub(crate) fn waits(&self, place: usize) -> bool {
        matches!(self.places[place].phase, Phase::Bidding | Phase::Waiting)
    }

    /// It wants what it has on the voters.
    pub(crate) fn is_live(&self, place: usize) -> bool {
        self.waits(place) || self.holds(place)
    }

    /// To read or to write, or it asks to read under what was its write.
    pub(crate) fn holds(&self, place: usize) -> bool {
        matches!(self.places[place].phase, Phase::Holding | Phase::Reading)
    }

    /// Nobody bids, holds or waits for anything to arrive; what is late may be lost.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_busy =
            |place: usize| self.places[place].phase == Phase::Bidding || self.holds(place);
        !(0..MOST_PLACES).any(is_busy)
            && self.voters.iter().flat_map(|it| &it.lines).all(|line| line.queue.is_empty())
    }

    /// The deadline of the entry may pass: nobody refreshes it, and nothing need take it out.
    pub(crate) fn may_end(&self, place: usize, entry: Entry, rules: &Rules) -> bool {
        let late = self.budget.lapses > 0;
        let forgotten = entry.excused || self.dead[place];
        let marked = rules.breaks(Broken::StaleMark) && rules.writes(place);
        if self.is_live(place) { late } else { forgotten && !marked }
    }

    /// The vote need not be taken back: it ends by itself.
    pub(crate) fn is_excused(&self, owner: Option<usize>, vote: Vote) -> bool {
        vote.excused || owner.is_none_or(|owner| self.dead[owner])
    }

    /// The vote's deadline may have passed.
    pub(crate) fn may_lapse(&self, owner: Option<usize>, vote: Vote) -> bool {
        let Some(until) = vote.until.place() else { return true };
        if Some(until) != owner {
            return !self.is_live(until) || self.has_passed(vote.until);
        }
        self.is_excused(owner, vote) && !self.is_present(vote.until) || self.has_passed(vote.until)
    }

    /// The deadline of what is still wanted has passed.
    pub(crate) fn has_passed(&self, round: Round) -> bool {
        let Some(place) = round.place() else { return true };
        self.is_present(round) && round.number < self.places[place].passed
    }

    /// It is a round of the present bid or hold.
    pub(crate) fn is_present(&self, round: Round) -> bool {
        let Some(place) = round.place() else { return false };
        self.places[place].phase != Phase::Waiting
            && self.is_live(place)
            && self.places[place].bids == round.bid
    }
}

impl Round {
    const OF_NOBODY: Self = Self { place: None, bid: 0, number: 0 };

    pub(crate) fn of(place: usize, bid: u8, number: u8) -> Self {
        let place = u8::try_from(place).expect("four places at most");
        Self { place: Some(place), bid, number }
    }

    pub(crate) fn place(self) -> Option<usize> {
        self.place.map(usize::from)
    }
}

impl Place {
    pub(crate) const GONE: Self = Self {
        phase: Phase::Gone,
        bids: 0,
        ticket: 0,
        rounds: 0,
        open: false,
        trusted: 0,
        passed: 0,
        read: Read::None,
    };
}

impl Answer {
    pub(crate) fn counts(self) -> bool {
        self.granted && !self.uncounted
    }
}

impl Voter {
    /// What the request gives back is here.
    fn has_vote(&self, request: Request) -> bool {
        match request.kind {
            Kind::EndRead => self.readers[request.place][OWN].is_some(),
            _ => self.is_held_by(request.place, request.bid),
        }
    }

    /// The place stands here with this ticket.
    pub(crate) fn has(&self, place: usize, ticket: u8) -> bool {
        self.queue[place].is_some_and(|entry| entry.ticket == ticket)
    }
}
