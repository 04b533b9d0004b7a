use super::*;
use crate::proto::{Asked, Support, Terms};

pub(super) const SECS: fn(u64) -> Duration = Duration::from_secs;
pub(super) const MS: fn(u64) -> Duration = Duration::from_millis;

pub(super) fn at_ms(ms: u64) -> Moment {
    Moment::BEGINNING + SECS(1_000) + MS(ms)
}

pub(super) fn at(secs: u64) -> Moment {
    at_ms(secs * 1_000)
}

pub(super) fn only(voter: usize) -> Shard {
    Shard { voter, number: 0 }
}

pub(super) fn register(guard: RestartGuard) -> Register {
    let mut register = register_of(vec![0, 1, 2]);
    register.suspicion.guard = guard;
    register
}

/// By the clusters of the voters.
pub(super) fn register_of(clusters: Vec<usize>) -> Register {
    let (guard, longest, drift) = (RestartGuard::Relative, SECS(30), Drift::DEFAULT);
    let quorum = Quorum::of(clusters.len());
    Register::new(clusters, quorum, Suspicion { guard, longest, drift })
}

/// Three voters that are first seen now, with these uptimes.
pub(super) fn met(guard: RestartGuard, durable: bool, uptimes: [Duration; 3]) -> Register {
    let mut register = register(guard);
    for (voter, uptime) in uptimes.into_iter().enumerate() {
        let life = format!("life {voter}");
        assert!(!register.note_server(only(voter), &life, uptime, durable, at(0)));
    }
    register
}

pub(super) fn quarantine(register: &Register, now: Moment) -> Vec<usize> {
    (0..register.voters.len())
        .filter(|voter| register.quarantine(only(*voter), now).is_some())
        .collect()
}

/// Why a voter is in quarantine, and for how many seconds.
fn quarantined(register: &Register, voter: usize, now: Moment) -> (Quarantine, u64) {
    let Quarantined { why, left } = register.quarantine(only(voter), now).unwrap().quarantined;
    (why, left.as_secs())
}

#[test]
fn a_voter_that_comes_back_as_another_is_out_for_the_longest_lease() {
    let mut register = met(RestartGuard::Relative, false, [SECS(100); 3]);
    assert!(
        !register.note_server(only(1), "life 1", SECS(150), false, at(50)),
        "a cut that has settled"
    );
    assert!(quarantine(&register, at(50)).is_empty());
    assert!(register.note_server(only(1), "another", SECS(4), false, at(50)));
    assert_eq!(register.quarantine(only(1), at(50)).unwrap().forgot, at(50));
    assert_eq!(quarantined(&register, 1, at(50)), (Quarantine::Restarted, 30));
    assert_eq!(quarantine(&register, at_ms(79_999)), [1]);
    assert!(quarantine(&register, at(80)).is_empty());
}

#[test]
fn a_voter_that_writes_every_change_forgets_nothing_if_it_did_so_before() {
    let mut register = register(RestartGuard::Strict);
    for (life, durable, forgot) in [("a", true, 0), ("b", true, 0), ("c", false, 1), ("d", true, 1)]
    {
        register.note_server(only(0), life, SECS(0), durable, at(50));
        assert_eq!(quarantine(&register, at(50)).len(), forgot, "{life}");
    }
}

/// How many of the voters, from the first on, have a fingerprint.
#[derive(Clone, Copy)]
struct Marked(usize);

