use super::{
    tests::{
        Answer::{self, Ask, Queue, Sleep, Subscribe},
        BY_CALL, BY_TIMER,
        Event::{Called, Lost, Missed, Nothing, SplitBy, Subscribed},
        MS, NOBODY, PATIENCE, at, check, defeat, votes_by, wait_in_line, wait_in_queue,
    },
    *,
};
use crate::proto::{Cause, Verdict};

#[test]
fn in_a_split_it_listens_from_the_first_on_and_pauses_for_twice_as_long_as_that_took() {
    check(
        &mut wait_in_line(Limit::Never),
        &[
            (10, Lost(Loss::Split), Subscribe(210)),
            (11, Subscribed, Ask),
            (21, Lost(Loss::Split), Sleep(41)),
            (30, Called(1), Sleep(41)),
            (41, Nothing, BY_TIMER),
            (42, Lost(Loss::Split), Sleep(82)),
            // For half of the pause those who call are the contenders, itself among them.
            (50, Called(2), Sleep(62)),
            (61, Called(2), Sleep(62)),
            (62, Called(2), BY_CALL),
            (63, Lost(Loss::Held), Sleep(665)),
            (70, Called(2), BY_CALL),
            (71, Lost(Loss::Split), Sleep(73)),
            (72, Missed, Sleep(73)),
            (73, Nothing, Answer::Wake(Wake::Missed)),
        ],
    );
}

/// The holds that `SplitBy` makes have 600 ms to go.
#[test]
fn whoever_the_same_holds_refuse_twice_in_a_row_waits_for_them_as_for_one() {
    check(
        &mut wait_in_line(Limit::Never),
        &[
            (10, SplitBy("red"), Subscribe(210)),
            (11, Subscribed, Ask),
            (12, SplitBy("red"), Sleep(614)),
            (30, Called(1), Sleep(614)),
            (40, Called(2), BY_CALL),
            (41, SplitBy("blue"), Sleep(43)),
            (43, Nothing, BY_TIMER),
            (44, SplitBy("blue"), Sleep(646)),
        ],
    );
}

/// The holds of the other two may have an hour to go, and the silent one may be free at once.
#[test]
fn beside_a_silent_voter_it_asks_again_and_again_whoever_refuses_it() {
    let mut wait = wait_in_line(Limit::Never);
    wait.finish_subscribing();
    for attempt in 0..20 {
        let started = at(10 + 1_000 * attempt);
        let mut votes = votes_by(Loss::Split, |voter| format!("red{voter}:7"));
        votes.record(2, Verdict::Unknown(Cause::TimedOut(MS(1))));
        wait.start_attempt(started);
        wait.lose_attempt(&Defeat { votes, loss: Loss::Split, started }, started + MS(2), 0);
        let WaitNext::Sleep(until) = wait.next(started + MS(2), &NOBODY) else { panic!("rests") };
        assert!(until <= started + MS(502), "attempt {attempt}: {until:?}");
    }
}

#[test]
fn an_attempt_in_between_that_was_lost_otherwise_proves_nothing_of_the_holds_before_it() {
    for loss in [Loss::Held, Loss::NoQuorum] {
        let mut wait = wait_in_line(Limit::Never);
        check(&mut wait, &[(10, SplitBy("red"), Subscribe(210)), (11, Subscribed, Ask)]);
        wait.start_attempt(at(11));
        wait.lose_attempt(&defeat(loss, at(11)), at(12), 0);
        wait.start_attempt(at(13));
        let votes = votes_by(Loss::Split, |voter| format!("red{voter}:7"));
        wait.lose_attempt(&Defeat { votes, loss: Loss::Split, started: at(13) }, at(14), 0);
        let WaitNext::Sleep(until) = wait.next(at(14), &NOBODY) else { panic!("it rests") };
        assert!(until < at(14) + MS(100), "as in a split");
    }
}

#[test]
fn where_there_is_a_queue_a_split_leads_into_it_whoever_it_is_by() {
    let (setup, poll, refresh) = (MS(200), MS(2_000), Some(MS(100)));
    let while_held = WhileHeld::Listen { setup, poll, refresh };
    let mut wait = Wait::new(Limit::Never, MS(PATIENCE), while_held);
    check(&mut wait, &[(4, SplitBy("red"), Queue)]);
    check(
        &mut wait_in_queue(Limit::Never),
        &[(10, SplitBy("red"), Sleep(30)), (30, Nothing, BY_TIMER)],
    );
}
