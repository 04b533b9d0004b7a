//! What the voters say about locks.

use futures::future::join_all;
use quorate::{
    Error, FoundKind, FoundLock, FoundLocks, HoldId, Quorate, Token,
    inspection::{Holder, Inspection, RwInspection, SemaphoreInspection, Waiting},
};
use serde_json::{Value, json};

use super::{
    election::{ElectionSeen, look_at_election, said},
    parts::{client, heading, queue, row, show_queue, unanswered, whose},
    semaphore,
};
use crate::{
    exit::Failure,
    frame::{Frame, Tone, counted, quoted, time_or},
    lock::any_semaphore,
};

/// So many locks are asked for at once.
const TOGETHER: usize = 32;

/// A name, and which of its locks somebody wants to see.
#[expect(clippy::struct_excessive_bools, reason = "one for each kind of lock")]
pub(super) struct LooksFor {
    name: String,
    mutex: bool,
    rw_lock: bool,
    semaphore: bool,
    election: bool,
}

impl LooksFor {
    pub(super) fn all(name: &str) -> Self {
        Self { name: name.to_owned(), mutex: true, rw_lock: true, semaphore: true, election: true }
    }

    /// Each name once.
    pub(super) fn found(locks: &[FoundLock]) -> Vec<Self> {
        let mut wanted: Vec<Self> = Vec::new();
        for FoundLock { name, kind, .. } in locks {
            if wanted.last().is_none_or(|last| last.name != *name) {
                let name = name.clone();
                wanted.push(Self {
                    name,
                    mutex: false,
                    rw_lock: false,
                    semaphore: false,
                    election: false,
                });
            }
            let Some(last) = wanted.last_mut() else { continue };
            last.mutex |= *kind == FoundKind::Mutex;
            last.rw_lock |= *kind == FoundKind::RwLock;
            last.semaphore |= *kind == FoundKind::Semaphore;
            last.election |= *kind == FoundKind::Election;
        }
        wanted
    }
}

/// The locks of one name.
pub(super) struct LockSeen {
    name: String,
    /// What was asked for.
    mutex: Option<Result<Inspection, Error>>,
    rw_lock: Option<Result<RwInspection, Error>>,
    semaphore: Option<Result<SemaphoreInspection, Error>>,
    election: Option<Result<ElectionSeen, Error>>,
}

/// Asks about each of them.
pub(super) async fn look(quorum: &Quorate, wanted: Vec<LooksFor>) -> Vec<LockSeen> {
    let mut seen = Vec::with_capacity(wanted.len());
    for some in wanted.chunks(TOGETHER) {
        let asked = some.iter().map(async |wanted| {
            let LooksFor { name, mutex, rw_lock, semaphore, election } = wanted;
            let (of_mutex, of_rw_lock) = (quorum.mutex(name), quorum.rw_lock(name));
            let of_semaphore = any_semaphore(quorum, name);
            let (mutex, rw_lock, semaphore, election) = tokio::join!(
                async { if *mutex { Some(of_mutex.inspect().await) } else { None } },
                async { if *rw_lock { Some(of_rw_lock.inspect().await) } else { None } },
                async { if *semaphore { Some(of_semaphore.inspect().await) } else { None } },
                async { if *election { Some(look_at_election(quorum, name).await) } else { None } }
            );
            LockSeen { name: name.clone(), mutex, rw_lock, semaphore, election }
        });
        seen.extend(join_all(asked).await);
    }
    seen
}

impl LockSeen {
    /// Whether a majority answered.
    pub(super) fn is_known(&self) -> bool {
        self.errors().next().is_none()
    }

    fn errors(&self) -> impl Iterator<Item = &Error> {
        let mutex = self.mutex.as_ref().and_then(|seen| seen.as_ref().err());
        let rw_lock = self.rw_lock.as_ref().and_then(|seen| seen.as_ref().err());
        let semaphore = self.semaphore.as_ref().and_then(|seen| seen.as_ref().err());
        let election = self.election.as_ref().and_then(|seen| seen.as_ref().err());
        mutex.into_iter().chain(rw_lock).chain(semaphore).chain(election)
    }

