//! Calls that block: one of each way in which the table of `src/blocking` makes them, and all that
//! are written by hand there.

use std::time::Duration;

use quorate::{Error, LockKind, blocking::Quorate, embedded};
use quorate_tests::fixture::{ms, secs};

pub(super) type Outcome = Result<(), Error>;
/// One that may be made on another thread.
pub(super) type Call = Box<dyn FnOnce() -> Outcome + Send>;

pub(super) struct Row {
    pub(super) name: &'static str,
    /// What the call needs is there before the call is made.
    pub(super) prepare: fn(&Quorate) -> Call,
}

/// Longer than a busy machine takes to say that a lock is another's.
const LIMIT: Duration = ms(300);
const NOBODY: [&str; 1] = ["redis://127.0.0.1:1"];

fn done<T>(outcome: Result<T, Error>) -> Outcome {
    outcome.map(drop)
}

macro_rules! rows {
    ($q:ident: $($(@($guard:ident = $made:expr))? $call:expr),+ $(,)?) => {
        vec![$(Row {
            name: concat!($(stringify!($made), "; ",)? stringify!($call)),
            prepare: |$q| {
                let $q = $q.clone();
                $(#[allow(unused_mut)] let mut $guard = $made.expect("nobody else is there");)?
                Box::new(move || {
                    let _kept = (&$q, $(&$guard)?);
                    done($call)
                })
            },
        }),+]
    };
}

pub(super) fn all() -> Vec<Row> {
    let mut all = of_clients_and_locks();
    all.extend(of_guards());
    all
}

/// What is connected to in vain comes first.
fn of_clients_and_locks() -> Vec<Row> {
    rows![q:
        Quorate::connect(NOBODY),
        Quorate::builder().embedded(&embedded::voters(1)).connect_blocking(),
        q.status(),
        q.survey(),
        q.admin().find("*", 1),
        q.close(),
        q.mutex("a").lock(),
        q.mutex("a").lease_fixed(secs(20)).lock_within(LIMIT),
        q.mutex("a").is_locked(),
        q.fair_mutex("a").try_lock(),
        q.rw_lock("a").read(),
        q.rw_lock("a").write_or_busy(LIMIT),
        q.admin().clear(LockKind::RwLock, "a"),
        q.semaphore("a", 2).acquire_many(2),
        q.semaphore("a", 2).inspect(),
        q.election("a").campaign("x"),
        q.election("a").leader(),
        q.lock_all([q.mutex("b"), q.mutex("a")]).lock(),
        q.admin().look(LockKind::Mutex, "a"),
        q.redisson().mutex("a").inspect(),
        q.mutex("a").run(|_| Ok::<_, Error>(())),
        q.fair_mutex("a").run(|_| Ok::<_, Error>(())),
        q.rw_lock("a").run_read(|| Ok::<_, Error>(())),
        q.rw_lock("a").run_write(|_| Ok::<_, Error>(())),
        q.semaphore("a", 2).run(|_| Ok::<_, Error>(())),
        q.lock_all([q.mutex("a")]).run(|_| Ok::<_, Error>(())),
    ]
}

fn of_guards() -> Vec<Row> {
    rows![q:
        @(it = q.mutex("a").lock()) it.extend(secs(40)),
        @(it = q.mutex("a").lock()) it.reenter(),
        @(it = q.mutex("a").lock()) it.keep_for(secs(5)),
        @(it = q.mutex("a").lock()) it.release(),
        @(it = q.mutex("a").lock()) it.lost_within(ms(1)),
        @(it = q.rw_lock("a").write()) it.read(),
        @(it = q.rw_lock("a").write()) it.downgrade(),
        @(it = q.lock_all([q.mutex("a")]).lock()) it.release(),
        @(it = q.lock_all([q.mutex("a")]).lock()) it.lost_within(ms(1)),
        @(it = q.election("a").campaign("x")) it.proclaim("y"),
        @(it = q.election("a").campaign("x")) it.resign(),
        @(it = q.election("a").campaign("x")) it.lost_within(ms(1)),
        @(it = Ok::<_, Error>(q.election("a").observe())) it.next_within(LIMIT),
        @(it = Ok::<_, Error>(q.election("a").observe())) it.next().expect("it is open"),
    ]
}
