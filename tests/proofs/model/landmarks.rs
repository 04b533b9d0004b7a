//! What paths came by, to see that a model has these things in it.

use crate::{
    check::{Mark, Passed},
    model::{
        moves::Move,
        queue::Kind,
        state::{Answer, Client, Line, Phase, QUORUM, State},
    },
};

/// Something that a path can come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Landmark {
    Won,
    /// Won while the release of the hold before is still under way somewhere.
    HandedOver,
    Renewed,
    RenewalRefused,
    LostAtItsDeadline,
    /// A renewal took back the vote of a voter that had forgotten it.
    VoteRegained,
    /// A majority that did not count, for one voter is in quarantine.
    NotCounted,
    /// An undo or a release arrived before a request that it was sent after.
    UndoneTooEarly,
    /// A late request took a vote for a hold that nobody has.
    VoteWithoutOwner,
    ExpiredEarly,
    /// The leader of a split asked again and won.
    SplitWon,
}

impl Mark for Landmark {
    fn number(self) -> u32 {
        self as u32
    }
}

pub(crate) fn pass(passed: &Passed, before: &State, step: Move, after: &State) {
    match step {
        Move::Hear(client, _) => heard(before, client, after, passed),
        Move::Arrive(client, voter) => arrived(before, client, voter, after, passed),
        Move::ArriveLate(client, voter) => {
            let record = after.voters[voter].record;
            let newly = before.voters[voter].record.is_none();
            let idle = after.client(client).phase == Phase::Idle;
            if newly && record.is_some() && idle {
                passed.add(Landmark::VoteWithoutOwner);
            }
        }
        Move::Tick => {
            let ended = |(was, is): (&Client, &Client)| was.trusts() && !is.trusts();
            if before.clients.iter().zip(&after.clients).any(ended) {
                passed.add(Landmark::LostAtItsDeadline);
            }
        }
        Move::ExpireEarly(_) => passed.add(Landmark::ExpiredEarly),
        _ => {}
    }
}

fn heard(before: &State, client: u8, after: &State, passed: &Passed) {
    let granted = after.lines(client).filter(|line| line.heard.is_grant()).count();
    match (before.client(client).phase, after.client(client).phase) {
        (Phase::Asking { .. }, Phase::Holding { .. }) => {
            passed.add(Landmark::Won);
            let releasing =
                |line: &Line| line.queue.iter().any(|request| request.kind == Kind::Release);
            let mut lines = before.voters.iter().flat_map(|voter| &voter.lines);
            if lines.any(releasing) {
                passed.add(Landmark::HandedOver);
            }
            if before.lines(client).any(|line| line.doubtful) {
                passed.add(Landmark::SplitWon);
            }
        }
        (Phase::Asking { .. }, Phase::Asking { .. }) if granted >= QUORUM => {
            passed.add(Landmark::NotCounted);
        }
        (Phase::Holding { left: was, .. }, Phase::Holding { left: is, .. }) if is > was => {
            passed.add(Landmark::Renewed);
        }
        (Phase::Holding { .. }, _)
            if after.lines(client).any(|line| matches!(line.heard, Answer::Refused(_))) =>
        {
            passed.add(Landmark::RenewalRefused);
        }
        _ => {}
    }
}

fn arrived(before: &State, client: u8, voter: usize, after: &State, passed: &Passed) {
    let Some(request) = before.voters[voter].line(client).queue.iter().next() else { return };
    let late = before.voters[voter].line(client).late;
    let behind = late.iter().any(|it| !it.kind.gives_back() && it.number == request.number);
    if request.kind.gives_back() && behind {
        passed.add(Landmark::UndoneTooEarly);
    }
    let regained = before.voters[voter].record.is_none() && after.voters[voter].record.is_some();
    let forgot = before.voters[voter].quarantine > 0;
    if request.kind == Kind::Renew && regained && forgot && after.client(client).trusts() {
        passed.add(Landmark::VoteRegained);
    }
}
