//! A set of voters, as the user names it.

use super::{Cluster, source::Source};
#[cfg(feature = "embedded")]
use crate::embedded::EmbeddedVoter;

/// A set of voters: what a [`Builder`](crate::Builder) has, or what its voters
/// [replace](crate::Builder::replacing).
///
/// A list of addresses is one, and so is a [`Cluster`].
///
/// ```
/// use quorate::{Cluster, VoterSet};
///
/// let servers = VoterSet::from(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"]);
/// let cluster = VoterSet::from(Cluster::new(["redis://10.0.0.1:7000"]).voters(3));
/// let one = Cluster::new(["redis://10.0.1.1:7000"]);
/// let both = VoterSet::new().voter("redis://10.0.0.9").cluster(one);
/// # let _ = (servers, cluster, both);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "it does nothing until a builder has it"]
pub struct VoterSet {
    pub(super) sources: Vec<Source>,
}

impl VoterSet {
    /// A set without voters, to which they are added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server; see [`Quorate::connect`](crate::Quorate::connect) for addresses.
    pub fn voter(mut self, address: impl AsRef<str>) -> Self {
        self.sources.push(Source::address(address.as_ref()));
        self
    }

    /// Adds servers.
    pub fn voters<A: AsRef<str>>(self, addresses: impl IntoIterator<Item = A>) -> Self {
        addresses.into_iter().fold(self, Self::voter)
    }

    /// Adds the voters of a Redis Cluster.
    pub fn cluster(mut self, cluster: Cluster) -> Self {
        self.sources.push(Source::Cluster(cluster));
        self
    }

    /// Adds voters inside the process.
    #[cfg(feature = "embedded")]
    pub fn embedded<'a>(mut self, voters: impl IntoIterator<Item = &'a EmbeddedVoter>) -> Self {
        self.sources.extend(voters.into_iter().cloned().map(Source::Embedded));
        self
    }
}

impl<A: AsRef<str>, const N: usize> From<[A; N]> for VoterSet {
    fn from(addresses: [A; N]) -> Self {
        Self::new().voters(addresses)
    }
}

impl<A: AsRef<str>> From<&[A]> for VoterSet {
    fn from(addresses: &[A]) -> Self {
        Self::new().voters(addresses)
    }
}

impl<A: AsRef<str>> From<Vec<A>> for VoterSet {
    fn from(addresses: Vec<A>) -> Self {
        Self::new().voters(addresses)
    }
}

impl From<Cluster> for VoterSet {
    fn from(cluster: Cluster) -> Self {
        Self::new().cluster(cluster)
    }
}

#[cfg(feature = "embedded")]
impl From<&[EmbeddedVoter]> for VoterSet {
    fn from(voters: &[EmbeddedVoter]) -> Self {
        Self::new().embedded(voters)
    }
}
