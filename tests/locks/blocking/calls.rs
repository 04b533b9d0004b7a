//! Every call that blocks, and the async call that it stands for.

use std::{sync::OnceLock, time::Duration};

use futures::future::BoxFuture;
use quorate::{Error, HoldId, Owner, Preference, Quorate, blocking, embedded, inspection::Access};
use quorate_tests::fixture::{ms, secs};

/// What a call came to, as text.
pub(super) type Outcome = Result<String, Error>;
/// One that may be made on another thread.
pub(super) type Call = Box<dyn FnOnce() -> Outcome + Send>;

pub(super) struct Row {
    pub(super) name: &'static str,
    /// What the call needs is there before the call is made.
    pub(super) blocking: fn(&blocking::Quorate) -> Call,
    pub(super) mirrored: Option<fn(Quorate) -> BoxFuture<'static, Outcome>>,
}

/// Longer than a busy machine takes to say that a lock is another's.
const LIMIT: Duration = ms(300);
const NOBODY: [&str; 1] = ["redis://127.0.0.1:1"];

fn shown<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Outcome {
    outcome.map(|it| format!("{it:?}"))
}

macro_rules! row {
    ($q:ident, [$($guard:ident = $made:expr)?], $call:expr, $mirrored:expr) => {
        Row {
            name: concat!($(stringify!($made), "; ",)? stringify!($call)),
            blocking: |$q| {
                let $q = $q.clone();
                $(#[allow(unused_mut)] let mut $guard = $made.expect("nobody else is there");)?
                Box::new(move || {
                    let _kept = (&$q, $(&$guard)?);
                    shown($call)
                })
            },
            mirrored: $mirrored,
        }
    };
}

/// Calls that read the same with and without async, but for the await.
macro_rules! rows {
    ($q:ident: $($(@($guard:ident = $made:expr))? $call:expr),+ $(,)?) => {
        vec![$(row!($q, [$($guard = $made)?], $call, Some(|$q| Box::pin(async move {
            $(let $guard = $made.await.expect("nobody else is there");)?
            let _kept = (&$q, $(&$guard)?);
            shown($call.await)
        })))),+]
    };
}

macro_rules! only_blocking {
    ($q:ident: $($(@($guard:ident = $made:expr))? $call:expr),+ $(,)?) => {
        vec![$(row!($q, [$($guard = $made)?], $call, None)),+]
    };
}

macro_rules! mutexes {
    ($($mutex:ident)+) => {
        [$(rows![q:
            q.$mutex("a").lock(),
            q.$mutex("a").lease(secs(25)).lock(),
            q.$mutex("a").lease_fixed(secs(20)).lock(),
            @(it = q.$mutex("a").owner(me()).lock()) q.$mutex("a").owner(me()).try_lock(),
            q.$mutex("a").try_lock(),
            q.$mutex("a").lock_within(LIMIT),
            q.$mutex("a").lock_or_busy(LIMIT),
            q.$mutex("a").is_locked(),
            q.$mutex("a").inspect(),
            q.$mutex("a").force_release(),
            q.$mutex("a").force_release_hold(&stranger()),
            q.$mutex("a").force_clear(),
        ]),+].into_iter().flatten()
    };
}

macro_rules! guards {
    ($q:ident: $($made:expr),+ $(,)?) => {
        [$(
            rows![$q:
                @(it = $made) it.extend(secs(40)),
                @(it = $made) it.renew(),
                @(it = $made) it.reenter(),
                @(it = $made) it.keep_for(secs(5)),
                @(it = $made) it.release(),
            ],
            only_blocking![$q: @(it = $made) it.lost_within(ms(1))],
        )+].into_iter().flatten()
    };
}

fn me() -> &'static Owner {
    static ME: OnceLock<Owner> = OnceLock::new();
    ME.get_or_init(Owner::new)
}

/// A hold that no lock has.
fn stranger() -> HoldId {
    "4f6a1d0e-6f5c-4b9e-9d43-0a5a4f1c2b3d:81".parse().expect("the text of a hold")
}

/// All of them. What is connected to in vain comes first.
pub(super) fn all() -> Vec<Row> {
    let mut all = of_clients();
    all.extend(mutexes!(mutex fair_mutex));
    all.extend(of_shared_locks());
    all.extend(of_elections_and_several());
    all.extend(guards![q:
        q.mutex("a").lock(),
        q.rw_lock("a").read(),
        q.rw_lock("a").write(),
        q.semaphore("a", 2).acquire(),
    ]);
    all.extend(rows![q:
        @(it = q.rw_lock("a").write()) it.read(),
        @(it = q.rw_lock("a").write()) it.downgrade(),
    ]);
    all
}

