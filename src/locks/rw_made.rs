//! What a read/write lock is asked with: ours, or that of Redisson, by the names of the client.

use std::sync::Arc;

use super::{
    Access, Preference,
    asking::Asking,
    rw_java::JavaRwRecord,
    rw_record::{RwAsked, RwRecord, RwTerms},
};
use crate::{keys::RwNames, proto::Error};

/// What a call asks with, if it may.
pub(super) fn rw_record(
    asking: &Asking,
    access: Access,
    preference: Option<Preference>,
) -> Result<Arc<dyn RwAsked>, Error> {
    let (name, rules) = asking.checked()?;
    let settings = asking.settings();
    let (waiting, keep) = (settings.waiting(rules.terms.lease), settings.fence_memory);
    let preferred = preference.unwrap_or_default();
    let terms = RwTerms { rules, access, preference: preferred, waiting, keep };
    match settings.keys.rw_lock(&name) {
        RwNames::Ours(keys) => Ok(Arc::new(RwRecord::new(name, keys, asking.forms().of_rw(terms)))),
        RwNames::Java(keys) => {
            check_for_java(asking.voters(), preference)?;
            Ok(Arc::new(JavaRwRecord::new(name, keys, terms)))
        }
    }
}

/// An error where Redisson has nothing of the kind.
fn check_for_java(voters: usize, preference: Option<Preference>) -> Result<(), Error> {
    if voters > 1 {
        return Err(Error::invalid(format!(
            "a read/write lock with the key scheme of Redisson has one voter, and this client has \
             {voters}: an RReadWriteLock is on one server, and would not exclude it"
        )));
    }
    match preference {
        None | Some(Preference::Readers) => Ok(()),
        Some(other) => Err(Error::invalid(format!(
            "the preference `{other:?}` is unknown to an RReadWriteLock: with the key scheme of \
             Redisson the only one is `Readers`"
        ))),
    }
}
