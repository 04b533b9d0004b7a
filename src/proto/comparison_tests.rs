use super::*;
use crate::proto::Side;

const SECS: fn(u64) -> Duration = Duration::from_secs;

fn at(secs: u64) -> Moment {
    Moment::BEGINNING + SECS(secs)
}

/// The time until which a client must connect.
fn due() -> Moment {
    at(10)
}

fn configuration(number: u32, voters: usize, replaced: Option<usize>) -> VoterConfiguration {
    VoterConfiguration {
        number,
        voters,
        replaced,
        longest_lease: SECS(30),
        drift_ppm: 10_000,
        drift_fixed: Duration::from_millis(2),
        restart_guard: true,
    }
}

/// A client that is about to connect, with connections to so many voters.
fn of(quorum: Quorum) -> Comparison {
    let mut sets = quorum.each().map(|(_, set)| set.len());
    let configuration = configuration(2, sets.next().unwrap(), sets.next());
    let mut comparison = Comparison::new(configuration, quorum, vec![false; quorum.voters()]);
    (0..quorum.voters()).for_each(|voter| comparison.note_connection(voter));
    comparison.begin(at(0));
    comparison
}

fn entry(configuration: VoterConfiguration, clashes: bool) -> ConfigurationEntry {
    let clashes = u8::from(clashes);
    ConfigurationEntry::read(&format!("{clashes} 1000 75000 {}\tweb-1", configuration.text()))
        .unwrap()
}

/// An answer without any entry that clashes.
fn agrees(comparison: &mut Comparison, voter: usize, now: Moment) -> Option<Change> {
    comparison.note_answer(voter, "it", Ok(Vec::new()), now)
}

fn disagrees(comparison: &mut Comparison, voter: usize, now: Moment) -> Option<Change> {
    let entries = Ok(vec![entry(configuration(2, 7, None), true)]);
    comparison.note_answer(voter, "it", entries, now)
}

fn is_silent(comparison: &mut Comparison, voter: usize, now: Moment) {
    let change = comparison.note_answer(voter, "it", Err(Cause::TimedOut(SECS(1))), now);
    assert_eq!(change, None);
}

/// The voters that are asked now, and whether they all get the client's configuration.
fn asked(comparison: &mut Comparison, now: Moment) -> (Vec<usize>, bool) {
    let questions = comparison.ask(now);
    let tells = questions.first().is_some_and(|question| question.tells);
    assert!(questions.iter().all(|question| question.tells == tells));
    (questions.into_iter().map(|question| question.voter).collect(), tells)
}

/// A client of three voters that has compared with all of them now.
fn joined(now: Moment) -> Comparison {
    let mut comparison = of(Quorum::of(3));
    for _ in 0..2 {
        assert_eq!(asked(&mut comparison, now).0, [0, 1, 2]);
        (0..3).for_each(|voter| assert_eq!(agrees(&mut comparison, voter, now), None));
        let next = comparison.join(now, at(10));
        assert!(matches!(next, JoinNext::Ask | JoinNext::Joined), "{next:?}");
    }
    assert!((0..3).all(|voter| comparison.apart(voter).is_none()));
    comparison
}

#[test]
fn who_connects_asks_a_majority_first_and_then_says_what_it_believes() {
    let mut comparison = of(Quorum::of(3));
    assert_eq!(asked(&mut comparison, at(0)), (vec![0, 1, 2], false));
    assert_eq!(comparison.join(at(0), due()), JoinNext::Wait(Some(due())));
    agrees(&mut comparison, 0, at(0));
    assert_eq!(asked(&mut comparison, at(0)), (vec![], false), "its turn is in 15 s");
    let turn = at(15);
    assert_eq!(comparison.join(at(0), at(60)), JoinNext::Wait(Some(turn)));
    agrees(&mut comparison, 1, at(0));
    comparison.note_connection(0);
    assert_eq!(asked(&mut comparison, at(0)), (vec![0], false), "the third may refuse");
    agrees(&mut comparison, 0, at(0));
    agrees(&mut comparison, 2, at(0));
    assert!(comparison.apart(0).is_some(), "a question alone is no comparison");
    assert_eq!(comparison.join(at(0), due()), JoinNext::Ask);
    assert_eq!(asked(&mut comparison, at(0)), (vec![0, 1, 2], true));
    agrees(&mut comparison, 0, at(0));
    agrees(&mut comparison, 1, at(0));
    assert!(matches!(comparison.join(at(0), due()), JoinNext::Wait(_)), "the third may refuse");
    assert!(comparison.apart(0).is_none() && comparison.apart(2).is_some());
    agrees(&mut comparison, 2, at(0));
    assert_eq!(comparison.join(at(0), due()), JoinNext::Joined);
}

