//! Where voters are, as the user says it and as it is after the check.

use std::sync::Arc;

use super::{
    cluster::{Cluster, Part},
    reach::{Secret, looks},
};
#[cfg(feature = "embedded")]
use crate::node::embedded::EmbeddedVoter;
use crate::{
    clock::Clock,
    keys::KeyScheme,
    node::{Address, Ear, Node, Security, Seen, SingleNode, Voter},
    settings::{ReplicaAcks, Settings},
    words::{ClientName, Error},
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

    #[cfg(feature = "tls")]
    fn has_tls(&self) -> bool {
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

/// What does not go together.
pub(super) fn check(sources: &[Source], settings: &Settings) -> Result<(), Error> {
    let spread =
        |source: &Source| matches!(source, Source::Cluster(cluster) if cluster.votes() > 1);
    if settings.keys == KeyScheme::Redisson && sources.iter().any(spread) {
        return Err(Error::invalid(
            "a lock of several voters of a cluster has keys that Redisson does not know",
        ));
    }
    Ok(())
}

pub(super) fn origins(sources: &[Source], security: &Security) -> Result<Vec<Origin>, Error> {
    if sources.is_empty() {
        return Err(Error::invalid("there are no voters"));
    }
    #[cfg(feature = "tls")]
    if security.tls.is_some() && !sources.iter().any(Source::has_tls) {
        return Err(Error::invalid("TLS is set up, but no address asks for it by `rediss`"));
    }
    let mut origins = Vec::new();
    for source in sources {
        match source {
            Source::Address(address) => origins.push(Origin::Single(address.read(security)?)),
            Source::Cluster(cluster) => {
                origins.extend(cluster.parts(security)?.into_iter().map(Origin::Cluster));
            }
            #[cfg(feature = "embedded")]
            Source::Embedded(voter) => origins.push(Origin::Embedded(voter.clone())),
        }
    }
    Ok(origins)
}

/// Servers live in real time; voters inside the process in the runtime's, or in that of the machine
/// which the client was put on.
pub(super) fn clock(origins: &[Origin], asked: Option<&Clock>) -> Result<Clock, Error> {
    #[cfg(feature = "embedded")]
    if origins.iter().all(|origin| matches!(origin, Origin::Embedded(_))) {
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
    #[cfg(feature = "embedded")]
    if origins.iter().all(|origin| matches!(origin, Origin::Embedded(_))) {
        return Ok(named);
    }
    let _ = origins;
    Ok(Some(named.unwrap_or_else(ClientName::of_this_process)))
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

    /// Which of the voters of its cluster, if it has others.
    pub(super) fn seat(&self) -> usize {
        if let Self::Cluster(part) = self { part.seat() } else { 0 }
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
