//! Gathering a majority: the local queue of the client's own tasks, attempts with their undo, and
//! the queue on the voters.
//!
//! The way of `Mutex::lock`, also of one that is free:
//!
//! 1. `hold::enter` joins the local queue of the lock (`local_queue`). When it has the turn, it
//!    takes over a hold that a task before it hands on (`succession`), or goes on:
//! 2. `queue`: a `Waiter` bids. A voter with a free lock grants, and enters nobody in its queue.
//!    `kinds` makes the request, and `panel` leaves it to each voter's task.
//! 3. `voter::task` sends all requests that wait for the voter as one call. `voter::standings`
//!    says which answers count.
//! 4. `proto::Bid` decides on the answers. `attempt` has the token stored. A `Won` is the votes of
//!    a majority; dropping it gives them back (`claim`).
//! 5. `hold::held` takes the votes over, and gives them back at the end. `hold::keeper` renews
//!    them.
//!
//! A call that does not wait asks once, from no place (`attempt`).

mod attempt;
mod census;
mod claim;
mod configuration;
mod gate;
mod local_queue;
mod panel;
mod queue;
mod succession;
mod waiting;
mod wakeup;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::{runtime::Handle, sync::Semaphore};

pub(crate) use census::ElectionWatch;
pub(crate) use claim::{Claim, SeenBefore, Won};
pub(crate) use local_queue::Turn;
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
use gate::{ClosingGate, MAX_ATTEMPTS};
use local_queue::LocalQueues;
use queue::MAX_PLACES;

/// What all locks of one client share.
#[derive(Debug)]
pub(crate) struct Coordinator {
    panel: Panel,
    clock: Clock,
    /// The runtime of the client's background tasks.
    runtime: Handle,
    settings: Settings,
    ids: HoldIds,
    series: AllLockSeries,
    wakeups: Arc<Wakeups>,
    local_queues: Arc<LocalQueues>,
    /// The local queues of callers that wait in the order of asking.
    ordered_local_queues: Arc<LocalQueues>,
    chance: Mutex<StdRng>,
    floors: Mutex<Floors>,
    gate: ClosingGate,
    /// Leave to ask, for so many attempts at once.
    attempts: Semaphore,
    /// The semaphores for which the log says that others use them with fewer permits.
    warned_of_fewer: Mutex<BTreeSet<Arc<str>>>,
}

impl Coordinator {
    /// Starts a client's background tasks: call it on the client's runtime.
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
            // One task of a client asks for a mutex. It hands the lock on to the others, so one
            // place in the queue of the voters is enough for all of them.
            local_queues: Arc::new(LocalQueues::new(1)),
            ordered_local_queues: Arc::new(LocalQueues::new(MAX_PLACES)),
            chance: Mutex::new(chance),
            floors: Mutex::new(floors),
            gate: ClosingGate::open(),
            attempts: Semaphore::new(MAX_ATTEMPTS),
            warned_of_fewer: Mutex::default(),
        };
        this.spawn(this.gate.watch_runtime());
        this.spawn(this.listen_for_wakeups());
        let client = this.client().clone();
        log::report(move || tracing::info!(%client, "client connected"));
        this
    }

    /// Listens to the client's own channel for as long as the client lives. A message there wakes
    /// one of its waiters.
    // From the connection on, and not from the first refusal: each waiter of a new client asked
    // once more then, in case it had been woken before the subscription was confirmed.
    fn listen_for_wakeups(&self) -> impl Future<Output = ()> + use<> {
        let channel: Arc<str> =
            format!("{}{}", self.settings.keys.wakeup_channels(), self.client()).into();
        let Panel { voters, quorum, .. } = &self.panel;
        let replies = voters.iter().map(|voter| voter.subscribe(Arc::clone(&channel))).collect();
        let subscribed = wakeup::majority_confirms(replies, *quorum);
        let wakeups = Arc::clone(&self.wakeups);
        async move {
            subscribed.await;
            // A waiter that has asked before may have been woken while nobody listened
            // (`who_asks_before_its_client_listens_asks_again_once_it_does`).
            wakeups.note_missed();
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

    /// How long the voters have to answer a question that is not about a lock with its own lease.
    pub(crate) fn voter_deadline(&self) -> Duration {
        let Settings { lease, voter_deadline, .. } = self.settings;
        let most = self.settings.longest_deadline(lease);
        self.panel.allowed(voter_deadline.min(most), most)
    }

    /// When a caller that asks now gives up on silent voters, unless it has a limit of its own.
    pub(crate) fn patience(&self) -> Moment {
        self.clock.now() + self.settings.quorum_timeout
    }

    pub(crate) fn gate(&self) -> &ClosingGate {
        &self.gate
    }

    /// Releases the holds that are offered to tasks of a client that is closed.
    // Not of `ordered_local_queues`: only a plain mutex is handed on.
    pub(crate) fn close_tenures(&self) {
        self.local_queues.close_tenures();
    }

    pub(crate) fn client(&self) -> &ClientId {
        self.ids.client()
    }

    /// Starts a task on the client's runtime, whichever runtime this is called in.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.clock.spawn(&self.runtime, task);
    }

    /// The metrics of a lock.
    pub(crate) fn series(&self, record: &LockRecord) -> &LockSeries {
        self.series.of(record.kind().name, record.info().name.as_str())
    }

    /// Counts that a waiter asks again, and why.
    fn count_wakeup(&self, record: &LockRecord, wake: Wake) {
        let cause = match wake {
            Wake::Message => "called",
            Wake::MaybeMissed => "missed",
            Wake::Timer => "timer",
        };
        self.series(record).wakeups.of(cause).count(1);
    }

    /// Since when a task of this client waits for an exclusive lock.
    pub(crate) fn waits_since(&self, record: &LockRecord) -> Option<Moment> {
        let queues = [&self.local_queues, &self.ordered_local_queues];
        let since = queues.map(|queues| queues.since(&record.info().key));
        since.into_iter().flatten().min().filter(|_| !record.kind().is_shared)
    }

    /// A fresh secret for a hold ticket.
    pub(crate) fn secret(&self) -> Arc<str> {
        self.ids.secret().into()
    }

    /// Listens, on the channel of this client, for somebody who resumes this parked hold.
    pub(crate) fn listen_for_ticket(&self, parked: &HoldId) -> PlaceListener {
        self.wakeups.listener(parked.as_str(), self.panel.quorum.voters())
    }

    /// Draws a number for a pause of an attempt, a bid or a renewal.
    // From one source with a seed, so that a schedule of the simulation can be run again. The
    // pauses before a server is connected to again are drawn elsewhere, without the seed.
    pub(crate) fn chance(&self) -> u32 {
        lock(&self.chance).random()
    }
}
