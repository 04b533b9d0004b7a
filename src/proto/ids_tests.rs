use proptest::prelude::*;
use rand::SeedableRng;

use super::*;

fn ids(chance: Option<StdRng>) -> HoldIds {
    HoldIds::new(ClientId::new([7; 16], None), chance)
}

/// An id of each form.
fn drawn(ids: &HoldIds) -> [HoldId; 5] {
    let hold = ids.fresh();
    let (attempt, under) = (ids.attempt(&hold, 3), ids.under(&hold));
    [hold, attempt, under, ids.fresh_read(), ids.fresh_unordered()]
}

#[test]
fn hold_ids_are_never_reused_and_name_their_client() {
    let ids = ids(None);
    let (first, second) = (ids.fresh(), ids.fresh());
    assert_ne!(first, second);
    let (client, number) = first.as_str().split_once(':').unwrap();
    assert_eq!((client, number.len()), (&*ids.client().to_string(), 13));
    assert!(number.starts_with('1') && number.parse::<u64>().is_ok(), "{number}");
}

// A process is restored twice from a snapshot: the same client id, and the same count.
#[test]
fn copies_of_a_client_make_the_same_hold_ids_only_where_they_are_seeded() {
    let (one, other) = (ids(None), ids(None));
    for (one, other) in drawn(&one).into_iter().zip(drawn(&other)) {
        assert_ne!(one, other);
    }
    let place = one.fresh();
    assert_ne!(one.attempt(&place, 1), other.attempt(&place, 1), "from one place in a queue");
    let seeded = || drawn(&ids(Some(StdRng::seed_from_u64(1))));
    assert_eq!(seeded(), seeded());
}

#[test]
fn scripts_find_the_place_of_an_attempt_and_the_write_of_a_read_under_it() {
    let ids = ids(None);
    let hold = ids.fresh();
    let (attempt, read) = (ids.attempt(&hold, 12), ids.under(&hold));
    assert_eq!((attempt.place(), attempt.write()), (Some(hold.as_str()), None));
    assert_eq!((read.place(), read.write()), (None, Some(hold.as_str())));
    assert_eq!((hold.place(), hold.write()), (None, None));
    for id in [&hold, &attempt, &read] {
        assert_eq!(id.client(), Some(&*ids.client().to_string()));
    }
    // Of other programs.
    for text in ["", ".", ".1", "a.", "a.b", "a/1b", "no uuid:1", "no uuid:r1"] {
        let other = HoldId::parse(text);
        let parts = [other.place(), other.write(), other.client()];
        assert_eq!((parts, other.reads()), ([None; 3], false), "{text}");
    }
}

#[test]
fn a_hold_id_says_whether_it_reads() {
    let ids = ids(None);
    let (write, read) = (ids.fresh(), ids.fresh_read());
    assert!(!write.reads() && !ids.attempt(&write, 1).reads());
    assert!(read.reads() && ids.attempt(&read, 1).reads() && ids.under(&write).reads());
    assert_eq!(ids.attempt(&read, 1).place(), Some(read.as_str()));
    // Ids of another library.
    let ends = HoldId::parse(&format!("{write}:write"));
    let under = ids.under(&ends);
    assert!(!ends.reads() && under.reads());
    assert_eq!((under.write(), under.client()), (Some(ends.as_str()), ends.client()));
}

#[test]
fn a_parked_hold_and_those_that_resume_it_have_a_hash_in_common() {
    let (ids, [hash, other]) = (ids(None), ["0a", "1b"].map(|byte| byte.repeat(16)));
    let (parked, resuming, again) = (ids.parked(&hash), ids.resuming(&hash), ids.resuming(&hash));
    assert!(parked.is_parked() && !resuming.is_parked() && resuming != again);
    assert!(resuming.resumes(&parked) && again.resumes(&parked) && !parked.resumes(&resuming));
    assert!(!resuming.resumes(&again) && !ids.resuming(&other).resumes(&parked));
    assert!(!ids.fresh().resumes(&parked));
    for id in [&parked, &resuming] {
        assert_eq!((id.party(), id.place(), id.write(), id.reads()), (&*hash, None, None, false));
        assert_eq!(id.client(), Some(&*ids.client().to_string()));
    }
    // An attempt has the party of its place. Holds of other programs have one each.
    let (place, foreign) = (ids.fresh(), HoldId::parse("no uuid:p1-a"));
    assert_eq!(ids.attempt(&place, 1).party(), place.as_str());
    assert!(!foreign.is_parked() && foreign.party() == foreign.as_str());
    assert_ne!(ids.secret(), ids.secret());
    assert_eq!(ids.secret().len(), 32);
}

