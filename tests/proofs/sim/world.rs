//! What all that happens in one schedule is seen from: the true time, every voter's records, every
//! guard that somebody has.

use std::sync::{
    Mutex, MutexGuard as Locked, PoisonError, Weak,
    atomic::{AtomicU64, Ordering},
};

use quorate::Token;
use tokio::{sync::Notify, time::Instant};

use crate::sim::{
    laws::{
        firings::{DONE, Firings},
        leaders::Leaders,
        order::Queues,
        tickets::Tickets,
        tokens::Tokens,
    },
    ledger::Ledger,
    locks::{FENCE, PERMITS},
    prelude::*,
    steps::Steps,
    trace::Trace,
};

/// One schedule under way.
pub(crate) struct World {
    pub(crate) plan: Plan,
    /// The locks that anybody asks for.
    pub(crate) locks: BTreeSet<Lock>,
    pub(crate) voters: Vec<EmbeddedVoter>,
    pub(crate) machines: Vec<Machine>,
    started: Instant,
    trace: Mutex<Trace>,
    /// What is written with the trace, as steps of the specification.
    pub(crate) steps: Mutex<Steps>,
    guards: Mutex<Vec<Watched>>,
    pub(crate) ledger: Mutex<Ledger>,
    /// The tokens that were given.
    pub(crate) tokens: Mutex<Tokens>,
    /// What is known of the queues.
    pub(crate) queues: Mutex<Queues>,
    /// What is known of those who lead.
    pub(crate) leaders: Mutex<Leaders>,
    /// What is known of which firing of a job is done.
    pub(crate) firings: Mutex<Firings>,
    /// What is known of holds that are handed over.
    pub(crate) tickets: Mutex<Tickets>,
    breaches: Mutex<Vec<Breach>>,
    scripts: AtomicU64,
    /// Something changed that a law may be about.
    pub(crate) changed: Notify,
}

/// A guard that somebody has.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) hold: String,
    pub(crate) lock: Lock,
    pub(crate) client: usize,
    /// The lease, where it is renewed and nobody else can have made it another.
    renewed_ms: Option<u64>,
    /// When it ends, where it is not renewed.
    fixed_until_ms: Option<u64>,
    guard: Weak<Guard>,
}

/// A client has something to do with a lock, until this is dropped.
pub(crate) struct Busy<'a> {
    world: &'a World,
    client: usize,
    lock: Lock,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let now_ms = self.world.now_ms();
        let mut ledger = locked(&self.world.ledger);
        let about = ledger.about.entry((self.client, self.lock)).or_default();
        about.asking -= 1;
        about.touched_ms = now_ms;
    }
}

/// A law that did not hold.
#[derive(Clone, Debug)]
pub(crate) struct Breach {
    pub(crate) law: Law,
    pub(crate) at_ms: u64,
    pub(crate) what: String,
    /// Why the promise does not cover it.
    pub(crate) excuse: Option<&'static str>,
}

/// What is seen at one moment.
pub(crate) struct Look {
    /// Held, by what their guards say, on machines that live; one of each hold and token.
    pub(crate) held: Vec<Held>,
    /// Every voter's records.
    pub(crate) records: Vec<Vec<Record>>,
}

pub(crate) struct Held {
    pub(crate) hold: String,
    pub(crate) token: Option<Token>,
    pub(crate) lock: Lock,
    pub(crate) access: Access,
    /// Of a semaphore, in ascending order.
    pub(crate) slots: Vec<u32>,
    pub(crate) remaining: Duration,
    pub(crate) renewed_ms: Option<u64>,
    pub(crate) fixed_until_ms: Option<u64>,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> Locked<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(crate) fn new(plan: Plan, voters: Vec<EmbeddedVoter>, traced: bool) -> Arc<Self> {
        let machine = |(number, client): (usize, &ClientPlan)| {
            let machine = Machine::new(format!("c{number}"));
            machine.jump_wall_clock(client.wall_ahead_ms * 1_000);
            machine
        };
        Arc::new(Self {
            machines: plan.clients.iter().enumerate().map(machine).collect(),
            trace: Mutex::new(Trace::new(traced)),
            steps: Mutex::new(Steps::new(traced)),
            locks: plan.locks(),
            plan,
            voters,
            started: now(),
            guards: Mutex::default(),
            ledger: Mutex::default(),
            tokens: Mutex::default(),
            queues: Mutex::default(),
            leaders: Mutex::default(),
            firings: Mutex::default(),
            tickets: Mutex::default(),
            breaches: Mutex::default(),
            scripts: AtomicU64::new(0),
            changed: Notify::new(),
        })
    }

