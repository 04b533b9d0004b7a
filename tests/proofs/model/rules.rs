//! What the model follows: the protocol's rules, a rule broken on purpose, and how far it goes.

use crate::model::state::MOST_CLIENTS;

/// The rules that a model follows. Times are in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// How long a voter keeps a vote that nobody renews.
    pub(crate) lease: u8,
    /// How much sooner a voter may take the lease for over; trust ends by that much earlier.
    pub(crate) drift: u8,
    /// The restart rule: for how long a voter that came back empty is in quarantine and does not
    /// count towards a new hold. Zero switches the rule off.
    pub(crate) quarantine: u8,
    pub(crate) renewal_counts: RenewalCounts,
    pub(crate) broken: Option<Broken>,
    pub(crate) bounds: Bounds,
}

/// Whether the vote of a voter in quarantine counts when a standing hold renews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RenewalCounts {
    /// For every hold.
    Always,
    /// For a hold that has heard of this voter's vote before, if only in its quarantine.
    IfItHeardOfTheVote,
    /// For a hold that had this voter's vote before, as the client knows by its own clock: then
    /// the voter cannot have given it to anybody else before it forgot.
    IfItHadTheVote,
    Never,
}

/// A rule that is left out or done wrong, to see that the model finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A majority is counted of those that answered instead of all.
    MajorityOfTheAnswered,
    /// Validity counts from the last reply instead of the first request.
    TrustFromTheReply,
    /// Validity is the whole lease.
    NoDrift,
    /// A renewal counts although the hold was lost before its majority came.
    RenewalAfterTheDeadline,
    /// A lost attempt is undone only at voters that are known to have granted.
    UndoOnlyWhereKnown,
    /// A lost attempt is undone only once, also where the connection breaks.
    UndoNotRepeated,
    /// A release takes away whatever vote it finds.
    ReleaseOfAnybody,
    /// A client calls all its holds by the same number.
    NumbersReused,
    /// A renewal takes the vote also where another hold has it.
    RenewalTakesOver,
}

/// How much of everything may happen on one path. Time itself has no bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// How often each client may ask. There are as many clients as there are numbers above zero.
    pub(crate) attempts: [u8; MOST_CLIENTS],
    /// Only so many of the clients renew, and have connections that break. Where that happens once
    /// and the clients are alike, one to whom it happens is as good as two.
    pub(crate) busy: u8,
    pub(crate) budget: Budget,
}

/// What all clients together may still do, and what may still break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Budget {
    /// Rounds of renewal.
    pub(crate) renewals: u8,
    /// Times that the leader of a split asks the others again.
    pub(crate) rounds: u8,
    /// Connections that break; what was under way on them is lost or arrives late.
    pub(crate) cuts: u8,
    /// Voters that restart with their data.
    pub(crate) restarts: u8,
    /// Voters that restart without.
    pub(crate) amnesias: u8,
    /// Clients that die and start again.
    pub(crate) deaths: u8,
}

impl Bounds {
    /// Clients that ask so often, and nothing else.
    pub(crate) const fn of(attempts: [u8; MOST_CLIENTS]) -> Self {
        Self { attempts, busy: 1, budget: Budget::NONE }
    }

    pub(crate) const fn with(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    pub(crate) const fn busy(self, busy: u8) -> Self {
        Self { busy, ..self }
    }
}

impl Budget {
    pub(crate) const NONE: Self =
        Self { renewals: 0, rounds: 0, cuts: 0, restarts: 0, amnesias: 0, deaths: 0 };
}

impl Rules {
    /// The protocol, with the restart rule.
    pub(crate) fn kept(bounds: Bounds) -> Self {
        let lease = 3;
        let renewal_counts = RenewalCounts::IfItHadTheVote;
        Self { lease, drift: 1, quarantine: lease, renewal_counts, broken: None, bounds }
    }

    pub(crate) fn broken(broken: Broken, bounds: Bounds) -> Self {
        Self { broken: Some(broken), ..Self::kept(bounds) }
    }

    pub(crate) fn breaks(&self, rule: Broken) -> bool {
        self.broken == Some(rule)
    }

    /// With another lease, and a quarantine as long.
    pub(crate) fn lease(self, lease: u8, drift: u8) -> Self {
        Self { lease, drift, quarantine: lease, ..self }
    }

    /// For how long a hold may be trusted, counted from before its first request.
    pub(crate) fn validity(&self) -> u8 {
        if self.breaks(Broken::NoDrift) { self.lease } else { self.lease - self.drift }
    }

    pub(crate) fn clients(&self) -> std::ops::Range<u8> {
        0..self.bounds.attempts.iter().map(|attempts| u8::from(*attempts > 0)).sum()
    }
}
