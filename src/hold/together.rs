//! Holds that stand or fall together.

use std::sync::Arc;

use futures::future::select_all;

use super::{Entry, Lost, held::Hold};
use crate::proto::Error;

/// Ends all of these holds as lost as soon as one of them is, so that nobody waits for what is of
/// no use without it. Whoever has them need not wait for that: any of them shows that it is lost.
pub(crate) fn stand_or_fall(entries: &[Entry]) {
    if entries.len() < 2 || crate::mutant!("others_outlive_the_lost_one") {
        return;
    }
    let holds = holds(entries);
    let coordinator = holds[0].coordinator().clone();
    coordinator.spawn(async move {
        let (why, ..) = select_all(holds.iter().map(Lost::of)).await;
        if !why.is_released() {
            for hold in &holds {
                hold.forsake();
            }
        }
    });
}

/// Completes when one of them is lost, with the reason.
pub(crate) fn one_is_lost(entries: &[Entry]) -> Lost {
    Lost::of_any(holds(entries))
}

/// Why one of them is lost: of several the one that took the others along.
pub(crate) fn first_loss(entries: &[Entry]) -> Option<Error> {
    if entries.iter().all(Entry::is_held) {
        return None;
    }
    first_loss_of(&holds(entries))
}

pub(super) fn first_loss_of(holds: &[Arc<Hold>]) -> Option<Error> {
    let mut lost: Vec<_> = holds.iter().filter(|hold| !hold.is_held()).collect();
    // What has not ended yet is lost by the clock.
    lost.sort_by_key(|hold| hold.is_forsaken());
    lost.first().map(|hold| hold.lost())
}

fn holds(entries: &[Entry]) -> Vec<Arc<Hold>> {
    entries.iter().map(|entry| Arc::clone(entry.hold())).collect()
}
