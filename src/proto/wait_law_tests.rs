//! What holds for every wait, whatever happens to it.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::proto::{Cause, HoldId, Quorum, Verdict};

const MS: fn(u64) -> Duration = Duration::from_millis;
const PATIENCE: Duration = Duration::from_secs(1);
const REFRESH: Duration = Duration::from_millis(100);
const SETUP: Duration = Duration::from_millis(200);
const POLL: Duration = Duration::from_millis(500);
/// A sleep may take so much longer than it should.
const LATE: u64 = 3;

fn at(ms: u64) -> Moment {
    Moment::from_nanos(10_000_000_000) + MS(ms)
}

/// How an attempt ends, and what happens then.
#[derive(Clone, Copy, Debug)]
struct Step {
    loss: u8,
    took_ms: u64,
    calls_after_ms: Option<u64>,
    misses_after_ms: Option<u64>,
    late_ms: u64,
    chance: u32,
    /// Who has the votes in a split.
    holders: u8,
}

/// No quorum answers in half of them, and in all where `silent`.
fn steps(silent: bool) -> impl Strategy<Value = Vec<Step>> {
    let times = (0..300_u64, 0..LATE, any::<u32>());
    let heard = (prop::option::of(1..700_u64), prop::option::of(1..700_u64));
    let step = ((0..6_u8, 0..3_u8), times, heard);
    let step = step.prop_map(move |((loss, holders), times, heard)| {
        let (took_ms, late_ms, chance) = times;
        let (calls_after_ms, misses_after_ms) = heard;
        let loss = if silent { 5 } else { loss };
        Step { loss, took_ms, calls_after_ms, misses_after_ms, late_ms, chance, holders }
    });
    vec(step, 1..60)
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Once(Moment::BEGINNING)),
        Just(Limit::Never),
        (0..5_000_u64).prop_map(|ms| Limit::Until(at(ms))),
        (0..300_u64).prop_map(|ms| Limit::Until(at(ms))),
    ]
}

#[derive(Debug)]
struct Attempt {
    started: Moment,
    ended: Moment,
    loss: Loss,
    /// Who had the votes in a split, the same as in the attempt before.
    holders: u8,
    is_repeated: bool,
    /// The limit came before the answers.
    is_cut_off: bool,
    /// What woke the waiter before it.
    wake: Option<Wake>,
}

#[derive(Debug)]
struct Trace {
    attempts: Vec<Attempt>,
    /// The answer, and when it was given. `None`: the steps were over before.
    end: Option<(Moment, Denial)>,
}

/// Does what the wait says until it gives up.
struct Course {
    wait: Wait,
    limit: Limit,
    now: Moment,
    attempts: Vec<Attempt>,
}

impl Course {
    fn run(mut self, steps: Vec<Step>) -> Trace {
        let (mut steps, mut step, mut called) = (steps.into_iter(), None, false);
        loop {
            let next = self.wait.next(self.now, &[called; 3]);
            let listens = matches!(self.wait.while_held, WhileHeld::Listen { .. });
            let was_held = self.attempts.last().is_some_and(|last| last.loss == Loss::Held);
            let was_lost = self.attempts.last().is_some_and(|last| last.loss != Loss::NoQuorum);
            let listens_in_split = listens && self.wait.has_subscribed && !self.has_queue();
            let is_heard = was_held && listens || was_lost && listens_in_split;
            if called && is_heard && !self.limit_has_come() {
                let is_deaf = self.attempts.last().is_some_and(|last| self.now < deaf_until(last));
                match next {
                    WaitNext::Sleep(_) | WaitNext::Ask(Some(Wake::Missed)) => {
                        assert!(self.attempts.last().is_some_and(is_split));
                    }
                    _ => assert!(next == WaitNext::Ask(Some(Wake::Called)) && !is_deaf),
                }
            }
            match (next, step) {
                (WaitNext::Ask(wake), _) => {
                    called = false;
                    step = steps.next();
                    let Some(step) = step else {
                        return Trace { attempts: self.attempts, end: None };
                    };
                    self.attempt(step, wake);
                }
                (WaitNext::Subscribe(until), Some(step)) => {
                    self.now = until.min(self.now + MS(step.took_ms));
                    self.wait.finish_subscribing();
                }
                (WaitNext::Queue { refresh }, Some(_)) => {
                    assert!(listens && was_lost && !self.limit_has_come());
                    self.wait = self.wait.in_queue(refresh);
                }
                (WaitNext::Sleep(until), Some(step)) => called |= self.sleep(until, step),
                (WaitNext::GiveUp(denial), Some(_)) => {
                    return Trace { attempts: self.attempts, end: Some((self.now, *denial)) };
                }
                (_, None) => panic!("no attempt has been made"),
            }
        }
    }

