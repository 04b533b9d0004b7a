//! What the voters say about semaphores.

use quorate::inspection::{PermitHolder, SemaphoreInspection, SemaphoreState};

use super::parts::{heading, queue, row, show_queue, unanswered, whose};
use crate::{
    frame::{Frame, Tone, quoted, time_or},
    lock::MOST_PERMITS,
};

/// Whether every voter answered, and all the same.
pub(super) fn agree(seen: &SemaphoreInspection) -> bool {
    let mut states = seen.voters.iter().map(|view| {
        let SemaphoreState { holders, queue, .. } = view.state.as_ref().ok()?;
        let holders: Vec<_> = holders.iter().map(|held| (&held.hold, &held.slots)).collect();
        Some((holders, queue.iter().map(|waiting| &waiting.place).collect::<Vec<_>>()))
    });
    let first = states.next().flatten();
    first.is_some() && states.all(|other| other == first)
}

pub(super) fn is_wanted(seen: &SemaphoreInspection) -> bool {
    let mut states = seen.voters.iter().filter_map(|view| view.state.as_ref().ok());
    !states.all(|state| state.holders.is_empty() && state.queue.is_empty())
}

fn taken(holders: &[PermitHolder]) -> usize {
    holders.iter().map(|held| held.slots.len()).sum()
}

/// `2 of 5 permits taken`, as far as that is known.
fn summary(seen: &SemaphoreInspection) -> String {
    let taken = taken(&seen.holders());
    match seen.permits() {
        MOST_PERMITS => format!("{taken} permits taken"),
        permits => format!("{taken} of {permits} permits taken"),
    }
}

pub(super) fn show(frame: &mut Frame, name: &str, seen: &SemaphoreInspection) {
    frame.line(Tone::Heading, format!("semaphore `{name}`: {}", summary(seen)));
    let answered = seen.voters.iter().filter(|view| view.state.is_ok()).count();
    let (tone, text) = heading(agree(seen), answered, seen.voters.len());
    frame.line(tone, text);
    let rows: Vec<_> = seen
        .voters
        .iter()
        .map(|view| {
            let voter = quoted(&view.voter);
            let state = match &view.state {
                Err(cause) => {
                    return (Tone::Bad, unanswered(voter, 3, cause));
                }
                Ok(state) => state,
            };
            let permits = state.permits.map_or_else(|| "-".into(), |permits| permits.to_string());
            let [taken, holders] =
                [taken(&state.holders), state.holders.len()].map(|it| it.to_string());
            let tone = if view.quarantine.is_some() { Tone::Doubtful } else { Tone::Plain };
            (tone, row([voter, taken, permits, holders, queue(&state.queue)]))
        })
        .collect();
    frame.table(&["VOTER", "TAKEN", "PERMITS", "HOLDERS", "QUEUE"], &rows);
    for PermitHolder { hold, slots, ttl, .. } in seen.holders() {
        let (whose, left) = (whose(&hold), time_or(Some(ttl), ""));
        let slots: Vec<_> = slots.iter().map(ToString::to_string).collect();
        let slots = slots.join(", ");
        frame.line(Tone::Plain, format!("  has permit {slots} for {left} more: {whose}"));
    }
    show_queue(frame, "waits", &seen.queue());
}

/// Its line among all that were found.
pub(super) fn found_row(name: String, seen: &SemaphoreInspection) -> (Tone, Vec<String>) {
    let holders = seen.holders();
    let left = time_or(holders.iter().map(|held| held.ttl).max(), "-");
    let waiting = seen.queue().len().to_string();
    (Tone::Plain, vec![name, "semaphore".into(), left, waiting, summary(seen), "-".into()])
}
