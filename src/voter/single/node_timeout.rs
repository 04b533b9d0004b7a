//! For how long a primary of a cluster that is cut off from the others goes on to serve.

use std::time::Duration;

use super::{
    info::{field, setting},
    link::Link,
};
use crate::voter::Outcome;

/// What a cluster has where its servers do not tell.
const USUAL: Duration = Duration::from_secs(15);

/// For how long after a replica took over from it some clients may have gone on counting what the
/// former primary granted, by the answer to INFO of the replica; zero in no cluster. The others
/// take a primary for failed after one `cluster-node-timeout` at the earliest, and it stops serving
/// after one and a half at the latest, so one is twice what there can be between the two.
pub(super) async fn overlap(link: &Link, info: &str) -> Outcome<Duration> {
    if field(info, "cluster_enabled").is_ok_and(|value| value == "1") {
        let told = setting(link, "cluster-node-timeout").await?;
        return Ok(told.and_then(|ms| ms.parse().ok()).map_or(USUAL, Duration::from_millis));
    }
    Ok(Duration::ZERO)
}
