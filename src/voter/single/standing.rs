//! The connection for scripts: made, asked who answers on it, and only then used.
//!
//! The client asks for `INFO` (who the server is, and whether it may evict keys), for `CONFIG GET`
//! (whether it writes every change to disk before it answers), for its time and for its mark. Until
//! all of these are answered no script of a lock leaves, and requests are answered as if there were
//! no connection. The same holds while the server loads its data. What the user has no right to ask
//! for is unknown; without `INFO` there is no voter. `INFO` and the mark are asked for again every
//! ten seconds, and the settings of the disk every two minutes.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use tokio::time;

use super::{
    Address, Gate, IDENTIFICATION, LONGEST, PAUSE, Runner,
    dial::Dialer,
    identity::{Met, identify, rename},
    link::{Link, NO_BACKLOG},
};
use crate::{
    clock::Clock,
    proto::Cause,
    voter::{Ear, Identity, lock, pauses::Pauses},
};

/// Between two looks at a connection that stands.
const INTERVAL: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 10 });
/// Every so many looks also ask for the clock, which each grant shows as well, where no mark does.
const TIME: u32 = 2;
/// Every so many ask for what hardly anybody changes while a server runs.
const SYNCS: u32 = 12;
/// And where the last one got no answer.
const AGAIN: Duration = Duration::from_secs(1);
/// A connection that stood for so long is replaced at once.
const STEADY: Duration = Duration::from_secs(1);

impl Runner {
    /// Connects, and opens the gate where that succeeds, for as long as this future is polled.
    pub(super) async fn keep(self: Arc<Self>, address: Address, ear: Arc<dyn Ear>) {
        let mut pauses = Pauses::new(PAUSE, LONGEST);
        let mut dialer = Dialer::new(address, NO_BACKLOG);
        loop {
            let started = Clock::System.now();
            let stood = self.stand(&mut dialer, &*ear).await;
            // What breaks with its first request, as where a cluster is down, is no better than
            // what is refused.
            if stood && Clock::System.now().since(started) >= STEADY {
                pauses.reset();
            }
            time::sleep(pauses.after(&self.gate.trouble(), rand::random())).await;
        }
    }

    /// One connection, from the attempt to its end. Says whether it was one.
    async fn stand(&self, dialer: &mut Dialer, ear: &dyn Ear) -> bool {
        let (link, mut router, primary) = match dialer.connect().await {
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
            met = self.ask(&link, asks) => met,
        };
        let stood = met.is_some();
        if let Some(mut met) = met {
            let told = dialer.since_promotion(&mut met, primary.as_ref());
            if ear.met(self.looks.shard, &told, met.stamp) {
                // Where it cannot be told now, the next client that knows better does it.
                drop(Box::pin(rename(&link, &told, &met.life)).await);
            }
            if let Some(named) = &primary {
                *lock(&link.trusted) = Some(named.trusted_until());
            }
            let (gate, over) = (&self.gate, Arc::clone(&link));
            let shard = self.looks.shard;
            let mut standing = LinkStanding { gate, link: over, shard, ear, lost: None };
            let known = (met.identity.clone(), met.life.as_str().into());
            link.known.set(known).expect("it was asked once");
            gate.open(&link);
            tokio::select! {
                () = link.watch(&mut router, || false) => {}
                () = gate.closed(&link) => {}
                why = dialer.superseded(&link, primary) => link.blame(&why),
                why = self.look(&link, asks, &told, &met, ear) => link.blame(&why),
            }
            standing.lost = Some(link.trouble());
        } else {
            self.gate.failed(link.trouble());
        }
        if link.is_demoted.load(Relaxed) {
            dialer.demotions += 1;
        }
        stood
    }

    /// Who answers on the new connection; the link knows why where nobody does, or where it must
    /// not be a voter.
    async fn ask(&self, link: &Link, asks: bool) -> Option<Met> {
        // Large, and not needed for as long as the connection stands.
        let identified = Box::pin(identify(self, link, asks, true, None));
        let answer = time::timeout(IDENTIFICATION, identified).await;
        match answer.unwrap_or(Err(Cause::TimedOut(IDENTIFICATION))) {
            Ok(Met { evicts: Some(why), .. }) if !self.looks.may_evict => {
                link.blame(&why);
                None
            }
            Ok(met) => {
                if let Some(why) = &met.evicts {
                    tracing::warn!(server = %link.place, %why, "votes may be gone at any time");
                }
                Some(met)
            }
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

    /// Asks the server again and again what it is now, and tells the ear. Completes, with the
    /// reason, when it is found not to have been a primary all the time since it was `told` of.
    async fn look(
        &self,
        link: &Link,
        asks: bool,
        told: &Identity,
        first: &Met,
        ear: &dyn Ear,
    ) -> Arc<str> {
        let (mut pause, mut syncs) = (INTERVAL, first.syncs);
        let mut look = 0_u32;
        // Whether the mark tells the time; where it cannot be read it does not.
        let mut is_timed = self.looks.mark.is_some();
        let mut evicts = false;
        loop {
            look = look.wrapping_add(1);
            time::sleep(pause).await;
            let time = !is_timed && look.is_multiple_of(TIME);
            let syncs_before = Some(syncs).filter(|_| !look.is_multiple_of(SYNCS));
            let identified = Box::pin(identify(self, link, asks, time, syncs_before));
            let identified = time::timeout(IDENTIFICATION, identified);
            let Ok(Ok(met)) = identified.await else {
                if link.is_demoted.load(Relaxed) {
                    return link.demote();
                }
                // Whether it answers at all is looked after there.
                link.doubted.notify_one();
                // What is not known of its age by then is lost.
                pause = AGAIN;
                continue;
            };
            (pause, syncs) = (INTERVAL, met.syncs);
            if !time {
                is_timed = met.stamp.is_some();
            }
            // One that is forgotten by now is none that has ended.
            if let Some(now) = met.tenure.filter(|now| Some(now) != first.tenure.as_ref()) {
                return format!("{} has been promoted again, as {now}", link.place).into();
            }
            let why = met.evicts.filter(|_| !self.looks.may_evict);
            match (&why, evicts) {
                (Some(why), false) => {
                    tracing::error!(server = %link.place, %why, "votes may be gone at any time");
                }
                (None, true) => {
                    tracing::warn!(server = %link.place, "the server deletes no votes any more");
                }
                _ => {}
            }
            evicts = why.is_some();
            // What sentinels say of it was heard when it was met.
            let (run_id, overlap) = (told.run_id.clone(), told.overlap);
            let mut identity = Identity { run_id, overlap, ..met.identity };
            identity.durable &= asks;
            if ear.seen(self.looks.shard, &identity, met.stamp) {
                drop(Box::pin(rename(link, &identity, &met.life)).await);
            }
        }
    }
}

/// Closes the gate, and tells the end of a connection that stood, however it comes.
struct LinkStanding<'a> {
    gate: &'a Gate,
    link: Arc<Link>,
    shard: usize,
    ear: &'a dyn Ear,
    /// Why, where it was not this side that ended it.
    lost: Option<Arc<str>>,
}

impl Drop for LinkStanding<'_> {
    fn drop(&mut self) {
        // The gate first, so that nobody sends what the router does not take any more.
        self.gate.over(&self.link, &self.link.trouble());
        self.ear.parted(self.shard, self.lost.as_deref());
    }
}
