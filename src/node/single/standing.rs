//! The connection for scripts: made, asked who answers on it, and only then used.

use std::sync::Arc;

use tokio::time;

use super::{
    Address, FEW, IDENTIFICATION, LONGEST, PAUSE,
    dial::{Dialed, Dialer},
    identity::{Met, identify},
    link::Link,
    run::Runner,
};
use crate::{
    engine::Backoff,
    node::{Ear, ONLY},
    words::Cause,
};

impl Runner {
    /// Connects, and opens the gate where that succeeds, for as long as this future is polled.
    pub(super) async fn keep(self: Arc<Self>, address: Address, ear: Arc<dyn Ear>) {
        let mut pauses = Backoff::new(PAUSE, LONGEST);
        let mut dialer = Dialer::new(address);
        loop {
            if self.stand(&mut dialer, &*ear).await {
                pauses.reset();
            }
            // A little chance, so that not all clients of a server come back at once.
            time::sleep(pauses.pause(rand::random::<u32>() / 4).min(LONGEST)).await;
        }
    }

    /// One connection, from the attempt to its end. Says whether it was one.
    async fn stand(&self, dialer: &mut Dialer, ear: &dyn Ear) -> bool {
        let attempt = async {
            let Dialed { config, primary } = dialer.dial().await?;
            let (link, router) = Link::connected(config, FEW).await?;
            Ok((link, router, primary))
        };
        let (link, mut router, primary) = match attempt.await {
            Ok(connected) => connected,
            Err(why) => {
                self.gate.failed(why);
                return false;
            }
        };
        let met = tokio::select! {
            () = router.ended() => None,
            met = ask(&link) => met,
        };
        let stood = met.is_some();
        if let Some(Met { mut identity, stamp }) = met {
            // Perhaps it is another server, with no scripts yet.
            self.order.forget();
            ear.met(ONLY, &dialer.since_promotion(&mut identity, primary.as_ref()), stamp);
            let mut standing = Standing { ear, lost: None };
            let opened = self.gate.open(&link, identity);
            tokio::select! {
                () = link.watch(&mut router) => {}
                () = opened.closed() => {}
                why = dialer.superseded(primary.as_ref()) => link.blame(&why),
            }
            standing.lost = Some(link.trouble());
            // The gate first, so that nobody sends what the router does not take any more.
            drop(opened);
        } else {
            self.gate.failed(link.trouble());
        }
        if link.is_demoted() {
            dialer.demoted();
        }
        stood
    }
}

/// Tells the end of a connection that stood, however it comes.
struct Standing<'a> {
    ear: &'a dyn Ear,
    /// Why, where it was not this side that ended it.
    lost: Option<Arc<str>>,
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        self.ear.parted(ONLY, self.lost.as_deref());
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
