//! Wake-ups: which voters have sent one, on which channel and for which place.
//!
//! A wake-up is a hint, never a grant: a waiter that gets one asks the voters again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex},
};

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, OptionFuture},
    stream::FuturesUnordered,
};
use tokio::join;

use super::Coordinator;
use crate::{
    kinds::LockRecord,
    proto::{Error, HoldId, Quorum, Shard, Votes},
    scripts::Answer,
    signal::Signal,
    sync::lock,
    voter::{Identity, Outcome, Stamp, Standings, Voter, VoterEvents, VoterReply},
};

/// What a release says on a lock's channel if it has woken the first in our queue.
// Only programs that know nothing of the queue are to ask then: our own waiters would ask in vain.
const FOR_OTHERS: &str = "00";

/// All that waiters of this client listen to.
#[derive(Debug, Default)]
pub(crate) struct Wakeups(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    /// Who listens to each channel.
    channels: BTreeMap<Arc<str>, Vec<Arc<Signal<ReceivedWakeups>>>>,
    /// Who listens for each place in a queue.
    listeners: BTreeMap<Arc<str>, Arc<Signal<ReceivedWakeups>>>,
    /// Pairs of places of this client: the second is right behind the first.
    followers: BTreeSet<(Arc<str>, Arc<str>)>,
}

/// The wake-ups that one waiter got since it last forgot them.
#[derive(Debug)]
pub(crate) struct ReceivedWakeups {
    /// Which voters sent one.
    pub(crate) from: Vec<bool>,
    /// Whether some may have been lost.
    pub(crate) may_have_missed: bool,
}

impl Wakeups {
    fn with_tables<T>(&self, act: impl FnOnce(&mut Tables) -> T) -> T {
        act(&mut lock(&self.0))
    }

    /// Listens for one place in a queue, on the client's own channel.
    pub(crate) fn listener(self: &Arc<Self>, place: &str, voters: usize) -> PlaceListener {
        let (place, receiver) = (Arc::from(place), WakeupReceiver::new(voters));
        self.with_tables(|tables| {
            tables.listeners.insert(Arc::clone(&place), Arc::clone(&receiver.received));
        });
        PlaceListener { wakeups: Arc::clone(self), place, ahead: None, receiver }
    }

    /// Wakes this client's waiters right behind this place, as the client gives its hold back.
    // Their requests leave right behind the release, so the next task has the lock after one round
    // trip. A message of the voters would come only then
    // (`the_next_task_of_a_client_has_the_lock_one_round_trip_after_the_release`).
    pub(crate) fn wake_followers(&self, place: &str) {
        self.with_tables(|Tables { listeners, followers, .. }| {
            if followers.is_empty() {
                return;
            }
            let nobody = Arc::from("");
            let behind = followers.range((Arc::from(place), nobody)..);
            let behind = behind.take_while(|(ahead, _)| **ahead == *place);
            for received in behind.filter_map(|(_, follower)| listeners.get(follower)) {
                received.change(|received| received.from.fill(true));
            }
        });
    }

    /// Wake-ups may have been lost, so every waiter looks again.
    pub(super) fn note_missed(&self) {
        self.with_tables(|tables| {
            for received in tables.channels.values().flatten().chain(tables.listeners.values()) {
                received.change(|received| received.may_have_missed = true);
            }
        });
    }
}

/// Completes when a majority has confirmed, or all have answered. One reply for each voter.
pub(crate) async fn majority_confirms(replies: Vec<VoterReply<()>>, quorum: Quorum) {
    let mut confirmed = vec![false; replies.len()];
    let replies = replies.into_iter().enumerate();
    let mut replies: FuturesUnordered<_> =
        replies.map(|(voter, reply)| reply.map(move |outcome| (voter, outcome.is_ok()))).collect();
    while let Some((voter, is_ok)) = replies.next().await {
        confirmed[voter] = is_ok;
        if quorum.reached(|voter| confirmed[voter]) {
            return;
        }
    }
}

/// Takes what one voter says to [`Wakeups`] and [`Standings`].
pub(crate) struct VoterListener {
    pub(crate) voter: usize,
    pub(crate) wakeups: Arc<Wakeups>,
    pub(crate) standings: Arc<Standings>,
}

impl VoterListener {
    fn shard(&self, number: usize) -> Shard {
        Shard { voter: self.voter, number }
    }
}

impl VoterEvents for VoterListener {
    fn deliver(&self, channel: &str, message: &str) {
        if message == FOR_OTHERS {
            return;
        }
        self.wakeups.with_tables(|tables| {
            let listeners = tables.channels.get(channel).into_iter().flatten();
            for received in listeners.chain(tables.listeners.get(message)) {
                received.change(|received| received.from[self.voter] = true);
            }
        });
    }

