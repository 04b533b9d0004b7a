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
    let mut add = |landmark: Landmark, is_so: bool| {
        if is_so {
            passed.add(landmark);
        }
    };
    match step {
        Move::Hear(client, voter) => heard(before, (client, voter), after, rules, &mut add),
        Move::Arrive(client, voter) => arrived(before, (client, voter), after, rules, &mut add),
        Move::ArriveLate(client, voter) => {
            let (was, is) = (before.voters[voter].record, after.voters[voter].record);
            let idle = after.client(client).phase == Phase::Idle;
            add(Landmark::VoteWithoutOwner, was.is_none() && is.is_some() && idle);
        }
        Move::GiveUp(client) => {
            let stores = matches!(before.client(client).phase, Phase::Storing { .. });
            add(Landmark::NotStored, stores);
        }
        Move::Tick => {
            let ended = |(was, is): (&Client, &Client)| was.trusts() && !is.trusts();
            let lost = before.clients.iter().zip(&after.clients).any(ended);
            add(Landmark::LostAtItsDeadline, lost);
        }
        Move::ExpireEarly(_) => add(Landmark::ExpiredEarly, true),
        _ => {}
    }
}

fn heard(
    before: &State,
    (client, voter): (u8, usize),
    after: &State,
    rules: &Rules,
    add: &mut impl FnMut(Landmark, bool),
) {
    let is_refusal = |answer| matches!(answer, Answer::Refused(_));
    let refused = is_refusal(before.voters[voter].line(client).reply);
    match (before.client(client).phase, after.client(client).phase) {
        (Phase::Asking { again, .. }, Phase::Holding { .. }) => {
            let sets = before.client(client).sets;
            let beside = before.clients.iter().any(|client| client.sets == Sets::Joint);
            let releases = |line: &Line| line.way.queue.iter().any(|it| it.kind == Kind::Release);
            let mut lines = before.voters.iter().flat_map(|voter| &voter.lines);
            add(Landmark::Won, true);
            add(Landmark::WonOld, sets == Sets::Old && beside);
            add(Landmark::WonJoint, sets == Sets::Joint);
            add(Landmark::WonNew, sets == Sets::New && beside);
            add(Landmark::HandedOver, lines.any(releases));
            add(Landmark::SplitWon, again);
        }
        (Phase::Storing { .. }, Phase::Holding { .. }) => add(Landmark::StoredFirst, true),
        (Phase::Holding { left: was, .. }, Phase::Holding { left: is, .. }) if is > was => {
            add(Landmark::Renewed, true);
        }
        (Phase::Holding { .. }, Phase::Idle) if !refused => add(Landmark::Vanished, true),
        (Phase::Holding { .. }, _) => {
            let refused = refused || after.lines(client, rules).any(|line| is_refusal(line.heard));
            add(Landmark::RenewalRefused, refused);
        }
        _ => {}
    }
}

fn arrived(
    before: &State,
    (client, voter): (u8, usize),
    after: &State,
    rules: &Rules,
    add: &mut impl FnMut(Landmark, bool),
) {
    let line = before.voters[voter].line(client);
    let Some(request) = line.way.queue.first() else { return };
    let asks = |it: Request| !it.kind.gives_back() && it.number == request.number;
    let too_early = request.kind.gives_back() && line.way.late.iter().any(asks);
    add(Landmark::UndoneTooEarly, too_early);
    let (was, is) = (&before.voters[voter], &after.voters[voter]);
    let hold = after.client(client).hold(client, rules);
    let (granted, forgot) = (is.is_held_by(hold), was.is_in_quarantine(rules));
    let regained = was.record.is_none() && is.record.is_some() && forgot;
    let renews = request.kind.renews();
    add(Landmark::VoteRegained, renews && regained && after.client(client).trusts());
    match after.client(client).phase {
        _ if !request.awaited => {}
        Phase::Asking { .. } if request.kind == Kind::Acquire && granted => {
            let votes = after.voters.iter().filter(|voter| voter.is_held_by(hold)).count();
            add(Landmark::NotCounted, forgot && votes >= QUORUM);
            add(Landmark::Behind, !forgot && is.counter <= before.highest);
        }
        Phase::Storing { .. } => {
            add(Landmark::StoringRefused, request.kind == Kind::Renew && !granted);
        }
        Phase::Holding { .. } => {
            add(Landmark::Proven, renews && forgot && is.line(client).reply.is_grant());
        }
        _ => {}
    }
}
