//! Waiting for a lock: when to ask again, and when to give up with which answer.

use std::{mem, time::Duration};

use super::{Backoff, Defeat, Denial, Loss, Moment};

/// How long to wait for a lock that another hold has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Not at all. If the client already makes as many attempts as it may, the caller waits until
    /// this moment for its turn to ask.
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

    /// The limit of a caller that asks once. `patience`: until when it waits at most for its turn
    /// to ask.
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
    /// Enough voters sent a wake-up.
    Message,
    /// Wake-ups may have been lost.
    MaybeMissed,
    Timer,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitNext {
    /// Ask all voters.
    Ask(Option<Wake>),
    /// Nothing before this moment, unless a wake-up comes.
    Sleep(Moment),
    GiveUp(Box<Denial>),
}

/// One caller's wait, from its first attempt to the lock or a clear answer.
#[derive(Clone, Debug)]
pub struct Wait {
    limit: Limit,
    /// How long it goes on without a quorum; `None`: until the limit.
    patience: Option<Duration>,
    /// The longest time from one bid to the next. Voters keep a place for three times as long.
    pub(super) refresh: Duration,
    /// Until when the next attempt is put off.
    pause: Option<Moment>,
    is_over: bool,
    /// Until when the latest attempt hears answers, if the limit cuts them off.
    cut_off: Option<Moment>,
    attempts: u32,
    denial: Option<Denial>,
    /// The start of the first attempt since which too few voters have answered.
    silent_since: Option<Moment>,
    /// When to ask because wake-ups may have been lost.
    recheck_at: Option<Moment>,
    /// When the last bid from its place began that a majority answered.
    pub(super) answered: Option<Moment>,
    /// A majority gave its votes to the last bid, but they did not count.
    in_vain: bool,
    silent: Backoff,
    contended: Backoff,
    // If a connection breaks again and again, each break may have lost a wake-up. Without a growing
    // pause, all waiters would ask at each of them.
    recheck: Backoff,
}

impl Wait {
    /// `patience`: a caller without a limit gives up after so long without a majority of answers.
    pub fn new(limit: Limit, patience: Duration, refresh: Duration) -> Self {
        let ms = Duration::from_millis;
        let pause = |first_ms| Backoff::new(ms(first_ms), ms(500));
        Self {
            limit,
            // A caller with a limit has said how long it waits. An outage that ends before that
            // must not cost it the lock.
            patience: (limit == Limit::Never).then_some(patience),
            refresh,
            pause: None,
            is_over: false,
            cut_off: None,
            attempts: 0,
            denial: None,
            silent_since: None,
            recheck_at: None,
            answered: None,
            in_vain: false,
            silent: pause(20),
            contended: pause(1),
            recheck: pause(1),
        }
    }

    /// Goes on where another caller of the same voters stopped.
    // The tasks of a client ask one after the other. Without this, each would find out for itself
    // that a lock is taken, or begin the patience of an outage anew.
    #[must_use]
    pub fn resume_from(mut self, denial: Option<Denial>, silent_since: Option<Moment>) -> Self {
        (self.denial, self.silent_since) = (denial, silent_since);
        self
    }

