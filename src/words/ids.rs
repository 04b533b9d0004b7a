//! Who holds, and who may enter again.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use uuid::Uuid;

/// One connected client; the first half of every [`HoldId`] it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientId(Uuid);

impl ClientId {
    pub(crate) fn from_random_bytes(bytes: [u8; 16]) -> Self {
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Makes the hold ids of one client: fresh each time, never reused.
#[derive(Debug)]
pub(crate) struct HoldIds {
    client: ClientId,
    next: AtomicU64,
}

impl HoldIds {
    pub(crate) fn new(client: ClientId) -> Self {
        Self { client, next: AtomicU64::new(1) }
    }

    pub(crate) fn client(&self) -> ClientId {
        self.client
    }

    pub(crate) fn fresh(&self) -> HoldId {
        HoldId(format!("{}:{}", self.client, self.number()).into())
    }

    /// A fresh hold that reads under `write`, which its own owner has.
    pub(crate) fn under(&self, write: &HoldId) -> HoldId {
        HoldId(format!("{write}/{}", self.number()).into())
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// Names one outermost acquisition of one lock: `<client uuid>:<sequence number>`; where it waited
/// in a queue, `<place>.<attempt>`, with a place of the same form; and where it reads under a write
/// of the same owner, `<write hold>/<number>`.
///
/// Voters store it as text, so a hold of another program (Redisson, say) is whatever text stands in
/// its record.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(Arc<str>);

impl HoldId {
    /// The hold of an attempt that is made from this place in a queue.
    pub(crate) fn attempt(&self, number: u32) -> Self {
        Self(format!("{self}.{number}").into())
    }

    pub(crate) fn parse(text: &str) -> Self {
        Self(text.into())
    }

    /// The text that stands on the voters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HoldId({})", self.0)
    }
}

/// An identity that may enter a lock again while it holds it.
///
/// It is a plain value: whoever has a copy of it, on any task or thread, is the same owner. It
/// means something within the client (the [`Quorate`](crate::Quorate)) it is used with: two clients
/// are two parties, whatever owners they are given.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), quorate::Error> {
/// # let voters = quorate::embedded::voters(3);
/// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
/// let owner = quorate::Owner::new();
/// let mutex = quorum.mutex("invoice:42").owner(&owner);
/// let outer = mutex.lock().await?;
/// let inner = mutex.lock().await?; // the same owner: enters at once
/// assert_eq!(outer.count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner(u64);

impl Owner {
    /// An owner equal to no other but its own copies.
    #[expect(clippy::new_without_default, reason = "two defaults that differ would surprise")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hold_ids_are_never_reused_and_name_their_client() {
        let ids = HoldIds::new(ClientId::from_random_bytes([7; 16]));
        let (first, second) = (ids.fresh(), ids.fresh());
        assert_ne!(first, second);
        let (client, sequence) = first.as_str().split_once(':').unwrap();
        assert_eq!(client, ids.client().to_string());
        assert_eq!((client.len(), sequence), (36, "1"));
    }

    #[test]
    fn an_owner_equals_only_its_copies() {
        let owner = Owner::new();
        let copy = owner;
        assert_eq!(owner, copy);
        assert_ne!(owner, Owner::new());
    }
}
