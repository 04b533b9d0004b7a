//! Where voters are, as the user says it and as it is after the check.

use std::{fmt, sync::Arc};

#[cfg(feature = "embedded")]
use crate::node::embedded::EmbeddedVoter;
use crate::{
    clock::Clock,
    node::{Address, Ear, Security, Seen, SingleNode, Voter},
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

    #[cfg(feature = "tls")]
    fn has_tls(&self) -> bool {
        match self {
            Self::Address(address) => address.0.starts_with("rediss"),
            #[cfg(feature = "embedded")]
            Self::Embedded(_) => false,
        }
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

pub(super) fn origins(sources: &[Source], security: &Security) -> Result<Vec<Origin>, Error> {
    if sources.is_empty() {
        return Err(Error::invalid("there are no voters"));
    }
    #[cfg(feature = "tls")]
    if security.tls.is_some() && !sources.iter().any(Source::has_tls) {
        return Err(Error::invalid("TLS is set up, but no address asks for it by `rediss`"));
    }
    let origin = |source: &Source| match source {
        Source::Address(address) => Address::parse(&address.0, security).map(Origin::Single),
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

impl Origin {
    pub(super) fn label(&self) -> Arc<str> {
        match self {
            Self::Single(address) => Arc::clone(address.label()),
            #[cfg(feature = "embedded")]
            Self::Embedded(voter) => voter.label().into(),
        }
    }

    pub(super) fn voter(&self, ear: Arc<dyn Ear>, clock: &Clock, seen: Seen) -> Voter {
        let node = match self {
            Self::Single(address) => SingleNode::start(address, ear),
            #[cfg(feature = "embedded")]
            Self::Embedded(voter) => voter.connect(ear, clock.clone()),
        };
        Voter::spawn(self.label(), node, clock, seen)
    }
}
