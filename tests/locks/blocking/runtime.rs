//! Where tokio runs: a call that blocks is refused inside a future, and works beside one.

use std::{panic::resume_unwind, sync::mpsc, thread, time::Duration};

use quorate::{
    Error, ErrorKind, HoldId,
    blocking::Quorate,
    embedded::{self, EmbeddedVoter},
    inspection::Access,
};
use quorate_support::eventually;
use quorate_tests::fixture::{ms, secs};
use tokio::{
    runtime::{Builder, Runtime},
    task::{LocalSet, block_in_place, spawn_blocking, unconstrained},
};

/// Everything that is made before a runtime is entered.
struct Props {
    voters: Vec<EmbeddedVoter>,
    quorum: Quorate,
}

impl Props {
    fn new() -> Self {
        let voters = embedded::voters(3);
        // However long a busy machine takes for an answer.
        let builder = Quorate::builder().embedded(&voters).voter_deadline(secs(2));
        let quorum = builder.connect_blocking().unwrap();
        Self { voters, quorum }
    }
}

/// How long a call with a limit waits.
const LIMIT: Duration = ms(20);
/// Longer than a busy machine takes for a lock that is free.
const LONG: Duration = secs(60);

type Call = Box<dyn FnOnce() -> Result<(), Error> + Send>;

fn call<T>(call: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Call {
    Box::new(move || call().map(drop))
}

/// Ends a hold that no lock has: that is an error of another kind than to block.
fn end_nobody(end: impl FnOnce(&HoldId) -> Result<(), Error>) -> Result<(), Error> {
    let nobody = "4f6a1d0e-6f5c-4b9e-9d43-0a5a4f1c2b3d:81".parse().expect("the text of a hold");
    let ended = end(&nobody);
    if ended.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotHolding) {
        return Ok(());
    }
    ended
}

/// Every call that blocks, by its name. What is connected to in vain comes first.
fn calls(on: &Props) -> Vec<(&'static str, Call)> {
    const NOBODY: [&str; 1] = ["redis://127.0.0.1:1"];
    let builder = Quorate::builder().embedded(&on.voters);
    let [asking, surveying, finding, closing] = [(); 4].map(|()| on.quorum.clone());
    let mut calls = vec![
        ("Quorate::connect", call(|| Quorate::connect(NOBODY))),
        ("Builder::connect_blocking", call(|| builder.connect_blocking())),
        ("Quorate::status", call(move || asking.status())),
        ("Quorate::survey", call(move || surveying.survey())),
        ("Quorate::find_locks", call(move || finding.find_locks("*", 1))),
    ];
    calls.extend(calls_of_mutexes(on));
    calls.extend(calls_of_rw_locks(on));
    calls.extend(calls_of_semaphores(on));
    calls.extend(calls_of_elections(on));
    calls.extend(calls_of_several(on));
    calls.extend(calls_of_guards(on));
    calls.push(("Quorate::close", call(move || closing.close())));
    calls
}

/// The calls of a mutex and of a fair mutex.
fn calls_of_mutexes(on: &Props) -> Vec<(&'static str, Call)> {
    let [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10] = [(); 10].map(|()| on.quorum.mutex("free"));
    let [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10] = [(); 10].map(|()| on.quorum.fair_mutex("fair"));
    let work = |_| Ok::<_, Error>(());
    vec![
        ("Mutex::lock", call(move || m1.lock())),
        ("Mutex::run", call(move || m2.run(work))),
        ("Mutex::try_lock", call(move || m3.try_lock())),
        ("Mutex::lock_within", call(move || m4.lock_within(LONG))),
        ("Mutex::lock_or_busy", call(move || m8.lock_or_busy(LONG))),
        ("Mutex::is_locked", call(move || m10.is_locked())),
        ("Mutex::inspect", call(move || m5.inspect())),
        ("Mutex::force_release", call(move || m6.force_release())),
        ("Mutex::force_clear", call(move || m7.force_clear())),
        ("Mutex::force_release_hold", call(move || end_nobody(|hold| m9.force_release_hold(hold)))),
        ("FairMutex::lock", call(move || f1.lock())),
        ("FairMutex::run", call(move || f2.run(work))),
        ("FairMutex::try_lock", call(move || f3.try_lock())),
        ("FairMutex::lock_within", call(move || f4.lock_within(LONG))),
        ("FairMutex::lock_or_busy", call(move || f8.lock_or_busy(LONG))),
        ("FairMutex::is_locked", call(move || f10.is_locked())),
        ("FairMutex::inspect", call(move || f5.inspect())),
        ("FairMutex::force_release", call(move || f6.force_release())),
        ("FairMutex::force_clear", call(move || f7.force_clear())),
        (
            "FairMutex::force_release_hold",
            call(move || end_nobody(|hold| f9.force_release_hold(hold))),
        ),
    ]
}

