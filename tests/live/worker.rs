//! A process that takes locks and writes down what it sees.

use std::{
    env, io,
    path::PathBuf,
    process,
    sync::atomic::{AtomicI32, Ordering::SeqCst},
    thread,
};

use fork::{Fork, fork, waitpid};
use quorate_tests::{
    asking::{Asking, Guard, How, Kind, Lease},
    check::{FAIR, MS as MILLI},
    event::{History, Mode, Share, What, monotonic, nanos},
    prelude::*,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::{Deserialize, Serialize};
use tokio::runtime;
use tracing_subscriber::EnvFilter;

/// What a process is told, as JSON.
pub(crate) const PLAN: &str = "QUORATE_LIVE_PLAN";
pub(crate) const LEASE: Duration = Duration::from_secs(4);
/// Of what is not renewed: even, and odd where the hold has a limit.
const FIXED: [u64; 2] = [1_000, 1_001];
/// How soon a loss must be told.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The name of the process.
    pub(crate) name: String,
    pub(crate) seed: u64,
    pub(crate) folder: PathBuf,
    pub(crate) voters: Vec<String>,
    /// By the clock of events.
    pub(crate) until: u64,
    pub(crate) part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    /// Takes locks of all kinds by many tasks.
    Crowd,
    /// Forks while it holds a lock.
    Forks,
    /// Has fewer voters than the others.
    Stranger,
}

impl Plan {
    fn builder(&self) -> Builder {
        leased(Quorate::builder().voters(&self.voters), LEASE).connect_timeout(secs(5))
    }

    fn is_over(&self) -> bool {
        monotonic() >= self.until
    }
}

// Run as a process of its own, by the round.
#[test]
fn works() {
    let Ok(plan) = env::var(PLAN) else { return };
    let plan: Plan = serde_json::from_str(&plan).expect("the round wrote it");
    if plan.part == Part::Forks {
        return forks(&plan);
    }
    // What reads it may stand still.
    let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::new("quorate=trace"));
    log.with_writer(io::stderr).with_ansi(false).init();
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(crowd(Arc::new(plan)));
}

/// What a task does again and again.
#[derive(Clone, Copy, Debug)]
enum Job {
    Take(Kind),
    /// Blocks its thread while it holds the lock.
    Block,
    Observe,
    Once,
}

/// Each with the name of the lock, and how many tasks of a process do it.
const JOBS: [(&str, Job, usize); 13] = [
    ("mutex", Job::Take(Kind::Plain), 6),
    ("block", Job::Block, 1),
    // Somebody holds these for long, and renews: several, so that each side has some.
    ("kept", Job::Take(Kind::Plain), 1),
    ("kept 2", Job::Take(Kind::Plain), 1),
    ("kept 3", Job::Take(Kind::Plain), 1),
    (FAIR, Job::Take(Kind::Fair), 1),
    ("rw", Job::Take(Kind::Read(Preference::Fair)), 2),
    ("rw", Job::Take(Kind::Write), 1),
    ("semaphore", Job::Take(Kind::Permits { wanted: 1, of: 3 }), 2),
    ("election", Job::Take(Kind::Election), 1),
    ("election", Job::Observe, 1),
    // Beside this one two others, and once more in other company.
    ("mutex", Job::Take(Kind::All), 1),
    ("once", Job::Once, 1),
];

async fn crowd(plan: Arc<Plan>) {
    let history = Arc::new(History::create(&plan.folder, &plan.name));
    let note = |why: &Error| {
        let failed = What::Failed { why: format!("{:?}: {why}", why.kind()) };
        history.note(monotonic(), &format!("{}.connect.0", plan.name), failed);
    };
    let quorum = loop {
        match plan.builder().connect().await {
            Ok(quorum) => break quorum,
            Err(_) if plan.is_over() => return,
            Err(error) => note(&error),
        }
        sleep(MS(200)).await;
    };
    let owner = Owner::new();
    let mut tasks = JoinSet::new();
    for (number, (lock, job, count)) in JOBS.into_iter().enumerate() {
        for at in 0..count {
            let who = format!("{}.{lock}.{number}-{at}", plan.name);
            let chance = StdRng::seed_from_u64(plan.seed ^ (1_000 * number + at) as u64);
            let (plan, history) = (Arc::clone(&plan), Arc::clone(&history));
            let task = Task { plan, history, who, lock, quorum: quorum.clone(), owner, chance };
            tasks.spawn(task.work(job));
        }
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("a task does not panic");
    }
    drop(quorum.close().await);
}

struct Task {
    plan: Arc<Plan>,
    history: Arc<History>,
    who: String,
    lock: &'static str,
    quorum: Quorate,
    owner: Owner,
    chance: StdRng,
}

impl Task {
    async fn work(mut self, job: Job) {
        while !self.plan.is_over() {
            let ended = match job {
                Job::Take(kind) => self.take(kind).await,
                Job::Block => self.block().await,
                Job::Observe => return self.observe().await,
                Job::Once => self.fire().await,
            };
            if let Err(error) = ended {
                self.note(failed(&error));
            }
            let most = if self.lock == "mutex" { 30 } else { 120 };
            sleep(MS(self.chance.random_range(0..most))).await;
        }
    }

