//! What a voter does: the Lua scripts, and crashes.

use crate::queue_model::{
    requests::{Kind, Request},
    rules::{Broken, Rules, Turn, Wish},
    state::{Answer, Entry, MOST_PLACES, Round, Vote, Voter},
};

/// Where a voter has the read under a place's write. Before it are those of its bids.
pub(crate) const OWN: usize = 8;
pub(crate) const SLOTS: usize = OWN + 1;
/// The lowest of those that are told, and behind all of them.
const FIRST: u8 = 1;
const LAST: u8 = 15;

/// Who stands where.
type Standing = (u8, usize);

impl Voter {
    /// The first request on the client's connection arrives. What asks has an answer.
    pub(crate) fn run_next(
        &mut self,
        client: usize,
        rules: &Rules,
    ) -> Option<(Request, Option<Answer>)> {
        let request = self.lines[client].queue.pop()?;
        Some((request, self.run(request, false, rules)))
    }

    /// The first request on the client's broken connection arrives after all.
    pub(crate) fn run_late(&mut self, client: usize, rules: &Rules) {
        if let Some(request) = self.lines[client].late.pop() {
            self.run(request, true, rules);
        }
    }

    fn run(&mut self, request: Request, late: bool, rules: &Rules) -> Option<Answer> {
        let Request { kind, place, bid, .. } = request;
        match kind {
            Kind::Bid | Kind::Try | Kind::Read => return Some(self.acquire(request, late, rules)),
            Kind::Renew | Kind::RenewRead => return Some(self.renew(request, late, rules)),
            Kind::Undo | Kind::Leave => {
                if kind == Kind::Leave || rules.breaks(Broken::UndoDropsPlace) {
                    self.queue[place] = None;
                }
                self.take_back(place, bid);
            }
            Kind::EndRead => self.readers[place][OWN] = None,
        }
        None
    }

    /// `rw/acquire` in `lua/rw.lua`.
    fn acquire(&mut self, request: Request, late: bool, rules: &Rules) -> Answer {
        let Request { kind, place, ticket, .. } = request;
        let holder = self.is_in_the_way(request, rules);
        let has = self.has_hold(request);
        let barges = rules.breaks(Broken::Barging);
        let newcomer = !barges && self.is_behind_any(request, rules);
        let mut granted = !holder && (has || !newcomer);
        let mut number = 0;
        if kind == Kind::Bid {
            let former = self.queue[place];
            let entered = former.filter(|_| ticket == 0).map(|entry| entry.ticket);
            let entered = entered.or(Some(ticket).filter(|ticket| *ticket > 0));
            number = entered.unwrap_or_else(|| self.turn(place, rules));
            if rules.breaks(Broken::TicketRaised) {
                number = former.map_or(number, |entry| entry.ticket.max(number));
            }
            if entered.is_some() || !granted {
                let excused = late && former.is_none_or(|entry| entry.excused);
                self.queue[place] = Some(Entry { ticket: number, excused });
                let behind = !barges && self.is_behind(place, number, rules);
                granted = !holder && (has || !behind);
            }
        }
        if granted {
            self.grant(request, late, rules);
            if rules.breaks(Broken::TakenOutAtGrant) {
                self.queue[place] = None;
            }
        }
        let stands = kind == Kind::Bid && self.queue[place].is_some();
        Answer { granted, uncounted: self.is_in_quarantine(), ticket: number, stands }
    }

    /// `rw/renew` in `lua/rw.lua`.
    fn renew(&mut self, request: Request, late: bool, rules: &Rules) -> Answer {
        let refused = self.is_in_the_way(request, rules) && !rules.breaks(Broken::RenewalTakesOver);
        if !refused {
            self.grant(request, late, rules);
        }
        let uncounted = self.is_in_quarantine();
        Answer { granted: !refused, uncounted, ticket: 0, stands: false }
    }

    /// Somebody has the vote so that this hold cannot have it too.
    fn is_in_the_way(&self, request: Request, rules: &Rules) -> bool {
        let place = request.place;
        let own = self.is_written_by(place, request.bid);
        let reads = |other: usize| {
            let slots = if other == place { 0..OWN } else { 0..SLOTS };
            self.readers[other][slots].iter().any(Option::is_some)
        };
        let ignored = rules.breaks(Broken::IgnoresReaders);
        self.writer.is_some() && !own
            || writes(request, rules) && !own && !ignored && (0..MOST_PLACES).any(reads)
    }

    /// The hold has this vote. Under the own write the queue does not count either.
    fn has_hold(&self, request: Request) -> bool {
        request.kind == Kind::Read || self.is_held_by(request.place, request.bid)
    }

