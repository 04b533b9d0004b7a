//! Wake-ups: which voters have called on which channel since somebody last looked.
//!
//! A wake-up is a hint, never a grant: whoever hears one asks the voters again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use futures::{FutureExt, StreamExt, stream::FuturesUnordered};

use crate::{
    proto::{HoldId, Quorum, Shard},
    signal::Signal,
    sync::lock,
    voter::{Identity, Stamp, Standings, Voter, VoterEvents, VoterReply},
};

/// What a release says on a lock's channel where it called the first in the queue: only programs
/// that know nothing of the queue are to ask.
const FOR_OTHERS: &str = "00";

/// All that waiters of this client listen to.
#[derive(Debug, Default)]
pub(crate) struct Wakeups(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    /// Who listens to each channel.
    channels: BTreeMap<Arc<str>, Vec<Arc<Signal<Heard>>>>,
    /// By their places in queues.
    listeners: BTreeMap<Arc<str>, Arc<Signal<Heard>>>,
    /// Places of this client, by the places of this client that they stand right behind.
    followers: BTreeSet<(Arc<str>, Arc<str>)>,
}

/// What one waiter has heard since it forgot what came before.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Which voters called.
    pub(crate) called: Vec<bool>,
    /// Whether calls may have been lost.
    pub(crate) missed: bool,
}

impl Wakeups {
    fn with_tables<T>(&self, act: impl FnOnce(&mut Tables) -> T) -> T {
        act(&mut lock(&self.0))
    }

    /// Hears the calls for one place in a queue, as far as the client's own channel is heard.
    pub(crate) fn listener(self: &Arc<Self>, place: &str, voters: usize) -> PlaceListener {
        let (place, hearing) = (Arc::from(place), Hearing::new(voters));
        self.with_tables(|tables| {
            tables.listeners.insert(Arc::clone(&place), Arc::clone(&hearing.heard));
        });
        PlaceListener { wakeups: Arc::clone(self), place, ahead: None, hearing }
    }

    /// This client gives back the hold of this place: its own waiters right behind it hear that at
    /// once.
    pub(crate) fn pass_on(&self, place: &str) {
        self.with_tables(|Tables { listeners, followers, .. }| {
            if followers.is_empty() {
                return;
            }
            let nobody = Arc::from("");
            let behind = followers.range((Arc::from(place), nobody)..);
            let behind = behind.take_while(|(ahead, _)| **ahead == *place);
            for heard in behind.filter_map(|(_, follower)| listeners.get(follower)) {
                heard.change(|heard| heard.called.fill(true));
            }
        });
    }

    /// Calls may have been lost, so every waiter looks again.
    pub(super) fn miss_calls(&self) {
        self.with_tables(|tables| {
            for heard in tables.channels.values().flatten().chain(tables.listeners.values()) {
                heard.change(|heard| heard.missed = true);
            }
        });
    }
}

/// Completes when a majority has said yes, or all have spoken. One reply for each voter.
pub(crate) async fn majority(replies: Vec<VoterReply<()>>, quorum: Quorum) {
    let mut agreed = vec![false; replies.len()];
    let replies = replies.into_iter().enumerate();
    let mut replies: FuturesUnordered<_> =
        replies.map(|(voter, reply)| reply.map(move |outcome| (voter, outcome.is_ok()))).collect();
    while let Some((voter, is_ok)) = replies.next().await {
        agreed[voter] = is_ok;
        if quorum.reached(|voter| agreed[voter]) {
            return;
        }
    }
}

