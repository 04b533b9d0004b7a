//! The gate of the library, used as a server would.

use std::{
    collections::HashMap,
    fmt::{Debug, Display},
    hash::Hash,
    panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind},
    sync::{Mutex, mpsc},
    thread,
    time::Duration,
};

use proptest::{collection::vec, prelude::*, sample::select, test_runner::TestRunner};
use quorate::{FenceGate, Stale, Token};

use crate::fencing::{config, judged_by_the_gate, token};
use quorate_support::eventually;

/// Only a broken gate lets it pass.
const PATIENCE: Duration = Duration::from_secs(20);
const NAMES: [&str; 3] = ["a", "b", "c"];

fn offers() -> impl Strategy<Value = Vec<(&'static str, Token)>> {
    vec((select(&NAMES), (1..12_u64).prop_map(token)), 0..40)
}

#[test]
fn what_a_server_shares_and_shows_is_promised() {
    fn pinned<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + Debug + 'static>() {}
    fn key<T: Copy + Ord + Hash + Display>() {}
    fn error<T: Copy + Eq + std::error::Error>() {}
    pinned::<FenceGate>();
    pinned::<Stale>();
    pinned::<Token>();
    key::<Token>();
    error::<Stale>();
}

#[test]
fn what_passes_never_falls_and_what_is_refused_is_lower() {
    let passed = judged_by_the_gate();
    let expected = [
        true, true, false, true, false, true, true, true, false, true, false, false, true, true,
        true, false,
    ];
    assert_eq!(passed, expected);
}

#[test]
fn the_gate_refuses_exactly_what_is_below_the_highest_of_its_name() {
    let checked = TestRunner::new(config(200)).run(&offers(), |offers| {
        let (gate, mut highest) = (FenceGate::new(), HashMap::new());
        for (name, presented) in offers {
            let seen = *highest.entry(name).or_insert(presented);
            match gate.check(name, presented) {
                Ok(()) => {
                    prop_assert!(presented >= seen);
                    highest.insert(name, presented);
                }
                Err(Stale { presented: refused, highest, .. }) => {
                    prop_assert!(presented < seen);
                    prop_assert_eq!((refused, highest), (presented, seen));
                }
            }
            prop_assert_eq!(gate.highest(name), highest.get(name).copied());
        }
        Ok(())
    });
    checked.unwrap();
}

/// Four threads offer at the same time. What the work of a name writes down is in the order of the
/// work, so a lower number behind a higher one is a late write that came through.
#[test]
fn in_any_interleaving_the_work_of_a_name_is_done_in_the_order_of_its_tokens() {
    let threads = vec(offers(), 4..=4);
    let checked = TestRunner::new(config(100)).run(&threads, |threads| {
        let gate = FenceGate::new();
        let done = NAMES.map(|name| (name, Mutex::new(Vec::new())));
        thread::scope(|scope| {
            for offers in threads {
                let (gate, done) = (&gate, &done);
                scope.spawn(move || {
                    for (name, token) in offers {
                        let (_, log) = done.iter().find(|(it, _)| *it == name).expect("a name");
                        let _ = gate.guarded(name, token, || {
                            thread::yield_now();
                            log.lock().unwrap().push(token);
                        });
                    }
                });
            }
        });
        for (name, log) in done {
            let log = log.into_inner().unwrap();
            prop_assert!(log.is_sorted(), "{}: {:?}", name, log);
            prop_assert_eq!(gate.highest(name), log.last().copied());
        }
        Ok(())
    });
    checked.unwrap();
}

