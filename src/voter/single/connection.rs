//! The connection for scripts. Nothing leaves by it before the server was inspected.
//!
//! An inspection asks for `INFO` (who the server is, and whether it may evict keys), for `CONFIG
//! GET` (whether it writes every change to disk before it answers), and for its fingerprint, with
//! which comes the time. Until all of these are answered, and while the server loads its data,
//! requests are answered as if there were no connection. What the user has no right to ask for is
//! unknown, but without `INFO` the server cannot vote. `INFO` and the fingerprint are asked for
//! again every ten seconds, and the settings of the disk every two minutes.

use std::{mem, sync::Arc, time::Duration};

use tokio::time;

use super::{
    Access, Gate, IDENTIFICATION, LONGEST, PAUSE, Runner,
    carrier::Router,
    dial::{Dialer, Primary, superseded},
    identity::{identify, rename},
    link::{Inspection, Link},
    listen::Channels,
};
use crate::{
    clock::Clock,
    log,
    proto::{Cause, Reason},
    voter::{Identity, VoterEvents, lock, pauses::Pauses},
};

/// The pause between two inspections on a connection that stands.
const INTERVAL: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 10 });
/// How many inspections there are for one that also asks for the settings of the disk.
// Hardly anybody changes these while a server runs, and an idle client sends few commands.
const SYNCS: u32 = 12;
/// The pause after an inspection without an answer.
// A look adds fifteen seconds to the age of the data at most. On a busy machine, inspections were
// missed for longer, and some of five new servers became younger than the others.
const AGAIN: Duration = Duration::from_secs(1);
/// A connection that stood for this long is replaced after the shortest pause.
const STEADY: Duration = Duration::from_secs(1);

/// A new connection, with the primary that the sentinels named, and the inspection of its server.
type NewConnection = (Arc<Link>, Router, Option<Primary>, Inspection);

impl Runner {
    /// Keeps up the connection for scripts, and one that listens beside it, for as long as this
    /// future is polled.
    pub(super) async fn keep(
        self: Arc<Self>,
        access: Access,
        listener: Arc<dyn VoterEvents>,
        mut channels: Channels,
    ) {
        let mut pauses = Pauses::new(PAUSE, LONGEST);
        let mut dialer = Dialer::new(access);
        let mut connected = self.connect(&mut dialer).await;
        loop {
            let started = Clock::System.now();
            match connected {
                Ok(new) => self.use_connection(new, &mut dialer, &*listener, &mut channels).await,
                Err(why) => self.gate.note_failure(why),
            }
            // A cluster that is down ends each connection with its first request (`CLUSTERDOWN`).
            // With a reset, each client would connect every 10 ms.
            if Clock::System.now().since(started) >= STEADY {
                pauses.reset();
            }
            let why = self.gate.trouble();
            let pause = pauses.after(Some(&why), rand::random());
            let again = async {
                time::sleep(pause).await;
                self.connect(&mut dialer).await
            };
            connected = channels.refuse(again, &why).await;
        }
    }

    /// Connects, and inspects the server. Fails with the reason if it cannot vote.
    async fn connect(&self, dialer: &mut Dialer) -> Result<NewConnection, Reason> {
        let (link, mut router, primary) = dialer.connect().await?;
        // Boxed: it is large, and not needed for as long as the connection stands.
        let identified = Box::pin(identify(self, &link, None));
        let inspection = tokio::select! {
            () = router.ended() => Err(Cause::Broken(link.trouble())),
            inspection = time::timeout(IDENTIFICATION, identified) => {
                inspection.unwrap_or(Err(Cause::TimedOut(IDENTIFICATION)))
            }
        };
        if inspection.is_err() {
            dialer.note_end(&link);
        }
        match inspection {
            Ok(Inspection { evicts: Some(why), .. }) if !self.looks.may_evict => Err(why),
            Ok(inspection) => {
                if let Some(why) = inspection.evicts.clone() {
                    let server = Arc::clone(&link.place);
                    log::report(move || {
                        tracing::warn!(%server, %why, "votes may be gone at any time");
                    });
                }
                Ok((link, router, primary, inspection))
            }
            Err(Cause::Rejected(why) | Cause::Broken(why) | Cause::Unreachable(why)) => Err(why),
            Err(cause) => Err(format!("does not say who it is: {cause}").into()),
        }
    }

