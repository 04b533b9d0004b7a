use proptest::prelude::*;

use super::*;

/// What a cluster hashes: the text between the first `{` and the next `}`, if there is any.
fn hash_tag(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key)
}

#[test]
fn marks_and_what_is_no_whole_key_are_no_locks() {
    let prefix = Prefix::default();
    for key in [&*prefix.fingerprint(), "quorate:{a"] {
        assert_eq!(prefix.parts(key), None, "{key}");
    }
}

#[test]
fn a_prefix_with_a_brace_or_without_a_character_is_refused() {
    assert!(Prefix::new("a{b").check().unwrap_err().is_invalid());
    assert!(Prefix::new("").check().unwrap_err().is_invalid());
}

proptest! {
    #[test]
    fn all_keys_of_a_lock_share_one_hash_tag_and_say_its_name(name in ".{1,40}", end in "[:a-z]*") {
        let prefix = Prefix::default();
        let stem = prefix.stem(&LockName::parse(&name).unwrap());
        let key = format!("{stem}{end}");
        prop_assert_eq!(hash_tag(&key), hash_tag(&stem));
        prop_assert_eq!(prefix.parts(&key), Some((name, &*end)));
    }

    #[test]
    fn no_lock_has_the_hash_tag_of_a_fingerprint(name in "[%voter257BD{}#]{1,10}") {
        let prefix = Prefix::default();
        let (fingerprint, lock) = (prefix.fingerprint(), prefix.stem(&LockName::parse(&name).unwrap()));
        prop_assert!(!hash_tag(&lock).starts_with(hash_tag(&fingerprint)), "{} {}", lock, fingerprint);
    }

    #[test]
    fn different_names_have_different_keys(
        one in "[a%{}7BD25]{1,6}", other in "[a%{}7BD25]{1,6}",
    ) {
        let stem = |name: &str| Prefix::default().stem(&LockName::parse(name).unwrap());
        prop_assert_eq!(one == other, stem(&one) == stem(&other));
    }
}
