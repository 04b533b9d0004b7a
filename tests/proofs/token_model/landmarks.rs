//! What paths came by, to see that a model has these things in it.

use crate::{
    check::{Mark, Passed},
    token_model::{
        moves::Move,
        requests::Kind,
        state::{Phase, QUORUM, State},
    },
};

/// Something that a path can come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Landmark {
    /// A majority answered the token, and it was held at once.
    HeldAtOnce,
    /// The token had to be stored first.
    StoredFirst,
    /// An attempt ended while its token was being stored.
    NotStored,
    /// A voter refused to store a token, for another hold had its vote.
    StoringRefused,
    LostAtItsDeadline,
    Renewed,
    /// The votes would have been a majority, but for one of a voter in quarantine.
    NotCounted,
    /// A renewal was granted by a voter in quarantine, and counted.
    Proven,
    /// A voter that had forgotten voted again outside of its quarantine, below the highest token.
    Behind,
}

impl Mark for Landmark {
    fn number(self) -> u32 {
        self as u32
    }
}

pub(crate) fn pass(passed: &Passed, before: &State, step: Move, after: &State) {
    let landmark = match step {
        Move::Hear(client, _) => heard(before, client, after),
        Move::Arrive(client, voter) => arrived(before, client, voter, after),
        Move::GiveBack(client) => {
            let storing = matches!(before.client(client).phase, Phase::Storing { .. });
            storing.then_some(Landmark::NotStored)
        }
        Move::Tick => {
            let mut clients = before.clients.iter().zip(&after.clients);
            let lost = clients.any(|(was, is)| was.holds() && !is.holds());
            lost.then_some(Landmark::LostAtItsDeadline)
        }
        _ => None,
    };
    if let Some(landmark) = landmark {
        passed.add(landmark);
    }
}

fn heard(before: &State, client: u8, after: &State) -> Option<Landmark> {
    match (before.client(client).phase, after.client(client).phase) {
        (Phase::Asking { .. }, Phase::Holding { .. }) => Some(Landmark::HeldAtOnce),
        (Phase::Storing { .. }, Phase::Holding { .. }) => Some(Landmark::StoredFirst),
        (Phase::Holding { left: was, .. }, Phase::Holding { left: is, .. }) if is > was => {
            Some(Landmark::Renewed)
        }
        _ => None,
    }
}

fn arrived(before: &State, client: u8, voter: usize, after: &State) -> Option<Landmark> {
    let request = before.voters[voter].line(client).requests.first()?;
    let (was, is) = (&before.voters[voter], &after.voters[voter]);
    let hold = after.client(client).hold(client);
    let granted = is.is_held_by(hold);
    let counts = is.line(client).reply.counter().is_some();
    match (after.client(client).phase, request.kind) {
        _ if !request.awaited => None,
        (Phase::Asking { .. }, Kind::Acquire) if granted && is.quarantine > 0 => {
            let votes = after.voters.iter().filter(|voter| voter.is_held_by(hold)).count();
            (votes >= QUORUM).then_some(Landmark::NotCounted)
        }
        (Phase::Asking { .. }, Kind::Acquire) if granted && is.counter <= before.highest => {
            Some(Landmark::Behind)
        }
        (Phase::Storing { .. }, Kind::Renew) if !granted => Some(Landmark::StoringRefused),
        (Phase::Holding { .. }, Kind::Renew) if was.quarantine > 0 && counts => {
            Some(Landmark::Proven)
        }
        _ => None,
    }
}
