//! How a client's status is written for other programs, by `serde`.

use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{Status, VoterStatus};

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
        map.serialize_entry("voter", &self.voter)?;
        map.serialize_entry("counts", &self.counts())?;
        map.serialize_entry("connected", &self.connection.is_ok())?;
        if let Err(cause) = &self.connection {
            map.serialize_entry("error", cause)?;
        }
        map.serialize_entry("refuses", &self.refuses)?;
        map.serialize_entry("quarantine", &self.quarantine)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{json, to_value};

    use super::*;
    use crate::words::Cause;

    #[test]
    fn a_status_says_whether_locks_can_be_given_and_why_a_voter_does_not_count() {
        let voter = |voter: &str, connection, refuses| VoterStatus {
            voter: voter.into(),
            connection,
            refuses,
            quarantine: None,
        };
        let voters = vec![
            voter("a:1", Ok(()), None),
            voter("b:1", Ok(()), Some("its memory is full".into())),
            voter("c:1", Err(Cause::TimedOut(Duration::from_millis(200))), None),
        ];
        let status = json!({
            "has_quorum": false, "counting": 1, "needed": 2,
            "voters": [
                {
                    "voter": "a:1", "counts": true, "connected": true, "refuses": null,
                    "quarantine": null,
                },
                {
                    "voter": "b:1", "counts": false, "connected": true,
                    "refuses": "its memory is full", "quarantine": null,
                },
                {
                    "voter": "c:1", "counts": false, "connected": false,
                    "error": { "kind": "timed_out", "after_ms": 200 }, "refuses": null,
                    "quarantine": null,
                },
            ],
        });
        assert_eq!(to_value(Status { voters }).unwrap(), status);
    }
}
