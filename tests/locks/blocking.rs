//! What users of the locks without async rely on: each call does what its async call does, and
//! what threads add to that. Their threads live in real time.

use std::{
    cell::Cell,
    ops::ControlFlow::{self, Break, Continue},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Mutex,
    thread,
};

use quorate::{
    OnceOutcome,
    blocking::{Leadership, Quorate},
};
use quorate_tests::prelude::*;
use tokio::{
    runtime::{Builder, Runtime},
    task::{LocalSet, block_in_place, spawn_blocking, unconstrained, yield_now},
};

// Exclusion, release, loss and observers.

/// A lease that is waited for. Requests wait for a tenth of it, which a busy machine keeps.
const SHORT: Duration = secs(3);

/// Makes two tests of each claim: on three voters inside the process, and on three servers.
macro_rules! on_three {
    ($($claim:ident),+ $(,)?) => { $(
        mod $claim {
            use quorate_tests::fixture::Fixture;

            #[test]
            fn on_three_embedded_voters() {
                super::$claim(&mut Fixture::embedded(3));
            }

            #[test]
            fn on_three_servers() {
                super::$claim(&mut Fixture::real(3));
            }
        }
    )+ };
}

on_three!(
    clients_of_both_sorts_and_threads_of_one_client_exclude_each_other,
    what_is_dropped_last_is_still_released,
    a_loss_is_seen,
    an_observer_sees_each_value_and_the_end,
);

fn client(on: &Fixture) -> Quorate {
    on.builder().connect_blocking().expect("a majority answers")
}

fn client_with_lease(on: &Fixture, lease: Duration) -> Quorate {
    let builder = on.builder().lease(lease).longest_lease(lease).voter_deadline(lease / 10);
    // Others here have another longest lease, and other locks.
    builder.only_looks(true).connect_blocking().expect("a majority answers")
}

const ROUNDS: u32 = 20;

// The threads of one client have clones of a lock, and all of them share the client's thread.
fn clients_of_both_sorts_and_threads_of_one_client_exclude_each_other(on: &Fixture) {
    // Two who are inside at once find it locked.
    let (room, quorum) = (Mutex::new(0), client(on));
    let enter = || {
        let mut visits = room.try_lock().expect("nobody else is inside");
        thread::yield_now();
        *visits += 1;
    };
    let mutex = quorum.mutex("a");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let guard = mutex.lock().unwrap();
                    enter();
                    // The guard may be dropped on any thread.
                    thread::spawn(move || drop(guard));
                }
            });
        }
        scope.spawn(|| {
            let other = client(on);
            for _ in 0..ROUNDS {
                let guard = other.mutex("a").lock().unwrap();
                enter();
                guard.release().unwrap();
            }
        });
        scope.spawn(|| {
            Runtime::new().unwrap().block_on(async {
                let quorum = on.client().await;
                for _ in 0..ROUNDS {
                    let guard = quorum.mutex("a").lock().await.unwrap();
                    enter();
                    guard.release().await.unwrap();
                }
            });
        });
    });
    assert_eq!(room.into_inner().unwrap(), 6 * ROUNDS);
}

// Nobody has the client any more when the release is due: only its thread can send it. The lease is
// 30 s.
fn what_is_dropped_last_is_still_released(on: &Fixture) {
    let started = now();
    let guard = client(on).mutex("a").lock().unwrap();
    drop(guard);
    eventually("every voter has the release", || on.keys().iter().all(Vec::is_empty));
    assert!(since(started) < secs(25));
}

// A majority dies. The hold is lost when its lease ends and not before, and everybody is told.
fn a_loss_is_seen(on: &mut Fixture) {
    let quorum = client_with_lease(on, SHORT);
    let guard = quorum.mutex("a").lock().unwrap();
    assert!(guard.lost_within(ms(1)).unwrap().is_none() && guard.is_held());
    on.kill(0);
    on.kill(1);
    let left = guard.remaining();
    assert!(left > Duration::ZERO && left <= trusted(SHORT));
    let (started, why) = (now(), guard.lost_within(secs(60)).unwrap().expect("it is lost"));
    assert!(since(started) + ms(1) >= left && since(started) < left + secs(15));
    assert!(why.is_lost() && why.voters().len() == 3, "{why}");
    assert!(!guard.is_held() && guard.remaining().is_zero());
    assert!(guard.extend(secs(2)).unwrap_err().is_lost());
    assert!(guard.release().unwrap_err().is_lost());
}

