//! Who trusted to hold the lock, and when; and the check that nobody did who must not.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use quorate::MutexGuard;

use crate::scene::now;

/// A time throughout which a holder was told that it holds the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub enter: Duration,
    pub leave: Duration,
    pub hold: String,
}

#[derive(Debug, Default)]
pub struct History(Mutex<Vec<Span>>);

impl History {
    /// Notes that the holder trusts its guard, again and again for `length` or until it cannot.
    ///
    /// A guard that is held when asked has been so since it was acquired, so it was so at the time
    /// read before asking. These are true spans of trust, and at most a little short.
    pub async fn trust(&self, guard: &MutexGuard, length: Duration) {
        let enter = now();
        let mut leave = None;
        loop {
            let asked = now();
            if !guard.is_held() {
                break;
            }
            leave = Some(asked);
            if asked >= enter + length {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if let Some(leave) = leave {
            let span = Span { enter, leave, hold: guard.hold().to_string() };
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(span);
        }
    }

    /// How many spans there are so far.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether there is none")]
    pub fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn into_spans(self) -> Vec<Span> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first two spans that share a moment.
pub fn overlap(mut spans: Vec<Span>) -> Option<(Span, Span)> {
    spans.sort_by_key(|span| span.enter);
    // Where any two do, so do two that begin one after the other.
    let mut pairs = spans.windows(2);
    let shared = pairs.find(|pair| pair[0].leave >= pair[1].enter);
    shared.map(|pair| (pair[0].clone(), pair[1].clone()))
}

#[test]
fn two_at_the_same_moment_are_found_wherever_they_stand() {
    let span = |enter, leave| {
        let [enter, leave] = [enter, leave].map(Duration::from_nanos);
        Span { enter, leave, hold: format!("{enter:?}") }
    };
    assert_eq!(overlap(vec![]), None);
    assert_eq!(overlap(vec![span(20, 30), span(1, 9), span(10, 19)]), None);
    for planted in [span(0, 100), span(5, 6), span(19, 20), span(9, 9), span(30, 31)] {
        let spans = vec![span(20, 30), planted, span(1, 9), span(10, 19)];
        assert!(overlap(spans.clone()).is_some(), "{spans:?}");
    }
}