    fn has_queue(&self) -> bool {
        matches!(self.wait.while_held, WhileHeld::Listen { refresh: Some(_), .. })
    }

    fn limit_has_come(&self) -> bool {
        self.limit.moment().is_some_and(|limit| self.now >= limit)
    }

    fn attempt(&mut self, step: Step, wake: Option<Wake>) {
        let started = self.now;
        let is_known = self.wait.denial().is_some();
        let window = self.wait.start_attempt(started);
        assert_eq!(window.rounds, self.limit.moment().filter(|limit| *limit > started));
        let limit = window.answers;
        assert_eq!(limit, window.rounds.filter(|_| is_known));
        let ended = started + MS(step.took_ms);
        let ended = limit.map_or(ended, |limit| limit.min(ended));
        let loss = match step.loss {
            0 | 1 => Loss::Held,
            2 => Loss::Split,
            _ => Loss::NoQuorum,
        };
        self.now = ended;
        let silent = loss == Loss::NoQuorum;
        let is_cut_off = silent && limit.is_some_and(|limit| ended >= limit);
        let mut votes = Votes::new(Quorum::of(3));
        for voter in 0..3 {
            let by =
                if loss == Loss::Split { format!("{}{voter}", step.holders) } else { "h".into() };
            let refused = Verdict::Refused { by: HoldId::parse(&by), ttl: Some(MS(600)) };
            votes.record(voter, if silent { Verdict::Unknown(Cause::Unheard) } else { refused });
        }
        let defeat = Defeat { loss, votes, started };
        let told = self.wait.lose_attempt(&defeat, ended, step.chance);
        assert_eq!(told.is_some(), !is_cut_off, "others learn answers only");
        let holders = step.holders;
        let before = self.attempts.last();
        let is_repeated = loss == Loss::Split
            && before.is_some_and(|before| before.loss == loss && before.holders == holders);
        let ends = Attempt { started, ended, loss, holders, is_repeated, is_cut_off, wake };
        self.attempts.push(ends);
    }

    /// Sleeps until then, or until something is heard; says whether that were calls.
    fn sleep(&mut self, until: Moment, step: Step) -> bool {
        assert!(until > self.now, "a sleep that is over");
        let ended = self.attempts.last().expect("it sleeps after an attempt").ended;
        let heard = |ms: Option<u64>| {
            ms.map(|ms| ended + MS(ms)).filter(|then| *then > self.now && *then < until)
        };
        if let Some(call) = heard(step.calls_after_ms) {
            self.now = call;
            return true;
        }
        if let Some(missed) = heard(step.misses_after_ms) {
            self.now = missed;
            self.wait.miss_calls(missed, step.chance);
        } else {
            self.now = until + MS(step.late_ms);
        }
        false
    }
}

const LISTENS: WhileHeld = WhileHeld::Listen { setup: SETUP, poll: POLL, refresh: None };
const LISTENS_FIRST: WhileHeld =
    WhileHeld::Listen { setup: SETUP, poll: POLL, refresh: Some(REFRESH) };
const QUEUES: WhileHeld = WhileHeld::Bid { refresh: REFRESH };

fn ways() -> impl Strategy<Value = WhileHeld> {
    prop_oneof![Just(LISTENS), Just(LISTENS_FIRST), Just(QUEUES)]
}

fn run(limit: Limit, while_held: WhileHeld, steps: Vec<Step>) -> Trace {
    let wait = Wait::new(limit, PATIENCE, while_held);
    Course { wait, limit, now: at(0), attempts: Vec::new() }.run(steps)
}

/// How long it must pause at least between this attempt and the next, by a timer.
fn least_pause(attempt: &Attempt) -> Duration {
    match attempt.loss {
        Loss::NoQuorum => MS(20),
        Loss::Split if attempt.is_repeated => MS(2),
        Loss::Split => (2 * attempt.ended.since(attempt.started)).clamp(MS(1), MS(500)),
        Loss::Held => MS(2),
    }
}

/// Nobody has the lock, and the contenders call each other.
fn is_split(attempt: &Attempt) -> bool {
    attempt.loss == Loss::Split && !attempt.is_repeated
}

/// Until then at least nobody's call is heard.
fn deaf_until(attempt: &Attempt) -> Moment {
    let deaf = if is_split(attempt) { least_pause(attempt) / 2 } else { Duration::ZERO };
    attempt.ended + deaf
}

