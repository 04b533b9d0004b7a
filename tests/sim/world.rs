//! What all that happens in one schedule is seen from: the true time, every voter's records, every
//! guard that somebody has.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard as Locked, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use quorate::{
    MutexGuard,
    embedded::{EmbeddedVoter, Machine, Record},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use crate::{
    laws::Law,
    plan::{Lease, Plan, Step},
    trace::{Trace, Verbosity},
};

/// One schedule under way.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) voters: Vec<EmbeddedVoter>,
    pub(crate) machines: Vec<Machine>,
    started: Instant,
    trace: Mutex<Trace>,
    guards: Mutex<Vec<Watched>>,
    pub(crate) ledger: Mutex<Ledger>,
    breaches: Mutex<Vec<Breach>>,
    scripts: AtomicU64,
    /// Something changed that a law may be about.
    pub(crate) changed: Notify,
}

/// A guard that somebody has.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) hold: String,
    pub(crate) lock: usize,
    pub(crate) client: usize,
    /// The lease, where it is renewed and nobody else can have made it another.
    renewed_ms: Option<u64>,
    guard: Weak<MutexGuard>,
}

/// What the promise does not cover, as far as it has happened.
#[derive(Default)]
pub(crate) struct Ledger {
    /// The votes that a voter forgot, or let expire by a clock beyond the allowance.
    forgotten: BTreeSet<(String, usize)>,
    /// The holds that somebody ended by force.
    forced: BTreeSet<String>,
    /// The holds that were seen not to be held while somebody had their guard.
    over: BTreeSet<String>,
    /// The clients, by their ids.
    clients: BTreeMap<String, usize>,
    /// What each client does about each lock.
    about: BTreeMap<(usize, usize), About>,
    /// The holds that were held while another was.
    overlapped: BTreeSet<String>,
    /// By when each hold that somebody ended by force must be over.
    forced_until_ms: BTreeMap<String, u64>,
    /// The shortest lease that each hold asked for.
    leases_ms: BTreeMap<String, u64>,
    /// The voters whose clock is beyond the allowance now.
    pub(crate) wild: BTreeSet<usize>,
    /// The clients that are no more.
    pub(crate) dead: BTreeSet<usize>,
    /// The clients that were closed before the end.
    pub(crate) closed: BTreeSet<usize>,
    /// The clients whose machine was suspended at some time.
    pub(crate) suspended: BTreeSet<usize>,
    /// When a voter's data or clock was last changed from outside.
    tampered_ms: BTreeMap<usize, u64>,
    /// By how much clocks were put back: votes last so much longer.
    pub(crate) put_back_ms: i64,
    /// When a machine last stopped or went on.
    disturbed_ms: BTreeMap<usize, u64>,
}

/// Whether a client asks for a lock, and when it last began or ended something with it.
#[derive(Default)]
struct About {
    asking: u32,
    touched_ms: u64,
}

/// A client has something to do with a lock, until this is dropped.
pub(crate) struct Busy<'a> {
    world: &'a World,
    client: usize,
    lock: usize,
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
    /// Held, by what their guards say, on machines that live; one of each hold.
    pub(crate) held: Vec<Held>,
    /// Every voter's records.
    pub(crate) records: Vec<Vec<Record>>,
}

pub(crate) struct Held {
    pub(crate) hold: String,
    pub(crate) lock: usize,
    pub(crate) remaining: Duration,
    pub(crate) renewed_ms: Option<u64>,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> Locked<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name of a lock.
pub(crate) fn lock_name(lock: usize) -> String {
    format!("lock-{lock}")
}

/// The key of a lock's record.
pub(crate) fn lock_key(lock: usize) -> String {
    format!("quorate:{{lock-{lock}}}")
}

impl World {
    pub(crate) fn new(plan: Plan, voters: Vec<EmbeddedVoter>, verbosity: Verbosity) -> Arc<Self> {
        let client = |client| Machine::new(format!("c{client}"));
        Arc::new(Self {
            machines: (0..plan.clients.len()).map(client).collect(),
            trace: Mutex::new(Trace::new(verbosity)),
            plan,
            voters,
            started: now(),
            guards: Mutex::default(),
            ledger: Mutex::default(),
            breaches: Mutex::default(),
            scripts: AtomicU64::new(0),
            changed: Notify::new(),
        })
    }

    /// Counts one more script, and says how many there were before.
    pub(crate) fn counts_script(&self) -> u64 {
        self.scripts.fetch_add(1, Ordering::Relaxed)
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
    pub(crate) fn busy(&self, client: usize, lock: usize) -> Busy<'_> {
        locked(&self.ledger).about.entry((client, lock)).or_default().asking += 1;
        Busy { world: self, client, lock }
    }

