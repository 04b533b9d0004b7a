use super::*;

pub(super) const SECS: fn(u64) -> Duration = Duration::from_secs;
pub(super) const MS: fn(u64) -> Duration = Duration::from_millis;

pub(super) fn at_ms(ms: u64) -> Moment {
    Moment::BEGINNING + SECS(1_000) + MS(ms)
}

pub(super) fn at(secs: u64) -> Moment {
    at_ms(secs * 1_000)
}

pub(super) fn only(voter: usize) -> Place {
    Place { voter, shard: 0 }
}

pub(super) fn register(guard: RestartGuard) -> Register {
    let suspicion = Suspicion { guard, longest: SECS(30), drift: Drift::DEFAULT };
    Register::new(vec![0, 1, 2], Quorum::of(3), suspicion)
}

/// Three voters that were met now, with these uptimes in seconds.
fn met(guard: RestartGuard, uptimes: [u64; 3]) -> Register {
    let mut register = register(guard);
    for (voter, uptime) in uptimes.into_iter().enumerate() {
        assert!(!register.met(only(voter), &format!("life {voter}"), SECS(uptime), false, at(0)));
    }
    register
}

pub(super) fn kept_out(register: &Register, now: Moment) -> Vec<usize> {
    (0..register.voters.len())
        .filter(|voter| register.kept_out(only(*voter), now).is_some())
        .collect()
}

fn quarantined(why: Quarantine, left_secs: u64) -> Quarantined {
    Quarantined { why, left: SECS(left_secs) }
}

#[test]
fn a_voter_that_comes_back_as_another_is_out_for_the_longest_lease() {
    let mut register = met(RestartGuard::Relative, [100; 3]);
    assert!(register.met(only(1), "another", SECS(4), false, at(50)));
    let out = register.kept_out(only(1), at(50)).unwrap();
    assert_eq!((out.forgot, out.quarantined), (at(50), quarantined(Quarantine::Restarted, 30)));
    assert_eq!(kept_out(&register, at_ms(79_999)), [1]);
    assert!(kept_out(&register, at(80)).is_empty());
}

#[test]
fn a_cut_that_has_settled_is_no_restart() {
    let mut register = met(RestartGuard::Relative, [100; 3]);
    assert!(!register.met(only(1), "life 1", SECS(150), false, at(50)));
    assert!(kept_out(&register, at(50)).is_empty());
}

#[test]
fn a_voter_that_writes_every_change_forgets_nothing_if_it_did_so_before() {
    let mut register = register(RestartGuard::Strict);
    for (life, durable, forgot) in [("a", true, 0), ("b", true, 0), ("c", false, 1), ("d", true, 1)]
    {
        register.met(only(0), life, SECS(0), durable, at(50));
        assert_eq!(kept_out(&register, at(50)).len(), forgot, "{life}");
    }
}

#[test]
fn who_started_with_the_others_is_no_restart_and_who_started_later_may_be_one() {
    assert!(kept_out(&met(RestartGuard::Relative, [1, 0, 4]), at(0)).is_empty(), "a first start");
    let register = met(RestartGuard::Relative, [100, 20, 12]);
    assert_eq!(kept_out(&register, at(0)), [1, 2]);
    let young = quarantined(Quarantine::Young, 18);
    assert_eq!(
        register.kept_out(only(2), at(0)).unwrap().quarantined,
        young,
        "30 s after its start"
    );
    assert_eq!(kept_out(&register, at(10)), [2]);
    // Nor does a first start become anything else while it grows old.
    let first = met(RestartGuard::Relative, [5, 2, 0]);
    assert!((0..40).all(|secs| kept_out(&first, at(secs)).is_empty()));
}

// However short the longest lease is: 30 s here, which those that started five seconds apart pass
// one after the other.
#[test]
fn who_started_within_a_longest_lease_is_young_where_another_did_not() {
    let register = met(RestartGuard::Relative, [31, 28, 29]);
    assert_eq!(kept_out(&register, at(0)), [1, 2]);
    assert_eq!(kept_out(&register, at(1)), [1]);
    assert!(kept_out(&register, at(2)).is_empty());
}

// One that is durable had its votes before: it is no first start of all.
#[test]
fn who_started_together_with_a_durable_voter_may_have_forgotten() {
    let mut register = register(RestartGuard::Relative);
    register.met(only(1), "life 1", SECS(1), false, at(0));
    assert!(kept_out(&register, at(0)).is_empty());
    register.met(only(2), "life 2", SECS(1), true, at(0));
    assert_eq!(kept_out(&register, at(0)), [1]);
    assert!(kept_out(&register, at(29)).is_empty());
}

