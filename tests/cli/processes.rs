//! Who is in a process group, by `/proc`.

use std::fs;

/// A process that is not yet reaped has ended all the same.
const ENDED: [&str; 2] = ["Z", "X"];

/// The processes of the group that have not ended.
pub(crate) fn members(group: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("Linux has it").map_while(Result::ok);
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| stat(*id).is_some_and(|(state, of)| of == group && state != "ended")).collect()
}

/// Whether a process runs, or is stopped.
pub(crate) fn is_alive(id: u32) -> bool {
    stat(id).is_some_and(|(state, _)| state != "ended")
}

/// Whether a process is stopped.
pub(crate) fn is_stopped(id: u32) -> bool {
    stat(id).is_some_and(|(state, _)| state == "stopped")
}

/// The state of a process, and its group.
fn stat(id: u32) -> Option<(&'static str, u32)> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before them may have anything in it.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = match fields.next()? {
        state if ENDED.contains(&state) => "ended",
        "T" => "stopped",
        _ => "runs",
    };
    Some((state, fields.nth(1)?.parse().ok()?))
}

/// The children of a process.
pub(crate) fn children(id: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}