    fn note(&self, what: What) {
        self.note_at(monotonic(), what);
    }

    fn note_at(&self, at: u64, what: What) {
        self.history.note(at, &self.who, what);
    }

    fn asks(&self) {
        self.note(What::Asked { lock: self.lock.to_owned() });
    }

    /// Takes it once, in one of the ways in which users do.
    async fn take(&mut self, kind: Kind) -> Result<(), Error> {
        let way = self.chance.random_range(0..64);
        let (least, most) = match self.lock {
            "mutex" => (0, 6),
            lock if lock.starts_with("kept") => (3_000, 20_000),
            _ => (0, 150),
        };
        let mut length = MS(self.chance.random_range(least..most));
        let mut asking = match kind {
            // An order of its own.
            Kind::All if self.chance.random() => Asking::of(&self.quorum, "several", kind),
            Kind::Permits { of, .. } => {
                let wanted = self.chance.random_range(1..of);
                Asking::of(&self.quorum, self.lock, Kind::Permits { wanted, of })
            }
            _ => Asking::of(&self.quorum, self.lock, kind),
        };
        let mut by = self.who.clone();
        match way {
            // Beyond its end.
            0 | 1 => {
                asking = asking.lease(Lease::Fixed(FIXED[way]));
                length = MS(FIXED[way] + 300);
            }
            2 => length = MS(self.chance.random_range(300..1_500)),
            3..10 if kind == Kind::Plain => {
                asking = asking.owner(self.owner);
                by = format!("{}.owner", self.plan.name);
            }
            _ => {}
        }
        let how = match way {
            // A waiter that is cut off keeps others behind it for as long as the holder does.
            _ if self.lock.starts_with("kept") => How::Try,
            10..16 => How::Try,
            16..22 => How::Within(20),
            22..24 => How::OrBusy(20),
            _ => How::Wait,
        };
        let patience =
            if (24..32).contains(&way) { MS(self.chance.random_range(0..40)) } else { secs(300) };
        self.asks();
        let Ok(asked) = timeout(patience, asking.ask(how)).await else { return Ok(()) };
        let Some(guard) = asked? else { return Ok(()) };
        let is_held = self.hold(&guard, &by, length).await;
        match way {
            _ if !is_held => {}
            32..40 => {
                drop(guard);
                return Ok(());
            }
            40..44 if matches!(guard, Guard::Mutex(_) | Guard::Write(_)) => {
                // A write becomes a read, and so shares the lock. Otherwise it goes on.
                let further = match guard {
                    Guard::Write(_) => guard.downgrade().await?.expect("it reads"),
                    _ => guard.reenter().await?,
                };
                self.hold(&further, &by, length).await;
                return released(further.release().await);
            }
            _ => {}
        }
        let ended = guard.release().await;
        if !is_held && ended.is_ok() {
            self.note(What::Odd { why: "a lost lock was given back".to_owned() });
        }
        if is_held { released(ended) } else { Ok(()) }
    }

    /// Its thread does nothing else meanwhile.
    async fn block(&mut self) -> Result<(), Error> {
        self.asks();
        let guard = Guard::Mutex(self.quorum.mutex(self.lock).lock().await?);
        if self.hold(&guard, &self.who, Duration::ZERO).await {
            thread::sleep(LEASE.mul_f64(self.chance.random_range(0.0..1.5)));
            if self.hold(&guard, &self.who, Duration::ZERO).await {
                return released(guard.release().await);
            }
        }
        Ok(())
    }

    async fn observe(&mut self) {
        let mut observer = self.quorum.election(self.lock).observe();
        while !self.plan.is_over() {
            let Ok(Some(seen)) = timeout(secs(1), observer.next()).await else { continue };
            if let Observed::Leader(leader) = seen {
                let token = leader.token().into();
                self.note(What::Sees { lock: self.lock.to_owned(), token });
            }
        }
    }

    /// All processes want the same number within a second.
    async fn fire(&mut self) -> Result<(), Error> {
        let firing = monotonic() / (1_000 * MILLI);
        let lock = || self.lock.to_owned();
        self.asks();
        let once = self.quorum.once(self.lock).keep(secs(60));
        let Some(guard) = once.enter(firing).await? else {
            self.note(What::Passed { lock: lock(), firing });
            sleep(MS(300)).await;
            return Ok(());
        };
        let at = monotonic();
        if guard.is_held() {
            self.note_at(at, What::Works { lock: lock(), firing });
        }
        let share = Share { lock: lock(), mode: Mode::Alone(guard.token().into()) };
        let hold = guard.hold().to_string();
        let got = What::Got { locks: vec![share], by: self.who.clone(), hold, left: 0 };
        let length = MS(self.chance.random_range(0..80));
        let is_held = self.watch(got, &|| guard.remaining(), length).await;
        if !is_held {
            self.lose(guard.lost()).await;
        } else if self.chance.random_ratio(1, 8) {
            // The work failed.
            released(guard.release().await)?;
        } else {
            guard.done().await?;
            self.note(What::Done { lock: lock(), firing });
        }
        Ok(())
    }

