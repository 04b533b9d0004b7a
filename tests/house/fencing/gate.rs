//! The gate of the library, used as a server would.

use std::{
    collections::HashMap,
    future::{pending, poll_fn},
    panic::catch_unwind,
    sync::{Mutex, mpsc},
    task::Poll,
    thread,
};

use futures::{FutureExt, executor::block_on};
use proptest::{collection::vec, prelude::*, sample::select, test_runner::TestRunner};
use quorate::FenceGate;
use quorate_tests::prelude::*;
use tokio::{
    runtime::Builder as Runtime,
    sync::oneshot,
    task::{coop, yield_now},
};

use crate::fencing::{config, token};

/// Only a broken gate lets it pass.
const PATIENCE: Duration = Duration::from_secs(20);
const NAMES: [&str; 3] = ["a", "b", "c"];

fn offers() -> impl Strategy<Value = Vec<(&'static str, Token)>> {
    vec((select(&NAMES), (1..12_u64).prop_map(token)), 0..40)
}

/// Four threads offer at the same time, two of them work that awaits. What the work of a name writes
/// down is in the order of the work, so a lower number behind a higher one is a late write that came
/// through.
#[test]
fn in_any_interleaving_the_work_of_a_name_is_done_in_the_order_of_its_tokens() {
    let threads = vec(offers(), 4..=4);
    let checked = TestRunner::new(config(100)).run(&threads, |threads| {
        let gate = FenceGate::new();
        let done = NAMES.map(|name| (name, Mutex::new(Vec::new())));
        thread::scope(|scope| {
            for (number, offers) in threads.into_iter().enumerate() {
                let (gate, done) = (&gate, &done);
                scope.spawn(move || {
                    for (name, token) in offers {
                        let (_, log) = done.iter().find(|(it, _)| *it == name).expect("a name");
                        let write = || log.lock().unwrap().push(token);
                        let _ = if number.is_multiple_of(2) {
                            gate.guarded(name, token, || {
                                thread::yield_now();
                                write();
                            })
                        } else {
                            block_on(gate.guarded_async(name, token, async || {
                                thread::yield_now();
                                yield_now().await;
                                write();
                            }))
                        };
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

/// A gate refuses exactly what is below the highest of its name. Whatever is forgotten below a mark,
/// and whatever a gate is made of after a restart, no token passes that would not have passed before;
/// at or above the mark nothing changes.
#[test]
fn what_has_been_seen_refuses_what_is_lower_and_forgetting_lets_nothing_in_again() {
    let scenes = (offers(), offers(), 1..12_u64);
    let checked = TestRunner::new(config(300)).run(&scenes, |(before, after, mark)| {
        let (gate, mut highest) = (FenceGate::new(), HashMap::new());
        for (name, presented) in before {
            let seen = *highest.entry(name).or_insert(presented);
            match gate.check(name, presented) {
                Ok(()) => prop_assert!(presented >= seen),
                Err(refused) => {
                    prop_assert!(presented < seen);
                    prop_assert_eq!((refused.presented, refused.highest), (presented, seen));
                }
            }
            highest.insert(name, presented.max(seen));
            prop_assert_eq!(gate.highest(name), highest.get(name).copied());
        }
        let mark = token(mark);
        gate.forget_below(mark);
        prop_assert!(gate.seen().iter().all(|(_, token)| *token >= mark));
        let restarted: FenceGate = gate.seen().into_iter().collect();
        restarted.forget_below(mark);
        for (name, presented) in after {
            let seen = *highest.entry(name).or_insert(presented);
            let passed = gate.check(name, presented);
            prop_assert_eq!(passed.is_ok(), presented >= seen && presented >= mark);
            prop_assert_eq!(restarted.check(name, presented), passed);
            if passed.is_ok() {
                highest.insert(name, presented);
            }
        }
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn marks_only_rise_and_what_is_refused_leaves_no_name_behind() {
    let gate = FenceGate::new();
    gate.forget_below(token(9));
    gate.forget_below(token(5));
    let refused = gate.check("a", token(8)).unwrap_err();
    assert_eq!((refused.presented, refused.highest), (token(8), token(9)));
    assert_eq!(refused.to_string(), "token 8 is stale: 9 has been seen");
    assert!(gate.seen().is_empty() && !format!("{gate:?}").contains("\"a\""));
}

#[test]
fn a_forgotten_name_starts_anew_and_the_others_do_not() {
    // Of several stored tokens of a name the highest counts.
    let stored = [("a", 3), ("a", 9), ("a", 5), ("b", 9)];
    let gate: FenceGate =
        stored.into_iter().map(|(name, number)| (name.to_owned(), token(number))).collect();
    gate.forget("a");
    assert_eq!(gate.seen(), [("b".to_owned(), token(9))]);
    gate.check("a", token(1)).unwrap();
    gate.check("b", token(8)).unwrap_err();
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

/// The same where the work awaits: a task and a thread with higher tokens wait until it is done.
#[test]
fn work_that_awaits_is_one_step_with_its_check() {
    let (gate, order) = (FenceGate::new(), Mutex::new(Vec::new()));
    let (begun, has_begun) = oneshot::channel();
    let (go_on, may_go_on) = oneshot::channel();
    let write = |number| order.lock().unwrap().push(number);
    let works = gate.guarded_async("a", token(5), async || {
        begun.send(()).unwrap();
        may_go_on.await.unwrap();
        write(5);
    });
    let waits = gate.guarded_async("a", token(9), async || write(9));
    thread::scope(|scope| {
        let others = async {
            has_begun.await.unwrap();
            gate.check("a", token(4)).unwrap_err();
            gate.check("b", token(1)).unwrap();
            scope.spawn(|| gate.guarded("a", token(10), || write(10)).unwrap());
            go_on.send(()).unwrap();
        };
        let (first, next, ()) = block_on(async { tokio::join!(works, waits, others) });
        assert_eq!((first, next), (Ok(()), Ok(())));
    });
    assert_eq!(*order.lock().unwrap(), [5, 9, 10]);
}

#[test]
fn whoever_stops_to_wait_or_to_work_leaves_the_name_to_the_next() {
    let gate = FenceGate::new();
    let mut works = gate.guarded_async("a", token(5), pending::<()>).boxed();
    assert!((&mut works).now_or_never().is_none());
    let mut waits = gate.guarded_async("a", token(9), async || ()).boxed();
    assert!((&mut waits).now_or_never().is_none());
    drop(waits);
    assert_eq!(gate.highest("a"), Some(token(5)), "it has not come in");
    drop(works);
    gate.check("a", token(4)).unwrap_err();
    gate.check("a", token(5)).unwrap();
}

/// Tokio has a task that did much yield first. A thread that waits does not: it would wait for ever.
#[test]
fn a_task_that_may_do_no_more_before_it_yields_can_check_a_token() {
    let (checked, is_checked) = mpsc::channel();
    thread::spawn(move || {
        let runtime = Runtime::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let may_do_no_more = poll_fn(|context| {
                while let Poll::Ready(step) = coop::poll_proceed(context) {
                    step.made_progress();
                }
                Poll::Ready(())
            });
            may_do_no_more.await;
            checked.send(FenceGate::new().check("a", token(1))).unwrap();
        });
    });
    assert_eq!(is_checked.recv_timeout(PATIENCE), Ok(Ok(())));
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
    catch_unwind(work).unwrap_err();
    gate.check("a", token(8)).unwrap_err();
    gate.check("a", token(9)).unwrap();
    // Neither does it count as busy for ever.
    gate.forget_below(token(10));
    eventually("the name is forgotten", || gate.seen().is_empty());
}
