//! The connection for scripts: made, asked who answers on it, and only then used.

use std::{sync::Arc, time::Duration};

use fred::interfaces::EventInterface;
use tokio::time;

use super::{
    Address, FEW, IDENTIFICATION,
    identity::{Met, identify},
    link::Link,
    run::Runner,
};
use crate::{
    engine::Backoff,
    node::{Ear, ONLY},
    words::Cause,
};

/// Between a connection that stood and the next attempt; then twice as long each time.
const PAUSE: Duration = Duration::from_millis(10);
/// The longest pause between two attempts.
const LONGEST: Duration = Duration::from_millis(500);

impl Runner {
    /// Connects, and opens the gate where that succeeds, for as long as this future is polled.
    pub(super) async fn keep(self: Arc<Self>, address: Address, ear: Arc<dyn Ear>) {
        let mut pauses = Backoff::new(PAUSE, LONGEST);
        loop {
            if self.stand(&address, &*ear).await {
                pauses.reset();
            }
            // A little chance, so that not all clients of a server come back at once.
            time::sleep(pauses.pause(rand::random::<u32>() / 4).min(LONGEST)).await;
        }
    }

    /// One connection, from the attempt to its end. Says whether it was one.
    async fn stand(&self, address: &Address, ear: &dyn Ear) -> bool {
        let link = Arc::new(Link::once(address, FEW));
        let mut connections = link.client().reconnect_rx();
        let mut router = link.connect();
        let asked = async {
            // fred says how long this may take, and what went wrong where the router ends first.
            let _ = connections.recv().await;
            ask(&link).await
        };
        let met = tokio::select! {
            () = router.ended() => None,
            met = asked => met,
        };
        let Some(Met { identity, stamp }) = met else {
            self.gate.failed(link.trouble());
            return false;
        };
        // Perhaps it is another server, with no scripts yet.
        self.order.forget();
        ear.met(ONLY, &identity, stamp);
        let opened = self.gate.open(&link, identity);
        tokio::select! {
            () = link.watch(&mut router) => {}
            () = opened.closed() => {}
        }
        // The gate first, so that nobody sends what the router does not take any more.
        drop(opened);
        drop(router);
        true
    }
}

/// Who answers on the new connection; the link knows why where nobody does.
async fn ask(link: &Link) -> Option<Met> {
    let answer = time::timeout(IDENTIFICATION, identify(link)).await;
    match answer.unwrap_or(Err(Cause::TimedOut(IDENTIFICATION))) {
        Ok(met) => Some(met),
        Err(Cause::Rejected(why) | Cause::Broken(why) | Cause::Unreachable(why)) => {
            link.blame(&why);
            None
        }
        Err(cause) => {
            link.blame(&format!("does not say who it is: {cause}"));
            None
        }
    }
}
