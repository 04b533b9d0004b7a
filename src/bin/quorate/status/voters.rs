//! The voters, as people read them.

use quorate::{
    Cause, ClockOffset, Persistence, ServerInfo, ServerReport, SetStatus, Survey, VoterStatus,
    VoterSurvey,
};

use crate::frame::{Frame, Tone, quoted, time_or};

const HEADINGS: [&str; 9] =
    ["VOTER", "SERVER", "VERSION", "DISK", "WHEN FULL", "REPLICAS", "CLOCK", "TRIP", "STATE"];

pub(super) fn show(frame: &mut Frame, survey: &Survey) {
    let status = survey.status();
    for set in status.sets() {
        frame.line(tone(&set), set.to_string());
    }
    frame.blank();
    let rows: Vec<_> = survey.voters.iter().flat_map(rows).collect();
    frame.table(&HEADINGS, &rows);
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
    let tone = if voter.status.counts() { Tone::Plain } else { Tone::Bad };
    let row = |(place, report): (usize, &ServerReport)| {
        let is_first = place == 0;
        let only_first = |text: String| if is_first { text } else { String::new() };
        let [server, version, disk, when_full, replicas, clock] =
            server(&voter.status.voter, report);
        let row = vec![
            only_first(name(&voter.status)),
            server,
            version,
            disk,
            when_full,
            replicas,
            clock,
            only_first(time_or(voter.round_trip, "-")),
            only_first(state(voter)),
        ];
        (tone, row)
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

fn state(voter: &VoterSurvey) -> String {
    let status = &voter.status;
    let missing = voter.servers.iter().find_map(|report| report.info.as_ref().err());
    let state = match (&status.connection, &status.refuses, &status.quarantine, missing) {
        (Err(cause), ..) => cause.to_string(),
        (_, Some(why), ..) => format!("takes no new votes: {why}"),
        (_, _, Some(quarantined), _) => quarantined.to_string(),
        _ if status.out_of_step.is_some() => status.out_of_step.clone().unwrap_or_default(),
        (_, _, _, Some(cause)) => unheard(cause),
        _ => "connected".into(),
    };
    quoted(&state)
}

/// Of a voter that votes.
fn unheard(cause: &Cause) -> String {
    format!("connected; says nothing of itself: {cause}")
}
