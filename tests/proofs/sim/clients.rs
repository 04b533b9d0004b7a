//! The clients of a schedule, as they come and go.

use std::{
    pin::pin,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use quorate::Builder;
use tokio::sync::Notify;

use crate::sim::{laws::minority, prelude::*, tasks::Task};

/// Twice as much as any client's wall clock is wrong by.
pub(crate) const FENCE_MEMORY_MS: u64 = 2 * 3_600_000;

/// All clients.
pub(crate) struct Clients {
    connected: Vec<Mutex<Option<Quorate>>>,
    /// The clients that have come to their end.
    ended: Mutex<BTreeSet<usize>>,
    healed: Arc<Healed>,
}

/// Whether the faults have ended: then everybody finishes.
#[derive(Default)]
pub(crate) struct Healed {
    is_so: AtomicBool,
    told: Notify,
}

impl Healed {
    pub(crate) fn is_so(&self) -> bool {
        self.is_so.load(Ordering::Relaxed)
    }

    pub(crate) async fn told(&self) {
        let mut told = pin!(self.told.notified());
        told.as_mut().enable();
        if !self.is_so() {
            told.await;
        }
    }
}

impl Clients {
    pub(crate) fn new(world: &World) -> Self {
        let connected = world.plan.clients.iter().map(|_| Mutex::default()).collect();
        Self { connected, ended: Mutex::default(), healed: Arc::default() }
    }

    /// The faults have ended.
    pub(crate) fn heal(&self) {
        self.healed.is_so.store(true, Ordering::Relaxed);
        self.healed.told.notify_waiters();
    }

    /// Starts one client and its tasks, all on its machine; completes when all have finished.
    pub(crate) fn start(self: &Arc<Self>, world: &Arc<World>, client: usize) -> JoinHandle<()> {
        let (clients, world) = (Arc::clone(self), Arc::clone(world));
        let machine = world.machines[client].clone();
        tokio::spawn(async move { machine.clone().run(clients.live(world, client)).await })
    }

    async fn live(self: Arc<Self>, world: Arc<World>, client: usize) {
        let plan = world.plan.clients[client].clone();
        world.machines[client].set_clock_rate(plan.clock_ppm);
        world.sleep_until_ms(plan.starts_at_ms).await;
        if plan.sets == Sets::New {
            self.old_ones_end(&world).await;
        }
        let label = world.machines[client].label().to_owned();
        let seed = chance(&world.plan, client).random();
        let quorum = loop {
            locked(&world.ledger).amnesia.connects(client, world.now_ms());
            let builder = with_sets(builder(&world.plan), &world, plan.sets).seed(seed);
            match builder.machine(&world.machines[client]).connect().await {
                Ok(quorum) => break quorum,
                Err(error) => {
                    minority::failed(&world, client, "connecting", &error, None);
                    world.note(&label, || format!("does not connect: {error}"));
                }
            }
        };
        *locked(&self.connected[client]) = Some(quorum.clone());
        let owners: Vec<Owner> = (0..2).map(|_| Owner::new()).collect();
        let task = |name: String| Task {
            world: Arc::clone(&world),
            client,
            label: format!("{label}.{name}"),
            quorum: quorum.clone(),
            owners: owners.clone(),
            healed: Arc::clone(&self.healed),
        };
        let mut tasks = Vec::new();
        for (number, steps) in plan.tasks.into_iter().enumerate() {
            let running = task(number.to_string()).run(steps);
            tasks.push(tokio::spawn(world.machines[client].run(running)));
        }
        for election in world.locks.iter().filter(|lock| matches!(lock, Lock::Election(_))) {
            let watching = task("watches".into()).watch(*election);
            tasks.push(tokio::spawn(world.machines[client].run(watching)));
        }
        if world.plan.has_job() {
            tasks.push(tokio::spawn(world.machines[client].run(task("job".into()).do_jobs())));
        }
        if world.plan.has_tickets() {
            let handing = task("hands".into()).pass_tickets();
            tasks.push(tokio::spawn(world.machines[client].run(handing)));
        }
        for task in tasks {
            // A panic is reported by the hook that sees all of them.
            let _ = task.await;
        }
        locked(&self.ended).insert(client);
    }

    /// No client that has the old voters alone is left, as when a fleet is rolled: the next step
    /// begins a longest lease after the last one was there. Until then the clocks by which tokens
    /// go have overtaken those that were given by the old voters.
    async fn old_ones_end(&self, world: &World) {
        let is_left = |(client, plan): (usize, &ClientPlan)| {
            let is_dead = locked(&world.ledger).dead.contains(&client);
            plan.sets == Sets::Old && !is_dead && !locked(&self.ended).contains(&client)
        };
        while world.plan.clients.iter().enumerate().any(is_left) {
            sleep(Duration::from_millis(20)).await;
        }
        sleep(Duration::from_millis(world.plan.longest_lease_ms())).await;
    }

    /// Closes a client, if it is connected, in the background.
    pub(crate) fn close(&self, world: &World, client: usize) -> Option<JoinHandle<()>> {
        let quorum = locked(&self.connected[client]).take()?;
        // Under trouble some releases are not confirmed: the laws say what may come of them.
        let closing = async move { drop(quorum.close().await) };
        Some(tokio::spawn(world.machines[client].run(closing)))
    }

    /// Lets a client go without closing it.
    pub(crate) fn leave(&self, client: usize) {
        let gone = locked(&self.connected[client]).take();
        drop(gone);
    }
}

/// Gives a client its voters.
pub(crate) fn with_sets(builder: Builder, world: &World, sets: Sets) -> Builder {
    let Some(change) = world.plan.change else { return builder.embedded(&world.voters) };
    let (new, old) = (&world.voters[change.new_ones()], &world.voters[change.old_ones()]);
    match sets {
        Sets::Old => builder.embedded(old),
        Sets::New => builder.embedded(new),
        Sets::All | Sets::Joint => builder.embedded(new).replacing(old),
    }
}

/// The settings of the clients of a schedule.
pub(crate) fn builder(plan: &Plan) -> quorate::Builder {
    settings(plan.times, plan.longest_lease_ms())
}

pub(crate) fn settings(times: Times, longest_lease_ms: u64) -> quorate::Builder {
    let builder = Quorate::builder()
        .longest_lease(Duration::from_millis(longest_lease_ms))
        .fence_memory(Duration::from_millis(FENCE_MEMORY_MS))
        .lease(Duration::from_millis(times.lease_ms))
        .voter_deadline(Duration::from_millis(times.voter_deadline_ms))
        .poll_interval(Duration::from_millis(times.poll_ms))
        .quorum_timeout(Duration::from_millis(times.patience_ms));
    match times.waiter_deadline_ms {
        Some(ms) => builder.waiter_deadline(Duration::from_millis(ms)),
        None => builder,
    }
}