// Whoever had the data of before has it still, and is no younger for that.
#[test]
fn a_voter_stays_the_later_one_when_the_others_start_again() {
    let mut register = register(RestartGuard::Relative);
    register.met(only(1), "life 1", SECS(10), false, at(0));
    register.met(only(2), "life 2", SECS(86_400), true, at(0));
    assert_eq!(kept_out(&register, at(0)), [1]);
    assert!(register.met(only(2), "next 2", SECS(0), true, at(1)));
    assert_eq!(kept_out(&register, at(2)), [1]);
    let young = quarantined(Quarantine::Young, 1);
    assert_eq!(register.kept_out(only(1), at(19)).unwrap().quarantined, young);
    assert!(kept_out(&register, at(20)).is_empty());
}

// What it did not write before is not on disk for that.
#[test]
fn a_voter_stays_young_when_it_begins_to_write_every_change() {
    for guard in [RestartGuard::Relative, RestartGuard::Strict] {
        let mut register = register(guard);
        register.met(only(1), "life 1", SECS(10), false, at(0));
        register.met(only(2), "life 2", SECS(86_400), true, at(0));
        assert!(!register.met(only(1), "life 1", SECS(11), true, at(1)));
        assert_eq!(kept_out(&register, at(1)), [1], "{guard:?}");
        assert!(register.met(only(1), "next 1", SECS(0), true, at(2)));
        assert_eq!(kept_out(&register, at(19)), [1], "{guard:?}");
        assert!(kept_out(&register, at(20)).is_empty(), "{guard:?}");
    }
}

// The client's machine has just booted: the servers started long before its clock began.
#[test]
fn starts_before_the_clients_clock_began_are_told_apart_too() {
    for guard in [RestartGuard::Relative, RestartGuard::Strict] {
        let mut register = register(guard);
        let boot = Moment::BEGINNING + SECS(1);
        for (voter, uptime) in [500, 20, 600].into_iter().enumerate() {
            register.met(only(voter), &format!("life {voter}"), SECS(uptime), false, boot);
        }
        assert_eq!(kept_out(&register, boot), [1], "{guard:?}");
        let young = quarantined(Quarantine::Young, 10);
        assert_eq!(register.kept_out(only(1), boot).unwrap().quarantined, young);
        assert!(kept_out(&register, boot + SECS(10)).is_empty());
    }
}

#[test]
fn a_restart_is_known_for_one_also_where_all_restart() {
    let mut register = met(RestartGuard::Relative, [0; 3]);
    for voter in 0..3 {
        register.met(only(voter), &format!("next {voter}"), SECS(0), false, at(10));
    }
    assert_eq!(kept_out(&register, at(10)), [0, 1, 2]);
}

#[test]
fn strictly_every_young_voter_is_out_and_with_the_guard_off_nobody() {
    let mut strict = met(RestartGuard::Strict, [1, 40, 2]);
    assert_eq!(kept_out(&strict, at(0)), [0, 2]);
    strict.suspicion.guard = RestartGuard::Off;
    strict.met(only(1), "another", SECS(0), false, at(0));
    assert!(kept_out(&strict, at(0)).is_empty());
}

fn birth(mark: &str, name: &str) -> Birth {
    aged(mark, name, 0, 0)
}

fn aged(mark: &str, name: &str, age: u64, began: u64) -> Birth {
    Birth { mark: mark.into(), name: name.into(), age: SECS(age), began: SECS(began) }
}

/// Whether its data are what they were.
fn named(register: &mut Register, voter: usize, birth: &Birth, now: Moment) -> bool {
    register.named(only(voter), birth, false, now) == Data::Kept
}

// It says that it is the same process and that it forgets nothing, and its data are gone.
#[test]
fn a_voter_whose_data_have_another_name_has_forgotten_whatever_it_says() {
    let mut register = register(RestartGuard::Relative);
    for voter in 0..3 {
        register.met(only(voter), &format!("life {voter}"), SECS(100), true, at(0));
        assert!(named(&mut register, voter, &birth("m", "data"), at(0)));
    }
    assert!(named(&mut register, 1, &birth("m", "data"), at(10)));
    assert!(!named(&mut register, 1, &birth("m", "others"), at(20)));
    let out = register.kept_out(only(1), at(20)).unwrap();
    assert_eq!((out.forgot, out.quarantined), (at(20), quarantined(Quarantine::Emptied, 30)));
    assert!(kept_out(&register, at(50)).is_empty());
    // Where the mark stands elsewhere, the same data have another name.
    assert!(named(&mut register, 2, &birth("n", "others"), at(60)));
    assert!(kept_out(&register, at(60)).is_empty());
}