    /// Since then no other client, and no other task of this one, had or wanted the lock.
    pub(crate) fn was_alone(&self, client: usize, lock: usize, since_ms: u64) -> bool {
        // What others gave up before may have been on its way still.
        let settled_ms = since_ms.saturating_sub(4 * self.plan.network.usual_ms + 5);
        let ledger = locked(&self.ledger);
        let others_idle = ledger.about.iter().all(|((one, other_lock), about)| {
            let own = u32::from(*one == client);
            *other_lock != lock || about.asking <= own && about.touched_ms < settled_ms
        });
        drop(ledger);
        let guards = locked(&self.guards);
        let held =
            guards.iter().any(|watched| watched.lock == lock && watched.guard.strong_count() > 0);
        others_idle && !held
    }

    /// The client of this hold has no guard of the lock and asks for none, for so long by now.
    pub(crate) fn has_nothing_to_do_with(&self, hold: &str, lock: usize, since_ms: u64) -> bool {
        let Some((id, _)) = hold.rsplit_once(':') else { return false };
        let ledger = locked(&self.ledger);
        let Some(client) = ledger.clients.get(id).copied() else { return false };
        let idle = ledger
            .about
            .get(&(client, lock))
            .is_none_or(|about| about.asking == 0 && self.now_ms() > about.touched_ms + since_ms);
        drop(ledger);
        idle && !locked(&self.guards).iter().any(|watched| {
            watched.client == client && watched.lock == lock && watched.guard.strong_count() > 0
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
    pub(crate) fn watch(&self, client: usize, step: Step, guard: &Arc<MutexGuard>) {
        let renewed_ms = match step.lease {
            _ if step.owner.is_some() => None,
            Lease::Default => Some(self.plan.times.lease_ms),
            Lease::Renewed(ms) => Some(ms),
            Lease::Fixed(_) => None,
        };
        locked(&self.guards).push(Watched {
            hold: guard.hold().as_str().to_owned(),
            lock: step.lock,
            client,
            renewed_ms,
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
            let seen = held.iter().any(|held| held.hold == watched.hold);
            if seen || ledger.dead.contains(&watched.client) {
                continue;
            }
            let Some(guard) = watched.guard.upgrade() else { continue };
            if guard.is_held() {
                held.push(Held {
                    hold: watched.hold.clone(),
                    lock: watched.lock,
                    remaining: guard.remaining(),
                    renewed_ms: watched.renewed_ms,
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
        let records = self.voters.iter().map(EmbeddedVoter::records).collect();
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

impl Ledger {
    /// The voter will not remember this vote for as long as it should.
    pub(crate) fn forget(&mut self, hold: &str, voter: usize) {
        self.forgotten.insert((hold.to_owned(), voter));
    }

    /// The voter loses what it has of one lock, or of all.
    pub(crate) fn forget_records(&mut self, records: &[Record], voter: usize) {
        for (hold, _) in records.iter().flat_map(|record| &record.fields) {
            self.forget(hold, voter);
        }
    }

    pub(crate) fn force(&mut self, hold: &str) {
        self.forced.insert(hold.to_owned());
    }

    pub(crate) fn has_forgotten(&self, hold: &str, voter: usize) -> bool {
        self.forgotten.contains(&(hold.to_owned(), voter))
    }

    /// Whether the hold was seen not to be held.
    pub(crate) fn is_over(&self, hold: &str) -> bool {
        self.over.contains(hold)
    }

    pub(crate) fn overlap(&mut self, hold: &str) {
        self.overlapped.insert(hold.to_owned());
    }

    /// Why this hold may be lost although a majority of the voters is well.
    pub(crate) fn excuse_of_loss(&self, hold: &str) -> Option<&'static str> {
        let overlapped = self.overlapped.contains(hold).then_some("another hold had its votes");
        self.excuse(hold).or(overlapped)
    }

    pub(crate) fn ends_by(&mut self, hold: &str, until_ms: u64) {
        self.forced_until_ms.entry(hold.to_owned()).or_insert(until_ms);
    }

    pub(crate) fn forced_until_ms(&self, hold: &str) -> Option<u64> {
        self.forced_until_ms.get(hold).copied()
    }

    pub(crate) fn asked(&mut self, hold: &str, lease_ms: u64) {
        let shortest = self.leases_ms.entry(hold.to_owned()).or_insert(lease_ms);
        *shortest = lease_ms.min(*shortest);
    }

    pub(crate) fn shortest_lease_ms(&self, hold: &str) -> Option<u64> {
        self.leases_ms.get(hold).copied()
    }

    pub(crate) fn excuse_of_force(&self, hold: &str) -> Option<&'static str> {
        self.forced.contains(hold).then_some("it was ended by force")
    }

    /// Why the promise does not cover this hold, if it does not.
    pub(crate) fn excuse(&self, hold: &str) -> Option<&'static str> {
        if let Some(forced) = self.excuse_of_force(hold) {
            return Some(forced);
        }
        let from = (hold.to_owned(), 0);
        let until = (hold.to_owned(), usize::MAX);
        self.forgotten.range(from..=until).next().map(|_| "a voter forgot its vote")
    }
}

#[expect(clippy::disallowed_methods, reason = "the true time, which no machine shows")]
fn now() -> Instant {
    Instant::now()
}
