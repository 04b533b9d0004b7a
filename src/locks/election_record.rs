//! An election on the voters: the record of a mutex, with what the leader says of itself in place
//! of a count.

use std::sync::{Arc, Mutex, PoisonError};

use super::{
    mutex_record::MutexRecord,
    request::{flag, ticket, token},
};
use crate::{
    acquire::{Ask, LockInfo, LockRecord},
    proto::{HoldId, HolderKind, LeaderValue, Proclaimed, Rules, Token},
    voter::Call,
};

/// An election, as one candidate asks for it.
#[derive(Clone, Debug)]
pub(super) struct ElectionRecord {
    mutex: MutexRecord,
    speech: Arc<Speech>,
}

/// What a candidate, or a leader, says of itself.
#[derive(Debug)]
pub(super) struct Speech(Mutex<Saying>);

#[derive(Debug)]
struct Saying {
    value: LeaderValue,
    /// How often it was changed.
    changes: u64,
}

impl Speech {
    pub(super) fn of(value: LeaderValue) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Saying { value, changes: 0 })))
    }

    /// From now on every renewal says this.
    pub(super) fn change(&self, value: LeaderValue) {
        let mut saying = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *saying = Saying { value, changes: saying.changes + 1 };
    }

    /// As it is asked for the vote: its token is not known yet.
    fn first(&self) -> String {
        let saying = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = saying.value.clone();
        Proclaimed { version: Proclaimed::FIRST, token: None, value }.to_text()
    }

    /// As it is renewed: a later version than that of the candidate, with the token.
    fn latest(&self, token: Option<Token>) -> String {
        let saying = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let version = Proclaimed::FIRST + 1 + saying.changes;
        Proclaimed { version, token, value: saying.value.clone() }.to_text()
    }
}

impl ElectionRecord {
    pub(super) fn new(mutex: &MutexRecord, speech: &Arc<Speech>) -> Self {
        Self { mutex: mutex.clone(), speech: Arc::clone(speech) }
    }
}

impl LockRecord for ElectionRecord {
    fn info(&self) -> &LockInfo {
        self.mutex.info()
    }

    fn rules(&self) -> Rules {
        self.mutex.rules()
    }

    fn kind_of(&self, _hold: &HoldId) -> HolderKind {
        HolderKind::Leader
    }

    fn at_place(&self, place: &HoldId) -> Arc<dyn LockRecord> {
        Arc::new(Self { mutex: self.mutex.from(place), speech: Arc::clone(&self.speech) })
    }

    fn acquire(&self, ask: &Ask<'_>) -> Call {
        let made = &self.mutex.made;
        let (keys, says) = (&made.keys, self.speech.first());
        let args = [token(ask.token), ticket(ask.ticket), (&says).into(), keys.channel()];
        let keys = [keys.lock(), keys.queue(), keys.alive(), keys.fence()];
        made.forms.acquire.request(keys, ask.hold, args)
    }

    fn renew(&self, ask: &Ask<'_>) -> Call {
        let made = &self.mutex.made;
        debug_assert_eq!(ask.lease, self.mutex.rules().terms.lease, "nobody enters it again");
        let (keys, says) = (&made.keys, self.speech.latest(ask.token));
        let args = [token(ask.token), (&says).into(), keys.channel(), flag(ask.is_anew)];
        made.forms.renew.request([keys.lock(), keys.revoked(), keys.fence()], ask.hold, args)
    }

    fn release(&self, hold: &HoldId, count: u32) -> Call {
        self.mutex.release(hold, count)
    }

    fn undo(&self, hold: &HoldId) -> Call {
        self.mutex.undo(hold)
    }
}
