//! Gathering a majority: the attempt with its undo, the line, and the waiting.
//!
//! The way of `Mutex::lock`, also of one that is free:
//!
//! 1. `hold::enter` stands in the client's line (`line`). With the turn it takes over a hold that a
//!    task before it hands on (`succession`), or goes on:
//! 2. `queue`: a `Waiter` bids. A voter that is free grants without entering anybody in its queue.
//!    What is asked is made by `kinds`, and left to each voter's task (`panel`).
//! 3. `voter::task` sends what has gathered as one call, and says which answers count
//!    (`voter::standings`).
//! 4. `proto::Bid` decides on the answers; `attempt` has the token stored. A `Won` is a majority's
//!    votes, given back where it is dropped (`claim`).
//! 5. `hold::held` takes them over, and gives them back; `hold::keeper` renews them.
//!
//! A call that does not wait asks once, from no place (`attempt`).

mod attempt;
mod census;
mod claim;
mod configuration;
mod gate;
mod line;
mod listener;
mod panel;
mod queue;
mod succession;
mod waiting;
mod wakeup;

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::runtime::Handle;

pub(crate) use census::ElectionWatch;
pub(crate) use claim::{Claim, SeenBefore, Won};
pub(crate) use line::Turn;
pub(crate) use panel::{Panel, drive};
pub(crate) use succession::{Inherited, Succession};
pub(crate) use waiting::NotGranted;
pub(crate) use wakeup::{PlaceListener, VoterListener, Wakeups};

use crate::{
    clock::{Clock, Moment},
    kinds::LockRecord,
    log,
    proto::{ClientId, ClientName, Floors, HoldId, HoldIds, Wake},
    series::{AllLockSeries, LockSeries},
    settings::Settings,
    sync::lock,
};
use attempt::FewerTold;
use gate::{Admission, ClosingGate};
use line::Lines;
use queue::PLACES;

/// What all locks of one client share.
#[derive(Debug)]
pub(crate) struct Coordinator {
    panel: Panel,
    clock: Clock,
    /// On which the client lives: what goes on in the background goes on there.
    runtime: Handle,
    settings: Settings,
    ids: HoldIds,
    series: AllLockSeries,
    wakeups: Arc<Wakeups>,
    lines: Arc<Lines>,
    /// Those of callers that wait in the order of asking.
    queues: Arc<Lines>,
    chance: Mutex<StdRng>,
    floors: Mutex<Floors>,
    gate: ClosingGate,
    admission: Admission,
    fewer_told: FewerTold,
}

impl Coordinator {
    /// To be called on the client's runtime.
    pub(crate) fn new(
        panel: Panel,
        clock: Clock,
        settings: Settings,
        wakeups: Arc<Wakeups>,
        seed: Option<u64>,
        name: Option<&ClientName>,
    ) -> Self {
        let mut chance = seed.map_or_else(rand::make_rng, StdRng::seed_from_u64);
        let client = ClientId::new(chance.random(), name);
        let floors = Floors::new(settings.fence_memory);
        let series = AllLockSeries::new(settings.named.clone());
        let this = Self {
            panel,
            clock,
            runtime: Handle::current(),
            settings,
            ids: HoldIds::new(client, seed.map(|_| StdRng::from_rng(&mut chance))),
            series,
            wakeups,
            lines: Arc::new(Lines::new(1)),
            queues: Arc::new(Lines::new(PLACES)),
            chance: Mutex::new(chance),
            floors: Mutex::new(floors),
            gate: ClosingGate::open(),
            admission: Admission::new(),
            fewer_told: FewerTold::default(),
        };
        this.spawn(this.gate.watch_runtime());
        this.spawn(this.hear_calls());
        let client = this.client().clone();
        log::tell(move || tracing::info!(%client, "client connected"));
        this
    }

    /// Listens to the client's own channel for as long as the client lives. A message there says
    /// that one of its waiters is next.
    fn hear_calls(&self) -> impl Future<Output = ()> + use<> {
        let channel: Arc<str> = format!("{}{}", self.settings.keys.calls(), self.client()).into();
        let Panel { voters, quorum, .. } = &self.panel;
        let replies = voters.iter().map(|voter| voter.subscribe(Arc::clone(&channel))).collect();
        let (subscribed, wakeups) = (wakeup::majority(replies, *quorum), Arc::clone(&self.wakeups));
        async move {
            subscribed.await;
            // Who has asked by now was perhaps called, and not heard it.
            wakeups.miss_calls();
        }
    }

    pub(crate) fn panel(&self) -> &Panel {
        &self.panel
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How long the voters have to answer what is not about a lock with a lease of its own.
    pub(crate) fn voter_deadline(&self) -> Duration {
        let Settings { lease, voter_deadline, .. } = self.settings;
        let most = self.settings.longest_deadline(lease);
        self.panel.allowed(voter_deadline.min(most), most)
    }

    /// Until when one who asks now is patient, where its caller says nothing of that.
    pub(crate) fn patience(&self) -> Moment {
        self.clock.now() + self.settings.quorum_timeout
    }

    /// Through which everybody comes who asks for a lock.
    pub(crate) fn gate(&self) -> &ClosingGate {
        &self.gate
    }

    /// Releases the holds that no task has taken over, as the client is closed.
    pub(crate) fn close_tenures(&self) {
        self.lines.close_tenures();
    }

    pub(crate) fn client(&self) -> &ClientId {
        self.ids.client()
    }

    /// Starts a task that lives as long as the client's runtime, whichever runtime this is called
    /// in.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.clock.spawn(&self.runtime, task);
    }

    /// What is written of a lock.
    pub(crate) fn series(&self, record: &LockRecord) -> &LockSeries {
        self.series.of(record.kind().name, record.info().name.as_str())
    }

    /// A waiter is about to ask again.
    fn count_wakeup(&self, record: &LockRecord, wake: Wake) {
        let cause = match wake {
            Wake::Called => "called",
            Wake::Missed => "missed",
            Wake::Timer => "timer",
        };
        self.series(record).wakeups.of(cause).count(1);
    }

    /// Since when a task of this client waits for the lock, which one at a time has.
    pub(crate) fn waits_since(&self, record: &LockRecord) -> Option<Moment> {
        let lines = [&self.lines, &self.queues].map(|lines| lines.since(&record.info().key));
        lines.into_iter().flatten().min().filter(|_| !record.kind().is_shared)
    }

    /// A fresh secret of a ticket.
    pub(crate) fn secret(&self) -> Arc<str> {
        self.ids.secret().into()
    }

    /// Hears, by the channel of this client, that somebody may be resuming this hold.
    pub(crate) fn listen_for_ticket(&self, parked: &HoldId) -> PlaceListener {
        self.wakeups.listener(parked.as_str(), self.panel.quorum.voters())
    }

    fn floors(&self) -> MutexGuard<'_, Floors> {
        lock(&self.floors)
    }

    /// Draws a number for a pause of an attempt, a bid or a renewal. The pauses before a server is
    /// connected to again are drawn elsewhere, without the seed.
    pub(crate) fn chance(&self) -> u32 {
        lock(&self.chance).random()
    }
}