    fn note_connection(&self, shard: usize, identity: &Identity, stamp: Option<Stamp>) -> bool {
        self.standings.note_identity(self.shard(shard), identity, stamp, true)
    }

    fn note_inspection(&self, shard: usize, identity: &Identity, stamp: Option<Stamp>) -> bool {
        self.standings.note_identity(self.shard(shard), identity, stamp, false)
    }

    fn note_disconnect(&self, shard: usize, why: Option<&str>) {
        self.standings.note_disconnect(self.shard(shard), why);
    }

    fn note_move(&self, from: usize, to: usize, lost: bool) {
        self.standings.note_move(self.shard(from), self.shard(to), lost);
    }

    fn has_waiters(&self) -> bool {
        self.wakeups.with_tables(|Tables { channels, listeners, .. }| {
            !channels.is_empty() || !listeners.is_empty()
        })
    }

    fn note_lost_messages(&self) {
        self.wakeups.note_missed();
    }
}

/// The receiving end of one waiter.
#[derive(Debug)]
pub(crate) struct WakeupReceiver {
    received: Arc<Signal<ReceivedWakeups>>,
    /// The version at the last look.
    version: u64,
}

impl WakeupReceiver {
    pub(crate) fn new(voters: usize) -> Self {
        let nothing = ReceivedWakeups { from: vec![false; voters], may_have_missed: false };
        Self { received: Arc::new(Signal::new(nothing)), version: 0 }
    }

    /// Forgets the wake-ups so far.
    pub(crate) fn forget(&self) {
        self.received.change(|received| {
            received.from.fill(false);
            received.may_have_missed = false;
        });
    }

    pub(crate) fn look<R>(&mut self, look: impl FnOnce(&ReceivedWakeups) -> R) -> R {
        // The version first: a wake-up that comes between the two lines is looked at twice.
        self.version = self.received.version();
        self.received.read(look)
    }

    /// Completes when some voter has sent a wake-up that was not forgotten.
    pub(crate) fn woken(&self) -> impl Future<Output = ()> {
        self.received.until(|received| received.from.contains(&true))
    }

    /// Completes when there is more than at the last look.
    pub(crate) async fn changed(&self) {
        self.received.changed_since(self.version).await;
    }
}

/// Receives the wake-ups for one place until it is dropped.
#[derive(Debug)]
pub(crate) struct PlaceListener {
    wakeups: Arc<Wakeups>,
    place: Arc<str>,
    /// The place of this client that is right before it, if one is.
    ahead: Option<Arc<str>>,
    pub(crate) receiver: WakeupReceiver,
}

impl PlaceListener {
    /// Notes which hold or place is right before it now, if any is.
    pub(crate) fn follow(&mut self, ahead: Option<&HoldId>) {
        // Only the voters know when another client gives its hold back.
        let ours = |ahead: &&HoldId| {
            let rest = ahead.client().and_then(|client| self.place.strip_prefix(client));
            rest.is_some_and(|rest| rest.starts_with(':'))
        };
        let ahead = ahead.filter(ours).map(HoldId::shared_place_or_self);
        if self.ahead == ahead {
            return;
        }
        let before = std::mem::replace(&mut self.ahead, ahead);
        let entry = |ahead: Option<Arc<str>>| Some((ahead?, Arc::clone(&self.place)));
        self.wakeups.with_tables(|Tables { followers, .. }| {
            if let Some(before) = entry(before) {
                followers.remove(&before);
            }
            followers.extend(entry(self.ahead.clone()));
        });
    }
}

impl Drop for PlaceListener {
    fn drop(&mut self) {
        self.follow(None);
        self.wakeups.with_tables(|tables| tables.listeners.remove(&self.place));
    }
}

/// Listens to one channel on all voters until it is dropped.
#[derive(Debug)]
pub(crate) struct ChannelListener {
    wakeups: Arc<Wakeups>,
    voters: Arc<[Voter]>,
    channel: Arc<str>,
    received: Arc<Signal<ReceivedWakeups>>,
}