    /// Why the last attempt did not get the lock, of those that heard a majority or missed one.
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
        self.cut_off
    }

    /// A majority has answered the bid that began then.
    pub(super) fn note_answer(&mut self, started: Moment) {
        (self.answered, self.in_vain) = (Some(started), false);
    }

    /// Whether its place no longer leads to the lock, after a bid that too few voters answered.
    /// Then the next bid needs a new place. `in_vain`: a majority gave its votes.
    pub(super) fn place_has_ended(&mut self, in_vain: bool, now: Moment) -> bool {
        // Voters drop a place after three refreshes without a request (a whole waiter deadline).
        let remembered = self.answered.map(|answered| answered + 3 * self.refresh);
        // A waiter whose votes never count would keep a free lock from everybody behind it
        // (`a_waiter_whose_grants_cannot_count_keeps_a_free_lock_from_nobody`). Once is not enough:
        // a voter's clock may just be being measured.
        let was_in_vain = mem::replace(&mut self.in_vain, in_vain);
        let has_ended = remembered.is_none_or(|until| now >= until) || in_vain && was_in_vain;
        if has_ended {
            (self.answered, self.in_vain) = (None, false);
        }
        has_ended
    }

    /// Starts an attempt. Returns until when it hears answers, if the limit cuts them off.
    pub fn start_attempt(&mut self, now: Moment) -> Option<Moment> {
        // Without an earlier denial there is no true answer for the caller at the limit: voters
        // that had no time to answer were not silent (law 9). So the first attempt has its full
        // time, also if the limit has passed.
        let is_known = self.denial.is_some() || crate::mutant!("limit_is_taken_for_silence");
        let limit = self.limit.moment().filter(|limit| *limit > now && is_known);
        (self.pause, self.is_over) = (None, false);
        (self.cut_off, self.recheck_at) = (limit, None);
        self.attempts += 1;
        limit
    }

    /// The attempt was lost. Returns what other waiters can learn from that, if anything.
    pub fn lose_attempt(&mut self, defeat: Defeat, now: Moment, chance: u32) -> Option<&Denial> {
        let (loss, started) = (defeat.loss, defeat.started);
        if loss == Loss::Held {
            self.note_answer(started);
        }
        // An answer that the limit cut off was not missing (law 9). The denial before it stays.
        let is_answer = loss != Loss::NoQuorum || self.cut_off.is_none_or(|limit| now < limit);
        if is_answer || crate::mutant!("limit_is_taken_for_silence") {
            self.record_denial(defeat, now);
        }
        self.is_over = self.must_give_up(now);
        self.pause = if self.is_over { None } else { self.pause_after(loss, started, now, chance) };
        self.denial.as_ref().filter(|_| is_answer)
    }

    /// A bid ended before a majority had answered, because the next one may be granted now. So its
    /// answers are no denial.
    pub fn cut_attempt_short(&mut self, now: Moment) {
        (self.pause, self.is_over) = (None, self.must_give_up(now));
    }

    /// Wake-ups may have been lost. Does nothing while none is waited for.
    pub fn miss_wakeups(&mut self, now: Moment, chance: u32) {
        if self.pause.is_none() && !self.is_over {
            let recheck = &mut self.recheck;
            self.recheck_at.get_or_insert_with(|| now + recheck.pause(chance));
        }
    }

    pub fn next(&mut self, now: Moment) -> WaitNext {
        let has_come = self.attempts > 0 && self.limit.has_come(now);
        let is_over = self.is_over || has_come;
        if let Some(denial) = self.denial.as_ref().filter(|_| is_over) {
            return WaitNext::GiveUp(Box::new(denial.clone()));
        }
        let Some(until) = self.pause else { return WaitNext::Ask(None) };
        let asks = |wake| WaitNext::Ask(Some(wake));
        self.sleep(until, now).map_or_else(asks, WaitNext::Sleep)
    }

    /// A majority refused the bid, which waits for its turn until this moment at most. Fails with
    /// what ended the sleep, if the bid is over.
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

    fn must_give_up(&self, now: Moment) -> bool {
        // One round without a quorum is no outage: voters restart, and connections come back.
        let no_patience = crate::mutant!("no_patience");
        let patience = if no_patience { Some(Duration::ZERO) } else { self.patience };
        let silent = self.silent_since.map(|since| now.since(since));
        self.limit.has_come(now)
            || silent.zip(patience).is_some_and(|(silent, patience)| silent >= patience)
    }

    /// Until when the next attempt is put off, after this loss.
    fn pause_after(
        &mut self,
        loss: Loss,
        started: Moment,
        now: Moment,
        chance: u32,
    ) -> Option<Moment> {
        // In time to keep the place: voters drop one that has not asked for three refreshes.
        let last = started + self.refresh;
        match loss {
            Loss::NoQuorum => {
                // The pause is for the voters to come back. A wake-up does not end it, and neither
                // does one that may have been lost.
                self.recheck_at = None;
                let again = now + self.silent.pause(chance);
                let ends = self.silent_since.zip(self.patience);
                let end = ends.map(|(since, patience)| since + patience);
                Some(end.map_or(again, |end| again.min(end)).min(last))
            }
            // All contenders give back their votes, and each undo sends a wake-up. If all asked
            // again at once, they would split the votes again.
            Loss::Split => {
                self.contended.at_least(2 * now.since(started));
                self.recheck_at = None;
                Some(last.min(now + self.contended.pause(chance)))
            }
            // The bid itself has waited for its turn.
            Loss::Held => {
                self.contended.reset();
                // If the bid ended before the recheck was due, nobody knows yet whether the
                // connections hold now.
                if self.recheck_at.is_none() {
                    self.recheck.reset();
                }
                None
            }
        }
    }

    /// Sleeps until then, the next recheck or the limit. Fails with what has ended the sleep.
    fn sleep(&mut self, until: Moment, now: Moment) -> Result<Moment, Wake> {
        let is_recheck = self.recheck_at.is_some_and(|at| now >= at);
        if is_recheck || now >= until {
            self.pause = None;
            return Err(if is_recheck { Wake::MaybeMissed } else { Wake::Timer });
        }
        let ends = [self.recheck_at, self.limit.moment()].into_iter().flatten();
        Ok(ends.fold(until, Moment::min))
    }
}

// Ada keeps lock 1 and waits for 2, Ben keeps 2 and waits for 1: neither may keep a lock while it
// waits. But a caller that gives back each time can be passed for ever by callers of one lock
// (mutant `several_are_never_taken_in_order`). After so many failures it keeps what it has, and
// takes the locks in an order that is the same for all, so nobody waits in a circle.
/// How often a caller of several locks gives back what it has.
const GIVES_BACK: u32 = 2;

/// One caller that wants all of several locks.
#[derive(Clone, Debug)]
pub struct Several {
    limit: Limit,
    /// The lock that was taken last time.
    wants: Option<usize>,
    has_one: bool,
    is_over: bool,
    /// How often it had one lock and not the others.
    failures: u32,
}

/// What the caller does next. A lock is named by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeveralNext {
    /// Asks at once for all locks that it does not have, and waits for none.
    AskAll,
    /// Holds nothing, and waits for this lock alone.
    WaitFor(usize, Limit),
    /// Takes one lock after the other, in an order that is the same for all callers, and keeps what
    /// it has.
    TakeInOrder(Limit),
    /// Gives up at the limit, for want of this lock.
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

    /// The caller got the lock that it waited for, or the limit came first.
    pub fn waited(&mut self, is_granted: bool) {
        (self.has_one, self.is_over) = (is_granted, !is_granted);
        if is_granted {
            self.wants = None;
        }
    }

    /// This lock was taken, and all others are given back.
    pub fn missed(&mut self, one: usize) {
        if mem::take(&mut self.has_one) {
            self.failures = self.failures.saturating_add(1);
        }
        self.wants = Some(one);
    }
}

#[cfg(test)]
#[path = "wait_tests.rs"]
mod tests;
