//! A waiter's number in the queue of a fair lock: the same on every voter, once it is fixed.

use super::Quorum;

/// Orders a queue, and where two are equal the places do. It never changes once it is fixed:
/// raised later, it would let those pass who came after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(pub(crate) u64);

/// What the voters said about one place.
#[derive(Clone, Debug)]
pub(crate) struct Tickets {
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
    pub(crate) fn new(quorum: Quorum) -> Self {
        Self { quorum, said: vec![None; quorum.voters()] }
    }

    pub(crate) fn heard(&mut self, voter: usize, ticket: Ticket, stands: bool) {
        self.said[voter] = Some(Said { ticket, stands });
    }

    /// The highest that a majority said. Whoever stood on a majority before with another ticket has
    /// a lower one: the two majorities share a voter, which gave this one after that.
    pub(crate) fn highest(&self) -> Option<Ticket> {
        let said = self.said.iter().flatten();
        if said.clone().count() < self.quorum.needed() {
            return None;
        }
        said.map(|said| said.ticket).max()
    }

    /// Whether everybody who was heard has the place in the queue, with this ticket.
    pub(crate) fn agree_on(&self, ticket: Ticket) -> bool {
        self.said.iter().flatten().all(|said| said.stands && said.ticket == ticket)
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

    #[test]
    fn the_highest_of_a_majority_is_fixed_and_a_minority_fixes_nothing() {
        assert_eq!(tickets([Some((7, true)), None, None]).highest(), None);
        let both = tickets([Some((7, true)), None, Some((3, true))]);
        assert_eq!(both.highest(), Some(Ticket(7)));
    }

    #[test]
    fn a_voter_with_another_ticket_or_without_the_place_is_to_be_told() {
        assert!(tickets([Some((3, true)), Some((3, true)), None]).agree_on(Ticket(3)));
        assert!(!tickets([Some((3, true)), Some((2, true)), None]).agree_on(Ticket(3)));
        assert!(!tickets([Some((3, true)), Some((3, false)), None]).agree_on(Ticket(3)));
    }
}
