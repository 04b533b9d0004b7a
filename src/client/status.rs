//! What a client sees of its voters: for health checks and operators.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::join_all;

use super::Quorate;
#[cfg(feature = "serde")]
use crate::proto::{error_of, micros, millis};
use crate::{
    acquire::Panel,
    clock::Clock,
    proto::{Cause, ConfigurationEntry, Quarantined, Quorum, ServerReport, Shard, Side, Sided},
    voter::{ONLY, Outcome, VoterReply},
};

/// What a client sees of its voters, as [`Quorate::status`] found it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Every voter, in the order in which they were configured. While voters are being
    /// [replaced](crate::Builder::replacing): first the voters that are only new, then the voters
    /// in both sets, then the voters that are only old.
    pub voters: Vec<VoterStatus>,
}

/// One set of voters, as [`Status::sets`] has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetStatus {
    /// Which set it is, if there are two: the [new](Side::New) or the [old](Side::Old) voters.
    pub side: Option<Side>,
    /// How many voters it has.
    pub voters: usize,
    /// How many votes of it a lock needs.
    pub needed: usize,
    /// How many of its votes would count for a new hold.
    pub counting: usize,
}

/// What a client sees of one voter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct VoterStatus {
    /// The voter's address, without credentials.
    pub voter: String,
    /// In which set it is, while the voters are being [replaced](crate::Builder::replacing).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub side: Option<Side>,
    /// Whether its vote would count for a new hold.
    pub counts: bool,
    /// Whether there is a connection on which it answers, or why there is none. If the voter is in
    /// a cluster, a connection to one of its servers is enough.
    #[cfg_attr(feature = "serde", serde(rename = "error", serialize_with = "error_of"))]
    pub connection: Result<(), Cause>,
    /// Why it gives no new votes, although it answers: its memory is full, it has too few replicas,
    /// a script has run for too long, or the user may not run the scripts of locks. What is held
    /// may still be renewed and released.
    pub refuses: Option<String>,
    /// Whether its vote does not count for new holds now.
    pub quarantine: Option<Quarantined>,
    /// Why its vote does not count for new holds: other clients disagree with this one about who
    /// the voters are (with what each side believes), or this was not compared with the voter yet.
    pub configuration_mismatch: Option<String>,
}

impl Status {
    /// How many votes a lock needs; of two sets, the fewest that can be a majority of each.
    pub fn needed(&self) -> usize {
        self.quorum().fewest()
    }

    /// Each set of voters: one, or the new and the old ones while they are being
    /// [replaced](crate::Builder::replacing). Locks can be given when each has a majority.
    pub fn sets(&self) -> impl Iterator<Item = SetStatus> {
        self.quorum().each().map(|(side, set)| {
            let voters = &self.voters[set];
            let counting = voters.iter().filter(|voter| voter.counts).count();
            let (voters, needed) = (voters.len(), Quorum::of(voters.len()).fewest());
            SetStatus { side, voters, needed, counting }
        })
    }

    /// How many votes would count for a new hold.
    pub fn counting(&self) -> usize {
        self.voters.iter().filter(|voter| voter.counts).count()
    }

    /// Whether locks can be given now.
    pub fn has_quorum(&self) -> bool {
        self.quorum().reached(|voter| self.voters[voter].counts)
    }

    // From the voters alone: `Survey::status` has nothing else to make a status of.
    fn quorum(&self) -> Quorum {
        Quorum::of_sides(self.voters.iter().map(|voter| voter.side))
    }
}

// By hand: a health check that reads the JSON needs the answers of the methods, and must not count
// votes itself.
#[cfg(feature = "serde")]
impl serde::Serialize for Status {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;

        let mut shown = to.serialize_struct("Status", 4)?;
        shown.serialize_field("has_quorum", &self.has_quorum())?;
        shown.serialize_field("counting", &self.counting())?;
        shown.serialize_field("needed", &self.needed())?;
        shown.serialize_field("voters", &self.voters)?;
        shown.end()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sets: Vec<_> = self.sets().map(|set| set.to_string()).collect();
        let voters: Vec<_> = self.voters.iter().map(ToString::to_string).collect();
        write!(f, "{} ({})", sets.join("; "), voters.join("; "))
    }
}

impl fmt::Display for SetStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { side, voters, needed, counting } = self;
        write!(f, "{counting} of {voters} ")?;
        side.map_or(Ok(()), |side| write!(f, "{side} "))?;
        write!(f, "votes count, {needed} are needed")
    }
}

impl fmt::Display for VoterStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", Sided { voter: &self.voter, side: self.side })?;
        // One reason of possibly several: without a connection the others are out of date.
        match (&self.connection, &self.refuses, &self.quarantine) {
            (Err(cause), ..) => cause.fmt(f),
            (Ok(()), Some(why), _) => write!(f, "takes no new votes: {why}"),
            (Ok(()), None, Some(quarantined)) => quarantined.fmt(f),
            (Ok(()), None, None) => match &self.configuration_mismatch {
                Some(why) => f.write_str(why),
                None => f.write_str("connected"),
            },
        }
    }
}

