//! `quorate status`: the state of the voters, and what they say about locks.

use std::{
    num::NonZeroUsize,
    time::{Duration, UNIX_EPOCH},
};

use clap::{Args, builder::NonEmptyStringValueParser};
use futures::{StreamExt, stream};
use quorate::{
    ClockOffset, Error, ErrorKind, FoundLocks, HoldId, Holder, HolderKind, LockKind, LockState,
    LockView, Persistence, Quorate, ServerInfo, ServerReport, SetStatus, Survey, Verdict,
    VoterReport, VoterStatus, VoterSurvey, Waiting,
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::{
    clock,
    console::{Code, Failure},
    lock::KINDS,
    screen::{self, Frame, Picture, Tone, counted, long, noted, quoted, time_or},
    setup::{self, Setup, VoterOptions, settle},
};

/// The format of `--json`. Further fields do not change the number.
const VERSION: u32 = 1;

/// Show the voters and the locks, or what each voter says about some locks
///
/// With names, each voter's answer about the mutex, the read/write lock, the semaphore, the
/// election and the job of that name: who holds it, for how much longer, with which token, who
/// waits, and which firing is done.
/// Without, how each server is set up and which locks are held or waited for; with -v in all
/// columns. To look for locks, the user of the servers needs the right +scan.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate status
  quorate status --watch invoice:42
  quorate status --match 'invoice:*' --limit 1000
  quorate status --json invoice:42 | jq -r '.locks[].holders[].hold'")]
pub(crate) struct StatusOptions {
    /// Names of locks
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    names: Vec<String>,

    /// Show it again and again, in place, until Ctrl-C
    #[arg(short, long)]
    watch: bool,

    /// The time between two looks of --watch
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "watch")]
    #[arg(value_parser = setup::parse_interval)]
    interval: Duration,

    /// Write JSON: one document, or with --watch one in each line
    #[arg(long)]
    json: bool,

    /// Look for locks with names like this: * is any text, ? any sign
    #[arg(long = "match", value_name = "PATTERN", default_value = "*", conflicts_with = "names")]
    pattern: String,

    /// Look for so many locks at most
    #[arg(long, value_name = "N", default_value = "100", conflicts_with = "names")]
    limit: NonZeroUsize,

    #[command(flatten)]
    voters: VoterOptions,
}

pub(crate) async fn run(options: StatusOptions, shows_all: bool) -> Result<Code, Failure> {
    let (setup, quorum) = (options.voters.setup()?, OnceCell::new());
    let shown = options.show(&setup, &quorum, shows_all).await;
    if let Some(quorum) = quorum.get() {
        let _ = quorum.close().await;
    }
    shown
}

/// All that is shown at one moment.
struct StatusSeen {
    /// `None` if locks were named.
    voters: Option<(Survey, FoundLocks)>,
    locks: Vec<LockSeen>,
}

impl StatusOptions {
    /// Shows one picture, or picture after picture.
    async fn show(
        &self,
        setup: &Setup,
        quorum: &OnceCell<Quorate>,
        shows_all: bool,
    ) -> Result<Code, Failure> {
        let (mut code, mut failure) = (Code::Fine, None);
        let mut look = async || {
            // At each look until it succeeds: `--watch` begins also without a majority, when an
            // operator needs it most (`watching_begins_without_a_majority`).
            let connecting = setup.builder()?.only_looks(true).connect();
            let settled = || async {
                let quorum = connecting.await?;
                settle(&quorum).await;
                Ok::<_, Error>(quorum)
            };
            let quorum = match quorum.get_or_try_init(settled).await {
                Ok(quorum) => quorum,
                Err(error) if error.kind() == ErrorKind::NotConnected => {
                    let frame = || frame_of(&error, self.watch);
                    let picture = Picture::new(self.json, || json_of(&error), frame);
                    failure = Some(Failure::from(error));
                    return Ok(picture);
                }
                Err(error) => return Err(error.into()),
            };
            let seen = self.look(quorum).await;
            code = seen.code();
            Ok(Picture::new(self.json, || seen.json(), || seen.frame(shows_all)))
        };
        if self.watch {
            screen::repeat(self.interval, look).await?;
            return Ok(Code::Fine);
        }
        screen::print(&look().await?)?;
        failure.map_or(Ok(code), Err)
    }