/// One voter's way into [`Wakeups`] and [`Standings`].
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
    fn called(&self, channel: &str, message: &str) {
        self.wakeups.with_tables(|tables| {
            if message == FOR_OTHERS {
                return;
            }
            let listeners = tables.channels.get(channel).into_iter().flatten();
            for heard in listeners.chain(tables.listeners.get(message)) {
                heard.change(|heard| heard.called[self.voter] = true);
            }
        });
    }

    fn met(&self, shard: usize, identity: &Identity, stamp: Option<Stamp>) -> bool {
        self.standings.note_identity(self.shard(shard), identity, stamp, true)
    }

    fn seen(&self, shard: usize, identity: &Identity, stamp: Option<Stamp>) -> bool {
        self.standings.note_identity(self.shard(shard), identity, stamp, false)
    }

    fn parted(&self, shard: usize, why: Option<&str>) {
        self.standings.note_disconnect(self.shard(shard), why);
    }

    fn moved(&self, from: usize, to: usize, lost: bool) {
        self.standings.note_move(self.shard(from), self.shard(to), lost);
    }

    fn is_waited_for(&self) -> bool {
        self.wakeups.with_tables(|Tables { channels, listeners, .. }| {
            !channels.is_empty() || !listeners.is_empty()
        })
    }

    fn missed(&self) {
        self.wakeups.miss_calls();
    }
}

/// The listener of one waiter.
#[derive(Debug)]
pub(crate) struct Hearing {
    heard: Arc<Signal<Heard>>,
    seen: u64,
}

impl Hearing {
    pub(crate) fn new(voters: usize) -> Self {
        let nothing = Heard { called: vec![false; voters], missed: false };
        Self { heard: Arc::new(Signal::new(nothing)), seen: 0 }
    }

    /// From here on only new calls count.
    pub(crate) fn forget(&self) {
        self.heard.change(|heard| {
            heard.called.fill(false);
            heard.missed = false;
        });
    }

    pub(crate) fn look<R>(&mut self, look: impl FnOnce(&Heard) -> R) -> R {
        self.seen = self.heard.version();
        self.heard.read(look)
    }

    /// Completes when some voter has called since the last calls were forgotten.
    pub(crate) fn called(&self) -> impl Future<Output = ()> {
        self.heard.until(|heard| heard.called.contains(&true))
    }

    /// Completes when there is more than at the last look.
    pub(crate) async fn changed(&self) {
        self.heard.changed_since(self.seen).await;
    }
}

/// Hears the calls for one place until dropped.
#[derive(Debug)]
pub(crate) struct PlaceListener {
    wakeups: Arc<Wakeups>,
    place: Arc<str>,
    /// The place of this client that it stands right behind, if it does.
    ahead: Option<Arc<str>>,
    pub(crate) hearing: Hearing,
}

impl PlaceListener {
    /// It stands right behind this hold or place now, or behind none. Those of other clients do not
    /// matter here.
    pub(crate) fn follow(&mut self, ahead: Option<&HoldId>) {
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

/// Listens to one channel on all voters until dropped.
#[derive(Debug)]
pub(crate) struct Listening {
    wakeups: Arc<Wakeups>,
    voters: Arc<[Voter]>,
    channel: Arc<str>,
    heard: Arc<Signal<Heard>>,
}

impl Listening {
    /// Starts to listen; each reply comes when its voter has confirmed the subscription.
    pub(crate) fn start(
        wakeups: &Arc<Wakeups>,
        voters: &Arc<[Voter]>,
        channel: &Arc<str>,
        hearing: &Hearing,
    ) -> (Self, Vec<VoterReply<()>>) {
        let listening = Self {
            wakeups: Arc::clone(wakeups),
            voters: Arc::clone(voters),
            channel: Arc::clone(channel),
            heard: Arc::clone(&hearing.heard),
        };
        // Within the lock, so that no other listener's last goodbye comes behind this.
        let replies = wakeups.with_tables(|Tables { channels, .. }| {
            channels.entry(Arc::clone(channel)).or_default().push(Arc::clone(&hearing.heard));
            voters.iter().map(|voter| voter.subscribe(Arc::clone(channel))).collect()
        });
        (listening, replies)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.wakeups.with_tables(|Tables { channels, .. }| {
            let Some(listeners) = channels.get_mut(&self.channel) else { return };
            listeners.retain(|heard| !Arc::ptr_eq(heard, &self.heard));
            if listeners.is_empty() {
                channels.remove(&self.channel);
                for voter in self.voters.iter() {
                    voter.unsubscribe(Arc::clone(&self.channel));
                }
            }
        });
    }
}