#[test]
fn the_id_of_a_client_with_a_name_begins_with_it() {
    let name = ClientName::parse("web-1.4711").unwrap();
    let client = ClientId::new([0xab; 16], Some(&name));
    assert_eq!(client.to_string(), format!("web-1.4711@{}", "ab".repeat(10)));
    let ids = HoldIds::new(client.clone(), None);
    let (hold, read) = (ids.fresh(), ids.fresh_read());
    for id in [&hold, &read, &ids.attempt(&hold, 1), &ids.under(&hold)] {
        assert_eq!(id.client(), Some(&*client.to_string()));
        assert_eq!(id.client_name().as_deref(), Some("web-1.4711"));
    }
    assert!(read.reads() && !hold.reads() && hold.place().is_none());
    for text in ["web@1:7", "@abababababababababab:1", "web-1.4711@ABababababababababab:1"] {
        assert_eq!(HoldId::parse(text).client_name(), None, "{text}");
    }
}

/// Signs that mean something in ids of each form, of one or another script.
const TRICKY: &str = "v1.5/7+3 :~r2 =a=:write 100%25 {Zürich}.4";

#[test]
fn a_note_takes_no_part_in_what_an_id_says_else() {
    let (ids, note) = (ids(None), Note::parse(TRICKY).unwrap());
    let [hold, read] = [ids.fresh(), ids.fresh_read()].map(|id| id.noted(&note));
    let writes = HoldId::parse(&format!("{hold}:write"));
    let (attempt, under) = (ids.attempt(&hold, 2), ids.under(&writes));
    assert_eq!((attempt.place(), attempt.write()), (Some(hold.as_str()), None));
    assert_eq!((under.place(), under.write()), (None, Some(writes.as_str())));
    for (id, reads) in
        [(&hold, false), (&read, true), (&writes, false), (&attempt, false), (&under, true)]
    {
        assert_eq!(id.note().as_deref(), Some(TRICKY), "{id}");
        assert_eq!(id.client(), Some(&*ids.client().to_string()));
        assert_eq!(id.reads(), reads, "{id}");
    }
    for id in [&hold, &read, &writes] {
        assert_eq!((id.place(), id.write()), (None, None), "{id}");
    }
    // It is as long as a hash, and has a `-` before it.
    let dashed = Note::parse(&format!("job-{}", "a".repeat(HoldId::HASH - 1))).unwrap();
    assert_eq!(ids.fresh().noted(&dashed).hash(), None);
    // Of other programs, and of ours without a note.
    let uuid = Uuid::from_u128(7);
    for text in [format!("{uuid}:81"), format!("{uuid}:1=a"), "a:1=a=".into(), "=a=".into()] {
        assert_eq!(HoldId::parse(&text).note(), None, "{text}");
    }
    assert!(drawn(&ids).iter().all(|id| id.note().is_none()));
}

#[test]
fn the_empty_text_is_no_hold_id() {
    let error = "".parse::<HoldId>().unwrap_err();
    assert!(error.is_invalid() && error.to_string().starts_with("\"\" is no hold id"));
}

proptest! {
    #[test]
    fn a_hold_id_is_read_as_it_is_shown(text in "(?s).{1,40}") {
        let hold: HoldId = text.parse().unwrap();
        prop_assert_eq!(hold.to_string(), text);
        prop_assert_eq!(hold.to_string().parse::<HoldId>().unwrap(), hold);
    }
}

proptest! {
    #[test]
    fn the_name_of_a_client_is_read_from_its_holds_as_it_was_given(name in "\\PC{1,16}") {
        let client = ClientId::new([7; 16], Some(&ClientName::parse(&name).unwrap()));
        let (ids, shown) = (HoldIds::new(client.clone(), None), client.to_string());
        for id in drawn(&ids) {
            prop_assert_eq!(id.client_name(), Some(name.clone()));
            prop_assert_eq!(id.client(), Some(&*shown));
        }
    }
}