    /// Whoever comes without an entry would stand behind somebody.
    fn is_behind_any(&self, request: Request, rules: &Rules) -> bool {
        let place = request.place;
        let passes = !writes(request, rules) && rules.wish(place) == Wish::Read(Turn::First);
        let only_writers = !writes(request, rules);
        let mut standing = self.standing(only_writers, rules);
        !passes && standing.any(|(ticket, _)| ticket < LAST)
    }

    /// Somebody stands before the entry of this place, in the way of it.
    fn is_behind(&self, place: usize, ticket: u8, rules: &Rules) -> bool {
        let wish = rules.wish(place);
        let mut others = self.standing(wish != Wish::Write, rules).filter(|it| it.1 != place);
        match wish {
            Wish::Read(Turn::First) if rules.breaks(Broken::AskersChoice) => false,
            Wish::Read(Turn::Last) if rules.breaks(Broken::AskersChoice) => others.next().is_some(),
            _ => others.any(|other| other < (ticket, place)),
        }
    }

    fn standing(&self, only_writers: bool, rules: &Rules) -> impl Iterator<Item = Standing> {
        let places = (0..MOST_PLACES).filter(move |it| !only_writers || rules.writes(*it));
        places.filter_map(|place| self.queue[place].map(|entry| (entry.ticket, place)))
    }

    /// Where a place comes that has no ticket yet.
    fn turn(&self, place: usize, rules: &Rules) -> u8 {
        let told = self.queue.iter().flatten().map(|entry| entry.ticket);
        let next = 1 + told.filter(|ticket| *ticket < LAST).max().unwrap_or(FIRST);
        match rules.wish(place) {
            Wish::Read(Turn::First) if !rules.breaks(Broken::AskersChoice) => FIRST,
            Wish::Read(Turn::Last) if !rules.breaks(Broken::AskersChoice) => LAST,
            _ => next,
        }
    }

    /// Enters the hold until the deadline of this round, and never shortens what it has.
    fn grant(&mut self, request: Request, late: bool, rules: &Rules) {
        let Request { kind, place, bid, ticket } = request;
        let number = if kind.is_round() { ticket } else { 0 };
        let until = Round::of(place, bid, number);
        let vote = if writes(request, rules) {
            let own = self.is_written_by(place, bid);
            self.writer = self.writer.filter(|_| own);
            &mut self.writer
        } else {
            if rules.breaks(Broken::SharedDeadline) {
                self.readers.iter_mut().flatten().flatten().for_each(|vote| vote.until = until);
            }
            &mut self.readers[place][slot_of(request)]
        };
        let vote = vote.get_or_insert(Vote { excused: late, until });
        vote.excused &= late;
        vote.until = vote.until.max(until);
    }

    fn take_back(&mut self, place: usize, bid: u8) {
        if self.is_written_by(place, bid) {
            self.writer = None;
        }
        if let Some(slot) = slot_of_bid(bid) {
            self.readers[place][slot] = None;
        }
    }

    fn is_written_by(&self, place: usize, bid: u8) -> bool {
        let by = |vote: Vote| vote.until.place() == Some(place) && vote.until.bid == bid;
        self.writer.is_some_and(by)
    }

    /// It voted for this bid.
    pub(crate) fn is_held_by(&self, place: usize, bid: u8) -> bool {
        let reads = |slot: usize| self.readers[place][slot].is_some();
        self.is_written_by(place, bid) || slot_of_bid(bid).is_some_and(reads)
    }

    pub(crate) fn is_in_quarantine(&self) -> bool {
        self.forgot.iter().any(Option::is_some)
    }

    /// The entry's deadline passes.
    pub(crate) fn entry_ends(&mut self, place: usize) {
        self.queue[place] = None;
        self.stood.iter_mut().for_each(|others| *others &= !(1 << place));
    }

    /// All connections break with the process, and nothing on them arrives.
    pub(crate) fn crash(&mut self) {
        self.lines.iter_mut().for_each(|line| line.crash(true));
    }

    /// Besides, it comes back empty.
    pub(crate) fn forget(&mut self, asked: [Option<Round>; MOST_PLACES]) {
        self.crash();
        self.writer = None;
        self.readers = Default::default();
        self.queue = [None; MOST_PLACES];
        self.stood = [0; MOST_PLACES];
        for (forgot, asked) in self.forgot.iter_mut().zip(asked) {
            *forgot = asked.or(*forgot);
        }
    }
}

fn writes(request: Request, rules: &Rules) -> bool {
    rules.writes(request.place) && !matches!(request.kind, Kind::Read | Kind::RenewRead)
}

/// Where a voter has the vote of a hold that reads.
fn slot_of(request: Request) -> usize {
    match request.kind {
        Kind::Read | Kind::RenewRead => OWN,
        _ => slot_of_bid(request.bid).expect("no reader bids so often"),
    }
}

fn slot_of_bid(bid: u8) -> Option<usize> {
    usize::from(bid).checked_sub(1).filter(|slot| *slot < OWN)
}