    async fn look(&self, quorum: &Quorate) -> StatusSeen {
        if !self.names.is_empty() {
            let of_name = |name: &String| KINDS.map(|kind| (name.clone(), kind));
            let locks = look_at(quorum, self.names.iter().flat_map(of_name)).await;
            return StatusSeen { voters: None, locks };
        }
        let admin = quorum.admin();
        let found = admin.find(&self.pattern, self.limit.get());
        let (survey, found) = tokio::join!(quorum.survey(), found);
        // Each is asked about: keys that were found may belong to a lock that nobody holds any
        // more.
        let wanted = found.locks.iter().map(|lock| (lock.name.clone(), lock.kind));
        let locks = look_at(quorum, wanted).await;
        StatusSeen { voters: Some((survey, found)), locks }
    }
}

impl StatusSeen {
    fn code(&self) -> Code {
        let has_quorum =
            self.voters.as_ref().is_none_or(|(survey, _)| survey.status().has_quorum());
        let is_fine = has_quorum && self.locks.iter().all(|lock| lock.seen.is_ok());
        if is_fine { Code::Fine } else { Code::Unavailable }
    }

    fn json(&self) -> Value {
        let mut json = json!({
            "version": VERSION,
            "locks": self.locks.iter().map(LockSeen::json).collect::<Vec<_>>(),
        });
        if let Some((survey, found)) = &self.voters {
            let status = survey.status();
            json["status"] = json!({
                "has_quorum": status.has_quorum(),
                "counting": status.counting(),
                "needed": status.needed(),
            });
            json["survey"] = json!(survey);
            json["found"] = json!({
                "is_complete": found.is_complete,
                "missing": json!(found)["missing"],
            });
        }
        json
    }

    fn frame(&self, shows_all: bool) -> Frame {
        let mut frame = Frame::default();
        if let Some((survey, found)) = &self.voters {
            show_survey(&mut frame, survey, shows_all);
            frame.blank();
            show_found(&mut frame, found, &self.locks, shows_all);
            return frame;
        }
        for (place, of_name) in self.locks.chunks(KINDS.len()).enumerate() {
            if place > 0 {
                frame.blank();
            }
            show_name(&mut frame, of_name);
        }
        frame
    }
}

// The state comes first: a terminal cuts lines at their ends. All columns need 130 signs.
const HEADINGS: [&str; 9] =
    ["STATE", "VOTER", "VERSION", "DISK", "TRIP", "SERVER", "WHEN FULL", "REPLICAS", "CLOCK"];
/// How many of them fit 80 columns.
const FEW: usize = 5;

fn show_survey(frame: &mut Frame, survey: &Survey, shows_all: bool) {
    let status = survey.status();
    for set in status.sets() {
        frame.line(tone(&set), set.to_string());
    }
    frame.blank();
    let rows: Vec<_> = survey.voters.iter().flat_map(voter_rows).collect();
    let columns = if shows_all { HEADINGS.len() } else { FEW };
    frame.table(&HEADINGS[..columns], &rows);
    for voter in &survey.voters {
        if let Some(why) = state(voter).1 {
            let text = quoted(&format!("{}: {why}", voter.status.voter));
            frame.wrapped(tone_of(voter), "", &text, screen::width());
        }
    }
}

/// The JSON if no majority can be reached.
fn json_of(error: &Error) -> Value {
    // With the same fields as otherwise, if they are known: a script reads both alike.
    let voters = error.voters().iter().map(|VoterReport { voter, verdict, .. }| {
        let cause = if let Verdict::Unknown(cause) = verdict { Some(cause) } else { None };
        json!({ "voter": voter, "error": cause.map(ToString::to_string) })
    });
    json!({
        "version": VERSION,
        "error": Failure::from(error.clone()).what,
        "locks": [],
        "status": { "has_quorum": false },
        "survey": { "voters": voters.collect::<Vec<_>>() },
    })
}

