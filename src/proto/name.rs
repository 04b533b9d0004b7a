//! The name of a lock.

use std::sync::Arc;

use super::Error;

/// A checked lock name: 1 to [`LockName::LONGEST`] bytes of UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockName(Arc<str>);

impl LockName {
    /// The longest name in bytes.
    pub const LONGEST: usize = 512;

    pub fn parse(name: &str) -> Result<Self, Error> {
        match name.len() {
            0 => Err(Error::invalid("the lock name is empty")),
            length if length > Self::LONGEST => Err(Error::invalid(format!(
                "the lock name has {length} bytes, the limit is {}",
                Self::LONGEST
            ))),
            _ => Ok(Self(name.into())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_counts_bytes_not_characters() {
        assert!(LockName::parse(&"a".repeat(512)).is_ok());
        let error = LockName::parse(&"é".repeat(257)).unwrap_err();
        assert!(error.is_invalid());
        assert_eq!(error.to_string(), "the lock name has 514 bytes, the limit is 512");
    }
}
