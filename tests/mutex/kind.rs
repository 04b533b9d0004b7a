//! The kind of lock that the claims are about.

pub(crate) use quorate::{Mutex as Lock, Quorate as Client};

/// A client whose mutexes are of this kind.
pub(crate) fn of_kind(client: Client) -> Client {
    client
}