impl Quorate {
    /// Which voters are connected, and which of them count: for a health endpoint.
    ///
    /// Asks each voter by a script that writes one small key, as locks do. So a voter that hangs
    /// counts as not connected, and a voter that cannot store a vote says
    /// [why](VoterStatus::refuses). Takes no longer than the voter deadline, and never fails. If
    /// the client was closed, every voter is unreachable.
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
    /// voters[0].kill();
    /// let status = quorum.status().await;
    /// assert!(status.has_quorum());
    /// assert_eq!(
    ///     status.to_string(),
    ///     "2 of 3 votes count, 2 are needed (embedded-1: unreachable: killed; \
    ///      embedded-2: connected; embedded-3: connected)"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub async fn status(&self) -> Status {
        let coordinator = self.coordinator();
        let (clock, panel) = (coordinator.clock(), coordinator.panel());
        let deadline = coordinator.voter_deadline();
        let Panel { voters, standings, .. } = panel;
        let due = clock.now() + deadline;
        let mut found = Vec::with_capacity(voters.len());
        // All are asked before the first answer is awaited, so the whole takes one deadline.
        let asked: Vec<_> = voters.iter().map(|voter| (voter.label(), voter.identify())).collect();
        for (voter, (label, identity)) in asked.into_iter().enumerate() {
            let identity = clock.in_time(due, identity).await;
            let identity = identity.unwrap_or(Err(Cause::TimedOut(deadline)));
            let (connection, refuses) = match identity {
                Ok(identity) => (Ok(()), identity.refuses.map(|why| why.to_string())),
                Err(cause) => (Err(cause), None),
            };
            // Its server answers, but is also another voter's: the two have one vote together.
            let twin = standings.twin(Shard { voter, number: ONLY });
            let connection = twin.map_or(connection, Err);
            // The shard that is out for longest: until then some locks cannot have this vote.
            let quarantine = standings.longest_quarantine(voter, clock.now());
            let quarantine = quarantine.map(|shard| shard.quarantined);
            let configuration_mismatch =
                standings.configuration.apart(voter).map(|why| why.to_string());
            found.push(VoterStatus {
                voter: label.to_string(),
                side: panel.quorum.side(voter),
                counts: connection.is_ok()
                    && refuses.is_none()
                    && quarantine.is_none()
                    && configuration_mismatch.is_none(),
                connection,
                refuses,
                quarantine,
                configuration_mismatch,
            });
        }
        Status { voters: found }
    }
}

/// How long servers may take to answer, unless the voter deadline is longer.
// No lock waits for it, and an operator wants to see also what a slow server says.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the servers of all voters say of themselves, as [`Quorate::survey`] found it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Survey {
    /// Every voter, in the order in which they were configured.
    pub voters: Vec<VoterSurvey>,
    /// The lease of this client's locks, unless a lock names another.
    #[cfg_attr(feature = "serde", serde(rename = "lease_ms", serialize_with = "millis"))]
    pub lease: Duration,
    /// The longest lease, which is also the length of a quarantine.
    #[cfg_attr(feature = "serde", serde(rename = "longest_lease_ms", serialize_with = "millis"))]
    pub longest_lease: Duration,
    /// How long the slowest voter may take to answer, by its round trips so far.
    #[cfg_attr(feature = "serde", serde(rename = "voter_deadline_ms", serialize_with = "millis"))]
    pub voter_deadline: Duration,
    /// What clients of these voters believe of the voters, the latest first: see
    /// [`Builder::voter_configuration`](crate::Builder::voter_configuration).
    pub configuration: Vec<ConfigurationEntry>,
}

/// What the servers of one voter say of themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct VoterSurvey {
    /// What the client sees of the voter.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub status: VoterStatus,
    /// How long it takes to answer, as the client has measured it so far; `None` if the client is
    /// not connected.
    #[cfg_attr(feature = "serde", serde(rename = "round_trip_us", serialize_with = "micros"))]
    pub round_trip: Option<Duration>,
    /// Whether it delivers the messages that wake waiters, or why not.
    #[cfg_attr(feature = "serde", serde(rename = "wake_error", serialize_with = "error_of"))]
    pub wakes: Result<(), Cause>,
    /// Its server. If the voter is in a cluster: all servers that have hash slots of its range.
    pub servers: Vec<ServerReport>,
}

impl Survey {
    /// What the client sees of all voters.
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
    /// an entry in the server's `ACL LOG`. Takes up to five seconds if a server does not answer,
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
        // A channel of its own: to unsubscribe from the client's channel would leave its waiters
        // without wake-ups. It begins alike, so the rights of the client are enough.
        let calls = format!("{}{}:survey", settings.keys.wakeup_channels(), coordinator.client());
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
        let configuration = coordinator.voter_configuration().await;
        let surveyed = status.voters.into_iter().zip(asked).enumerate();
        let surveyed = surveyed.map(|(voter, (status, (wakes, servers)))| VoterSurvey {
            // Without a connection it would be the time of a connection that is gone.
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
            configuration,
        }
    }
}

async fn within<T>(clock: &Clock, patience: Duration, asked: VoterReply<T>) -> Outcome<T> {
    let answer = clock.in_time(clock.now() + patience, asked).await;
    answer.unwrap_or(Err(Cause::TimedOut(patience)))
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn a_status_is_written_with_why_a_voter_does_not_count() {
        let voter = |voter: &str, connection: Result<(), Cause>| VoterStatus {
            voter: voter.into(),
            side: None,
            counts: connection.is_ok(),
            connection,
            refuses: None,
            quarantine: None,
            configuration_mismatch: None,
        };
        let silent = Cause::TimedOut(Duration::from_millis(200));
        let status = Status { voters: vec![voter("a:1", Ok(())), voter("b:1", Err(silent))] };
        let written = |voter, counts, error| {
            json!({
                "voter": voter, "counts": counts, "error": error, "refuses": null,
                "quarantine": null, "configuration_mismatch": null,
            })
        };
        let error = json!({ "kind": "timed_out", "detail": 200 });
        let voters = [written("a:1", true, json!(null)), written("b:1", false, error)];
        let all = json!({ "has_quorum": false, "counting": 1, "needed": 2, "voters": voters });
        assert_eq!(to_value(status).unwrap(), all);
    }
}