proptest! {
    #[test]
    fn a_note_is_read_from_the_holds_as_it_was_given(text in "\\PC{1,66}", names_it: bool) {
        let text: String = text.chars().filter(|sign| !sign.is_control()).collect();
        prop_assume!((1..=Note::LONGEST).contains(&text.len()));
        let (name, note) = (ClientName::parse("a=b").unwrap(), Note::parse(&text).unwrap());
        let ids = HoldIds::new(ClientId::new([7; 16], names_it.then_some(&name)), None);
        for outer in [ids.fresh(), ids.fresh_read(), ids.fresh_unordered()] {
            let hold = outer.noted(&note);
            for id in [&hold, &ids.attempt(&hold, 1), &ids.under(&hold)] {
                prop_assert_eq!(id.note(), Some(text.clone()));
                prop_assert_eq!(id.client(), outer.client());
            }
            prop_assert_eq!((hold.reads(), hold.place()), (outer.reads(), None));
        }
        prop_assert_eq!(note.text(), text);
    }
}

fn refused(name: &str) -> String {
    let error = ClientName::parse(name).unwrap_err();
    assert!(error.is_invalid());
    error.to_string()
}

#[test]
fn names_that_cannot_stand_in_an_id_are_refused() {
    assert_eq!(refused(""), "the client name is empty");
    let long = "a".repeat(65);
    assert_eq!(refused(&long), "the client name has 65 bytes, the limit is 64");
    assert_eq!(refused("a\nb"), "the client name \"a\\nb\" has '\\n' in it");
    let refused = |note: &str| Note::parse(note).unwrap_err().to_string();
    assert_eq!(refused(&"é".repeat(101)), "the note has 202 bytes, the limit is 200");
    assert_eq!(refused("a\tb"), "the note \"a\\tb\" has '\\t' in it");
}

#[test]
fn what_means_something_in_an_id_is_encoded_in_the_name_of_a_client() {
    for (name, text) in [
        ("web-1.Eu_2", "web-1.Eu_2"),
        ("web:1", "web%3A1"),
        ("Zürich", "Z%C3%BCrich"),
        ("100%", "100%25"),
        ("a/1", "a%2F1"),
    ] {
        assert_eq!(&*ClientName::parse(name).unwrap().0, text);
    }
    // Of other programs.
    for text in ["100%", "100%3", "100%ZZ", "100%FF", "100%c3%bc", "a%0Ab"] {
        let hold = HoldId::parse(&format!("{text}@{}:1", "ab".repeat(10)));
        assert_eq!(hold.client_name().as_deref(), Some(text));
    }
}

#[test]
fn of_the_name_of_a_host_as_much_is_taken_as_an_id_has_room_for() {
    for (host, name) in [
        ("web-1", "web-1.7"),
        ("Zürich", "Z%C3%BCrich.7"),
        ("shop-5d8c7b9f6d-x2x7q.example", "7b9f6d-x2x7q.example.7"),
        ("-üüüü", "%C3%BC%C3%BC%C3%BC.7"),
        ("...", "unknown-host.7"),
        ("", "unknown-host.7"),
    ] {
        assert_eq!(&*ClientName::of_host(host, 7).0, name, "{host}");
    }
}

#[test]
fn by_default_a_client_is_called_by_its_host_and_process() {
    let name = ClientName::of_this_process();
    let (host, process) = name.0.rsplit_once('.').unwrap();
    assert!(!host.is_empty());
    assert_eq!(process, process::id().to_string());
    assert_eq!(ClientName::parse(&decoded(&name.0)).unwrap(), name);
}

#[test]
fn only_a_uuid_is_an_owner() {
    for text in ["", "1", "request 7", "9e107d9d-372b-4b68-8f2a-3542a9d6d1e", "9e107d9d372b "] {
        let error = text.parse::<Owner>().unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains(&format!("{text:?}")));
    }
}

proptest! {
    #[test]
    fn an_owner_is_read_as_it_is_shown(number: u128) {
        let owner = Owner(Uuid::from_u128(number));
        prop_assert_ne!(owner, Owner::new());
        prop_assert_eq!(owner.to_string().parse::<Owner>().unwrap(), owner);
    }
}

#[test]
fn the_limit_counts_bytes_not_characters() {
    assert!(LockName::parse(&"a".repeat(512)).is_ok());
    let error = LockName::parse(&"é".repeat(257)).unwrap_err();
    assert!(error.is_invalid());
    assert_eq!(error.to_string(), "the lock name has 514 bytes, the limit is 512");
}