    pub(super) fn json(&self) -> Value {
        let mut json = json!({ "name": self.name });
        if let Some(seen) = &self.mutex {
            json["mutex"] = match seen {
                Ok(seen) => with_agreement(json!(seen), agree(seen)),
                Err(error) => json!({ "error": error.to_string() }),
            };
        }
        if let Some(seen) = &self.rw_lock {
            json["rw_lock"] = match seen {
                Ok(seen) => with_agreement(json!(seen), agree_rw(seen)),
                Err(error) => json!({ "error": error.to_string() }),
            };
        }
        if let Some(seen) = &self.semaphore {
            json["semaphore"] = match seen {
                Ok(seen) => with_agreement(json!(seen), semaphore::agree(seen)),
                Err(error) => json!({ "error": error.to_string() }),
            };
        }
        if let Some(seen) = &self.election {
            json["election"] = match seen {
                Ok(seen) => {
                    let mut json = with_agreement(json!(seen.inspection), agree(&seen.inspection));
                    json["value"] = json!(seen.leader.as_ref().map(said));
                    json
                }
                Err(error) => json!({ "error": error.to_string() }),
            };
        }
        json
    }

    /// Its locks; those that nobody wants are not shown where another is.
    pub(super) fn show(&self, frame: &mut Frame) {
        let name = quoted(&self.name);
        for error in self.errors() {
            frame.line(Tone::Bad, quoted(&error.to_string()));
        }
        let mutex = self.mutex.as_ref().and_then(|seen| seen.as_ref().ok());
        let semaphore = self.semaphore.as_ref().and_then(|seen| seen.as_ref().ok());
        let semaphore = semaphore.filter(|seen| semaphore::is_wanted(seen));
        let rw_lock = self.rw_lock.as_ref().and_then(|seen| seen.as_ref().ok());
        let election = self.election.as_ref().and_then(|seen| seen.as_ref().ok());
        let mutex = mutex.filter(|seen| is_wanted(seen));
        let rw_lock = rw_lock.filter(|seen| is_wanted_rw(seen));
        let election = election.filter(|seen| is_wanted(&seen.inspection));
        if let Some(seen) = mutex {
            show_mutex(frame, "mutex", &name, seen);
        }
        if let Some(seen) = rw_lock {
            if mutex.is_some() {
                frame.blank();
            }
            show_rw_lock(frame, &name, seen);
        }
        if let Some(seen) = semaphore {
            if mutex.is_some() || rw_lock.is_some() {
                frame.blank();
            }
            semaphore::show(frame, &name, seen);
        }
        if let Some(seen) = election {
            if mutex.is_some() || rw_lock.is_some() || semaphore.is_some() {
                frame.blank();
            }
            show_mutex(frame, "election", &name, &seen.inspection);
            if let Some(leader) = &seen.leader {
                frame.line(Tone::Plain, format!("  the leader says: {}", said(leader)));
            }
        }
        let is_free =
            mutex.is_none() && rw_lock.is_none() && semaphore.is_none() && election.is_none();
        if is_free && self.is_known() {
            frame.line(Tone::Good, format!("`{name}`: free, and nobody waits"));
        }
    }
}

fn with_agreement(mut json: Value, agree: bool) -> Value {
    json["agree"] = json!(agree);
    json
}

/// Whether every voter answered, and all the same.
fn agree(seen: &Inspection) -> bool {
    let mut holds = seen.voters.iter().map(|view| {
        let holder = view.holder.as_ref().ok()?;
        let holder = holder.as_ref().map(|holder| (&holder.hold, holder.count));
        Some((holder, view.queue.iter().map(|waiting| &waiting.place).collect::<Vec<_>>()))
    });
    let first = holds.next().flatten();
    first.is_some() && holds.all(|other| other == first)
}

fn agree_rw(seen: &RwInspection) -> bool {
    let mut holds = seen.voters.iter().map(|view| {
        let state = view.state.as_ref().ok()?;
        let writer = state.writer.as_ref().map(|writer| (&writer.hold, writer.count));
        let mut readers: Vec<_> = state.readers.iter().map(|reader| &reader.hold).collect();
        // Each voter has its own order: by when they end there.
        readers.sort_unstable();
        let places = |waiting: &'_ [Waiting]| -> Vec<HoldId> {
            waiting.iter().map(|waiting| waiting.place.clone()).collect()
        };
        Some((writer, readers, places(&state.waiting_writers), places(&state.waiting_readers)))
    });
    let first = holds.next().flatten();
    first.is_some() && holds.all(|other| other == first)
}

fn is_wanted(seen: &Inspection) -> bool {
    let is_free = |view: &quorate::inspection::VoterView| {
        matches!(view.holder, Ok(None)) && view.queue.is_empty()
    };
    !seen.voters.iter().filter(|view| view.holder.is_ok()).all(is_free)
}

