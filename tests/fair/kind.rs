//! The kind of lock that the claims are about.

use std::ops::Deref;

pub(crate) use quorate::FairMutex as Lock;
use quorate::Quorate;

/// A client whose mutexes are fair.
#[derive(Clone, Debug)]
pub(crate) struct Client(Quorate);

/// A client whose mutexes are of this kind.
pub(crate) fn of_kind(client: Quorate) -> Client {
    Client(client)
}

impl Client {
    pub(crate) fn mutex(&self, name: &str) -> Lock {
        self.0.fair_mutex(name)
    }
}

impl Deref for Client {
    type Target = Quorate;

    fn deref(&self) -> &Quorate {
        &self.0
    }
}
