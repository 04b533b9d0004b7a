//! The voters of a client: as the user names them, and as they are once their addresses are read.

use std::{slice, sync::Arc};

#[cfg(feature = "embedded")]
use crate::embedded::EmbeddedVoter;
use crate::{
    clock::Clock,
    proto::{Error, Quorum},
    settings::Settings,
    voter::{
        Access, Address, ClusterNode, Looks, Node, Security, SingleNode, Topology, VoterEvents,
    },
};

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
    sources: Vec<Source>,
}

impl VoterSet {
    /// A set without voters, to which they are added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server.
    pub fn voter(mut self, address: impl Into<Address>) -> Self {
        self.sources.push(Source::Address(address.into()));
        self
    }

    /// Adds servers.
    pub fn voters<A: Into<Address>>(self, addresses: impl IntoIterator<Item = A>) -> Self {
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

impl<A: Into<Address>, const N: usize> From<[A; N]> for VoterSet {
    fn from(addresses: [A; N]) -> Self {
        Self::new().voters(addresses)
    }
}

impl<A: Clone + Into<Address>> From<&[A]> for VoterSet {
    fn from(addresses: &[A]) -> Self {
        Self::new().voters(addresses.iter().cloned())
    }
}

impl<A: Into<Address>> From<Vec<A>> for VoterSet {
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
    seeds: Vec<Address>,
    /// How many votes it casts.
    voters: u16,
    shared: SharedPrimaries,
}

impl Cluster {
    /// The most voters that one may have.
    const MOST: u16 = 15;

    /// The cluster of these servers. It is found if one of them answers, so name several. All
    /// servers of the cluster are logged in to as the first of these.
    pub fn new<A: Into<Address>>(addresses: impl IntoIterator<Item = A>) -> Self {
        let seeds = addresses.into_iter().map(Into::into).collect();
        Self { seeds, voters: 1, shared: SharedPrimaries::default() }
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
    fn origins(&self, seeds: Vec<Access>, again: bool) -> Result<Vec<Origin>, Error> {
        let Some(first) = seeds.first() else {
            return Err(Error::invalid("a cluster has no address"));
        };
        if let Some(other) = seeds.iter().find(|seed| !seed.is_of_a_cluster()) {
            return Err(Error::invalid(format!("{} is no server of a cluster", other.label())));
        }
        let (voters, most) = (self.voters, Self::MOST);
        if !(1..=most).contains(&voters) {
            return Err(Error::invalid(format!("a cluster casts 1 to {most} votes, not {voters}")));
        }
        let label = |voter| match voters {
            1 => format!("cluster@{}", first.label()).into(),
            _ if again => format!("cluster-{voter}-of-{voters}@{}", first.label()).into(),
            _ => format!("cluster-{voter}@{}", first.label()).into(),
        };
        let labels: Arc<[Arc<str>]> = (0..voters).map(label).collect();
        let may_share = self.shared == SharedPrimaries::Allow;
        let topology = Topology::new(seeds);
        let origin = |voter: u16| {
            let (label, labels) = (Arc::clone(&labels[usize::from(voter)]), Arc::clone(&labels));
            let topology = Arc::clone(&topology);
            Origin::server(label, true, move |listener, looks| {
                ClusterNode::start(
                    &topology,
                    voter,
                    Arc::clone(&labels),
                    may_share,
                    looks,
                    listener,
                )
            })
        };
        Ok((0..voters).map(origin).collect())
    }
}

/// Where voters are.
#[derive(Clone, Debug)]
enum Source {
    Address(Address),
    Cluster(Cluster),
    #[cfg(feature = "embedded")]
    Embedded(EmbeddedVoter),
}

/// A source whose addresses could be read.
struct ReadSource<'a> {
    source: &'a Source,
    servers: Vec<Access>,
}

impl<'a> ReadSource<'a> {
    fn read(source: &'a Source, security: &Security) -> Result<Self, Error> {
        let addresses: &[Address] = match source {
            Source::Address(address) => slice::from_ref(address),
            Source::Cluster(cluster) => &cluster.seeds,
            #[cfg(feature = "embedded")]
            Source::Embedded(_) => &[],
        };
        let servers = addresses.iter().map(|address| Access::new(address, security));
        Ok(Self { source, servers: servers.collect::<Result<_, _>>()? })
    }

    /// Its voters. `again`: another source has voters of the same cluster.
    fn origins(&self, again: bool) -> Result<Vec<Origin>, Error> {
        Ok(match self.source {
            Source::Cluster(cluster) => cluster.origins(self.servers.clone(), again)?,
            Source::Address(_) => self.servers.iter().map(Origin::single).collect(),
            #[cfg(feature = "embedded")]
            Source::Embedded(voter) => vec![Origin::embedded(voter.clone())],
        })
    }

    /// Whether both name the same voters. Servers are the same where they are written alike, but
    /// for the login; clusters where they have an address in common and as many votes.
    fn is_same(&self, other: &Self) -> bool {
        match (self.source, other.source) {
            (Source::Address(_), Source::Address(_)) => self.shares_a_server(other),
            (Source::Cluster(one), Source::Cluster(also)) => {
                one.voters == also.voters && self.shares_a_server(other)
            }
            #[cfg(feature = "embedded")]
            (Source::Embedded(one), Source::Embedded(also)) => one.is_same(also),
            _ => false,
        }
    }

    /// Whether both are votes of one cluster, as far as the addresses say.
    fn is_of_one_cluster(&self, other: &Self) -> bool {
        let sources = (self.source, other.source);
        matches!(sources, (Source::Cluster(_), Source::Cluster(_))) && self.shares_a_server(other)
    }

    fn shares_a_server(&self, other: &Self) -> bool {
        let is_known = |one: &Access| other.servers.iter().any(|also| one.label() == also.label());
        self.servers.iter().any(is_known)
    }
}

/// A voter whose address was checked.
pub(super) struct Origin {
    pub(super) label: Arc<str>,
    pub(super) is_inside: bool,
    pub(super) is_of_a_cluster: bool,
    pub(super) start: Box<Start>,
}

type Start = dyn Fn(Arc<dyn VoterEvents>, &Clock, &Settings) -> Arc<dyn Node> + Send;

impl Origin {
    fn server(
        label: Arc<str>,
        is_of_a_cluster: bool,
        start: impl Fn(Arc<dyn VoterEvents>, Looks) -> Arc<dyn Node> + Send + 'static,
    ) -> Self {
        let start = move |listener, _: &Clock, settings: &Settings| {
            let Settings { replica_acks: acks, may_evict, ref keys, .. } = *settings;
            start(
                listener,
                Looks {
                    acks,
                    fingerprint: Some(keys.fingerprint()),
                    may_evict,
                    ..Looks::default()
                },
            )
        };
        Self { label, is_inside: false, is_of_a_cluster, start: Box::new(start) }
    }

    fn single(server: &Access) -> Self {
        let (label, server) = (Arc::clone(server.label()), server.clone());
        Self::server(label, false, move |listener, looks| {
            SingleNode::start(&server, listener, looks)
        })
    }

    #[cfg(feature = "embedded")]
    fn embedded(voter: EmbeddedVoter) -> Self {
        let label = voter.label().into();
        let start =
            move |listener, clock: &Clock, _: &Settings| voter.connect(listener, clock.clone());
        Self { label, is_inside: true, is_of_a_cluster: false, start: Box::new(start) }
    }
}

/// The voters of a client, and how their votes are counted.
pub(super) struct ConfiguredVoters {
    pub(super) origins: Vec<Origin>,
    pub(super) quorum: Quorum,
    /// A number for each voter, the same for all that are parts of one cluster.
    pub(super) clusters: Vec<usize>,
}

impl ConfiguredVoters {
    /// Reads the addresses. What is in both of two sets is one voter.
    pub(super) fn check(
        new: &VoterSet,
        old: Option<&VoterSet>,
        security: &Security,
    ) -> Result<Self, Error> {
        if new.sources.is_empty() {
            return Err(Error::invalid("there are no voters"));
        }
        if old.is_some_and(|old| old.sources.is_empty()) {
            return Err(Error::invalid("there are no voters to replace"));
        }
        let mut only_new = read(new, "address", security)?;
        let replaced = old.map(|old| read(old, "replaced address", security)).transpose()?;
        let (mut both, mut only_old) = (Vec::new(), Vec::new());
        for source in replaced.into_iter().flatten() {
            match only_new.iter().position(|known| known.is_same(&source)) {
                Some(at) => both.push(only_new.remove(at)),
                None => only_old.push(source),
            }
        }
        let sets = [only_new, both, only_old];
        #[cfg(feature = "tls")]
        if security.tls.is_some()
            && !sets.iter().flatten().flat_map(|source| &source.servers).any(Access::has_tls)
        {
            return Err(Error::invalid("TLS is set up, but no address asks for it: `rediss://`"));
        }
        let (mut origins, mut clusters, mut counts) = (Vec::new(), Vec::new(), [0; 3]);
        // Of each source before the number of its cluster.
        let mut numbered: Vec<(&ReadSource<'_>, usize)> = Vec::new();
        let all = sets.iter().enumerate();
        for (set, source) in all.flat_map(|(set, sources)| sources.iter().map(move |it| (set, it)))
        {
            let known = numbered.iter().rfind(|(before, _)| before.is_of_one_cluster(source));
            let number = known.map_or(origins.len(), |(_, number)| *number);
            numbered.push((source, number));
            let voters = source.origins(number < origins.len())?;
            counts[set] += voters.len();
            clusters.extend(voters.iter().map(|_| number));
            origins.extend(voters);
        }
        let quorum = match (old, counts) {
            (None, [all, ..]) => Quorum::of(all),
            (Some(_), [only_new, both, only_old]) => Quorum::joint(only_new, both, only_old),
        };
        Ok(Self { origins, quorum, clusters })
    }
}

/// Reads all addresses of a set. Messages do not show an address in which a password may be, so
/// they say which one it is.
fn read<'a>(
    set: &'a VoterSet,
    what: &str,
    security: &Security,
) -> Result<Vec<ReadSource<'a>>, Error> {
    let read = |(at, source): (usize, &'a Source)| {
        ReadSource::read(source, security).map_err(|why| match (source, set.sources.len()) {
            (Source::Address(_), 2..) => Error::invalid(format!("{what} {}: {why}", at + 1)),
            _ => why,
        })
    };
    set.sources.iter().enumerate().map(read).collect()
}