    /// Counts one more script, and says how many there were before.
    pub(crate) fn counts_script(&self) -> u64 {
        self.scripts.fetch_add(1, Ordering::Relaxed)
    }

    /// How many scripts there were so far.
    pub(crate) fn scripts(&self) -> u64 {
        self.scripts.load(Ordering::Relaxed)
    }

    /// The true time since the beginning.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from((now() - self.started).as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) async fn sleep_until_ms(&self, at_ms: u64) {
        sleep(Duration::from_millis(at_ms.saturating_sub(self.now_ms()))).await;
    }

    /// Writes a line of the trace.
    pub(crate) fn note(&self, who: &str, what: impl FnOnce() -> String) {
        locked(&self.trace).note(self.now_ms(), who, what);
    }

    /// From now on the holds of this client are known to be its.
    pub(crate) fn introduce(&self, hold: &str, label: &str) {
        locked(&self.trace).introduce(hold, label);
        let Some((id, _)) = hold.rsplit_once(':') else { return };
        if let Some(client) = self.machines.iter().position(|machine| machine.label() == label) {
            locked(&self.ledger).clients.entry(id.to_owned()).or_insert(client);
        }
    }

    /// A client begins something that may leave votes of the lock.
    pub(crate) fn busy(&self, client: usize, lock: Lock) -> Busy<'_> {
        locked(&self.ledger).about.entry((client, lock)).or_default().asking += 1;
        Busy { world: self, client, lock }
    }

    /// Somebody asks for the lock, or gives it back.
    pub(crate) fn is_wanted(&self, lock: Lock) -> bool {
        let ledger = locked(&self.ledger);
        ledger.about.iter().any(|((_, one), about)| *one == lock && about.asking > 0)
    }

    /// Since then no other client, and no other task of this one, had or wanted the lock.
    pub(crate) fn was_alone(&self, client: usize, lock: Lock, since_ms: u64) -> bool {
        // What others gave up before may have been on its way still.
        let settled_ms = since_ms.saturating_sub(4 * self.plan.network.usual_ms + 5);
        let ledger = locked(&self.ledger);
        let others_idle = ledger.about.iter().all(|((one, other_lock), about)| {
            let own = u32::from(*one == client);
            *other_lock != lock || about.asking <= own && about.touched_ms < settled_ms
        });
        drop(ledger);
        others_idle && !self.has_guard(lock, None)
    }

    /// The client of this hold has no guard of the lock and asks for none, for so long by now.
    pub(crate) fn has_nothing_to_do_with(&self, hold: &str, lock: Lock, since_ms: u64) -> bool {
        let ledger = locked(&self.ledger);
        let Some(client) = ledger.client(hold) else { return false };
        let idle = ledger
            .about
            .get(&(client, lock))
            .is_none_or(|about| about.asking == 0 && self.now_ms() > about.touched_ms + since_ms);
        drop(ledger);
        idle && !self.has_guard(lock, Some(client))
    }

    /// Somebody has a guard of the lock, or this client has.
    fn has_guard(&self, lock: Lock, client: Option<usize>) -> bool {
        locked(&self.guards).iter().any(|watched| {
            let is_asked_for = client.is_none_or(|client| watched.client == client);
            is_asked_for && watched.lock == lock && watched.guard.strong_count() > 0
        })
    }

    /// Says that a law did not hold; once, however often it is seen.
    pub(crate) fn breach(&self, law: Law, excuse: Option<&'static str>, what: String) {
        let mut breaches = locked(&self.breaches);
        if breaches.iter().any(|breach| breach.law == law && breach.what == what) {
            return;
        }
        let outside = excuse.map_or(String::new(), |why| format!(" (outside the promise: {why})"));
        self.note("LAW", || format!("{law:?}: {what}{outside}"));
        breaches.push(Breach { law, at_ms: self.now_ms(), what, excuse });
    }

    /// Shows a guard to the laws for as long as it lives.
    pub(crate) fn watch(&self, client: usize, step: Step, guard: &Arc<Guard>) {
        // Entering again gives it its lease once more, and another lease to what an owner has.
        let lease_ms = step.lease_ms(self.plan.times.lease_ms);
        let lease_ms = step.owner.is_none().then_some(lease_ms);
        let is_fixed = matches!(step.lease, Lease::Fixed(_));
        let fixed_ms = lease_ms.filter(|_| is_fixed);
        let renewed_ms = lease_ms.filter(|_| !is_fixed);
        let fixed_until_ms = fixed_ms.map(|ms| self.now_ms() + ms * 101 / 100);
        locked(&self.guards).push(Watched {
            hold: guard.hold().as_str().to_owned(),
            lock: step.lock(),
            client,
            renewed_ms,
            fixed_until_ms,
            guard: Arc::downgrade(guard),
        });
        self.changed.notify_one();
    }

    /// The holds that are held, by what their guards say.
    pub(crate) fn held(&self) -> Vec<Held> {
        let mut guards = locked(&self.guards);
        guards.retain(|watched| watched.guard.strong_count() > 0);
        let mut over = Vec::new();
        let mut ledger = locked(&self.ledger);
        let mut held: Vec<Held> = Vec::new();
        for watched in guards.iter() {
            if ledger.dead.contains(&watched.client) {
                continue;
            }
            let Some(guard) = watched.guard.upgrade() else { continue };
            let token = guard.token();
            if held.iter().any(|held| held.hold == watched.hold && held.token == token) {
                continue;
            }
            if guard.is_held() {
                held.push(Held {
                    hold: watched.hold.clone(),
                    token,
                    lock: watched.lock,
                    access: guard.access(),
                    slots: guard.slots(),
                    remaining: guard.remaining(),
                    renewed_ms: watched.renewed_ms,
                    fixed_until_ms: guards
                        .iter()
                        .filter(|other| other.hold == watched.hold)
                        .map(|other| other.fixed_until_ms)
                        .max()
                        .flatten(),
                });
            } else {
                over.push(watched.hold.clone());
            }
        }
        ledger.over.extend(over);
        held
    }

    pub(crate) fn look(&self) -> Look {
        // The voters first: looking at them does what is due there.
        let records = self.voters.iter().map(claims).collect();
        Look { held: self.held(), records }
    }

    /// A machine stops or goes on.
    pub(crate) fn disturb(&self, client: usize) {
        locked(&self.ledger).disturbed_ms.insert(client, self.now_ms());
    }

    /// Whether a client has been running since then, so that it must have acted in time.
    pub(crate) fn ran_since(&self, client: usize, since_ms: u64) -> bool {
        let ledger = locked(&self.ledger);
        !ledger.dead.contains(&client)
            && self.machines[client].is_running()
            && ledger.disturbed_ms.get(&client).is_none_or(|at_ms| *at_ms < since_ms)
    }

    /// Something but scripts changed what a voter has, or how fast it expires.
    pub(crate) fn unsteady(&self, voter: usize) {
        locked(&self.ledger).tampered_ms.insert(voter, self.now_ms());
    }

    /// Whether nothing but scripts and time has changed a voter's records since then.
    pub(crate) fn is_steady(&self, voter: usize, since_ms: u64) -> bool {
        locked(&self.ledger).tampered_ms.get(&voter).is_none_or(|at_ms| *at_ms < since_ms)
    }

    /// The results of the schedule.
    pub(crate) fn finish(&self) -> (Vec<Breach>, String) {
        (std::mem::take(&mut locked(&self.breaches)), locked(&self.trace).take())
    }
}

/// What a voter has but for its fences, the numbers that semaphores are asked with, and what is done
/// of a job, which outlast whoever holds.
pub(crate) fn claims(voter: &EmbeddedVoter) -> Vec<Record> {
    let mut records = voter.records();
    records.retain(|record| ![FENCE, PERMITS, DONE].iter().any(|end| record.key.ends_with(end)));
    records
}

#[expect(clippy::disallowed_methods, reason = "the true time, which no machine shows")]
fn now() -> Instant {
    Instant::now()
}
