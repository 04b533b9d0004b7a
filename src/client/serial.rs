//! How a client's status is written for other programs, by `serde`.

use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{FoundLocks, Status, Survey, VoterStatus, VoterSurvey};
use crate::proto::{Verdict, VoterReport, millis};

/// Whether locks can be given (`has_quorum`, `counting`, `needed`), and every voter (`voters`).
impl Serialize for Status {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("has_quorum", &self.has_quorum())?;
        map.serialize_entry("counting", &self.counting())?;
        map.serialize_entry("needed", &self.needed())?;
        map.serialize_entry("voters", &self.voters)?;
        map.end()
    }
}

/// `error` says why it is not `connected`, and is there only then.
impl Serialize for VoterStatus {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        self.entries(&mut map)?;
        map.end()
    }
}

impl VoterStatus {
    fn entries<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("voter", &self.voter)?;
        if let Some(side) = &self.side {
            map.serialize_entry("side", side)?;
        }
        map.serialize_entry("counts", &self.counts())?;
        map.serialize_entry("connected", &self.connection.is_ok())?;
        if let Err(cause) = &self.connection {
            map.serialize_entry("error", cause)?;
        }
        map.serialize_entry("refuses", &self.refuses)?;
        map.serialize_entry("quarantine", &self.quarantine)?;
        map.serialize_entry("out_of_step", &self.out_of_step)
    }
}

/// Every voter (`voters`), and what the client goes by.
impl Serialize for Survey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("lease_ms", &millis(self.lease))?;
        map.serialize_entry("longest_lease_ms", &millis(self.longest_lease))?;
        map.serialize_entry("voter_deadline_ms", &millis(self.voter_deadline))?;
        map.serialize_entry("roster", &self.roster)?;
        map.serialize_entry("voters", &self.voters)?;
        map.end()
    }
}

/// `wake_error` says why it does not wake, and is there only then.
impl Serialize for VoterSurvey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        self.status.entries(&mut map)?;
        let micros =
            self.round_trip.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        map.serialize_entry("round_trip_us", &micros)?;
        map.serialize_entry("wakes", &self.wakes.is_ok())?;
        if let Err(cause) = &self.wakes {
            map.serialize_entry("wake_error", cause)?;
        }
        map.serialize_entry("servers", &self.servers)?;
        map.end()
    }
}

/// The locks, whether these are all, and the voters that could not be asked, each with its `error`.
impl Serialize for FoundLocks {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("is_complete", &self.is_complete)?;
        map.serialize_entry("locks", &self.locks)?;
        let missing = self.missing.iter().map(MissingVoter).collect::<Vec<_>>();
        map.serialize_entry("missing", &missing)?;
        map.end()
    }
}

struct MissingVoter<'a>(&'a VoterReport);

impl Serialize for MissingVoter<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("voter", &self.0.voter)?;
        if let Verdict::Unknown(cause) = &self.0.verdict {
            map.serialize_entry("error", cause)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{json, to_value};

    use super::*;
    use crate::proto::Cause;

    #[test]
    fn a_status_says_whether_locks_can_be_given_and_why_a_voter_does_not_count() {
        let voter = |voter: &str, connection, refuses| VoterStatus {
            voter: voter.into(),
            side: None,
            out_of_step: None,
            connection,
            refuses,
            quarantine: None,
        };
        let voters = vec![
            voter("a:1", Ok(()), None),
            voter("b:1", Ok(()), Some("its memory is full".into())),
            voter("c:1", Err(Cause::TimedOut(Duration::from_millis(200))), None),
        ];
        let expected = |voter, counts, connected, refuses| {
            json!({
                "voter": voter, "counts": counts, "connected": connected, "refuses": refuses,
                "quarantine": null, "out_of_step": null,
            })
        };
        let full = expected("b:1", false, true, json!("its memory is full"));
        let mut silent = expected("c:1", false, false, json!(null));
        silent["error"] = json!({ "kind": "timed_out", "after_ms": 200 });
        let voters_said = [expected("a:1", true, true, json!(null)), full, silent];
        let status = json!({
            "has_quorum": false, "counting": 1, "needed": 2, "voters": voters_said,
        });
        assert_eq!(to_value(Status { voters }).unwrap(), status);
    }
}
