//! All holds of a client, for re-entry by owner and for closing.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::held::Hold;
use crate::{
    signal::Signal,
    words::{HoldId, Owner},
};

/// What a client holds now.
#[derive(Debug)]
pub(crate) struct Holds {
    tables: Mutex<Tables>,
    /// Changes whenever an owner enters, so that its others need not stand in line.
    entered: Signal<()>,
}

impl Default for Holds {
    fn default() -> Self {
        Self { tables: Mutex::default(), entered: Signal::new(()) }
    }
}

#[derive(Debug, Default)]
struct Tables {
    by_id: BTreeMap<HoldId, Arc<Hold>>,
    by_owner: HashMap<(Arc<str>, Owner), Arc<Hold>>,
}

impl Holds {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, hold: &Arc<Hold>) {
        let mut tables = self.tables();
        if let Some(owner) = hold.owner() {
            tables.by_owner.insert((Arc::clone(hold.key()), owner), Arc::clone(hold));
            self.entered.change(|()| ());
        }
        tables.by_id.insert(hold.id().clone(), Arc::clone(hold));
    }

    pub(super) fn remove(&self, hold: &Hold) {
        let mut tables = self.tables();
        tables.by_id.remove(hold.id());
        if let Some(owner) = hold.owner() {
            tables.by_owner.remove(&(Arc::clone(hold.key()), owner));
        }
    }

    /// The hold that this owner has, lost or not, as long as it has a guard.
    pub(super) fn of(&self, key: &Arc<str>, owner: Owner) -> Option<Arc<Hold>> {
        self.tables().by_owner.get(&(Arc::clone(key), owner)).cloned()
    }

    pub(super) fn entered(&self) -> &Signal<()> {
        &self.entered
    }

    /// Every hold there is, in the same order each time.
    pub(crate) fn all(&self) -> Vec<Arc<Hold>> {
        self.tables().by_id.values().cloned().collect()
    }
}
