//! Who trusted to hold the lock, and when; and the check that nobody did at the same time.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use quorate::MutexGuard;

use crate::scene::now;

/// A time throughout which a holder was told that it holds the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) enter: Duration,
    pub(crate) leave: Duration,
    pub(crate) hold: String,
}

#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Vec<Span>>);

impl History {
    /// Notes that the holder trusts its guard, again and again for `length` or until it cannot.
    ///
    /// A guard that is held when asked has been so since it was acquired, so it was so at the time
    /// read before asking. These are true spans of trust, and at most a little short.
    pub(crate) async fn trust(&self, guard: &MutexGuard, length: Duration) {
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
            let span = Span { enter, leave, hold: guard.hold().as_str().to_owned() };
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(span);
        }
    }

    pub(crate) fn into_spans(self) -> Vec<Span> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first two spans that share a moment.
pub(crate) fn overlap(mut spans: Vec<Span>) -> Option<(Span, Span)> {
    spans.sort_by_key(|span| span.enter);
    let mut spans = spans.into_iter();
    let mut last = spans.next()?;
    for span in spans {
        if span.enter <= last.leave {
            return Some((last, span));
        }
        // Without an overlap so far the latest to enter is the latest to leave.
        last = span;
    }
    None
}

#[test]
fn two_at_the_same_moment_are_found_wherever_they_stand() {
    let span = |enter, leave| Span {
        enter: Duration::from_nanos(enter),
        leave: Duration::from_nanos(leave),
        hold: enter.to_string(),
    };
    assert_eq!(overlap(vec![]), None);
    assert_eq!(overlap(vec![span(20, 30), span(1, 9), span(10, 19)]), None);
    for planted in [span(0, 100), span(5, 6), span(19, 20), span(9, 9), span(30, 31)] {
        let spans = vec![span(20, 30), planted, span(1, 9), span(10, 19)];
        assert!(overlap(spans.clone()).is_some(), "{spans:?}");
    }
}
