//! Waiting for a lock: when to ask again, and when to give up with which answer.

use std::{mem, time::Duration};

use super::{
    Backoff, Limit, Loss, Votes, Window,
    denial::{Denial, Outage, Refusal},
    votes::Awaited,
};
use crate::proto::{HoldId, Moment};

/// A lost attempt.
#[derive(Debug)]
pub struct Defeat {
    pub loss: Loss,
    pub votes: Votes,
    pub started: Moment,
}

/// What a waiter does while another hold has the lock.
#[derive(Clone, Copy, Debug)]
pub enum WhileHeld {
    /// It listens to the lock's channel, and asks every now and then. `setup`: how long it waits
    /// for its subscription at most. `refresh`: the lock has a queue, which a waiter enters that
    /// listened in vain, and there the next bid must follow by then.
    Listen { setup: Duration, poll: Duration, refresh: Option<Duration> },
    /// Its bid waits. Its place in the queue lives so short that the next bid must follow by then.
    Bid { refresh: Duration },
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
    /// Subscribe to the lock's channel, until this moment at most.
    Subscribe(Moment),
    /// Enter the lock's queue, and wait there: see [`Wait::in_queue`].
    Queue {
        refresh: Duration,
    },
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
    while_held: WhileHeld,
    state: WaitState,
    /// That of the latest attempt.
    window: Window,
    attempts: u32,
    denial: Option<Denial>,
    /// Who refused the latest attempt, and on which voters, if nobody had a majority.
    split_by: Vec<(usize, HoldId)>,
    /// The start of the first attempt since which too few voters have answered.
    silent_since: Option<Moment>,
    has_subscribed: bool,
    /// It was woken since, or has waited for as long as it sleeps.
    has_listened: bool,
    /// When to ask again because calls may have been lost.
    deaf_until: Option<Moment>,
    silent: Backoff,
    contended: Backoff,
    /// A voter whose connections break again and again must not make its waiters ask as often.
    deaf: Backoff,
}

#[derive(Clone, Debug)]
enum WaitState {
    Asking,
    /// Nothing but the limit ends it sooner.
    Pausing(Moment),
    Subscribing(Moment),
    Queueing(Duration),
    /// Until the moment at which the lock may be free, or so many of these voters have called; but
    /// not before the first moment.
    Listening {
        from: Moment,
        until: Moment,
        awaited: Awaited,
    },
    Over,
}

