//! Every decision of the protocol, and the types that all folders share: plain functions and
//! machines. No I/O, no runtime, no clock: `now` and chance are arguments. The laws that comments
//! name by number are those of `docs/protocol.md`.

mod attempt;
mod backoff;
mod bid;
mod census;
mod checkup;
mod client_name;
mod clocks;
mod denial;
mod error;
mod floor;
mod found_lock;
mod grant;
mod ids;
mod leader;
mod lease;
mod limit;
mod majorities;
mod moment;
mod name;
mod owner;
mod quarantine;
mod quorum;
mod report;
mod roster;
mod round_trips;
mod rounded;
#[cfg(feature = "serde")]
mod serial;
mod server_info;
mod several;
mod slot_votes;
mod slots;
mod standing;
mod support;
mod taker;
mod tenure;
mod ticket;
mod token;
mod tokens;
mod validity;
mod verdict;
mod votes;
mod wait;
mod watch;

#[cfg(quorate_mutants)]
pub use crate::mutant::{rewrite, wake};
pub use attempt::{Attempt, Next, Rules};
pub use backoff::Backoff;
pub use bid::{Bid, BidNext, Until};
pub use census::{Census, Sight, WhoLeads};
pub use checkup::Checkup;
pub use client_name::ClientName;
pub use clocks::Stamp;
pub use denial::{Denial, Outage, Refusal};
pub(crate) use error::CLOSED;
pub use error::{Error, ErrorKind, Kind};
pub use floor::Floors;
pub use found_lock::{FoundLock, LockKind};
pub use grant::{FixedSlots, Grant, GrantNext, Granted, Vote};
pub use ids::{ClientId, HoldId, HoldIds};
pub use leader::{Incumbent, Leader, LeaderValue, Proclaimed};
pub use lease::{Duty, HoldLimit, Lease, Round, RoundEnd, RoundNext};
pub use limit::{Limit, Window};
pub use majorities::{Majorities, Side};
pub use moment::Moment;
#[cfg(test)]
pub(crate) use moment::at;
pub use name::LockName;
pub use owner::Owner;
pub use quarantine::{Quarantine, Quarantined, RestartGuard};
pub use quorum::Quorum;
pub use report::{Listed, Sided, VoterReport};
pub use roster::{Belief, RosterEntry};
pub use round_trips::RoundTrips;
pub use rounded::Rounded;
#[cfg(feature = "serde")]
pub(crate) use serial::{
    durability, error_of, micros, micros_if, millis, millis_if, or_error, texts,
};
pub use server_info::{ClockOffset, Persistence, ServerInfo, ServerReport};
pub use several::{Several, SeveralNext};
pub use slot_votes::{Circle, SlotNext, SlotVotes};
pub use slots::Slots;
pub use standing::{Birth, Data, KeptOut, Place, Register, Shown, Suspicion};
pub use support::{Asked, RoundId, Support};
pub use taker::{HolderKind, Taker};
pub use tenure::Tenure;
pub use ticket::Ticket;
pub use token::Token;
pub use tokens::Tokens;
pub use validity::{Drift, Terms};
pub use verdict::{Cause, Verdict};
pub use votes::{Loss, Votes};
pub use wait::{Defeat, Wait, WaitNext, Wake};
pub use watch::{LeaderWatch, WatchNext};