// Each answer to a call says which data a voter has.
#[test]
fn a_voter_that_answers_with_other_data_has_forgotten_and_while_it_has_no_mark_it_may_again() {
    let mut register = register(RestartGuard::Relative);
    assert!(!register.has_others(only(1), "data", at(0)), "it was not met");
    for voter in 0..3 {
        register.met(only(voter), &format!("life {voter}"), SECS(100), true, at(0));
        named(&mut register, voter, &aged("m", "data/0", 100, 100), at(0));
    }
    assert!(!register.has_others(only(1), "data", at(10)));
    assert!(kept_out(&register, at(10)).is_empty());
    let emptied = |register: &Register, now| {
        let out = register.kept_out(only(1), at(now)).unwrap();
        assert_eq!(out.quarantined, quarantined(Quarantine::Emptied, 30));
        assert_eq!(kept_out(register, at(now)), [1]);
    };
    for (now, is_news) in [(20, true), (25, false)] {
        assert_eq!(register.has_others(only(1), "", at(now)), is_news);
        emptied(&register, now);
    }
    // Somebody has given them a name, and this client meets it.
    assert!(!named(&mut register, 1, &birth("m", "others/0"), at(28)));
    assert!(!register.has_others(only(1), "others", at(29)));
    assert!(kept_out(&register, at(58)).is_empty());
    // Another client was the first to give them one.
    assert!(register.has_others(only(1), "more", at(60)));
    emptied(&register, 60);
    assert!(!register.has_others(only(1), "more", at(61)));
    assert!(named(&mut register, 1, &birth("m", "more/0"), at(62)), "they are known by now");
    assert!(kept_out(&register, at(90)).is_empty());
}

// Ada may hold by it and by one that Ben does not meet.
#[test]
fn a_voter_with_new_data_is_young_beside_others_though_it_forgets_nothing() {
    let mut register = register(RestartGuard::Relative);
    for (voter, age) in [(0, 3600), (1, 4), (2, 7200)] {
        register.met(only(voter), &format!("life {voter}"), SECS(age), true, at(0));
        named(&mut register, voter, &birth("m", "data"), at(0));
    }
    assert_eq!(kept_out(&register, at(0)), [1]);
    let young = quarantined(Quarantine::Young, 26);
    assert_eq!(register.kept_out(only(1), at(0)).unwrap().quarantined, young);
}

// Other clients have named some of them a moment before: they are no older for that.
#[test]
fn voters_that_forget_nothing_and_are_met_for_the_first_time_count_at_once() {
    for guard in [RestartGuard::Relative, RestartGuard::Strict] {
        let mut register = register(guard);
        for (voter, age) in [(0, 0), (1, 4), (2, 0)] {
            register.met(only(voter), &format!("life {voter}"), SECS(age), true, at(0));
            named(&mut register, voter, &birth("m", "data"), at(0));
        }
        let out = if guard == RestartGuard::Strict { vec![0, 1, 2] } else { vec![] };
        assert_eq!(kept_out(&register, at(0)), out, "{guard:?}");
    }
}

// A hold of a second ago may have had the vote of one that has come back without it. Servers that
// were never marked before count at once, however long the first client took to reach them all.
#[test]
fn who_was_marked_later_than_the_others_is_young_unless_this_client_marked_most_of_them() {
    for (ages_ms, out) in [
        ([2_000, 500, 2_100], vec![1]),
        ([4_500, 0, 4_500], vec![1]),
        ([900, 100, 0], vec![]),
        ([4_000, 0, 0], vec![]),
        ([6_000, 0, 0], vec![1, 2]),
    ] {
        let mut register = register(RestartGuard::Relative);
        for (voter, age_ms) in ages_ms.into_iter().enumerate() {
            register.met(only(voter), &format!("life {voter}"), MS(age_ms), false, at(0));
            named(&mut register, voter, &birth("m", "data"), at(0));
        }
        assert_eq!(kept_out(&register, at(0)), out, "{ages_ms:?}");
    }
}

