//! Waiting for a lock: when to ask again, and when to give up with which answer.

use std::{mem, time::Duration};

use super::{Backoff, Defeat, Denial, Loss, Moment};

/// How long to wait for a lock that another hold has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Not at all. Leave to ask is waited for until this moment, where the client makes as many
    /// attempts as it may.
    Once(Moment),
    Until(Moment),
    Never,
}

impl Limit {
    pub fn moment(self) -> Option<Moment> {
        match self {
            Self::Until(moment) => Some(moment),
            Self::Once(_) | Self::Never => None,
        }
    }

    /// Whether a lock that another hold has is waited for.
    pub fn waits(self) -> bool {
        !matches!(self, Self::Once(_))
    }

    /// The same for one who asks once. `patience`: until when leave to ask is waited for at most.
    #[must_use]
    pub fn once(self, patience: Moment) -> Self {
        match self {
            Self::Once(moment) => Self::Once(moment),
            Self::Until(moment) => Self::Once(moment.min(patience)),
            Self::Never => Self::Once(patience),
        }
    }

    /// Whether a lost attempt is the last.
    fn has_come(self, now: Moment) -> bool {
        match self {
            Self::Once(_) => true,
            Self::Until(moment) => now >= moment,
            Self::Never => false,
        }
    }
}

/// What ended a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Enough voters called.
    Called,
    /// Calls may have been lost.
    Missed,
    Timer,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitNext {
    /// Ask all voters.
    Ask(Option<Wake>),
    /// Nothing before this moment, unless a voter calls.
    Sleep(Moment),
    GiveUp(Box<Denial>),
}

/// One caller's wait, from its first attempt to the lock or a clear answer.
#[derive(Clone, Debug)]
pub struct Wait {
    limit: Limit,
    /// For how long too few answers are borne; `None`: until the limit.
    patience: Option<Duration>,
    /// So long after a bid the next one must follow: its place in the queue lives so short.
    pub(super) refresh: Duration,
    state: WaitState,
    /// What is missing at this moment the latest attempt does not wait for.
    answers: Option<Moment>,
    attempts: u32,
    denial: Option<Denial>,
    /// The start of the first attempt since which too few voters have answered.
    silent_since: Option<Moment>,
    /// When to ask again because calls may have been lost.
    deaf_until: Option<Moment>,
    /// When the last bid from its place began that a majority answered.
    pub(super) answered: Option<Moment>,
    /// A majority gave its vote to the last bid without an answer that counts.
    in_vain: bool,
    silent: Backoff,
    contended: Backoff,
    /// A voter whose connections break again and again must not make its waiters ask as often.
    deaf: Backoff,
}

#[derive(Clone, Copy, Debug)]
enum WaitState {
    Asking,
    /// Nothing but the limit ends it sooner.
    Pausing(Moment),
    Over,
}

impl Wait {
    /// `patience`: a caller without a limit gives up after so long without a majority of answers.
    pub fn new(limit: Limit, patience: Duration, refresh: Duration) -> Self {
        let ms = Duration::from_millis;
        let pause = |first_ms| Backoff::new(ms(first_ms), ms(500));
        Self {
            limit,
            patience: (limit == Limit::Never).then_some(patience),
            refresh,
            state: WaitState::Asking,
            answers: None,
            attempts: 0,
            denial: None,
            silent_since: None,
            deaf_until: None,
            answered: None,
            in_vain: false,
            silent: pause(20),
            contended: pause(1),
            deaf: pause(1),
        }
    }

    /// Goes on where another caller of the same voters stopped.
    #[must_use]
    pub fn resume_from(mut self, denial: Option<Denial>, silent_since: Option<Moment>) -> Self {
        (self.denial, self.silent_since) = (denial, silent_since);
        self
    }

    /// Why the last attempt that heard a majority, or gave up on one, did not get the lock.
    pub fn denial(&self) -> Option<&Denial> {
        self.denial.as_ref()
    }

    pub fn limit(&self) -> Limit {
        self.limit
    }

    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Until when the latest attempt hears answers, if the limit cuts them off.
    pub fn cut_off(&self) -> Option<Moment> {
        self.answers
    }

