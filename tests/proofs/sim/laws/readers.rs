//! What a voter has of readers ends with the last of them. That no script for one moves the
//! deadline of another is seen with the renewals.

use super::order::time_ms;
use crate::sim::prelude::*;

/// The key of the readers expires at the deadline of the last, as the voter's clock tells it.
pub(crate) fn check(world: &World, look: &Look) {
    for lock in world.locks.iter().filter(|lock| matches!(lock, Lock::Rw(_))) {
        let key = &lock.readers;
        for (voter, records) in look.records.iter().enumerate() {
            let Some(record) = records.iter().find(|record| record.key == *key) else { continue };
            // One that does not run does not tell its time.
            let Some(now_ms) = time_ms(&world.voters[voter]) else { continue };
            let last_ms = record.fields.last().and_then(|(_, score)| score.parse::<i64>().ok());
            let left_ms = last_ms.zip(i64::try_from(now_ms).ok()).map(|(last, now)| last - now);
            // What has ended, and was not taken out yet, ends within a millisecond.
            let is_over = left_ms.is_some_and(|ms| ms <= 0);
            let ends_now = is_over && record.left_ms.is_some_and(|ms| ms <= 1);
            if record.left_ms != left_ms && !ends_now {
                let what = format!(
                    "{key} on voter {voter} ends in {:?} ms, and its last reader in {left_ms:?}",
                    record.left_ms
                );
                world.breach(Law::ReadersApart, None, what);
            }
        }
    }
}
