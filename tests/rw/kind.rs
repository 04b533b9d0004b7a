//! What the fixture connects.

pub(crate) use quorate::Quorate as Client;

/// The client as it is.
pub(crate) fn of_kind(client: Client) -> Client {
    client
}
