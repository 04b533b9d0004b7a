//! Holders that die without a word, with all their tasks and connections.

use std::{mem, thread, time::Duration};

use quorate::embedded::{Machine, Simulated as _};
use tokio::{
    runtime::{Handle, Runtime},
    task::spawn_blocking,
};

use crate::{fixture::Fixture, kind::Client};

/// A hold that can be left to its lease, by its guard.
#[derive(Debug)]
pub enum Doomed<G> {
    /// Its client is on a machine of this runtime, where time may be paused.
    Inside(Machine, G),
    /// Its client has a runtime of its own, and ends with it.
    Apart(Runtime, G),
}

impl<G: Send + 'static> Doomed<G> {
    /// Takes a lock with a client of its own, whose voter deadline fits this lease.
    pub async fn take<F: Future<Output = G>>(
        on: &Fixture,
        lease: Duration,
        take: impl FnOnce(Client) -> F + Send + 'static,
    ) -> Self {
        let builder = on.builder().voter_deadline(lease / 10);
        if !on.is_real() {
            let machine = Machine::new("doomed");
            let client = builder.machine(&machine).connect().await.expect("a majority answers");
            return Self::Inside(machine, take(on.client_of(client)).await);
        }
        let kind = on.kind();
        let taken = spawn_blocking(move || {
            // On a thread where no other runtime is: those do not nest.
            let taken = thread::spawn(move || {
                let runtime = Runtime::new().expect("a runtime");
                let guard = runtime.block_on(async {
                    let builder = builder.runtime(Handle::current());
                    let client = builder.connect().await.expect("a majority answers");
                    take(Client::new(client, kind)).await
                });
                Self::Apart(runtime, guard)
            });
            taken.join().expect("it takes the lock")
        });
        taken.await.expect("it takes the lock")
    }

    /// Dies.
    pub fn die(self) {
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
