//! What stands between the coordinator and a voter.

mod by_hash;
mod cluster;
mod contract;
mod debts;
#[cfg(feature = "embedded")]
pub mod embedded;
mod lanes;
mod mailbox;
mod pauses;
mod reach;
mod request;
mod single;
mod standings;
mod voter;
mod voter_ask;
mod voter_reply;

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
pub(crate) use voter::{Seen, Voter};
pub(crate) use voter_reply::VoterReply;
