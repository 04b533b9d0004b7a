//! Work that is run under a lock, on the thread of the caller.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use quorate::{Error, inspection::Access};
use quorate_tests::fixture::{Fixture, ms, secs};

use super::{
    basics::{client, client_with_lease},
    on_three,
};

on_three!(
    run_works_under_the_lock_and_gives_it_back,
    run_says_that_the_lock_was_lost_though_the_work_is_done,
    run_gives_the_lock_back_when_the_work_fails_or_panics,
    run_reads_beside_others_and_writes_alone,
);

/// What work fails with.
#[derive(Debug)]
enum Failure {
    Work(&'static str),
    Lock(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

fn run_works_under_the_lock_and_gives_it_back(on: &Fixture) {
    let (quorum, theirs) = (client(on), client(on));
    let here = thread::current().id();
    let token = quorum.mutex("a").run(|token| {
        assert_eq!(thread::current().id(), here);
        assert!(theirs.fair_mutex("a").try_lock()?.is_none());
        // A blocking call inside another: neither waits for the other.
        quorum.mutex("b").run(|_| Ok::<_, Error>(()))?;
        Ok::<_, Error>(token)
    });
    let later = theirs.fair_mutex("a").run(Ok::<_, Error>).unwrap();
    assert!(later > token.unwrap());
}

// The work ends the hold by force, and renews it in vain: so its end is known before the work is
// done.
fn run_says_that_the_lock_was_lost_though_the_work_is_done(on: &Fixture) {
    let (quorum, operator) = (client(on), client(on));
    let mut is_done = false;
    let ran = quorum.mutex("a").run(|_| {
        operator.mutex("a").force_release()?;
        is_done = true;
        Ok::<_, Error>(())
    });
    let error = ran.unwrap_err();
    assert!(is_done && error.is_lost(), "{error}");
    // So it is with a lease that ends meanwhile, without a voter that says so.
    let mutex = client_with_lease(on, secs(2)).mutex("b").lease_fixed(secs(2));
    let ran = mutex.run(|_| {
        thread::sleep(secs(2));
        Ok::<_, Error>(())
    });
    assert!(ran.unwrap_err().is_lost());
}

fn run_gives_the_lock_back_when_the_work_fails_or_panics(on: &Fixture) {
    let (quorum, theirs) = (client(on), client(on));
    let mutex = quorum.mutex("a");
    let ran = mutex.run(|_| Err::<(), _>(Failure::Work("no paper")));
    assert!(matches!(ran, Err(Failure::Work("no paper"))), "{ran:?}");
    let guard = theirs.mutex("a").lock_within(secs(20)).unwrap().expect("it was given back");
    guard.release().unwrap();
    let panicking = || mutex.run(|_| -> Result<(), Error> { panic!("on fire") });
    assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
    let guard = theirs.mutex("a").lock_within(secs(20)).unwrap().expect("it was given back");
    // Where the lock cannot be had, the work does not begin.
    quorum.close().unwrap();
    let ran = mutex.run(|_| -> Result<(), Failure> { panic!("it began") });
    assert!(matches!(ran, Err(Failure::Lock(error)) if error.is_closed()));
    assert!(guard.lost_within(ms(1)).unwrap().is_none());
}

fn run_reads_beside_others_and_writes_alone(on: &Fixture) {
    let (ours, theirs) = (client(on).rw_lock("a"), client(on).rw_lock("a"));
    let here = thread::current().id();
    let token = ours.run_write(|token| {
        assert_eq!(thread::current().id(), here);
        assert!(theirs.try_read()?.is_none());
        Ok::<_, Error>(token)
    });
    let read = theirs.run_read(|| {
        // Others may read meanwhile, and not write.
        assert!(ours.try_write()?.is_none());
        ours.run_read(|| Err::<(), _>(Failure::Work("no paper")))
    });
    assert!(matches!(read, Err(Failure::Work("no paper"))), "{read:?}");
    // Both reads were given back.
    let later = theirs.run_write(Ok::<_, Error>).unwrap();
    assert!(later > token.unwrap());
    // What was lost meanwhile is said, though the work is done.
    let ran = ours.run_read(|| theirs.force_release(Access::Read));
    assert!(ran.unwrap_err().is_lost());
    let ran = ours.run_write(|_| theirs.force_release(Access::Write));
    assert!(ran.unwrap_err().is_lost());
}
