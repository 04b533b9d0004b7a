//! Who a server is, in its own words.

use std::{collections::BTreeMap, time::Duration};

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
    // By one pattern: what `CONFIG GET` takes several of is not known to older servers.
    let sync = ask(link, "CONFIG", &["GET", "*appendfsync*"]);
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
    let mut identity = identity(&info, syncs_always(sync?))?;
    let tenure = tenure::of(&info).filter(|_| asks);
    if let (Some(mark), Some(tenure)) = (mark, &tenure)
        && let Some(age) = tenure::age(link, mark, tenure).await?
    {
        identity.uptime = identity.uptime.min(age);
    }
    Ok(Met { identity, stamp, tenure })
}

fn identity(info: &str, syncs_always: bool) -> Outcome<Identity> {
    // Negative where the server's clock was set back after its start: as young as can be.
    let uptime = field(info, "uptime_in_seconds")?.parse::<i64>();
    let uptime = uptime.map_err(|_| Cause::Rejected("the answer to INFO has no uptime".into()))?;
    let uptime = u64::try_from(uptime).unwrap_or(0);
    let is_on = |name| field(info, name).is_ok_and(|value| value == "1");
    // While the first file is being written after this was switched on, there is none yet.
    let appends = is_on("aof_enabled") && !is_on("aof_rewrite_in_progress");
    // What was a replica before may have missed what its predecessor had on disk.
    let promoted = tenure::of(info).is_some();
    Ok(Identity {
        run_id: field(info, "run_id")?.to_owned(),
        uptime: Duration::from_secs(uptime),
        durable: syncs_always && appends && !promoted,
    })
}

/// Whether a change is on disk when it is answered, also while the server writes a file anew. One
/// that refuses to tell may well not do so.
fn syncs_always(reply: Frame) -> bool {
    let Frame::Map { data, .. } = reply else { return false };
    let text = |frame| match replies::value(frame) {
        Ok(Value::Text(text)) => Some(text),
        _ => None,
    };
    let told: BTreeMap<_, _> =
        data.into_iter().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect();
    let is = |name: &str, value: &str| told.get(name).is_some_and(|told| told == value);
    is("appendfsync", "always") && is("no-appendfsync-on-rewrite", "no")
}

/// Since 1970.
fn shown(reply: Frame) -> Option<Duration> {
    let Ok(Value::List(parts)) = replies::value(reply) else { return None };
    let [Value::Text(seconds), Value::Text(micros)] = &*parts else { return None };
    let (seconds, micros) = (seconds.parse().ok()?, micros.parse().ok()?);
    Duration::from_secs(seconds).checked_add(Duration::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(uptime: &str, more: &str) -> Outcome<Identity> {
        let info = format!(
            "run_id:life\r\nuptime_in_seconds:{uptime}\r\naof_enabled:1\r\n\
             master_replid2:0000\r\n{more}"
        );
        identity(&info, true)
    }

    // The clock by which the server counts was set back by an hour after its start.
    #[test]
    fn a_server_with_a_negative_uptime_has_just_started() {
        let identity = told("-3598", "").unwrap();
        assert_eq!((identity.uptime, identity.durable), (Duration::ZERO, true));
        assert_eq!(told("3598", "").unwrap().uptime, Duration::from_secs(3598));
        assert!(told("soon", "").is_err());
    }

    #[test]
    fn a_server_that_writes_its_file_anew_may_not_have_all_on_disk() {
        assert!(told("1", "aof_rewrite_in_progress:0").unwrap().durable);
        assert!(!told("1", "aof_rewrite_in_progress:1").unwrap().durable);
    }
}
