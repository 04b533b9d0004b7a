//! Every decision of the protocol: plain functions and machines. No I/O, no runtime, no clock, no
//! random source: `now` and chance are arguments.

mod attempt;
mod backoff;
mod bid;
mod census;
mod clocks;
mod denial;
mod floor;
mod lease;
mod limit;
mod nanos;
mod pause;
mod quorum;
mod round_trips;
mod several;
mod slots;
mod standing;
mod support;
mod ticket;
mod token;
mod validity;
mod votes;
mod wait;
mod watch;

pub(crate) use attempt::{Attempt, Next, Rules};
pub(crate) use backoff::Backoff;
pub(crate) use bid::{Bid, BidNext, Until};
pub(crate) use census::{Census, Sight, WhoLeads};
pub(crate) use clocks::Stamp;
pub(crate) use denial::{Denial, Outage, Refusal};
pub(crate) use floor::Floors;
pub(crate) use lease::{Duty, Lease, Round, RoundEnd, RoundNext};
pub(crate) use limit::{Limit, Window};
pub(crate) use quorum::Quorum;
pub(crate) use round_trips::RoundTrips;
pub(crate) use several::{Several, SeveralNext};
pub(crate) use slots::{Circle, SlotNext, SlotVotes};
pub(crate) use standing::{Birth, KeptOut, Place, Register, Shown, Suspicion};
pub(crate) use support::{Asked, RoundId, Support};
pub(crate) use ticket::Ticket;
pub(crate) use token::Tokens;
pub(crate) use validity::{Drift, Terms};
pub(crate) use votes::{Loss, Votes};
pub(crate) use wait::{Defeat, Wait, WaitNext, Wake, WhileHeld};
pub(crate) use watch::{LeaderWatch, WatchNext};