    /// Trusts the guard for so long, or until it is lost; whether it was held to the end. It is
    /// given back next.
    async fn hold(&self, guard: &Guard, by: &str, length: Duration) -> bool {
        let share = |lock: &str, mode| Share { lock: lock.to_owned(), mode };
        let number = |token: Option<Token>| Mode::Alone(token.expect("it has one").into());
        let locks = match guard {
            Guard::Read(_) => vec![share(self.lock, Mode::Read)],
            Guard::Permits(_) => vec![share(self.lock, Mode::Slots(guard.slots()))],
            Guard::Part { all, .. } => {
                all.tokens().map(|(lock, token)| share(lock, number(token))).collect()
            }
            _ => vec![share(self.lock, number(guard.token()))],
        };
        let hold = guard.hold().to_string();
        let got = What::Got { locks, by: by.to_owned(), hold, left: 0 };
        let is_held = self.watch(got, &|| guard.remaining(), length).await;
        if !is_held {
            self.lose(guard.lost()).await;
        }
        is_held
    }

    /// A guard that is held when asked has been so since it was granted, so it was at the time that
    /// was read before asking.
    async fn watch(
        &self,
        got: What,
        left: &(dyn Fn() -> Duration + Sync),
        length: Duration,
    ) -> bool {
        let (began, remaining) = (monotonic(), left());
        // It came too late.
        if remaining.is_zero() {
            return false;
        }
        let What::Got { locks, by, hold, .. } = got else { unreachable!("it is given") };
        self.note_at(began, What::Got { locks, by, hold, left: nanos(remaining) });
        let (mut noted, mut seen) = (began, (began, remaining));
        let ends = (began + nanos(length)).min(self.plan.until);
        let is_held = loop {
            if seen.0 >= ends {
                break true;
            }
            sleep(MS(2)).await;
            let (at, remaining) = (monotonic(), left());
            if remaining.is_zero() {
                break false;
            }
            seen = (at, remaining);
            if at > noted + 50 * MILLI {
                self.note_at(at, What::Held { left: nanos(remaining) });
                noted = at;
            }
        };
        self.note_at(seen.0, What::Held { left: nanos(seen.1) });
        if is_held {
            self.note(What::Left {});
        }
        is_held
    }

    async fn lose(&self, lost: impl Future<Output = Error>) {
        self.note(match timeout(PATIENCE, lost).await {
            Ok(error) if error.is_lost() => What::Lost { why: error.to_string() },
            Ok(error) => What::Odd { why: format!("lost by {error}") },
            Err(_) => What::Mute {},
        });
    }
}

/// What troubles explain is no panic.
fn failed(error: &Error) -> What {
    let why = format!("{:?}: {error}", error.kind());
    let is_explained = error.is_no_quorum()
        || error.is_busy()
        || error.is_lost()
        || error.is_unconfirmed()
        || error.is_not_entered()
        || error.is_overloaded()
        || error.is_configuration_mismatch()
        || error.is_not_connected();
    if is_explained { What::Failed { why } } else { What::Odd { why } }
}

fn released(released: Result<(), Error>) -> Result<(), Error> {
    released.or_else(|error| if error.is_unconfirmed() { Ok(()) } else { Err(error) })
}

/// How far a forked process has come.
static STEP: AtomicI32 = AtomicI32::new(0);

/// Takes a lock, and forks while it holds it.
fn forks(plan: &Plan) {
    let (history, who) =
        (History::create(&plan.folder, &plan.name), format!("{}.forks.0", plan.name));
    let note = |what| history.note(monotonic(), &who, what);
    while !plan.is_over() {
        let Ok(client) = plan.builder().connect_blocking() else { continue };
        let mutex = client.mutex("forks");
        while let Ok(Some(guard)) = mutex.lock_within(secs(3)) {
            if let Fork::Parent(child) = fork().expect("the system has room") {
                match waitpid(child).expect("it is a child") {
                    0 => note(What::Forked { holds: false }),
                    // The whole status, with the code above it.
                    256 => note(What::Forked { holds: true }),
                    // It hung: tokio does not support a runtime in a forked process.
                    ended => note(What::Failed { why: format!("a child ended with {ended}") }),
                }
                drop(guard.release());
                thread::sleep(MS(300));
                if plan.is_over() {
                    return;
                }
                continue;
            }
            // Whatever hangs there says where.
            thread::spawn(|| {
                thread::sleep(secs(20));
                process::exit(10 + STEP.load(SeqCst));
            });
            let is_held = guard.is_held();
            STEP.store(1, SeqCst);
            let is_released = guard.release().is_ok();
            STEP.store(2, SeqCst);
            // What it connects itself works, or says why not.
            let own = plan.builder().connect_blocking();
            STEP.store(3, SeqCst);
            drop(own.map(|own| own.mutex("forks").try_lock()));
            process::exit(i32::from(is_held || is_released));
        }
    }
}
