//! Collects the answers of all voters to one request.
//!
//! The waiting task is woken once enough answers are there to decide something. Later answers go to
//! a [`LateListener`].

// No task waits for late answers: a slow voter would keep it, and what it holds, in memory. The
// voter's task calls the listener instead.

use std::{
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use super::{Outcome, lock};
use crate::{
    proto::{CLOSED, Cause},
    scripts::Answer,
};

/// The answers that are still to come. Dropping this drops the answers, never the requests.
#[derive(Debug)]
pub(crate) struct Replies(Arc<Mutex<Mailbox>>);

/// Receives the answers for which no task waits any more.
pub(crate) trait LateListener: Send + Sync {
    fn hear(&self, voter: usize, outcome: &Outcome<Answer>);
}

/// Where one voter's answer goes.
pub(crate) struct ReplyTo {
    mailbox: Arc<Mutex<Mailbox>>,
    voter: usize,
    question: u32,
    is_answered: bool,
}

struct Mailbox {
    slots: Box<[Slot]>,
    /// How many answers have come.
    arrived: usize,
    /// How many answers must have come before the waiting task is woken.
    // One wake-up for each answer would run the task of an attempt with five voters five times,
    // though the first two can decide nothing.
    least: usize,
    waker: Option<Waker>,
    late: Option<Arc<dyn LateListener>>,
}

/// The expected answer of one voter.
#[derive(Default)]
struct Slot {
    /// The number of the latest question. Answers to earlier questions are dropped.
    question: u32,
    is_open: bool,
    answer: Option<Outcome<Answer>>,
}

impl Replies {
    /// `least`: how many answers can decide something.
    pub(crate) fn new(voters: usize, least: usize) -> Self {
        let slots = (0..voters).map(|_| Slot::default()).collect();
        let mailbox = Mailbox { slots, arrived: 0, least, waker: None, late: None };
        Self(Arc::new(Mutex::new(mailbox)))
    }

    /// Expects an answer of this voter, in place of one that was expected before.
    pub(crate) fn expect(&mut self, voter: usize) -> ReplyTo {
        let mut state = lock(&self.0);
        let slot = &mut state.slots[voter];
        let question = slot.question + 1;
        *slot = Slot { question, is_open: true, answer: None };
        ReplyTo { mailbox: Arc::clone(&self.0), voter, question, is_answered: false }
    }

    /// The next answer. Never completes if none is to come.
    pub(crate) async fn next(&mut self) -> (usize, Outcome<Answer>) {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<(usize, Outcome<Answer>)> {
        let mut state = lock(&self.0);
        if let Some(answer) = state.take() {
            return Poll::Ready(answer);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            waker => *waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Whether any answer is to come.
    pub(crate) fn are_open(&self) -> bool {
        lock(&self.0).slots.iter().any(|slot| slot.is_open)
    }

    /// Has a listener receive all further answers, and at once those that have come.
    pub(crate) fn hand_over(self, listener: impl FnOnce() -> Arc<dyn LateListener>) {
        // Mostly all have answered: then no listener is made.
        if !self.are_open() {
            return;
        }
        let listener = listener();
        lock(&self.0).late = Some(Arc::clone(&listener));
        // The mutex is free while the listener is called: it may take others, and a voter's task
        // must not wait for it.
        let next = || lock(&self.0).take();
        while let Some((voter, outcome)) = next() {
            listener.hear(voter, &outcome);
        }
    }
}

impl Mailbox {
    fn take(&mut self) -> Option<(usize, Outcome<Answer>)> {
        self.slots.iter_mut().enumerate().find_map(|(voter, slot)| {
            let answer = slot.answer.take()?;
            slot.is_open = false;
            Some((voter, answer))
        })
    }
}

impl ReplyTo {
    pub(crate) fn send(mut self, outcome: Outcome<Answer>) {
        self.is_answered = true;
        self.deliver(outcome);
    }

    fn deliver(&self, outcome: Outcome<Answer>) {
        let mut state = lock(&self.mailbox);
        let Mailbox { slots, arrived, least, waker, late } = &mut *state;
        let slot = &mut slots[self.voter];
        // An answer to an earlier question says what the voter had before the latest one. It must
        // not pass for the answer to that.
        if !slot.is_open || slot.question != self.question {
            return;
        }
        if let Some(late) = late.clone() {
            slot.is_open = false;
            drop(state);
            return late.hear(self.voter, &outcome);
        }
        slot.answer = Some(outcome);
        *arrived += 1;
        let waker = if arrived >= least { waker.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for ReplyTo {
    // A request may be dropped with the task of a closed client. Without an answer here, the
    // caller would wait for one until its own deadline.
    fn drop(&mut self) {
        if !self.is_answered {
            self.deliver(Err(Cause::Unreachable(CLOSED.into())));
        }
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::task::{ArcWake, waker};

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl ArcWake for Woken {
        fn wake_by_ref(woken: &Arc<Self>) {
            woken.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[derive(Default)]
    struct Heard(Mutex<Vec<usize>>);

    impl LateListener for Heard {
        fn hear(&self, voter: usize, _: &Outcome<Answer>) {
            self.0.lock().unwrap().push(voter);
        }
    }

    fn unheard() -> Outcome<Answer> {
        Err(Cause::Unheard)
    }

    fn poll(replies: &mut Replies, woken: &Arc<Woken>) -> Option<(usize, Outcome<Answer>)> {
        match replies.poll(&mut Context::from_waker(&waker(Arc::clone(woken)))) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }

    #[test]
    fn nobody_is_woken_before_so_many_have_answered_that_it_may_be_decided() {
        let (mut replies, woken) = (Replies::new(5, 3), Arc::<Woken>::default());
        let mut askers: Vec<ReplyTo> = (0..5).map(|voter| replies.expect(voter)).collect();
        assert!(poll(&mut replies, &woken).is_none());
        let wakes = [0, 0, 1, 1].map(|wakes| {
            askers.pop().unwrap().send(unheard());
            assert_eq!(woken.0.load(Ordering::Relaxed), wakes);
        });
        let heard = wakes.map(|()| poll(&mut replies, &woken).unwrap().0);
        assert_eq!(heard, [1, 2, 3, 4], "each answer is heard once");
        assert!(poll(&mut replies, &woken).is_none());
        askers.pop().unwrap().send(unheard());
        assert_eq!(woken.0.load(Ordering::Relaxed), 2, "from then on each answer wakes");
    }

    #[test]
    fn what_nobody_waits_for_is_handed_over_and_so_is_what_has_come() {
        let (mut replies, heard) = (Replies::new(3, 2), Arc::<Heard>::default());
        let [first, second, third] = [0, 1, 2].map(|voter| replies.expect(voter));
        first.send(unheard());
        assert_eq!(poll(&mut replies, &Arc::default()).unwrap().0, 0);
        second.send(unheard());
        let listener = Arc::clone(&heard);
        replies.hand_over(move || listener);
        assert_eq!(*heard.0.lock().unwrap(), [1]);
        third.send(unheard());
        assert_eq!(*heard.0.lock().unwrap(), [1, 2]);
    }

    #[test]
    fn an_answer_to_an_earlier_question_counts_for_nothing_and_one_that_is_dropped_is_answered() {
        let (mut replies, woken) = (Replies::new(1, 1), Arc::default());
        let earlier = replies.expect(0);
        let later = replies.expect(0);
        earlier.send(unheard());
        assert!(poll(&mut replies, &woken).is_none());
        drop(later);
        let (_, outcome) = poll(&mut replies, &woken).unwrap();
        assert!(matches!(outcome, Err(Cause::Unreachable(_))), "{outcome:?}");
    }
}
