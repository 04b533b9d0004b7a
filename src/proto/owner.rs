//! Who may enter again.

use std::{fmt, str::FromStr};

use rand::{TryRng, rngs::SysRng};
use uuid::Uuid;

use super::Error;

/// An identity that may enter a lock again while it holds it.
///
/// It is a plain value: every copy of it, on any task or thread, is the same owner. It counts only
/// within one client (one [`Quorate`](crate::Quorate)). Two clients with the same owner are still
/// two parties.
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
///
/// It is shown as a UUID, and read from one. So the id of a request or of a job can be its owner,
/// and an owner in a log can be found again:
///
/// ```
/// # fn main() -> Result<(), quorate::Error> {
/// use quorate::Owner;
///
/// let request: Owner = "9e107d9d-372b-4b68-8f2a-3542a9d6d1e5".parse()?;
/// assert_eq!(request.to_string(), "9e107d9d-372b-4b68-8f2a-3542a9d6d1e5");
/// assert!("request 7".parse::<Owner>().unwrap_err().is_invalid());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner(Uuid);

impl Owner {
    /// An owner equal to no other but its own copies.
    ///
    /// # Panics
    ///
    /// If the operating system has no random numbers.
    #[expect(clippy::new_without_default, reason = "two defaults that differ would surprise")]
    pub fn new() -> Self {
        let mut bytes = [0; 16];
        // Not a count: one that was read from another process's text must equal none made here.
        SysRng.try_fill_bytes(&mut bytes).expect("the system has random numbers");
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Owner {
    type Err = Error;

    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for anything but a UUID.
    fn from_str(text: &str) -> Result<Self, Error> {
        let uuid = Uuid::try_parse(text);
        uuid.map(Self).map_err(|_| Error::invalid(format!("{text:?} is no owner: those are UUIDs")))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_a_uuid_is_an_owner() {
        for text in ["", "1", "request 7", "9e107d9d-372b-4b68-8f2a-3542a9d6d1e", "9e107d9d372b "] {
            let error = text.parse::<Owner>().unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains(&format!("{text:?}")));
        }
    }

    proptest! {
        #[test]
        fn an_owner_is_read_as_it_is_shown(number: u128) {
            let owner = Owner(Uuid::from_u128(number));
            prop_assert_ne!(owner, Owner::new());
            prop_assert_eq!(owner.to_string().parse::<Owner>().unwrap(), owner);
        }
    }
}
