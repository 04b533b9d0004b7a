//! Holders that die without a word, with all their tasks and connections.

use std::{mem, thread, time::Duration};

use quorate::{Builder, MutexGuard, embedded::Machine};
use tokio::{runtime::Runtime, task::spawn_blocking};

use crate::{fixture::Fixture, kind::of_kind};

/// A hold that can be left to its lease.
#[derive(Debug)]
pub(crate) enum Doomed {
    /// Its client is on a machine of this runtime, where time may be paused.
    Inside(Machine, MutexGuard),
    /// Its client has a runtime of its own, and ends with it.
    Apart(Runtime, MutexGuard),
}

impl Doomed {
    /// Takes the lock with a client of its own.
    pub(crate) async fn hold(on: &Fixture, name: &str, lease: Duration, renewed: bool) -> Self {
        let builder = on.builder().voter_deadline(lease / 10);
        if !on.is_real() {
            let machine = Machine::new("doomed");
            let guard = hold(builder.machine(&machine), name, lease, renewed).await;
            return Self::Inside(machine, guard);
        }
        let name = name.to_owned();
        let taken = spawn_blocking(move || {
            // On a thread where no other runtime is: those do not nest.
            let taken = thread::spawn(move || {
                let runtime = Runtime::new().expect("a runtime");
                let guard = runtime.block_on(hold(builder, &name, lease, renewed));
                Self::Apart(runtime, guard)
            });
            taken.join().expect("it takes the lock")
        });
        taken.await.expect("it takes the lock")
    }

    /// Dies.
    pub(crate) fn die(self) {
        match self {
            Self::Inside(machine, guard) => {
                machine.kill();
                mem::forget(guard);
            }
            Self::Apart(runtime, guard) => {
                runtime.shutdown_background();
                mem::forget(guard);
            }
        }
    }
}

async fn hold(builder: Builder, name: &str, lease: Duration, renewed: bool) -> MutexGuard {
    let quorum = of_kind(builder.connect().await.expect("a majority answers"));
    let mutex = quorum.mutex(name);
    let mutex = if renewed { mutex.lease(lease) } else { mutex.lease_fixed(lease) };
    mutex.lock().await.expect("it is free")
}
