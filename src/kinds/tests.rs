use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{kind::ALL, *};
use crate::{
    keys::Prefix,
    proto::{ClientId, HoldIds, LockKind, LockName, Slots},
    scripts::Text,
    settings::Settings,
};

/// The invoice of each kind, a semaphore for two of its nine permits.
fn record(kind: &'static Kind) -> LockRecord {
    record_of(kind, &Prefix::default(), LockName::parse("invoice:42").unwrap())
}

fn record_of(kind: &'static Kind, prefix: &Prefix, name: LockName) -> LockRecord {
    let settings = Settings::default();
    let rules = settings.rules(settings.lease).unwrap();
    let form = Forms::new(&settings).of(kind, rules, Preference::default(), &settings);
    let permits = (kind.lock == LockKind::Semaphore).then_some((9, 2));
    LockRecord::own(prefix, name, form, permits)
}

#[test]
fn all_names_of_keys_and_channels_are_pinned() {
    let rw = ":rw:writer, :rw:readers, :rw:revoked, :rw:fence, :rw:queue, :rw:alive, :rw:writers";
    let pinned = [
        (&MUTEX, ", :revoked, :fence, :queue, :alive"),
        (&FAIR_MUTEX, ", :revoked, :fence, :queue, :alive"),
        (&ONCE, ":once, :once:revoked, :once:fence, :once:queue, :once:alive"),
        (
            &ELECTION,
            ":election, :election:revoked, :election:fence, :election:queue, :election:alive",
        ),
        (&READ, rw),
        (&WRITE, rw),
        (
            &SEMAPHORE,
            ":semaphore:slots, :semaphore:ends, :semaphore:revoked, :semaphore:queue, \
             :semaphore:served, :semaphore:alive, :semaphore:permits",
        ),
    ];
    for (kind, pinned) in pinned {
        // To clear a lock takes all of its keys.
        let clear = record(kind).clear();
        let ends: Vec<_> =
            clear.keys().filter_map(|key| key.strip_prefix("quorate:{invoice:42}")).collect();
        assert_eq!((ends.join(", "), ends.len()), (pinned.into(), clear.keys().count()));
    }
    let news = record(&ELECTION).channel();
    assert_eq!(news.as_deref(), Some("quorate:{invoice:42}:election:news"));
    assert_eq!(record(&MUTEX).channel(), None);
}

#[test]
fn a_lock_is_found_by_its_record_and_its_queue_and_by_nothing_that_lasts_longer() {
    let shown = [
        (LockKind::Mutex, ["", ":queue"].as_slice()),
        (LockKind::Once, &[":once", ":once:queue"]),
        (LockKind::Election, &[":election", ":election:queue"]),
        (LockKind::RwLock, &[":rw:writer", ":rw:readers", ":rw:queue"]),
        (LockKind::Semaphore, &[":semaphore:slots", ":semaphore:queue"]),
    ];
    for (kind, ends) in shown {
        assert!(ends.iter().all(|end| kind_of(end) == Some(kind)), "{kind}");
    }
    let shown = ALL.map(|kind| {
        let clear = record(kind).clear();
        let ends = clear.keys().filter_map(|key| key.strip_prefix("quorate:{invoice:42}"));
        ends.filter(|end| kind_of(end).is_some()).count()
    });
    assert_eq!(shown, [2, 2, 2, 2, 3, 3, 2], "of a read/write lock also who reads");
}

/// Requests of one hold leave in order as far as they are of one party.
#[test]
fn what_is_asked_for_a_hold_is_of_one_party() {
    let ids = HoldIds::new(ClientId::new([7; 16], None), None);
    for kind in ALL {
        let (record, hold) = (record(kind), ids.fresh());
        let ask = Ask::new(&hold, record.rules().terms.lease);
        let calls = [record.acquire(&ask), record.renew(&ask), record.release(&hold, 0)];
        let calls = calls.into_iter().chain(record.shorten(&hold, ask.lease));
        let parties: BTreeSet<u64> = calls.map(|call| call.requests[0].party).collect();
        assert_eq!(parties.len(), 1, "{}", kind.name);
    }
}

/// A label that no request knows panics where it is filled in.
#[test]
fn each_kind_has_what_its_scripts_name() {
    let ids = HoldIds::new(ClientId::new([7; 16], None), None);
    let (hold, slots) = (ids.fresh(), Slots::new([1, 2]));
    for kind in ALL {
        let record = record(kind);
        let ask = Ask { slots: Some(&slots), ..Ask::new(&hold, record.rules().terms.lease) };
        let longer = Ask { lease: ask.lease * 2, ..ask.clone() };
        let calls = [
            record.acquire(&ask),
            record.renew(&ask),
            record.renew(&longer),
            record.release(&hold, 1),
            record.undo(&hold),
            record.shorten(&hold, ask.lease).unwrap(),
            record.end(&hold, 2, ask.lease),
            record.clear(),
            record.look(0),
        ];
        for call in calls.into_iter().chain(record.look_for_leader()) {
            let Text { keys, args, shared, .. } = &**call.script;
            let given = shared.len() - usize::from(call.script.publishes());
            let filled = (call.keys().count(), call.args().count(), call.shared.len());
            assert_eq!(filled, (keys.len(), args.len(), given), "{}", call.script.name);
        }
        let [usual, longer] = [&ask, &longer].map(|ask| record.renew(ask).shared);
        assert_ne!(usual, longer, "{}: who enters again may want it for longer", kind.name);
    }
}

