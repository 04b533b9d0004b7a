//! Who a server is, in its own words.

use std::time::Duration;

use fred::types::Resp3Frame as Frame;

use super::{
    info::{ask, field, is_replica},
    link::Link,
    replies, tenure,
};
use crate::{
    clock::Clock,
    node::{Identity, Outcome, Stamp},
    scripts::Value,
    words::Cause,
};

/// Whether a server is asked for its promotions, and the key of its mark.
pub(super) type Marked<'a> = (bool, Option<&'a str>);

/// What a server said on a new connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) identity: Identity,
    /// `None` where it does not tell its time.
    pub(super) stamp: Option<Stamp>,
    /// Which one it is in, where it was promoted and nobody else tells of that.
    pub(super) tenure: Option<String>,
}

/// Asks on a link that is about to stand. `asks`: also for promotions, of which nobody else tells;
/// `mark`: where since when they are known.
pub(super) async fn identify(link: &Link, (asks, mark): Marked<'_>) -> Outcome<Met> {
    let info = replies::value(ask(link, "INFO", &[]).await?)?;
    let asked = Clock::System.now();
    let time = async { (ask(link, "TIME", &[]).await, Clock::System.now()) };
    let sync = ask(link, "CONFIG", &["GET", "appendfsync"]);
    let ((time, answered), sync) = tokio::join!(time, sync);
    let shown = shown(time?);
    let stamp = shown.map(|shown| Stamp { shown, asked, answered });
    let Value::Text(info) = info else {
        return Err(Cause::Rejected("the answer to INFO is no text".into()));
    };
    if is_replica(&info) {
        return Err(Cause::Rejected(link.demote()));
    }
    // Until then it runs no script, says that it writes nothing to disk, and does not know what it
    // was before.
    if field(&info, "loading").is_ok_and(|loading| loading == "1") {
        return Err(Cause::Rejected("it still loads its data".into()));
    }
    let mut identity = identity(&info, is_always(sync?))?;
    let tenure = tenure::of(&info).filter(|_| asks);
    if let (Some(mark), Some(tenure)) = (mark, &tenure)
        && let Some(age) = tenure::age(link, mark, tenure).await?
    {
        identity.uptime = identity.uptime.min(age);
    }
    Ok(Met { identity, stamp, tenure })
}

fn identity(info: &str, syncs_always: bool) -> Outcome<Identity> {
    let uptime = field(info, "uptime_in_seconds")?.parse();
    let uptime = uptime.map_err(|_| Cause::Rejected("the answer to INFO has no uptime".into()))?;
    let appends = field(info, "aof_enabled").is_ok_and(|enabled| enabled == "1");
    // What was a replica before may have missed what its predecessor had on disk.
    let promoted = tenure::of(info).is_some();
    Ok(Identity {
        run_id: field(info, "run_id")?.to_owned(),
        uptime: Duration::from_secs(uptime),
        durable: syncs_always && appends && !promoted,
    })
}

/// A server that refuses to tell how it syncs may well not.
fn is_always(reply: Frame) -> bool {
    let Frame::Map { data, .. } = reply else { return false };
    let always = |value| replies::value(value) == Ok(Value::Text("always".into()));
    data.into_values().any(always)
}

/// Since 1970.
fn shown(reply: Frame) -> Option<Duration> {
    let Ok(Value::List(parts)) = replies::value(reply) else { return None };
    let [Value::Text(seconds), Value::Text(micros)] = &*parts else { return None };
    let (seconds, micros) = (seconds.parse().ok()?, micros.parse().ok()?);
    Duration::from_secs(seconds).checked_add(Duration::from_micros(micros))
}
