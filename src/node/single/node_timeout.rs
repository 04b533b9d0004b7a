//! For how long a primary of a cluster that is cut off from the others goes on to serve.

use std::time::Duration;

use fred::types::Resp3Frame as Frame;

use super::{
    info::{ask, field},
    link::Link,
    replies,
};
use crate::{node::Outcome, scripts::Value};

/// What a cluster has where its servers do not tell.
const USUAL: Duration = Duration::from_secs(15);

/// For how long after a replica took over from it some clients may have gone on counting what the
/// former primary granted, by the answer to INFO of the replica; zero in no cluster. The others
/// take a primary for failed after one `cluster-node-timeout` at the earliest, and it stops serving
/// after one and a half at the latest, so one is twice what there can be between the two.
pub(super) async fn overlap(link: &Link, info: &str) -> Outcome<Duration> {
    if field(info, "cluster_enabled").is_ok_and(|value| value == "1") {
        let reply = ask(link, "CONFIG", &["GET", "cluster-node-timeout"]).await?;
        return Ok(told(reply).unwrap_or(USUAL));
    }
    Ok(Duration::ZERO)
}

/// Nothing where the user may not ask.
fn told(reply: Frame) -> Option<Duration> {
    let Frame::Map { data, .. } = reply else { return None };
    let mut values = data.into_values().filter_map(|value| replies::value(value).ok());
    let Value::Text(ms) = values.next()? else { return None };
    ms.parse().ok().map(Duration::from_millis)
}
