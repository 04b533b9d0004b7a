//! Who a server is, in its own words.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use fred::types::Resp3Frame as Frame;

use super::{
    Looks,
    info::{ask, field, is_replica, persistence, setting},
    link::Link,
    mark, replies,
    run::Runner,
};
use crate::{
    clock::Clock,
    proto::Cause,
    scripts::Value,
    voter::{Birth, Identity, Memory, Outcome, Stamp},
};

/// For how long a primary of a cluster that is cut off from the others goes on to serve, where its
/// servers do not tell.
const USUAL_NODE_TIMEOUT: Duration = Duration::from_secs(15);

/// What a server said of itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) identity: Identity,
    /// `None` where it does not tell its time.
    pub(super) stamp: Option<Stamp>,
    /// The server's life, as its mark names it.
    pub(super) life: String,
    /// Which one it is in, where it was promoted and nobody else tells of that.
    pub(super) tenure: Option<String>,
    /// Why votes may be gone before their time, although it answers.
    pub(super) evicts: Option<Arc<str>>,
    /// It was set up to have a change on disk when it answers.
    pub(super) syncs: bool,
}

/// Asks on a link. `promotions`: also whether it was promoted, which nobody else tells. `time`:
/// what its clock shows, although a mark that can be read tells it. `syncs`: whether it syncs its
/// disk before it answers, where that is known from before.
pub(super) async fn identify(
    runner: &Runner,
    link: &Link,
    promotions: bool,
    time: bool,
    syncs: Option<bool>,
) -> Outcome<Met> {
    let Runner { looks: Looks { mark, .. }, is_named, is_unmarked, .. } = runner;
    let sync = async {
        match syncs {
            Some(syncs) => Ok(syncs),
            // One that refuses to tell may well not do so.
            None => persistence(link).await.map(|persistence| persistence.is_durable()),
        }
    };
    let (info, syncs) = tokio::join!(ask(link, "INFO", &[]), sync);
    let Value::Text(info) = replies::value(info?)? else {
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
    let tenure = mark::tenure(&info).filter(|_| promotions);
    let life = format!("{}/{}", run_id(&info)?, tenure.as_deref().unwrap_or_default());
    let syncs = syncs?;
    let mut identity = identity(&info, syncs)?;
    // Where sentinels tell of promotions, the server may be another by the next start.
    let keeps = Some(identity.durable && promotions);
    let asked = Clock::System.now();
    let stamped = |shown| Stamp { shown, asked, answered: Clock::System.now() };
    let marked = async {
        let Some(key) = mark else { return Ok((None, None)) };
        let mark = mark::look(link, key, &life, keeps, is_unmarked).await?;
        let stamp = mark.as_ref().and_then(|mark| mark.clock).map(stamped);
        Ok((mark, stamp))
    };
    let time = async {
        let time = if time { ask(link, "TIME", &[]).await.map(shown)? } else { None };
        Ok(time.map(stamped))
    };
    let (time, marked) = tokio::join!(time, marked);
    let (marked, by_mark) = marked?;
    let stamp = time?.or(by_mark);
    if let (Some(key), Some(marked)) = (mark, marked) {
        // What was evicted is gone as with other data.
        let evicted = field(&info, "evicted_keys").unwrap_or("0");
        let name = |birth: Arc<str>| format!("{birth}/{evicted}").into();
        let (age, began) = (marked.age, marked.began);
        let named = |birth| Birth { mark: Arc::clone(key), name: name(birth), age, began };
        identity.birth = marked.birth.map(named);
        identity.age = marked.age;
        // Its data have no name: then nobody can say that they are what they were.
        identity.durable &= identity.birth.is_some();
        identity.refuses = marked.refusal;
    }
    if tenure.is_some() {
        identity.overlap = overlap(link, &info).await?;
    }
    // In a cluster the keys of a script are in one slot, and so not beside the mark: there no
    // script can read what the data are called.
    let is_clustered = field(&info, "cluster_enabled").is_ok_and(|enabled| enabled == "1");
    is_named.store(identity.birth.is_some() && !is_clustered, Relaxed);
    Ok(Met { identity, stamp, life, tenure, evicts: evicts(&info), syncs })
}

/// For how long after a replica took over from it some clients may have gone on counting what the
/// former primary granted, by the answer to INFO of the replica; zero in no cluster. The others
/// take a primary for failed after one `cluster-node-timeout` at the earliest, and it stops serving
/// after one and a half at the latest, so one is twice what there can be between the two.
async fn overlap(link: &Link, info: &str) -> Outcome<Duration> {
    if field(info, "cluster_enabled").is_ok_and(|value| value == "1") {
        let told = setting(link, "cluster-node-timeout").await?;
        return Ok(told
            .and_then(|ms| ms.parse().ok())
            .map_or(USUAL_NODE_TIMEOUT, Duration::from_millis));
    }
    Ok(Duration::ZERO)
}

/// What is another after each start. Without it nobody sees that votes may be forgotten.
fn run_id(info: &str) -> Outcome<&str> {
    let why = "the answer to INFO has no run_id, so its restarts cannot be seen: Dragonfly, \
               Kvrocks and some proxies cannot vote";
    field(info, "run_id").map_err(|_| Cause::Rejected(why.into()))
}

/// Why a server would delete votes.
fn evicts(info: &str) -> Option<Arc<str>> {
    let policy = field(info, "maxmemory_policy").ok()?;
    let limit = field(info, "maxmemory").ok().filter(|limit| *limit != "0")?;
    (policy != "noeviction").then(|| {
        format!(
            "it deletes keys, and so votes, when its memory is full (maxmemory-policy {policy} \
             with maxmemory {limit}): set `noeviction`, or accept that by \
             `Builder::allow_eviction`"
        )
        .into()
    })
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
    let promoted = mark::tenure(info).is_some();
    let number = |name| field(info, name).ok()?.parse::<u64>().ok();
    let limit = number("maxmemory").filter(|limit| *limit > 0);
    Ok(Identity {
        run_id: run_id(info)?.to_owned(),
        birth: None,
        age: Duration::from_secs(uptime),
        durable: syncs_always && appends && !promoted,
        overlap: Duration::ZERO,
        refuses: None,
        memory: number("used_memory").zip(limit).map(|(used, limit)| Memory { used, limit }),
    })
}

/// Since 1970.
pub(super) fn shown(reply: Frame) -> Option<Duration> {
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
        assert_eq!((identity.age, identity.durable), (Duration::ZERO, true));
        assert_eq!(told("3598", "").unwrap().age, Duration::from_secs(3598));
        let lacks = |what: &str| Err(Cause::Rejected(what.into()));
        assert_eq!(told("soon", ""), lacks("the answer to INFO has no uptime"));
        assert_eq!(super::identity("", true), lacks("the answer to INFO has no uptime_in_seconds"));
        let Err(Cause::Rejected(why)) = super::identity("uptime_in_seconds:1", true) else {
            panic!("it has no run_id")
        };
        assert!(why.starts_with("the answer to INFO has no run_id, "), "{why}");
    }

    #[test]
    fn a_server_that_writes_its_file_anew_may_not_have_all_on_disk() {
        assert!(told("1", "aof_rewrite_in_progress:0").unwrap().durable);
        assert!(!told("1", "aof_rewrite_in_progress:1").unwrap().durable);
    }

    // Servers that have both are refused, as tests of real ones show.
    #[test]
    fn only_a_server_with_limited_memory_deletes_keys() {
        let told =
            |limit, policy| evicts(&format!("maxmemory:{limit}\r\nmaxmemory_policy:{policy}"));
        assert_eq!((told(0, "volatile-lru"), told(5, "noeviction")), (None, None));
    }
}
