//! All holds of a client, for re-entry by owner and for closing.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{agenda::Agenda, held::Hold};
use crate::{
    proto::{HoldId, Owner},
    signal::Signal,
};

/// What a client holds now.
#[derive(Debug)]
pub(crate) struct Holds {
    tables: Mutex<HoldTables>,
    /// Changes whenever an owner enters, so that its others need not stand in line.
    entered: Signal<()>,
    agenda: Arc<Agenda<Hold>>,
}

impl Default for Holds {
    fn default() -> Self {
        let agenda = Arc::new(Agenda::new());
        Self { tables: Mutex::default(), entered: Signal::new(()), agenda }
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
        if let Some(owner) = hold.owner() {
            let key = (Arc::clone(hold.key()), owner);
            tables.by_owner.entry(key).or_default().push(Arc::clone(hold));
            self.entered.change(|()| ());
        }
        tables.by_id.insert(hold.id().clone(), Arc::clone(hold));
    }

    pub(super) fn remove(&self, hold: &Hold) {
        let mut tables = self.tables();
        tables.by_id.remove(hold.id());
        if let Some(owner) = hold.owner()
            && let Entry::Occupied(mut holds) =
                tables.by_owner.entry((Arc::clone(hold.key()), owner))
        {
            holds.get_mut().retain(|other| other.id() != hold.id());
            if holds.get().is_empty() {
                holds.remove();
            }
        }
    }

    /// The holds that this owner has, lost or not, as long as they have guards; the latest last.
    pub(super) fn of(&self, key: &Arc<str>, owner: Owner) -> Vec<Arc<Hold>> {
        self.tables().by_owner.get(&(Arc::clone(key), owner)).cloned().unwrap_or_default()
    }

    /// When each of them is to be looked after.
    pub(super) fn agenda(&self) -> &Arc<Agenda<Hold>> {
        &self.agenda
    }

    pub(super) fn entered(&self) -> &Signal<()> {
        &self.entered
    }

    /// Every hold there is, in the same order each time.
    pub(crate) fn all(&self) -> Vec<Arc<Hold>> {
        self.tables().by_id.values().cloned().collect()
    }
}