impl Wait {
    /// `patience`: a caller without a limit gives up after so long without a majority of answers.
    pub fn new(limit: Limit, patience: Duration, while_held: WhileHeld) -> Self {
        let ms = Duration::from_millis;
        let pause = |first_ms| Backoff::new(ms(first_ms), ms(500));
        Self {
            limit,
            patience: (limit == Limit::Never).then_some(patience),
            while_held,
            state: WaitState::Asking,
            window: Window::default(),
            attempts: 0,
            denial: None,
            split_by: Vec::new(),
            silent_since: None,
            has_subscribed: false,
            has_listened: false,
            deaf_until: None,
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

    /// Goes on in the lock's queue, where the next bid must follow `refresh` after the one before.
    #[must_use]
    pub fn in_queue(self, refresh: Duration) -> Self {
        Self { while_held: WhileHeld::Bid { refresh }, state: WaitState::Asking, ..self }
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

    /// Starts an attempt; returns how long it may take.
    pub fn start_attempt(&mut self, now: Moment) -> Window {
        self.state = WaitState::Asking;
        self.window = Window::start(self.limit.moment(), self.denial.is_some(), now);
        self.attempts += 1;
        self.deaf_until = None;
        self.window
    }

    /// The attempt was lost. Returns what other waiters should learn from that, if anything.
    pub fn lose_attempt(&mut self, defeat: &Defeat, now: Moment, chance: u32) -> Option<&Denial> {
        // What the limit cut off was no answer.
        let is_answer = defeat.loss != Loss::NoQuorum || !self.window.is_over(now);
        if is_answer || crate::mutant!("limit_is_taken_for_silence") {
            self.record_denial(defeat, now);
        }
        self.state =
            if self.is_over(now) { WaitState::Over } else { self.rest_after(defeat, now, chance) };
        self.denial.as_ref().filter(|_| is_answer)
    }

    /// A bid ended before a majority had answered, because another one may be granted now. That
    /// says nothing.
    pub fn cut_attempt_short(&mut self, now: Moment) {
        self.state = if self.is_over(now) { WaitState::Over } else { WaitState::Asking };
    }

    /// Calls may have been lost. Does nothing where none is waited for.
    pub fn miss_calls(&mut self, now: Moment, chance: u32) {
        if matches!(self.state, WaitState::Asking | WaitState::Listening { .. }) {
            let deaf = &mut self.deaf;
            self.deaf_until.get_or_insert_with(|| now + deaf.pause(chance));
        }
    }

    /// The subscription stands, or there was no more time for it. What was called before it stood
    /// was not heard, so this asks once more.
    pub fn finish_subscribing(&mut self) {
        self.has_subscribed = true;
        self.state = WaitState::Asking;
    }

    /// `called`: the voters that called since the attempt started.
    pub fn next(&mut self, now: Moment, called: &[bool]) -> WaitNext {
        let has_come = self.attempts > 0 && self.limit.has_come(now);
        let is_over = matches!(self.state, WaitState::Over) || has_come;
        if let Some(denial) = self.denial.as_ref().filter(|_| is_over) {
            return WaitNext::GiveUp(Box::new(denial.clone()));
        }
        match &self.state {
            WaitState::Asking | WaitState::Over => WaitNext::Ask(None),
            WaitState::Subscribing(until) => WaitNext::Subscribe(self.by_limit(*until)),
            WaitState::Queueing(refresh) => WaitNext::Queue { refresh: *refresh },
            WaitState::Listening { from, awaited, .. } if awaited.have_called(called) => {
                let from = *from;
                if now < from { self.sleep(from, now) } else { self.wake(Wake::Called) }
            }
            WaitState::Pausing(until) | WaitState::Listening { until, .. } => {
                self.sleep(*until, now)
            }
        }
    }

    /// A majority refused the bid, which waits for its turn until this moment at most.
    pub fn await_turn(&mut self, until: Moment, now: Moment, votes: &Votes) -> WaitNext {
        if self.limit.has_come(now) {
            return WaitNext::GiveUp(Box::new(Denial::Held(Refusal::of(votes, now))));
        }
        self.sleep(until, now)
    }

    fn record_denial(&mut self, defeat: &Defeat, now: Moment) {
        self.denial = Some(if defeat.loss == Loss::NoQuorum {
            let since = *self.silent_since.get_or_insert(defeat.started);
            Denial::NoQuorum(Box::new(Outage { since, until: now, votes: defeat.votes.clone() }))
        } else {
            self.silent_since = None;
            self.silent.reset();
            Denial::Held(Refusal::of(&defeat.votes, now))
        });
    }

    fn is_over(&self, now: Moment) -> bool {
        let no_patience = crate::mutant!("no_patience");
        let patience = if no_patience { Some(Duration::ZERO) } else { self.patience };
        let silent = self.silent_since.map(|since| now.since(since));
        self.limit.has_come(now)
            || silent.zip(patience).is_some_and(|(silent, patience)| silent >= patience)
    }

    fn rest_after(&mut self, defeat: &Defeat, now: Moment, chance: u32) -> WaitState {
        match self.class_of(defeat) {
            Loss::NoQuorum => {
                // Nobody's call is waited for in such a pause.
                self.deaf_until = None;
                let again = now + self.silent.pause(chance);
                let ends = self.silent_since.zip(self.patience);
                let end = ends.map(|(since, patience)| since + patience);
                WaitState::Pausing(self.by_refresh(end.map_or(again, |end| again.min(end)), defeat))
            }
            Loss::Split => {
                if let Some(refresh) = self.queue_refresh() {
                    return WaitState::Queueing(refresh);
                }
                self.rest_in_split(defeat, now, chance)
            }
            Loss::Held => {
                self.contended.reset();
                self.rest_while_held(&defeat.votes, now)
            }
        }
    }

    /// Contenders give back the votes that are no majority. Whoever still has them at the next
    /// attempt keeps them: one holder, or one with another id on each voter, a `RedissonRedLock`.
    /// Beside a silent voter that proves too little: it may be free while this one waits for the
    /// others. A bid waits by itself, so it only pauses.
    fn class_of(&mut self, defeat: &Defeat) -> Loss {
        let refusals = match (defeat.loss, self.while_held) {
            (Loss::Split, WhileHeld::Listen { .. }) if !defeat.votes.has_silent() => {
                defeat.votes.refusals()
            }
            _ => Vec::new(),
        };
        let before = mem::replace(&mut self.split_by, refusals);
        let same = !before.is_empty() && before == self.split_by;
        if same { Loss::Held } else { defeat.loss }
    }

    /// Where there is no queue: others may give back one vote after the other, and call. This one
    /// has called itself and all others: who asked again at once would only meet them again.
    fn rest_in_split(&mut self, defeat: &Defeat, now: Moment, chance: u32) -> WaitState {
        self.contended.at_least(2 * now.since(defeat.started));
        match self.while_held {
            WhileHeld::Listen { setup, .. } if !self.has_subscribed => {
                WaitState::Subscribing(now + setup)
            }
            WhileHeld::Listen { .. } => {
                let pause = self.contended.pause(chance);
                let (from, until) = (now + pause / 2, now + pause);
                WaitState::Listening { from, until, awaited: defeat.votes.awaited() }
            }
            WhileHeld::Bid { .. } => {
                self.deaf_until = None;
                let again = now + self.contended.pause(chance);
                WaitState::Pausing(self.by_refresh(again, defeat))
            }
        }
    }

    fn rest_while_held(&mut self, votes: &Votes, now: Moment) -> WaitState {
        // A waiter that is called with many others and loses to one of them would be called with
        // them again and again. And nobody calls the channel while others queue.
        if let Some(refresh) = self.queue_refresh()
            && (self.has_listened || votes.name_a_place())
        {
            return WaitState::Queueing(refresh);
        }
        match self.while_held {
            WhileHeld::Listen { setup, .. }
                if !self.has_subscribed && !crate::mutant!("listens_to_nobody") =>
            {
                WaitState::Subscribing(now + setup)
            }
            WhileHeld::Listen { poll, .. } => {
                // A voter's expiry has a resolution of a millisecond.
                let free = votes.free_in().map(|time| time + Duration::from_millis(2));
                let until = now + free.map_or(poll, |free| free.min(poll));
                WaitState::Listening { from: now, until, awaited: votes.awaited() }
            }
            WhileHeld::Bid { .. } => {
                if self.deaf_until.is_none_or(|until| now < until) {
                    self.deaf.reset();
                }
                WaitState::Asking
            }
        }
    }

    /// Where the lock has a queue that this waiter has not entered.
    fn queue_refresh(&self) -> Option<Duration> {
        match self.while_held {
            WhileHeld::Listen { refresh, .. } => refresh,
            WhileHeld::Bid { .. } => None,
        }
    }

    /// Sleeps until then, or the time at which to ask because calls may have been lost.
    fn sleep(&mut self, until: Moment, now: Moment) -> WaitNext {
        if self.deaf_until.is_some_and(|until| now >= until) {
            return self.wake(Wake::Missed);
        }
        if now >= until {
            return self.wake(Wake::Timer);
        }
        let until = self.deaf_until.map_or(until, |deaf| deaf.min(until));
        WaitNext::Sleep(self.by_limit(until))
    }

    fn wake(&mut self, wake: Wake) -> WaitNext {
        self.has_listened = matches!(self.state, WaitState::Listening { .. });
        if wake != Wake::Missed {
            self.deaf.reset();
        }
        self.state = WaitState::Asking;
        WaitNext::Ask(Some(wake))
    }

    fn by_limit(&self, until: Moment) -> Moment {
        self.limit.moment().map_or(until, |limit| limit.min(until))
    }

    /// In time to keep the place in a queue.
    fn by_refresh(&self, again: Moment, defeat: &Defeat) -> Moment {
        match self.while_held {
            WhileHeld::Bid { refresh } => again.min(defeat.started + refresh),
            WhileHeld::Listen { .. } => again,
        }
    }
}

#[cfg(test)]
#[path = "wait_law_tests.rs"]
mod law_tests;
#[cfg(test)]
#[path = "wait_queue_tests.rs"]
mod queue_tests;
#[cfg(test)]
#[path = "wait_split_tests.rs"]
mod split_tests;
#[cfg(test)]
#[path = "wait_tests.rs"]
mod tests;
