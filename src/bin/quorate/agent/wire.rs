//! What an agent and its clients say to each other: a line of JSON each, as in
//! `docs/any-language.md`.

use std::{fmt::Display, time::Duration};

use quorate::{Error, ErrorKind, Firing, Observed};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::lock::{self, LockKind};

/// The version of the protocol.
const VERSION: u64 = 1;

/// A line of a client after the first.
pub(super) enum Line {
    /// The answer to the ping of this number.
    Pong(u64),
    /// A request with its id.
    // The id is read first, so that a request which cannot be understood gets an answer, and the
    // connection goes on.
    Call(u64, Result<Call, Refusal>),
}

// A misspelt field is refused everywhere: `"laese_ms":5000` would take the default lease.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Call {
    Acquire(Box<Acquire>),
    /// Ends a call that waits, or an observer.
    Cancel {
        request: u64,
    },
    Release {
        hold: u64,
        /// The firing is done.
        #[serde(default)]
        done: bool,
    },
    Extend {
        hold: u64,
        lease_ms: u64,
    },
    KeepFor {
        hold: u64,
        time_ms: u64,
    },
    Inspect {
        kind: KindName,
        name: String,
    },
    Observe {
        name: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Acquire {
    pub(super) kind: KindName,
    pub(super) name: String,
    wait_ms: Option<u64>,
    lease_ms: Option<u64>,
    hold_at_most_ms: Option<u64>,
    note: Option<String>,
    #[serde(default)]
    pub(super) on_exit: OnExit,
    permits: Option<u32>,
    value: Option<String>,
    firing: Option<u64>,
    keep_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KindName {
    Mutex,
    Fair,
    Read,
    Write,
    Semaphore,
    Election,
    Once,
}

impl KindName {
    pub(super) fn lock(self) -> quorate::LockKind {
        match self {
            Self::Mutex | Self::Fair => quorate::LockKind::Mutex,
            Self::Read | Self::Write => quorate::LockKind::RwLock,
            Self::Semaphore => quorate::LockKind::Semaphore,
            Self::Election => quorate::LockKind::Election,
            Self::Once => quorate::LockKind::Once,
        }
    }
}

/// What happens to a lock when its process dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnExit {
    #[default]
    Release,
    /// It stays until the deadline: children of the process may work on.
    Expire,
}

impl Acquire {
    pub(super) fn lock_kind(&self) -> Result<LockKind<'_>, Refusal> {
        let Self { kind, permits, value, firing, keep_ms, .. } = self;
        Ok(match (kind, permits, value, firing, keep_ms) {
            (KindName::Mutex, None, None, None, None) => LockKind::Mutex,
            (KindName::Fair, None, None, None, None) => LockKind::Fair,
            (KindName::Read, None, None, None, None) => LockKind::Read,
            (KindName::Write, None, None, None, None) => LockKind::Write,
            (KindName::Semaphore, Some(permits), None, None, None) => LockKind::Permit(*permits),
            (KindName::Election, None, Some(value), None, None) => LockKind::Lead(value),
            (KindName::Once, None, None, Some(firing), keep) => {
                LockKind::Once(Firing::from(*firing), keep.map(Duration::from_millis))
            }
            _ => {
                let why = "a semaphore has `permits`, an election has a `value`, `once` has a \
                           `firing` and maybe `keep_ms`, and no other kind has these";
                return Err(Refusal::protocol(why));
            }
        })
    }

    pub(super) fn request(&self) -> lock::Request<'_> {
        let time = |ms: Option<u64>| ms.map(Duration::from_millis);
        let (wait, lease) = (time(self.wait_ms), time(self.lease_ms));
        let (hold_at_most, note) = (time(self.hold_at_most_ms), self.note.as_deref());
        lock::Request { wait, lease, hold_at_most, note }
    }
}

/// Why a call failed.
#[derive(Debug, Serialize)]
pub(super) struct Refusal {
    kind: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_left_ms: Option<u64>,
}

