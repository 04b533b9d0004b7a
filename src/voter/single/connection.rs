//! The connection for scripts: made, asked who answers on it, and only then used.
//!
//! The client asks for `INFO` (who the server is, and whether it may evict keys), for `CONFIG GET`
//! (whether it writes every change to disk before it answers), and for its fingerprint, which also
//! tells the time. Until all of these are answered no script of a lock leaves, and requests are
//! answered as if there were no connection. The same holds while the server loads its data. What
//! the user has no right to ask for is unknown; without `INFO` there is no voter. `INFO` and the
//! fingerprint are asked for again every ten seconds, and the settings of the disk every two
//! minutes.

use std::{mem, sync::Arc, time::Duration};

use tokio::time;

use super::{
    Access, Gate, IDENTIFICATION, LONGEST, PAUSE, Runner,
    carrier::Router,
    dial::{Dialer, Primary, superseded},
    identity::{identify, rename},
    link::{Link, Met},
    listen::Channels,
};
use crate::{
    clock::Clock,
    log,
    proto::{Cause, Reason},
    voter::{Identity, VoterEvents, lock, pauses::Pauses},
};

/// Between two looks at a connection that stands.
const INTERVAL: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 10 });
/// Every so many ask for what hardly anybody changes while a server runs.
const SYNCS: u32 = 12;
/// And where the last one got no answer.
const AGAIN: Duration = Duration::from_secs(1);
/// A connection that stood for so long is replaced at once.
const STEADY: Duration = Duration::from_secs(1);

/// Who answers on a new connection.
type Meeting = (Arc<Link>, Router, Option<Primary>, Met);

impl Runner {
    /// Connects, and opens the gate where that succeeds, for as long as this future is polled. One
    /// that listens is made beside each connection.
    pub(super) async fn keep(
        self: Arc<Self>,
        access: Access,
        listener: Arc<dyn VoterEvents>,
        mut channels: Channels,
    ) {
        let mut pauses = Pauses::new(PAUSE, LONGEST);
        let mut dialer = Dialer::new(access);
        let mut met = self.meet(&mut dialer).await;
        loop {
            let started = Clock::System.now();
            match met {
                Ok(meeting) => self.stand(meeting, &mut dialer, &*listener, &mut channels).await,
                Err(why) => self.gate.failed(why),
            }
            // What breaks with its first request, as where a cluster is down, is no better than
            // what is refused.
            if Clock::System.now().since(started) >= STEADY {
                pauses.reset();
            }
            let why = self.gate.trouble();
            let pause = pauses.after(Some(&why), rand::random());
            let again = async {
                time::sleep(pause).await;
                self.meet(&mut dialer).await
            };
            met = channels.refuse(again, &why).await;
        }
    }

    /// Connects, and asks who answers; or why nobody does who may be a voter.
    async fn meet(&self, dialer: &mut Dialer) -> Result<Meeting, Reason> {
        let (link, mut router, primary) = dialer.connect().await?;
        // Large, and not needed for as long as the connection stands.
        let identified = Box::pin(identify(self, &link, None));
        let met = tokio::select! {
            () = router.ended() => Err(Cause::Broken(link.trouble())),
            met = time::timeout(IDENTIFICATION, identified) => {
                met.unwrap_or(Err(Cause::TimedOut(IDENTIFICATION)))
            }
        };
        if met.is_err() {
            dialer.parted(&link);
        }
        match met {
            Ok(Met { evicts: Some(why), .. }) if !self.looks.may_evict => Err(why),
            Ok(met) => {
                if let Some(why) = met.evicts.clone() {
                    let server = Arc::clone(&link.place);
                    log::tell(move || {
                        tracing::warn!(%server, %why, "votes may be gone at any time");
                    });
                }
                Ok((link, router, primary, met))
            }
            Err(Cause::Rejected(why) | Cause::Broken(why) | Cause::Unreachable(why)) => Err(why),
            Err(cause) => Err(format!("does not say who it is: {cause}").into()),
        }
    }

