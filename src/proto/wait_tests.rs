use super::*;
use crate::proto::{Cause, HoldId, Outage, Quorum, Verdict, Votes};

const MS: fn(u64) -> Duration = Duration::from_millis;
const PATIENCE: u64 = 1_000;

fn at(ms: u64) -> Moment {
    Moment::from_nanos(10_000_000_000) + MS(ms)
}

/// Of a lock that is held for 600 ms more, by one hold or, in a split, by others on each voter.
fn votes(loss: Loss) -> Votes {
    let mut votes = Votes::new(Quorum::of(3));
    for voter in 0..3 {
        let by = if loss == Loss::Split { format!("h{voter}") } else { "h".to_owned() };
        let refused = Verdict::Refused { by: HoldId::parse(&by), ttl: Some(MS(600)) };
        let silent = Verdict::Unknown(Cause::Unheard);
        votes.record(voter, if loss == Loss::NoQuorum { silent } else { refused });
    }
    votes
}

fn defeat(loss: Loss, started: Moment) -> Defeat {
    Defeat { loss, votes: votes(loss), started }
}

/// Of which silence it gave up: since when, and until when.
fn silence(next: WaitNext) -> (Moment, Moment) {
    let WaitNext::GiveUp(denial) = next else { panic!("{next:?}") };
    let Denial::NoQuorum(outage) = *denial else { panic!("another has it") };
    (outage.since, outage.until)
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Lost(Loss),
    CutShort,
    Nothing,
}
use Event::{CutShort, Lost, Nothing};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// The next attempt starts at once.
    Ask,
    Wake(Wake),
    Sleep(u64),
    Held,
    NoQuorum {
        since: u64,
        until: u64,
    },
}
use Answer::{Ask, Held, NoQuorum, Sleep};

fn waiter(limit: Limit) -> Wait {
    Wait::new(limit, MS(PATIENCE), MS(10_000))
}

/// A waiter that must bid again soon.
fn hurried(limit: Limit) -> Wait {
    Wait::new(limit, MS(PATIENCE), MS(100))
}

/// The first attempt starts at 0. Each row: what happens at which time, and what is next.
fn check(wait: &mut Wait, rows: &[(u64, Event, Answer)]) {
    let mut started = at(0);
    assert_eq!(wait.next(started), WaitNext::Ask(None), "the first attempt");
    wait.start_attempt(started);
    for (ms, event, answer) in rows {
        let now = at(*ms);
        match *event {
            Lost(loss) => {
                let cut_off =
                    loss == Loss::NoQuorum && wait.cut_off.is_some_and(|limit| now >= limit);
                let told = wait.lose_attempt(defeat(loss, started), now, 0).is_some();
                assert_eq!(told, !cut_off, "others learn answers only: {event:?} at {ms}");
            }
            CutShort => wait.cut_attempt_short(now),
            Nothing => {}
        }
        let expected = match *answer {
            Ask => WaitNext::Ask(None),
            Answer::Wake(wake) => WaitNext::Ask(Some(wake)),
            Sleep(until) => WaitNext::Sleep(at(until)),
            Held => {
                let next = wait.next(now);
                let WaitNext::GiveUp(denial) = next else { panic!("{next:?}: {event:?} at {ms}") };
                assert!(matches!(*denial, Denial::Held(_)), "{event:?} at {ms}");
                continue;
            }
            NoQuorum { since, until } => {
                let expected = (at(since), at(until));
                assert_eq!(silence(wait.next(now)), expected, "{event:?} at {ms}");
                continue;
            }
        };
        assert_eq!(wait.next(now), expected, "{event:?} at {ms}");
        if matches!(answer, Ask | Answer::Wake(_)) {
            wait.start_attempt(now);
            started = now;
        }
    }
}

const BY_TIMER: Answer = Answer::Wake(Wake::Timer);

