use proptest::prelude::*;

use super::*;

/// What a cluster hashes: the text between the first `{` and the next `}`, if there is any.
fn hash_tag(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// The names of the keys that show a lock of each kind: its record and its queue.
fn shown(prefix: &Prefix, name: &str) -> [(LockKind, Vec<String>); 4] {
    let stem = prefix.stem(&LockName::parse(name).unwrap());
    let keys = |ends: &[&str]| ends.iter().map(|end| format!("{stem}{end}")).collect();
    [
        (LockKind::Mutex, keys(&["", ":queue"])),
        (LockKind::Election, keys(&[":election", ":election:queue"])),
        (LockKind::RwLock, keys(&[":rw:writer", ":rw:readers", ":rw:queue"])),
        (LockKind::Semaphore, keys(&[":semaphore:slots", ":semaphore:queue"])),
    ]
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
    #[test]
    fn all_keys_of_a_lock_share_one_hash_tag_and_it_is_found_by_some(name in ".{1,40}") {
        let prefix = Prefix::default();
        let tag = hash_tag(&prefix.stem(&LockName::parse(&name).unwrap())).to_owned();
        for (kind, keys) in shown(&prefix, &name) {
            for key in &keys {
                let lock = prefix.found(key).map(|found| (found.name, found.kind));
                prop_assert_eq!(lock, Some((name.clone(), kind)));
                prop_assert_eq!(hash_tag(key), &tag);
                // Fences, and the records of holds that were ended by force, last longer.
                let fence = format!("{key}:fence");
                prop_assert!(prefix.found(&fence).is_none());
            }
        }
    }

    #[test]
    fn no_lock_has_the_hash_tag_of_a_mark(name in "[%voter257BD{}#]{1,10}") {
        let prefix = Prefix::default();
        let (mark, lock) = (prefix.mark(), prefix.stem(&LockName::parse(&name).unwrap()));
        prop_assert!(!hash_tag(&lock).starts_with(hash_tag(&mark)), "{} {}", lock, mark);
    }

    #[test]
    fn different_names_have_different_keys(
        one in "[a%{}7BD25]{1,6}", other in "[a%{}7BD25]{1,6}",
    ) {
        let stem = |name: &str| Prefix::default().stem(&LockName::parse(name).unwrap());
        prop_assert_eq!(one == other, stem(&one) == stem(&other));
    }
}
