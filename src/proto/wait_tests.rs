use super::*;
use crate::proto::{Cause, HoldId, Quorum, Verdict};

pub(super) const MS: fn(u64) -> Duration = Duration::from_millis;
pub(super) const NOBODY: [bool; 3] = [false; 3];
pub(super) const PATIENCE: u64 = 1_000;

pub(super) fn at(ms: u64) -> Moment {
    Moment::from_nanos(10_000_000_000) + MS(ms)
}

/// Of a lock that is held for 600 ms more, by one hold.
pub(super) fn votes(loss: Loss) -> Votes {
    votes_by(loss, |_| "h".to_owned())
}

/// `by` names the hold on a voter.
pub(super) fn votes_by(loss: Loss, by: impl Fn(usize) -> String) -> Votes {
    let mut votes = Votes::new(Quorum::of(3));
    for voter in 0..3 {
        votes.record(
            voter,
            match loss {
                Loss::NoQuorum => Verdict::Unknown(Cause::Unheard),
                Loss::Held | Loss::Split => {
                    Verdict::Refused { by: HoldId::parse(&by(voter)), ttl: Some(MS(600)) }
                }
            },
        );
    }
    votes
}

/// In a split by others than at any other time.
pub(super) fn defeat(loss: Loss, started: Moment) -> Defeat {
    let by = |voter| format!("{started:?}:{voter}");
    let votes = if loss == Loss::Split { votes_by(loss, by) } else { votes(loss) };
    Defeat { loss, votes, started }
}