#[test]
fn who_is_younger_than_others_may_have_forgotten() {
    use RestartGuard::{Relative, Strict};
    let (nobody, all) = (Marked(0), Marked(3));
    for (guard, durable, marked, ages_ms, out) in [
        // A first start.
        (Relative, false, nobody, [1_000, 0, 4_000], vec![]),
        (Relative, false, nobody, [100_000, 20_000, 12_000], vec![1, 2]),
        // However short the longest lease is: 30 s here.
        (Relative, false, nobody, [31_000, 28_000, 29_000], vec![1, 2]),
        (Strict, false, nobody, [1_000, 40_000, 2_000], vec![0, 2]),
        // Their data are new, although their settings forget nothing.
        (Relative, true, all, [3_600_000, 4_000, 7_200_000], vec![1]),
        // Other clients have named the data of one a moment before: it is no older for that.
        (Relative, true, all, [0, 900, 0], vec![]),
        (Strict, true, all, [0, 900, 0], vec![0, 1, 2]),
        // A hold of a second ago may have had the vote of a voter that came back without it.
        (Relative, false, all, [2_000, 500, 2_100], vec![1]),
        (Relative, false, all, [4_500, 0, 4_500], vec![1]),
        (Relative, false, all, [900, 100, 0], vec![]),
        // Also if this client marked most: the hold of another may have two voters of before.
        (Relative, false, all, [4_000, 0, 0], vec![1, 2]),
        (Relative, false, all, [6_000, 0, 0], vec![1, 2]),
        // Clients have not known the first two for long, but they may have run for as long.
        (Relative, false, Marked(2), [0, 1_000, 3_600_000], vec![]),
        // The other way round, the one is younger.
        (Relative, false, Marked(2), [3_600_000, 3_600_000, 0], vec![2]),
    ] {
        let mut register = met(guard, durable, ages_ms.map(MS));
        for (voter, data) in DATA.iter().enumerate().take(marked.0) {
            named(&mut register, voter, &birth("m", data), at(0));
        }
        assert_eq!(quarantine(&register, at(0)), out, "{guard:?}, {durable}: {ages_ms:?}");
    }
}

#[test]
fn the_first_client_may_take_its_time_to_reach_them_all() {
    for (last, out) in [(5, vec![]), (6, vec![2])] {
        let mut register = register(RestartGuard::Relative);
        for (voter, now) in [0, 3, last].into_iter().enumerate() {
            register.note_server(only(voter), &format!("life {voter}"), SECS(0), false, at(now));
            named(&mut register, voter, &birth("m", DATA[voter]), at(now));
        }
        assert_eq!(quarantine(&register, at(last)), out);
    }
}

#[test]
fn a_young_voter_is_out_until_a_longest_lease_after_its_start() {
    let register = met(RestartGuard::Relative, false, [100, 20, 12].map(SECS));
    assert_eq!(quarantined(&register, 2, at(0)), (Quarantine::Young, 18));
    assert_eq!([9, 10, 18].map(|secs| quarantine(&register, at(secs)).len()), [2, 1, 0]);
    // A first start stays one, however long ago it was.
    let first = met(RestartGuard::Relative, false, [5, 2, 0].map(SECS));
    assert!((0..40).all(|secs| quarantine(&first, at(secs)).is_empty()));
}

// A durable voter had votes before, so this is not the first start of all voters.
#[test]
fn who_started_together_with_a_durable_voter_may_have_forgotten() {
    let mut register = register(RestartGuard::Relative);
    register.note_server(only(1), "life 1", SECS(1), false, at(0));
    assert!(quarantine(&register, at(0)).is_empty());
    register.note_server(only(2), "life 2", SECS(1), true, at(0));
    assert_eq!(quarantine(&register, at(0)), [1]);
    assert!(quarantine(&register, at(29)).is_empty());
}

// A restart with all data makes a voter no younger. And what a voter did not
// write before is not on disk because it writes now.
#[test]
fn a_voter_stays_the_later_one_when_another_restarts_or_it_begins_to_write_every_change() {
    for guard in [RestartGuard::Relative, RestartGuard::Strict] {
        let mut register = register(guard);
        register.note_server(only(1), "life 1", SECS(10), false, at(0));
        register.note_server(only(2), "life 2", SECS(86_400), true, at(0));
        assert!(register.note_server(only(2), "next 2", SECS(0), true, at(1)));
        assert_eq!(quarantine(&register, at(1)), [1], "{guard:?}");
        assert!(!register.note_server(only(1), "life 1", SECS(11), true, at(1)));
        assert_eq!(quarantine(&register, at(1)), [1], "{guard:?}");
        assert!(register.note_server(only(1), "next 1", SECS(0), true, at(2)));
        assert_eq!(quarantined(&register, 1, at(19)), (Quarantine::Young, 1));
        assert!(quarantine(&register, at(20)).is_empty(), "{guard:?}");
    }
}

