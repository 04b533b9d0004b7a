//! How the answers of `inspect` are written for other programs, by `serde`.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Unexpected},
    ser::SerializeMap,
};

use super::{
    Access, Holder, Inspection, PermitHolder, Reader, RwInspection, RwState, RwView,
    SemaphoreInspection, SemaphoreState, SemaphoreView, VoterView, Waiting,
};
use crate::proto::millis;

/// What a majority says (`is_free`, `holder`, `queue`, `token`), and what each voter says
/// (`voters`).
impl Serialize for Inspection {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("is_free", &self.is_free())?;
        map.serialize_entry("holder", &self.holder())?;
        map.serialize_entry("queue", &self.queue())?;
        map.serialize_entry("token", &self.token())?;
        map.serialize_entry("voters", &self.voters)?;
        map.end()
    }
}

/// With `holder`, which is `null` where the vote is free; or with `error` in its place.
impl Serialize for VoterView {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("voter", &self.voter)?;
        self.side.iter().try_for_each(|side| map.serialize_entry("side", side))?;
        match &self.holder {
            Ok(holder) => map.serialize_entry("holder", holder)?,
            // Without a `holder`: `null` would say that the vote is free.
            Err(cause) => map.serialize_entry("error", cause)?,
        }
        map.serialize_entry("queue", &self.queue)?;
        map.serialize_entry("token", &self.token)?;
        map.serialize_entry("quarantine", &self.quarantine)?;
        map.end()
    }
}

impl Serialize for Holder {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("hold", &self.hold)?;
        map.serialize_entry("client_name", &self.hold.client_name())?;
        map.serialize_entry("count", &self.count)?;
        map.serialize_entry("ttl_ms", &self.ttl.map(millis))?;
        map.end()
    }
}

impl Serialize for Waiting {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("place", &self.place)?;
        map.serialize_entry("client_name", &self.place.client_name())?;
        map.serialize_entry("ticket", &self.ticket)?;
        map.serialize_entry("ttl_ms", &millis(self.ttl))?;
        map.end()
    }
}

/// What a majority says, and what each voter says (`voters`).
impl Serialize for RwInspection {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("is_free", &self.is_free())?;
        map.serialize_entry("mode", &self.mode())?;
        map.serialize_entry("writer", &self.writer())?;
        map.serialize_entry("readers", &self.readers())?;
        map.serialize_entry("waiting_writers", &self.waiting_writers())?;
        map.serialize_entry("waiting_readers", &self.waiting_readers())?;
        map.serialize_entry("token", &self.token())?;
        map.serialize_entry("voters", &self.voters)?;
        map.end()
    }
}

/// With `state`, or with `error` in its place.
impl Serialize for RwView {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("voter", &self.voter)?;
        self.side.iter().try_for_each(|side| map.serialize_entry("side", side))?;
        match &self.state {
            Ok(state) => map.serialize_entry("state", state)?,
            Err(cause) => map.serialize_entry("error", cause)?,
        }
        map.serialize_entry("quarantine", &self.quarantine)?;
        map.end()
    }
}

impl Serialize for RwState {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("writer", &self.writer)?;
        map.serialize_entry("readers", &self.readers)?;
        map.serialize_entry("waiting_writers", &self.waiting_writers)?;
        map.serialize_entry("waiting_readers", &self.waiting_readers)?;
        map.serialize_entry("token", &self.token)?;
        map.end()
    }
}

impl Serialize for Reader {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("hold", &self.hold)?;
        map.serialize_entry("client_name", &self.hold.client_name())?;
        map.serialize_entry("ttl_ms", &millis(self.ttl))?;
        map.end()
    }
}

/// What a majority says, and what each voter says (`voters`).
impl Serialize for SemaphoreInspection {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("permits", &self.permits())?;
        map.serialize_entry("free", &self.free())?;
        map.serialize_entry("holders", &self.holders())?;
        map.serialize_entry("queue", &self.queue())?;
        map.serialize_entry("voters", &self.voters)?;
        map.end()
    }
}

/// With `state`, or with `error` in its place.
impl Serialize for SemaphoreView {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("voter", &self.voter)?;
        self.side.iter().try_for_each(|side| map.serialize_entry("side", side))?;
        match &self.state {
            Ok(state) => map.serialize_entry("state", state)?,
            Err(cause) => map.serialize_entry("error", cause)?,
        }
        map.serialize_entry("quarantine", &self.quarantine)?;
        map.end()
    }
}

