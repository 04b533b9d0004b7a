//! All holds of a client: by id for closing, by owner for re-entry, and by when something is next
//! due for them.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{Hold, keeper};
use crate::{
    acquire::Coordinator,
    clock::Moment,
    proto::{HoldId, Owner},
    signal::Signal,
    sync::lock,
};

/// What a client holds now.
#[derive(Debug)]
pub(crate) struct Holds {
    tables: Mutex<HoldTables>,
    /// Changes whenever an owner enters, as its other tasks need not wait then.
    pub(super) entered: Signal<()>,
    pub(super) agenda: Arc<Agenda<Hold>>,
}

impl Drop for Holds {
    fn drop(&mut self) {
        self.agenda.end();
    }
}

#[derive(Debug, Default)]
struct HoldTables {
    by_id: BTreeMap<HoldId, Arc<Hold>>,
    /// Several, if tasks of an owner began to read at the same moment.
    by_owner: HashMap<(Arc<str>, Owner), Vec<Arc<Hold>>>,
}

impl Holds {
    /// No holds yet. Starts their keeper on the client's runtime.
    pub(crate) fn of_client(coordinator: &Coordinator) -> Arc<Self> {
        let (entered, agenda) = (Signal::new(()), Arc::new(Agenda::new()));
        coordinator.spawn(keeper::watch(&agenda, coordinator));
        Arc::new(Self { tables: Mutex::default(), entered, agenda })
    }

    pub(super) fn add(&self, hold: &Arc<Hold>) {
        let mut tables = lock(&self.tables);
        if let Some(owner) = hold.owner {
            let key = (Arc::clone(&hold.record.info().key), owner);
            tables.by_owner.entry(key).or_default().push(Arc::clone(hold));
            self.entered.change(|()| ());
        }
        tables.by_id.insert(hold.id.clone(), Arc::clone(hold));
    }

    pub(super) fn remove(&self, hold: &Hold) {
        let mut tables = lock(&self.tables);
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
        lock(&self.tables).by_owner.get(&(Arc::clone(key), owner)).cloned().unwrap_or_default()
    }

    /// The hold of this id, if this client parks it.
    pub(crate) fn parked(&self, id: &HoldId) -> Option<Arc<Hold>> {
        lock(&self.tables).by_id.get(id).filter(|hold| hold.id.is_parked()).cloned()
    }

    /// Every hold there is, in the same order each time.
    pub(crate) fn all(&self) -> Vec<Arc<Hold>> {
        lock(&self.tables).by_id.values().cloned().collect()
    }
}

/// When something is next due for each hold of a client: a renewal, or its end.
// Its mutex is locked while that of a hold is. So nothing here locks a hold with it: two threads
// would wait for each other.
#[derive(Debug)]
pub(super) struct Agenda<T> {
    list: Mutex<List<T>>,
    /// How many holds there were.
    counted: AtomicU64,
    /// Changes when something is due before the keeper looks next.
    pub(super) sooner: Signal<()>,
}

#[derive(Debug)]
struct List<T> {
    /// Each hold, with how long before its moment it may go along with others.
    by_time: BTreeMap<AgendaPlace, (Arc<T>, Duration)>,
    /// When the keeper looks next. What was due then may have been taken off.
    alarm: Option<Moment>,
    /// The keeper has ended: with the runtime, or as no hold will come.
    has_ended: bool,
}

/// When something is due for a hold, and its number.
pub(super) type AgendaPlace = (Moment, u64);

impl<T> Agenda<T> {
    pub(super) fn new() -> Self {
        let list = List { by_time: BTreeMap::new(), alarm: None, has_ended: false };
        Self { list: Mutex::new(list), counted: AtomicU64::new(0), sooner: Signal::new(()) }
    }

    /// A number for another hold.
    pub(super) fn number(&self) -> u64 {
        self.counted.fetch_add(1, Ordering::Relaxed)
    }

    /// Puts a hold from one place to another. `false`: the keeper has ended.
    pub(super) fn put(
        &self,
        hold: Arc<T>,
        from: Option<AgendaPlace>,
        to: AgendaPlace,
        early: Duration,
    ) -> bool {
        let mut list = lock(&self.list);
        if let Some(from) = from {
            list.by_time.remove(&from);
        }
        if list.has_ended {
            return false;
        }
        list.by_time.insert(to, (hold, early));
        // A hold that is given back before its renewal is due never wakes the keeper.
        let sooner = list.alarm.is_none_or(|alarm| to.0 < alarm);
        drop(list);
        if sooner {
            self.sooner.change(|()| ());
        }
        true
    }

    pub(super) fn remove(&self, place: AgendaPlace) {
        lock(&self.list).by_time.remove(&place);
    }

    /// The holds for which something is due, in order; and when the next ones are, if there are
    /// others. `None`: the keeper ends.
    pub(super) fn take_due(&self, now: Moment) -> Option<(Vec<Arc<T>>, Option<Moment>)> {
        let mut list = lock(&self.list);
        if list.has_ended {
            return None;
        }
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
        Some((due, next))
    }

    pub(super) fn all(&self) -> Vec<Arc<T>> {
        lock(&self.list).by_time.values().map(|(hold, _)| Arc::clone(hold)).collect()
    }

    /// Ends the keeper. Returns the holds that were on the list.
    pub(super) fn end(&self) -> Vec<Arc<T>> {
        let mut list = lock(&self.list);
        list.has_ended = true;
        let left = std::mem::take(&mut list.by_time);
        drop(list);
        self.sooner.change(|()| ());
        left.into_values().map(|(hold, _)| hold).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::BEGINNING + Duration::from_secs(seconds)
    }

    #[test]
    fn only_what_is_due_before_the_keeper_looks_wakes_it() {
        let agenda = Agenda::new();
        let put = |number: u64, seconds| {
            let seen = agenda.sooner.version();
            assert!(agenda.put(Arc::new(number), None, (at(seconds), number), Duration::ZERO));
            agenda.sooner.version() != seen
        };
        assert!(put(1, 10), "nothing was due");
        assert_eq!(agenda.take_due(at(0)), Some((vec![], Some(at(10)))));
        assert!(!put(2, 20));
        agenda.remove((at(10), 1));
        assert!(!put(3, 15), "the keeper looks at 10 all the same");
        assert!(put(4, 5));
        assert_eq!(agenda.take_due(at(5)), Some((vec![Arc::new(4)], Some(at(15)))));
        assert!(put(5, 14));
        assert_eq!(agenda.take_due(at(20)), Some(([5, 3, 2].map(Arc::new).to_vec(), None)));
        assert!(put(6, 30), "nothing was due");
        assert_eq!(agenda.end(), [Arc::new(6)]);
        assert_eq!(agenda.take_due(at(40)), None);
        assert!(
            !agenda.put(Arc::new(7), None, (at(50), 7), Duration::ZERO),
            "the keeper has ended"
        );
    }
}