// The client's machine has just booted: the servers started long before its clock began.
#[test]
fn starts_before_the_clients_clock_began_are_told_apart_too() {
    for guard in [RestartGuard::Relative, RestartGuard::Strict] {
        let mut register = register(guard);
        let boot = Moment::BEGINNING + SECS(1);
        for (voter, uptime) in [500, 20, 600].into_iter().enumerate() {
            register.note_server(only(voter), &format!("life {voter}"), SECS(uptime), false, boot);
        }
        assert_eq!(quarantine(&register, boot), [1], "{guard:?}");
        assert_eq!(quarantined(&register, 1, boot), (Quarantine::Young, 10));
        assert!(quarantine(&register, boot + SECS(10)).is_empty());
    }
}

#[test]
fn a_restart_is_known_for_one_also_where_all_restart_and_with_the_guard_off_nobody_is_out() {
    let mut register = met(RestartGuard::Relative, false, [SECS(0); 3]);
    for voter in 0..3 {
        register.note_server(only(voter), &format!("next {voter}"), SECS(0), false, at(10));
    }
    assert_eq!(quarantine(&register, at(10)), [0, 1, 2]);
    register.suspicion.guard = RestartGuard::Off;
    assert!(quarantine(&register, at(10)).is_empty());
}

fn birth(fingerprint: &str, name: &str) -> Birth {
    aged(fingerprint, name, 0, 0)
}

/// The names that the data of three voters have at first.
const DATA: [&str; 3] = ["data-0/0", "data-1/0", "data-2/0"];

fn aged(fingerprint: &str, name: &str, age: u64, began: u64) -> Birth {
    let (fingerprint, name, set_back) = (fingerprint.into(), name.into(), Duration::ZERO);
    Birth { fingerprint, name, age: SECS(age), began: SECS(began), set_back }
}

/// Whether its data are the same as before.
fn named(register: &mut Register, voter: usize, birth: &Birth, now: Moment) -> bool {
    register.note_data(only(voter), birth, false, now) == Data::Kept
}

// It says that it is the same process and forgets nothing, but its data are gone.
#[test]
fn a_voter_whose_data_have_another_name_has_forgotten_whatever_it_says() {
    let mut register = met(RestartGuard::Relative, true, [SECS(100); 3]);
    for (voter, data) in DATA.iter().enumerate() {
        assert!(named(&mut register, voter, &birth("m", data), at(0)));
    }
    assert!(named(&mut register, 1, &birth("m", DATA[1]), at(10)));
    assert!(!named(&mut register, 1, &birth("m", "others"), at(20)));
    assert_eq!(register.quarantine(only(1), at(20)).unwrap().forgot, at(20));
    assert_eq!(quarantined(&register, 1, at(20)), (Quarantine::Emptied, 30));
    // Under another key, the fingerprint of the same data has another name.
    assert!(named(&mut register, 2, &birth("n", "others"), at(60)));
    assert!(quarantine(&register, at(60)).is_empty());
}