fn calls_of_rw_locks(on: &Props) -> Vec<(&'static str, Call)> {
    let locks = [(); 14].map(|()| on.quorum.rw_lock("free"));
    let [r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14] = locks;
    vec![
        ("RwLock::read", call(move || r1.read())),
        ("RwLock::run_read", call(move || r12.run_read(|| Ok::<_, Error>(())))),
        ("RwLock::try_read", call(move || r2.try_read())),
        ("RwLock::read_within", call(move || r3.read_within(LONG))),
        ("RwLock::read_or_busy", call(move || r10.read_or_busy(LONG))),
        ("RwLock::write", call(move || r4.write())),
        ("RwLock::run_write", call(move || r13.run_write(|_| Ok::<_, Error>(())))),
        ("RwLock::try_write", call(move || r5.try_write())),
        ("RwLock::write_within", call(move || r6.write_within(LONG))),
        ("RwLock::write_or_busy", call(move || r11.write_or_busy(LONG))),
        ("RwLock::inspect", call(move || r7.inspect())),
        ("RwLock::force_release", call(move || r8.force_release(Access::Read))),
        ("RwLock::force_clear", call(move || r9.force_clear())),
        (
            "RwLock::force_release_hold",
            call(move || end_nobody(|hold| r14.force_release_hold(hold))),
        ),
    ]
}

fn calls_of_semaphores(on: &Props) -> Vec<(&'static str, Call)> {
    let semaphores = [(); 13].map(|()| on.quorum.semaphore("free", 3));
    let [s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13] = semaphores;
    vec![
        ("Semaphore::acquire", call(move || s1.acquire())),
        ("Semaphore::run", call(move || s2.run(|_| Ok::<_, Error>(())))),
        ("Semaphore::try_acquire", call(move || s3.try_acquire())),
        ("Semaphore::acquire_within", call(move || s4.acquire_within(LONG))),
        ("Semaphore::acquire_or_busy", call(move || s5.acquire_or_busy(LONG))),
        ("Semaphore::acquire_many", call(move || s6.acquire_many(2))),
        ("Semaphore::try_acquire_many", call(move || s7.try_acquire_many(2))),
        ("Semaphore::acquire_many_within", call(move || s8.acquire_many_within(2, LONG))),
        ("Semaphore::acquire_many_or_busy", call(move || s9.acquire_many_or_busy(2, LONG))),
        ("Semaphore::inspect", call(move || s10.inspect())),
        ("Semaphore::force_release", call(move || s11.force_release())),
        ("Semaphore::force_clear", call(move || s12.force_clear())),
        (
            "Semaphore::force_release_hold",
            call(move || end_nobody(|hold| s13.force_release_hold(hold))),
        ),
    ]
}

/// The calls of an election, and of those who lead one and watch one.
fn calls_of_elections(on: &Props) -> Vec<(&'static str, Call)> {
    let [e1, e2, e3, e4, e5, e6, e7, e8, e9] = [(); 9].map(|()| on.quorum.election("free"));
    let lead = |name: &str| on.quorum.election(name).campaign("x").unwrap();
    let [l1, l2, l3] = ["1", "2", "3"].map(lead);
    let mut observer = on.quorum.election("1").observe();
    vec![
        ("Election::campaign", call(move || e1.campaign("x"))),
        ("Election::try_campaign", call(move || e2.try_campaign("x"))),
        ("Election::campaign_within", call(move || e3.campaign_within("x", LONG))),
        ("Election::campaign_or_busy", call(move || e9.campaign_or_busy("x", LONG))),
        ("Election::leader", call(move || e4.leader())),
        ("Election::inspect", call(move || e5.inspect())),
        ("Election::force_release", call(move || e6.force_release())),
        ("Election::force_clear", call(move || e7.force_clear())),
        (
            "Election::force_release_hold",
            call(move || end_nobody(|hold| e8.force_release_hold(hold))),
        ),
        ("Leadership::lost_within", call(move || l1.lost_within(LIMIT))),
        ("Leadership::proclaim", call(move || l2.proclaim("y"))),
        ("Leadership::resign", call(move || l3.resign())),
        ("Observer::next_within", call(move || observer.next_within(LONG))),
    ]
}

