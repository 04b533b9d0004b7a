//! Key and channel names. All keys of one lock lie in one hash slot.

use std::{borrow::Cow, sync::Arc};

use crate::words::{Error, FoundKind, FoundLock, LockName};

/// How locks are named on the voters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyScheme {
    /// `<prefix>:{<lock name>}` and names derived from it. The default, with the prefix `quorate`.
    ///
    /// Clients with different prefixes do not see each other's locks. Braces and percent signs of a
    /// lock name are percent-encoded, so that the braces always mark the hash tag.
    Prefix(String),
    /// Redisson's names, so that Java and Rust services exclude and wake each other on the same
    /// mutex: the record under the bare lock name, the channel
    /// `redisson_lock__channel:{<lock name>}`, and the tokens of an `RFencedLock` under
    /// `redisson_lock_token:{<lock name>}`, without expiry. A read/write lock of ours and one of
    /// Redisson's know nothing of each other.
    Redisson,
}

impl Default for KeyScheme {
    fn default() -> Self {
        Self::Prefix("quorate".into())
    }
}

/// The names of one mutex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MutexKeys {
    /// The record.
    pub(crate) lock: Arc<str>,
    /// Holds that were ended by force.
    pub(crate) revoked: Arc<str>,
    /// The token of the latest hold.
    pub(crate) fence: Arc<str>,
    /// Who waits in order, by ticket.
    pub(crate) queue: Arc<str>,
    /// Until when each of them counts.
    pub(crate) alive: Arc<str>,
    /// Where a release is told if nobody waits in order.
    pub(crate) channel: Arc<str>,
    /// Where those who wait in order are called: this, and the client's id.
    pub(crate) calls: Arc<str>,
}

/// The names of one read/write lock. It shares none with the mutex of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RwKeys {
    /// Who writes.
    pub(crate) writer: Arc<str>,
    /// Until when each of those who read counts.
    pub(crate) readers: Arc<str>,
    /// Holds that were ended by force.
    pub(crate) revoked: Arc<str>,
    /// The token of the latest write.
    pub(crate) fence: Arc<str>,
    /// Who waits, by ticket.
    pub(crate) queue: Arc<str>,
    /// Until when each of them counts.
    pub(crate) alive: Arc<str>,
    /// Those of them that wait to write.
    pub(crate) writers: Arc<str>,
    /// Where those who wait are called: this, and the client's id.
    pub(crate) calls: Arc<str>,
}

