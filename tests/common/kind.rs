//! The kind of lock that a claim is about, where it holds for more than one.

use std::ops::Deref;

use quorate::{Mutex, Quorate};

/// A lock that one holds at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Mutex,
    FairMutex,
}

/// A client whose mutexes are of one kind.
#[derive(Clone, Debug)]
pub struct Client {
    client: Quorate,
    kind: Kind,
}

impl Client {
    pub fn new(client: Quorate, kind: Kind) -> Self {
        Self { client, kind }
    }

    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        match self.kind {
            Kind::Mutex => self.client.mutex(name),
            Kind::FairMutex => self.client.fair_mutex(name),
        }
    }
}

impl Deref for Client {
    type Target = Quorate;

    fn deref(&self) -> &Quorate {
        &self.client
    }
}

/// Takes it and gives it back.
pub async fn turn(mutex: Mutex) {
    let guard = mutex.lock().await.expect("a majority answers");
    guard.release().await.expect("it is held");
}
