//! The connection for scripts: made, asked who answers on it, and only then used.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::{
    Address, FEW, IDENTIFICATION, LONGEST, PAUSE,
    dial::{Dialed, Dialer},
    identity::{Marked, Met, identify},
    link::Link,
    run::Runner,
    tenure,
};
use crate::{
    clock::Clock,
    engine::Backoff,
    node::{Ear, ONLY},
    words::Cause,
};

/// A connection that stood for so long is replaced at once.
const STEADY: Duration = Duration::from_secs(1);

impl Runner {
    /// Connects, and opens the gate where that succeeds, for as long as this future is polled.
    /// `mark`: where it is marked what was promoted.
    pub(super) async fn keep(
        self: Arc<Self>,
        address: Address,
        ear: Arc<dyn Ear>,
        mark: Option<Arc<str>>,
    ) {
        let mut pauses = Backoff::new(PAUSE, LONGEST);
        let mut dialer = Dialer::new(address);
        loop {
            let started = Clock::System.now();
            let stood = self.stand(&mut dialer, &*ear, mark.as_deref()).await;
            // What breaks with its first request, as where a cluster is down, is no better than
            // what is refused.
            if stood && Clock::System.now().since(started) >= STEADY {
                pauses.reset();
            }
            // A little chance, so that not all clients of a server come back at once.
            time::sleep(pauses.pause(rand::random::<u32>() / 4).min(LONGEST)).await;
        }
    }

    /// One connection, from the attempt to its end. Says whether it was one.
    async fn stand(&self, dialer: &mut Dialer, ear: &dyn Ear, mark: Option<&str>) -> bool {
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
        // Sentinels tell of promotions themselves.
        let asks = primary.is_none();
        let met = tokio::select! {
            () = router.ended() => None,
            met = ask(&link, (asks, mark)) => met,
        };
        let stood = met.is_some();
        if let Some(mut met) = met {
            // Perhaps it is another server, with no scripts yet.
            self.order.forget();
            ear.met(ONLY, &dialer.since_promotion(&mut met, primary.as_ref()), met.stamp);
            let mut standing = Standing { ear, lost: None };
            let opened = self.gate.open(&link, met.identity);
            tokio::select! {
                () = link.watch(&mut router) => {}
                () = opened.closed() => {}
                why = dialer.superseded(primary.as_ref()) => link.blame(&why),
                why = tenure::ended(&link, met.tenure.as_deref(), mark), if asks => {
                    link.blame(&why);
                }
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
async fn ask(link: &Link, marked: Marked<'_>) -> Option<Met> {
    let answer = time::timeout(IDENTIFICATION, identify(link, marked)).await;
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
