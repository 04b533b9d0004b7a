//! One schedule from its plan to its end.

use std::{
    cell::RefCell,
    panic,
    sync::{Once, atomic::Ordering},
};

use tokio::runtime;

use crate::sim::{
    clients::Clients,
    laws::{self},
    prelude::*,
    steps::Seen,
    troubles,
    voters::{self},
};

/// What came of a schedule.
pub(crate) struct Outcome {
    pub(crate) breaches: Vec<Breach>,
    pub(crate) trace: String,
    /// Until the faults end.
    pub(crate) steps: Vec<Seen>,
    pub(crate) scripts_run: u64,
}

impl Outcome {
    /// The first breach that the promise covers.
    pub(crate) fn failure(&self) -> Option<&Breach> {
        self.breaches.iter().find(|breach| breach.excuse.is_none())
    }
}

thread_local! {
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Runs a plan on this thread, in a runtime of its own whose time is paused.
pub(crate) fn run(plan: Plan, traced: bool) -> Outcome {
    watch_panics();
    let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime of one thread needs nothing");
    let mut outcome = runtime.block_on(live(plan, traced));
    drop(runtime);
    let panics = PANICS.with_borrow_mut(std::mem::take);
    outcome.breaches.extend(panics.into_iter().map(|what| Breach {
        law: Law::NoPanic,
        at_ms: 0,
        what,
        excuse: None,
    }));
    outcome
}

async fn live(plan: Plan, traced: bool) -> Outcome {
    let ways = Arc::new(Ways::default());
    let voters = voters::make(&plan, &ways);
    let world = World::new(plan, voters, traced);
    voters::observe(&world, &ways);
    let clients = Arc::new(Clients::new(&world));
    let watching = tokio::spawn(laws::watch(Arc::clone(&world)));
    let running = (0..world.plan.clients.len())
        .map(|client| (client, clients.start(&world, client)))
        .collect::<Vec<_>>();
    let troubles: Vec<_> = world
        .plan
        .troubles
        .iter()
        .map(|trouble| {
            let (world, ways) = (Arc::clone(&world), Arc::clone(&ways));
            tokio::spawn(troubles::happen(world, ways, Arc::clone(&clients), *trouble))
        })
        .collect();
    world.sleep_until_ms(world.plan.heals_at_ms).await;
    for trouble in troubles {
        // A panic is reported by the hook that sees all of them.
        let _ = trouble.await;
    }
    world.note("FAULT", || "all faults end".into());
    let steps = locked(&world.steps).take();
    ways.healed.store(true, Ordering::Relaxed);
    clients.heal();
    let dead = locked(&world.ledger).dead.clone();
    let alive = running.into_iter().filter(|(client, _)| !dead.contains(client)).collect();
    laws::leaks::heal(&world, &clients, alive).await;
    // From here on leases are long and holds are another's business.
    watching.abort();
    if let Some(calm) = Calm::after(&world, &ways).await {
        laws::traces::give_up(&calm).await;
        laws::traces::reach_late(&calm, &ways).await;
        laws::told::one_of_two(&calm).await;
        laws::told::renewed_late(&calm, &ways).await;
        laws::told::taken_over(&calm).await;
        laws::told::passed_by(&calm, &ways).await;
        // Each takes a quarter of a whole schedule.
        match world.plan.seed % 5 {
            0 => drop(laws::turns::of_fair(&calm).await),
            1 => drop(laws::turns::of_readers(&calm).await),
            2 => drop(laws::turns::of_permits(&calm).await),
            3 => laws::leaders::measure(&calm).await,
            _ => laws::several::measure(&calm).await,
        }
        laws::shares::measure(&calm).await;
        drop(laws::trips::measure(&calm).await);
        laws::answers::patience(&calm, &ways).await;
        laws::traces::close(&calm).await;
    }
    let scripts_run =
        world.voters.iter().map(quorate::embedded::EmbeddedVoter::commands_seen).sum();
    let (breaches, trace) = world.finish();
    Outcome { breaches, trace, steps, scripts_run }
}

/// Tasks that panic do so unseen: this sees them.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            PANICS.with_borrow_mut(|panics| panics.push(info.to_string()));
            // What fails in the tests themselves is told as ever.
            if tokio::runtime::Handle::try_current().is_err() {
                usual(info);
            }
        }));
    });
}
