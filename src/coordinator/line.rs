//! The line inside one process: waiters for the same lock stand here, and only the first of them
//! asks the voters.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{clock::Moment, signal::Signal, words::Error};

/// What the first in line last heard from the voters.
#[derive(Clone, Debug)]
pub(crate) enum Front {
    /// Nothing yet.
    Asking,
    /// The lock is another's, for now.
    Denied,
    /// No quorum since then.
    NoQuorum { since: Moment, error: Error },
}

/// One line per lock in which somebody stands.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    lines: Mutex<HashMap<Arc<str>, Arc<Line>>>,
}

#[derive(Debug)]
struct Line {
    turn: Semaphore,
    front: Signal<Front>,
}

/// A place in a line. Dropping it leaves the line.
#[derive(Debug)]
pub(crate) struct Place {
    lines: Arc<Lines>,
    key: Arc<str>,
    line: Arc<Line>,
}

/// The first place: the right to ask the voters. Dropping it lets the next one come first.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    line: &'a Line,
    _permit: SemaphorePermit<'a>,
}

impl Lines {
    pub(crate) fn enter(self: &Arc<Self>, key: &Arc<str>) -> Place {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let line = lines.entry(Arc::clone(key)).or_insert_with(|| {
            Arc::new(Line { turn: Semaphore::new(1), front: Signal::new(Front::Asking) })
        });
        Place { lines: Arc::clone(self), key: Arc::clone(key), line: Arc::clone(line) }
    }
}

impl Place {
    /// Completes, in the order of coming, when nobody stands before this place.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        let permit = self.line.turn.acquire().await;
        Turn { line: &self.line, _permit: permit.expect("a line is never closed") }
    }

    /// The turn, if nobody has it.
    pub(crate) fn try_turn(&self) -> Option<Turn<'_>> {
        let permit = self.line.turn.try_acquire().ok()?;
        Some(Turn { line: &self.line, _permit: permit })
    }

    /// What the first in line last heard.
    pub(crate) fn front(&self) -> Front {
        self.line.front.read(Front::clone)
    }

    /// Completes when the first in line has heard from the voters.
    pub(crate) async fn verdict(&self) {
        self.line.front.until(|front| !matches!(front, Front::Asking)).await;
    }
}

impl Turn<'_> {
    pub(crate) fn tell(&self, front: Front) {
        self.line.front.change(|current| *current = front);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lines = self.lines.lines.lock().unwrap_or_else(PoisonError::into_inner);
        // Places come and go under this lock: two owners are the table and this one.
        if Arc::strong_count(&self.line) == 2 {
            lines.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn turns_come_in_the_order_of_coming_and_an_empty_line_is_forgotten() {
        let lines = Arc::new(Lines::default());
        let key = Arc::from("a");
        let places: Vec<_> = (0..3).map(|_| lines.enter(&key)).collect();
        let first = places[0].turn().await;
        let mut second = Box::pin(places[1].turn());
        let mut third = Box::pin(places[2].turn());
        assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
        drop(first);
        assert!((&mut third).now_or_never().is_none(), "the second stands before");
        drop(second);
        assert!((&mut third).now_or_never().is_some(), "the second has left");
        drop(third);
        drop(places);
        assert!(lines.lines.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn the_first_tells_the_others_what_it_heard() {
        let lines = Arc::new(Lines::default());
        let key = Arc::from("a");
        let (one, other) = (lines.enter(&key), lines.enter(&key));
        let turn = one.try_turn().unwrap();
        assert!(other.try_turn().is_none());
        assert!(other.verdict().now_or_never().is_none());
        turn.tell(Front::Denied);
        other.verdict().await;
        assert!(matches!(other.front(), Front::Denied));
    }
}
