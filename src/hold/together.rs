//! Holds that stand or fall together.

use futures::future::select_all;

use super::{Entry, Lost};
use crate::words::Error;

/// Ends all of these holds as lost as soon as one of them is, so that nobody waits for what is of
/// no use without it. Whoever has them need not wait for that: any of them shows that it is lost.
pub(crate) fn stand_or_fall(entries: &[Entry]) {
    if entries.len() < 2 || crate::mutant!("others_outlive_the_lost_one") {
        return;
    }
    let holds: Vec<_> = entries.iter().map(|entry| entry.hold().clone()).collect();
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
pub(crate) async fn one_is_lost(entries: &[Entry]) -> Error {
    let (why, ..) = select_all(entries.iter().map(Entry::lost)).await;
    first_loss(entries).unwrap_or(why)
}

/// Why one of them is lost: of several the one that took the others along.
pub(crate) fn first_loss(entries: &[Entry]) -> Option<Error> {
    let mut lost: Vec<_> = entries.iter().filter(|entry| !entry.is_held()).collect();
    // What has not ended yet is lost by the clock.
    lost.sort_by_key(|entry| entry.hold().is_forsaken());
    lost.first().map(|entry| entry.hold().lost())
}
