use super::{
    tests::{
        Answer::{Ask, Held, Queue, Sleep, Subscribe},
        BY_CALL, BY_TIMER,
        Event::{Called, Lost, Nothing, Subscribed},
        MS, NOBODY, PATIENCE, at, check, defeat, votes, wait_in_queue,
    },
    *,
};
use crate::proto::{HoldId, Quorum, Verdict};

/// A waiter in line for a lock that has a queue.
fn wait_beside_a_queue(limit: Limit) -> Wait {
    let (setup, poll, refresh) = (MS(200), MS(2_000), Some(MS(100)));
    Wait::new(limit, MS(PATIENCE), WhileHeld::Listen { setup, poll, refresh })
}

// The first call may have been for it alone, so it listens once. The defeats that `defeat` makes
// leave the lock held for 600 ms.
#[test]
fn a_waiter_that_lost_the_race_for_a_released_lock_enters_the_queue() {
    check(
        &mut wait_beside_a_queue(Limit::Never),
        &[
            (4, Lost(Loss::Held), Subscribe(204)),
            (8, Subscribed, Ask),
            (12, Lost(Loss::Held), Sleep(614)),
            (60, Called(2), BY_CALL),
            (64, Lost(Loss::Held), Queue),
        ],
    );
}

#[test]
fn a_waiter_that_listened_in_vain_enters_the_queue() {
    check(
        &mut wait_beside_a_queue(Limit::Never),
        &[
            (4, Lost(Loss::Held), Subscribe(204)),
            (8, Subscribed, Ask),
            (12, Lost(Loss::Held), Sleep(614)),
            (614, Nothing, BY_TIMER),
            (620, Lost(Loss::NoQuorum), Sleep(640)),
            (640, Nothing, BY_TIMER),
            (644, Lost(Loss::Held), Sleep(1246)),
            (1246, Nothing, BY_TIMER),
            (1250, Lost(Loss::Held), Queue),
        ],
    );
}

#[test]
fn contenders_that_split_the_votes_settle_it_in_the_queue() {
    check(&mut wait_beside_a_queue(Limit::Never), &[(4, Lost(Loss::Split), Queue)]);
}

#[test]
fn a_waiter_enters_the_queue_at_once_where_others_queue() {
    let mut wait = wait_beside_a_queue(Limit::Never);
    wait.start_attempt(at(0));
    let mut votes = Votes::new(Quorum::of(3));
    for voter in 0..3 {
        let place = HoldId::parse("place");
        votes.record(voter, Verdict::Behind { place, ttl: Some(MS(600)) });
    }
    let defeat = Defeat { loss: Loss::Held, votes, started: at(0) };
    wait.lose_attempt(&defeat, at(4), 0);
    assert_eq!(wait.next(at(4), &NOBODY), WaitNext::Queue { refresh: MS(100) });
}

#[test]
fn whose_limit_has_come_enters_no_queue() {
    check(&mut wait_beside_a_queue(Limit::Until(at(50))), &[(50, Lost(Loss::Split), Held)]);
}

// Its attempts go on counting, so that each has another id; and so does the time without a quorum.
#[test]
fn what_a_waiter_knows_it_takes_into_the_queue() {
    let mut wait = wait_beside_a_queue(Limit::Never);
    check(
        &mut wait,
        &[
            (4, Lost(Loss::NoQuorum), Sleep(24)),
            (24, Nothing, BY_TIMER),
            (30, Lost(Loss::Split), Queue),
        ],
    );
    let mut queued = wait.in_queue(MS(100));
    assert_eq!(queued.attempts(), 2);
    let Some(Denial::Held(refusal)) = queued.denial() else { panic!("{queued:?}") };
    assert_eq!(refusal.by, Some(HoldId::parse(&format!("{:?}:0", at(24)))));
    assert_eq!(refusal.ends, Some(at(630)), "it is held for 600 ms more");
    assert_eq!(queued.next(at(30), &NOBODY), WaitNext::Ask(None));
}

#[test]
fn a_refused_bid_waits_for_its_turn_until_the_limit_or_until_calls_may_be_lost() {
    let mut wait = wait_in_queue(Limit::Until(at(80)));
    check(&mut wait, &[]);
    assert_eq!(wait.await_turn(at(100), at(10), &votes(Loss::Held)), WaitNext::Sleep(at(80)));
    assert_eq!(wait.await_turn(at(50), at(10), &votes(Loss::Held)), WaitNext::Sleep(at(50)));
    wait.miss_calls(at(10), 0);
    assert_eq!(wait.await_turn(at(100), at(10), &votes(Loss::Held)), WaitNext::Sleep(at(11)));
    assert_eq!(
        wait.await_turn(at(100), at(11), &votes(Loss::Held)),
        WaitNext::Ask(Some(Wake::Missed))
    );
    let denial = Denial::Held(Refusal::of(&votes(Loss::Held), at(80)));
    assert_eq!(
        wait.await_turn(at(100), at(80), &votes(Loss::Held)),
        WaitNext::GiveUp(Box::new(denial))
    );

    // The next pause is longer where that ended the bid.
    for (ended_ms, pause_ms) in [(11, 2), (10, 1)] {
        let mut wait = wait_in_queue(Limit::Never);
        check(&mut wait, &[]);
        wait.miss_calls(at(10), 0);
        wait.lose_attempt(&defeat(Loss::Held, at(0)), at(ended_ms), 0);
        wait.start_attempt(at(30));
        wait.miss_calls(at(30), 0);
        let until = at(30 + pause_ms);
        assert_eq!(wait.await_turn(at(100), at(30), &votes(Loss::Held)), WaitNext::Sleep(until));
    }
}