fn no_quorum(since: Moment, until: Moment) -> Denial {
    Denial::NoQuorum(Box::new(Outage { since, until, votes: votes(Loss::NoQuorum) }))
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Lost(Loss),
    /// To others, one on each voter, that are the same whenever this is their name.
    SplitBy(&'static str),
    /// By a wait in a queue.
    CutShort,
    Subscribed,
    /// So many voters have called.
    Called(usize),
    Missed,
    Nothing,
}
use Event::{Called, CutShort, Lost, Missed, Nothing, SplitBy, Subscribed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The next attempt starts at once.
    Ask,
    Wake(Wake),
    Subscribe(u64),
    Sleep(u64),
    Queue,
    Held,
    NoQuorum {
        since: u64,
        until: u64,
    },
}
use Answer::{Ask, Held, NoQuorum, Queue, Sleep, Subscribe};

pub(super) fn wait_in_line(limit: Limit) -> Wait {
    let (setup, poll) = (MS(200), MS(2_000));
    Wait::new(limit, MS(PATIENCE), WhileHeld::Listen { setup, poll, refresh: None })
}

pub(super) fn wait_in_queue(limit: Limit) -> Wait {
    Wait::new(limit, MS(PATIENCE), WhileHeld::Bid { refresh: MS(100) })
}

/// The first attempt starts at 0. Each row: what happens when, and the answer to that.
pub(super) fn check(wait: &mut Wait, rows: &[(u64, Event, Answer)]) {
    let mut started = at(0);
    assert_eq!(wait.next(started, &NOBODY), WaitNext::Ask(None), "the first attempt");
    wait.start_attempt(started);
    for (ms, event, answer) in rows {
        let (now, mut called) = (at(*ms), NOBODY);
        match *event {
            Lost(loss) => _ = wait.lose_attempt(&defeat(loss, started), now, 0),
            SplitBy(who) => {
                let votes = votes_by(Loss::Split, |voter| format!("{who}{voter}:7"));
                let defeat = Defeat { votes, loss: Loss::Split, started };
                wait.lose_attempt(&defeat, now, 0);
            }
            CutShort => wait.cut_attempt_short(now),
            Subscribed => wait.finish_subscribing(),
            Called(voters) => called[..voters].fill(true),
            Missed => wait.miss_calls(now, 0),
            Nothing => {}
        }
        let expected = match *answer {
            Ask => WaitNext::Ask(None),
            Answer::Wake(wake) => WaitNext::Ask(Some(wake)),
            Subscribe(until) => WaitNext::Subscribe(at(until)),
            Sleep(until) => WaitNext::Sleep(at(until)),
            Queue => WaitNext::Queue { refresh: MS(100) },
            Held => {
                let next = wait.next(now, &called);
                let WaitNext::GiveUp(denial) = next else { panic!("{next:?}: {event:?} at {ms}") };
                assert!(matches!(*denial, Denial::Held(_)), "{event:?} at {ms}");
                continue;
            }
            NoQuorum { since, until } => {
                WaitNext::GiveUp(Box::new(no_quorum(at(since), at(until))))
            }
        };
        assert_eq!(wait.next(now, &called), expected, "{event:?} at {ms}");
        if matches!(answer, Ask | Answer::Wake(_)) {
            wait.start_attempt(now);
            started = now;
        }
    }
}

pub(super) const BY_CALL: Answer = Answer::Wake(Wake::Called);
const BY_MISS: Answer = Answer::Wake(Wake::Missed);
pub(super) const BY_TIMER: Answer = Answer::Wake(Wake::Timer);

#[test]
fn a_held_lock_is_listened_to_and_asked_for_when_enough_voters_call() {
    check(
        &mut wait_in_line(Limit::Never),
        &[
            (4, Lost(Loss::Held), Subscribe(204)),
            (8, Subscribed, Ask),
            (12, Lost(Loss::Held), Sleep(614)),
            (50, Called(1), Sleep(614)),
            (60, Called(2), BY_CALL),
            (64, Lost(Loss::Held), Sleep(666)),
            (666, Nothing, BY_TIMER),
        ],
    );
}

#[test]
fn a_held_lock_is_asked_for_after_the_poll_interval_at_least() {
    let while_held = WhileHeld::Listen { setup: MS(200), poll: MS(300), refresh: None };
    check(
        &mut Wait::new(Limit::Never, MS(PATIENCE), while_held),
        &[
            (4, Lost(Loss::Held), Subscribe(204)),
            (204, Subscribed, Ask),
            (208, Lost(Loss::Held), Sleep(508)),
            (509, Nothing, BY_TIMER),
        ],
    );
}

#[test]
fn calls_that_may_be_lost_are_asked_for_with_pauses_that_double_until_something_else_wakes() {
    check(
        &mut wait_in_line(Limit::Never),
        &[
            (0, Lost(Loss::Held), Subscribe(200)),
            (1, Subscribed, Ask),
            (2, Lost(Loss::Held), Sleep(604)),
            (9, Missed, Sleep(10)),
            (9, Missed, Sleep(10)),
            (10, Nothing, BY_MISS),
            (12, Lost(Loss::Held), Sleep(614)),
            (12, Missed, Sleep(14)),
            (14, Nothing, BY_MISS),
            (16, Lost(Loss::Held), Sleep(618)),
            (16, Missed, Sleep(20)),
            (17, Called(2), BY_CALL),
            (18, Lost(Loss::Held), Sleep(620)),
            (18, Missed, Sleep(19)),
        ],
    );
}

#[test]
fn without_a_quorum_it_pauses_longer_and_longer_and_gives_up_when_its_patience_ends() {
    check(
        &mut wait_in_line(Limit::Never),
        &[
            (200, Lost(Loss::NoQuorum), Sleep(220)),
            (221, Nothing, BY_TIMER),
            (421, Lost(Loss::NoQuorum), Sleep(461)),
            (461, Nothing, BY_TIMER),
            (661, Lost(Loss::NoQuorum), Sleep(741)),
            (741, Nothing, BY_TIMER),
            (941, Lost(Loss::NoQuorum), Sleep(1_000)),
            (1_000, Nothing, BY_TIMER),
            (1_200, Lost(Loss::NoQuorum), NoQuorum { since: 0, until: 1_200 }),
        ],
    );
}

#[test]
fn without_a_quorum_a_limit_that_the_caller_named_is_the_only_one() {
    check(
        &mut wait_in_line(Limit::Until(at(5_000))),
        &[
            (200, Lost(Loss::NoQuorum), Sleep(220)),
            (4_000, Nothing, BY_TIMER),
            (4_200, Lost(Loss::NoQuorum), Sleep(4_240)),
            (4_240, Nothing, BY_TIMER),
            (5_000, Lost(Loss::NoQuorum), NoQuorum { since: 0, until: 4_200 }),
        ],
    );
}

#[test]
fn an_answer_ends_the_silence() {
    check(
        &mut wait_in_line(Limit::Never),
        &[
            (900, Lost(Loss::NoQuorum), Sleep(920)),
            (920, Nothing, BY_TIMER),
            (930, Lost(Loss::Split), Subscribe(1_130)),
            (950, Subscribed, Ask),
            (1_150, Lost(Loss::NoQuorum), Sleep(1_170)),
            (1_170, Nothing, BY_TIMER),
            (1_950, Lost(Loss::NoQuorum), NoQuorum { since: 950, until: 1_950 }),
        ],
    );
}

#[test]
fn the_limit_ends_every_rest_also_where_a_call_comes_with_it() {
    let wait = || wait_in_line(Limit::Until(at(29)));
    let no_quorum = NoQuorum { since: 0, until: 10 };
    for event in [Nothing, Called(3)] {
        check(&mut wait(), &[(10, Lost(Loss::Split), Subscribe(29)), (29, event, Held)]);
        check(&mut wait(), &[(10, Lost(Loss::NoQuorum), Sleep(29)), (29, event, no_quorum)]);
        check(
            &mut wait(),
            &[
                (4, Lost(Loss::Held), Subscribe(29)),
                (8, Subscribed, Ask),
                (12, Lost(Loss::Held), Sleep(29)),
                (29, event, Held),
            ],
        );
    }
    // A sleep is rounded up to whole milliseconds.
    let split = [(5, Lost(Loss::Split), Subscribe(29)), (6, Subscribed, Ask)];
    let rest = [(11, Lost(Loss::Split), Sleep(21)), (30, Nothing, Held)];
    check(&mut wait(), &[split, rest].concat());
    check(&mut wait(), &[(4, Lost(Loss::Held), Subscribe(29)), (30, Subscribed, Held)]);
}

#[test]
fn what_the_limit_cut_off_is_no_answer_and_without_another_answer_it_cuts_off_nothing() {
    check(
        &mut wait_in_line(Limit::Until(at(100))),
        &[
            (30, Lost(Loss::Split), Subscribe(100)),
            (90, Subscribed, Ask),
            (100, Lost(Loss::NoQuorum), Held),
        ],
    );
    check(
        &mut wait_in_line(Limit::Until(at(100))),
        &[
            (50, Lost(Loss::NoQuorum), Sleep(70)),
            (70, Nothing, BY_TIMER),
            (100, Lost(Loss::NoQuorum), NoQuorum { since: 0, until: 50 }),
        ],
    );
    let mut wait = wait_in_line(Limit::Until(at(100)));
    let window = wait.start_attempt(at(0));
    assert_eq!((window.rounds, window.answers), (Some(at(100)), None), "nothing is known");
    for (loss, answer) in [
        (Loss::NoQuorum, NoQuorum { since: 0, until: 200 }),
        (Loss::Held, Held),
        (Loss::Split, Held),
    ] {
        check(&mut wait_in_line(Limit::Until(at(100))), &[(200, Lost(loss), answer)]);
    }
}

#[test]
fn whoever_has_no_time_to_wait_asks_once_and_in_full() {
    for limit in [Limit::Once(at(0)), Limit::Until(at(0)), Limit::Until(at(0) - MS(5))] {
        let (held, silent) = (Held, NoQuorum { since: 0, until: 200 });
        for (loss, answer) in [(Loss::Held, held), (Loss::Split, held), (Loss::NoQuorum, silent)] {
            let mut wait = wait_in_line(limit);
            assert_eq!(wait.start_attempt(at(0)).rounds, None, "no limit ends it");
            check(&mut wait_in_line(limit), &[(200, Lost(loss), answer)]);
        }
    }
}

#[test]
fn a_bid_has_waited_by_itself_and_its_pauses_keep_its_place() {
    check(
        &mut wait_in_queue(Limit::Never),
        &[
            (5_000, Lost(Loss::Held), Ask),
            (5_060, Lost(Loss::Split), Sleep(5_100)),
            (5_100, Nothing, BY_TIMER),
            (5_110, Lost(Loss::NoQuorum), Sleep(5_130)),
            (5_130, Nothing, BY_TIMER),
            (5_190, Lost(Loss::NoQuorum), Sleep(5_230)),
            (5_230, Nothing, BY_TIMER),
            (5_430, Lost(Loss::NoQuorum), BY_TIMER),
        ],
    );
}

#[test]
fn a_bid_that_is_cut_short_says_nothing_new() {
    check(
        &mut wait_in_queue(Limit::Until(at(500))),
        &[
            (200, Lost(Loss::NoQuorum), BY_TIMER),
            (300, CutShort, Ask),
            (500, Lost(Loss::NoQuorum), NoQuorum { since: 0, until: 200 }),
        ],
    );
    check(
        &mut wait_in_queue(Limit::Never),
        &[
            (600, Lost(Loss::NoQuorum), BY_TIMER),
            (900, CutShort, Ask),
            (1_000, CutShort, NoQuorum { since: 0, until: 600 }),
        ],
    );
    check(
        &mut wait_in_queue(Limit::Until(at(500))),
        &[(500, CutShort, Ask), (700, Lost(Loss::NoQuorum), NoQuorum { since: 500, until: 700 })],
    );
}

#[test]
fn whoever_comes_first_goes_on_with_what_the_one_before_found() {
    let denial = Denial::NoQuorum(Box::new(Outage {
        since: at(0) - MS(900),
        until: at(0) - MS(1),
        votes: votes(Loss::NoQuorum),
    }));
    let wait = || wait_in_line(Limit::Until(at(50))).resume_from(Some(denial.clone()), None);
    let mut cut_off = wait();
    check(&mut cut_off, &[]);
    cut_off.lose_attempt(&defeat(Loss::NoQuorum, at(0)), at(50), 0);
    assert_eq!(cut_off.next(at(50), &NOBODY), WaitNext::GiveUp(Box::new(denial.clone())));

    let since = at(0) - MS(900);
    let mut wait = wait_in_line(Limit::Never).resume_from(Some(denial), Some(since));
    check(&mut wait, &[(20, Lost(Loss::NoQuorum), Sleep(40)), (40, Nothing, BY_TIMER)]);
    wait.lose_attempt(&defeat(Loss::NoQuorum, at(40)), at(100), 0);
    assert_eq!(wait.next(at(100), &NOBODY), WaitNext::GiveUp(Box::new(no_quorum(since, at(100)))));
}
