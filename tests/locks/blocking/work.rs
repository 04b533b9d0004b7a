//! Work that is run under a lock, on the thread of the caller.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use quorate::{Error, LockKind};
use quorate_support::eventually;
use quorate_tests::fixture::{Fixture, secs};

use super::basics::client_with_lease;

/// What work fails with, or its lock.
type Done = Result<(), Box<dyn std::error::Error>>;
type Work<'a> = &'a dyn Fn() -> Done;
type Run<'a> = &'a dyn Fn(Work<'_>) -> Done;

/// Runs work under a lock of each kind. Nobody else has that lock meanwhile, and another client can
/// have it afterwards, whatever the work came to.
fn under_each(work: Work<'_>) -> Vec<Done> {
    let on = Fixture::embedded(3);
    let [ours, theirs] = [(); 2].map(|()| on.builder().connect_blocking().unwrap());
    let (mutex, fair) = (ours.mutex("a"), ours.fair_mutex("a"));
    let (rw, permits, all) =
        (ours.rw_lock("a"), ours.semaphore("a", 1), ours.lock_all([ours.mutex("a")]));
    let lock = || theirs.mutex("a").try_lock().unwrap().map(|guard| guard.release().unwrap());
    let write = || theirs.rw_lock("a").try_write().unwrap().map(|guard| guard.release().unwrap());
    let permit = || theirs.semaphore("a", 1).try_acquire().unwrap().map(|it| it.release().unwrap());
    let kinds: [(Run<'_>, &dyn Fn() -> Option<()>); 6] = [
        (&|work| mutex.run(|_| work()), &lock),
        (&|work| fair.run(|_| work()), &lock),
        (&|work| all.run(|_| work()), &lock),
        (&|work| rw.run_read(work), &write),
        (&|work| rw.run_write(|_| work()), &write),
        (&|work| permits.run(|_| work()), &permit),
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
    let ran = rw.run_read(|| operator.admin().clear(LockKind::RwLock, "a"));
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
