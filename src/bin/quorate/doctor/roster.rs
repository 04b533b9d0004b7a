//! Whether the clients agree about who the voters are, and in which step of a change they are.

use std::time::Duration;

use quorate::{RosterEntry, Survey};

use super::finding::{Check, Finding, Findings, Level};
use crate::frame::Short;

/// Clients say every 15 s that they are there, and other voters hear of it later.
const THERE: Duration = Duration::from_secs(45);

pub(super) fn steps(survey: &Survey, findings: &mut Findings) {
    let finding = |level, seen: String| Finding::new(Check::Roster, level, seen);
    for entry in survey.roster.iter().filter(|entry| entry.clashes) {
        let left =
            (entry.longest_lease.max(survey.longest_lease) + THERE).saturating_sub(entry.seen);
        let ends = if left.is_zero() {
            "until clients in between that have both sets have been here without it".to_owned()
        } else {
            format!("for {} more if no such client comes back", Short(left))
        };
        let means = format!(
            "a client with these settings is out of step with it and does not connect, {ends}"
        );
        let mend =
            "give all clients the voters of one step, or of the next, and the same other settings";
        findings.push(finding(Level::Error, entry.to_string()).means(means).mend(mend));
    }
    let well: Vec<_> = survey.roster.iter().filter(|entry| !entry.clashes).collect();
    let there: Vec<_> = well.iter().filter(|entry| entry.seen <= THERE).collect();
    match there.as_slice() {
        [] if well.is_empty() => {
            findings.push(finding(Level::Ok, "no client has been here within 30 days".into()));
        }
        [] => findings.push(finding(Level::Ok, well[0].to_string()).means("no client is here now")),
        [one] if one.replaced.is_none() => findings.push(
            finding(Level::Ok, one.to_string())
                .means("all clients that are here agree about the voters"),
        ),
        [one] => findings.push(
            finding(Level::Warning, one.to_string())
                .means("the voters are being changed, and all clients are in the step of both sets")
                .mend(gone(&well, one)),
        ),
        several => {
            for entry in several {
                findings.push(
                    finding(Level::Warning, entry.to_string())
                        .means("the voters are being changed: clients are in two steps")
                        .mend("go on until all clients are in one step"),
                );
            }
        }
    }
}

/// When the next step may begin.
fn gone(all: &[&RosterEntry], joint: &RosterEntry) -> String {
    let is_before = |entry: &&&RosterEntry| entry.number < joint.number;
    let last = all.iter().filter(is_before).map(|entry| entry.seen).min();
    let wait = last.map(|seen| (joint.longest_lease + THERE).saturating_sub(seen));
    match wait.filter(|wait| !wait.is_zero()) {
        Some(wait) => format!("wait {} more before clients get the new voters alone", Short(wait)),
        None => "clients may get the new voters alone now".into(),
    }
}
