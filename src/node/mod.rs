//! What stands between the coordinator and a voter.

mod by_hash;
mod cluster;
mod contract;
mod debts;
#[cfg(feature = "embedded")]
pub mod embedded;
mod lanes;
mod pauses;
mod single;
mod standings;
mod voter;

pub(crate) use cluster::{ClusterNode, Seat, Topology};
pub(crate) use contract::{
    Answers, Birth, Call, Ear, Identity, Memory, Node, ONLY, Outcome, Request, Stamp,
};
pub(crate) use pauses::needs_an_operator;
pub use single::Credentials;
#[cfg(feature = "tls")]
pub use single::Tls;
pub(crate) use single::{Address, Looks, Provider, Security, SingleNode};
pub(crate) use standings::Standings;
pub(crate) use voter::{Seen, Voter, VoterReply};
