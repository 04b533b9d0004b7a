//! The client: connecting, and where locks come from.

mod builder;
mod connect;

use std::{fmt, sync::Arc};

pub use builder::Builder;

use crate::{coordinator::Coordinator, hold::Holds, lock::Mutex, node::Voter, words::Error};

/// A client of a set of voters; makes locks. Clones are the same client.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), quorate::Error> {
/// # async fn send_invoice() {}
/// # let voters = quorate::embedded::voters(3);
/// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
/// let guard = quorum.mutex("invoice:42").lock().await?; // waits; renewed until dropped
/// guard.while_held(send_invoice()).await?; // dropped the moment the lock is lost
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Quorate {
    coordinator: Arc<Coordinator>,
    holds: Arc<Holds>,
}

impl Quorate {
    /// Connects to independent servers with the default settings:
    /// `redis://[user:password@]host[:port][/database]`, `rediss://` with the feature `tls`, or
    /// `redis+unix:///path/to/socket`.
    ///
    /// Succeeds when a majority answers, and goes on trying to reach the rest in the background.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid): an address cannot be used, there is none, or two are the
    /// same server. [`is_no_quorum`](Error::is_no_quorum): no majority within the connect timeout
    /// (default 5 s); each voter's cause is in it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn connect() -> Result<(), quorate::Error> {
    /// let quorum =
    ///     quorate::Quorate::connect(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
    ///         .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect<A: AsRef<str>>(
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Self, Error> {
        Self::builder().voters(addresses).connect().await
    }

    /// Sets out the settings first.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The mutex of this name, with the client's settings. Nothing is sent, and a name that cannot
    /// be used is told when it is locked: 1 to 512 bytes.
    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        Mutex::new(&self.coordinator, &self.holds, name.as_ref())
    }

    /// Releases everything that is held, and ends the connections. Guards that are left are lost, and
    /// whoever waits, at once, or asks from now on is told that the client
    /// [is closed](Error::is_closed).
    ///
    /// Waits for a majority to confirm each release, no longer than the voter deadline; what is not
    /// confirmed by then is free when its lease ends.
    ///
    /// # Cancel safety
    ///
    /// Everything is sent when this is first polled; dropping the future afterwards leaves the
    /// connections open until the last clone of the client is dropped.
    pub async fn close(&self) {
        let Coordinator { clock, panel, settings, .. } = &*self.coordinator;
        self.coordinator.close();
        // Everything is queued before the first wait.
        let release_all = || -> Vec<_> {
            let holds = self.holds.all().into_iter();
            holds.filter_map(|hold| hold.close().map(|replies| (hold, replies))).collect()
        };
        let releases = release_all();
        // Whoever is entering undoes it, which has to be queued before the voters' end.
        tokio::select! {
            () = self.coordinator.deserted() => {}
            () = clock.sleep(settings.voter_deadline) => {}
        }
        // Some may have won just before they were told.
        for (hold, replies) in releases.into_iter().chain(release_all()) {
            hold.confirm(replies).await;
        }
        let closing: Vec<_> = panel.voters.iter().map(Voter::close).collect();
        let due = clock.now() + settings.voter_deadline;
        for closed in closing {
            tokio::select! {
                biased;
                _ = closed => {}
                () = clock.sleep_until(due) => return,
            }
        }
    }
}

impl fmt::Debug for Quorate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.coordinator.panel.voters.iter().map(|voter| voter.label());
        f.debug_struct("Quorate")
            .field("client", &self.coordinator.ids.client())
            .field("voters", &labels.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
