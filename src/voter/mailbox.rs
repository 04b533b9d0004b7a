//! Where the answers of all voters to one request come together.
//!
//! Whoever waits for them is woken when so many have come that they may decide something, and not
//! by each. What comes after the decision is handed to whom it concerns by the voter's task, so no
//! task has to wait for it.

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

/// Answers that are still to come, by voter. Dropping it drops the answers, never the requests.
#[derive(Debug)]
pub(crate) struct Replies(Arc<Mutex<Mailbox>>);

/// Hears the answers that nobody waits for.
pub(crate) trait LateListener: Send + Sync {
    fn hear(&self, voter: usize, outcome: &Outcome<Answer>);
}

/// Where a voter's answer goes. One that is dropped without an answer tells that there is none.
#[derive(Debug)]
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
    /// So many must have come before anybody is woken.
    least: usize,
    waker: Option<Waker>,
    late: Option<Arc<dyn LateListener>>,
}

/// What is expected of one voter.
#[derive(Default)]
struct Slot {
    /// The latest question: answers to those before it have come too late.
    question: u32,
    is_open: bool,
    answer: Option<Outcome<Answer>>,
}

impl Replies {
    /// `least`: fewer answers decide nothing.
    pub(crate) fn new(voters: usize, least: usize) -> Self {
        let slots = (0..voters).map(|_| Slot::default()).collect();
        let mailbox = Mailbox { slots, arrived: 0, least, waker: None, late: None };
        Self(Arc::new(Mutex::new(mailbox)))
    }

    /// Where this voter is to answer; what was expected of it before is expected no more.
    pub(crate) fn expect(&mut self, voter: usize) -> ReplyTo {
        let mut state = lock(&self.0);
        let slot = &mut state.slots[voter];
        let question = slot.question + 1;
        *slot = Slot { question, is_open: true, answer: None };
        ReplyTo { mailbox: Arc::clone(&self.0), voter, question, is_answered: false }
    }

    /// The next answer; never completes when none is to come.
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

    /// Whether any is to come.
    pub(crate) fn are_open(&self) -> bool {
        lock(&self.0).slots.iter().any(|slot| slot.is_open)
    }

    /// Hands on what is still to come. What has come is heard at once.
    pub(crate) fn hand_over(self, listener: impl FnOnce() -> Arc<dyn LateListener>) {
        let mut state = lock(&self.0);
        if !state.slots.iter().any(|slot| slot.is_open) {
            return;
        }
        let listener = listener();
        state.late = Some(Arc::clone(&listener));
        while let Some((voter, outcome)) = state.take() {
            drop(state);
            listener.hear(voter, &outcome);
            state = lock(&self.0);
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
