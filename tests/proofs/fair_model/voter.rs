//! What a voter does: the Lua scripts, and crashes.

use crate::fair_model::{
    kind::Kind,
    requests::{Request, Requests},
    rules::{Broken, Rules},
    state::{Answer, Entry, MOST_PLACES, Vote, Voter},
};

impl Voter {
    /// The first request on the client's connection arrives. A bid has an answer.
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
            Kind::Bid => Some(self.bid(request, late, rules)),
            Kind::Try => {
                let granted = self.vote.is_none() && !self.is_behind(place, rules);
                if granted {
                    self.vote = Some(Vote { place: Some(place), bid, excused: late });
                }
                Some(Answer { granted, ticket: 0, stands: false })
            }
            Kind::Undo | Kind::Leave => {
                if kind == Kind::Leave || rules.breaks(Broken::UndoDropsPlace) {
                    self.queue[place] = None;
                }
                if self.is_held_by(place, bid) {
                    self.vote = None;
                }
                None
            }
        }
    }

    /// Asks, fixes, refreshes and attempts at the same time.
    fn bid(&mut self, request: Request, late: bool, rules: &Rules) -> Answer {
        let Request { place, bid, ticket, .. } = request;
        let next = 1 + self.queue.iter().flatten().map(|entry| entry.ticket).max().unwrap_or(0);
        if ticket > 0 {
            let kept = self.queue[place].filter(|_| rules.breaks(Broken::TicketRaised));
            let ticket = kept.map_or(ticket, |entry| entry.ticket.max(ticket));
            let excused = self.queue[place].is_none_or(|entry| entry.excused);
            self.queue[place] = Some(Entry { ticket, excused });
        }
        let granted = self.vote.is_none() && !self.is_behind(place, rules);
        if granted {
            self.vote = Some(Vote { place: Some(place), bid, excused: late });
        }
        match &mut self.queue[place] {
            // Once its own request has found it, the place takes it out when it goes.
            Some(entry) => entry.excused &= late,
            it @ None if !granted => *it = Some(Entry { ticket: next, excused: late }),
            None => {}
        }
        let stands = self.queue[place];
        if granted && rules.breaks(Broken::TakenOutAtGrant) {
            self.queue[place] = None;
        }
        let ticket = stands.map_or(next, |entry| entry.ticket);
        Answer { granted, ticket, stands: self.queue[place].is_some() }
    }

    /// Somebody is before the place; before one that is not in the queue is everybody.
    fn is_behind(&self, place: usize, rules: &Rules) -> bool {
        let of = |other: usize| self.queue[other].map(|entry| (entry.ticket, other));
        let before = |other: usize| match (of(other), of(place)) {
            (Some(other), Some(mine)) => other < mine,
            (other, _) => other.is_some(),
        };
        let mut others = (0..MOST_PLACES).filter(|other| *other != place);
        !rules.breaks(Broken::Barging) && others.any(before)
    }

    /// The entry's deadline passes.
    pub(crate) fn entry_ends(&mut self, place: usize) {
        self.queue[place] = None;
        self.stood.iter_mut().for_each(|others| *others &= !(1 << place));
    }

    /// All connections break with the process, and nothing on them arrives.
    pub(crate) fn crash(&mut self, keeps_data: bool) {
        for line in &mut self.lines {
            line.queue = line.queue.debts();
            line.late = Requests::default();
        }
        if !keeps_data {
            self.vote = None;
            self.queue = [None; MOST_PLACES];
            self.stood = [0; MOST_PLACES];
        }
    }
}