impl ChannelListener {
    /// Starts to listen. Each reply comes when its voter has confirmed the subscription.
    pub(crate) fn start(
        wakeups: &Arc<Wakeups>,
        voters: &Arc<[Voter]>,
        channel: &Arc<str>,
        receiver: &WakeupReceiver,
    ) -> (Self, Vec<VoterReply<()>>) {
        let received = &receiver.received;
        let listener = Self {
            wakeups: Arc::clone(wakeups),
            voters: Arc::clone(voters),
            channel: Arc::clone(channel),
            received: Arc::clone(received),
        };
        // With the tables locked: otherwise the last listener before could unsubscribe behind this
        // subscription, and nobody would be woken by messages on the channel.
        let replies = wakeups.with_tables(|Tables { channels, .. }| {
            channels.entry(Arc::clone(channel)).or_default().push(Arc::clone(received));
            voters.iter().map(|voter| voter.subscribe(Arc::clone(channel))).collect()
        });
        (listener, replies)
    }
}

impl Drop for ChannelListener {
    fn drop(&mut self) {
        self.wakeups.with_tables(|Tables { channels, .. }| {
            let Some(listeners) = channels.get_mut(&self.channel) else { return };
            listeners.retain(|received| !Arc::ptr_eq(received, &self.received));
            if listeners.is_empty() {
                channels.remove(&self.channel);
                for voter in self.voters.iter() {
                    voter.unsubscribe(Arc::clone(&self.channel));
                }
            }
        });
    }
}

/// Receives what wakes a waiter in a queue: the wake-ups for its place and, of a lock of another
/// library, the messages on the lock's channel.
pub(super) struct WaiterListener {
    pub(super) place: PlaceListener,
    channel: Option<ChannelListener>,
    /// Until a majority has confirmed the subscription to the channel.
    subscribing: Option<BoxFuture<'static, Result<(), Error>>>,
}

impl WaiterListener {
    pub(super) fn of(place: PlaceListener) -> Self {
        Self { place, channel: None, subscribing: None }
    }

    /// Listens for the end of what is in the way, if it is of the same client, and to the lock's
    /// channel if programs of another library use the lock.
    pub(super) fn listen(
        &mut self,
        coordinator: &Arc<Coordinator>,
        record: &LockRecord,
        refused: &Votes,
    ) {
        self.place.follow(refused.obstacle());
        // A release of ours wakes the first waiter by its place (design 8). A release of another
        // library knows no places, and publishes on the channel.
        if self.channel.is_some() || !record.kind().is_foreign {
            return;
        }
        let Some(channel) = &record.channel() else { return };
        let Coordinator { wakeups, panel, .. } = &**coordinator;
        let (listener, replies) =
            ChannelListener::start(wakeups, &panel.voters, channel, &self.place.receiver);
        let (coordinator, record) = (Arc::clone(coordinator), record.clone());
        let subscribing = async move {
            let confirmed = majority_confirms(replies, coordinator.panel.quorum);
            join!(confirmed, coordinator.check_foreign_queue(&record)).1
        };
        (self.channel, self.subscribing) = (Some(listener), Some(subscribing.boxed()));
    }

    /// Completes when there is more than at the last look. True once, when the subscription is
    /// confirmed: earlier messages were not received.
    pub(super) async fn changed(&mut self) -> Result<bool, Error> {
        let Self { place, subscribing, .. } = self;
        tokio::select! {
            biased;
            Some(confirmed) = OptionFuture::from(subscribing.as_mut()) => {
                *subscribing = None;
                confirmed.map(|()| true)
            }
            () = place.receiver.changed() => Ok(false),
        }
    }
}

impl fmt::Debug for WaiterListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaiterListener").field("place", &self.place).finish_non_exhaustive()
    }
}

// Beside programs of another library that lock by the same records.

impl Coordinator {
    /// Fails if a voter says in time that somebody waits in a queue of the other library.
    // Neither side wakes the other there, nor keeps the other's order.
    pub(super) async fn check_foreign_queue(&self, record: &LockRecord) -> Result<(), Error> {
        let Some((what, look)) = record.look_for_foreign_queue() else { return Ok(()) };
        let has_queue = |answer: &Outcome<Answer>| matches!(answer, Ok(it) if it.is_done());
        let quorum = self.panel.quorum;
        // A voter that refuses the question does not matter: a user without a right to these keys
        // uses no such lock.
        let are_enough = |answers: &[_]| {
            answers.iter().any(has_queue) || quorum.reached(|voter| answers[voter].is_ok())
        };
        let answers = self.gather(&look, record.rules(), are_enough).await;
        answers.iter().position(has_queue).map_or(Ok(()), |voter| {
            let voter = self.panel.voters[voter].label();
            let lock = record.info().name.as_str();
            Err(Error::invalid(format!(
                "`{lock}` is {what}, which is no lock of ours: {voter} has its queue, `{}`",
                look.key(),
            )))
        })
    }
}