impl KeyScheme {
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            Self::Prefix(prefix) if prefix.is_empty() => {
                Err(Error::invalid("the key prefix is empty"))
            }
            Self::Prefix(prefix) if prefix.contains(['{', '}']) => {
                Err(Error::invalid(format!("the key prefix `{prefix}` has a brace in it")))
            }
            _ => Ok(()),
        }
    }

    /// What the channels by which clients are called begin with; the client's id follows.
    pub(crate) fn calls(&self) -> String {
        match self {
            Self::Prefix(prefix) => format!("{prefix}:calls:"),
            Self::Redisson => "quorate:calls:".into(),
        }
    }

    /// Where a server has the name of its data, and for how long they are known. What leads the key
    /// into a hash slot is added to its tag.
    pub(crate) fn mark(&self) -> Arc<str> {
        match self {
            // No lock's: behind a percent sign those have the code of a character.
            Self::Prefix(prefix) => format!("{prefix}:{{%voter}}").into(),
            Self::Redisson => "{quorate}:quorate_voter".into(),
        }
    }

    /// Where a voter has the name of the client with this id.
    pub(crate) fn client(&self, id: &str) -> Arc<str> {
        match self {
            // No lock's either.
            Self::Prefix(prefix) => format!("{prefix}:{{%client:{id}}}").into(),
            Self::Redisson => format!("{{quorate:{id}}}:quorate_client").into(),
        }
    }

    /// Programs that are not ours lock by the same records.
    pub(crate) fn is_shared_with_java(&self) -> bool {
        *self == Self::Redisson
    }

    /// What keys of locks look like whose names fit a pattern, as `SCAN` takes both. `ending`: what
    /// is added to their hash tags.
    pub(crate) fn pattern(&self, names: &str, ending: &str) -> String {
        match self {
            Self::Prefix(prefix) => {
                format!("{}:{{{}{ending}}}*", escaped(prefix), encoded(names))
            }
            Self::Redisson => format!("{{{names}{ending}}}:quorate_*"),
        }
    }

    /// The lock that is held or waited for by what this key says. Of mutexes that Java may hold
    /// only those that we have held of late.
    pub(crate) fn found(&self, key: &str) -> Option<FoundLock> {
        let stem = match self {
            Self::Prefix(prefix) => key.strip_prefix(prefix)?.strip_prefix(':')?,
            Self::Redisson => key,
        };
        let (name, part) = stem.strip_prefix('{')?.split_once('}')?;
        let kind = match (self, part) {
            (Self::Prefix(_), "" | ":queue")
            | (Self::Redisson, ":quorate_fence" | ":quorate_queue") => FoundKind::Mutex,
            (Self::Prefix(_), ":rw:writer" | ":rw:readers" | ":rw:queue")
            | (
                Self::Redisson,
                ":quorate_rw_writer" | ":quorate_rw_readers" | ":quorate_rw_queue",
            ) => FoundKind::RwLock,
            _ => return None,
        };
        let name = match self {
            Self::Prefix(_) => decoded(name)?,
            Self::Redisson => name.to_owned(),
        };
        Some(FoundLock { name, kind })
    }

    pub(crate) fn mutex(&self, name: &LockName) -> MutexKeys {
        let name = name.as_str();
        match self {
            Self::Prefix(prefix) => {
                let lock = format!("{prefix}:{{{}}}", encoded(name));
                MutexKeys {
                    revoked: format!("{lock}:revoked").into(),
                    fence: format!("{lock}:fence").into(),
                    queue: format!("{lock}:queue").into(),
                    alive: format!("{lock}:alive").into(),
                    channel: format!("{lock}:wake").into(),
                    calls: self.calls().into(),
                    lock: lock.into(),
                }
            }
            Self::Redisson => {
                let tagged = tagged(name);
                MutexKeys {
                    lock: name.into(),
                    revoked: format!("{tagged}:quorate_revoked").into(),
                    fence: format!("redisson_lock_token:{tagged}").into(),
                    queue: format!("{tagged}:quorate_queue").into(),
                    alive: format!("{tagged}:quorate_alive").into(),
                    calls: self.calls().into(),
                    channel: format!("redisson_lock__channel:{tagged}").into(),
                }
            }
        }
    }

    /// Where those stand in Java who wait for an `RFairLock` of this name, and until when.
    pub(crate) fn fair_lock_in_java(name: &LockName) -> [Arc<str>; 2] {
        let tagged = tagged(name.as_str());
        ["queue", "timeout"].map(|part| format!("redisson_lock_{part}:{tagged}").into())
    }

    pub(crate) fn rw_lock(&self, name: &LockName) -> RwKeys {
        let name = name.as_str();
        let stem = match self {
            Self::Prefix(prefix) => format!("{prefix}:{{{}}}:rw:", encoded(name)),
            Self::Redisson => format!("{}:quorate_rw_", tagged(name)),
        };
        let key = |part| format!("{stem}{part}").into();
        RwKeys {
            writer: key("writer"),
            readers: key("readers"),
            revoked: key("revoked"),
            fence: key("fence"),
            queue: key("queue"),
            alive: key("alive"),
            writers: key("writers"),
            calls: self.calls().into(),
        }
    }
}