/// The picture if no majority can be reached. `with_error`: it is drawn again and again, and the
/// error would have no other place.
fn frame_of(error: &Error, with_error: bool) -> Frame {
    let mut frame = Frame::default();
    let row = |VoterReport { voter, verdict, .. }: &VoterReport| match verdict {
        Verdict::Unknown(_) => (Tone::Bad, vec!["away".to_owned(), quoted(voter)]),
        _ => (Tone::Plain, vec!["connected".to_owned(), quoted(voter)]),
    };
    frame.table(&HEADINGS[..2], &error.voters().iter().map(row).collect::<Vec<_>>());
    let Failure { what, causes, .. } = Failure::from(error.clone());
    for text in [what].iter().chain(&causes).filter(|_| with_error) {
        frame.wrapped(Tone::Bad, "", &quoted(text), screen::width());
    }
    frame
}

fn tone_of(voter: &VoterSurvey) -> Tone {
    if voter.status.counts { Tone::Plain } else { Tone::Bad }
}

fn tone(set: &SetStatus) -> Tone {
    match set.counting {
        counting if counting < set.needed => Tone::Bad,
        counting if counting < set.voters => Tone::Doubtful,
        _ => Tone::Good,
    }
}

/// A row for each server of the voter. The first also has the voter.
fn voter_rows(voter: &VoterSurvey) -> Vec<(Tone, Vec<String>)> {
    let tone = tone_of(voter);
    let row = |(place, report): (usize, &ServerReport)| {
        let [server, version, disk, when_full, replicas, clock] =
            server(&voter.status.voter, report);
        let [state, name, trip] = if place == 0 {
            let trip = time_or(voter.round_trip, "-");
            [state(voter).0.to_owned(), name(&voter.status), trip]
        } else {
            [String::new(), quoted(&format!("  {}", report.server)), String::new()]
        };
        (tone, vec![state, name, version, disk, trip, server, when_full, replicas, clock])
    };
    voter.servers.iter().enumerate().map(row).collect()
}

/// The voter, and its set if there are two.
fn name(VoterStatus { voter, side, .. }: &VoterStatus) -> String {
    let side = side.map_or_else(String::new, |side| format!(" ({side})"));
    quoted(&format!("{voter}{side}"))
}

/// The server, and its version, disk, eviction, replicas and clock.
fn server(voter: &str, report: &ServerReport) -> [String; 6] {
    // A voter that is one server is called as its address, and need not be shown twice.
    let address = if report.server == voter { "" } else { report.server.as_str() };
    let Ok(info) = &report.info else {
        return [quoted(address), "?".into(), "?".into(), "?".into(), "?".into(), "?".into()];
    };
    let ServerInfo { software, version, is_primary, eviction_policy, replicas, .. } = info;
    let role = if *is_primary { "primary" } else { "replica" };
    [
        quoted(format!("{address} {role}").trim_start()),
        quoted(&format!("{software} {version}")),
        disk(&info.persistence),
        quoted(eviction_policy),
        replicas.to_string(),
        info.clock.map_or_else(|| "?".into(), clock),
    ]
}

fn disk(persistence: &Persistence) -> String {
    let Persistence { appendonly, appendfsync, save, .. } = persistence;
    match (appendonly, appendfsync.as_deref(), save.as_deref()) {
        (true, Some(when), _) => format!("fsync {when}"),
        (true, None, _) => "appendonly, fsync ?".into(),
        (false, _, Some("")) => "nothing".into(),
        (false, _, Some(_)) => "snapshots".into(),
        (false, _, None) => "no appendonly".into(),
    }
}

fn clock(ClockOffset { ahead_micros, .. }: ClockOffset) -> String {
    // A finer difference would only be noise of the network.
    let tenths = ahead_micros / 100;
    let sign = if tenths < 0 { '-' } else { '+' };
    format!("{sign}{}.{}ms", tenths.abs() / 10, tenths.abs() % 10)
}

/// The state in a word, and an explanation if it needs one.
fn state(voter: &VoterSurvey) -> (&'static str, Option<String>) {
    let VoterStatus { connection, refuses, quarantine, configuration_mismatch, .. } = &voter.status;
    let missing = voter.servers.iter().find_map(|report| report.info.as_ref().err());
    match (connection, refuses, quarantine, configuration_mismatch, missing) {
        (Err(cause), ..) => ("away", Some(cause.to_string())),
        (_, Some(why), ..) => ("refuses", Some(format!("takes no new votes: {why}"))),
        (_, _, Some(quarantined), ..) => ("quarantine", Some(quarantined.to_string())),
        (_, _, _, Some(why), _) => ("mismatch", Some(why.clone())),
        (.., Some(cause)) => ("connected", Some(format!("says nothing of itself: {cause}"))),
        _ => ("connected", None),
    }
}