fn an_observer_sees_each_value_and_the_end(on: &Fixture) {
    let (quorum, theirs) = (client(on), client(on));
    let mut observer = theirs.election("a").observe();
    assert!(matches!(observer.next(), Some(Ok(Observed::NoLeader))));
    let leadership = quorum.election("a").campaign("1").unwrap();
    let mut see = |value: &str| loop {
        let observed = observer.next_within(secs(60)).unwrap().expect("it has changed");
        if matches!(&observed, Observed::Leader(leader) if leader.text() == Some(value)) {
            return;
        }
    };
    see("1");
    leadership.proclaim("2").unwrap();
    see("2");
    theirs.close().unwrap();
    assert!(observer.next_within(secs(60)).unwrap().is_none() || observer.all(|one| one.is_ok()));
}

// Of the calls by whose table all others are made too.
#[test]
fn what_is_set_and_asked_for_reaches_the_async_lock_and_its_answer_comes_back() {
    let mut on = Fixture::embedded(3);
    // However long a busy machine takes for an answer.
    let patient = || on.builder().voter_deadline(secs(2)).longest_lease(secs(60));
    let [ours, theirs] = [(); 2].map(|()| patient().connect_blocking().unwrap());
    let mutex = ours.mutex("a").owner(&Owner::new());
    let outer = mutex.clone().note("job 42").lease_fixed(secs(20)).lock().unwrap();
    assert!(outer.remaining() <= secs(20) && outer.votes() > 1);
    outer.extend(secs(40)).unwrap();
    assert!(outer.remaining() > secs(20));
    let inner = mutex.lock().unwrap();
    let seen = (inner.name(), inner.hold(), inner.token(), inner.count());
    assert_eq!(seen, ("a", outer.hold(), outer.token(), 2));
    assert_eq!((mutex.name(), mutex.kind()), ("a", LockKind::Mutex));
    assert!(mutex.client().mutex("a").is_locked().unwrap());
    assert!(theirs.mutex("a").is_locked().unwrap());
    assert!(theirs.fair_mutex("a").lock_within(ms(100)).unwrap().is_none());
    let busy = theirs.mutex("a").lock_or_busy(ms(100)).unwrap_err();
    assert!(busy.is_busy() && busy.holder() == Some(outer.hold()), "{busy}");
    assert_eq!(outer.hold().note().as_deref(), Some("job 42"));
    let ended = theirs.admin().end_all(LockKind::Mutex, "a").unwrap();
    assert_eq!(ended, [outer.hold().clone()]);
    drop((outer, inner));

    let writing = ours.rw_lock("b").write().unwrap();
    let under = writing.read().unwrap();
    assert!(theirs.rw_lock("b").try_read().unwrap().is_none());
    let reading = writing.downgrade().unwrap();
    assert!(under.is_held() && theirs.rw_lock("b").try_read().unwrap().is_some());
    assert!(theirs.rw_lock("b").try_write().unwrap().is_none());
    reading.release().unwrap();
    let held = ours.rw_lock("b").run_read(|view| Ok::<_, Error>(view.is_held()));
    assert!(held.unwrap());

    let permits = ours.semaphore("c", 3).acquire_many(2).unwrap();
    assert_eq!((permits.permits(), permits.slots().len()), (2, 2));
    assert!(permits.slots().contains(&permits.slot()));
    assert_eq!(theirs.semaphore("c", 3).inspect().unwrap().free(), 1);
    let slots = theirs.semaphore("c", 3).run(Ok::<_, Error>).unwrap();
    assert!(slots.len() == 1 && !permits.slots().contains(&slots[0]));
    let several = [ours.rw_lock("d").reading(), ours.fair_mutex("e").into()];
    let several = ours.lock_all(several).note("job 43").lock().unwrap();
    assert!(several.holds().all(|(_, hold)| hold.note().as_deref() == Some("job 43")));
    let tokens: Vec<_> = several.tokens().map(|(name, token)| (name, token.is_some())).collect();
    assert_eq!(tokens, [("d", false), ("e", true)]);
    several.renew().unwrap();
    several.keep_for(secs(5)).unwrap();
    assert!(theirs.mutex("e").is_locked().unwrap());
    // A client that is cut off says that its releases are not confirmed.
    let held = ours.mutex("f").lock().unwrap();
    (0..3).for_each(|voter| on.kill(voter));
    let error = ours.close().unwrap_err();
    assert!(error.is_unconfirmed() && !held.is_held(), "{error}");
}