// Clients have not known the first two for long, though they have run for as long as the third.
#[test]
fn nobody_with_a_mark_is_young_by_what_one_without_says_of_its_age() {
    let mut register = register(RestartGuard::Relative);
    for (voter, age) in [(0, 0), (1, 1), (2, 3600)] {
        register.met(only(voter), &format!("life {voter}"), SECS(age), false, at(0));
        if voter < 2 {
            named(&mut register, voter, &birth("m", "data"), at(0));
        }
    }
    assert!(kept_out(&register, at(0)).is_empty());
    // The other way round it tells something.
    register.met(only(2), "again", SECS(0), false, at(1));
    assert_eq!(kept_out(&register, at(1)), [2]);
}

/// All write each change to disk; clients knew the data of the second for 100 s at 10 s.
fn durable() -> Register {
    let mut register = register(RestartGuard::Relative);
    for voter in 0..3 {
        register.met(only(voter), &format!("life {voter}"), SECS(100), true, at(0));
        named(&mut register, voter, &aged("m", "data", 90, 0), at(0));
    }
    named(&mut register, 1, &aged("m", "data", 100, 0), at(10));
    register
}

fn comes_back(register: &mut Register, age: u64, began: u64) -> Data {
    assert!(register.met(only(1), "another", SECS(age), true, at(20)));
    register.named(only(1), &aged("m", "data", age, began), true, at(20))
}

// Others have looked before, and made the mark older than this client had seen it.
#[test]
fn a_voter_that_comes_back_with_data_of_an_earlier_moment_has_forgotten() {
    let mut register = durable();
    assert_eq!(comes_back(&mut register, 110, 99), Data::Older);
    let out = register.kept_out(only(1), at(20)).unwrap();
    assert_eq!((out.forgot, out.quarantined), (at(20), quarantined(Quarantine::Emptied, 30)));
    // They get another name, by this client or another; and may be deleted before it is known.
    assert!(!register.has_others(only(1), "renamed", at(22)));
    assert!(kept_out(&register, at(52)).is_empty());
    assert!(register.has_others(only(1), "", at(23)));
    assert_eq!(register.named(only(1), &birth("m", "another"), false, at(25)), Data::Gone);
    assert_eq!(kept_out(&register, at(54)), [1]);
    assert!(kept_out(&register, at(55)).is_empty());
}

#[test]
fn a_voter_that_comes_back_with_all_that_was_seen_counts() {
    let mut register = durable();
    assert_eq!(comes_back(&mut register, 100, 100), Data::Kept);
    assert!(kept_out(&register, at(20)).is_empty());
    // From then on it is compared with what it has now.
    assert_eq!(register.named(only(1), &aged("m", "data", 0, 101), false, at(25)), Data::Kept);
    assert_eq!(register.named(only(1), &aged("m", "data", 99, 50), false, at(30)), Data::Kept);
    assert_eq!(register.named(only(1), &aged("m", "data", 98, 50), false, at(30)), Data::Older);
    assert_eq!(kept_out(&register, at(30)), [1]);
}

// It says itself that it forgets: nobody has to be told.
#[test]
fn a_voter_that_does_not_write_each_change_to_disk_may_have_data_of_an_earlier_moment() {
    let mut register = durable();
    register.met(only(1), "another", SECS(0), false, at(20));
    assert_eq!(register.named(only(1), &aged("m", "data", 0, 50), true, at(20)), Data::Kept);
    let out = register.kept_out(only(1), at(20)).unwrap();
    assert_eq!(out.quarantined, quarantined(Quarantine::Restarted, 30));
}

#[test]
fn a_vote_that_is_missing_is_proof_against_a_voter_that_came_back_since() {
    let mut register = durable();
    assert!(!register.lacks_vote(only(1), at(5), at(15)), "somebody has deleted it");
    assert_eq!(comes_back(&mut register, 110, 105), Data::Kept);
    assert!(!register.lacks_vote(only(1), at(20), at(22)), "it was given since");
    assert!(kept_out(&register, at(22)).is_empty());
    assert!(register.lacks_vote(only(1), at(15), at(23)));
    let out = register.kept_out(only(1), at(23)).unwrap();
    assert_eq!(out.quarantined, quarantined(Quarantine::Emptied, 30));
    assert!(!register.lacks_vote(only(1), at(14), at(24)), "that is known");
}
