//! Voters: what carries requests to a voter, and whether its answers count.

mod cluster;
mod configuration;
mod contract;
mod debts;
mod lanes;
mod mailbox;
mod pauses;
mod reporter;
mod request;
mod seat;
mod single;
mod single_flight;
mod standings;
mod task;

pub(crate) use cluster::{ClusterNode, Topology};
pub(crate) use contract::{
    Answers, Birth, Call, Identity, KeySearch, KeysFound, Node, ONLY, Outcome, Stamp, VoterEvents,
};
pub(crate) use mailbox::{LateListener, Replies, ReplyTo};
pub(crate) use request::Request;
#[cfg(feature = "tls")]
pub use single::Tls;
pub(crate) use single::{Access, InspectionSettings, Provider, Security, SingleNode, sha1_hash};
pub use single::{Address, Credentials};
pub(crate) use single_flight::SingleFlight;
pub(crate) use standings::{Standings, VoterLayout};
pub(crate) use task::{Voter, VoterReply, VoterStanding};

use crate::sync::lock;
