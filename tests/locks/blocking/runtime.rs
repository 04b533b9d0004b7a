//! Where tokio runs: a call that blocks is refused inside a future, and works beside one.

use std::{panic::resume_unwind, thread};

use quorate::{
    blocking::Quorate,
    embedded::{self, EmbeddedVoter},
};
use quorate_support::eventually;
use quorate_tests::fixture::{ms, secs};
use tokio::{
    runtime::{Builder, Runtime},
    task::{LocalSet, block_in_place, spawn_blocking, unconstrained, yield_now},
};

use super::calls::{self, Call, Outcome};

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

const BESIDE_FUTURES: [Place; 3] = [
    ("spawn_blocking", |call| one_thread().block_on(async { spawn_blocking(call).await.unwrap() })),
    ("block_in_place", |call| Runtime::new().unwrap().block_on(async { block_in_place(call) })),
    ("a handle", |call| {
        let runtime = Runtime::new().unwrap();
        let _inside = runtime.enter();
        call()
    }),
];

/// Makes every call in each of the places, and says what each came to and whether a voter was
/// asked for a lock.
fn make(places: &'static [Place], check: impl Fn(&str, Outcome, bool)) {
    for row in calls::all() {
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
