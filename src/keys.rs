//! The names of keys and channels. All keys of one lock have one hash slot.

// A script may only touch keys of one slot in a cluster. The hash tag in braces makes it one.

mod word;

use std::{borrow::Cow, sync::Arc};

pub(crate) use word::Word;

use crate::proto::{Error, LockName};

/// The beginning of all names of keys: `<prefix>:{<lock name>}`, and what follows.
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

    /// Fails if the prefix cannot be used.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Self(prefix) = self;
        if prefix.is_empty() {
            return Err(Error::invalid("the key prefix is empty"));
        }
        // With a brace in it, the hash tag would begin in the prefix: all locks would have one
        // slot, or the keys of one lock several.
        if prefix.contains(['{', '}']) {
            return Err(Error::invalid(format!("the key prefix `{prefix}` has a brace in it")));
        }
        Ok(())
    }

    /// The beginning of the channels for wake-ups; the client's id follows.
    pub(crate) fn wakeup_channels(&self) -> String {
        format!("{}:calls:", self.0)
    }

    /// The key of a server's fingerprint.
    pub(crate) fn fingerprint(&self) -> Arc<str> {
        // No lock has this key: in the name of a lock, the code of a character follows a `%`.
        format!("{}:{{%voter}}", self.0).into()
    }

    /// The key of the voter configurations of a voter's clients.
    pub(crate) fn voter_configuration(&self) -> Arc<str> {
        format!("{}:{{%roster}}", self.0).into()
    }

    /// A pattern of `SCAN` for the keys of locks whose names fit `names`, which is a pattern too.
    /// `ending`: the addition to their hash tags.
    pub(crate) fn pattern(&self, names: &str, ending: &str) -> String {
        format!("{}:{{{}{ending}}}*", escaped(&self.0), encoded(names))
    }

    /// The name of the lock that has this key, and the end of the key.
    pub(crate) fn parts<'a>(&self, key: &'a str) -> Option<(String, &'a str)> {
        let stem = key.strip_prefix(&self.0)?.strip_prefix(':')?;
        let (name, end) = stem.strip_prefix('{')?.split_once('}')?;
        Some((decoded(name)?, end))
    }

    /// The beginning of a lock's keys.
    pub(crate) fn stem(&self, name: &LockName) -> String {
        format!("{}:{{{}}}", self.0, encoded(name.as_str()))
    }
}

/// Percent-encodes braces and percent signs.
// A closing brace would end the hash tag early, so that locks `a}b` and `a}c` were in one slot. The
// percent sign too, so that two names never become one key.
fn encoded(name: &str) -> Cow<'_, str> {
    // Hardly any name has one: nothing is allocated then.
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

/// Undoes [`encoded`]. None if no name of a lock is encoded so.
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

/// A pattern of `SCAN` that only this text fits.
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