/// How many locks are asked about at once.
// Each takes a request to every voter: not all of `--limit 10000` should be under way together.
const TOGETHER: usize = 64;

/// A lock, and what the voters say about it.
struct LockSeen {
    name: String,
    kind: LockKind,
    seen: Result<LockView, Error>,
}

async fn look_at(
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
    /// What the voters say, if somebody has the lock or waits for it, or a firing is done.
    fn wanted(&self) -> Option<&LockView> {
        let is_wanted = |state: &LockState| {
            !state.holders.is_empty() || !state.waiting.is_empty() || state.done.is_some()
        };
        let seen = self.seen.as_ref().ok()?;
        let mut states = seen.voters.iter().filter_map(|view| view.state.as_ref().ok());
        states.any(is_wanted).then_some(seen)
    }

    fn json(&self) -> Value {
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

/// The locks of one name that somebody has or waits for.
fn show_name(frame: &mut Frame, locks: &[LockSeen]) {
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
        frame.about(Tone::Good, ["`", &name, "`: free, and nobody waits"]);
    }
}

/// Whether every voter answered, and all gave the same answer.
fn agree(seen: &LockView) -> bool {
    let mut said = seen.voters.iter().map(|view| {
        let LockState { holders, waiting, done, .. } = view.state.as_ref().ok()?;
        let holders = holders.iter().map(|held| (&held.hold, held.count, &held.slots));
        // A voter lists readers in the order of their ends, which differs from voter to voter.
        let mut holders: Vec<_> = holders.collect();
        holders.sort_unstable();
        let waiting: Vec<_> = waiting.iter().map(|waiting| &waiting.place).collect();
        // Without the time at which it was done, which is of each voter's own clock.
        Some((holders, waiting, done.map(|done| done.firing)))
    });
    let first = said.next().flatten();
    first.is_some() && said.all(|other| other == first)
}

/// The holder that excludes all others, if there is one.
fn alone(holders: &[Holder]) -> Option<&Holder> {
    holders.first().filter(|held| !matches!(held.kind, HolderKind::Read | HolderKind::Permit))
}

fn taken(holders: &[Holder]) -> usize {
    holders.iter().map(|held| held.slots.len()).sum()
}

/// The time until the last of them ends.
fn left(holders: &[Holder]) -> String {
    let last = holders.iter().max_by_key(|held| held.ttl.unwrap_or(Duration::MAX));
    last.map_or_else(|| "-".into(), |held| time_or(held.ttl, "no expiry"))
}

fn number(number: Option<impl ToString>) -> String {
    number.map_or_else(|| "-".into(), |number| number.to_string())
}

/// The name of the client, such as `web-1:4711`, or the hold if its id has none.
fn client(hold: &HoldId) -> String {
    quoted(&hold.client_name().unwrap_or_else(|| hold.to_string()))
}

/// The id of the hold.
fn whose(hold: &HoldId) -> String {
    quoted(hold.as_str())
}

/// `2 of 5 permits taken`, or `2 permits taken` if no server says how many there are.
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
            let how = match held.kind {
                HolderKind::Write => "written",
                HolderKind::Parked => "parked",
                _ => "held",
            };
            let left = time_or(held.ttl, "ever");
            format!("{how} by {} for {left} more{}", client(&held.hold), noted(&held.hold))
        }
        (None, LockKind::Semaphore) => permits(seen),
        (None, _) if !seen.holders.is_empty() => format!("read by {}", seen.holders.len()),
        (None, _) if seen.is_free => "free".into(),
        (None, _) => "nobody has a majority".into(),
    }
}

