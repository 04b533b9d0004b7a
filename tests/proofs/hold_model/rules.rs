//! What the model follows: the protocol's rules, a rule broken on purpose, and how far it goes.

use std::ops::Range;

use crate::{
    change::{Change, Sets},
    hold_model::state::{MOST_CLIENTS, VOTERS},
};
use quorate::proto::Quorum;

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
    pub(crate) clock: Clock,
    /// How many numbers a hold has, of which the last is its token on the voters. Tasks of its
    /// client may have it one after the other, each with one of them.
    pub(crate) block: u8,
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
    /// A rule of the library, by the name of the mutant that stands beside it.
    Mutant(&'static str),
    /// Validity counts from the last reply instead of the first request.
    TrustFromTheReply,
    /// A renewal counts although the hold was lost before its majority came.
    RenewalAfterTheDeadline,
    /// A lost attempt is undone only once, also where the connection breaks.
    UndoNotRepeated,
    /// A release takes away whatever vote it finds.
    ReleaseOfAnybody,
    /// A client calls all its holds by the same number.
    NumbersReused,
    /// A renewal takes the vote also where another hold has it.
    RenewalTakesOver,
    /// The token is the highest that was answered, and held at once.
    NoWriteBack,
    /// Held at once, and the counters are raised meanwhile.
    WriteBackNotAwaited,
    /// The token is stored only at voters that have not granted.
    RaisedElsewhere,
    /// A renewal raises the counter also where another hold has the vote, and that counts.
    RaisedUnderAnother,
    /// A voter counts one further for each hold, though a hold has several numbers.
    BlocksOverlap,
    /// A voter in quarantine counts for every renewal.
    AnyRenewalCounts,
    /// A vote whose lease ended in the tick in which the voter forgot is a proof as well.
    ProofToTheLastTick,
    /// A vote that was given in quarantine counts if it is heard after it.
    JudgedWhenHeard,
    /// A client goes from the old voters to the new ones at once.
    StepSkipped,
}

/// How much of everything may happen on one path. Time itself has no bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// How often each client may ask. There are as many clients as there are numbers above zero.
    pub(crate) attempts: [u8; MOST_CLIENTS],
    /// Only so many of the clients renew, and have connections that break. Where that happens once
    /// and the clients are alike, one to whom it happens is as good as two.
    pub(crate) busy: u8,
    pub(crate) start: Start,
    /// The voters are changed.
    pub(crate) change: Option<Change>,
    /// The sets that clients have at first, and in the end.
    pub(crate) steps: (Sets, Sets),
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

impl Clock {
    /// The counters do all the work.
    pub(crate) const STANDS: Self = Self { floors: [0; MOST_CLIENTS], step: 0 };
}

impl Bounds {
    /// Clients that ask so often, and nothing else.
    pub(crate) const fn of(attempts: [u8; MOST_CLIENTS]) -> Self {
        let start = Start::Free([0; VOTERS]);
        let budget = Budget::NONE;
        let (change, steps) = (None, (Sets::All, Sets::All));
        Self { attempts, busy: 1, start, change, steps, fenced: false, patient: false, budget }
    }

    pub(crate) const fn with(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    pub(crate) const fn busy(self, busy: u8) -> Self {
        Self { busy, ..self }
    }

    pub(crate) const fn from(self, start: Start) -> Self {
        Self { start, ..self }
    }

    /// With tokens, and these counters.
    pub(crate) const fn fenced(self, counters: [u8; VOTERS]) -> Self {
        Self { start: Start::Free(counters), fenced: true, ..self }
    }

    /// Through all three steps.
    pub(crate) const fn changing(self, change: Change) -> Self {
        Self { change: Some(change), steps: (Sets::Old, Sets::New), ..self }
    }

    pub(crate) const fn patient(self) -> Self {
        Self { patient: true, ..self }
    }
}

impl Budget {
    pub(crate) const NONE: Self =
        Self { renewals: 0, rounds: 0, cuts: 0, restarts: 0, amnesias: 0, deaths: 0 };
}

impl Rules {
    /// The protocol, with the restart rule.
    pub(crate) fn kept(bounds: Bounds) -> Self {
        let (lease, clock, broken) = (3, Clock::STANDS, None);
        Self { lease, drift: 1, quarantine: lease, clock, block: 1, broken, bounds }
    }

    /// With another lease, and a quarantine as long.
    pub(crate) fn lease(self, lease: u8, drift: u8) -> Self {
        Self { lease, drift, quarantine: lease, ..self }
    }

    pub(crate) fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    pub(crate) fn blocks(self, block: u8) -> Self {
        Self { block, ..self }
    }

    pub(crate) fn breaking(self, rule: Broken) -> Self {
        Self { broken: Some(rule), ..self }
    }

    /// With a bug of the library alive.
    #[cfg(quorate_mutants)]
    pub(crate) fn mutant(self, name: &'static str) -> Self {
        self.breaking(Broken::Mutant(name))
    }

    pub(crate) fn breaks(&self, rule: Broken) -> bool {
        self.broken == Some(rule)
    }

    /// Whether anything can depend on a grant that does not count: only where that rule is broken.
    pub(crate) fn hears_what_does_not_count(&self) -> bool {
        let proves = Broken::Mutant("grant_in_quarantine_is_proof");
        self.breaks(Broken::JudgedWhenHeard) || self.breaks(proves)
    }

    pub(crate) fn floor(&self, client: u8) -> u8 {
        let first = self.clock.floors[usize::from(client)];
        let last = if first > 0 { first + self.block - 1 } else { first };
        if self.bounds.fenced { last } else { 0 }
    }

    pub(crate) fn clients(&self) -> Range<u8> {
        0..self.bounds.attempts.iter().map(|attempts| u8::from(*attempts > 0)).sum()
    }

    pub(crate) fn voters_of(&self, sets: Sets) -> Range<usize> {
        self.bounds.change.map_or(0..VOTERS, |change| change.voters_of(sets))
    }

    pub(crate) fn quorum_of(&self, sets: Sets) -> Quorum {
        self.bounds.change.map_or_else(|| Quorum::of(VOTERS), |change| change.quorum_of(sets))
    }

    pub(crate) fn are_alike(&self, one: usize, other: usize) -> bool {
        self.bounds.change.is_none_or(|change| change.are_alike(one, other))
    }
}
