//! Giving a future up after so many polls.

use std::{future::poll_fn, pin::pin, task::Poll};

use quorate_tests::prelude::*;

/// How a future is given up after its last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Before anything it asked for has left.
    AtOnce,
    /// When that has left, and perhaps run.
    Underway,
    /// When the answer is there, before it is looked at.
    WhenWoken,
    /// At once, and the client goes as well.
    Leaving,
}

impl Way {
    pub(crate) const ALL: [Self; 4] =
        [Self::AtOnce, Self::Underway, Self::WhenWoken, Self::Leaving];
}

/// Long enough for a request that takes no time, shorter than the way there in `Trouble::Slow`.
const UNDERWAY: Duration = Duration::from_millis(2);
/// For a future that nothing wakes.
const LONGEST: Duration = Duration::from_secs(20);

/// Polls `future` up to `polls` times, each time as soon as it is woken, and drops it. What it came
/// to, if it completed.
pub(crate) async fn abandon<F: Future>(future: F, polls: usize, way: Way) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut left = polls;
    let polling = pin!(poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 && way != Way::WhenWoken => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }));
    let output = timeout(LONGEST, polling).await.ok().flatten();
    if output.is_none() && way == Way::Underway {
        sleep(UNDERWAY).await;
    }
    output
}
