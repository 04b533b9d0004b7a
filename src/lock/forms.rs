//! What every request of a lock has in common: made once for the settings of the client.

use std::sync::Arc;

use super::{
    Access, Preference,
    mutex_record::{ExclusiveKind, MutexForms, MutexTerms},
    rw_record::{RwForms, RwTerms},
    semaphore_record::{SemaphoreForms, SemaphoreTerms},
};
use crate::settings::Settings;

/// The forms of locks with the client's own settings.
#[derive(Debug)]
pub(crate) struct Forms {
    calls: Arc<str>,
    mutexes: Vec<Arc<MutexForms>>,
    rw_locks: Vec<Arc<RwForms>>,
    semaphore: Option<Arc<SemaphoreForms>>,
}

impl Forms {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut forms = Self {
            calls: settings.keys.calls().into(),
            mutexes: Vec::new(),
            rw_locks: Vec::new(),
            semaphore: None,
        };
        // An invalid lease is an error of the call that locks.
        let Ok(rules) = settings.rules(settings.lease) else { return forms };
        let (waiting, keep) = (settings.waiting(settings.lease), settings.fence_memory);
        forms.mutexes = ExclusiveKind::ALL
            .map(|kind| forms.of_mutex(MutexTerms::new(settings, rules, kind)))
            .to_vec();
        let preference = Preference::default();
        forms.rw_locks = [Access::Read, Access::Write]
            .map(|access| forms.of_rw(RwTerms { rules, access, preference, waiting, keep }))
            .to_vec();
        forms.semaphore = Some(forms.of_semaphore(SemaphoreTerms { rules, waiting }));
        forms
    }

    pub(super) fn of_mutex(&self, terms: MutexTerms) -> Arc<MutexForms> {
        let made = self.mutexes.iter().find(|made| made.terms == terms).cloned();
        made.unwrap_or_else(|| Arc::new(MutexForms::new(&self.calls, terms)))
    }

    pub(super) fn of_semaphore(&self, terms: SemaphoreTerms) -> Arc<SemaphoreForms> {
        let made = self.semaphore.as_ref().filter(|made| made.terms == terms).cloned();
        made.unwrap_or_else(|| Arc::new(SemaphoreForms::new(&self.calls, terms)))
    }

    pub(super) fn of_rw(&self, terms: RwTerms) -> Arc<RwForms> {
        let made = self.rw_locks.iter().find(|made| made.terms == terms).cloned();
        made.unwrap_or_else(|| Arc::new(RwForms::new(&self.calls, terms)))
    }
}
