//! What holds for every wait, whatever happens to it.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::proto::{Cause, HoldId, Quorum, Verdict};

const MS: fn(u64) -> Duration = Duration::from_millis;
const PATIENCE: Duration = Duration::from_secs(1);
const REFRESH: Duration = Duration::from_millis(100);
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
    misses_after_ms: Option<u64>,
    late_ms: u64,
    chance: u32,
}

/// No quorum answers in half of them, and in all where `silent`.
fn steps(silent: bool) -> impl Strategy<Value = Vec<Step>> {
    let times = (0..300_u64, 0..LATE, any::<u32>(), prop::option::of(1..700_u64));
    let step = (0..6_u8, times).prop_map(move |(loss, times)| {
        let (took_ms, late_ms, chance, misses_after_ms) = times;
        Step { loss: if silent { 5 } else { loss }, took_ms, misses_after_ms, late_ms, chance }
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
        let (mut steps, mut step) = (steps.into_iter(), None);
        loop {
            match (self.wait.next(self.now), step) {
                (WaitNext::Ask(wake), _) => {
                    step = steps.next();
                    let Some(step) = step else {
                        return Trace { attempts: self.attempts, end: None };
                    };
                    self.attempt(step, wake);
                }
                (WaitNext::Sleep(until), Some(step)) => self.sleep(until, step),
                (WaitNext::GiveUp(denial), Some(_)) => {
                    return Trace { attempts: self.attempts, end: Some((self.now, *denial)) };
                }
                (_, None) => panic!("no attempt has been made"),
            }
        }
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
            let by = if loss == Loss::Split { format!("h{voter}") } else { "h".into() };
            let refused = Verdict::Refused { by: HoldId::parse(&by), ttl: Some(MS(600)) };
            votes.record(voter, if silent { Verdict::Unknown(Cause::Unheard) } else { refused });
        }
        let defeat = Defeat { loss, votes, started };
        let told = self.wait.lose_attempt(defeat, ended, step.chance);
        assert_eq!(told.is_some(), !is_cut_off, "others learn answers only");
        self.attempts.push(Attempt { started, ended, loss, is_cut_off, wake });
    }

    /// Sleeps until then, or until calls may have been lost.
    fn sleep(&mut self, until: Moment, step: Step) {
        assert!(until > self.now, "a sleep that is over");
        let ended = self.attempts.last().expect("it sleeps after an attempt").ended;
        let missed = step.misses_after_ms.map(|ms| ended + MS(ms));
        if let Some(missed) = missed.filter(|then| *then > self.now && *then < until) {
            self.now = missed;
            self.wait.miss_calls(missed, step.chance);
        } else {
            self.now = until + MS(step.late_ms);
        }
    }
}

fn run(limit: Limit, refresh: Duration, steps: Vec<Step>) -> Trace {
    let wait = Wait::new(limit, PATIENCE, refresh);
    Course { wait, limit, now: at(0), attempts: Vec::new() }.run(steps)
}

/// How long it must pause at least between this attempt and the next.
fn least_pause(attempt: &Attempt) -> Duration {
    match attempt.loss {
        Loss::NoQuorum => MS(20),
        Loss::Split => (2 * attempt.ended.since(attempt.started)).clamp(MS(1), MS(500)),
        // A bid has waited by itself.
        Loss::Held => Duration::ZERO,
    }
}

fn refreshes() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(REFRESH), Just(100 * REFRESH)]
}

proptest! {
    #[test]
    fn no_attempt_but_the_first_starts_after_the_limit(
        limit in limits(), refresh in refreshes(), steps in steps(false),
    ) {
        let trace = run(limit, refresh, steps);
        let Some(limit) = limit.moment() else { return Ok(()) };
        for attempt in trace.attempts.iter().skip(1) {
            prop_assert!(attempt.started < limit, "{attempt:?}");
        }
    }

    #[test]
    fn it_gives_up_at_the_limit_or_without_one_when_its_patience_ends_and_not_before(
        limit in limits(), refresh in refreshes(), steps in steps(false),
    ) {
        let trace = run(limit, refresh, steps);
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
        refresh in refreshes(), steps in steps(true),
    ) {
        let trace = run(Limit::Never, refresh, steps);
        let Some(first) = trace.attempts.first() else { return Ok(()) };
        for pair in trace.attempts.windows(2) {
            let latest = first.started + PATIENCE + MS(LATE);
            prop_assert!(pair[1].started <= latest, "{pair:?}");
        }
    }

    #[test]
    fn its_answer_is_that_of_the_last_attempt_that_had_its_time(
        limit in limits(), refresh in refreshes(), steps in steps(false),
    ) {
        let trace = run(limit, refresh, steps);
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
    fn it_pauses_after_silence_and_splits_in_time_to_keep_its_place(
        limit in limits(), refresh in refreshes(), steps in steps(false),
    ) {
        let trace = run(limit, refresh, steps);
        let mut silent_since = None;
        for pair in trace.attempts.windows(2) {
            let (last, next) = (&pair[0], &pair[1]);
            silent_since = match last.loss {
                Loss::NoQuorum => silent_since.or(Some(last.started)),
                Loss::Held | Loss::Split => None,
            };
            let mut least = (last.ended + least_pause(last)).min(last.started + refresh);
            if let Some(since) = silent_since.filter(|_| limit == Limit::Never) {
                least = least.min(since + PATIENCE);
            }
            prop_assert!(next.started >= least, "{last:?} {next:?}");
            prop_assert_eq!(next.wake.is_none(), last.loss == Loss::Held);
        }
    }
}
