//! What the voters say about locks.

use std::time::Duration;

use futures::{StreamExt, stream};
use quorate::{
    Error, FoundLocks, HoldId, Holder, HolderKind, LockKind, LockState, LockView, Quorate, Waiting,
};
use serde_json::{Value, json};

use crate::{
    exit::Failure,
    frame::{Frame, Tone, counted, quoted, time_or},
};

/// So many locks are asked for at once.
const TOGETHER: usize = 64;

/// A lock, and what was seen of it.
pub(super) struct LockSeen {
    pub(super) name: String,
    pub(super) kind: LockKind,
    pub(super) seen: Result<LockView, Error>,
}

/// Asks about each of them.
pub(super) async fn look(
    quorum: &Quorate,
    wanted: impl Iterator<Item = (String, LockKind)>,
) -> Vec<LockSeen> {
    let admin = quorum.admin();
    let asked = wanted.map(async |(name, kind)| {
        let seen = admin.look(kind, &name).await;
        LockSeen { name, kind, seen }
    });
    stream::iter(asked).buffered(TOGETHER).collect().await
}

impl LockSeen {
    /// What is to be shown of it, if somebody has it or waits for it.
    fn wanted(&self) -> Option<&LockView> {
        let is_wanted = |state: &LockState| !state.holders.is_empty() || !state.waiting.is_empty();
        let seen = self.seen.as_ref().ok()?;
        seen.voters
            .iter()
            .filter_map(|view| view.state.as_ref().ok())
            .any(is_wanted)
            .then_some(seen)
    }

    pub(super) fn json(&self) -> Value {
        let Self { name, kind, seen } = self;
        match seen {
            Ok(seen) => {
                let mut json = json!(seen);
                json["agree"] = json!(agree(seen));
                if let Some(free) = seen.free() {
                    json["free"] = json!(free);
                }
                json
            }
            Err(error) => json!({ "name": name, "kind": kind, "error": error.to_string() }),
        }
    }
}

/// The locks of one name; those that nobody wants are not shown where another is.
pub(super) fn show(frame: &mut Frame, locks: &[LockSeen]) {
    for error in locks.iter().filter_map(|lock| lock.seen.as_ref().err()) {
        frame.line(Tone::Bad, quoted(&error.to_string()));
    }
    for (place, seen) in locks.iter().filter_map(LockSeen::wanted).enumerate() {
        if place > 0 {
            frame.blank();
        }
        show_lock(frame, seen);
    }
    if locks.iter().all(|lock| lock.seen.is_ok() && lock.wanted().is_none()) {
        let name = quoted(&locks[0].name);
        frame.line(Tone::Good, format!("`{name}`: free, and nobody waits"));
    }
}

/// Whether every voter answered, and all the same.
fn agree(seen: &LockView) -> bool {
    let mut said = seen.voters.iter().map(|view| {
        let LockState { holders, waiting, .. } = view.state.as_ref().ok()?;
        let holders = holders.iter().map(|held| (&held.hold, held.count, &held.slots));
        // Each voter has its own order of readers: by when they end there.
        let mut holders: Vec<_> = holders.collect();
        holders.sort_unstable();
        Some((holders, waiting.iter().map(|waiting| &waiting.place).collect::<Vec<_>>()))
    });
    let first = said.next().flatten();
    first.is_some() && said.all(|other| other == first)
}

/// The holder that excludes all others.
fn alone(holders: &[Holder]) -> Option<&Holder> {
    holders.first().filter(|held| !matches!(held.kind, HolderKind::Read | HolderKind::Permit))
}

fn taken(holders: &[Holder]) -> usize {
    holders.iter().map(|held| held.slots.len()).sum()
}

/// Until the last of them ends.
fn left(holders: &[Holder]) -> String {
    let last = holders.iter().max_by_key(|held| held.ttl.unwrap_or(Duration::MAX));
    last.map_or_else(|| "-".into(), |held| time_or(held.ttl, "no expiry"))
}

fn number(number: Option<impl ToString>) -> String {
    number.map_or_else(|| "-".into(), |number| number.to_string())
}

/// `web-1:4711`; the hold where that is not known.
fn client(hold: &HoldId) -> String {
    quoted(hold.client_name().unwrap_or(hold.as_str()))
}

/// As text that a terminal shows as it is.
fn whose(hold: &HoldId) -> String {
    quoted(hold.as_str())
}

/// `2 of 5 permits taken`; `2 permits taken` where no server says how many there are.
fn permits(seen: &LockView) -> String {
    let taken = taken(&seen.holders);
    match seen.permits {
        Some(permits) => format!("{taken} of {permits} permits taken"),
        None => format!("{taken} permits taken"),
    }
}

fn summary(seen: &LockView) -> String {
    match (alone(&seen.holders), seen.kind) {
        (Some(held), _) => {
            let how = if held.kind == HolderKind::Write { "written" } else { "held" };
            let left = time_or(held.ttl, "ever");
            format!("{how} by {} for {left} more", client(&held.hold))
        }
        (None, LockKind::Semaphore) => permits(seen),
        (None, _) if !seen.holders.is_empty() => format!("read by {}", seen.holders.len()),
        (None, _) if seen.is_free => "free".into(),
        (None, _) => "nobody has a majority".into(),
    }
}

