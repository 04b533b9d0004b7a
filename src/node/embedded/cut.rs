//! Connections that break while their voter lives.

use super::{
    channels::ConnectionId,
    link::Wire,
    server::{ServerCondition, ServerState, reconnect},
    voter::EmbeddedVoter,
};

/// What becomes of the requests that are on their way as their connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InFlight {
    /// They never run.
    Lost,
    /// Scripts run when they would have arrived, and nobody hears the answers: possibly after what
    /// was sent later, on the new connection, as a server may read the old one later.
    Arrives,
}

impl EmbeddedVoter {
    /// Breaks all connections to the voter. They stand again at once, and clients look again for
    /// messages that they may have missed. Who waits for an answer is told that the connection
    /// broke; answers and messages on their way are lost. A killed voter has no connections.
    ///
    /// What is sent from now on is in no order with the requests in flight that
    /// [arrive](InFlight::Arrives); those of one connection stay in order among themselves. A
    /// [`kill`](Self::kill) loses them after all.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use quorate::embedded::{Fault, InFlight};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// let voters = quorate::embedded::voters(1);
    /// let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let there = Duration::from_millis(50);
    /// voters[0].fault_next(1, Fault::Delay { there, back: Duration::ZERO });
    /// let cut = async {
    ///     tokio::time::sleep(there / 2).await;
    ///     voters[0].cut(InFlight::Arrives);
    /// };
    /// let mutex = quorum.mutex("invoice:42");
    /// let (error, ()) = tokio::join!(mutex.try_lock(), cut);
    /// assert!(error.unwrap_err().is_no_quorum());
    /// tokio::time::sleep(there).await;
    /// assert_eq!(voters[0].runs("mutex/acquire"), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cut(&self, in_flight: InFlight) {
        self.0.act(|state| state.cut(in_flight, |_| true));
    }

    /// Breaks the connections of one client, as [`cut`](Self::cut) does those of all. Clients are
    /// told apart as in [`Ran::client`](super::Ran::client).
    pub fn cut_client(&self, client: &str, in_flight: InFlight) {
        self.0.act(|state| state.cut(in_flight, |link| *link.client == *client));
    }
}

impl ServerState {
    fn cut(&mut self, in_flight: InFlight, is_meant: impl Fn(&Wire) -> bool) {
        if self.condition == ServerCondition::Killed {
            return;
        }
        let mut cut = Vec::new();
        for (id, link) in self.links.iter_mut().filter(|(_, link)| is_meant(link)) {
            match in_flight {
                InFlight::Lost => {}
                InFlight::Arrives => link.leave_ghosts(),
            }
            cut.push(*id);
        }
        for id in cut {
            self.cut_off(id);
        }
    }

    /// Breaks a connection, which then stands again. Its ear is to be told.
    pub(super) fn cut_off(&mut self, id: ConnectionId) {
        let news = self.news();
        let Some(link) = self.links.get_mut(&id) else { return };
        self.after.heard.extend(link.break_off("cut"));
        self.database.channels.unsubscribe_all(id);
        self.after.heard.extend(reconnect(&mut self.database, id, link, &news));
    }
}
