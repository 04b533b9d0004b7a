//! Voters that a Redis Cluster has.

use std::sync::Arc;

use super::reach::{Secret, looks};
use crate::{
    proto::Error,
    settings::Settings,
    voter::{Address, ClusterNode, Ear, Node, Seat, Topology},
};

/// What to do where two voters of a cluster have one primary, and so fail together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedPrimaries {
    /// [`connect`](crate::Builder::connect) fails where it is so for half of all locks or more.
    /// Where it is so for fewer, or comes about later, one of the two has no vote for the locks
    /// that it concerns, and an error is logged.
    #[default]
    Refuse,
    /// A warning is logged, and both vote.
    Allow,
}

/// A Redis Cluster, whose slots cast one vote or several.
///
/// With one voter a lock lives in one slot, as any other key, on one primary. With several it lives
/// in as many slots, each in another part of the cluster, and a majority of their primaries decides
/// about it. That takes at least as many primaries as voters, with about equal numbers of slots.
///
/// ```no_run
/// # async fn connect() -> Result<(), quorate::Error> {
/// use std::time::Duration;
///
/// use quorate::{Cluster, Quorate};
///
/// let cluster = Cluster::new(["redis://10.0.0.1:7000", "redis://10.0.0.2:7000"]).voters(3);
/// let builder = Quorate::builder().cluster(cluster).lease(Duration::from_secs(10));
/// let quorum = builder.connect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it does nothing until a builder has it"]
pub struct Cluster {
    pub(super) seeds: Vec<Secret>,
    /// How many votes it casts.
    pub(super) voters: u16,
    shared: SharedPrimaries,
}

impl Cluster {
    /// The most voters that one may have.
    const MOST: u16 = 15;

    /// The cluster of these servers; any of them will do, and more survive that one is down. All
    /// servers of the cluster are logged in to as the first of these.
    pub fn new<A: AsRef<str>>(addresses: impl IntoIterator<Item = A>) -> Self {
        let seeds = addresses.into_iter().map(|address| Secret::new(address.as_ref()));
        Self { seeds: seeds.collect(), voters: 1, shared: SharedPrimaries::default() }
    }

    /// How many votes the cluster casts: 1 to 15, default 1. All clients of its locks must say the
    /// same.
    pub fn voters(mut self, voters: u16) -> Self {
        self.voters = voters;
        self
    }

    /// Whether two voters may have one primary. Default: [`Refuse`](SharedPrimaries::Refuse).
    pub fn shared_primaries(mut self, shared: SharedPrimaries) -> Self {
        self.shared = shared;
        self
    }

    /// Starts to look at the cluster. `again`: it has other votes with another number of voters,
    /// which the labels tell apart.
    pub(super) fn parts(&self, seeds: Vec<Address>, again: bool) -> Result<Vec<Part>, Error> {
        let Some(first) = seeds.first() else {
            return Err(Error::invalid("a cluster has no address"));
        };
        if let Some(other) = seeds.iter().find(|seed| !seed.is_of_a_cluster()) {
            return Err(Error::invalid(format!("{} is no server of a cluster", other.label())));
        }
        if !(1..=Self::MOST).contains(&self.voters) {
            return Err(Error::invalid(format!(
                "a cluster casts 1 to {} votes, not {}",
                Self::MOST,
                self.voters
            )));
        }
        let label = |voter| match self.voters {
            1 => format!("cluster@{}", first.label()).into(),
            voters if again => format!("cluster-{voter}-of-{voters}@{}", first.label()).into(),
            _ => format!("cluster-{voter}@{}", first.label()).into(),
        };
        let labels: Arc<[Arc<str>]> = (0..self.voters).map(label).collect();
        let topology = Topology::start(seeds);
        let part = |voter| Part {
            topology: Arc::clone(&topology),
            seat: Seat::new(voter, self.voters),
            labels: Arc::clone(&labels),
            may_share: self.shared == SharedPrimaries::Allow,
        };
        Ok((0..self.voters).map(part).collect())
    }
}

/// One of the voters of a cluster.
pub(super) struct Part {
    topology: Arc<Topology>,
    seat: Seat,
    labels: Arc<[Arc<str>]>,
    may_share: bool,
}

impl Part {
    pub(super) fn label(&self) -> &Arc<str> {
        &self.labels[self.seat.number()]
    }

    pub(super) fn start(&self, ear: Arc<dyn Ear>, settings: &Settings) -> Arc<dyn Node> {
        let (labels, looks) = (Arc::clone(&self.labels), looks(settings));
        ClusterNode::start(&self.topology, self.seat, labels, self.may_share, looks, ear)
    }
}
