//! Every decision of the protocol, and the types that all folders share.
//!
//! These are plain functions and state machines, without I/O, runtime or clock: `now` and chance
//! are arguments. Comments name the laws of `docs/protocol.md` (law 7), the promises of
//! `docs/guarantees.md` (guarantee 4), the decisions of `docs/design.md` (design 8), and the
//! mutants of `tests/proofs/mutants/list.rs`.

mod attempt;
mod bid;
mod comparison;
mod configuration;
mod election;
mod error;
mod gathering;
mod grant;
mod hold_ticket;
mod ids;
mod lease;
mod moment;
mod once;
mod quorum;
mod release;
mod round;
mod round_trips;
#[cfg(feature = "serde")]
mod serial;
mod server_error;
mod slots;
mod survey;
mod token;
mod trust;
mod verdict;
mod votes;
mod wait;

#[cfg(quorate_mutants)]
pub use crate::mutant::{rewrite, wake};
pub use attempt::{Attempt, Rules};
pub use bid::{Bid, BidNext, Ticket};
pub use comparison::{Comparison, ConfigurationQuestion, JoinNext};
pub use configuration::{ConfigurationEntry, VoterConfiguration};
pub use election::{
    Census, Incumbent, Leader, LeaderValue, LeaderWatch, Proclaimed, Sight, WatchNext, WhoLeads,
};
pub(crate) use error::CLOSED;
pub use error::{Error, ErrorKind, HolderKind, Kind, Taker};
pub use gathering::Gathering;
pub use grant::{FixedSlots, Grant, GrantNext, Granted, Vote};
pub use hold_ticket::{HoldTicket, HoldTimeLeft};
pub use ids::{ClientId, ClientName, HoldId, HoldIds, LockName, Note, Owner};
pub use lease::{Drift, Duty, HoldLimit, Lease, Terms};
#[cfg(test)]
pub(crate) use moment::at;
pub use moment::{Backoff, Moment, Rounded};
pub use once::{Done, DoneAnswer, DoneSurvey};
pub use quorum::{Majorities, Quorum, Side};
pub use release::Release;
pub use round::{Asked, Checkup, Round, RoundEnd, Support};
pub use round_trips::RoundTrips;
#[cfg(feature = "serde")]
pub(crate) use serial::{durability, error_of, micros, millis, or_error, texts};
pub use server_error::{Permission, Reason, ServerError};
pub use slots::{SlotNext, SlotOrder, SlotVotes, Slots};
pub use survey::{ClockOffset, FoundLock, LockKind, Persistence, ServerInfo, ServerReport};
pub use token::{Floors, Tenure, Token};
pub use trust::{
    Birth, Change, Data, Gauge, Identity, Register, Shard, ShardQuarantine, Shown, Stamp,
    Suspicion, Trust, Wakes,
};
pub use verdict::{
    Cause, Listed, Quarantine, Quarantined, RestartGuard, Sided, Verdict, VoterReport,
};
pub use votes::{Defeat, Denial, Loss, Outage, Refusal, Votes};
pub use wait::{Limit, Several, SeveralNext, Wait, WaitNext, Wake};

/// What a state machine that asks the voters orders next.
// Not an action with its I/O: the models and the simulation carry these out as well (design 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<End> {
    /// Nothing before this moment, unless an answer comes.
    Wait(Moment),
    /// Ask these voters again.
    AskAgain(Vec<usize>),
    End(End),
}