#[test]
fn who_is_refused_has_said_nothing() {
    let mut comparison = of(Quorum::of(3));
    assert_eq!(asked(&mut comparison, at(0)), (vec![0, 1, 2], false));
    assert!(disagrees(&mut comparison, 2, at(0)).is_some());
    let JoinNext::Refused(why) = comparison.join(at(0), due()) else { panic!("it is refused") };
    assert!(
        why.starts_with("configuration mismatch with other clients of voter it: it has "),
        "{why}"
    );
    assert!(why.contains("others have configuration 2 with 7 voters"), "{why}");
    assert!(why.ends_with("this one is let in after 74s without the others"), "{why}");
    assert!(comparison.ask(at(0)).iter().all(|question| !question.tells));
}

// Its clients may have another configuration. A voter without a connection is not waited for.
#[test]
fn a_silent_voter_beside_a_majority_is_waited_for_a_second_if_it_is_connected() {
    for (is_connected, waits) in [(true, true), (false, false)] {
        let mut comparison = of(Quorum::of(3));
        comparison.voters[2].connections = u64::from(is_connected);
        asked(&mut comparison, at(0));
        agrees(&mut comparison, 0, at(0));
        agrees(&mut comparison, 1, at(0));
        is_silent(&mut comparison, 2, at(0));
        let next = comparison.join(at(0), due());
        let again = at(0) + Duration::from_millis(500);
        assert_eq!(next, if waits { JoinNext::Wait(Some(again)) } else { JoinNext::Ask });
        assert_eq!(comparison.join(at(1), due()) == JoinNext::Ask, waits, "not for ever");
    }
}

#[test]
fn who_compares_with_too_few_asks_again_until_its_time_is_over_and_waits_for_what_it_asked() {
    let mut comparison = of(Quorum::of(3));
    asked(&mut comparison, at(0));
    agrees(&mut comparison, 0, at(0));
    is_silent(&mut comparison, 1, at(1));
    is_silent(&mut comparison, 2, at(1));
    let again = at(1) + Duration::from_millis(500);
    assert_eq!(comparison.join(at(2), due()), JoinNext::Wait(Some(again)));
    assert_eq!(asked(&mut comparison, at(2)), (vec![1, 2], false));
    assert_eq!(comparison.join(at(10), due()), JoinNext::Wait(None));
    is_silent(&mut comparison, 1, at(11));
    assert_eq!(asked(&mut comparison, at(12)), (vec![], false), "it is too late");
    is_silent(&mut comparison, 2, at(12));
    let silent = Verdict::Unknown(Cause::TimedOut(SECS(1)));
    let verdicts = vec![Verdict::Reached, silent.clone(), silent];
    assert_eq!(comparison.join(at(12), due()), JoinNext::Failed(verdicts));
}

// A majority answers when the time is over: the client still sends its configuration.
#[test]
fn the_last_answer_in_time_lets_a_client_in() {
    let mut comparison = of(Quorum::of(3));
    asked(&mut comparison, at(0));
    assert_eq!(comparison.join(at(10), due()), JoinNext::Wait(None));
    (0..3).for_each(|voter| drop(agrees(&mut comparison, voter, at(10))));
    assert_eq!(comparison.join(at(10), due()), JoinNext::Ask);
    assert_eq!(asked(&mut comparison, at(10)), (vec![0, 1, 2], true));
    (0..3).for_each(|voter| drop(agrees(&mut comparison, voter, at(11))));
    assert_eq!(comparison.join(at(11), due()), JoinNext::Joined);
    assert_eq!(comparison.due(), Some(at(26)), "it goes on");
}

#[test]
fn a_new_connection_is_compared_at_once_and_its_voter_counts_then() {
    let mut comparison = joined(at(1));
    assert_eq!((asked(&mut comparison, at(2)), comparison.due()), ((vec![], false), Some(at(16))));
    comparison.note_connection(1);
    assert!(comparison.apart(1).is_some() && comparison.apart(0).is_none());
    assert_eq!(asked(&mut comparison, at(2)), (vec![1], true));
    // There is a new connection meanwhile: the answer is of the one before.
    comparison.note_connection(1);
    agrees(&mut comparison, 1, at(2));
    assert!(comparison.apart(1).is_some());
    assert_eq!(asked(&mut comparison, at(2)), (vec![1], true));
    agrees(&mut comparison, 1, at(2));
    assert!(comparison.apart(1).is_none());
    assert_eq!(asked(&mut comparison, at(16)), (vec![0, 2], true));
}