    /// Lets scripts leave by a connection until it ends.
    async fn use_connection(
        &self,
        (link, mut router, primary, mut inspection): NewConnection,
        dialer: &mut Dialer,
        listener: &dyn VoterEvents,
        channels: &mut Channels,
    ) {
        let (gate, shard) = (&self.gate, self.looks.shard);
        let identity = dialer.since_promotion(&mut inspection, primary.as_ref());
        // Before the gate opens. Otherwise a server that restarted, and forgot whom it voted for,
        // could grant a request before the client knows of the restart (law 1).
        let needs_a_name = listener.note_connection(shard, &identity, inspection.stamp);
        let mut end =
            EndOfConnection { gate, link: Arc::clone(&link), shard, listener, lost: None };
        if needs_a_name {
            // If this fails, the next client that finds the gap gives the name.
            drop(Box::pin(rename(&link, &inspection)).await);
        }
        *lock(&link.trusted) = primary.as_ref().map(Primary::trusted_until);
        let first = link.inspection.get_or_init(|| inspection);
        gate.open(&link);
        let Dialer { connector, sentinel_lookup, .. } = dialer;
        // Boxed: it is as large as all the rest.
        let listening = Box::pin(channels.keep(connector, &link, listener, self.looks.seat));
        tokio::select! {
            () = link.watch(&mut router, || false) => {}
            () = gate.until_shut(&link) => {}
            why = superseded(sentinel_lookup.as_mut().zip(primary), &link) => link.set_trouble(why),
            why = self.inspect_again(&link, &identity, first, listener) => link.set_trouble(why),
            () = listening => {}
        }
        end.lost = Some(link.trouble());
        dialer.note_end(&link);
    }

    /// Inspects the server again and again, and reports to the listener. Completes, with the
    /// reason, if the server has been promoted again. `identity`: as the listener knows it.
    async fn inspect_again(
        &self,
        link: &Link,
        identity: &Identity,
        first: &Inspection,
        listener: &dyn VoterEvents,
    ) -> Reason {
        let (mut pause, mut syncs) = (INTERVAL, first.syncs);
        let (mut look, mut evicts) = (0_u32, false);
        loop {
            look = look.wrapping_add(1);
            time::sleep(pause).await;
            let syncs_before = Some(syncs).filter(|_| !look.is_multiple_of(SYNCS));
            let identified = Box::pin(identify(self, link, syncs_before));
            let Ok(Ok(inspection)) = time::timeout(IDENTIFICATION, identified).await else {
                // Not the end of the connection: whether the server answers at all is decided by
                // `Link::watch`.
                link.suspected.notify_one();
                pause = AGAIN;
                continue;
            };
            (pause, syncs) = (INTERVAL, inspection.syncs);
            // A server forgets its tenure after an hour without a replica. That is no promotion.
            let is_other = |tenure: &&String| Some(*tenure) != first.tenure.as_ref();
            if let Some(tenure) = inspection.tenure.as_ref().filter(is_other) {
                return format!("{} has been promoted again, as {tenure}", link.place).into();
            }
            let why = inspection.evicts.clone().filter(|_| !self.looks.may_evict);
            // Logged once, not at each inspection.
            let did = mem::replace(&mut evicts, why.is_some());
            let server = Arc::clone(&link.place);
            match why {
                Some(why) if !did => log::report(move || {
                    tracing::error!(%server, %why, "votes may be gone at any time");
                }),
                None if did => log::report(move || {
                    tracing::warn!(%server, "the server deletes no votes any more");
                }),
                _ => {}
            }
            // The run id with its promotions, and what sentinels said: an inspection has neither.
            // With the bare run id, the server would seem to be another one at each turn.
            let (run_id, overlap) = (identity.run_id.clone(), identity.overlap);
            let identity = Identity { run_id, overlap, ..inspection.identity.clone() };
            if listener.note_inspection(self.looks.shard, &identity, inspection.stamp) {
                drop(Box::pin(rename(link, &inspection)).await);
            }
        }
    }
}

/// Shuts the gate and reports the end of a connection when it is dropped.
// Also when the whole task is: `close` and a drop of the node abort it anywhere.
struct EndOfConnection<'a> {
    gate: &'a Gate,
    link: Arc<Link>,
    shard: usize,
    listener: &'a dyn VoterEvents,
    /// Why the connection was lost, unless this side ended it.
    lost: Option<Reason>,
}

impl Drop for EndOfConnection<'_> {
    fn drop(&mut self) {
        // The gate first, so that no script is given to a router that has ended.
        self.gate.shut(&self.link, &self.link.trouble());
        self.listener.note_disconnect(self.shard, self.lost.as_ref().map(|why| &**why.text()));
    }
}