/// The calls of several locks at once, and of their guard.
fn calls_of_several(on: &Props) -> Vec<(&'static str, Call)> {
    let all = |name: &str| on.quorum.lock_all([on.quorum.mutex(name)]);
    let [a1, a2, a3, a4, a5] = [(); 5].map(|()| all("free"));
    let [g1, g2, g3] = ["20", "21", "22"].map(|name| all(name).lock().unwrap());
    vec![
        ("LockAll::lock", call(move || a1.lock())),
        ("LockAll::try_lock", call(move || a2.try_lock())),
        ("LockAll::lock_within", call(move || a3.lock_within(LONG))),
        ("LockAll::lock_or_busy", call(move || a4.lock_or_busy(LONG))),
        ("LockAll::run", call(move || a5.run(|_| Ok::<_, Error>(())))),
        ("AllGuard::extend", call(move || g3.extend(secs(30)))),
        ("AllGuard::lost_within", call(move || g1.lost_within(LIMIT))),
        ("AllGuard::release", call(move || g2.release())),
    ]
}

/// The calls of all guards; each has a lock of its own.
fn calls_of_guards(on: &Props) -> Vec<(&'static str, Call)> {
    let lock = |name| on.quorum.mutex(name).lock().unwrap();
    let read = |name| on.quorum.rw_lock(name).read().unwrap();
    let write = |name| on.quorum.rw_lock(name).write().unwrap();
    let permit = |name| on.quorum.semaphore(name, 1).acquire().unwrap();
    let names = ["1", "2", "3", "4", "5", "6"];
    let [p1, p2, p3, p4, p5, p6] = names.map(permit);
    let [m1, m2, m3, m4, m5, m6] = names.map(lock);
    let [r1, r2, r3, r4, r5, r6] = names.map(read);
    let [w1, w2, w3, w4, w5, w6, w7, w8] = ["7", "8", "9", "10", "11", "12", "13", "14"].map(write);
    vec![
        ("MutexGuard::lost_within", call(move || m1.lost_within(LIMIT))),
        ("MutexGuard::extend", call(move || m2.extend(secs(30)))),
        ("MutexGuard::renew", call(move || m6.renew())),
        ("MutexGuard::reenter", call(move || m3.reenter())),
        ("MutexGuard::keep_for", call(move || m4.keep_for(secs(5)))),
        ("MutexGuard::release", call(move || m5.release())),
        ("ReadGuard::lost_within", call(move || r1.lost_within(LIMIT))),
        ("ReadGuard::extend", call(move || r2.extend(secs(30)))),
        ("ReadGuard::renew", call(move || r6.renew())),
        ("ReadGuard::reenter", call(move || r3.reenter())),
        ("ReadGuard::keep_for", call(move || r4.keep_for(secs(5)))),
        ("ReadGuard::release", call(move || r5.release())),
        ("PermitGuard::lost_within", call(move || p1.lost_within(LIMIT))),
        ("PermitGuard::extend", call(move || p2.extend(secs(30)))),
        ("PermitGuard::renew", call(move || p6.renew())),
        ("PermitGuard::reenter", call(move || p3.reenter())),
        ("PermitGuard::keep_for", call(move || p4.keep_for(secs(5)))),
        ("PermitGuard::release", call(move || p5.release())),
        ("WriteGuard::lost_within", call(move || w1.lost_within(LIMIT))),
        ("WriteGuard::extend", call(move || w2.extend(secs(30)))),
        ("WriteGuard::renew", call(move || w8.renew())),
        ("WriteGuard::reenter", call(move || w3.reenter())),
        ("WriteGuard::keep_for", call(move || w4.keep_for(secs(5)))),
        ("WriteGuard::release", call(move || w5.release())),
        ("WriteGuard::read", call(move || w6.read())),
        ("WriteGuard::downgrade", call(move || w7.downgrade())),
    ]
}

