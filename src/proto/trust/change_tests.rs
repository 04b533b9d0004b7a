use super::*;
use crate::proto::{
    Drift, Quarantine, RestartGuard,
    trust::{
        Birth,
        tests::{MS, SECS, at, only},
    },
};

/// Three voters that have run for an hour.
fn connected() -> Trust {
    let (guard, longest, drift) = (RestartGuard::Relative, SECS(30), Drift::DEFAULT);
    let suspicion = Suspicion { guard, longest, drift };
    let mut trust = Trust::new(vec![0, 1, 2], Quorum::of(3), suspicion);
    trust.log_quarantines(at(0));
    for voter in 0..3 {
        connects(&mut trust, voter, &format!("run {voter}"), at(0));
    }
    told(&mut trust);
    trust.take_wakes();
    trust
}

fn connects(trust: &mut Trust, voter: usize, run_id: &str, now: Moment) {
    trust.note_connection(only(voter), &server(run_id));
    assert!(!trust.note_identity(only(voter), &server(run_id), None, now));
}

fn server(run_id: &str) -> Identity {
    Identity { run_id: run_id.into(), age: SECS(3_600), ..Identity::default() }
}

fn told(trust: &mut Trust) -> Vec<Change> {
    let mut all = Vec::new();
    let mut next = trust.next_change();
    while let Some(change) = next {
        all.push(change);
        next = trust.next_of_reporter();
    }
    all
}

fn counted(voter: usize, gauge: Gauge, is_counted: bool) -> Change {
    Change::Counted { voter, gauge, is_counted }
}

/// The clock of a voter, ahead by so much.
fn stamp(ahead_secs: u64, secs: u64) -> Stamp {
    let shown = SECS(1_000_000 + secs + ahead_secs);
    Stamp { shown, asked: at(secs), answered: at(secs) + MS(1) }
}

#[test]
fn a_voter_that_comes_back_as_another_is_told_of_once_and_so_is_its_end() {
    let mut trust = connected();
    trust.note_disconnect(only(1), Some("cut"));
    connects(&mut trust, 1, "another", at(5));
    let changes = told(&mut trust);
    let [lost, back, began, quarantined, gauge, came_back] = &changes[..] else {
        panic!("{changes:?}")
    };
    let shard = only(1);
    assert_eq!(*lost, Change::Disconnected { shard, why: Some("cut".into()) });
    assert!(matches!(back, Change::Connected { ends_trouble: true, .. }));
    assert_eq!(*began, Change::QuarantineBegan { voter: 1, reason: "restarted" });
    let (why, left) = (Quarantine::Restarted, SECS(30));
    let expected = Change::Quarantined { voter: 1, quarantined: Quarantined { why, left } };
    assert_eq!(*quarantined, expected);
    assert_eq!(*gauge, counted(1, Gauge::Quarantined, true));
    assert_eq!(*came_back, Change::CameBack { voter: 1, durable: false, data: Data::Kept });
    // Holds are renewed at once, and the configuration is compared on the new connection.
    let all = Wakes { holds: true, alarm: true, comparison: true };
    assert_eq!((trust.take_wakes(), trust.next_end), (all, Some(at(35))));
    trust.note_identity(only(1), &server("another"), None, at(15));
    assert_eq!((told(&mut trust), trust.take_wakes()), (vec![], Wakes::default()));
    // It goes on, for the reason that was reported.
    trust.note_identity(only(1), &server("a third"), None, at(16));
    assert_eq!((&told(&mut trust)[..], trust.next_end), (&[came_back.clone()][..], Some(at(46))));
    trust.take_wakes();
    trust.look(at(46));
    let ended = [Change::QuarantineEnded { voter: 1 }, counted(1, Gauge::Quarantined, false)];
    assert_eq!(told(&mut trust), ended);
    assert_eq!((trust.take_wakes().alarm, trust.next_end), (true, None));
}

// Its server and its data are what they were, so the log does not say that it came back. Clients
// that look when the data are renamed find others there.
#[test]
fn a_voter_whose_clock_was_set_back_is_reported_and_gets_its_votes_back_at_once() {
    let mut trust = connected();
    trust.take_wakes();
    let set_back = SECS(60);
    let [age, began] = [SECS(100); 2];
    let birth = Birth { fingerprint: "m".into(), name: "data".into(), age, began, set_back };
    let identity = Identity { birth: Some(birth), ..server("run 1") };
    assert!(trust.note_identity(only(1), &identity, None, at(5)), "all are to know");
    let changes = told(&mut trust);
    let began = Change::QuarantineBegan { voter: 1, reason: "clock_set_back" };
    assert!(changes.contains(&began), "{changes:?}");
    assert!(!changes.iter().any(|change| matches!(change, Change::CameBack { .. })));
    assert!(trust.take_wakes().holds);
}