fn show_lock(frame: &mut Frame, seen: &LockView) {
    let voters = seen.voters.len();
    let (before, after) = (format!("{} `", seen.kind), format!("`: {}", summary(seen)));
    frame.about(Tone::Heading, [&before, &quoted(&seen.name), &after]);
    let answered = seen.voters.iter().filter(|view| view.state.is_ok()).count();
    let (tone, text) = match agree(seen) {
        true => (Tone::Good, format!("all {voters} voters agree")),
        false if answered == voters => (Tone::Doubtful, "the voters do not agree".into()),
        false => (Tone::Doubtful, format!("{answered} of {voters} voters answered")),
    };
    frame.line(tone, text);
    // The full id, to copy it to `quorate break --hold`.
    if let Some(Holder { hold, count, .. }) = alone(&seen.holders) {
        let is_lead = seen.kind == LockKind::Election;
        let count = if is_lead { String::new() } else { format!(", count {count}") };
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
        let note = noted(&held.hold);
        frame.line(Tone::Plain, format!("  {has} for {left} more: {whose}{note}"));
    }
    for (place, Waiting { place: hold, kind, ticket, ttl, .. }) in seen.waiting.iter().enumerate() {
        let (whose, kept) = (whose(hold), time_or(Some(*ttl), ""));
        let (number, wants, note) = (place + 1, wants(*kind), noted(hold));
        let text =
            format!("  {number}. waits{wants} for {kept} more: {whose}{note}, ticket {ticket}");
        frame.line(Tone::Plain, text);
    }
    if let Some(done) = seen.done {
        let when = done.when.duration_since(UNIX_EPOCH).unwrap_or_default();
        let ago = long(clock::wall().saturating_sub(when));
        let (tone, known) = if seen.is_done_stored() {
            (Tone::Plain, "")
        } else {
            (Tone::Doubtful, ", which no majority knows")
        };
        frame.line(tone, format!("  the firing {} is done, {ago} ago{known}", done.firing));
    }
    if let Some(leader) = &seen.leader {
        let said = leader.text().map_or_else(|| format!("{} bytes", leader.value().len()), quoted);
        frame.line(Tone::Plain, format!("  the leader says: {said}"));
    }
}

/// What a waiter of a read/write lock waits for.
fn wants(kind: HolderKind) -> &'static str {
    match kind {
        HolderKind::Write => " to write",
        HolderKind::Read => " to read",
        _ => "",
    }
}

/// A row for each voter.
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
            // In the column of the holder, which is wide.
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
            LockKind::Election => [number(None::<u32>), number(*token), by()],
            _ => [number(alone(holders).map(|held| held.count)), number(*token), by()],
        };
        let waits = |waiting: &Waiting| format!("{}{}", whose(&waiting.place), wants(waiting.kind));
        let queue = waiting.iter().map(waits).collect::<Vec<_>>().join(", ");
        let tone = if view.quarantine.is_some() { Tone::Doubtful } else { Tone::Plain };
        (tone, vec![voter, left(holders), count, token, by, queue])
    });
    frame.table(&headings, &rows.collect::<Vec<_>>());
}

/// All locks that were found, a line for each.
fn show_found(frame: &mut Frame, found: &FoundLocks, locks: &[LockSeen], shows_all: bool) {
    let rows: Vec<_> = locks.iter().filter_map(|lock| found_row(lock, shows_all)).collect();
    let more = if found.is_complete { "" } else { ", and there are more" };
    let count = counted(rows.len(), "lock");
    frame.line(Tone::Heading, format!("{count} held or waited for{more}"));
    for missing in &found.missing {
        frame.line(Tone::Doubtful, quoted(&format!("not looked for on {missing}")));
    }
    if !rows.is_empty() {
        let headings = ["LOCK", "KIND", "LEFT", "WAITING", "HELD BY", "TOKEN", "NOTE"];
        let columns = if shows_all { headings.len() } else { headings.len() - 2 };
        frame.table_of_names(&headings[..columns], &rows);
    }
}

/// The row of a lock, if somebody has it or waits for it.
// Otherwise locks with nothing but a queue of dead waiters had a row.
fn found_row(lock: &LockSeen, shows_all: bool) -> Option<(Tone, Vec<String>)> {
    let (name, kind) = (quoted(&lock.name), lock.kind.to_string());
    if let Err(error) = &lock.seen {
        // Without the causes of the voters, which `quorate status NAME` shows.
        let what = quoted(&Failure::from(error.clone()).what);
        let row = vec![name, kind, "?".into(), "?".into(), what, String::new(), String::new()];
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
    let (left, waiting) = (left(&seen.holders), seen.waiting.len().to_string());
    let note = alone(&seen.holders).and_then(|held| held.note.as_ref());
    let note = note.map_or_else(String::new, |note| format!("{note:?}"));
    Some((Tone::Plain, vec![name, kind, left, waiting, by, number(seen.token), note]))
}