/// Whatever is forgotten below a mark, and whatever a gate is made of after a restart, no token
/// passes that would not have passed before; at or above the mark nothing changes.
#[test]
fn forgetting_below_a_mark_lets_nothing_in_again() {
    let scenes = (offers(), offers(), 1..12_u64);
    let checked = TestRunner::new(config(300)).run(&scenes, |(before, after, mark)| {
        let (gate, reference) = (FenceGate::new(), FenceGate::new());
        for (name, token) in before {
            prop_assert_eq!(gate.check(name, token), reference.check(name, token));
        }
        let mark = token(mark);
        gate.forget_below(mark);
        prop_assert!(gate.seen().iter().all(|(_, token)| *token >= mark));
        let restarted: FenceGate = gate.seen().into_iter().collect();
        restarted.forget_below(mark);
        for (name, token) in after {
            // The reference only looks until the gate has answered.
            let would_pass = reference.highest(name).is_none_or(|highest| token >= highest);
            let passed = gate.check(name, token);
            prop_assert_eq!(passed.is_ok(), would_pass && token >= mark);
            prop_assert_eq!(restarted.check(name, token), passed);
            if passed.is_ok() {
                prop_assert_eq!(reference.check(name, token), Ok(()));
            }
        }
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn a_lower_mark_behind_a_higher_one_changes_nothing() {
    let gate = FenceGate::new();
    gate.forget_below(token(9));
    gate.forget_below(token(5));
    let refused = gate.check("a", token(8)).unwrap_err();
    assert_eq!((refused.presented, refused.highest), (token(8), token(9)));
    assert_eq!(refused.to_string(), "token 8 is stale: 9 has been seen");
}

#[test]
fn a_forgotten_name_starts_anew_and_the_others_do_not() {
    let gate = FenceGate::new();
    for name in ["a", "b"] {
        gate.check(name, token(9)).unwrap();
    }
    gate.forget("a");
    assert_eq!((gate.highest("a"), gate.highest("b")), (None, Some(token(9))));
    gate.check("a", token(1)).unwrap();
    gate.check("b", token(1)).unwrap_err();
}

#[test]
fn what_is_refused_leaves_no_name_behind() {
    let gate = FenceGate::new();
    gate.forget_below(token(9));
    gate.check("a", token(1)).unwrap_err();
    assert!(gate.seen().is_empty() && !format!("{gate:?}").contains("\"a\""));
}

#[test]
fn of_several_stored_tokens_of_a_name_the_highest_counts() {
    let stored = [("a", 3), ("a", 9), ("a", 5)];
    let gate: FenceGate =
        stored.into_iter().map(|(name, number)| (name.to_owned(), token(number))).collect();
    assert_eq!(gate.seen(), [("a".to_owned(), token(9))]);
}

/// While work is done for a name, a higher token waits, a lower one is refused at once, and another
/// name passes: the work itself waits for the latter two.
#[test]
fn work_keeps_only_those_waiting_who_may_come_next() {
    let gate = FenceGate::new();
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let order = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let (gate, order) = (&gate, &order);
        scope.spawn(move || {
            let work = || {
                begun.send(()).unwrap();
                may_go_on.recv_timeout(PATIENCE).expect("nobody else is kept waiting");
                order.lock().unwrap().push(5);
            };
            gate.guarded("a", token(5), work).unwrap();
        });
        has_begun.recv().unwrap();
        let next = scope.spawn(move || {
            gate.guarded("a", token(9), || order.lock().unwrap().push(9)).unwrap();
        });
        gate.check("a", token(4)).unwrap_err();
        gate.check("b", token(1)).unwrap();
        // It keeps its entry, by which the next one waits for it.
        gate.forget_below(token(7));
        assert_eq!(gate.seen().len(), 1);
        assert!(!next.is_finished());
        go_on.send(()).unwrap();
    });
    assert_eq!(order.into_inner().unwrap(), [5, 9]);
}

#[test]
fn to_forget_a_name_waits_for_its_work() {
    let gate = FenceGate::new();
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let working = Mutex::new(());
    thread::scope(|scope| {
        let (gate, working) = (&gate, &working);
        let alone = || drop(working.try_lock().expect("one at a time"));
        scope.spawn(move || {
            let work = || {
                let _alone = working.try_lock().expect("one at a time");
                begun.send(()).unwrap();
                may_go_on.recv_timeout(PATIENCE).expect("nobody else is kept waiting");
            };
            gate.guarded("a", token(9), work).unwrap();
        });
        has_begun.recv().unwrap();
        let others: Vec<_> = (0..4)
            .flat_map(|_| {
                [
                    scope.spawn(|| gate.forget("a")),
                    scope.spawn(move || gate.guarded("a", token(9), alone).unwrap()),
                ]
            })
            .collect();
        thread::yield_now();
        assert!(others.iter().all(|other| !other.is_finished()));
        go_on.send(()).unwrap();
    });
    gate.forget("a");
    assert_eq!(gate.highest("a"), None);
}

/// Whoever waited for the turn of a name that was forgotten meanwhile would be alone with a turn of
/// the past, and nobody would know of its token.
#[test]
fn whoever_works_is_alone_and_known_however_often_the_name_is_forgotten() {
    let (gate, working) = (FenceGate::new(), Mutex::new(()));
    let work = || {
        let _alone = working.try_lock().expect("one at a time");
        for _ in 0..3 {
            thread::yield_now();
            assert_eq!(gate.highest("a"), Some(token(9)));
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    gate.guarded("a", token(9), work).unwrap();
                    gate.forget("a");
                }
            });
        }
    });
    assert!(gate.seen().is_empty());
}

#[test]
fn a_token_counts_as_seen_although_its_work_panicked() {
    let gate = FenceGate::new();
    let work = || gate.guarded("a", token(9), || panic!("planned"));
    catch_unwind(AssertUnwindSafe(work)).unwrap_err();
    gate.check("a", token(8)).unwrap_err();
    gate.check("a", token(9)).unwrap();
    // Neither does it count as busy for ever.
    gate.forget_below(token(10));
    eventually("the name is forgotten", || gate.seen().is_empty());
}
