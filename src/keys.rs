//! Key and channel names. All keys of one lock lie in one hash slot.

mod word;

use std::{borrow::Cow, sync::Arc};

pub(crate) use word::Word;

use crate::proto::{Error, LockName};

/// What the names of all keys begin with: `<prefix>:{<lock name>}`, and names derived from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefix(String);

impl Default for Prefix {
    fn default() -> Self {
        Self("quorate".into())
    }
}

impl Prefix {
    pub(crate) fn new(prefix: impl Into<String>) -> Self {
        Self(prefix.into())
    }

    /// Whether it marks where the hash tag begins.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Self(prefix) = self;
        match prefix {
            prefix if prefix.is_empty() => Err(Error::invalid("the key prefix is empty")),
            prefix if prefix.contains(['{', '}']) => {
                Err(Error::invalid(format!("the key prefix `{prefix}` has a brace in it")))
            }
            _ => Ok(()),
        }
    }

    /// What the channels by which clients are called begin with; the client's id follows.
    pub(crate) fn calls(&self) -> String {
        format!("{}:calls:", self.0)
    }

    /// Where a server has the name of its data, and for how long they are known. What leads the key
    /// into a hash slot is added to its tag.
    pub(crate) fn fingerprint(&self) -> Arc<str> {
        // No lock's: behind a percent sign those have the code of a character.
        format!("{}:{{%voter}}", self.0).into()
    }

    /// Where a voter has what its clients believe of the voters.
    pub(crate) fn voter_configuration(&self) -> Arc<str> {
        format!("{}:{{%roster}}", self.0).into()
    }

    /// What keys of locks look like whose names fit a pattern, as `SCAN` takes both. `ending`: what
    /// is added to their hash tags.
    pub(crate) fn pattern(&self, names: &str, ending: &str) -> String {
        format!("{}:{{{}{ending}}}*", escaped(&self.0), encoded(names))
    }

    /// The lock of which this is a key, and what the key ends with.
    pub(crate) fn parts<'a>(&self, key: &'a str) -> Option<(String, &'a str)> {
        let stem = key.strip_prefix(&self.0)?.strip_prefix(':')?;
        let (name, end) = stem.strip_prefix('{')?.split_once('}')?;
        Some((decoded(name)?, end))
    }

    /// What the keys of a lock begin with.
    pub(crate) fn stem(&self, name: &LockName) -> String {
        format!("{}:{{{}}}", self.0, encoded(name.as_str()))
    }
}

/// Distinct names stay distinct, and none can end the hash tag early.
fn encoded(name: &str) -> Cow<'_, str> {
    if !name.contains(['{', '}', '%']) {
        return name.into();
    }
    let mut encoded = String::with_capacity(name.len() + 8);
    for character in name.chars() {
        match character {
            '{' => encoded.push_str("%7B"),
            '}' => encoded.push_str("%7D"),
            '%' => encoded.push_str("%25"),
            other => encoded.push(other),
        }
    }
    encoded.into()
}

/// The name that is encoded so; none where that is no lock's.
fn decoded(encoded: &str) -> Option<String> {
    let mut parts = encoded.split('%');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        name.push(match code {
            "7B" => '{',
            "7D" => '}',
            "25" => '%',
            _ => return None,
        });
        name.push_str(rest);
    }
    (!name.is_empty()).then_some(name)
}

/// A text as a pattern that only this text fits.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

#[cfg(test)]
mod tests;
