//! Where voters are, as the user says it and as it is after the check.

use std::{fmt, sync::Arc};

#[cfg(feature = "embedded")]
use crate::node::embedded::EmbeddedVoter;
use crate::{
    clock::Clock,
    node::{Address, Ear, Seen, SingleNode, Voter},
    settings::ReplicaAcks,
    words::Error,
};

/// Where a voter is.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Kept unread, and shown nowhere: there may be a password in it.
    Address(Secret),
    #[cfg(feature = "embedded")]
    Embedded(EmbeddedVoter),
}

impl Source {
    pub(super) fn address(address: &str) -> Self {
        Self::Address(Secret(address.to_owned()))
    }
}

/// Text that is never printed.
#[derive(Clone)]
pub(super) struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<address>")
    }
}

/// What a voter is reached by, after its address was checked.
pub(super) enum Origin {
    Single(Address),
    #[cfg(feature = "embedded")]
    Embedded(EmbeddedVoter),
}

pub(super) fn origins(sources: &[Source]) -> Result<Vec<Origin>, Error> {
    if sources.is_empty() {
        return Err(Error::invalid("there are no voters"));
    }
    let origin = |source: &Source| match source {
        Source::Address(address) => Address::parse(&address.0).map(Origin::Single),
        #[cfg(feature = "embedded")]
        Source::Embedded(voter) => Ok(Origin::Embedded(voter.clone())),
    };
    sources.iter().map(origin).collect()
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
            Self::Single(_) => true,
            #[cfg(feature = "embedded")]
            Self::Embedded(_) => false,
        }
    }

    pub(super) fn label(&self) -> Arc<str> {
        match self {
            Self::Single(address) => Arc::clone(address.label()),
            #[cfg(feature = "embedded")]
            Self::Embedded(voter) => voter.label().into(),
        }
    }

    pub(super) fn voter(
        &self,
        ear: Arc<dyn Ear>,
        clock: &Clock,
        seen: Seen,
        acks: ReplicaAcks,
    ) -> Voter {
        let node = match self {
            Self::Single(address) => SingleNode::start(address, ear, acks),
            #[cfg(feature = "embedded")]
            Self::Embedded(voter) => voter.connect(ear, clock.clone()),
        };
        Voter::spawn(self.label(), node, clock, seen)
    }
}