#[test]
fn a_firing_is_done_once_and_who_comes_late_passes() {
    let on = &Fixture::embedded(3);
    let [ours, theirs] = [(); 2].map(|()| client(on));
    let work = |token: Token| Ok::<_, Error>(token);
    let ran = ours.once("a").run(7_u64, work).unwrap();
    assert!(matches!(ran, OnceOutcome::Ran { marked: true, .. }), "{ran:?}");
    let late = theirs.once("a").run(6_u64, work).unwrap();
    assert!(matches!(late, OnceOutcome::Passed { latest: 7, .. }), "{late:?}");
    let settings = theirs.once("a").keep(secs(60)).lease(secs(20)).hold_at_most(secs(15));
    let guard = settings.clone().enter(8_u64).unwrap().expect("it is due");
    assert!(guard.is_held() && guard.remaining() <= secs(15));
    guard.done().unwrap();
    assert!(ours.once("a").enter(8_u64).unwrap().is_none());
    let guard = settings.at_most_once().enter(9_u64).unwrap().expect("it is due");
    guard.release().unwrap();
    let seen = ours.once("a").inspect().unwrap();
    assert_eq!(seen.done.map(|done| done.firing), Some(9));
    let admin = theirs.admin();
    assert_eq!((admin.jobs().unwrap(), admin.copy_once().unwrap()), (vec!["a".to_owned()], 1));
    assert!(admin.forget_once("a").unwrap());
    // Its lock is lost meanwhile: what was done is returned.
    let brief = client_with_lease(on, secs(2));
    let ran = brief.once("b").run(7_u64, |_| admin.clear(LockKind::Once, "b")).unwrap();
    assert_eq!(ran, OnceOutcome::Ran { value: true, marked: false });
}

#[test]
fn a_candidate_leads_again_after_a_loss_until_it_is_shut_down_or_done() {
    let on = &Fixture::embedded(3);
    let [quorum, operator] = [(); 2].map(|()| client_with_lease(on, SHORT));
    let (election, is_shut_down, mut led) = (quorum.election("a"), Cell::new(false), 0);
    let work = |leadership: &Leadership| {
        led += 1;
        if led == 1 {
            operator.admin().end(LockKind::Election, "a", leadership.hold()).unwrap();
            assert!(leadership.ending_within(secs(60)).unwrap());
        } else {
            assert!(leadership.is_held() && !leadership.ending_within(ms(1)).unwrap());
            is_shut_down.set(true);
        }
        Continue::<()>(())
    };
    assert_eq!(election.lead("x", || is_shut_down.get(), work).unwrap(), None);
    assert_eq!(led, 2);
    let other = operator.election("a").campaign("y").unwrap();
    let asked = Cell::new(0);
    let is_shut_down = || asked.replace(asked.get() + 1) > 1;
    let work = |_: &Leadership| -> ControlFlow<()> { panic!("another one leads") };
    assert_eq!(election.lead("x", is_shut_down, work).unwrap(), None);
    other.resign().unwrap();
    assert_eq!(election.lead("x", || false, |_| Break(7)).unwrap(), Some(7));
    assert!(operator.election("a").try_campaign("y").unwrap().is_some(), "it has resigned");
    quorum.close().unwrap();
    let closed = election.lead("x", || false, |_| Continue::<()>(())).unwrap_err();
    assert!(closed.is_closed(), "{closed}");
}

