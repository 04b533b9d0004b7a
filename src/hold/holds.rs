//! All holds of a client: by id for closing, by owner for re-entry, and by when they are next to be
//! looked after.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::Hold;
use crate::{
    clock::Moment,
    proto::{HoldId, Owner},
    signal::Signal,
};

/// What a client holds now.
#[derive(Debug)]
pub(crate) struct Holds {
    tables: Mutex<HoldTables>,
    /// Changes whenever an owner enters, so that its others need not stand in line.
    pub(super) entered: Signal<()>,
    /// When each of them is to be looked after.
    pub(super) agenda: Arc<Agenda<Hold>>,
}

impl Default for Holds {
    fn default() -> Self {
        let (entered, agenda) = (Signal::new(()), Arc::new(Agenda::new()));
        Self { tables: Mutex::default(), entered, agenda }
    }
}

impl Drop for Holds {
    fn drop(&mut self) {
        self.agenda.close();
    }
}

#[derive(Debug, Default)]
struct HoldTables {
    by_id: BTreeMap<HoldId, Arc<Hold>>,
    /// More than one where an owner's tasks came to read at the same moment.
    by_owner: HashMap<(Arc<str>, Owner), Vec<Arc<Hold>>>,
}

impl Holds {
    fn tables(&self) -> MutexGuard<'_, HoldTables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, hold: &Arc<Hold>) {
        let mut tables = self.tables();
        if let Some(owner) = hold.owner {
            let key = (Arc::clone(&hold.record.info().key), owner);
            tables.by_owner.entry(key).or_default().push(Arc::clone(hold));
            self.entered.change(|()| ());
        }
        tables.by_id.insert(hold.id.clone(), Arc::clone(hold));
    }

    pub(super) fn remove(&self, hold: &Hold) {
        let mut tables = self.tables();
        tables.by_id.remove(&hold.id);
        let Some(owner) = hold.owner else { return };
        let key = (Arc::clone(&hold.record.info().key), owner);
        if let Entry::Occupied(mut holds) = tables.by_owner.entry(key) {
            holds.get_mut().retain(|other| other.id != hold.id);
            if holds.get().is_empty() {
                holds.remove();
            }
        }
    }

    /// The holds that this owner has, lost or not, as long as they have guards; the latest last.
    pub(super) fn of(&self, key: &Arc<str>, owner: Owner) -> Vec<Arc<Hold>> {
        self.tables().by_owner.get(&(Arc::clone(key), owner)).cloned().unwrap_or_default()
    }

    /// Every hold there is, in the same order each time.
    pub(crate) fn all(&self) -> Vec<Arc<Hold>> {
        self.tables().by_id.values().cloned().collect()
    }
}

/// When each hold of a client is to be looked after. Its lock is taken under that of a hold, so
/// nothing here asks a hold under it.
#[derive(Debug)]
pub(super) struct Agenda<T> {
    list: Mutex<List<T>>,
    /// How many holds there were.
    counted: AtomicU64,
    /// Changes when something is due before the watch looks next.
    pub(super) sooner: Signal<()>,
}

#[derive(Debug)]
struct List<T> {
    /// Each with how long before it is due it may be looked after where others are.
    by_time: BTreeMap<AgendaPlace, (Arc<T>, Duration)>,
    /// When the watch looks next. What was to be looked after then may have been taken off.
    alarm: Option<Moment>,
    watch: Watch,
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
        let list = List { by_time: BTreeMap::new(), alarm: None, watch: Watch::None };
        Self { list: Mutex::new(list), counted: AtomicU64::new(0), sooner: Signal::new(()) }
    }

    /// A number for another hold.
    pub(super) fn number(&self) -> u64 {
        self.counted.fetch_add(1, Ordering::Relaxed)
    }

    /// Puts a hold from one place to another.
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
        list.by_time.insert(to, (hold, early));
        let sooner = list.alarm.is_none_or(|alarm| to.0 < alarm);
        if std::mem::replace(&mut list.watch, Watch::Going) == Watch::None {
            return Listing::Unwatched;
        }
        drop(list);
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
            // What is due soon goes along: renewals that leave together cost less.
            if first.key().0 > now + first.get().1 {
                break;
            }
            due.push(first.remove().0);
        }
        let next = list.by_time.first_key_value().map(|((at, _), _)| *at);
        list.alarm = next;
        if due.is_empty() && next.is_none() && !busy {
            list.watch = Watch::None;
        }
        (due, next)
    }

    pub(super) fn all(&self) -> Vec<Arc<T>> {
        self.list().by_time.values().map(|(hold, _)| Arc::clone(hold)).collect()
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
        left.into_values().map(|(hold, _)| hold).collect()
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
            let seen = agenda.sooner.version();
            let listing = agenda.put(Arc::new(number), None, (at(seconds), number), Duration::ZERO);
            (listing, agenda.sooner.version() != seen)
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