/// As Redisson marks the hash tag of what it derives from a name.
fn tagged(name: &str) -> Cow<'_, str> {
    if name.contains('{') { name.into() } else { format!("{{{name}}}").into() }
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(scheme: &KeyScheme, name: &str) -> MutexKeys {
        scheme.mutex(&LockName::parse(name).unwrap())
    }

    /// What a cluster hashes: the text between the first `{` and the next `}`, if there is any.
    fn hash_tag(key: &str) -> &str {
        let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key)
    }

    #[test]
    fn the_default_names_are_pinned() {
        let keys = keys(&KeyScheme::default(), "invoice:42");
        assert_eq!(&*keys.lock, "quorate:{invoice:42}");
        assert_eq!(&*keys.revoked, "quorate:{invoice:42}:revoked");
        assert_eq!(&*keys.fence, "quorate:{invoice:42}:fence");
        assert_eq!(&*keys.queue, "quorate:{invoice:42}:queue");
        assert_eq!(&*keys.alive, "quorate:{invoice:42}:alive");
        assert_eq!(&*keys.channel, "quorate:{invoice:42}:wake");
        assert_eq!(&*keys.calls, "quorate:calls:");
    }

    #[test]
    fn the_names_of_marks_are_pinned() {
        assert_eq!(&*KeyScheme::default().mark(), "quorate:{%voter}");
        assert_eq!(&*KeyScheme::Redisson.mark(), "{quorate}:quorate_voter");
    }

    #[test]
    fn the_keys_of_client_names_are_pinned() {
        assert_eq!(&*KeyScheme::default().client("c"), "quorate:{%client:c}");
        assert_eq!(&*KeyScheme::Redisson.client("c"), "{quorate:c}:quorate_client");
    }

    #[test]
    fn the_names_of_a_read_write_lock_are_pinned() {
        let name = LockName::parse("invoice:42").unwrap();
        let keys = KeyScheme::default().rw_lock(&name);
        assert_eq!(&*keys.writer, "quorate:{invoice:42}:rw:writer");
        assert_eq!(&*keys.readers, "quorate:{invoice:42}:rw:readers");
        assert_eq!(&*keys.revoked, "quorate:{invoice:42}:rw:revoked");
        assert_eq!(&*keys.fence, "quorate:{invoice:42}:rw:fence");
        assert_eq!(&*keys.queue, "quorate:{invoice:42}:rw:queue");
        assert_eq!(&*keys.alive, "quorate:{invoice:42}:rw:alive");
        assert_eq!(&*keys.writers, "quorate:{invoice:42}:rw:writers");
        let redisson = KeyScheme::Redisson.rw_lock(&name);
        assert_eq!(&*redisson.writer, "{invoice:42}:quorate_rw_writer");
    }

    /// As Redisson's `RedissonLock` and its `prefixName` and `suffixName` make them.
    #[test]
    fn redisson_names_the_record_and_the_channel() {
        let plain = keys(&KeyScheme::Redisson, "invoice:42");
        assert_eq!(&*plain.lock, "invoice:42");
        assert_eq!(&*plain.channel, "redisson_lock__channel:{invoice:42}");
        assert_eq!(&*plain.fence, "redisson_lock_token:{invoice:42}");
        let tagged = keys(&KeyScheme::Redisson, "invoice:{42}");
        assert_eq!(&*tagged.channel, "redisson_lock__channel:invoice:{42}");
        assert_eq!(&*tagged.fence, "redisson_lock_token:invoice:{42}");
        let name = LockName::parse("invoice:42").unwrap();
        let [queue, timeouts] = KeyScheme::fair_lock_in_java(&name);
        assert_eq!(&*queue, "redisson_lock_queue:{invoice:42}");
        assert_eq!(&*timeouts, "redisson_lock_timeout:{invoice:42}");
    }

    #[test]
    fn marks_names_of_clients_and_what_outlives_a_hold_are_no_locks() {
        let scheme = KeyScheme::default();
        let mark = scheme.mark();
        let client = scheme.client("c");
        for key in [&*mark, &*client, "quorate:{a}:fence", "quorate:{a}:revoked", "quorate:{a"] {
            assert_eq!(scheme.found(key), None, "{key}");
        }
        assert_eq!(KeyScheme::Redisson.found("{quorate}:quorate_voter"), None);
    }

    #[test]
    fn a_prefix_with_a_brace_or_without_a_character_is_refused() {
        assert!(KeyScheme::Prefix("a{b".into()).check().unwrap_err().is_invalid());
        assert!(KeyScheme::Prefix(String::new()).check().unwrap_err().is_invalid());
    }

    proptest! {
        #[test]
        fn all_keys_of_a_lock_share_one_hash_tag(name in ".{1,40}", redisson: bool) {
            let scheme = if redisson { KeyScheme::Redisson } else { KeyScheme::default() };
            // Redisson itself splits such names over slots; nothing we derive can mend that.
            prop_assume!(!redisson || !name.contains(['{', '}']));
            let keys = keys(&scheme, &name);
            for other in [&keys.revoked, &keys.fence, &keys.queue, &keys.alive, &keys.channel] {
                prop_assert_eq!(hash_tag(&keys.lock), hash_tag(other));
            }
            let rw = scheme.rw_lock(&LockName::parse(&name).unwrap());
            let all = [rw.writer, rw.readers, rw.revoked, rw.fence, rw.queue, rw.alive, rw.writers];
            for key in all {
                prop_assert_eq!(hash_tag(&keys.revoked), hash_tag(&key));
            }
        }

        #[test]
        fn a_lock_is_found_by_its_keys(name in ".{1,40}", redisson: bool) {
            let scheme = if redisson { KeyScheme::Redisson } else { KeyScheme::default() };
            prop_assume!(!redisson || !name.contains(['{', '}']));
            let found = |key: &str| scheme.found(key).map(|found| (found.name, found.kind));
            let rw = scheme.rw_lock(&LockName::parse(&name).unwrap());
            let mutex = keys(&scheme, &name);
            prop_assert_eq!(found(&mutex.queue), Some((name.clone(), FoundKind::Mutex)));
            if !redisson {
                prop_assert_eq!(found(&mutex.lock), Some((name.clone(), FoundKind::Mutex)));
            }
            for key in [rw.writer, rw.readers, rw.queue] {
                prop_assert_eq!(found(&key), Some((name.clone(), FoundKind::RwLock)));
            }
        }

        #[test]
        fn no_lock_has_the_hash_tag_of_a_mark(name in "[%voter257BD{}#]{1,10}") {
            let scheme = KeyScheme::default();
            let (mark, lock) = (scheme.mark(), keys(&scheme, &name).lock);
            prop_assert!(!hash_tag(&lock).starts_with(hash_tag(&mark)), "{} {}", lock, mark);
        }

        #[test]
        fn different_names_have_different_keys(
            one in "[a%{}7BD25]{1,6}", other in "[a%{}7BD25]{1,6}",
        ) {
            let scheme = KeyScheme::default();
            prop_assert_eq!(one == other, keys(&scheme, &one).lock == keys(&scheme, &other).lock);
        }
    }
}
