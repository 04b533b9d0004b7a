//! What the servers of a client say of themselves.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;

use super::{Quorate, Status, VoterStatus};
#[cfg(feature = "serde")]
use crate::proto::{error_of, micros, millis};
use crate::{
    acquire::Panel,
    clock::Clock,
    proto::{Cause, RosterEntry, ServerReport},
    voter::{Outcome, VoterReply},
};

/// How long servers may take to answer at least, where the voter deadline is shorter: nobody waits
/// for a lock meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the servers of all voters say of themselves, as [`Quorate::survey`] found it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Survey {
    /// Every voter, in the order in which they were configured.
    pub voters: Vec<VoterSurvey>,
    /// The lease of this client's locks.
    #[cfg_attr(feature = "serde", serde(rename = "lease_ms", serialize_with = "millis"))]
    pub lease: Duration,
    /// The longest lease, which is also the length of a quarantine.
    #[cfg_attr(feature = "serde", serde(rename = "longest_lease_ms", serialize_with = "millis"))]
    pub longest_lease: Duration,
    /// How long the slowest voter may take to answer, by its round trips so far.
    #[cfg_attr(feature = "serde", serde(rename = "voter_deadline_ms", serialize_with = "millis"))]
    pub voter_deadline: Duration,
    /// What clients of these voters believe of the voters, the latest first: see
    /// [`Builder::roster`](crate::Builder::roster).
    pub roster: Vec<RosterEntry>,
}

/// What the servers of one voter say of themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct VoterSurvey {
    /// How the client stands with the voter.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub status: VoterStatus,
    /// How long it takes to answer, as the client has measured it so far; `None` where the client
    /// is not connected.
    #[cfg_attr(feature = "serde", serde(rename = "round_trip_us", serialize_with = "micros"))]
    pub round_trip: Option<Duration>,
    /// Whether it delivers the messages that wake waiters; or why not.
    #[cfg_attr(feature = "serde", serde(rename = "wake_error", serialize_with = "error_of"))]
    pub wakes: Result<(), Cause>,
    /// Its server; of a voter in a cluster all those that have hash slots of its range.
    pub servers: Vec<ServerReport>,
}

impl Survey {
    /// How the client stands with all voters.
    pub fn status(&self) -> Status {
        Status { voters: self.voters.iter().map(|voter| voter.status.clone()).collect() }
    }
}

impl Quorate {
    /// Asks every server about itself: its version, its settings, its clock, and which rights the
    /// client's user lacks. For operators and tools; a health endpoint asks for the
    /// [`status`](Self::status).
    ///
    /// What locks need is tried with commands that change nothing. A right that is missing leaves
    /// an entry in the server's `ACL LOG`. Takes up to five seconds where a server does not answer,
    /// and never fails.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// let voters = quorate::embedded::voters(3);
    /// let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let survey = quorum.survey().await;
    /// let info = survey.voters[0].servers[0].info.as_ref().expect("it answers");
    /// assert!(info.persistence.is_durable() && info.missing_rights.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn survey(&self) -> Survey {
        let coordinator = self.coordinator();
        let (clock, panel) = (coordinator.clock(), coordinator.panel());
        let (settings, voter_deadline) = (coordinator.settings(), coordinator.voter_deadline());
        let patience = PATIENCE.max(voter_deadline);
        let calls = format!("{}{}:survey", settings.keys.calls(), coordinator.client());
        let calls: Arc<str> = calls.into();
        let Panel { voters, standings, .. } = panel;
        let asked = voters.iter().map(async |voter| {
            let (wakes, servers) =
                (voter.subscribe(Arc::clone(&calls)), voter.survey(Arc::clone(&calls)));
            let (wakes, servers) =
                tokio::join!(within(clock, patience, wakes), within(clock, patience, servers));
            voter.unsubscribe(Arc::clone(&calls));
            let unheard =
                |cause| ServerReport { server: voter.label().to_string(), info: Err(cause) };
            (wakes, servers.unwrap_or_else(|cause| vec![unheard(cause)]))
        });
        let (status, asked) = tokio::join!(self.status(), join_all(asked));
        let roster = coordinator.roster().await;
        let surveyed = status.voters.into_iter().zip(asked).enumerate();
        let surveyed = surveyed.map(|(voter, (status, (wakes, servers)))| VoterSurvey {
            round_trip: standings.round_trip(voter).filter(|_| status.connection.is_ok()),
            status,
            wakes,
            servers,
        });
        Survey {
            voters: surveyed.collect(),
            lease: settings.lease,
            longest_lease: settings.longest_lease(),
            voter_deadline,
            roster,
        }
    }
}

/// The answer, if it comes in so much time.
async fn within<T>(clock: &Clock, patience: Duration, asked: VoterReply<T>) -> Outcome<T> {
    let answer = clock.in_time(clock.now() + patience, asked).await;
    answer.unwrap_or(Err(Cause::TimedOut(patience)))
}
