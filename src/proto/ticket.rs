//! A waiter's number in the queue of a fair lock: the same on every voter, once it is fixed.

use super::Quorum;

/// Orders a queue, and where two are equal the places do. It never changes once it is fixed:
/// raised later, it would let those pass who came after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What the voters said about one place.
#[derive(Clone, Debug)]
pub(super) struct Tickets {
    quorum: Quorum,
    said: Vec<Option<Said>>,
}

#[derive(Clone, Copy, Debug)]
struct Said {
    ticket: Ticket,
    /// The place stands in the voter's queue.
    stands: bool,
}

impl Tickets {
    pub(super) fn new(quorum: Quorum) -> Self {
        Self { quorum, said: vec![None; quorum.voters()] }
    }

    pub(super) fn heard(&mut self, voter: usize, ticket: Ticket, stands: bool) {
        // One that is asked again may have taken the place out meanwhile.
        self.said[voter].get_or_insert(Said { ticket, stands });
    }

    /// The highest that a majority said, of all majorities that have answered the one with the
    /// lowest. Whoever stood on a majority before has a lower one: the two majorities share a
    /// voter, which gave its ticket after that. And where a majority said the same, it is that: the
    /// place stands there already, ahead of whoever has asked since.
    pub(super) fn fixed(&self) -> Option<Ticket> {
        let said = |voter: usize| self.said[voter].map(|said| said.ticket);
        let highest = || {
            let decided = self.quorum.reached(|voter| said(voter).is_some());
            (0..self.said.len()).filter_map(said).max().filter(|_| decided)
        };
        if crate::mutant!("ticket_is_raised") {
            return highest();
        }
        if crate::mutant!("highest_ticket_is_fixed") {
            return highest();
        }
        self.quorum.lowest(said)
    }

    /// Whether the place stands with this ticket on a majority.
    pub(super) fn stand_at(&self, ticket: Ticket) -> bool {
        self.quorum.reached(|voter| self.said[voter].is_some_and(|said| said.is(ticket)))
    }

    /// Whether everybody who was heard has the place in the queue, with this ticket.
    pub(super) fn agree_on(&self, ticket: Ticket) -> bool {
        self.said.iter().flatten().all(|said| said.is(ticket))
    }
}

impl Said {
    fn is(self, ticket: Ticket) -> bool {
        self.stands && self.ticket == ticket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tickets(said: [Option<(u64, bool)>; 3]) -> Tickets {
        let mut tickets = Tickets::new(Quorum::of(3));
        for (voter, said) in said.into_iter().enumerate() {
            if let Some((ticket, stands)) = said {
                tickets.heard(voter, Ticket(ticket), stands);
            }
        }
        tickets
    }

    // Whoever has asked since has a higher ticket from one of the majority. A voter with another
    // one, or without the place, is to be told.
    #[test]
    fn the_highest_of_the_lowest_majority_is_fixed_whatever_the_others_say() {
        let said = |ticket| Some((ticket, true));
        for (voters, fixed, stands, agree) in [
            ([said(7), None, said(3)], 7, false, false),
            ([said(7), said(5), said(3)], 5, false, false),
            ([said(4), said(1), said(4)], 4, true, false),
            ([said(4), said(9), said(4)], 4, true, false),
            ([said(3), said(3), None], 3, true, true),
            ([said(3), Some((3, false)), None], 3, false, false),
        ] {
            let (tickets, fixed) = (tickets(voters), Ticket(fixed));
            assert_eq!(tickets.fixed(), Some(fixed), "{voters:?}");
            let known = (tickets.stand_at(fixed), tickets.agree_on(fixed));
            assert_eq!(known, (stands, agree), "{voters:?}");
        }
        assert_eq!(tickets([said(7), None, None]).fixed(), None, "a minority fixes nothing");
    }
}
