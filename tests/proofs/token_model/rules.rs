//! What the model follows: the protocol's rules, a rule broken on purpose, and how far it goes.

use crate::token_model::state::{MOST_CLIENTS, VOTERS};

/// The rules that a model follows. Times are in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// How long a voter keeps a vote that nobody renews, and a hold may be trusted.
    pub(crate) lease: u8,
    /// For how long a voter that came back empty does not count towards a new hold.
    pub(crate) quarantine: u8,
    pub(crate) clock: Clock,
    pub(crate) broken: Option<Broken>,
    pub(crate) bounds: Bounds,
}

/// What clients have for a floor. Without a floor all is zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// The floor of each client. Counters and tokens are told from the same mark.
    pub(crate) floors: [u8; MOST_CLIENTS],
    /// By how much each tick raises the floors: by so much it lowers everything else. What it
    /// lowers to zero is below every floor for good.
    pub(crate) step: u8,
}

/// A rule that is left out or done wrong, to see that the model finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The token is the highest that was answered, and held at once.
    NoWriteBack,
    /// Held at once, and the counters are raised meanwhile.
    WriteBackNotAwaited,
    /// The token is the lowest that was answered.
    LowestAnswer,
    /// The token is stored only at voters that have not granted.
    RaisedElsewhere,
    /// A renewal raises the counter also where another hold has the vote, and that counts.
    RaisedUnderAnother,
    /// In a renewal every voter in quarantine counts.
    EveryRenewalCounts,
    /// A vote that was given in quarantine and did not count proves that the hold had it.
    AnyVoteIsProof,
    /// A vote whose lease ended in the tick in which the voter forgot is a proof as well.
    ProofToTheLastTick,
    /// A vote that was given in quarantine counts if it is heard after it.
    JudgedWhenHeard,
}

/// How much of everything may happen on one path. Time itself has no bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// How often each client may ask. There are as many clients as there are numbers above zero.
    pub(crate) attempts: [u8; MOST_CLIENTS],
    pub(crate) start: Start,
    /// Tokens are part of it.
    pub(crate) fenced: bool,
    /// Nobody releases or gives up before its time is over: there are fewer paths to search for one
    /// on which nobody does.
    pub(crate) patient: bool,
    pub(crate) budget: Budget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Nobody has a vote, and these are the counters: the second of them in order is the highest
    /// token that was handed out.
    Free([u8; VOTERS]),
    /// The first client has just won, by the votes of so many.
    Held(usize),
}

/// What all clients together may still do, and what may still break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Budget {
    /// Rounds of renewal.
    pub(crate) renewals: u8,
    /// Times that an attempt asks those again that did not grant.
    pub(crate) rounds: u8,
    /// Connections that break; what was asked on them is lost.
    pub(crate) cuts: u8,
    /// Voters that restart without their data.
    pub(crate) amnesias: u8,
}

impl Clock {
    /// The counters do all the work.
    pub(crate) const STANDS: Self = Self { floors: [0; MOST_CLIENTS], step: 0 };
}

impl Bounds {
    pub(crate) const fn of(attempts: [u8; MOST_CLIENTS], start: Start) -> Self {
        Self { attempts, start, fenced: true, patient: false, budget: Budget::NONE }
    }

    pub(crate) const fn with(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    pub(crate) const fn patient(self) -> Self {
        Self { patient: true, ..self }
    }

    pub(crate) const fn unfenced(self) -> Self {
        Self { fenced: false, ..self }
    }
}

impl Budget {
    pub(crate) const NONE: Self = Self { renewals: 0, rounds: 0, cuts: 0, amnesias: 0 };
}

impl Rules {
    pub(crate) fn kept(bounds: Bounds) -> Self {
        Self { lease: 2, quarantine: 2, clock: Clock::STANDS, broken: None, bounds }
    }

    pub(crate) fn broken(broken: Broken, bounds: Bounds) -> Self {
        Self { broken: Some(broken), ..Self::kept(bounds) }
    }

    pub(crate) fn breaks(&self, rule: Broken) -> bool {
        self.broken == Some(rule)
    }

    /// With another lease, and a quarantine as long.
    pub(crate) fn lease(self, lease: u8) -> Self {
        Self { lease, quarantine: lease, ..self }
    }

    pub(crate) fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    pub(crate) fn clients(&self) -> std::ops::Range<u8> {
        0..self.bounds.attempts.iter().map(|attempts| u8::from(*attempts > 0)).sum()
    }
}