    /// Has scripts leave by a connection until it ends.
    async fn stand(
        &self,
        (link, mut router, primary, mut met): Meeting,
        dialer: &mut Dialer,
        listener: &dyn VoterEvents,
        channels: &mut Channels,
    ) {
        let (gate, shard) = (&self.gate, self.looks.shard);
        let told = dialer.since_promotion(&mut met, primary.as_ref());
        let needs_a_name = listener.met(shard, &told, met.stamp);
        let mut standing =
            LinkStanding { gate, link: Arc::clone(&link), shard, listener, lost: None };
        if needs_a_name {
            // Where it cannot be told now, the next client that knows better does it.
            drop(Box::pin(rename(&link, &met)).await);
        }
        *lock(&link.trusted) = primary.as_ref().map(Primary::trusted_until);
        let met = link.known.get_or_init(|| met);
        gate.open(&link);
        let Dialer { connector, sentinel_lookup, .. } = dialer;
        // As large as all the rest.
        let listening = Box::pin(channels.keep(connector, &link, listener, self.looks.seat));
        tokio::select! {
            () = link.watch(&mut router, || false) => {}
            () = gate.closed(&link) => {}
            why = superseded(sentinel_lookup.as_mut().zip(primary), &link) => link.blame(why),
            why = self.look(&link, &told, met, listener) => link.blame(why),
            () = listening => {}
        }
        standing.lost = Some(link.trouble());
        dialer.parted(&link);
    }

    /// Asks the server again and again what it is now, and tells the listener. Completes, with the
    /// reason, when it has been promoted again since it was `told` of.
    async fn look(
        &self,
        link: &Link,
        told: &Identity,
        first: &Met,
        listener: &dyn VoterEvents,
    ) -> Reason {
        let (mut pause, mut syncs) = (INTERVAL, first.syncs);
        let (mut look, mut evicts) = (0_u32, false);
        loop {
            look = look.wrapping_add(1);
            time::sleep(pause).await;
            let syncs_before = Some(syncs).filter(|_| !look.is_multiple_of(SYNCS));
            let identified = Box::pin(identify(self, link, syncs_before));
            let Ok(Ok(met)) = time::timeout(IDENTIFICATION, identified).await else {
                // Whether it answers at all is looked after there.
                link.doubted.notify_one();
                // What is not known of its age by then is lost.
                pause = AGAIN;
                continue;
            };
            (pause, syncs) = (INTERVAL, met.syncs);
            // One that is forgotten by now is none that has ended.
            if let Some(now) = met.tenure.as_ref().filter(|now| Some(*now) != first.tenure.as_ref())
            {
                return format!("{} has been promoted again, as {now}", link.place).into();
            }
            let why = met.evicts.clone().filter(|_| !self.looks.may_evict);
            let did = mem::replace(&mut evicts, why.is_some());
            let server = Arc::clone(&link.place);
            match why {
                Some(why) if !did => log::tell(move || {
                    tracing::error!(%server, %why, "votes may be gone at any time");
                }),
                None if did => log::tell(move || {
                    tracing::warn!(%server, "the server deletes no votes any more");
                }),
                _ => {}
            }
            // What sentinels say of it was heard when it was met.
            let (run_id, overlap) = (told.run_id.clone(), told.overlap);
            let identity = Identity { run_id, overlap, ..met.identity.clone() };
            if listener.seen(self.looks.shard, &identity, met.stamp) {
                drop(Box::pin(rename(link, &met)).await);
            }
        }
    }
}

/// Closes the gate, and tells the end of a connection that stood, however it comes.
struct LinkStanding<'a> {
    gate: &'a Gate,
    link: Arc<Link>,
    shard: usize,
    listener: &'a dyn VoterEvents,
    /// Why, where it was not this side that ended it.
    lost: Option<Reason>,
}

impl Drop for LinkStanding<'_> {
    fn drop(&mut self) {
        // The gate first, so that nobody sends what the router does not take any more.
        self.gate.over(&self.link, &self.link.trouble());
        self.listener.parted(self.shard, self.lost.as_ref().map(|why| &**why.text()));
    }
}