proptest! {
    #[test]
    fn no_attempt_but_the_first_starts_after_the_limit(
        limit in limits(), way in ways(), steps in steps(false),
    ) {
        let trace = run(limit, way, steps);
        let Some(limit) = limit.moment() else { return Ok(()) };
        for attempt in trace.attempts.iter().skip(1) {
            prop_assert!(attempt.started < limit, "{attempt:?}");
        }
    }

    #[test]
    fn it_gives_up_at_the_limit_or_without_one_when_its_patience_ends_and_not_before(
        limit in limits(), way in ways(), steps in steps(false),
    ) {
        let trace = run(limit, way, steps);
        let Some((now, denial)) = trace.end else { return Ok(()) };
        let is_impatient = matches!(
            &denial,
            Denial::NoQuorum(outage) if now.since(outage.since) >= PATIENCE
        );
        let may_end = if limit == Limit::Never { is_impatient } else { limit.has_come(now) };
        prop_assert!(may_end);
        if let Limit::Until(limit) = limit {
            let latest = trace.attempts.last().expect("there is one").ended.max(limit);
            prop_assert!(now <= latest + MS(LATE));
        }
    }

    /// The last attempt starts when the patience ends.
    #[test]
    fn with_silent_voters_it_gives_up_within_its_patience_and_one_attempt(
        way in ways(), steps in steps(true),
    ) {
        let trace = run(Limit::Never, way, steps);
        let Some(first) = trace.attempts.first() else { return Ok(()) };
        for pair in trace.attempts.windows(2) {
            let latest = first.started + PATIENCE + MS(LATE);
            prop_assert!(pair[1].started <= latest, "{pair:?}");
        }
    }

    #[test]
    fn its_answer_is_that_of_the_last_attempt_that_had_its_time(
        limit in limits(), way in ways(), steps in steps(false),
    ) {
        let trace = run(limit, way, steps);
        let Some((_, denial)) = trace.end else { return Ok(()) };
        let mut answers = trace.attempts.iter().filter(|one| !one.is_cut_off);
        let answer = answers.next_back();
        let is_held = answer.is_some_and(|answer| answer.loss != Loss::NoQuorum);
        prop_assert_eq!(matches!(denial, Denial::Held(_)), is_held);
        if let (Denial::NoQuorum(outage), Some(answer)) = (denial, answer) {
            prop_assert_eq!(outage.until, answer.ended);
            let first = answers.rev().take_while(|one| one.loss == Loss::NoQuorum).last();
            prop_assert_eq!(outage.since, first.unwrap_or(answer).started);
        }
    }

    #[test]
    fn it_pauses_between_attempts_unless_voters_call(
        limit in limits(), in_queue in any::<bool>(), steps in steps(false),
    ) {
        let trace = run(limit, if in_queue { QUEUES } else { LISTENS }, steps);
        let mut silent_since = None;
        for pair in trace.attempts.windows(2) {
            let (last, next) = (&pair[0], &pair[1]);
            silent_since = match last.loss {
                Loss::NoQuorum => silent_since.or(Some(last.started)),
                Loss::Held | Loss::Split => None,
            };
            let mut least = last.ended + least_pause(last);
            if in_queue {
                least = least.min(last.started + REFRESH);
            }
            if let Some(since) = silent_since.filter(|_| limit == Limit::Never) {
                least = least.min(since + PATIENCE);
            }
            match next.wake {
                Some(Wake::Called) => prop_assert!(next.started >= deaf_until(last), "{last:?}"),
                Some(Wake::Missed) => prop_assert!(next.started >= last.ended + MS(1)),
                Some(Wake::Timer) => prop_assert!(next.started >= least, "{last:?} {next:?}"),
                // A bid has waited by itself; a subscription is followed by an attempt, once.
                None => prop_assert!(last.loss != Loss::NoQuorum, "{last:?}"),
            }
        }
        let unpaused = trace.attempts.iter().skip(1).filter(|one| one.wake.is_none()).count();
        prop_assert!(in_queue || unpaused <= 1);
    }

    /// With 600 ms to go and a poll after 500, of which a miss may take some.
    #[test]
    fn whoever_the_same_refuse_twice_listens_as_to_one_holder(
        limit in limits(), steps in steps(false),
    ) {
        let trace = run(limit, LISTENS, steps);
        let mut has_subscribed = false;
        for pair in trace.attempts.windows(2) {
            let (last, next) = (&pair[0], &pair[1]);
            let rests = has_subscribed && (last.is_repeated || last.loss == Loss::Held);
            if rests && next.wake == Some(Wake::Timer) {
                prop_assert!(next.started >= last.ended + POLL, "{last:?} {next:?}");
            }
            has_subscribed |= last.loss != Loss::NoQuorum;
        }
    }
}
