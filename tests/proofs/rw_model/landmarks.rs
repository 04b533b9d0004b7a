//! What paths came by, to see that a model has these things in it.

use crate::{
    check::{Mark, Passed},
    rw_model::{
        kind::Kind,
        moves::Move,
        rules::Rules,
        state::{Phase, Read, State},
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
        Move::Arrive(client, voter) => arrived(passed, before, (client, voter), after),
        _ => {}
    }
}

fn arrived(passed: &Passed, before: &State, (client, voter): (usize, usize), after: &State) {
    let Some(request) = before.voters[voter].lines[client].queue.first() else { return };
    let (was, is) = (&before.places[client], &after.places[client]);
    let renews = matches!(request.kind, Kind::Renew | Kind::RenewRead);
    if renews && was.open && !is.open && !matches!(was.read, Read::Asked { .. }) {
        passed.add(Landmark::Renewed);
    }
    let has = |state: &State| state.voters[voter].is_held_by(client, request.bid);
    if request.kind == Kind::Renew && !has(before) && has(after) {
        passed.add(Landmark::VoteRegained);
    }
    if after.voters[voter].answers[client].is_some_and(|answer| answer.granted && answer.uncounted)
    {
        passed.add(Landmark::NotCounted);
    }
}