#[test]
fn without_a_quorum_it_pauses_longer_and_longer_and_gives_up_when_its_patience_ends() {
    check(
        &mut waiter(Limit::Never),
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
        &mut waiter(Limit::Until(at(5_000))),
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
fn an_answer_ends_the_silence_and_after_a_split_it_pauses_for_twice_as_long_as_that_took() {
    check(
        &mut waiter(Limit::Never),
        &[
            (900, Lost(Loss::NoQuorum), Sleep(920)),
            (920, Nothing, BY_TIMER),
            (930, Lost(Loss::Split), Sleep(950)),
            (950, Nothing, BY_TIMER),
            (1_150, Lost(Loss::NoQuorum), Sleep(1_170)),
            (1_170, Nothing, BY_TIMER),
            (1_950, Lost(Loss::NoQuorum), NoQuorum { since: 950, until: 1_950 }),
        ],
    );
}

#[test]
fn the_limit_ends_every_rest_also_where_that_ends_late() {
    let wait = || waiter(Limit::Until(at(29)));
    let no_quorum = NoQuorum { since: 0, until: 10 };
    check(&mut wait(), &[(10, Lost(Loss::Split), Sleep(29)), (29, Nothing, Held)]);
    check(&mut wait(), &[(10, Lost(Loss::NoQuorum), Sleep(29)), (29, Nothing, no_quorum)]);
    // A sleep is rounded up to whole milliseconds.
    check(&mut wait(), &[(5, Lost(Loss::Split), Sleep(15)), (30, Nothing, Held)]);
}

#[test]
fn what_the_limit_cut_off_is_no_answer_and_without_another_answer_it_cuts_off_nothing() {
    let wait = || waiter(Limit::Until(at(100)));
    check(
        &mut wait(),
        &[
            (30, Lost(Loss::Split), Sleep(90)),
            (90, Nothing, BY_TIMER),
            (100, Lost(Loss::NoQuorum), Held),
        ],
    );
    check(
        &mut wait(),
        &[
            (50, Lost(Loss::NoQuorum), Sleep(70)),
            (70, Nothing, BY_TIMER),
            (100, Lost(Loss::NoQuorum), NoQuorum { since: 0, until: 50 }),
        ],
    );
    assert_eq!(wait().start_attempt(at(0)), None, "nothing is known");
    for (loss, answer) in [
        (Loss::NoQuorum, NoQuorum { since: 0, until: 200 }),
        (Loss::Held, Held),
        (Loss::Split, Held),
    ] {
        check(&mut wait(), &[(200, Lost(loss), answer)]);
    }
}

#[test]
fn whoever_has_no_time_to_wait_asks_once_and_in_full() {
    for limit in [Limit::Once(at(0)), Limit::Until(at(0)), Limit::Until(at(0) - MS(5))] {
        let (held, silent) = (Held, NoQuorum { since: 0, until: 200 });
        for (loss, answer) in [(Loss::Held, held), (Loss::Split, held), (Loss::NoQuorum, silent)] {
            let mut wait = waiter(limit);
            assert_eq!(wait.start_attempt(at(0)), None, "no limit ends it");
            check(&mut waiter(limit), &[(200, Lost(loss), answer)]);
        }
    }
}

#[test]
fn a_bid_has_waited_by_itself_and_its_pauses_keep_its_place() {
    check(
        &mut hurried(Limit::Never),
        &[
            (5_000, Lost(Loss::Held), Ask),
            (5_060, Lost(Loss::Split), Sleep(5_100)),
            (5_100, Nothing, BY_TIMER),
            (5_100, Lost(Loss::Held), Ask),
            // A refusal ends the contention: the pause is no longer than twice the attempt.
            (5_101, Lost(Loss::Split), Sleep(5_103)),
            (5_103, Nothing, BY_TIMER),
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
        &mut hurried(Limit::Until(at(500))),
        &[
            (200, Lost(Loss::NoQuorum), BY_TIMER),
            (300, CutShort, Ask),
            (500, Lost(Loss::NoQuorum), NoQuorum { since: 0, until: 200 }),
        ],
    );
    check(
        &mut hurried(Limit::Never),
        &[
            (600, Lost(Loss::NoQuorum), BY_TIMER),
            (900, CutShort, Ask),
            (1_000, CutShort, NoQuorum { since: 0, until: 600 }),
        ],
    );
    check(
        &mut hurried(Limit::Until(at(500))),
        &[(500, CutShort, Ask), (700, Lost(Loss::NoQuorum), NoQuorum { since: 500, until: 700 })],
    );
}

#[test]
fn whoever_comes_first_goes_on_with_what_the_one_before_found() {
    let denial = Denial::NoQuorum(Box::new(Outage {
        since: at(0) - MS(900),
        asked: at(0) - MS(2),
        until: at(0) - MS(1),
        votes: votes(Loss::NoQuorum),
    }));
    let wait = || waiter(Limit::Until(at(50))).resume_from(Some(denial.clone()), None);
    let mut cut_off = wait();
    check(&mut cut_off, &[]);
    cut_off.lose_attempt(defeat(Loss::NoQuorum, at(0)), at(50), 0);
    assert_eq!(cut_off.next(at(50)), WaitNext::GiveUp(Box::new(denial.clone())));

    let since = at(0) - MS(900);
    let mut wait = waiter(Limit::Never).resume_from(Some(denial), Some(since));
    check(&mut wait, &[(20, Lost(Loss::NoQuorum), Sleep(40)), (40, Nothing, BY_TIMER)]);
    wait.lose_attempt(defeat(Loss::NoQuorum, at(40)), at(100), 0);
    assert_eq!(silence(wait.next(at(100))), (since, at(100)));
}

#[test]
fn a_refused_bid_waits_for_its_turn_until_the_limit_or_until_calls_may_be_lost() {
    let mut wait = hurried(Limit::Until(at(80)));
    check(&mut wait, &[]);
    assert_eq!(wait.await_turn(at(100), at(10)), Ok(at(80)));
    assert_eq!(wait.await_turn(at(50), at(10)), Ok(at(50)));
    wait.miss_wakeups(at(10), 0);
    assert_eq!(wait.await_turn(at(100), at(10)), Ok(at(11)));
    assert_eq!(wait.await_turn(at(100), at(11)), Err(Some(Wake::MaybeMissed)));
    assert_eq!(wait.await_turn(at(100), at(80)), Err(None));

    // The next pause is longer, whatever ended the bid.
    for (missed, pause_ms) in [(true, 2), (false, 1)] {
        let mut wait = hurried(Limit::Never);
        check(&mut wait, &[]);
        if missed {
            wait.miss_wakeups(at(10), 0);
        }
        wait.lose_attempt(defeat(Loss::Held, at(0)), at(10), 0);
        wait.start_attempt(at(30));
        wait.miss_wakeups(at(30), 0);
        let until = at(30 + pause_ms);
        assert_eq!(wait.await_turn(at(100), at(30)), Ok(until));
    }
}

#[test]
fn it_waits_for_the_one_that_is_taken_alone_and_after_two_failures_takes_all_in_order() {
    let mut several = Several::new(Limit::Never);
    assert_eq!(several.next(at(0)), SeveralNext::AskAll);
    several.missed(1);
    for (taken, next) in [(1, 0), (0, 2)] {
        assert_eq!(several.next(at(0)), SeveralNext::WaitFor(taken, Limit::Never));
        several.waited(true);
        assert_eq!(several.next(at(0)), SeveralNext::AskAll);
        several.missed(next);
    }
    assert_eq!(several.next(at(0)), SeveralNext::TakeInOrder(Limit::Never));
}

#[test]
fn the_limit_ends_every_wait() {
    let limit = Limit::Until(at(5));
    let mut several = Several::new(limit);
    several.missed(0);
    assert_eq!(several.next(at(0)), SeveralNext::WaitFor(0, limit));
    several.missed(0);
    assert_eq!(several.next(at(5)), SeveralNext::GiveUp(0));
    let mut tries = Several::new(Limit::Once(at(0)));
    assert_eq!(tries.next(at(0)), SeveralNext::AskAll);
    tries.missed(0);
    assert_eq!(tries.next(at(0)), SeveralNext::GiveUp(0));
    let mut late = Several::new(limit);
    late.missed(0);
    late.waited(false);
    assert_eq!(late.next(at(6)), SeveralNext::GiveUp(0));
}
