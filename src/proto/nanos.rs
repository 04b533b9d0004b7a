//! Moments that may lie before the client's clock began.

use std::time::Duration;

use crate::proto::Moment;

/// Nanoseconds since the beginning of the client's clock: negative for what was before it, as the
/// starts of most servers are where that clock is as young as its machine or its process.
pub(super) type Nanos = i128;

pub(super) fn nanos(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX)
}

pub(super) fn since_beginning(moment: Moment) -> Nanos {
    nanos(moment.since(Moment::BEGINNING))
}

/// Nothing where it is negative.
pub(super) fn length(nanos: i128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}