    /// A majority has answered the bid that began then.
    pub(super) fn answer(&mut self, started: Moment) {
        (self.answered, self.in_vain) = (Some(started), false);
    }

    /// Whether its place does not lead to the lock any more, after a bid that too few voters
    /// answered: then it goes on from another. `in_vain`: a majority gave its vote.
    ///
    /// Nobody remembers a place without a request for longer than three refreshes. What is in vain
    /// once may be a clock that is being measured.
    pub(super) fn place_has_ended(&mut self, in_vain: bool, now: Moment) -> bool {
        let remembered = self.answered.map(|answered| answered + 3 * self.refresh);
        let was_in_vain = mem::replace(&mut self.in_vain, in_vain);
        let has_ended = remembered.is_none_or(|until| now >= until) || in_vain && was_in_vain;
        if has_ended {
            (self.answered, self.in_vain) = (None, false);
        }
        has_ended
    }

    /// Starts an attempt; returns until when it hears answers. The limit cuts them off only where
    /// there is something to tell the caller without them: law 9, what had no time to answer was
    /// not silent. Where it has passed, the attempt is the only one, and has its full time.
    pub fn start_attempt(&mut self, now: Moment) -> Option<Moment> {
        let is_known = self.denial.is_some() || crate::mutant!("limit_is_taken_for_silence");
        let limit = self.limit.moment().filter(|limit| *limit > now && is_known);
        (self.state, self.answers, self.deaf_until) = (WaitState::Asking, limit, None);
        self.attempts += 1;
        limit
    }

    /// The attempt was lost. Returns what other waiters should learn from that, if anything.
    pub fn lose_attempt(&mut self, defeat: Defeat, now: Moment, chance: u32) -> Option<&Denial> {
        let (loss, started) = (defeat.loss, defeat.started);
        if loss == Loss::Held {
            self.answer(started);
        }
        // What the limit cut off was no answer.
        let is_answer = loss != Loss::NoQuorum || self.answers.is_none_or(|limit| now < limit);
        if is_answer || crate::mutant!("limit_is_taken_for_silence") {
            self.record_denial(defeat, now);
        }
        self.state = if self.is_over(now) {
            WaitState::Over
        } else {
            self.rest_after(loss, started, now, chance)
        };
        self.denial.as_ref().filter(|_| is_answer)
    }

    /// A bid ended before a majority had answered, because another one may be granted now. That
    /// says nothing.
    pub fn cut_attempt_short(&mut self, now: Moment) {
        self.state = if self.is_over(now) { WaitState::Over } else { WaitState::Asking };
    }

    /// Calls may have been lost. Does nothing where none is waited for.
    pub fn miss_calls(&mut self, now: Moment, chance: u32) {
        if matches!(self.state, WaitState::Asking) {
            let deaf = &mut self.deaf;
            self.deaf_until.get_or_insert_with(|| now + deaf.pause(chance));
        }
    }

    pub fn next(&mut self, now: Moment) -> WaitNext {
        let has_come = self.attempts > 0 && self.limit.has_come(now);
        let is_over = matches!(self.state, WaitState::Over) || has_come;
        if let Some(denial) = self.denial.as_ref().filter(|_| is_over) {
            return WaitNext::GiveUp(Box::new(denial.clone()));
        }
        match self.state {
            WaitState::Asking | WaitState::Over => WaitNext::Ask(None),
            WaitState::Pausing(until) => {
                let asks = |wake| WaitNext::Ask(Some(wake));
                self.sleep(until, now).map_or_else(asks, WaitNext::Sleep)
            }
        }
    }

    /// A majority refused the bid, which waits for its turn until this moment at most. Fails where
    /// the bid is over, with what ended the sleep.
    pub(super) fn await_turn(
        &mut self,
        until: Moment,
        now: Moment,
    ) -> Result<Moment, Option<Wake>> {
        if self.limit.has_come(now) {
            return Err(None);
        }
        self.sleep(until, now).map_err(Some)
    }

    fn record_denial(&mut self, defeat: Defeat, now: Moment) {
        if defeat.loss == Loss::NoQuorum {
            self.silent_since.get_or_insert(defeat.started);
        } else {
            self.silent_since = None;
            self.silent.reset();
        }
        self.denial = Some(Denial::of(defeat, self.silent_since, now));
    }