// Each answer carries the name of a voter's data.
#[test]
fn a_voter_that_answers_with_other_data_has_forgotten_and_while_it_has_no_mark_it_may_again() {
    let mut register = register(RestartGuard::Relative);
    assert!(!register.note_data_name(only(1), "data", at(0)), "it was not met");
    for (voter, data) in DATA.iter().enumerate() {
        register.note_server(only(voter), &format!("life {voter}"), SECS(100), true, at(0));
        named(&mut register, voter, &aged("m", data, 100, 100), at(0));
    }
    assert!(!register.note_data_name(only(1), "data-1", at(10)));
    assert!(quarantine(&register, at(10)).is_empty());
    for (now, is_news) in [(20, true), (25, false)] {
        assert_eq!(register.note_data_name(only(1), "", at(now)), is_news);
        assert_eq!(quarantined(&register, 1, at(now)), (Quarantine::Emptied, 30));
    }
    // Another client has given them a name, which this client finds.
    assert!(!named(&mut register, 1, &birth("m", "others/0"), at(28)));
    assert!(!register.note_data_name(only(1), "others", at(29)));
    assert!(quarantine(&register, at(58)).is_empty());
    // Another client was the first to give them one.
    assert!(register.note_data_name(only(1), "more", at(60)));
    assert_eq!(quarantine(&register, at(60)), [1]);
    assert!(!register.note_data_name(only(1), "more", at(61)));
    assert!(named(&mut register, 1, &birth("m", "more/0"), at(62)), "they are known by now");
    assert!(quarantine(&register, at(90)).is_empty());
}

/// All write each change to disk. At 10 s, clients have known the data of the second for 100 s.
fn durable() -> Register {
    let mut register = met(RestartGuard::Relative, true, [SECS(100); 3]);
    for (voter, data) in DATA.iter().enumerate() {
        named(&mut register, voter, &aged("m", data, 90, 0), at(0));
    }
    named(&mut register, 1, &aged("m", DATA[1], 100, 0), at(10));
    register
}

fn comes_back(register: &mut Register, age: u64, began: u64) -> Data {
    assert!(register.note_server(only(1), "another", SECS(age), true, at(20)));
    register.note_data(only(1), &aged("m", DATA[1], age, began), true, at(20))
}

// Others have looked before, and made the fingerprint older than this client had seen it.
#[test]
fn a_voter_that_comes_back_with_data_of_an_earlier_moment_has_forgotten() {
    let mut register = durable();
    assert_eq!(comes_back(&mut register, 110, 99), Data::Older);
    assert_eq!(register.quarantine(only(1), at(20)).unwrap().forgot, at(20));
    assert_eq!(quarantined(&register, 1, at(20)), (Quarantine::Emptied, 30));
    // This client or another gives them a name, and they may be deleted before that is seen.
    assert!(!register.note_data_name(only(1), "renamed", at(22)));
    assert!(quarantine(&register, at(52)).is_empty());
    assert!(register.note_data_name(only(1), "", at(23)));
    assert_eq!(register.note_data(only(1), &birth("m", "another"), false, at(25)), Data::Gone);
    assert_eq!(quarantine(&register, at(54)), [1]);
    assert!(quarantine(&register, at(55)).is_empty());
}

#[test]
fn a_voter_that_comes_back_with_all_that_was_seen_counts() {
    let mut register = durable();
    assert_eq!(comes_back(&mut register, 100, 100), Data::Kept);
    assert!(quarantine(&register, at(20)).is_empty());
    // From then on it is compared with the data that it has now.
    for (age, began, now, data) in
        [(0, 101, 25, Data::Kept), (99, 50, 30, Data::Kept), (98, 50, 30, Data::Older)]
    {
        let birth = aged("m", DATA[1], age, began);
        assert_eq!(register.note_data(only(1), &birth, false, at(now)), data);
    }
    assert_eq!(quarantine(&register, at(30)), [1]);
}

// It says itself that it forgets, so its data need no other name.
#[test]
fn a_voter_that_does_not_write_each_change_to_disk_may_have_data_of_an_earlier_moment() {
    let mut register = durable();
    register.note_server(only(1), "another", SECS(0), false, at(20));
    assert_eq!(register.note_data(only(1), &aged("m", DATA[1], 0, 50), true, at(20)), Data::Kept);
    assert_eq!(quarantined(&register, 1, at(20)), (Quarantine::Restarted, 30));
}