impl Refusal {
    pub(super) fn new(kind: &str, text: impl Display) -> Self {
        let (kind, text) = (kind.to_owned(), text.to_string());
        Self { kind, text, retry_after_ms: None, holder: None, lease_left_ms: None }
    }

    /// The line cannot be understood.
    pub(super) fn protocol(why: impl Display) -> Self {
        Self::new("protocol", why)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let holder =
            error.holder().map(|hold| hold.client_name().unwrap_or_else(|| hold.to_string()));
        Self {
            retry_after_ms: error.retry_after().map(millis_up),
            lease_left_ms: error.lease_left().map(millis_up),
            holder,
            ..Self::new(&name_of(error.kind()), error)
        }
    }
}

/// The kind of an error in the protocol, such as `no_quorum`.
fn name_of(kind: ErrorKind) -> String {
    // Made of the name in the library, so that a new kind has its name at once.
    let mut name = String::new();
    for sign in format!("{kind:?}").chars() {
        if sign.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(sign.to_ascii_lowercase());
    }
    name
}

// Rounded up: a client that waits for this time and asks again is not too early.
fn millis_up(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// A moment in whole microseconds.
// Rounded down: a deadline may be early, and never late (law 2).
pub(super) fn micros(moment: Duration) -> u64 {
    u64::try_from(moment.as_micros()).unwrap_or(u64::MAX)
}

/// Fails if the client speaks another version of the protocol.
pub(super) fn check_greeting(line: &[u8]) -> Result<(), Refusal> {
    let fields = read_fields(line)?;
    match fields.get("v").and_then(Value::as_u64) {
        Some(VERSION) if fields.len() == 1 => Ok(()),
        Some(VERSION) => {
            let unknown = fields.keys().find(|name| *name != "v").map_or("", String::as_str);
            Err(Refusal::protocol(format!("unknown field `{unknown}` beside `v`")))
        }
        Some(other) => {
            let why = format!("this agent speaks version {VERSION}, and not {other}");
            Err(Refusal::protocol(why))
        }
        None => Err(Refusal::protocol(r#"the first line names the version: {"v":1}"#)),
    }
}

/// The answer to a client's first line.
pub(super) fn greeting(now: Duration) -> Value {
    // With the clock of the deadlines: in another time namespace the client's clock shows another
    // time, and the client gives up.
    json!({ "v": VERSION, "agent": env!("CARGO_PKG_VERSION"), "now_us": micros(now) })
}

/// The last line of an agent that cannot go on.
pub(super) fn no_greeting(why: &Refusal) -> Value {
    json!({ "v": VERSION, "error": why })
}

pub(super) fn read(line: &[u8]) -> Result<Line, Refusal> {
    let mut fields = read_fields(line)?;
    if let (1, Some(number)) = (fields.len(), fields.get("pong").and_then(Value::as_u64)) {
        return Ok(Line::Pong(number));
    }
    let id = fields.remove("id").as_ref().and_then(Value::as_u64);
    let id = id.ok_or_else(|| Refusal::protocol("a request has an `id`, which is a number"))?;
    let call = serde_json::from_value(Value::Object(fields)).map_err(Refusal::protocol);
    Ok(Line::Call(id, call))
}

fn read_fields(line: &[u8]) -> Result<Map<String, Value>, Refusal> {
    serde_json::from_slice(line)
        .map_err(|error| Refusal::protocol(format!("a line is an object of JSON: {error}")))
}

pub(super) fn answer(id: u64, answer: Result<Value, Refusal>) -> Value {
    match answer {
        Ok(value) => json!({ "id": id, "ok": value }),
        Err(why) => json!({ "id": id, "error": why }),
    }
}

pub(super) fn ping(number: u64, deadlines: &[(u64, u64)]) -> Value {
    json!({ "event": "ping", "n": number, "deadlines": deadlines })
}

pub(super) fn ending(hold: u64) -> Value {
    json!({ "event": "ending", "hold": hold })
}

pub(super) fn lost(hold: u64, why: &Refusal) -> Value {
    json!({ "event": "lost", "hold": hold, "error": why })
}

pub(super) fn leader(request: u64, observed: Observed) -> Value {
    let leader = match observed {
        Observed::Leader(leader) => json!({
            "hold": leader.hold(),
            "token": leader.token(),
            "value": String::from_utf8_lossy(leader.value()),
        }),
        Observed::Unknown(error) => {
            let error = Refusal::from(error);
            return json!({ "event": "leader", "request": request, "error": error });
        }
        _ => Value::Null,
    };
    json!({ "event": "leader", "request": request, "leader": leader })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        match read(line.as_bytes()) {
            Ok(Line::Call(_, Err(why))) | Err(why) => why.text,
            _ => panic!("{line} is understood"),
        }
    }

    #[test]
    fn what_is_not_known_is_named() {
        for (line, named) in [
            (r#"{"id":1,"op":"acquire","kind":"mutex","name":"a","nmae":1}"#, "`nmae`"),
            (r#"{"id":1,"op":"release","hold":1,"force":true}"#, "`force`"),
            (r#"{"id":1,"op":"clear","name":"a"}"#, "`clear`"),
            (r#"{"id":1,"op":"acquire","kind":"spin","name":"a"}"#, "`spin`"),
            (r#"{"id":1,"op":"release"}"#, "`hold`"),
            (r#"{"op":"release","hold":1}"#, "`id`"),
            (r#"{"id":"1","op":"release","hold":1}"#, "`id`"),
            (r#"{"pong":1,"op":"release"}"#, "`id`"),
            ("[1]", "an object"),
            ("", "an object"),
        ] {
            let text = refused(line);
            assert!(text.contains(named), "{line}: {text}");
        }
        for (line, named) in [
            (r#"{"v":2}"#, "version 1, and not 2"),
            (r#"{"v":2,"new":1}"#, "version 1, and not 2"),
            (r#"{"v":1,"new":1}"#, "`new`"),
            (r#"{"id":1}"#, "names the version"),
            ("GET / HTTP/1.1", "an object"),
        ] {
            let text = check_greeting(line.as_bytes()).expect_err("it is refused").text;
            assert!(text.contains(named), "{line}: {text}");
        }
        assert!(check_greeting(br#"{"v":1}"#).is_ok());
    }

    #[test]
    fn each_kind_has_its_own_fields() {
        let of = |more: &str| {
            let line = format!(r#"{{"id":7,"op":"acquire","name":"a",{more}}}"#);
            match read(line.as_bytes()) {
                Ok(Line::Call(7, Ok(Call::Acquire(acquire)))) => {
                    acquire.lock_kind().map(|kind| format!("{kind:?}")).map_err(|why| why.text)
                }
                _ => panic!("{line}"),
            }
        };
        assert_eq!(of(r#""kind":"mutex""#).as_deref(), Ok("Mutex"));
        assert_eq!(of(r#""kind":"semaphore","permits":3"#).as_deref(), Ok("Permit(3)"));
        assert_eq!(of(r#""kind":"election","value":"b""#).as_deref(), Ok(r#"Lead("b")"#));
        assert!(of(r#""kind":"once","firing":7"#).is_ok_and(|kind| kind.starts_with("Once(")));
        for wrong in [
            r#""kind":"mutex","permits":3"#,
            r#""kind":"semaphore""#,
            r#""kind":"election","value":"b","firing":1"#,
            r#""kind":"once","keep_ms":1"#,
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn kinds_of_errors_are_called_as_in_the_library() {
        assert_eq!(name_of(ErrorKind::NoQuorum), "no_quorum");
        assert_eq!(name_of(ErrorKind::Busy), "busy");
        assert_eq!(millis_up(Duration::from_micros(1_001)), 2);
        assert_eq!(micros(Duration::from_nanos(1_999)), 1);
    }
}
