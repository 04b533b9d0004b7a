use proptest::prelude::*;

use super::*;

fn keys(scheme: &KeyScheme, name: &str) -> MutexKeys {
    scheme.mutex(&LockName::parse(name).unwrap())
}

/// Those that are derived from the name: behind two of Java's, and four of ours, those by which a
/// lock is found.
fn rw_keys(scheme: &KeyScheme, name: &str) -> Vec<String> {
    match scheme.rw_lock(&LockName::parse(name).unwrap()) {
        RwNames::Ours(keys) => {
            let others = [keys.revoked(), keys.fence(), keys.alive(), keys.writers()];
            let those = [keys.writer(), keys.readers(), keys.queue()];
            others.into_iter().chain(those).map(|key| key.to_string()).collect()
        }
        RwNames::Java(JavaRwKeys { stem, revoked, fence, channel, .. }) => {
            let reader = format!("{stem}:client:r1:rwlock_timeout:1").into();
            [channel, revoked, reader, fence].iter().map(|key: &Arc<str>| key.to_string()).collect()
        }
    }
}

/// What a cluster hashes: the text between the first `{` and the next `}`, if there is any.
fn hash_tag(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key)
}

#[test]
fn the_default_names_are_pinned() {
    let keys = keys(&KeyScheme::default(), "invoice:42");
    assert_eq!(keys.lock().to_string(), "quorate:{invoice:42}");
    assert_eq!(keys.revoked().to_string(), "quorate:{invoice:42}:revoked");
    assert_eq!(keys.fence().to_string(), "quorate:{invoice:42}:fence");
    assert_eq!(keys.queue().to_string(), "quorate:{invoice:42}:queue");
    assert_eq!(keys.alive().to_string(), "quorate:{invoice:42}:alive");
    assert_eq!(keys.channel().to_string(), "quorate:{invoice:42}:wake");
    assert_eq!(KeyScheme::default().calls(), "quorate:calls:");
}

#[test]
fn the_names_of_marks_are_pinned() {
    assert_eq!(&*KeyScheme::default().mark(), "quorate:{%voter}");
    assert_eq!(&*KeyScheme::Redisson.mark(), "{quorate}:quorate_voter");
}

#[test]
fn the_names_of_a_read_write_lock_are_pinned() {
    let name = LockName::parse("invoice:42").unwrap();
    let RwNames::Ours(keys) = KeyScheme::default().rw_lock(&name) else { panic!("Java's") };
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
    let keys = KeyScheme::default().semaphore(&name);
    assert_eq!(&*keys.slots, "quorate:{invoice:42}:semaphore:slots");
    assert_eq!(&*keys.ends, "quorate:{invoice:42}:semaphore:ends");
    assert_eq!(&*keys.revoked, "quorate:{invoice:42}:semaphore:revoked");
    assert_eq!(&*keys.queue, "quorate:{invoice:42}:semaphore:queue");
    assert_eq!(&*keys.served, "quorate:{invoice:42}:semaphore:served");
    assert_eq!(&*keys.alive, "quorate:{invoice:42}:semaphore:alive");
    assert_eq!(&*keys.permits, "quorate:{invoice:42}:semaphore:permits");
    let keys = KeyScheme::Redisson.semaphore(&name);
    assert_eq!(&*keys.slots, "{invoice:42}:quorate_semaphore_slots");
}

#[test]
fn the_names_of_an_election_are_pinned() {
    let name = LockName::parse("invoice:42").unwrap();
    let ours = KeyScheme::default().election(&name);
    assert_eq!(ours.lock().to_string(), "quorate:{invoice:42}:election");
    assert_eq!(ours.revoked().to_string(), "quorate:{invoice:42}:election:revoked");
    assert_eq!(ours.fence().to_string(), "quorate:{invoice:42}:election:fence");
    assert_eq!(ours.queue().to_string(), "quorate:{invoice:42}:election:queue");
    assert_eq!(ours.alive().to_string(), "quorate:{invoice:42}:election:alive");
    assert_eq!(ours.channel().to_string(), "quorate:{invoice:42}:election:news");
    let beside_java = KeyScheme::Redisson.election(&name);
    assert_eq!(beside_java.lock().to_string(), "{invoice:42}:quorate_election");
    assert_eq!(beside_java.fence().to_string(), "{invoice:42}:quorate_election_fence");
    assert_eq!(beside_java.queue().to_string(), "{invoice:42}:quorate_election_queue");
    assert_eq!(beside_java.channel().to_string(), "{invoice:42}:quorate_election_news");
}