#[test]
fn a_vote_that_is_missing_is_proof_against_a_voter_that_came_back_since() {
    let mut register = durable();
    assert!(!register.note_missing_vote(only(1), at(5), at(15)), "somebody has deleted it");
    assert_eq!(comes_back(&mut register, 110, 105), Data::Kept);
    assert!(!register.note_missing_vote(only(1), at(20), at(22)), "it was given since");
    assert!(quarantine(&register, at(22)).is_empty());
    assert!(register.note_missing_vote(only(1), at(15), at(23)));
    assert_eq!(quarantined(&register, 1, at(23)), (Quarantine::Emptied, 30));
    assert!(!register.note_missing_vote(only(1), at(14), at(24)), "that is known");
}

// Voters whose clocks were ahead, and are right again.

/// The second voter's data, as somebody finds them who has not met it before.
fn set_back(by: Duration) -> Birth {
    Birth { set_back: by, ..aged("m", DATA[1], 110, 0) }
}

// What a clock may be off by in no time is nothing here either.
#[test]
fn a_voter_whose_clock_shows_less_than_at_a_look_before_is_out_and_its_data_get_another_name() {
    for (by, data) in [(0, Data::Kept), (2, Data::Kept), (3, Data::Overtaken)] {
        let mut register = met(RestartGuard::Relative, true, [SECS(100); 3]);
        assert_eq!(register.note_data(only(1), &set_back(MS(by)), false, at(20)), data);
        let is_out = data.need_a_name();
        assert_eq!(quarantine(&register, at(49)).len(), usize::from(is_out), "{by}");
        assert!(quarantine(&register, at(50)).is_empty());
        if is_out {
            let why = Quarantine::ClockSetBack(MS(by));
            assert_eq!(quarantined(&register, 1, at(20)), (why, 30));
        }
    }
}

#[test]
fn the_new_name_of_data_tells_all_clients_that_the_clock_was_set_back() {
    let renamed = set_back(SECS(60)).rename("fresh");
    assert_eq!(renamed, "fresh-60000~data-1");
    let birth = birth("m", &format!("{renamed}/0"));
    assert_eq!(birth.rename("fresher"), "fresher~fresh-60000");
    // By an answer or by a look, whichever comes first.
    for by_answer in [false, true] {
        let mut register = durable();
        if by_answer {
            assert!(register.note_data_name(only(1), &renamed, at(20)));
        } else {
            assert_eq!(register.note_data(only(1), &birth, false, at(20)), Data::Gone);
        }
        let why = Quarantine::ClockSetBack(SECS(60));
        assert_eq!(quarantined(&register, 1, at(20)), (why, 30));
        assert!(
            named(&mut register, 1, &birth, at(25)) && quarantine(&register, at(50)).is_empty()
        );
    }
    // Where other data were renamed for that, these are gone.
    let mut register = durable();
    assert!(register.note_data_name(only(1), "fresh-60000~others", at(20)));
    assert_eq!(quarantined(&register, 1, at(20)), (Quarantine::Emptied, 30));
}

// Two voters with one folder of data, or a copy of it.

/// Two voters of three have data of one name. The first is seen last.
fn copied() -> Register {
    let mut register = durable();
    register.note_disconnect(only(0));
    assert!(register.note_server(only(0), "another", SECS(0), true, at(20)));
    assert_eq!(
        register.note_data(only(0), &aged("m", DATA[1], 110, 110), true, at(20)),
        Data::Shared
    );
    register
}

