//! Where voters are, as the user says it and as it is after the check.

use std::sync::Arc;

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

    /// Whether its addresses can be read.
    pub(super) fn read(&self, security: &Security) -> Result<(), Error> {
        match self {
            Self::Address(address) => address.read(security).map(drop),
            Self::Cluster(cluster) => cluster.read(security),
            #[cfg(feature = "embedded")]
            Self::Embedded(_) => Ok(()),
        }
    }

    /// Its voters. `again`: another source has voters of the same cluster.
    pub(super) fn origins(&self, security: &Security, again: bool) -> Result<Vec<Origin>, Error> {
        Ok(match self {
            Self::Address(address) => vec![Origin::Single(address.read(security)?)],
            Self::Cluster(cluster) => {
                cluster.parts(security, again)?.into_iter().map(Origin::Cluster).collect()
            }
            #[cfg(feature = "embedded")]
            Self::Embedded(voter) => vec![Origin::Embedded(voter.clone())],
        })
    }

    /// Whether both name the same voters.
    pub(super) fn is_same(&self, other: &Self, security: &Security) -> Result<bool, Error> {
        Ok(match (self, other) {
            (Self::Address(one), Self::Address(other)) => {
                one.read(security)?.label() == other.read(security)?.label()
            }
            (Self::Cluster(one), Self::Cluster(other)) => {
                one.voters == other.voters && one.shares_a_seed(other, security)?
            }
            #[cfg(feature = "embedded")]
            (Self::Embedded(one), Self::Embedded(other)) => one.is_same(other),
            _ => false,
        })
    }

    /// Whether both are votes of one cluster.
    pub(super) fn is_of_one_cluster(
        &self,
        other: &Self,
        security: &Security,
    ) -> Result<bool, Error> {
        match (self, other) {
            (Self::Cluster(one), Self::Cluster(other)) => one.shares_a_seed(other, security),
            _ => Ok(false),
        }
    }

    #[cfg(feature = "tls")]
    pub(super) fn has_tls(&self) -> bool {
        match self {
            Self::Address(address) => address.has_tls(),
            Self::Cluster(cluster) => cluster.has_tls(),
            #[cfg(feature = "embedded")]
            Self::Embedded(_) => false,
        }
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
