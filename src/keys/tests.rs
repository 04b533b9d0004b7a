use proptest::prelude::*;

use super::*;

/// The names of one lock: those by which it is found, and all others.
struct Names {
    kind: LockKind,
    found: Vec<String>,
    others: Vec<String>,
}

/// As a lock of each kind has them.
fn names(prefix: &Prefix, name: &str) -> [Names; 4] {
    let name = LockName::parse(name).unwrap();
    let (mutex, election) = (prefix.mutex(&name), prefix.election(&name));
    let (rw, semaphore) = (prefix.rw_lock(&name), prefix.semaphore(&name));
    let texts = |words: &[Word<'_>]| words.iter().map(Word::to_string).collect();
    let like_a_mutex = |kind, keys: &MutexKeys| Names {
        kind,
        found: texts(&[keys.lock(), keys.queue()]),
        others: texts(&[keys.revoked(), keys.fence(), keys.alive()]),
    };
    let SemaphoreKeys { slots, ends, revoked, queue, served, alive, permits, .. } = &semaphore;
    let keys = |keys: &[&Arc<str>]| keys.iter().map(ToString::to_string).collect();
    [
        like_a_mutex(LockKind::Mutex, &mutex),
        Names {
            others: texts(&[
                election.revoked(),
                election.fence(),
                election.alive(),
                election.channel(),
            ]),
            ..like_a_mutex(LockKind::Election, &election)
        },
        Names {
            kind: LockKind::RwLock,
            found: texts(&[rw.writer(), rw.readers(), rw.queue()]),
            others: texts(&[rw.revoked(), rw.fence(), rw.alive(), rw.writers()]),
        },
        Names {
            kind: LockKind::Semaphore,
            found: keys(&[slots, queue]),
            others: keys(&[ends, revoked, served, alive, permits]),
        },
    ]
}

/// What a cluster hashes: the text between the first `{` and the next `}`, if there is any.
fn hash_tag(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key)
}

#[test]
fn all_names_are_pinned() {
    let prefix = Prefix::default();
    let pinned = [
        ", :queue, :revoked, :fence, :alive",
        ":election, :election:queue, :election:revoked, :election:fence, :election:alive, \
         :election:news",
        ":rw:writer, :rw:readers, :rw:queue, :rw:revoked, :rw:fence, :rw:alive, :rw:writers",
        ":semaphore:slots, :semaphore:queue, :semaphore:ends, :semaphore:revoked, \
         :semaphore:served, :semaphore:alive, :semaphore:permits",
    ];
    for (Names { found, others, .. }, pinned) in
        names(&prefix, "invoice:42").into_iter().zip(pinned)
    {
        let all = [found, others].concat();
        let ends: Vec<_> =
            all.iter().filter_map(|key| key.strip_prefix("quorate:{invoice:42}")).collect();
        assert_eq!((ends.join(", "), ends.len()), (pinned.to_owned(), all.len()));
    }
    assert_eq!((&*prefix.mark(), &*prefix.calls()), ("quorate:{%voter}", "quorate:calls:"));
}

#[test]
fn marks_and_what_is_no_whole_key_are_no_locks() {
    let prefix = Prefix::default();
    for key in [&*prefix.mark(), "quorate:{a"] {
        assert_eq!(prefix.found(key), None, "{key}");
    }
}

#[test]
fn a_prefix_with_a_brace_or_without_a_character_is_refused() {
    assert!(Prefix::new("a{b").check().unwrap_err().is_invalid());
    assert!(Prefix::new("").check().unwrap_err().is_invalid());
}

proptest! {
    // Fences, and the records of holds that were ended by force, last longer than the holds.
    #[test]
    fn all_keys_of_a_lock_share_one_hash_tag_and_it_is_found_by_some(name in ".{1,40}") {
        let prefix = Prefix::default();
        let locks = names(&prefix, &name);
        let tag = hash_tag(&locks[0].found[0]).to_owned();
        for Names { kind, found, others } in locks {
            for key in &found {
                let lock = prefix.found(key).map(|found| (found.name, found.kind));
                prop_assert_eq!(lock, Some((name.clone(), kind)));
            }
            prop_assert!(others.iter().all(|key| prefix.found(key).is_none()), "{:?}", others);
            let mut all = found.iter().chain(&others);
            prop_assert!(all.all(|key| hash_tag(key) == tag), "{found:?}, {others:?}");
        }
    }

    #[test]
    fn no_lock_has_the_hash_tag_of_a_mark(name in "[%voter257BD{}#]{1,10}") {
        let prefix = Prefix::default();
        let (mark, lock) = (prefix.mark(), names(&prefix, &name)[0].found[0].clone());
        prop_assert!(!hash_tag(&lock).starts_with(hash_tag(&mark)), "{} {}", lock, mark);
    }

    #[test]
    fn different_names_have_different_keys(
        one in "[a%{}7BD25]{1,6}", other in "[a%{}7BD25]{1,6}",
    ) {
        let keys = |name: &str| Prefix::default().mutex(&LockName::parse(name).unwrap());
        prop_assert_eq!(one == other, keys(&one) == keys(&other));
    }
}