fn must_be_refused(calls: Vec<(&'static str, Call)>) {
    for (name, call) in calls {
        let Err(error) = call() else { panic!("{name} blocked") };
        assert!(error.is_inside_runtime(), "{name}: {error}");
        assert!(error.to_string().contains("spawn_blocking"), "{error}");
    }
}

fn must_work(calls: Vec<(&'static str, Call)>) {
    for (name, call) in calls.into_iter().skip(1) {
        if let Err(error) = call() {
            panic!("{name}: {error}");
        }
    }
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Runs every call by this function, and says whether a lock was asked for.
fn asks(run: impl FnOnce(Vec<(&'static str, Call)>) + Send + 'static) -> bool {
    let on = Props::new();
    let calls = calls(&on);
    let asked = || {
        let runs = |script| on.voters.iter().map(move |voter| voter.runs(script)).sum::<u64>();
        runs("mutex/acquire")
            + runs("rw/acquire")
            + runs("semaphore/acquire")
            + runs("election/acquire")
    };
    // A majority is enough for a guard, and the last voter may be asked a little later.
    let before = 32 * 3;
    eventually("every voter was asked for each guard", || asked() == before);
    // A call that waits for its own thread would never return.
    let running = thread::spawn(move || run(calls));
    eventually("every call returns", || running.is_finished());
    running.join().unwrap_or_else(|panic| resume_unwind(panic));
    asked() > before
}

#[test]
fn no_call_blocks_the_main_future_of_a_runtime() {
    assert!(!asks(move |calls| one_thread().block_on(async { must_be_refused(calls) })));
    assert!(!asks(move |calls| Runtime::new().unwrap().block_on(async { must_be_refused(calls) })));
}

#[test]
fn no_call_blocks_a_task() {
    async fn task(calls: Vec<(&'static str, Call)>) {
        // After an await too.
        tokio::task::yield_now().await;
        must_be_refused(calls);
    }
    let on_task =
        |runtime: Runtime, calls| runtime.block_on(async { tokio::spawn(task(calls)).await });
    assert!(!asks(move |calls| on_task(one_thread(), calls).unwrap()));
    assert!(!asks(move |calls| on_task(Runtime::new().unwrap(), calls).unwrap()));
    assert!(!asks(move |calls| LocalSet::new().block_on(&one_thread(), task(calls))));
}

// Tokio does not limit such a task, so that is not how it can be found.
#[test]
fn no_call_blocks_an_unconstrained_task() {
    let task = |calls| unconstrained(async { must_be_refused(calls) });
    assert!(!asks(move |calls| one_thread().block_on(task(calls))));
    let spawned = move |calls| async move { tokio::spawn(task(calls)).await.unwrap() };
    assert!(!asks(move |calls| Runtime::new().unwrap().block_on(spawned(calls))));
}

#[test]
fn every_call_works_where_tokio_lets_a_thread_block() {
    let spawned = |calls| async { spawn_blocking(|| must_work(calls)).await.unwrap() };
    assert!(asks(move |calls| one_thread().block_on(spawned(calls))));
    let in_place = |calls| async { block_in_place(|| must_work(calls)) };
    assert!(asks(move |calls| Runtime::new().unwrap().block_on(in_place(calls))));
}

#[test]
fn every_call_works_on_a_thread_that_only_has_a_handle_to_a_runtime() {
    assert!(asks(move |calls| {
        let runtime = Runtime::new().unwrap();
        let _inside = runtime.enter();
        must_work(calls);
    }));
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

// A thread that waits in vain for a task of its own would hang for ever.
#[test]
fn a_task_does_not_wait_for_another_of_its_thread() {
    let on = Props::new();
    let (voters, quorum) = (on.voters.clone(), on.quorum.clone());
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        one_thread().block_on(async {
            let client = quorate::Quorate::builder().embedded(&voters).connect().await.unwrap();
            let guard = client.mutex("a").lock().await.unwrap();
            let releases = tokio::spawn(guard.release());
            let refused = quorum.mutex("a").lock().unwrap_err();
            releases.await.unwrap().unwrap();
            done.send(refused).unwrap();
        });
    });
    assert!(ended.recv_timeout(secs(30)).expect("it does not hang").is_inside_runtime());
}
