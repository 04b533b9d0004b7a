//! What paths came by, to see that a model has these things in it.

use crate::{
    check::{Mark, Passed},
    queue_model::{
        kind::Kind,
        moves::Move,
        rules::Rules,
        state::{MOST_PLACES, Phase, Read, State, Voter},
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
    /// Two read at the same time.
    Together,
    Renewed,
    /// A renewal took the vote of a voter that did not have it.
    VoteRegained,
    /// The write ended, and the read under it goes on.
    Downgraded,
    LostAtItsDeadline,
    /// A vote ended that somebody still relied on.
    Lapsed,
    /// A voter granted that does not count.
    NotCounted,
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

pub(crate) fn pass(passed: &Passed, before: &State, step: Move, after: &State, rules: &Rules) {
    match step {
        Move::Win(place) => {
            let mut claims = before.voters.iter().flat_map(|voter| voter.stood);
            let in_turn = claims.any(|others| others >> place & 1 > 0);
            passed.add(if in_turn { Landmark::WonInTurn } else { Landmark::Won });
            if rules.places().filter(|other| after.holds(*other)).count() > 1 {
                passed.add(Landmark::Together);
            }
        }
        Move::Lose(place, _) if after.places[place].phase == Phase::Bidding => {
            passed.add(Landmark::BidAtOnce);
        }
        Move::Release(place) if after.places[place].phase == Phase::Reading => {
            passed.add(Landmark::Downgraded);
        }
        Move::Pass(place) if before.holds(place) && !after.holds(place) => {
            passed.add(Landmark::LostAtItsDeadline);
        }
        Move::WriteEnds(voter) => {
            let until = before.voters[voter].writer.map(|vote| vote.until);
            if until.is_some_and(|until| before.is_present(until)) {
                passed.add(Landmark::Lapsed);
            }
        }
        Move::ReadEnds { voter, place, slot } => {
            let until = before.voters[voter].readers[place][slot].map(|vote| vote.until);
            if until.is_some_and(|until| before.is_present(until)) {
                passed.add(Landmark::Lapsed);
            }
        }
        Move::Arrive(client, voter) => {
            if has_lowered(&before.voters[voter], &after.voters[voter]) {
                passed.add(Landmark::Lowered);
            }
            arrived(passed, before, (client, voter), after);
        }
        Move::ArriveLate(_, voter) => {
            let queues = (before.voters[voter].queue, after.voters[voter].queue);
            let newly = |place: usize| queues.0[place].is_none() && queues.1[place].is_some();
            let gone = |place: &usize| after.places[*place].phase == Phase::Gone;
            if (0..MOST_PLACES).filter(gone).any(newly) {
                passed.add(Landmark::Ghost);
            }
        }
        _ => {}
    }
}

fn arrived(passed: &Passed, before: &State, (client, voter): (usize, usize), after: &State) {
    let Some(request) = before.voters[voter].lines[client].queue.first() else { return };
    let place = request.place;
    let (was, is) = (&before.places[place], &after.places[place]);
    let renews = matches!(request.kind, Kind::Renew | Kind::RenewRead);
    if renews && was.open && !is.open && !matches!(was.read, Read::Asked { .. }) {
        passed.add(Landmark::Renewed);
    }
    let has = |state: &State| state.voters[voter].is_held_by(place, request.bid);
    if request.kind == Kind::Renew && !has(before) && has(after) {
        passed.add(Landmark::VoteRegained);
    }
    if after.voters[voter].answers[place].is_some_and(|answer| answer.granted && answer.uncounted) {
        passed.add(Landmark::NotCounted);
    }
}

fn has_lowered(before: &Voter, after: &Voter) -> bool {
    let mut pairs = before.queue.into_iter().zip(after.queue);
    pairs.any(|pair| matches!(pair, (Some(was), Some(is)) if is.ticket < was.ticket))
}
