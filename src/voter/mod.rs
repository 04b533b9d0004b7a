//! What stands between the coordinator and a voter.

mod by_hash;
mod cluster;
mod contract;
mod debts;
mod lanes;
mod mailbox;
mod pauses;
mod reach;
mod request;
mod single;
mod standings;
mod task;

pub(crate) use cluster::{ClusterNode, Seat, Topology};
pub(crate) use contract::{
    Answers, Birth, Call, Ear, Identity, KeySearch, KeysFound, Memory, Node, ONLY, Outcome,
    Requests, Stamp,
};
pub(crate) use mailbox::{LateEar, Replies, ReplyTo};
pub(crate) use pauses::needs_an_operator;
pub(crate) use request::Request;
pub use single::Credentials;
#[cfg(feature = "tls")]
pub use single::Tls;
pub(crate) use single::{Address, Looks, Provider, Security, SingleNode};
pub(crate) use standings::{Cast, Standings};
pub(crate) use task::VoterReply;
pub(crate) use task::{Seen, Voter};
