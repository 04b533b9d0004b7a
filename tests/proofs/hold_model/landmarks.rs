//! What paths came by, to see that a model has these things in it.

use crate::{
    change::Sets,
    check::{Mark, Passed},
    hold_model::{
        moves::Move,
        requests::{Kind, Request},
        rules::Rules,
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
    /// The votes would have been a majority, but for one of a voter in quarantine.
    NotCounted,
    /// A renewal was granted by a voter in quarantine, and counted.
    Proven,
    /// A majority had forgotten the hold, and its client found out.
    Vanished,
    /// An undo or a release arrived before a request that it was sent after.
    UndoneTooEarly,
    /// A late request took a vote for a hold that nobody has.
    VoteWithoutOwner,
    ExpiredEarly,
    /// The leader of a split asked again and won.
    SplitWon,
    /// The token had to be stored first.
    StoredFirst,
    /// An attempt ended while its token was being stored.
    NotStored,
    /// A voter refused to store a token, for another hold had its vote.
    StoringRefused,
    /// A client of the old voters alone won while another had both sets.
    WonOld,
    /// A client of both sets won.
    WonJoint,
    /// A client of the new voters alone won while another had both sets.
    WonNew,
    /// A voter that had forgotten voted again outside of its quarantine, below the highest token.
    Behind,
}

impl Mark for Landmark {
    fn number(self) -> u32 {
        self as u32
    }
}

pub(crate) fn pass(passed: &Passed, before: &State, step: Move, after: &State, rules: &Rules) {
    match step {
        Move::Hear(client, voter) => heard(before, (client, voter), after, (passed, rules)),
        Move::Arrive(client, voter) => arrived(before, (client, voter), after, (passed, rules)),
        Move::ArriveLate(client, voter) => {
            let record = after.voters[voter].record;
            let newly = before.voters[voter].record.is_none();
            let idle = after.client(client).phase == Phase::Idle;
            if newly && record.is_some() && idle {
                passed.add(Landmark::VoteWithoutOwner);
            }
        }
        Move::GiveUp(client) if matches!(before.client(client).phase, Phase::Storing { .. }) => {
            passed.add(Landmark::NotStored);
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

fn heard(
    before: &State,
    (client, voter): (u8, usize),
    after: &State,
    (passed, rules): (&Passed, &Rules),
) {
    let refused = |state: &State| state.lines(client, rules).any(|line| is_refusal(line.heard));
    let reply = before.voters[voter].line(client).reply;
    match (before.client(client).phase, after.client(client).phase) {
        (Phase::Asking { again, .. }, Phase::Holding { .. }) => {
            passed.add(Landmark::Won);
            let beside = before.clients.iter().any(|client| client.sets == Sets::Joint);
            match before.client(client).sets {
                Sets::Old if beside => passed.add(Landmark::WonOld),
                Sets::Joint => passed.add(Landmark::WonJoint),
                Sets::New if beside => passed.add(Landmark::WonNew),
                _ => {}
            }
            let releasing =
                |line: &Line| line.way.queue.iter().any(|request| request.kind == Kind::Release);
            let mut lines = before.voters.iter().flat_map(|voter| &voter.lines);
            if lines.any(releasing) {
                passed.add(Landmark::HandedOver);
            }
            if again {
                passed.add(Landmark::SplitWon);
            }
        }
        (Phase::Storing { .. }, Phase::Holding { .. }) => passed.add(Landmark::StoredFirst),
        (Phase::Holding { left: was, .. }, Phase::Holding { left: is, .. }) if is > was => {
            passed.add(Landmark::Renewed);
        }
        (Phase::Holding { .. }, Phase::Idle) if !is_refusal(reply) => {
            passed.add(Landmark::Vanished);
        }
        (Phase::Holding { .. }, _) if is_refusal(reply) || refused(after) => {
            passed.add(Landmark::RenewalRefused);
        }
        _ => {}
    }
}

fn is_refusal(answer: Answer) -> bool {
    matches!(answer, Answer::Refused(_))
}

fn arrived(
    before: &State,
    (client, voter): (u8, usize),
    after: &State,
    (passed, rules): (&Passed, &Rules),
) {
    let line = before.voters[voter].line(client);
    let Some(request) = line.way.queue.first() else { return };
    let asks = |it: Request| !it.kind.gives_back() && it.number == request.number;
    if request.kind.gives_back() && line.way.late.iter().any(asks) {
        passed.add(Landmark::UndoneTooEarly);
    }
    let (was, is) = (&before.voters[voter], &after.voters[voter]);
    let hold = after.client(client).hold(client, rules);
    let granted = is.is_held_by(hold);
    let forgot = was.is_in_quarantine(rules);
    let regained = was.record.is_none() && is.record.is_some();
    if request.kind.renews() && regained && forgot && after.client(client).trusts() {
        passed.add(Landmark::VoteRegained);
    }
    let landmark = match (after.client(client).phase, request.kind) {
        _ if !request.awaited => None,
        (Phase::Asking { .. }, Kind::Acquire) if granted && forgot => {
            let votes = after.voters.iter().filter(|voter| voter.is_held_by(hold)).count();
            (votes >= QUORUM).then_some(Landmark::NotCounted)
        }
        (Phase::Asking { .. }, Kind::Acquire) if granted && is.counter <= before.highest => {
            Some(Landmark::Behind)
        }
        (Phase::Storing { .. }, Kind::Renew) if !granted => Some(Landmark::StoringRefused),
        (Phase::Holding { .. }, kind)
            if kind.renews() && forgot && is.line(client).reply.is_grant() =>
        {
            Some(Landmark::Proven)
        }
        _ => None,
    };
    if let Some(landmark) = landmark {
        passed.add(landmark);
    }
}
