//! What is written down: a line of JSON for each event, in a file for each process. A line is
//! written at once, so that what a process saw outlives it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// What somebody saw or did. All times are in nanoseconds by `CLOCK_MONOTONIC`, which the processes
/// of a machine share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub at: u64,
    /// The process, the lock and the number of the task: `3.fair.0`. It does one thing at a time.
    pub who: String,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It asks for a lock from now on.
    Asked { lock: String },
    /// It was given locks, and may trust them for so long from now on. Tasks of one owner, `by`,
    /// share a hold.
    Got { locks: Vec<Share>, by: String, hold: String, left: u64 },
    /// It still trusts them, for so long from now on.
    Held { left: u64 },
    /// It gives them back.
    Left {},
    /// It does not trust them any more, and was told why.
    Lost { why: String },
    /// It does not trust them any more, and nobody said so.
    Mute {},
    /// It got no lock, or could not give it back, for a reason that troubles explain.
    Failed { why: String },
    /// It met what no trouble explains.
    Odd { why: String },
    /// The work of a firing begins.
    Works { lock: String, firing: u64 },
    /// A majority stores that this firing is done.
    Done { lock: String, firing: u64 },
    /// It was told that this firing is done already.
    Passed { lock: String, firing: u64 },
    /// An observer sees a leader with this token.
    Sees { lock: String, token: u64 },
    /// A process that was forked: whether it takes its parent's hold for its own.
    Forked { holds: bool },
    /// The places in a queue that stand on a majority, with their tickets.
    Looked { lock: String, places: BTreeMap<String, u64> },
    /// What befell somebody, until then.
    Trouble { kind: String, whom: String, until: u64 },
}

/// One lock of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    pub lock: String,
    pub mode: Mode,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// With this token.
    Alone(u64),
    Read,
    Slots(Vec<u32>),
}

/// Now, as events have it.
#[expect(clippy::disallowed_methods, reason = "processes that share no memory share this clock")]
pub fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned());
    1_000_000_000 * seconds + nanos
}

pub fn nanos(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// Where one process writes.
#[derive(Debug)]
pub struct History(Mutex<File>);

impl History {
    pub fn create(folder: &Path, process: &str) -> Self {
        let file = File::create(folder.join(format!("{process}.jsonl")));
        Self(Mutex::new(file.expect("the folder can be written")))
    }

    pub fn note(&self, at: u64, who: &str, what: What) {
        let event = Event { at, who: who.to_owned(), what };
        let line = serde_json::to_string(&event).expect("it can be written") + "\n";
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes()).expect("there is room");
    }
}

/// All events of a folder in the order of time. Of a process that was killed, the last line may be
/// cut off.
pub fn read(folder: &Path) -> Vec<Event> {
    let files = fs::read_dir(folder).expect("it is there").map(|file| file.expect("it is").path());
    let mut events = Vec::new();
    for file in files.filter(|file| file.extension().is_some_and(|end| end == "jsonl")) {
        let text = fs::read_to_string(&file).expect("it can be read");
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let parsed = whole.lines().map(serde_json::from_str::<Event>);
        events.extend(parsed.map(|event| event.expect("lines are whole")));
    }
    // What happened at one time stays in the order of its file.
    events.sort_by_key(|event| event.at);
    events
}
