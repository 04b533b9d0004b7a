//! Where voters are, as the user says it and as it is after the check.

use std::{slice, sync::Arc};

use super::{
    cluster::{Cluster, Part},
    reach::{Secret, looks},
};
#[cfg(feature = "embedded")]
use crate::embedded::EmbeddedVoter;
use crate::{
    clock::Clock,
    proto::{ClientName, Error},
    settings::{ReplicaAcks, Settings},
    voter::{Address, Ear, Node, Security, Seen, SingleNode, Voter},
};

/// Where a voter is.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Kept unread, and shown nowhere: there may be a password in it.
    Address(Secret),
    Cluster(Cluster),
    #[cfg(feature = "embedded")]
    Embedded(EmbeddedVoter),
}

impl Source {
    pub(super) fn address(address: &str) -> Self {
        Self::Address(Secret::new(address))
    }

    /// The same with its addresses, if they can be read.
    pub(super) fn read(&self, security: &Security) -> Result<ReadSource<'_>, Error> {
        let written: &[Secret] = match self {
            Self::Address(address) => slice::from_ref(address),
            Self::Cluster(cluster) => &cluster.seeds,
            #[cfg(feature = "embedded")]
            Self::Embedded(_) => &[],
        };
        let addresses = written.iter().map(|address| address.read(security));
        Ok(ReadSource { source: self, addresses: addresses.collect::<Result<_, _>>()? })
    }
}

/// A source whose addresses could be read.
pub(super) struct ReadSource<'a> {
    source: &'a Source,
    addresses: Vec<Address>,
}

impl ReadSource<'_> {
    /// Its voters. `again`: another source has voters of the same cluster.
    pub(super) fn origins(&self, again: bool) -> Result<Vec<Origin>, Error> {
        let addresses = self.addresses.clone();
        Ok(match self.source {
            Source::Address(_) => addresses.into_iter().map(Origin::Single).collect(),
            Source::Cluster(cluster) => {
                cluster.parts(addresses, again)?.into_iter().map(Origin::Cluster).collect()
            }
            #[cfg(feature = "embedded")]
            Source::Embedded(voter) => vec![Origin::Embedded(voter.clone())],
        })
    }

    /// Whether both name the same voters. Servers are the same where they are written alike, but
    /// for the login; clusters where they have an address in common and as many votes.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self.source, other.source) {
            (Source::Address(_), Source::Address(_)) => self.shares_an_address(other),
            (Source::Cluster(one), Source::Cluster(also)) => {
                one.voters == also.voters && self.shares_an_address(other)
            }
            #[cfg(feature = "embedded")]
            (Source::Embedded(one), Source::Embedded(also)) => one.is_same(also),
            _ => false,
        }
    }

    /// Whether both are votes of one cluster, as far as the addresses say.
    pub(super) fn is_of_one_cluster(&self, other: &Self) -> bool {
        let sources = (self.source, other.source);
        matches!(sources, (Source::Cluster(_), Source::Cluster(_))) && self.shares_an_address(other)
    }

    fn shares_an_address(&self, other: &Self) -> bool {
        let is_known =
            |one: &Address| other.addresses.iter().any(|also| one.label() == also.label());
        self.addresses.iter().any(is_known)
    }

    #[cfg(feature = "tls")]
    pub(super) fn has_tls(&self) -> bool {
        self.addresses.iter().any(Address::has_tls)
    }
}

/// What a voter is reached by, after its address was checked.
pub(super) enum Origin {
    Single(Address),
    Cluster(Part),
    #[cfg(feature = "embedded")]
    Embedded(EmbeddedVoter),
}

/// Servers live in real time; voters inside the process in the runtime's, or in that of the machine
/// which the client was put on.
pub(super) fn clock(origins: &[Origin], asked: Option<&Clock>) -> Result<Clock, Error> {
    #[cfg(feature = "embedded")]
    if are_inside(origins) {
        return Ok(asked.cloned().unwrap_or_else(Clock::tokio));
    }
    let _ = origins;
    match asked {
        None => Ok(Clock::System),
        Some(_) => Err(Error::invalid("a client with servers cannot be put on a machine")),
    }
}

/// What the client is called. Voters inside the process are nobody else's: a client that has only
/// such needs no name, and then a simulation repeats itself.
pub(super) fn name(origins: &[Origin], settings: &Settings) -> Result<Option<ClientName>, Error> {
    let named = settings.client_name()?;
    if are_inside(origins) {
        return Ok(named);
    }
    Ok(Some(named.unwrap_or_else(ClientName::of_this_process)))
}

/// Some clients take part in a roster only if they name one. Voters inside the process are nobody
/// else's.
pub(super) fn with_roster(origins: &[Origin], settings: Settings) -> Settings {
    if settings.roster.is_some() {
        return settings;
    }
    let only_looks = settings.only_looks || are_inside(origins);
    Settings { only_looks, ..settings }
}

fn are_inside(origins: &[Origin]) -> bool {
    #[cfg(feature = "embedded")]
    let are_inside = origins.iter().all(|origin| matches!(origin, Origin::Embedded(_)));
    #[cfg(not(feature = "embedded"))]
    let are_inside = origins.is_empty();
    are_inside
}

/// Voters inside the process have no replicas.
pub(super) fn check_replicas(origins: &[Origin], acks: ReplicaAcks) -> Result<(), Error> {
    let without = origins.iter().find(|origin| acks.replicas > 0 && !origin.may_have_replicas());
    without.map_or(Ok(()), |origin| {
        let (label, replicas) = (origin.label(), acks.replicas);
        Err(Error::invalid(format!(
            "voter {label} is inside the process and has no replicas, but {replicas} must \
             acknowledge each grant"
        )))
    })
}

impl Origin {
    fn may_have_replicas(&self) -> bool {
        match self {
            Self::Single(_) | Self::Cluster(_) => true,
            #[cfg(feature = "embedded")]
            Self::Embedded(_) => false,
        }
    }

    pub(super) fn label(&self) -> Arc<str> {
        match self {
            Self::Single(address) => Arc::clone(address.label()),
            Self::Cluster(part) => Arc::clone(part.label()),
            #[cfg(feature = "embedded")]
            Self::Embedded(voter) => voter.label().into(),
        }
    }

    pub(super) fn voter(
        &self,
        ear: Arc<dyn Ear>,
        clock: &Clock,
        seen: Seen,
        settings: &Settings,
    ) -> Voter {
        let node: Arc<dyn Node> = match self {
            Self::Single(address) => SingleNode::start(address, ear, looks(settings)),
            Self::Cluster(part) => part.start(ear, settings),
            #[cfg(feature = "embedded")]
            Self::Embedded(voter) => voter.connect(ear, clock.clone()),
        };
        Voter::spawn(self.label(), node, clock, settings.batch_size, seen)
    }
}