// Nobody knows which is the copy: another client may have seen them in the other order.
#[test]
fn two_voters_whose_data_have_one_name_are_both_out_and_both_get_another() {
    let mut register = copied();
    for voter in 0..2 {
        assert_eq!(quarantined(&register, voter, at(20)), (Quarantine::Copied, 30));
    }
    // If they cannot be renamed, the quarantine is no longer than for any other reason.
    assert_eq!(
        register.note_data(only(1), &aged("m", DATA[1], 120, 0), false, at(30)),
        Data::Shared
    );
    assert_eq!(quarantine(&register, at(49)), [0, 1]);
    assert!(quarantine(&register, at(50)).is_empty());
    // A voter that starts again may have a copy again.
    assert!(register.note_server(only(1), "a third", SECS(0), true, at(60)));
    assert_eq!(
        register.note_data(only(1), &aged("m", DATA[1], 130, 130), true, at(60)),
        Data::Shared
    );
    assert_eq!(quarantined(&register, 1, at(60)), (Quarantine::Copied, 30));
}

#[test]
fn who_comes_when_one_of_two_copies_was_renamed_keeps_both_out() {
    let renamed = aged("m", "data-1/0", 0, 0).rename("fresh");
    assert_eq!(renamed, "fresh~data-1");
    let again = aged("m", &format!("{renamed}/0"), 0, 0).rename("fresher");
    assert_eq!(again, "fresher~fresh");
    // In either order.
    for first in [0, 1] {
        let mut register = met(RestartGuard::Relative, true, [SECS(100); 3]);
        let births = [aged("m", &format!("{renamed}/0"), 0, 0), aged("m", DATA[1], 100, 0)];
        named(&mut register, first, &births[first], at(0));
        let data = register.note_data(only(1 - first), &births[1 - first], false, at(1));
        assert_eq!(data, if first == 0 { Data::Shared } else { Data::Kept });
        for voter in 0..2 {
            assert_eq!(quarantined(&register, voter, at(1)), (Quarantine::Copied, 30));
        }
        assert_eq!(register.note_data(only(1), &births[1], false, at(2)), Data::Shared);
        // A client that was connected learns the new name by the next answer or look.
        assert!(register.note_data_name(only(1), "other~data-1", at(3)));
        assert_eq!(quarantined(&register, 1, at(3)), (Quarantine::Copied, 30));
        let other = aged("m", "other~data-1/0", 0, 0);
        assert_eq!(register.note_data(only(1), &other, false, at(4)), Data::Kept);
        assert_eq!(register.note_data(only(0), &births[0], false, at(5)), Data::Kept);
        assert_eq!(quarantine(&register, at(32)), [1]);
    }
}

// None of these is a copy, or has a second vote.
#[test]
fn servers_that_rightly_have_data_of_one_name_count() {
    let birth = aged("m", DATA[1], 110, 110);
    // The server, which starts again, is at the address of another voter now.
    let mut register = durable();
    register.note_disconnect(only(0));
    register.note_disconnect(only(1));
    register.note_server(only(0), "another", SECS(0), true, at(20));
    assert_eq!(register.note_data(only(0), &birth, true, at(20)), Data::Gone);
    assert_eq!(quarantine(&register, at(20)), [0]);
    // One server at two addresses.
    let mut register = durable();
    register.note_server(only(0), "life 1", SECS(0), true, at(20));
    assert_eq!(register.note_data(only(0), &birth, true, at(20)), Data::Gone);
    assert_eq!(quarantine(&register, at(20)), [0]);
    // Two voters of a cluster are on one server, whose replica takes over.
    let mut register = register_of(vec![0, 0, 1]);
    for voter in 0..2 {
        register.note_server(only(voter), "life", SECS(100), true, at(0));
        named(&mut register, voter, &birth, at(0));
    }
    register.note_server(Shard { voter: 0, number: 1 }, "successor", SECS(120), true, at(20));
    let data = register.note_data(Shard { voter: 0, number: 1 }, &birth, false, at(20));
    assert_eq!(data, Data::Kept);
    assert!(quarantine(&register, at(20)).is_empty());
    // Under another key the name is of other data.
    let mut register = durable();
    register.note_data(only(0), &aged("n", DATA[1], 110, 110), false, at(20));
    assert!(quarantine(&register, at(20)).is_empty());
}

// Servers that took over while some clients still counted the grants of the one before.