/// As Redisson's `RedissonReadLock` makes them.
#[test]
fn redisson_names_the_record_the_readers_and_the_channel_of_a_read_write_lock() {
    for (name, tagged) in [("invoice:42", "{invoice:42}"), ("invoice:{42}", "invoice:{42}")] {
        let names = KeyScheme::Redisson.rw_lock(&LockName::parse(name).unwrap());
        let RwNames::Java(keys) = names else { panic!("ours") };
        assert_eq!((&*keys.lock, &*keys.stem), (name, tagged));
        assert_eq!(*keys.channel, format!("redisson_rwlock:{tagged}"));
        assert_eq!(*keys.revoked, format!("{tagged}:quorate_rw_revoked"));
        assert_eq!(*keys.fence, format!("{tagged}:quorate_rw_fence"));
    }
    let found = KeyScheme::Redisson.found("{invoice:42}:4f6a1d0e:81:rwlock_timeout:1").unwrap();
    assert_eq!((found.name.as_str(), found.kind), ("invoice:42", FoundKind::RwLock));
}

/// As Redisson's `RedissonLock` and its `prefixName` and `suffixName` make them.
#[test]
fn redisson_names_the_record_and_the_channel() {
    let plain = keys(&KeyScheme::Redisson, "invoice:42");
    assert_eq!(plain.lock().to_string(), "invoice:42");
    assert_eq!(plain.channel().to_string(), "redisson_lock__channel:{invoice:42}");
    assert_eq!(plain.fence().to_string(), "redisson_lock_token:{invoice:42}");
    let tagged = keys(&KeyScheme::Redisson, "invoice:{42}");
    assert_eq!(tagged.channel().to_string(), "redisson_lock__channel:invoice:{42}");
    assert_eq!(tagged.fence().to_string(), "redisson_lock_token:invoice:{42}");
    let name = LockName::parse("invoice:42").unwrap();
    let [queue, timeouts] = KeyScheme::fair_lock_in_java(&name);
    assert_eq!(&*queue, "redisson_lock_queue:{invoice:42}");
    assert_eq!(&*timeouts, "redisson_lock_timeout:{invoice:42}");
}

#[test]
fn marks_and_what_outlives_a_hold_are_no_locks() {
    let scheme = KeyScheme::default();
    let mark = scheme.mark();
    for key in [&*mark, "quorate:{a}:fence", "quorate:{a}:revoked", "quorate:{a"] {
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
        let lock = keys.lock().to_string();
        for other in [keys.revoked(), keys.fence(), keys.queue(), keys.alive(), keys.channel()] {
            let other = other.to_string();
            prop_assert_eq!(hash_tag(&lock), hash_tag(&other));
        }
        for key in rw_keys(&scheme, &name) {
            prop_assert_eq!(hash_tag(&lock), hash_tag(&key));
        }
        let election = scheme.election(&LockName::parse(&name).unwrap());
        for key in [election.lock(), election.queue(), election.fence(), election.channel()] {
            let key = key.to_string();
            prop_assert_eq!(hash_tag(&lock), hash_tag(&key));
        }
    }

    #[test]
    fn a_lock_is_found_by_its_keys(name in ".{1,40}", redisson: bool) {
        let scheme = if redisson { KeyScheme::Redisson } else { KeyScheme::default() };
        prop_assume!(!redisson || !name.contains(['{', '}']));
        let found = |key: &str| scheme.found(key).map(|found| (found.name, found.kind));
        let mutex = keys(&scheme, &name);
        // Java's name of the record is the bare name.
        let those = [Some(mutex.queue()), (!redisson).then(|| mutex.lock())];
        for key in those.into_iter().flatten() {
            prop_assert_eq!(found(&key.to_string()), Some((name.clone(), FoundKind::Mutex)));
        }
        let election = scheme.election(&LockName::parse(&name).unwrap());
        for key in [election.lock(), election.queue()] {
            prop_assert_eq!(found(&key.to_string()), Some((name.clone(), FoundKind::Election)));
        }
        for key in [election.alive(), election.fence(), election.revoked()] {
            prop_assert_eq!(found(&key.to_string()), None);
        }
        let of_those = if redisson { 2 } else { 4 };
        for key in &rw_keys(&scheme, &name)[of_those..] {
            prop_assert_eq!(found(key), Some((name.clone(), FoundKind::RwLock)));
        }
        let semaphore = scheme.semaphore(&LockName::parse(&name).unwrap());
        for key in [&semaphore.slots, &semaphore.queue] {
            prop_assert_eq!(found(key), Some((name.clone(), FoundKind::Semaphore)));
        }
        prop_assert_eq!(found(&semaphore.permits), None, "it outlasts whoever holds");
    }

    #[test]
    fn no_lock_has_the_hash_tag_of_a_mark(name in "[%voter257BD{}#]{1,10}") {
        let scheme = KeyScheme::default();
        let (mark, lock) = (scheme.mark(), keys(&scheme, &name).lock().to_string());
        prop_assert!(!hash_tag(&lock).starts_with(hash_tag(&mark)), "{} {}", lock, mark);
    }

    #[test]
    fn different_names_have_different_keys(
        one in "[a%{}7BD25]{1,6}", other in "[a%{}7BD25]{1,6}",
    ) {
        let scheme = KeyScheme::default();
        prop_assert_eq!(one == other, keys(&scheme, &one) == keys(&scheme, &other));
    }
}
