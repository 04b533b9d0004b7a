//! What is to be looked after, by when that is due.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{clock::Moment, signal::Signal};

/// When each hold of a client is to be looked after. Its lock is taken under that of a hold, so
/// nothing here asks a hold under it.
#[derive(Debug)]
pub(super) struct Agenda<T> {
    list: Mutex<List<T>>,
    /// Changes when something is due before the watch looks next.
    sooner: Signal<()>,
}

#[derive(Debug)]
struct List<T> {
    by_time: BTreeMap<AgendaPlace, AgendaEntry<T>>,
    /// When the watch looks next. What was to be looked after then may have been taken off.
    alarm: Option<Moment>,
    /// How many holds there were.
    counted: u64,
    watch: Watch,
}

#[derive(Debug)]
struct AgendaEntry<T> {
    hold: Arc<T>,
    early: Duration,
}

/// When a hold is to be looked after, and its number.
pub(super) type AgendaPlace = (Moment, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    /// Nobody looks.
    None,
    Going,
    /// The runtime has ended: nobody will look any more.
    Over,
}

/// What is to be done for those that were put on the list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Listing {
    Done,
    /// A watch is to be started.
    Unwatched,
    /// There is no watch any more.
    Over,
}

impl<T> Agenda<T> {
    pub(super) fn new() -> Self {
        let list = List { by_time: BTreeMap::new(), alarm: None, counted: 0, watch: Watch::None };
        Self { list: Mutex::new(list), sooner: Signal::new(()) }
    }

    /// A number for another hold.
    pub(super) fn number(&self) -> u64 {
        let mut list = self.list();
        list.counted += 1;
        list.counted
    }

    /// Puts a hold from one place to another. `early`: how long before it is due it may be looked
    /// after where others are.
    pub(super) fn put(
        &self,
        hold: Arc<T>,
        from: Option<AgendaPlace>,
        to: AgendaPlace,
        early: Duration,
    ) -> Listing {
        let mut list = self.list();
        if let Some(from) = from {
            list.by_time.remove(&from);
        }
        if list.watch == Watch::Over {
            return Listing::Over;
        }
        list.by_time.insert(to, AgendaEntry { hold, early });
        let (at, _) = to;
        let sooner = list.alarm.is_none_or(|alarm| at < alarm);
        let unwatched = list.watch == Watch::None;
        list.watch = Watch::Going;
        drop(list);
        if unwatched {
            return Listing::Unwatched;
        }
        if sooner {
            self.sooner.change(|()| ());
        }
        Listing::Done
    }

    pub(super) fn remove(&self, place: AgendaPlace) {
        self.list().by_time.remove(&place);
    }

    /// Ends the watch: no hold will come any more.
    pub(super) fn close(&self) {
        self.list().by_time.clear();
        self.sooner.change(|()| ());
    }

    /// Those that are to be looked after, in their order; and when the next ones are. `None`: there
    /// are no others, and the watch is over.
    pub(super) fn take_due(&self, now: Moment, busy: bool) -> (Vec<Arc<T>>, Option<Moment>) {
        let mut list = self.list();
        let mut due = Vec::new();
        while let Some(first) = list.by_time.first_entry() {
            let (at, _) = *first.key();
            // What is due soon goes along: renewals that leave together cost less.
            if at > now + first.get().early {
                break;
            }
            due.push(first.remove().hold);
        }
        let next = list.by_time.first_key_value().map(|((at, _), _)| *at);
        list.alarm = next;
        if due.is_empty() && next.is_none() && !busy {
            list.watch = Watch::None;
        }
        (due, next)
    }

    pub(super) fn all(&self) -> Vec<Arc<T>> {
        self.list().by_time.values().map(|entry| Arc::clone(&entry.hold)).collect()
    }

    /// Changes when something is due before the watch looks next.
    pub(super) fn sooner(&self) -> &Signal<()> {
        &self.sooner
    }

    /// The watch has ended in a panic: with the next that is put on the list all are watched again.
    pub(super) fn unwatch(&self) {
        self.list().watch = Watch::None;
    }

    /// Nobody will look any more: returns those that were on the list.
    pub(super) fn end(&self) -> Vec<Arc<T>> {
        let mut list = self.list();
        list.watch = Watch::Over;
        let left = std::mem::take(&mut list.by_time);
        left.into_values().map(|entry| entry.hold).collect()
    }

    fn list(&self) -> MutexGuard<'_, List<T>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::BEGINNING + Duration::from_secs(seconds)
    }

    #[test]
    fn only_what_is_due_before_the_watch_looks_wakes_it() {
        let agenda = Agenda::new();
        let put = |number: u64, seconds| {
            let seen = agenda.sooner().version();
            let listing = agenda.put(Arc::new(number), None, (at(seconds), number), Duration::ZERO);
            (listing, agenda.sooner().version() != seen)
        };
        assert_eq!(put(1, 10), (Listing::Unwatched, false));
        assert_eq!(agenda.take_due(at(0), false), (vec![], Some(at(10))));
        assert_eq!(put(2, 20), (Listing::Done, false));
        agenda.remove((at(10), 1));
        assert_eq!(put(3, 15), (Listing::Done, false), "the watch looks at 10 all the same");
        assert_eq!(put(4, 5), (Listing::Done, true));
        assert_eq!(agenda.take_due(at(5), false), (vec![Arc::new(4)], Some(at(15))));
        assert_eq!(put(5, 14), (Listing::Done, true));
        assert_eq!(agenda.take_due(at(20), true).0, [5, 3, 2].map(Arc::new));
        assert_eq!(put(6, 30), (Listing::Done, true), "nothing was to be looked after");
    }
}
