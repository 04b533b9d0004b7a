use proptest::prelude::*;

use super::*;

fn keys(prefix: &Prefix, name: &str) -> MutexKeys {
    prefix.mutex(&LockName::parse(name).unwrap())
}

/// Behind four others those by which a lock is found.
fn rw_keys(prefix: &Prefix, name: &str) -> Vec<String> {
    let keys = prefix.rw_lock(&LockName::parse(name).unwrap());
    let others = [keys.revoked(), keys.fence(), keys.alive(), keys.writers()];
    let those = [keys.writer(), keys.readers(), keys.queue()];
    others.into_iter().chain(those).map(|key| key.to_string()).collect()
}

/// What a cluster hashes: the text between the first `{` and the next `}`, if there is any.
fn hash_tag(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key)
}

#[test]
fn the_default_names_are_pinned() {
    let keys = keys(&Prefix::default(), "invoice:42");
    assert_eq!(keys.lock().to_string(), "quorate:{invoice:42}");
    assert_eq!(keys.revoked().to_string(), "quorate:{invoice:42}:revoked");
    assert_eq!(keys.fence().to_string(), "quorate:{invoice:42}:fence");
    assert_eq!(keys.queue().to_string(), "quorate:{invoice:42}:queue");
    assert_eq!(keys.alive().to_string(), "quorate:{invoice:42}:alive");
    assert_eq!(keys.channel().to_string(), "");
    assert_eq!(Prefix::default().calls(), "quorate:calls:");
}

#[test]
fn the_names_of_marks_are_pinned() {
    assert_eq!(&*Prefix::default().mark(), "quorate:{%voter}");
}

#[test]
fn the_names_of_a_read_write_lock_are_pinned() {
    let name = LockName::parse("invoice:42").unwrap();
    let keys = Prefix::default().rw_lock(&name);
    assert_eq!(keys.writer().to_string(), "quorate:{invoice:42}:rw:writer");
    assert_eq!(keys.readers().to_string(), "quorate:{invoice:42}:rw:readers");
    assert_eq!(keys.revoked().to_string(), "quorate:{invoice:42}:rw:revoked");
    assert_eq!(keys.fence().to_string(), "quorate:{invoice:42}:rw:fence");
    assert_eq!(keys.queue().to_string(), "quorate:{invoice:42}:rw:queue");
    assert_eq!(keys.alive().to_string(), "quorate:{invoice:42}:rw:alive");
    assert_eq!(keys.writers().to_string(), "quorate:{invoice:42}:rw:writers");
}

#[test]
fn the_names_of_a_semaphore_are_pinned() {
    let name = LockName::parse("invoice:42").unwrap();
    let keys = Prefix::default().semaphore(&name);
    assert_eq!(&*keys.slots, "quorate:{invoice:42}:semaphore:slots");
    assert_eq!(&*keys.ends, "quorate:{invoice:42}:semaphore:ends");
    assert_eq!(&*keys.revoked, "quorate:{invoice:42}:semaphore:revoked");
    assert_eq!(&*keys.queue, "quorate:{invoice:42}:semaphore:queue");
    assert_eq!(&*keys.served, "quorate:{invoice:42}:semaphore:served");
    assert_eq!(&*keys.alive, "quorate:{invoice:42}:semaphore:alive");
    assert_eq!(&*keys.permits, "quorate:{invoice:42}:semaphore:permits");
}

#[test]
fn the_names_of_an_election_are_pinned() {
    let name = LockName::parse("invoice:42").unwrap();
    let ours = Prefix::default().election(&name);
    assert_eq!(ours.lock().to_string(), "quorate:{invoice:42}:election");
    assert_eq!(ours.revoked().to_string(), "quorate:{invoice:42}:election:revoked");
    assert_eq!(ours.fence().to_string(), "quorate:{invoice:42}:election:fence");
    assert_eq!(ours.queue().to_string(), "quorate:{invoice:42}:election:queue");
    assert_eq!(ours.alive().to_string(), "quorate:{invoice:42}:election:alive");
    assert_eq!(ours.channel().to_string(), "quorate:{invoice:42}:election:news");
}

#[test]
fn marks_and_what_outlives_a_hold_are_no_locks() {
    let prefix = Prefix::default();
    let mark = prefix.mark();
    for key in [&*mark, "quorate:{a}:fence", "quorate:{a}:revoked", "quorate:{a"] {
        assert_eq!(prefix.found(key), None, "{key}");
    }
}

#[test]
fn a_prefix_with_a_brace_or_without_a_character_is_refused() {
    assert!(Prefix::new("a{b").check().unwrap_err().is_invalid());
    assert!(Prefix::new("").check().unwrap_err().is_invalid());
}

proptest! {
    #[test]
    fn all_keys_of_a_lock_share_one_hash_tag(name in ".{1,40}") {
        let prefix = Prefix::default();
        let keys = keys(&prefix, &name);
        let lock = keys.lock().to_string();
        for other in [keys.revoked(), keys.fence(), keys.queue(), keys.alive()] {
            let other = other.to_string();
            prop_assert_eq!(hash_tag(&lock), hash_tag(&other));
        }
        for key in rw_keys(&prefix, &name) {
            prop_assert_eq!(hash_tag(&lock), hash_tag(&key));
        }
        let election = prefix.election(&LockName::parse(&name).unwrap());
        for key in [election.lock(), election.queue(), election.fence(), election.channel()] {
            let key = key.to_string();
            prop_assert_eq!(hash_tag(&lock), hash_tag(&key));
        }
    }

    #[test]
    fn a_lock_is_found_by_its_keys(name in ".{1,40}") {
        let prefix = Prefix::default();
        let found = |key: &str| prefix.found(key).map(|found| (found.name, found.kind));
        let mutex = keys(&prefix, &name);
        for key in [mutex.queue(), mutex.lock()] {
            prop_assert_eq!(found(&key.to_string()), Some((name.clone(), FoundKind::Mutex)));
        }
        let election = prefix.election(&LockName::parse(&name).unwrap());
        for key in [election.lock(), election.queue()] {
            prop_assert_eq!(found(&key.to_string()), Some((name.clone(), FoundKind::Election)));
        }
        for key in [election.alive(), election.fence(), election.revoked()] {
            prop_assert_eq!(found(&key.to_string()), None);
        }
        for key in &rw_keys(&prefix, &name)[4..] {
            prop_assert_eq!(found(key), Some((name.clone(), FoundKind::RwLock)));
        }
        let semaphore = prefix.semaphore(&LockName::parse(&name).unwrap());
        for key in [&semaphore.slots, &semaphore.queue] {
            prop_assert_eq!(found(key), Some((name.clone(), FoundKind::Semaphore)));
        }
        prop_assert_eq!(found(&semaphore.permits), None, "it outlasts whoever holds");
    }

    #[test]
    fn no_lock_has_the_hash_tag_of_a_mark(name in "[%voter257BD{}#]{1,10}") {
        let prefix = Prefix::default();
        let (mark, lock) = (prefix.mark(), keys(&prefix, &name).lock().to_string());
        prop_assert!(!hash_tag(&lock).starts_with(hash_tag(&mark)), "{} {}", lock, mark);
    }

    #[test]
    fn different_names_have_different_keys(
        one in "[a%{}7BD25]{1,6}", other in "[a%{}7BD25]{1,6}",
    ) {
        let prefix = Prefix::default();
        prop_assert_eq!(one == other, keys(&prefix, &one) == keys(&prefix, &other));
    }
}
