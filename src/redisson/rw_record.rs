//! A read/write lock on its voter as Redisson writes an `RReadWriteLock`: one hash of who writes or
//! reads, and a key that expires for each who reads. Nobody waits in a queue.

use std::{sync::Arc, time::Duration};

use super::names::RwNames;
use crate::{
    acquire::{Ask, LockInfo, LockRecord},
    keys::Word,
    locks::{Access, Form, LockAsked, RwTerms, flag, millis, token},
    proto::{HoldId, HoldIds, HolderKind, LockName, Rules},
    scripts::{Script, redisson},
    voter::Call,
};

/// What the id of a hold that writes ends with.
const WRITE: &str = ":write";

/// A read/write lock that Java has too, to read or to write.
#[derive(Clone, Debug)]
pub(super) struct JavaRwRecord {
    info: Arc<LockInfo>,
    keys: RwNames,
    terms: RwTerms,
    acquire: Form,
    renew: Form,
    release: Form,
    /// The write of the same owner under which it is asked for, if it is.
    write: Option<HoldId>,
}

impl JavaRwRecord {
    pub(super) fn new(keys: RwNames, name: LockName, terms: RwTerms) -> Self {
        let lease = terms.rules.terms.lease;
        // Both sides have one record. What tells them apart is any name that no other lock has.
        let info = terms.info(name, &keys.channel, &keys.fence, None);
        Self {
            info: Arc::new(info),
            keys,
            acquire: leased(&redisson::RW_ACQUIRE, &terms, lease),
            renew: leased(&redisson::RW_RENEW, &terms, lease),
            release: Form::new(&redisson::RW_RELEASE, terms.rules, &[]),
            terms,
            write: None,
        }
    }

    fn give_back(&self, hold: &HoldId, count: u32) -> Call {
        let RwNames { lock, stem, channel, .. } = &self.keys;
        self.release.request([lock, stem], hold, [Word::number(count), channel.into()])
    }
}

/// Of a script that gives a lease.
fn leased(script: &'static Script, terms: &RwTerms, lease: Duration) -> Form {
    Form::new(script, terms.rules, &[&millis(lease), &millis(terms.keep)])
}

impl LockAsked for JavaRwRecord {
    fn inspect(&self, _from: u64) -> Call {
        let RwNames { lock, stem, fence, .. } = &self.keys;
        Form::new(&redisson::RW_INSPECT, self.rules(), &[]).question([lock, stem, fence])
    }

    fn force_release(&self, hold: &HoldId, marker: Duration) -> Call {
        let RwNames { lock, stem, revoked, channel, .. } = &self.keys;
        let form = Form::new(&redisson::RW_FORCE_RELEASE, self.rules(), &[]);
        form.request([lock, stem, revoked], hold, [(&millis(marker)).into(), channel.into()])
    }

    fn clear(&self) -> Call {
        let RwNames { lock, revoked, fence, .. } = &self.keys;
        Form::new(&redisson::RW_CLEAR, self.rules(), &[]).question([lock, revoked, fence])
    }
}

impl LockRecord for JavaRwRecord {
    fn info(&self) -> &LockInfo {
        &self.info
    }

    fn rules(&self) -> Rules {
        self.terms.rules
    }

    fn is_foreign(&self) -> bool {
        true
    }

    fn kind_of(&self, hold: &HoldId) -> HolderKind {
        if hold.as_str().ends_with(WRITE) { HolderKind::Write } else { HolderKind::Read }
    }

    fn under(&self, hold: &HoldId) -> Option<Arc<dyn LockRecord>> {
        let terms = RwTerms { access: Access::Read, ..self.terms };
        let read = Self::new(self.keys.clone(), self.info.name.clone(), terms);
        Some(Arc::new(Self { write: Some(hold.clone()), ..read }))
    }

    fn channel(&self) -> Option<Arc<str>> {
        Some(Arc::clone(&self.keys.channel))
    }

    fn hold(&self, ids: &HoldIds) -> HoldId {
        match (&self.write, self.terms.access) {
            (Some(write), _) => ids.under(write),
            (None, Access::Read) => ids.fresh_read(),
            (None, Access::Write) => HoldId::parse(&format!("{}{WRITE}", ids.fresh())),
        }
    }

    fn at_place(&self, _place: &HoldId) -> Arc<dyn LockRecord> {
        // There is no queue to have a place in.
        Arc::new(self.clone())
    }

    fn acquire(&self, ask: &Ask<'_>) -> Call {
        let RwNames { lock, stem, fence, .. } = &self.keys;
        let (keys, args) = ([lock, stem, fence], [token(ask.token)]);
        if ask.lease == self.rules().terms.lease {
            return self.acquire.request(keys, ask.hold, args);
        }
        // A read under a write has its own lease.
        leased(&redisson::RW_ACQUIRE, &self.terms, ask.lease).request(keys, ask.hold, args)
    }

    fn renew(&self, ask: &Ask<'_>) -> Call {
        let RwNames { lock, stem, revoked, fence, .. } = &self.keys;
        let keys = [lock, stem, revoked, fence];
        let args = [Word::number(ask.count), token(ask.token), flag(ask.is_anew)];
        if ask.lease == self.rules().terms.lease {
            return self.renew.request(keys, ask.hold, args);
        }
        // Somebody has entered again and wanted it for longer.
        leased(&redisson::RW_RENEW, &self.terms, ask.lease).request(keys, ask.hold, args)
    }

    fn release(&self, hold: &HoldId, count: u32) -> Call {
        self.give_back(hold, count)
    }

    fn undo(&self, hold: &HoldId) -> Call {
        self.give_back(hold, 0)
    }
}