// No vote of any voter counts: the clients of the others may have another configuration, too.
#[test]
fn a_clash_that_is_found_later_takes_all_votes_until_it_is_over() {
    let mut comparison = joined(at(1));
    assert_eq!(asked(&mut comparison, at(16)), (vec![0, 1, 2], true));
    let Some(Change::Clash { voter: 1, why: Some(_) }) = disagrees(&mut comparison, 1, at(16))
    else {
        panic!("it is news")
    };
    assert_eq!(agrees(&mut comparison, 0, at(16)), None);
    assert!((0..3).all(|voter| comparison.apart(voter) == comparison.mismatch()));
    // It only reads now, and a voter that does not get its configuration does not count.
    comparison.note_connection(2);
    agrees(&mut comparison, 2, at(16));
    assert_eq!(asked(&mut comparison, at(16)), (vec![2], false));
    assert_eq!(asked(&mut comparison, at(31)), (vec![0, 1], false));
    assert_eq!(disagrees(&mut comparison, 1, at(31)), None, "it is known");
    assert_eq!(asked(&mut comparison, at(46)), (vec![1], false));
    let over = agrees(&mut comparison, 1, at(46));
    assert_eq!(over, Some(Change::Clash { voter: 1, why: None }));
    // It sends its configuration again at once.
    let (again, tells) = asked(&mut comparison, at(46));
    assert!(tells && again.contains(&1), "{again:?}");
}

// The new voters are down: the configuration of their clients is unknown.
#[test]
fn a_client_of_both_sets_speaks_only_while_it_hears_both_and_carries_what_each_says() {
    let quorum = Quorum::joint(3, 0, 3);
    assert_eq!(quorum.side(0), Some(Side::New));
    let mut comparison = of(quorum);
    assert_eq!(asked(&mut comparison, at(0)), ((0..6).collect(), false));
    (3..6).for_each(|voter| drop(agrees(&mut comparison, voter, at(0))));
    (0..3).for_each(|voter| is_silent(&mut comparison, voter, at(0)));
    assert!(matches!(comparison.join(at(2), due()), JoinNext::Wait(_)));
    assert_eq!(asked(&mut comparison, at(2)), (vec![0, 1, 2], false));
    let others = entry(configuration(2, 3, None), false);
    (0..3).for_each(|voter| {
        drop(comparison.note_answer(voter, "it", Ok(vec![others.clone()]), at(3)));
    });
    assert_eq!(comparison.join(at(3), due()), JoinNext::Ask);
    let questions = comparison.ask(at(4));
    assert!(questions.len() == 6 && questions.iter().all(|question| question.tells));
    assert_eq!(questions[5].heard, others.told(SECS(1)).repeat(3), "with its age");
    assert_eq!(questions[0].heard, others.told(SECS(1)).repeat(2), "that of others");
    (0..6).for_each(|voter| drop(agrees(&mut comparison, voter, at(4))));
    assert_eq!(comparison.join(at(4), due()), JoinNext::Joined);
    for now in [19, 34, 49] {
        asked(&mut comparison, at(now));
        (3..6).for_each(|voter| drop(agrees(&mut comparison, voter, at(now))));
        (0..3).for_each(|voter| is_silent(&mut comparison, voter, at(now)));
    }
    assert!(comparison.ask(at(64)).iter().all(|question| !question.tells));
}

#[test]
fn who_only_looks_counts_all_and_parts_of_a_cluster_count_without_their_server() {
    let quorum = Quorum::of(2);
    let mut comparison = Comparison::new(configuration(1, 2, None), quorum, vec![true, false]);
    (0..2).for_each(|voter| comparison.note_connection(voter));
    assert!(comparison.ask(at(0)).is_empty() && comparison.apart(1).is_none());
    assert!(comparison.retire().is_empty() && comparison.apart(1).is_none());
    comparison.begin(at(0));
    assert!(comparison.apart(0).is_none() && comparison.apart(1).is_some());
}

#[test]
fn a_client_that_is_closed_takes_its_clash_back_and_compares_no_more() {
    let mut comparison = joined(at(1));
    asked(&mut comparison, at(16));
    disagrees(&mut comparison, 1, at(16));
    let (gauge, is_counted) = (Gauge::ConfigurationMismatch, false);
    assert_eq!(comparison.retire(), [Change::Counted { voter: 1, gauge, is_counted }]);
    assert_eq!(comparison.retire(), []);
    assert_eq!(disagrees(&mut comparison, 2, at(17)), None);
    assert!(comparison.ask(at(60)).is_empty() && comparison.mismatch().is_none());
}
