//! Giving a future up after so many polls.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use tokio::time::{sleep, timeout};

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
/// Nothing wakes a future that waits for a loss which does not come.
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

#[tokio::test(start_paused = true)]
async fn a_future_is_polled_as_often_as_told_and_then_dropped() {
    for (polls, expected) in [(0, None), (1, None), (2, None), (3, Some(3))] {
        let mut polled = 0;
        let third_time = poll_fn(|context| {
            polled += 1;
            context.waker().wake_by_ref();
            if polled == 3 { Poll::Ready(polled) } else { Poll::Pending }
        });
        assert_eq!(abandon(third_time, polls, Way::WhenWoken).await, expected);
        assert_eq!(polled, polls);
    }
}
