//! The voters of a client: as the user names them, and as they are started.

use std::{slice, sync::Arc};

#[cfg(feature = "embedded")]
use crate::embedded::EmbeddedVoter;
use crate::{
    clock::Clock,
    proto::{Error, Quorum},
    settings::Settings,
    voter::{
        Access, Address, ClusterNode, InspectionSettings, Node, Security, SingleNode, Topology,
        VoterEvents, VoterLayout,
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

/// What to do if two voters of a cluster have one primary, and so fail together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedPrimaries {
    /// [`connect`](crate::Builder::connect) fails if this concerns half of all locks or more. If it
    /// concerns fewer, or begins later, one of the two voters has no vote for these locks, and an
    /// error is logged.
    #[default]
    Refuse,
    /// A warning is logged, and both vote.
    Allow,
}

/// A Redis Cluster, whose slots cast one vote or several.
///
/// With one voter, a lock is in one slot on one primary, as any other key. With several voters, it
/// is in as many slots, each in another part of the cluster, and a majority of their primaries
/// decides. The cluster needs at least as many primaries as voters, with about as many slots each.
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
    voters: u16,
    shared: SharedPrimaries,
}

impl Cluster {
    const MOST: u16 = 15;

    /// The cluster of these servers. One that answers is enough to find it, so name several. The
    /// login of the first address is used for all servers of the cluster.
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

    /// `again`: the other set has this cluster with another number of voters.
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
        // Voter 1 of 3 and voter 1 of 5 have different slots, so they need different labels in
        // errors and metrics.
        let label = |voter| match voters {
            1 => format!("cluster@{}", first.label()).into(),
            _ if again => format!("cluster-{voter}-of-{voters}@{}", first.label()).into(),
            _ => format!("cluster-{voter}@{}", first.label()).into(),
        };
        let labels: Arc<[Arc<str>]> = (0..voters).map(label).collect();
        let may_share = self.shared == SharedPrimaries::Allow;
        // One map of the slots for all voters of the cluster: they see a failover at the same time,
        // and the servers are asked once.
        let topology = Topology::new(seeds);
        let origin = |voter: u16| {
            let (label, labels) = (Arc::clone(&labels[usize::from(voter)]), Arc::clone(&labels));
            let topology = Arc::clone(&topology);
            let start = move |listener, _: &Clock, settings: &Settings| -> Arc<dyn Node> {
                let (labels, looks) = (Arc::clone(&labels), looks(settings));
                ClusterNode::start(&topology, voter, labels, may_share, looks, listener)
            };
            Origin { label, is_inside: false, is_of_a_cluster: true, start: Box::new(start) }
        };
        Ok((0..voters).map(origin).collect())
    }
}

/// One or several voters, as the user names them.
#[derive(Clone, Debug)]
enum Source {
    Address(Address),
    Cluster(Cluster),
    #[cfg(feature = "embedded")]
    Embedded(EmbeddedVoter),
}

/// A source with its addresses as they were read.
// Read once: a comparison of two sources cannot fail on an address.
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

    /// `again`: another source has voters of the same cluster.
    fn origins(&self, again: bool) -> Result<Vec<Origin>, Error> {
        Ok(match self.source {
            Source::Cluster(cluster) => cluster.origins(self.servers.clone(), again)?,
            Source::Address(_) => self.servers.iter().map(Origin::single).collect(),
            #[cfg(feature = "embedded")]
            Source::Embedded(voter) => vec![Origin::embedded(voter.clone())],
        })
    }

    /// Whether both name the same voters: by the text of the address, without the login.
    fn is_same(&self, other: &Self) -> bool {
        match (self.source, other.source) {
            (Source::Address(_), Source::Address(_)) => self.shares_a_server(other),
            // With another number of voters a lock is in other slots, so these are other votes.
            (Source::Cluster(one), Source::Cluster(also)) => {
                one.voters == also.voters && self.shares_a_server(other)
            }
            #[cfg(feature = "embedded")]
            (Source::Embedded(one), Source::Embedded(also)) => one.is_same(also),
            _ => false,
        }
    }

    /// Whether both name voters of one cluster, as far as the addresses say.
    fn is_of_one_cluster(&self, other: &Self) -> bool {
        let sources = (self.source, other.source);
        matches!(sources, (Source::Cluster(_), Source::Cluster(_))) && self.shares_a_server(other)
    }

    fn shares_a_server(&self, other: &Self) -> bool {
        let has = |one: &Access| other.servers.iter().any(|also| one.label() == also.label());
        self.servers.iter().any(has)
    }
}