// Calls that block: one of each way in which the table of `src/blocking` makes them, and all
// that are written by hand there.

type Outcome = Result<(), Error>;
/// One that may be made on another thread.
type Call = Box<dyn FnOnce() -> Outcome + Send>;

struct Row {
    name: &'static str,
    /// What the call needs is there before the call is made.
    prepare: fn(&Quorate) -> Call,
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

fn all_calls() -> Vec<Row> {
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
        q.election("a").lead("x", || false, |_| Break(())),
        q.once("a").enter(7_u64),
        q.once("a").run(7_u64, |_| Ok::<_, Error>(())),
        q.admin().jobs(),
        q.lock_all([q.mutex("b"), q.mutex("a")]).lock(),
        q.admin().look(LockKind::Mutex, "a"),
        q.redisson().mutex("a").inspect(),
        q.mutex("a").run(|_| Ok::<_, Error>(())),
        q.fair_mutex("a").run(|_| Ok::<_, Error>(())),
        q.rw_lock("a").run_read(|_| Ok::<_, Error>(())),
        q.rw_lock("a").run_write(|_| Ok::<_, Error>(())),
        q.semaphore("a", 2).run(|_| Ok::<_, Error>(())),
        q.semaphore("a", 2).run_many(2, |_| Ok::<_, Error>(())),
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
        @(it = q.lock_all(["a"]).lock()) it.keep_for(secs(5)),
        @(it = q.lock_all(["a"]).lock()) it.release(),
        @(it = q.lock_all([q.mutex("a")]).lock()) it.lost_within(ms(1)),
        @(it = q.election("a").campaign("x")) it.proclaim("y"),
        @(it = q.election("a").campaign("x")) it.resign(),
        @(it = q.election("a").campaign("x")) it.lost_within(ms(1)),
        @(it = q.election("a").campaign("x")) it.ending_within(ms(1)),
        @(it = q.once("a").enter(7_u64)) it.expect("it is due").done(),
        @(it = Ok::<_, Error>(q.election("a").observe())) it.next_within(LIMIT),
        @(it = Ok::<_, Error>(q.election("a").observe())) it.next().expect("it is open"),
    ]
}

// Where tokio runs: a call that blocks is refused inside a future, and works beside one.

/// Everything that is made before a runtime is entered.
struct Props {
    voters: Vec<EmbeddedVoter>,
    quorum: Quorate,
}

impl Props {
    fn new() -> Self {
        let voters = embedded::voters(3);
        // However long a busy machine takes for an answer.
        let builder = quorate::Quorate::builder()
            .embedded(&voters)
            .voter_deadline(secs(2))
            .longest_lease(secs(60));
        let quorum = builder.connect_blocking().unwrap();
        Self { voters, quorum }
    }

