//! What paths came by, to see that a model has these things in it.

use crate::{
    check::{Mark, Passed},
    fair_model::{
        moves::Move,
        state::{MOST_PLACES, Phase, State, Voter},
    },
};

/// Something that a path can come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Landmark {
    Won,
    /// Won by one that stood on a majority when another asked that still waits.
    WonInTurn,
    /// The answers differed, or one was a grant without an entry.
    BidAtOnce,
    /// A voter had a higher ticket for the place.
    Lowered,
    /// A late request brought a place back that is gone.
    Ghost,
}

impl Mark for Landmark {
    fn number(self) -> u32 {
        self as u32
    }
}

pub(crate) fn pass(passed: &Passed, before: &State, step: Move, after: &State) {
    let landmark = match step {
        Move::Win(place) => {
            let mut claims = before.voters.iter().flat_map(|voter| voter.stood);
            let in_turn = claims.any(|others| others >> place & 1 > 0);
            Some(if in_turn { Landmark::WonInTurn } else { Landmark::Won })
        }
        Move::Lose(place, _) if after.places[place].phase == Phase::Bidding => {
            Some(Landmark::BidAtOnce)
        }
        Move::Arrive(_, voter) => {
            let lowered = has_lowered(&before.voters[voter], &after.voters[voter]);
            lowered.then_some(Landmark::Lowered)
        }
        Move::ArriveLate(_, voter) => {
            let queues = (before.voters[voter].queue, after.voters[voter].queue);
            let newly = |place: usize| queues.0[place].is_none() && queues.1[place].is_some();
            let gone = |place: &usize| after.places[*place].phase == Phase::Gone;
            (0..MOST_PLACES).filter(gone).any(newly).then_some(Landmark::Ghost)
        }
        _ => None,
    };
    if let Some(landmark) = landmark {
        passed.add(landmark);
    }
}

fn has_lowered(before: &Voter, after: &Voter) -> bool {
    let mut pairs = before.queue.into_iter().zip(after.queue);
    pairs.any(|pair| matches!(pair, (Some(was), Some(is)) if is.ticket < was.ticket))
}