impl Serialize for SemaphoreState {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("permits", &self.permits)?;
        map.serialize_entry("holders", &self.holders)?;
        map.serialize_entry("queue", &self.queue)?;
        map.end()
    }
}

impl Serialize for PermitHolder {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("hold", &self.hold)?;
        map.serialize_entry("client_name", &self.hold.client_name())?;
        map.serialize_entry("slots", &self.slots)?;
        map.serialize_entry("ttl_ms", &millis(self.ttl))?;
        map.end()
    }
}

/// `read` or `write`.
impl Serialize for Access {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

/// It is an argument too: of [`RwLock::force_release`](crate::RwLock::force_release).
impl<'de> Deserialize<'de> for Access {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        match &*text {
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            _ => Err(de::Error::invalid_value(Unexpected::Str(&text), &"`read` or `write`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use serde_json::{Value, from_str, json, to_value};

    use super::*;
    use crate::proto::{Cause, HoldId, Owner, Quarantine, Quarantined, Token};

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[track_caller]
    fn written(value: &impl Serialize, json: &Value) {
        assert_eq!(to_value(value).unwrap(), *json);
    }

    const NAMED: &str = "web-1.7@0123456789abcdef0123:1";

    fn held() -> Holder {
        Holder { hold: HoldId::parse(NAMED), count: 2, ttl: Some(MS(1_500)) }
    }

    fn waiting() -> Waiting {
        Waiting { place: HoldId::parse("c:2"), ticket: 7, ttl: Duration::from_micros(2_999) }
    }

    fn quarantined(why: Quarantine) -> Quarantined {
        Quarantined { why, left: MS(9_000) }
    }

    #[test]
    fn ids_and_tokens_are_written_and_read_as_they_are_shown() {
        let owner = "9e107d9d-372b-4b68-8f2a-3542a9d6d1e5";
        written(&HoldId::parse("c:1"), &json!("c:1"));
        written(&owner.parse::<Owner>().unwrap(), &json!(owner));
        written(&Token::new(7).unwrap(), &json!(7));
        written(&Access::Read, &json!("read"));
        assert_eq!(from_str::<HoldId>("\"c:1\"").unwrap(), HoldId::parse("c:1"));
        assert_eq!(from_str::<Owner>(&format!("\"{owner}\"")).unwrap(), owner.parse().unwrap());
        assert_eq!(from_str::<Token>("7").unwrap(), Token::new(7).unwrap());
        assert_eq!(from_str::<Access>("\"write\"").unwrap(), Access::Write);
    }

    #[test]
    fn what_is_no_id_and_no_token_is_refused_with_its_value() {
        let told = from_str::<Owner>("\"seven\"").unwrap_err().to_string();
        assert!(told.contains("\"seven\" is no owner"), "{told}");
        let told = from_str::<Token>("0").unwrap_err().to_string();
        assert!(told.contains("invalid value: integer `0`, expected a token"), "{told}");
        let told = from_str::<Access>("\"both\"").unwrap_err().to_string();
        assert!(told.contains("invalid value: string \"both\", expected `read`"), "{told}");
        assert!(from_str::<HoldId>("\"\"").is_err());
    }

    #[test]
    fn causes_are_tagged_by_their_kind() {
        let text: Arc<str> = "refused".into();
        let within = MS(50);
        for (cause, json) in [
            (Cause::Unreachable(text.clone()), json!({ "kind": "unreachable", "text": "refused" })),
            (Cause::TimedOut(MS(200)), json!({ "kind": "timed_out", "after_ms": 200 })),
            (Cause::Broken(text.clone()), json!({ "kind": "broken", "text": "refused" })),
            (Cause::Rejected(text), json!({ "kind": "rejected", "text": "refused" })),
            (Cause::Duplicate("a:1".into()), json!({ "kind": "duplicate", "of": "a:1" })),
            (
                Cause::Quarantined(quarantined(Quarantine::ClockMoved(MS(700)))),
                json!({
                    "kind": "quarantined", "why": "clock_moved", "by_ms": 700, "left_ms": 9_000,
                }),
            ),
            (
                Cause::Unacknowledged { acknowledged: 1, needed: 2, within },
                json!({
                    "kind": "unacknowledged", "acknowledged": 1, "needed": 2, "within_ms": 50,
                }),
            ),
            (Cause::Unheard, json!({ "kind": "unheard" })),
        ] {
            written(&cause, &json);
        }
        written(&Quarantine::Young, &json!({ "why": "young" }));
    }

    #[test]
    fn an_inspection_has_what_a_majority_says_and_what_each_voter_says() {
        let view = |voter: &str, holder| VoterView {
            voter: voter.into(),
            side: None,
            holder,
            queue: vec![waiting()],
            token: Token::new(7),
            quarantine: None,
        };
        let mut voters = vec![view("a:1", Ok(Some(held()))), view("b:1", Ok(Some(held())))];
        voters.push(VoterView {
            quarantine: Some(quarantined(Quarantine::Restarted)),
            queue: Vec::new(),
            token: None,
            ..view("c:1", Err(Cause::Unheard))
        });
        let holder = json!({
            "hold": NAMED, "client_name": "web-1.7", "count": 2, "ttl_ms": 1_500,
        });
        let queue = json!([{
            "place": "c:2", "client_name": null, "ticket": 7, "ttl_ms": 2,
        }]);
        let restarted = json!({ "why": "restarted", "left_ms": 9_000 });
        let heard = |voter| {
            json!({
                "voter": voter, "holder": holder, "queue": queue, "token": 7, "quarantine": null,
            })
        };
        let unheard = json!({
            "voter": "c:1", "error": { "kind": "unheard" }, "queue": [], "token": null,
            "quarantine": restarted,
        });
        written(
            &Inspection { voters },
            &json!({
                "is_free": false, "holder": holder, "queue": queue, "token": 7,
                "voters": [heard("a:1"), heard("b:1"), unheard],
            }),
        );
        written(&Holder { ttl: None, ..held() }, &{
            json!({ "hold": NAMED, "client_name": "web-1.7", "count": 2, "ttl_ms": null })
        });
        let free = VoterView { queue: Vec::new(), token: None, ..view("a:1", Ok(None)) };
        written(&free, &{
            let (holder, token) = (Value::Null, Value::Null);
            json!({
                "voter": "a:1", "holder": holder, "queue": [], "token": token, "quarantine": null,
            })
        });
    }

    #[test]
    fn an_inspection_of_a_read_write_lock_says_how_it_is_held() {
        let state = RwState {
            writer: None,
            readers: vec![Reader { hold: HoldId::parse("c:1"), ttl: MS(5) }],
            waiting_writers: vec![waiting()],
            waiting_readers: Vec::new(),
            token: Token::new(7),
        };
        let view = |state| RwView { voter: "a:1".into(), side: None, state, quarantine: None };
        let readers = json!([{ "hold": "c:1", "client_name": null, "ttl_ms": 5 }]);
        let writers = json!([{
            "place": "c:2", "client_name": null, "ticket": 7, "ttl_ms": 2,
        }]);
        let seen = json!({
            "writer": null, "readers": readers, "waiting_writers": writers, "waiting_readers": [],
            "token": 7,
        });
        written(
            &RwInspection { voters: vec![view(Ok(state))] },
            &json!({
                "is_free": false, "mode": "read", "writer": null, "readers": readers,
                "waiting_writers": writers, "waiting_readers": [], "token": 7,
                "voters": [{ "voter": "a:1", "state": seen, "quarantine": null }],
            }),
        );
        written(&view(Err(Cause::Unheard)), &{
            json!({ "voter": "a:1", "error": { "kind": "unheard" }, "quarantine": null })
        });
    }

    #[test]
    fn an_inspection_of_a_semaphore_says_who_has_which_permits() {
        let holder = PermitHolder { hold: HoldId::parse("c:1"), slots: vec![0, 2], ttl: MS(5) };
        let state =
            SemaphoreState { permits: Some(4), holders: vec![holder], queue: vec![waiting()] };
        let view =
            |state| SemaphoreView { voter: "a:1".into(), side: None, state, quarantine: None };
        let holders = json!([{ "hold": "c:1", "client_name": null, "slots": [0, 2], "ttl_ms": 5 }]);
        let queue = json!([{
            "place": "c:2", "client_name": null, "ticket": 7, "ttl_ms": 2,
        }]);
        let seen = json!({ "permits": 4, "holders": holders, "queue": queue });
        written(
            &SemaphoreInspection { asked: 5, voters: vec![view(Ok(state))] },
            &json!({
                "permits": 4, "free": 2, "holders": holders, "queue": queue,
                "voters": [{ "voter": "a:1", "state": seen, "quarantine": null }],
            }),
        );
        written(&view(Err(Cause::Unheard)), &{
            json!({ "voter": "a:1", "error": { "kind": "unheard" }, "quarantine": null })
        });
    }
}