// A quarantine that begins before the log speaks is reported when it does.
#[test]
fn the_log_hears_of_quarantines_when_it_may_and_the_metrics_at_once() {
    let mut trust = connected();
    trust.speaks = false;
    trust.note_identity(only(1), &server("another"), None, at(5));
    let is_logged = |change: &Change| matches!(change, Change::Quarantined { .. });
    let changes = told(&mut trust);
    assert!(!changes.iter().any(is_logged));
    assert!(changes.contains(&counted(1, Gauge::Quarantined, true)));
    trust.log_quarantines(at(6));
    let changes = told(&mut trust);
    assert!(changes.len() == 1 && is_logged(&changes[0]), "{changes:?}");
}

#[test]
fn a_pause_of_the_client_wakes_the_holds_and_takes_back_what_it_seemed_to_be() {
    let mut trust = connected();
    for voter in 0..3 {
        trust.note_answer(only(voter), Some(stamp(0, 1)), None, at(1)).unwrap();
    }
    trust.note_answer(only(0), Some(stamp(20, 2)), None, at(2)).unwrap();
    let hidden = told(&mut trust);
    assert!(hidden.contains(&counted(0, Gauge::Quarantined, true)), "{hidden:?}");
    assert_eq!(trust.stood_still, Duration::ZERO);
    trust.take_wakes();
    trust.note_answer(only(1), Some(stamp(20, 2)), None, at(2)).unwrap();
    assert!(trust.take_wakes().holds && trust.stood_still >= SECS(20));
    let told = told(&mut trust);
    assert!(matches!(told[0], Change::StoodStill(by) if by == trust.stood_still), "{told:?}");
    assert!(told.contains(&counted(0, Gauge::Quarantined, false)), "{told:?}");
}

#[test]
fn each_shard_that_takes_no_votes_is_logged_and_the_voter_is_counted_once() {
    let mut trust = connected();
    let shard = |number| Shard { voter: 2, number };
    let full = |run_id| Identity { refuses: Some("full".into()), ..server(run_id) };
    let refuses = |number, why: Option<&str>| {
        let why = why.map(Arc::from);
        Change::Refuses { shard: shard(number), why }
    };
    trust.note_identity(shard(0), &full("run 2"), None, at(1));
    trust.note_identity(shard(1), &full("run 3"), None, at(1));
    trust.note_identity(shard(0), &full("run 2"), None, at(2));
    let full = Some("full");
    let expected = [refuses(0, full), counted(2, Gauge::Refusing, true), refuses(1, full)];
    assert_eq!(told(&mut trust), expected);
    trust.note_identity(shard(0), &server("run 2"), None, at(3));
    assert_eq!(told(&mut trust), [refuses(0, None)]);
    // Nobody knows whether it still does: it is asked before it counts again.
    trust.note_disconnect(shard(1), None);
    let closed = Change::Disconnected { shard: shard(1), why: None };
    assert_eq!(told(&mut trust), [counted(2, Gauge::Refusing, false), closed]);
}

#[test]
fn a_majority_that_is_lost_is_told_with_who_is_missing_and_so_is_its_return() {
    let mut trust = connected();
    let quorum = |trust: &mut Trust| {
        let of_quorum = |change: Change| match change {
            Change::Quorum { is_there, missing } => Some((is_there, missing)),
            _ => None,
        };
        told(trust).into_iter().find_map(of_quorum)
    };
    trust.note_disconnect(only(0), Some("cut"));
    assert_eq!(quorum(&mut trust), None);
    trust.note_disconnect(only(2), Some("cut"));
    assert_eq!(quorum(&mut trust), Some((false, vec![0, 2])));
    connects(&mut trust, 2, "run 2", at(1));
    assert_eq!(quorum(&mut trust), Some((true, vec![0])));
}

#[test]
fn a_client_that_is_closed_takes_back_what_it_counted_and_says_no_more() {
    let mut trust = connected();
    let full = Identity { refuses: Some("full".into()), ..server("another") };
    trust.note_identity(only(1), &full, None, at(1));
    told(&mut trust);
    trust.retire();
    trust.retire();
    let expected = [
        counted(0, Gauge::Clients, false),
        counted(1, Gauge::Clients, false),
        counted(1, Gauge::Quarantined, false),
        counted(1, Gauge::Refusing, false),
        counted(2, Gauge::Clients, false),
    ];
    assert_eq!(told(&mut trust), expected);
    assert!(trust.is_retired && trust.take_wakes().alarm);
    trust.note_identity(only(0), &full, None, at(2));
    trust.look(at(40));
    let more = told(&mut trust);
    assert!(!more.iter().any(|change| matches!(change, Change::Counted { .. })), "{more:?}");
}

#[test]
fn while_one_change_is_told_the_next_waits_for_it() {
    let mut trust = connected();
    trust.note_disconnect(only(0), None);
    trust.note_disconnect(only(1), None);
    let [first, second] = [0, 1].map(|voter| {
        let shard = only(voter);
        Some(Change::Disconnected { shard, why: None })
    });
    assert_eq!(trust.next_change(), first);
    assert_eq!(trust.next_change(), None, "somebody tells the first");
    assert_eq!(trust.next_of_reporter(), second);
    assert_eq!(trust.next_of_reporter(), None);
    trust.note_disconnect(only(0), None);
    assert_eq!(trust.next_change(), first);
}