/// What an attempt gets from a parked hold goes back there; of a guard that is detached it is given
/// up.
#[test]
fn votes_pass_from_hold_to_hold_and_back() {
    let ids = HoldIds::new(ClientId::new([7; 16], None), None);
    let (record, guard, secret) = (record(&MUTEX), ids.fresh(), "secret".into());
    let parks = record.passed_on(&guard, &secret);
    let parked = parks.hold(&ids);
    // The first digits of the SHA-1 of the secret.
    assert!(parked.is_parked() && parked.hash() == Some("e5e9fa1ba31ecd1ae84f75caaa474f3a"));
    let resumes = record.passed_on(&parked, &secret);
    let resuming = resumes.hold(&ids);
    assert!(resuming.resumes(&parked));
    assert_eq!((parks.resumes(), resumes.resumes()), (None, Some(&parked)));
    let lease = record.rules().terms.lease;
    for (record, hold, former) in [(&parks, &parked, &guard), (&resumes, &resuming, &parked)] {
        let call = record.acquire(&Ask::new(hold, lease));
        assert_eq!(call.script.name, "mutex/pass");
        assert_eq!(call.args().collect::<Vec<_>>(), [hold.as_str(), former.as_str(), "secret", ""]);
        // In order with what is asked for either.
        assert_eq!(call.requests[0].party, record.release(&parked, 0).requests[0].party);
        // It makes no vote where there is none, not even for a token.
        let call = record.store_token(&Ask::new(hold, lease));
        assert_eq!((call.script.name, call.args().last()), ("mutex/renew", Some("")));
    }
    let back = resumes.undo(&resuming);
    assert_eq!(back.args().collect::<Vec<_>>(), [parked.as_str(), resuming.as_str(), "secret", ""]);
    assert_eq!(parks.undo(&parked).script.name, "mutex/release");
}

#[test]
fn the_two_sides_of_a_read_write_lock_know_each_other_and_a_writer_may_read() {
    let (read, write) = (record(&READ), record(&WRITE));
    assert_eq!(read.info().other_side.as_ref(), Some(&write.info().key));
    assert_eq!(write.info().other_side.as_ref(), Some(&read.info().key));
    let ids = HoldIds::new(ClientId::new([7; 16], None), None);
    let writes = ids.fresh();
    let under = write.under(&writes).unwrap();
    assert_eq!((under.kind().name, &under.info().key), ("read", &read.info().key));
    assert_eq!(under.hold(&ids).write(), Some(writes.as_str()));
    assert!(read.under(&writes).is_none());
}

/// What a cluster hashes of a key.
fn hash_tag(key: &str) -> Option<&str> {
    key.split_once('{')?.1.split_once('}').map(|(tag, _)| tag)
}

/// What a lock has on the voters, by the lock's kind as users see it.
fn keys_and_channel(prefix: &Prefix, name: &LockName) -> Vec<(LockKind, String)> {
    let of_kind = |kind: &'static Kind| {
        let record = record_of(kind, prefix, name.clone());
        let clear = record.clear();
        let names =
            clear.keys().map(str::to_owned).chain(record.channel().map(|it| it.to_string()));
        names.map(|name| (kind.lock, name)).collect::<Vec<_>>()
    };
    ALL.into_iter().flat_map(of_kind).collect()
}

proptest! {
    // Names and prefixes of the letters that keys are made of, and any.
    #[test]
    fn whatever_a_lock_is_called_its_keys_are_its_own_and_lie_in_one_slot(
        names in prop::array::uniform2("[a:{}%]{0,5}|:(rw|once|queue|fence)|(?s).{0,200}"),
        prefixes in prop::array::uniform2("[a:%]{1,4}"),
    ) {
        let mut known: Vec<(String, LockKind, (&str, &str))> = Vec::new();
        for (prefix, name) in prefixes.iter().flat_map(|it| names.iter().map(move |name| (it, name))) {
            let parsed = match LockName::parse(name) {
                Ok(parsed) => parsed,
                Err(error) => {
                    prop_assert!(error.is_invalid() && !(1..=512).contains(&name.len()), "{}", error);
                    continue;
                }
            };
            prop_assert!((1..=512).contains(&name.len()));
            let keys = keys_and_channel(&Prefix::new(prefix), &parsed);
            let tag = hash_tag(&keys[0].1).expect("there is one").to_owned();
            prop_assert!(!tag.is_empty());
            for (kind, key) in keys {
                prop_assert_eq!(hash_tag(&key), Some(&*tag));
                known.push((key, kind, (prefix, name)));
            }
        }
        known.sort();
        for pair in known.windows(2) {
            let [(one, one_kind, one_lock), (other, other_kind, other_lock)] = pair else { continue };
            let is_same = (one_kind, one_lock) == (other_kind, other_lock);
            prop_assert!(one != other || is_same, "{}: {:?}, {:?}", one, one_lock, other_lock);
        }
    }
}
