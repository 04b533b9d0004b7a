//! What a kind of lock is to the coordinator: which scripts, with which keys and arguments.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    proto::{Circle, HoldId, HoldIds, HolderKind, LockName, Rules, Slots, Ticket, Token},
    voter::Call,
};

/// What a hold asks of a voter.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) hold: &'a HoldId,
    /// How often the owner has entered, this time included.
    pub(crate) count: u32,
    pub(crate) lease: Duration,
    /// Of the place in the queue, where it is fixed.
    pub(crate) ticket: Option<Ticket>,
    /// The least that its token may be; once it has one, that. `None`: it has none.
    pub(crate) token: Option<Token>,
    /// All voters have lately renewed this hold in full: where it has the vote, it needs no look at
    /// anything else.
    pub(crate) is_known: bool,
    /// To be given the vote where nobody has it. A renewal is not, unless the voter has said so:
    /// where the answer is lost that it had none, nobody would ever know.
    pub(crate) is_anew: bool,
    /// Of a semaphore: before which none of its slots may be, or, when it is renewed, its slots.
    pub(crate) slots: Option<&'a Slots>,
}

impl<'a> Ask<'a> {
    /// What a first request asks that has nothing more to say.
    pub(crate) fn new(hold: &'a HoldId, lease: Duration) -> Self {
        let (ticket, token, slots) = (None, None, None);
        Self { hold, count: 1, lease, ticket, token, is_known: false, is_anew: true, slots }
    }
}

/// One lock, as its client knows it.
#[derive(Debug)]
pub(crate) struct LockInfo {
    /// The kind, as metrics and traces call it.
    pub(crate) kind: &'static str,
    pub(crate) name: LockName,
    /// Tells this lock from all others of the client.
    pub(crate) key: Arc<str>,
    /// Several may have it at once.
    pub(crate) is_shared: bool,
    /// Of how many permits a semaphore is.
    pub(crate) permits: Option<u16>,
    /// Its holds have tokens.
    pub(crate) is_fenced: bool,
    /// The key of the lock whose holder gets this one at once: of a read its write.
    pub(crate) granted_under: Option<Arc<str>>,
    /// The key of the lock whose holder would wait for itself: of a write its read.
    pub(crate) barred_by: Option<Arc<str>>,
    /// How long a place in its queue counts that does not ask again; `None` where there is no
    /// queue.
    pub(crate) waiting: Option<Duration>,
    /// Waiters get it in the order of asking. Otherwise only one task of a client at a time has a
    /// place in the queue, and voters remove a place whose client does not hear its call.
    pub(crate) is_fair: bool,
}

impl LockInfo {
    /// How long after one bid the next one must follow, so that its place goes on to count.
    pub(super) fn refresh(&self) -> Option<Duration> {
        self.waiting.map(|waiting| waiting / 3)
    }

    /// What a hold of this lock does with it.
    fn kind_of(&self, hold: &HoldId) -> HolderKind {
        if self.permits.is_some() {
            return HolderKind::Permit;
        }
        // Of the two sides of a read/write lock each knows the other.
        match self.granted_under.is_some() || self.barred_by.is_some() {
            true if hold.reads() => HolderKind::Read,
            true => HolderKind::Write,
            false => HolderKind::Mutex,
        }
    }

    /// A fresh hold, or a fresh place in the queue.
    pub(crate) fn fresh(&self, ids: &HoldIds) -> HoldId {
        let reads = self.is_shared && self.permits.is_none();
        if reads { ids.fresh_read() } else { ids.fresh() }
    }

    /// In which order a hold looks for free slots; `None` where there are none.
    pub(super) fn circle(&self, hold: &HoldId) -> Option<Circle> {
        self.permits.map(|permits| Circle::of(hold, permits))
    }
}

/// A queue of another library's for the same lock, whose order is not ours.
#[derive(Clone, Debug)]
pub(crate) struct ForeignQueue {
    /// What such a lock is.
    pub(crate) what: &'static str,
    /// Asks whether somebody waits there.
    pub(crate) look: Call,
}

/// One lock as its kind writes it on the voters.
pub(crate) trait LockRecord: fmt::Debug + Send + Sync {
    fn info(&self) -> &LockInfo;

    /// What an attempt is measured by.
    fn rules(&self) -> Rules;

    /// What a hold of this lock does with it.
    fn kind_of(&self, hold: &HoldId) -> HolderKind {
        self.info().kind_of(hold)
    }

    /// The lock that this one grants to its own holder, as it is asked for under that hold.
    fn under(&self, _hold: &HoldId) -> Option<Arc<dyn LockRecord>> {
        None
    }

    /// The channel on which programs of another library publish a release; `None` where all waiters
    /// stand in our queue. Made when it is asked for: few listen.
    fn channel(&self) -> Option<Arc<str>> {
        None
    }

    /// A client may have several lines of tasks that want a place in the queue of one lock. This is
    /// the name of the one for this record. All in one line have the same to wait for.
    fn line(&self) -> &'static str {
        ""
    }

    /// The hold of an attempt without a place in a queue.
    fn hold(&self, ids: &HoldIds) -> HoldId {
        self.info().fresh(ids)
    }

    /// This lock as it is asked for from a place in its queue.
    fn at_place(&self, place: &HoldId) -> Arc<dyn LockRecord>;

    /// Programs of another library lock by the same records. Their release publishes on the lock's
    /// channel, and calls nobody in our queue.
    fn is_foreign(&self) -> bool {
        false
    }

    /// Where those have a queue of their own.
    fn foreign_queue(&self) -> Option<&ForeignQueue> {
        None
    }

    fn acquire(&self, ask: &Ask<'_>) -> Call;
    fn renew(&self, ask: &Ask<'_>) -> Call;
    /// Sets how often the hold is entered. At 0 the voter takes its vote back, takes the place out
    /// of the queue, and calls the next waiter.
    fn release(&self, hold: &HoldId, count: u32) -> Call;
    /// Lets the lease of a hold end sooner; `None` where its record cannot.
    fn shorten(&self, _hold: &HoldId, _lease: Duration) -> Option<Call> {
        None
    }
    /// Gives back what an attempt got, and stays in the queue.
    fn undo(&self, hold: &HoldId) -> Call;
}
