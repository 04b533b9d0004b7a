//! The voters, as people read them.

use quorate::{
    ClockOffset, Persistence, ServerInfo, ServerReport, SetStatus, Survey, VoterStatus, VoterSurvey,
};

use crate::{
    frame::{Frame, Tone, quoted, time_or},
    watch,
};

const HEADINGS: [&str; 9] =
    ["STATE", "VOTER", "VERSION", "DISK", "TRIP", "SERVER", "WHEN FULL", "REPLICAS", "CLOCK"];
/// So many of them fit 80 columns; all are shown on demand.
const FEW: usize = 5;

pub(super) fn show(frame: &mut Frame, survey: &Survey, shows_all: bool) {
    let status = survey.status();
    for set in status.sets() {
        frame.line(tone(&set), set.to_string());
    }
    frame.blank();
    let rows: Vec<_> = survey.voters.iter().flat_map(rows).collect();
    let columns = if shows_all { HEADINGS.len() } else { FEW };
    frame.table(&HEADINGS[..columns], &rows);
    for voter in &survey.voters {
        if let Some(why) = state(voter).1 {
            let text = quoted(&format!("{}: {why}", voter.status.voter));
            frame.wrapped(tone_of(voter), "", &text, watch::width());
        }
    }
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

/// One for each server of the voter; the first also has the voter.
fn rows(voter: &VoterSurvey) -> Vec<(Tone, Vec<String>)> {
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

/// The voter, and its set where there are two.
fn name(VoterStatus { voter, side, .. }: &VoterStatus) -> String {
    let side = side.map_or_else(String::new, |side| format!(" ({side})"));
    quoted(&format!("{voter}{side}"))
}

/// Role, version, disk, eviction, replicas, clock. A voter that is one server is called alike.
fn server(voter: &str, report: &ServerReport) -> [String; 6] {
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

pub(super) fn disk(persistence: &Persistence) -> String {
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
    // Tenths of a millisecond are more than a network can show.
    let tenths = ahead_micros / 100;
    let sign = if tenths < 0 { '-' } else { '+' };
    format!("{sign}{}.{}ms", tenths.abs() / 10, tenths.abs() % 10)
}

/// In a word; and where there is more to say, all of it.
fn state(voter: &VoterSurvey) -> (&'static str, Option<String>) {
    let VoterStatus { connection, refuses, quarantine, out_of_step, .. } = &voter.status;
    let missing = voter.servers.iter().find_map(|report| report.info.as_ref().err());
    match (connection, refuses, quarantine, out_of_step, missing) {
        (Err(cause), ..) => ("away", Some(cause.to_string())),
        (_, Some(why), ..) => ("refuses", Some(format!("takes no new votes: {why}"))),
        (_, _, Some(quarantined), ..) => ("quarantine", Some(quarantined.to_string())),
        (_, _, _, Some(why), _) => ("out of step", Some(why.clone())),
        (.., Some(cause)) => ("connected", Some(format!("says nothing of itself: {cause}"))),
        _ => ("connected", None),
    }
}