fn of_clients() -> Vec<Row> {
    only_blocking![q:
        blocking::Quorate::connect(NOBODY),
        blocking::Quorate::builder().embedded(&embedded::voters(1)).connect_blocking(),
        q.status(),
        q.survey(),
        q.find_locks("*", 1),
        q.close(),
        q.mutex("a").run(|_| Ok::<_, Error>(())),
        q.fair_mutex("a").run(|_| Ok::<_, Error>(())),
        q.rw_lock("a").run_read(|| Ok::<_, Error>(())),
        q.rw_lock("a").run_write(|_| Ok::<_, Error>(())),
        q.semaphore("a", 2).run(|_| Ok::<_, Error>(())),
        q.lock_all([q.mutex("a")]).run(|_| Ok::<_, Error>(())),
        @(it = q.lock_all([q.mutex("a")]).lock()) it.lost_within(ms(1)),
        @(it = q.election("a").campaign("x")) it.lost_within(ms(1)),
        @(it = Ok::<_, Error>(q.election("a").observe())) it.next_within(LIMIT),
    ]
}

fn of_shared_locks() -> Vec<Row> {
    rows![q:
        q.rw_lock("a").read(),
        q.rw_lock("a").lease_fixed(secs(20)).read(),
        @(it = q.rw_lock("a").owner(me()).read()) q.rw_lock("a").owner(me()).write(),
        q.rw_lock("a").try_read(),
        q.rw_lock("a").preference(Preference::Readers).try_read(),
        q.rw_lock("a").read_within(LIMIT),
        q.rw_lock("a").read_or_busy(LIMIT),
        q.rw_lock("a").write(),
        q.rw_lock("a").lease(secs(25)).write(),
        q.rw_lock("a").try_write(),
        q.rw_lock("a").write_within(LIMIT),
        q.rw_lock("a").write_or_busy(LIMIT),
        q.rw_lock("a").inspect(),
        q.rw_lock("a").force_release(Access::Read),
        q.rw_lock("a").force_release(Access::Write),
        q.rw_lock("a").force_release_hold(&stranger()),
        q.rw_lock("a").force_clear(),
        q.semaphore("a", 2).acquire(),
        q.semaphore("a", 2).lease(secs(25)).acquire(),
        q.semaphore("a", 2).lease_fixed(secs(20)).acquire(),
        @(it = q.semaphore("a", 2).owner(me()).acquire()) q.semaphore("a", 2).owner(me()).acquire(),
        q.semaphore("a", 2).try_acquire(),
        q.semaphore("a", 2).acquire_within(LIMIT),
        q.semaphore("a", 2).acquire_or_busy(LIMIT),
        q.semaphore("a", 2).acquire_many(2),
        q.semaphore("a", 2).try_acquire_many(2),
        q.semaphore("a", 2).acquire_many_within(2, LIMIT),
        q.semaphore("a", 2).acquire_many_or_busy(2, LIMIT),
        q.semaphore("a", 2).inspect(),
        q.semaphore("a", 2).force_release(),
        q.semaphore("a", 2).force_release_hold(&stranger()),
        q.semaphore("a", 2).force_clear(),
    ]
}

fn of_elections_and_several() -> Vec<Row> {
    rows![q:
        q.election("a").campaign("x"),
        q.election("a").lease(secs(25)).campaign("x"),
        q.election("a").try_campaign("x"),
        q.election("a").campaign_within("x", LIMIT),
        q.election("a").campaign_or_busy("x", LIMIT),
        q.election("a").leader(),
        q.election("a").inspect(),
        q.election("a").force_release(),
        q.election("a").force_release_hold(&stranger()),
        q.election("a").force_clear(),
        @(it = q.election("a").campaign("x")) it.proclaim("y"),
        @(it = q.election("a").campaign("x")) it.resign(),
        q.lock_all([q.mutex("b"), q.mutex("a")]).lock(),
        q.lock_all([q.rw_lock("b").reading(), q.rw_lock("a").writing()]).try_lock(),
        q.lock_all([q.mutex("b"), q.mutex("a")]).lock_within(LIMIT),
        q.lock_all([q.mutex("b"), q.mutex("a")]).lock_or_busy(LIMIT),
        @(it = q.lock_all([q.mutex("b"), q.mutex("a")]).lock()) it.extend(secs(40)),
        @(it = q.lock_all([q.mutex("b"), q.mutex("a")]).lock()) it.release(),
    ]
}