fn is_wanted_rw(seen: &RwInspection) -> bool {
    let mut states = seen.voters.iter().filter_map(|view| view.state.as_ref().ok());
    !states.all(|state| {
        state.writer.is_none()
            && state.readers.is_empty()
            && state.waiting_writers.is_empty()
            && state.waiting_readers.is_empty()
    })
}

fn holder(holder: &Holder) -> String {
    whose(&holder.hold)
}

fn for_more(held: &Holder) -> String {
    let client = client(&held.hold);
    format!("{client} for {} more", time_or(held.ttl, "ever"))
}

/// What identifies the hold that a majority has.
fn show_hold(frame: &mut Frame, held: Option<&Holder>, token: Option<Token>) {
    let Some(Holder { hold, count, .. }) = held else { return };
    let hold = quoted(hold.as_str());
    let token = token.map_or_else(|| "-".into(), |token| token.to_string());
    frame.line(Tone::Plain, format!("hold {hold}, count {count}, token {token}"));
}

/// A mutex, or an election.
fn show_mutex(frame: &mut Frame, kind: &str, name: &str, seen: &Inspection) {
    let held = seen.holder();
    let summary = match &held {
        Some(held) => format!("held by {}", for_more(held)),
        None if seen.is_free() => "free".into(),
        None => "nobody has a majority".into(),
    };
    frame.line(Tone::Heading, format!("{kind} `{name}`: {summary}"));
    let answered = seen.voters.iter().filter(|view| view.holder.is_ok()).count();
    let (tone, text) = heading(agree(seen), answered, seen.voters.len());
    frame.line(tone, text);
    show_hold(frame, held.as_ref(), seen.token());
    let rows: Vec<_> = seen
        .voters
        .iter()
        .map(|view| {
            let voter = quoted(&view.voter);
            let token = view.token.map_or_else(|| "-".into(), |token| token.to_string());
            let held = match &view.holder {
                Err(cause) => return (Tone::Bad, unanswered(voter, 3, cause)),
                Ok(held) => held.as_ref(),
            };
            let [by, count, left] = held.map_or_else(
                || ["nobody", "-", "-"].map(str::to_owned),
                |held| [holder(held), held.count.to_string(), time_or(held.ttl, "no expiry")],
            );
            let tone = if view.quarantine.is_some() { Tone::Doubtful } else { Tone::Plain };
            (tone, row([voter, left, count, token, by, queue(&view.queue)]))
        })
        .collect();
    frame.table(&["VOTER", "LEFT", "COUNT", "TOKEN", "HELD BY", "QUEUE"], &rows);
    show_queue(frame, "waits", &seen.queue());
}

fn show_rw_lock(frame: &mut Frame, name: &str, seen: &RwInspection) {
    let (writer, readers) = (seen.writer(), seen.readers());
    let summary = match &writer {
        Some(writer) => format!("written by {}", for_more(writer)),
        None if !readers.is_empty() => format!("read by {}", readers.len()),
        None if seen.is_free() => "free".into(),
        None => "nobody has a majority".into(),
    };
    frame.line(Tone::Heading, format!("read/write lock `{name}`: {summary}"));
    let answered = seen.voters.iter().filter(|view| view.state.is_ok()).count();
    let (tone, text) = heading(agree_rw(seen), answered, seen.voters.len());
    frame.line(tone, text);
    show_hold(frame, writer.as_ref(), seen.token());
    let rows: Vec<_> = seen
        .voters
        .iter()
        .map(|view| {
            let voter = quoted(&view.voter);
            let state = match &view.state {
                Err(cause) => return (Tone::Bad, unanswered(voter, 3, cause)),
                Ok(state) => state,
            };
            let token = state.token.map_or_else(|| "-".into(), |token| token.to_string());
            let [by, left] = state.writer.as_ref().map_or_else(
                || ["nobody", "-"].map(str::to_owned),
                |writer| [holder(writer), time_or(writer.ttl, "no expiry")],
            );
            let waiting =
                [&state.waiting_writers, &state.waiting_readers].map(|waiting| queue(waiting));
            let [to_write, to_read] = waiting;
            let readers = state.readers.len().to_string();
            let tone = if view.quarantine.is_some() { Tone::Doubtful } else { Tone::Plain };
            (tone, row([voter, left, readers, token, by, to_write, to_read]))
        })
        .collect();
    let headings =
        ["VOTER", "LEFT", "READERS", "TOKEN", "WRITTEN BY", "WAIT TO WRITE", "WAIT TO READ"];
    frame.table(&headings, &rows);
    for reader in readers {
        let whose = whose(&reader.hold);
        let left = time_or(Some(reader.ttl), "");
        frame.line(Tone::Plain, format!("  reads for {left} more: {whose}"));
    }
    show_queue(frame, "waits to write", &seen.waiting_writers());
    show_queue(frame, "waits to read", &seen.waiting_readers());
}