    fn is_over(&self, now: Moment) -> bool {
        let no_patience = crate::mutant!("no_patience");
        let patience = if no_patience { Some(Duration::ZERO) } else { self.patience };
        let silent = self.silent_since.map(|since| now.since(since));
        self.limit.has_come(now)
            || silent.zip(patience).is_some_and(|(silent, patience)| silent >= patience)
    }

    /// A bid that was refused has waited by itself, so it only pauses otherwise.
    fn rest_after(&mut self, loss: Loss, started: Moment, now: Moment, chance: u32) -> WaitState {
        // In time to keep the place in the queue.
        let last = started + self.refresh;
        match loss {
            Loss::NoQuorum => {
                // Nobody's call is waited for in such a pause.
                self.deaf_until = None;
                let again = now + self.silent.pause(chance);
                let ends = self.silent_since.zip(self.patience);
                let end = ends.map(|(since, patience)| since + patience);
                WaitState::Pausing(end.map_or(again, |end| again.min(end)).min(last))
            }
            // Others may give back one vote after the other, and call. This one has called itself
            // and all others: who asked again at once would only meet them again.
            Loss::Split => {
                self.contended.at_least(2 * now.since(started));
                self.deaf_until = None;
                WaitState::Pausing(last.min(now + self.contended.pause(chance)))
            }
            Loss::Held => {
                self.contended.reset();
                // A bid that ended before the pause was over proves nothing.
                if self.deaf_until.is_none() {
                    self.deaf.reset();
                }
                WaitState::Asking
            }
        }
    }

    /// Sleeps until then, or the time at which to ask because calls may have been lost; or says
    /// what has ended the sleep.
    fn sleep(&mut self, until: Moment, now: Moment) -> Result<Moment, Wake> {
        let is_deaf = self.deaf_until.is_some_and(|until| now >= until);
        if is_deaf || now >= until {
            self.state = WaitState::Asking;
            return Err(if is_deaf { Wake::Missed } else { Wake::Timer });
        }
        let ends = [self.deaf_until, self.limit.moment()].into_iter().flatten();
        Ok(ends.fold(until, Moment::min))
    }
}

/// So often a caller gives back what it has and waits again with nothing in its hands.
const GIVES_BACK: u32 = 2;

/// One caller that wants all of several locks.
#[derive(Clone, Debug)]
pub struct Several {
    limit: Limit,
    /// This one was taken.
    wants: Option<usize>,
    /// One is held.
    has_one: bool,
    is_over: bool,
    /// How often it had one of them and not the others.
    failures: u32,
}

/// What it does next. The locks are called by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeveralNext {
    /// Asks at once for all that it does not have, and waits for none.
    AskAll,
    /// Waits for this one alone, with nothing in its hands.
    WaitFor(usize, Limit),
    /// Takes one after the other, in an order that is the same for all callers, and keeps what it
    /// has.
    TakeInOrder(Limit),
    /// At the limit it lacked this one.
    GiveUp(usize),
}

impl Several {
    pub fn new(limit: Limit) -> Self {
        Self { limit, wants: None, has_one: false, is_over: false, failures: 0 }
    }

    pub fn next(&self, now: Moment) -> SeveralNext {
        let in_order = self.failures >= GIVES_BACK;
        match self.wants {
            None => SeveralNext::AskAll,
            Some(one) if self.is_over || self.limit.has_come(now) => SeveralNext::GiveUp(one),
            Some(_) if in_order && !crate::mutant!("several_are_never_taken_in_order") => {
                SeveralNext::TakeInOrder(self.limit)
            }
            Some(one) => SeveralNext::WaitFor(one, self.limit),
        }
    }

    /// It was the turn of the one that it waited for; or the limit came before.
    pub fn waited(&mut self, is_granted: bool) {
        (self.has_one, self.is_over) = (is_granted, !is_granted);
        if is_granted {
            self.wants = None;
        }
    }

    /// This one of those that it asked for was taken, and all is given back.
    pub fn missed(&mut self, one: usize) {
        if std::mem::take(&mut self.has_one) {
            self.failures = self.failures.saturating_add(1);
        }
        self.wants = Some(one);
    }
}

#[cfg(test)]
#[path = "wait_tests.rs"]
mod tests;
