//! Who trusted to hold the lock, and when; and the check that nobody did who must not.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use quorate::{HoldId, MutexGuard, ReadGuard, WriteGuard};

use crate::scene::now;

/// A time throughout which a holder was told that it holds the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub enter: Duration,
    pub leave: Duration,
    pub hold: String,
    /// With others that do so too.
    pub reads: bool,
}

impl Span {
    /// Both may hold at the same moment: they read, or the one reads under the other's write.
    fn suits(&self, other: &Self) -> bool {
        self.reads && other.reads || self.is_under(other) || other.is_under(self)
    }

    fn is_under(&self, write: &Self) -> bool {
        let under = self.hold.rsplit_once('/').map(|(write, _)| write);
        self.reads && under == Some(&*write.hold)
    }
}

/// A guard of any kind.
pub trait Trusted {
    const READS: bool;
    fn hold(&self) -> &HoldId;
    fn is_held(&self) -> bool;
}

macro_rules! trusted {
    ($guard:ident, $reads:literal) => {
        impl Trusted for $guard {
            const READS: bool = $reads;

            fn hold(&self) -> &HoldId {
                Self::hold(self)
            }

            fn is_held(&self) -> bool {
                Self::is_held(self)
            }
        }
    };
}
trusted!(MutexGuard, false);
trusted!(WriteGuard, false);
trusted!(ReadGuard, true);

#[derive(Debug, Default)]
pub struct History(Mutex<Vec<Span>>);

impl History {
    /// Notes that the holder trusts its guard, again and again for `length` or until it cannot.
    ///
    /// A guard that is held when asked has been so since it was acquired, so it was so at the time
    /// read before asking. These are true spans of trust, and at most a little short.
    pub async fn trust<G: Trusted>(&self, guard: &G, length: Duration) {
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
            let span = Span { enter, leave, hold: guard.hold().to_string(), reads: G::READS };
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(span);
        }
    }

    /// How many spans there are so far.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether there is none")]
    pub fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// How many of them were alone.
    pub fn alone(&self) -> usize {
        let spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spans.iter().filter(|span| !span.reads).count()
    }

    pub fn into_spans(self) -> Vec<Span> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first two spans that share a moment and must not.
pub fn overlap(mut spans: Vec<Span>) -> Option<(Span, Span)> {
    spans.sort_by_key(|span| span.enter);
    let mut inside: Vec<Span> = Vec::new();
    for span in spans {
        inside.retain(|earlier| earlier.leave >= span.enter);
        if let Some(earlier) = inside.iter().find(|earlier| !earlier.suits(&span)) {
            return Some((earlier.clone(), span));
        }
        inside.push(span);
    }
    None
}

#[cfg(test)]
fn span(enter: u64, leave: u64, hold: &str, reads: bool) -> Span {
    let [enter, leave] = [enter, leave].map(Duration::from_nanos);
    Span { enter, leave, hold: hold.to_owned(), reads }
}

#[test]
fn two_at_the_same_moment_are_found_wherever_they_stand() {
    let span = |enter, leave| span(enter, leave, &enter.to_string(), false);
    assert_eq!(overlap(vec![]), None);
    assert_eq!(overlap(vec![span(20, 30), span(1, 9), span(10, 19)]), None);
    for planted in [span(0, 100), span(5, 6), span(19, 20), span(9, 9), span(30, 31)] {
        let spans = vec![span(20, 30), planted, span(1, 9), span(10, 19)];
        assert!(overlap(spans.clone()).is_some(), "{spans:?}");
    }
}

#[test]
fn a_writer_with_anybody_else_is_found_and_readers_together_are_none() {
    let (read, write) = (true, false);
    let readers = [span(10, 50, "a", read), span(11, 20, "b", read), span(20, 60, "c", read)];
    let with = |more: &[Span]| overlap([&readers[..], more].concat());
    assert_eq!(with(&[span(61, 70, "w", write), span(1, 9, "v", write)]), None);
    for writer in [(1, 10), (30, 31), (50, 51), (60, 70), (0, 99)] {
        let writer = span(writer.0, writer.1, "w", write);
        assert!(with(std::slice::from_ref(&writer)).is_some(), "{writer:?}");
    }
    // The writer's own read goes on when it has ended, and another's is no own one.
    let own = [span(70, 80, "w", write), span(75, 90, "w/2", read), span(85, 99, "d", read)];
    assert_eq!(with(&own), None);
    assert!(with(&[&own[..], &[span(79, 95, "e", read)]].concat()).is_some());
    assert!(with(&[&own[..], &[span(79, 95, "x/2", read)]].concat()).is_some());
    assert!(with(&[&own[..], &[span(90, 95, "x", write)]].concat()).is_some());
}