/// All locks that were found, a line for each.
pub(super) fn show_found(
    frame: &mut Frame,
    found: &FoundLocks,
    locks: &[LockSeen],
    shows_all: bool,
) {
    let rows: Vec<_> = locks.iter().flat_map(|lock| found_rows(lock, shows_all)).collect();
    let more = if found.is_complete { "" } else { ", and there are more" };
    let count = counted(rows.len(), "lock");
    frame.line(Tone::Heading, format!("{count} held or waited for{more}"));
    for missing in &found.missing {
        frame.line(Tone::Doubtful, quoted(&format!("not looked for on {missing}")));
    }
    if !rows.is_empty() {
        let headings = ["LOCK", "KIND", "LEFT", "WAITING", "HELD BY", "TOKEN"];
        let columns = headings.len() - usize::from(!shows_all);
        frame.table(&headings[..columns], &rows);
    }
}

/// None of a lock that nobody has or waits for any more.
fn found_rows(lock: &LockSeen, shows_all: bool) -> Vec<(Tone, Vec<String>)> {
    let name = || quoted(&lock.name);
    let failed = |kind: &str, error: &Error| {
        // Without the causes of the voters: those are shown with the name.
        let what = quoted(&Failure::from(error.clone()).what);
        let texts = [name(), kind.into(), "?".into(), "?".into(), what, String::new()];
        (Tone::Bad, Vec::from(texts))
    };
    let holder = |held: &Holder| {
        let shown = if shows_all { whose } else { client };
        shown(&held.hold)
    };
    let nobody = |is_free| if is_free { "nobody" } else { "no majority" }.to_owned();
    let token = |token: Option<Token>| token.map_or_else(|| "-".into(), |at| at.to_string());
    let exclusive = |kind: &str, seen: Result<&Inspection, &Error>| match seen {
        Err(error) => Some(failed(kind, error)),
        Ok(seen) => is_wanted(seen).then(|| {
            let held = seen.holder();
            let by = held.as_ref().map_or_else(|| nobody(seen.is_free()), holder);
            let left = held.map_or_else(|| "-".into(), |held| time_or(held.ttl, "no expiry"));
            let waiting = seen.queue().len().to_string();
            (Tone::Plain, vec![name(), kind.into(), left, waiting, by, token(seen.token())])
        }),
    };
    let mutex = lock.mutex.as_ref().and_then(|seen| exclusive("mutex", seen.as_ref()));
    let election = lock
        .election
        .as_ref()
        .and_then(|seen| exclusive("election", seen.as_ref().map(|seen| &seen.inspection)));
    let rw_lock = lock.rw_lock.as_ref().and_then(|seen| match seen {
        Err(error) => Some(failed("read/write", error)),
        Ok(seen) => is_wanted_rw(seen).then(|| {
            let (writer, readers) = (seen.writer(), seen.readers());
            let by = match &writer {
                Some(writer) => holder(writer),
                None if readers.is_empty() => nobody(seen.is_free()),
                None => counted(readers.len(), "reader"),
            };
            let left = match writer {
                Some(writer) => time_or(writer.ttl, "no expiry"),
                None => time_or(readers.iter().map(|reader| reader.ttl).max(), "-"),
            };
            let waiting = seen.waiting_writers().len() + seen.waiting_readers().len();
            let (token, waiting) = (token(seen.token()), waiting.to_string());
            (Tone::Plain, vec![name(), "read/write".into(), left, waiting, by, token])
        }),
    });
    let semaphore = lock.semaphore.as_ref().and_then(|seen| match seen {
        Err(error) => Some(failed("semaphore", error)),
        Ok(seen) => semaphore::is_wanted(seen).then(|| semaphore::found_row(name(), seen)),
    });
    mutex.into_iter().chain(rw_lock).chain(semaphore).chain(election).collect()
}