    /// How often each voter was asked for a lock.
    fn asked(&self) -> Vec<u64> {
        let scripts = ["mutex/acquire", "rw/acquire", "semaphore/acquire", "election/acquire"];
        let asked = |voter: &EmbeddedVoter| scripts.iter().map(|script| voter.runs(script)).sum();
        self.voters.iter().map(asked).collect()
    }
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn task(call: Call) -> Outcome {
    // After an await too.
    yield_now().await;
    call()
}

type Place = (&'static str, fn(Call) -> Outcome);

const INSIDE_FUTURES: [Place; 5] = [
    ("the main future", |call| one_thread().block_on(async { call() })),
    ("a task of many threads", |call| {
        Runtime::new().unwrap().block_on(async { tokio::spawn(task(call)).await.unwrap() })
    }),
    ("a local task", |call| LocalSet::new().block_on(&one_thread(), task(call))),
    // Tokio does not limit such a task, so that is not how it can be found.
    ("an unconstrained future", |call| one_thread().block_on(unconstrained(async { call() }))),
    ("an unconstrained task", |call| {
        let unlimited = async { tokio::spawn(unconstrained(task(call))).await.unwrap() };
        Runtime::new().unwrap().block_on(unlimited)
    }),
];

const BESIDE_FUTURES: [Place; 4] = [
    ("spawn_blocking", |call| one_thread().block_on(async { spawn_blocking(call).await.unwrap() })),
    ("block_in_place", |call| Runtime::new().unwrap().block_on(async { block_in_place(call) })),
    // Nothing shows that tokio runs this one. Its thread runs no tasks that would be blocked.
    ("an unconstrained future beside many threads", |call| {
        Runtime::new().unwrap().block_on(unconstrained(async { call() }))
    }),
    ("a handle", |call| {
        let runtime = Runtime::new().unwrap();
        let _inside = runtime.enter();
        call()
    }),
];

/// Makes every call in each of the places, and says what each came to and whether a voter was
/// asked for a lock.
fn make(places: &'static [Place], check: impl Fn(&str, Outcome, bool)) {
    for row in all_calls() {
        for (place, run) in places {
            let on = Props::new();
            let call = (row.prepare)(&on.quorum);
            // A majority is enough for a guard, and the last voter may be asked a little later.
            eventually("every voter was asked for the guard", || {
                let asked = on.asked();
                asked.iter().all(|voter| *voter == asked[0])
            });
            let before = on.asked();
            // A call that waits for its own thread would never return.
            let running = thread::spawn(move || run(call));
            eventually("the call returns", || running.is_finished());
            let outcome = running.join().unwrap_or_else(|panic| resume_unwind(panic));
            check(&format!("{} in {place}", row.name), outcome, on.asked() != before);
        }
    }
}

#[test]
fn no_call_blocks_a_future() {
    make(&INSIDE_FUTURES, |name, outcome, has_asked| {
        let error = outcome.expect_err(name);
        assert!(error.is_inside_runtime(), "{name}: {error}");
        assert!(error.to_string().contains("spawn_blocking"), "{error}");
        assert!(!has_asked, "{name}");
    });
}

#[test]
fn every_call_works_where_tokio_lets_a_thread_block() {
    make(&BESIDE_FUTURES, |name, outcome, _| {
        assert!(outcome.is_ok() || name.contains("NOBODY"), "{name}: {outcome:?}");
    });
}

// The task that is refused is none the worse for it, and neither is the client.
#[test]
fn a_task_goes_on_after_a_refusal() {
    let on = Props::new();
    let quorum = on.quorum.clone();
    let holding = one_thread().block_on(async move {
        let guard = spawn_blocking({
            let mutex = quorum.mutex("a");
            move || mutex.lock()
        });
        let guard = guard.await.unwrap().unwrap();
        assert!(quorum.mutex("a").try_lock().unwrap_err().is_inside_runtime());
        assert!(guard.is_held());
        tokio::time::sleep(ms(1)).await;
        // Clients and locks may be dropped anywhere.
        drop(quorum);
        guard
    });
    // The release of a guard that was refused goes out all the same.
    one_thread().block_on(async { holding.release().unwrap_err() });
    let next = on.quorum.mutex("a").lock_within(secs(20)).unwrap();
    assert!(next.is_some());
}

// Work that is run under a lock, on the thread of the caller.

/// What work fails with, or its lock.
type Done = Result<(), Box<dyn std::error::Error>>;
type Work<'a> = &'a dyn Fn() -> Done;
type Run<'a> = &'a dyn Fn(Work<'_>) -> Done;

/// Runs work under a lock of each kind. Nobody else has that lock meanwhile, and another client can
/// have it afterwards, whatever the work came to.
fn under_each(work: Work<'_>) -> Vec<Done> {
    let on = Fixture::embedded(3);
    let [ours, theirs] = [(); 2].map(|()| {
        // The clock runs here, and on a busy machine the thread of the clients can be late by more
        // than the default deadline.
        on.builder().voter_deadline(secs(2)).connect_blocking().unwrap()
    });
    let (mutex, fair) = (ours.mutex("a"), ours.fair_mutex("a"));
    let (rw, permits, all) =
        (ours.rw_lock("a"), ours.semaphore("a", 1), ours.lock_all([ours.mutex("a")]));
    let once = ours.once("a");
    let lock = || theirs.mutex("a").try_lock().unwrap().map(|guard| guard.release().unwrap());
    let write = || theirs.rw_lock("a").try_write().unwrap().map(|guard| guard.release().unwrap());
    let permit = || theirs.semaphore("a", 1).try_acquire().unwrap().map(|it| it.release().unwrap());
    let job = || match theirs.once("a").enter_or_busy(8_u64, Duration::ZERO) {
        Err(busy) if busy.is_busy() => None,
        due => due.unwrap().map(|guard| guard.release().unwrap()),
    };
    let kinds: [(Run<'_>, &dyn Fn() -> Option<()>); 7] = [
        (&|work| mutex.run(|_| work()), &lock),
        (&|work| fair.run(|_| work()), &lock),
        (&|work| all.run(|_| work()), &lock),
        (&|work| rw.run_read(|_| work()), &write),
        (&|work| rw.run_write(|_| work()), &write),
        (&|work| permits.run(|_| work()), &permit),
        (&|work| once.run(7_u64, |_| work()).map(drop), &job),
    ];
    let here = thread::current().id();
    let ends = kinds.map(|(run, other)| {
        // A blocking call inside another: neither waits for the other.
        let work = || {
            assert_eq!((thread::current().id(), other()), (here, None));
            work()
        };
        let caught = catch_unwind(AssertUnwindSafe(|| run(&work)));
        eventually("it is given back", || other().is_some());
        caught.unwrap_or_else(|_| Err("it panicked".into()))
    });
    ends.into()
}

#[test]
fn work_runs_under_the_lock_and_gives_it_back_also_when_it_fails_or_panics() {
    let all = |ends: Vec<Done>, expected: Result<(), &str>| {
        let is_expected = |end: &Done| match end {
            Ok(()) => expected.is_ok(),
            Err(why) => expected == Err(&*why.to_string()),
        };
        assert!(ends.iter().all(is_expected), "{ends:?} is not {expected:?}");
    };
    all(under_each(&|| Ok(())), Ok(()));
    all(under_each(&|| Err("no paper".into())), Err("no paper"));
    all(under_each(&|| panic!("on fire")), Err("it panicked"));
}

// The work ends the hold by force, and so its end is known before the work is done; or the lease
// ends meanwhile, without a voter that says so.
#[test]
fn work_that_outlives_its_lock_is_done_and_the_loss_is_said() {
    let on = &Fixture::embedded(3);
    let (quorum, operator) = (client_with_lease(on, secs(2)), client_with_lease(on, secs(2)));
    let (mutex, rw) = (quorum.mutex("a"), quorum.rw_lock("a"));
    let mut is_done = false;
    let ran = mutex.run(|_| {
        is_done = operator.admin().clear(LockKind::Mutex, "a")?;
        Ok::<_, Error>(())
    });
    assert!(is_done && ran.unwrap_err().is_lost());
    let ran = rw.run_read(|_| operator.admin().clear(LockKind::RwLock, "a"));
    assert!(ran.unwrap_err().is_lost());
    let ran = rw.run_write(|_| operator.admin().clear(LockKind::RwLock, "a"));
    assert!(ran.unwrap_err().is_lost());
    let ran = quorum.mutex("b").lease_fixed(secs(2)).run(|_| {
        thread::sleep(secs(2));
        Ok::<_, Error>(())
    });
    assert!(ran.unwrap_err().is_lost());
    quorum.close().unwrap();
    let ran = mutex.run(|_| -> Result<(), Error> { panic!("it began") });
    assert!(ran.unwrap_err().is_closed());
}
