//! What tables of all locks have in common.

use quorate::{Cause, HoldId, inspection::Waiting};

use crate::frame::{Frame, Tone, quoted, time_or};

/// `web-1:4711`; the hold where that is not known.
pub(super) fn client(hold: &HoldId) -> String {
    quoted(hold.client_name().unwrap_or(hold.as_str()))
}

/// As text that a terminal shows as it is.
pub(super) fn whose(hold: &HoldId) -> String {
    quoted(hold.as_str())
}

pub(super) fn queue(queue: &[Waiting]) -> String {
    let places = queue.iter().map(|waiting| quoted(waiting.place.as_str()));
    places.collect::<Vec<_>>().join(", ")
}

pub(super) fn heading(agree: bool, answered: usize, voters: usize) -> (Tone, String) {
    match (agree, answered == voters) {
        (true, _) => (Tone::Good, format!("all {voters} voters agree")),
        (false, true) => (Tone::Doubtful, "the voters do not agree".into()),
        (false, false) => (Tone::Doubtful, format!("{answered} of {voters} voters answered")),
    }
}

/// A row whose last columns may be empty.
pub(super) fn row<const FILLED: usize>(texts: [String; FILLED]) -> Vec<String> {
    let mut row = Vec::from(texts);
    row.resize(row.len().max(7), String::new());
    row
}

/// The row of a voter that did not answer: the cause stands behind the narrow columns.
pub(super) fn unanswered(voter: String, narrow: usize, cause: &Cause) -> Vec<String> {
    let mut row = vec!["?".to_owned(); narrow];
    row.insert(0, voter);
    row.push(quoted(&cause.to_string()));
    row.resize(row.len().max(7), String::new());
    row
}

/// Those who wait by what a majority says, in order.
pub(super) fn show_queue(frame: &mut Frame, waits: &str, queue: &[Waiting]) {
    for (place, Waiting { place: hold, ticket, ttl, .. }) in queue.iter().enumerate() {
        let whose = whose(hold);
        let kept = time_or(Some(*ttl), "");
        let number = place + 1;
        let text = format!("  {number}. {waits} for {kept} more: {whose}, ticket {ticket}");
        frame.line(Tone::Plain, text);
    }
}
