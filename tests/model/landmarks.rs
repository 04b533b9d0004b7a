//! What paths came by, to see that a model has these things in it.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::{
    moves::Move,
    queue::Kind,
    state::{Answer, Client, Line, Phase, QUORUM, State},
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

#[derive(Debug, Default)]
pub(crate) struct Landmarks(AtomicU32);

impl Landmarks {
    /// Those that no path has come by.
    pub(crate) fn missing(&self, landmarks: &[Landmark]) -> Vec<Landmark> {
        let passed = self.0.load(Relaxed);
        landmarks.iter().copied().filter(|it| passed & bit(*it) == 0).collect()
    }

    pub(crate) fn pass(&self, before: &State, step: Move, after: &State) {
        let mut passed = 0;
        match step {
            Move::Hear(client, _) => heard(before, client, after, &mut passed),
            Move::Arrive(client, voter) => arrived(before, client, voter, after, &mut passed),
            Move::ArriveLate(client, voter) => {
                let record = after.voters[voter].record;
                let newly = before.voters[voter].record.is_none();
                let idle = after.client(client).phase == Phase::Idle;
                if newly && record.is_some() && idle {
                    passed |= bit(Landmark::VoteWithoutOwner);
                }
            }
            Move::Tick => {
                let ended = |(was, is): (&Client, &Client)| was.trusts() && !is.trusts();
                if before.clients.iter().zip(&after.clients).any(ended) {
                    passed |= bit(Landmark::LostAtItsDeadline);
                }
            }
            Move::ExpireEarly(_) => passed |= bit(Landmark::ExpiredEarly),
            _ => {}
        }
        if passed & !self.0.load(Relaxed) > 0 {
            self.0.fetch_or(passed, Relaxed);
        }
    }
}

fn bit(landmark: Landmark) -> u32 {
    1 << landmark as u32
}

fn heard(before: &State, client: u8, after: &State, passed: &mut u32) {
    let granted = after.lines(client).filter(|line| line.heard.is_grant()).count();
    match (before.client(client).phase, after.client(client).phase) {
        (Phase::Asking { .. }, Phase::Holding { .. }) => {
            *passed |= bit(Landmark::Won);
            let releasing =
                |line: &Line| line.queue.iter().any(|request| request.kind == Kind::Release);
            let mut lines = before.voters.iter().flat_map(|voter| &voter.lines);
            if lines.any(releasing) {
                *passed |= bit(Landmark::HandedOver);
            }
            if before.lines(client).any(|line| line.doubtful) {
                *passed |= bit(Landmark::SplitWon);
            }
        }
        (Phase::Asking { .. }, Phase::Asking { .. }) if granted >= QUORUM => {
            *passed |= bit(Landmark::NotCounted);
        }
        (Phase::Holding { left: was, .. }, Phase::Holding { left: is, .. }) if is > was => {
            *passed |= bit(Landmark::Renewed);
        }
        (Phase::Holding { .. }, _)
            if after.lines(client).any(|line| matches!(line.heard, Answer::Refused(_))) =>
        {
            *passed |= bit(Landmark::RenewalRefused);
        }
        _ => {}
    }
}

fn arrived(before: &State, client: u8, voter: usize, after: &State, passed: &mut u32) {
    let Some(request) = before.voters[voter].line(client).queue.iter().next() else { return };
    let late = before.voters[voter].line(client).late;
    let behind = late.iter().any(|it| !it.kind.gives_back() && it.number == request.number);
    if request.kind.gives_back() && behind {
        *passed |= bit(Landmark::UndoneTooEarly);
    }
    let regained = before.voters[voter].record.is_none() && after.voters[voter].record.is_some();
    let forgot = before.voters[voter].quarantine > 0;
    if request.kind == Kind::Renew && regained && forgot && after.client(client).trusts() {
        *passed |= bit(Landmark::VoteRegained);
    }
}