fn show_lock(frame: &mut Frame, seen: &LockView) {
    let voters = seen.voters.len();
    let heading = format!("{} `{}`: {}", seen.kind, quoted(&seen.name), summary(seen));
    frame.line(Tone::Heading, heading);
    let answered = seen.voters.iter().filter(|view| view.state.is_ok()).count();
    let (tone, text) = match agree(seen) {
        true => (Tone::Good, format!("all {voters} voters agree")),
        false if answered == voters => (Tone::Doubtful, "the voters do not agree".into()),
        false => (Tone::Doubtful, format!("{answered} of {voters} voters answered")),
    };
    frame.line(tone, text);
    // What identifies the hold that a majority has.
    if let Some(Holder { hold, count, .. }) = alone(&seen.holders) {
        let count = count.map_or_else(String::new, |count| format!(", count {count}"));
        let text = format!("hold {}{count}, token {}", whose(hold), number(seen.token));
        frame.line(Tone::Plain, text);
    }
    show_voters(frame, seen);
    for held in seen.holders.iter().filter(|held| alone(&seen.holders) != Some(held)) {
        let (whose, left) = (whose(&held.hold), time_or(held.ttl, ""));
        let slots: Vec<_> = held.slots.iter().map(ToString::to_string).collect();
        let has = match held.kind {
            HolderKind::Permit => format!("has permit {}", slots.join(", ")),
            HolderKind::Read => "reads".into(),
            _ => "has a majority too".into(),
        };
        frame.line(Tone::Plain, format!("  {has} for {left} more: {whose}"));
    }
    for (place, Waiting { place: hold, kind, ticket, ttl, .. }) in seen.waiting.iter().enumerate() {
        let (whose, kept) = (whose(hold), time_or(Some(*ttl), ""));
        let (number, wants) = (place + 1, wants(*kind));
        let text = format!("  {number}. waits{wants} for {kept} more: {whose}, ticket {ticket}");
        frame.line(Tone::Plain, text);
    }
    if let Some(leader) = &seen.leader {
        let said = leader.text().map_or_else(|| format!("{} bytes", leader.value().len()), quoted);
        frame.line(Tone::Plain, format!("  the leader says: {said}"));
    }
}

/// Where some wait for other than others do.
fn wants(kind: HolderKind) -> &'static str {
    match kind {
        HolderKind::Write => " to write",
        HolderKind::Read => " to read",
        _ => "",
    }
}

/// A row for each voter. The cause why one did not answer stands behind the narrow columns.
fn show_voters(frame: &mut Frame, seen: &LockView) {
    let headings = match seen.kind {
        LockKind::Semaphore => ["VOTER", "LEFT", "TAKEN", "PERMITS", "HOLDERS", "QUEUE"],
        LockKind::RwLock => ["VOTER", "LEFT", "READERS", "TOKEN", "WRITTEN BY", "QUEUE"],
        _ => ["VOTER", "LEFT", "COUNT", "TOKEN", "HELD BY", "QUEUE"],
    };
    let rows = seen.voters.iter().map(|view| {
        let voter = quoted(&view.voter);
        let unknown = || "?".to_owned();
        let LockState { holders, waiting, token, permits, .. } = match &view.state {
            Ok(state) => state,
            Err(cause) => {
                let cause = quoted(&cause.to_string());
                let row = vec![voter, unknown(), unknown(), unknown(), cause, String::new()];
                return (Tone::Bad, row);
            }
        };
        let by = || alone(holders).map_or_else(|| "nobody".into(), |held| whose(&held.hold));
        let reads = || holders.iter().filter(|held| held.kind == HolderKind::Read).count();
        let [count, token, by] = match seen.kind {
            LockKind::Semaphore => {
                [taken(holders).to_string(), number(*permits), holders.len().to_string()]
            }
            LockKind::RwLock => [reads().to_string(), number(*token), by()],
            _ => [number(alone(holders).and_then(|held| held.count)), number(*token), by()],
        };
        let waits = |waiting: &Waiting| format!("{}{}", whose(&waiting.place), wants(waiting.kind));
        let queue = waiting.iter().map(waits).collect::<Vec<_>>().join(", ");
        let tone = if view.quarantine.is_some() { Tone::Doubtful } else { Tone::Plain };
        (tone, vec![voter, left(holders), count, token, by, queue])
    });
    frame.table(&headings, &rows.collect::<Vec<_>>());
}

/// All locks that were found, a line for each.
pub(super) fn show_found(
    frame: &mut Frame,
    found: &FoundLocks,
    locks: &[LockSeen],
    shows_all: bool,
) {
    let rows: Vec<_> = locks.iter().filter_map(|lock| found_row(lock, shows_all)).collect();
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
fn found_row(lock: &LockSeen, shows_all: bool) -> Option<(Tone, Vec<String>)> {
    let (name, kind) = (quoted(&lock.name), lock.kind.to_string());
    if let Err(error) = &lock.seen {
        // Without the causes of the voters: those are shown with the name.
        let what = quoted(&Failure::from(error.clone()).what);
        let row = vec![name, kind, "?".into(), "?".into(), what, String::new()];
        return Some((Tone::Bad, row));
    }
    let seen = lock.wanted()?;
    let by = match (alone(&seen.holders), seen.kind) {
        (Some(held), _) if shows_all => whose(&held.hold),
        (Some(held), _) => client(&held.hold),
        (None, LockKind::Semaphore) => permits(seen),
        (None, _) if !seen.holders.is_empty() => counted(seen.holders.len(), "reader"),
        (None, _) if seen.is_free => "nobody".into(),
        (None, _) => "no majority".into(),
    };
    let waiting = seen.waiting.len().to_string();
    Some((Tone::Plain, vec![name, kind, left(&seen.holders), waiting, by, number(seen.token)]))
}