const OVERLAP: Duration = Duration::from_secs(9);

/// The server of the second voter was promoted once before, and then now.
fn promoted(at_secs: u64) -> Register {
    let mut register = met(RestartGuard::Relative, true, [SECS(100); 3]);
    register.note_overlap(only(1), OVERLAP);
    register.note_server(only(1), "successor", SECS(0), false, at(at_secs));
    register
}

fn is_out(register: &Register, secs: u64) -> bool {
    register.quarantine(only(1), at(secs)).is_some()
}

// A grant that the old server gave at 59 is trusted until 89.
#[test]
fn a_successor_is_out_until_no_lease_of_its_predecessor_can_be_left() {
    let register = promoted(50);
    assert!(is_out(&register, 50 + 9 + 29) && !is_out(&register, 50 + 9 + 30));
    let left = register.quarantine(only(1), at(50)).unwrap().quarantined.left;
    assert_eq!(left, OVERLAP + SECS(30));
}

/// Three voters, first seen 50 s after the beginning. The second took over from another server.
fn met_after_a_promotion(guard: RestartGuard, uptimes: [u64; 3]) -> Register {
    let mut register = register(guard);
    register.note_overlap(only(1), OVERLAP);
    for (voter, uptime) in uptimes.into_iter().enumerate() {
        register.note_server(only(voter), &format!("life {voter}"), SECS(uptime), false, at(50));
    }
    register
}

#[test]
fn who_comes_after_a_promotion_keeps_the_successor_out_for_as_long() {
    for (guard, uptimes, until) in [
        // It was promoted 5 s before, and the others are older than any lease, or not.
        (RestartGuard::Relative, [100, 5, 100], 45 + 9 + 30),
        (RestartGuard::Strict, [5, 5, 5], 45 + 9 + 30),
        // All were promoted longer ago than a lease lasts. Clients may still have counted it.
        (RestartGuard::Relative, [31, 31, 31], 19 + 9 + 30),
    ] {
        let register = met_after_a_promotion(guard, uptimes);
        assert!(is_out(&register, until - 1) && !is_out(&register, until), "{uptimes:?}");
    }
}

// The time in which its predecessor may have counted makes it no younger.
#[test]
fn servers_that_started_together_are_not_kept_out_for_what_they_might_follow() {
    let register = met_after_a_promotion(RestartGuard::Relative, [2, 2, 2]);
    assert!((0..3).all(|voter| register.quarantine(only(voter), at(50)).is_none()));
}

#[test]
fn slots_that_come_to_a_known_server_without_their_data_are_out_for_as_long() {
    let mut register = promoted(50);
    let other = Shard { voter: 1, number: 1 };
    register.note_move(other, only(1), true, at(200));
    assert!(is_out(&register, 200 + 9 + 29) && !is_out(&register, 200 + 9 + 30));
}

// The old server gives the vote to somebody else as soon as its lease is over there, and that one
// counts it: so a vote which ends before the last client has left that server proves nothing to
// the new one.
#[test]
fn a_renewal_counts_the_successor_only_with_a_vote_that_outlasts_the_predecessor() {
    let register = promoted(50);
    let quarantine = register.quarantine(only(1), at(51)).expect("it is kept out");
    let mut support = Support::new(3, at(0), Duration::ZERO, SECS(1));
    for (lease, counts) in [(8, false), (20, true)] {
        let terms = Terms::new(SECS(lease), Drift { ppm: 0, fixed: Duration::ZERO });
        let (is_first, is_passed, sent, heard, kept_out_then) = (true, false, at(49), at(49), None);
        let asked = Asked { is_first, is_passed, sent, terms, heard, quarantine: kept_out_then };
        support.heard(1, &Verdict::Granted, asked);
        let counted = support.verdict_that_counts(1, Verdict::Granted, Some(quarantine));
        assert_eq!(counted == Verdict::Granted, counts, "a lease of {lease} s, from 49 on");
    }
}