/// A voter that can be started.
pub(super) struct Origin {
    pub(super) label: Arc<str>,
    pub(super) is_inside: bool,
    pub(super) is_of_a_cluster: bool,
    pub(super) start: Box<Start>,
}

type Start = dyn Fn(Arc<dyn VoterEvents>, &Clock, &Settings) -> Arc<dyn Node> + Send;

impl Origin {
    fn single(server: &Access) -> Self {
        let (label, server) = (Arc::clone(server.label()), server.clone());
        let start = move |listener, _: &Clock, settings: &Settings| -> Arc<dyn Node> {
            SingleNode::start(&server, listener, looks(settings))
        };
        Self { label, is_inside: false, is_of_a_cluster: false, start: Box::new(start) }
    }

    #[cfg(feature = "embedded")]
    fn embedded(voter: EmbeddedVoter) -> Self {
        let label = voter.label().into();
        let start =
            move |listener, clock: &Clock, _: &Settings| voter.connect(listener, clock.clone());
        Self { label, is_inside: true, is_of_a_cluster: false, start: Box::new(start) }
    }
}

fn looks(settings: &Settings) -> InspectionSettings {
    let Settings { replica_acks: acks, may_evict, ref keys, .. } = *settings;
    InspectionSettings {
        acks,
        fingerprint: Some(keys.fingerprint()),
        may_evict,
        ..InspectionSettings::default()
    }
}

/// The voters of a client, and how their votes are counted. What is in both sets is one voter.
pub(super) fn read_voters(
    new: &VoterSet,
    old: Option<&VoterSet>,
    security: &Security,
) -> Result<(Vec<Origin>, VoterLayout), Error> {
    if new.sources.is_empty() {
        return Err(Error::invalid("there are no voters"));
    }
    if old.is_some_and(|old| old.sources.is_empty()) {
        return Err(Error::invalid("there are no voters to replace"));
    }
    let mut only_new = read_set(new, "address", security)?;
    let replaced = old.map(|old| read_set(old, "replaced address", security)).transpose()?;
    let (mut both, mut only_old) = (Vec::new(), Vec::new());
    for source in replaced.into_iter().flatten() {
        match only_new.iter().position(|new| new.is_same(&source)) {
            Some(at) => both.push(only_new.remove(at)),
            None => only_old.push(source),
        }
    }
    // In this order: a joint quorum takes each set for a range of the list of voters.
    let sets = [only_new, both, only_old];
    #[cfg(feature = "tls")]
    if security.tls.is_some()
        && !sets.iter().flatten().flat_map(|source| &source.servers).any(Access::has_tls)
    {
        // A user who sets up TLS believes that the connections are encrypted.
        return Err(Error::invalid("TLS is set up, but no address asks for it: `rediss://`"));
    }
    let (mut origins, mut clusters, mut counts) = (Vec::new(), Vec::new(), [0; 3]);
    // The sources so far, each with the number of its cluster.
    let mut numbered: Vec<(&ReadSource<'_>, usize)> = Vec::new();
    let all = sets.iter().enumerate();
    for (set, source) in all.flat_map(|(set, sources)| sources.iter().map(move |it| (set, it))) {
        let before = numbered.iter().rfind(|(before, _)| before.is_of_one_cluster(source));
        let number = before.map_or(origins.len(), |(_, number)| *number);
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
    let labels = origins.iter().map(|origin: &Origin| Arc::clone(&origin.label)).collect();
    let spread = origins.iter().map(|origin| origin.is_of_a_cluster).collect();
    Ok((origins, VoterLayout { labels, clusters, spread, quorum }))
}

/// Reads all addresses of a set.
fn read_set<'a>(
    set: &'a VoterSet,
    what: &str,
    security: &Security,
) -> Result<Vec<ReadSource<'a>>, Error> {
    // An address is never shown, as a password may be in it: so the message has its number.
    let read = |(at, source): (usize, &'a Source)| {
        ReadSource::read(source, security).map_err(|why| match (source, set.sources.len()) {
            (Source::Address(_), 2..) => Error::invalid(format!("{what} {}: {why}", at + 1)),
            _ => why,
        })
    };
    set.sources.iter().enumerate().map(read).collect()
}
