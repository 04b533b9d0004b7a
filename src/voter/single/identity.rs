//! Who a server is, by its own words and by its data; for operators also which keys it has, and
//! which rights the client's user lacks.
//!
//! The first client to find data leaves a fingerprint in them, with a random name. Data with
//! another name, or with none, are not the data of before.
//!
//! Each look of a client makes the fingerprint older by the time since the last look, if nothing
//! can have been forgotten since: the server was not restarted, or it wrote every change to disk
//! then and does now.
//!
//! If a client finds the fingerprint younger than before, the clock before the time of an earlier
//! look, or a vote missing, it gives the data another name, by which all clients notice.

// Why not trust what a server says of its age and its disk: design 5. The age by looks errs to the
// safe side: data never seem older than they are by more than one look can add (fifteen seconds).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::future::try_join_all;

use super::{
    IDENTIFICATION, InspectionSettings, Runner,
    carrier::{Frame, patient},
    link::{Inspection, Link},
    wire,
};
use crate::{
    clock::Clock,
    keys::Word,
    log,
    proto::{Cause, ClockOffset, HoldId, Permission, Persistence, Reason, ServerError, ServerInfo},
    scripts::{Answer, Fingerprint, Value, voter::LOOK},
    voter::{Birth, Call, Identity, KeySearch, KeysFound, Outcome, Request, Stamp, seat::Seat},
};

/// The `cluster-node-timeout` to assume if a server does not tell: Redis's default.
const USUAL_NODE_TIMEOUT: Duration = Duration::from_secs(15);
/// For how long a fingerprint is kept after the last client was connected. Without one, the data
/// count as new.
const FINGERPRINT_IS_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Inspects the server of a link. `syncs`: whether it syncs its disk before it answers, if that was
/// asked before.
pub(super) async fn identify(
    runner: &Runner,
    link: &Link,
    syncs: Option<bool>,
) -> Outcome<Inspection> {
    let Runner {
        looks: InspectionSettings { fingerprint, .. },
        has_sentinels,
        is_named,
        is_unmarked,
        ..
    } = runner;
    let sync = async {
        match syncs {
            Some(syncs) => Ok(syncs),
            None => persistence(link).await.map(|persistence| persistence.is_durable()),
        }
    };
    let (info, syncs) = tokio::join!(ask(link, "INFO", &[]), sync);
    let info = text(info?)?;
    if is_replica(&info) {
        return Err(Cause::Rejected(link.demote()));
    }
    // While it loads, it runs no script, says that it writes nothing to disk, and does not know
    // whether it was a replica.
    if is_on(&info, "loading") {
        return Err(Cause::Rejected("it still loads its data".into()));
    }
    let tenure = tenure_of(&info);
    // With sentinels, promotions are counted in the run id instead (`Dialer::since_promotion`).
    let promotion = tenure.as_deref().filter(|_| !has_sentinels);
    let life = format!("{}/{}", run_id(&info)?, promotion.unwrap_or_default());
    let syncs = syncs?;
    let mut identity = identity(&info, syncs)?;
    // After the next failover this voter is another server, which may lack what this one has on
    // its disk.
    identity.durable &= !has_sentinels;
    let keeps = Some(identity.durable);
    let mut asked = Clock::System.now();
    let found = match fingerprint {
        Some(key) => look(link, key, &life, keeps, is_unmarked).await?,
        None => None,
    };
    // The look shows the clock too. `TIME` costs one more command, so only if it did not.
    let mut shown = found.as_ref().and_then(|fingerprint| fingerprint.clock);
    if shown.is_none() {
        asked = Clock::System.now();
        shown = time(ask(link, "TIME", &[]).await?);
    }
    let stamp = shown.map(|shown| Stamp { shown, asked, answered: Clock::System.now() });
    if let (Some(key), Some(found)) = (fingerprint, found) {
        add_fingerprint(&mut identity, key, found, &info);
    }
    if tenure.is_some() {
        identity.overlap = overlap(link, &info).await?;
    }
    // In a cluster all keys of a script must be in one slot, and the fingerprint is in another.
    is_named.store(identity.birth.is_some() && !is_on(&info, "cluster_enabled"), Relaxed);
    Ok(Inspection { identity, stamp, life, tenure, evicts: evicts(&info), syncs })
}

fn add_fingerprint(identity: &mut Identity, key: &Arc<str>, found: Fingerprint, info: &str) {
    // The number of evicted keys is a part of the name: an eviction may have taken votes, and then
    // the data are others than before.
    let evicted = field(info, "evicted_keys").unwrap_or("0");
    let name = |birth: Arc<str>| format!("{birth}/{evicted}").into();
    let Fingerprint { age, began, set_back, .. } = found;
    let fingerprint = Arc::clone(key);
    let named = |birth| Birth { fingerprint, name: name(birth), age, began, set_back };
    identity.birth = found.birth.map(named);
    identity.age = age;
    // Without a name nobody notices if the data are deleted, whatever the server writes to disk.
    identity.durable &= identity.birth.is_some();
    identity.refuses = found.refusal;
}

/// For how long after a replica took over in a cluster some clients may have gone on counting
/// grants of the primary before; zero outside of a cluster.
// The others take a primary for failed after one `cluster-node-timeout` at the earliest, and it
// stops serving after one and a half at the latest. So one timeout is twice the longest overlap.
async fn overlap(link: &Link, info: &str) -> Outcome<Duration> {
    if !is_on(info, "cluster_enabled") {
        return Ok(Duration::ZERO);
    }
    let timeout = setting(link, "cluster-node-timeout").await?.and_then(|ms| ms.parse().ok());
    Ok(timeout.map_or(USUAL_NODE_TIMEOUT, Duration::from_millis))
}

/// The run id, which is another one after each start.
// A server without it is refused: nobody would notice its restarts, and so the votes that it forgot
// (law 1).
fn run_id(info: &str) -> Outcome<&str> {
    let why = "the answer to INFO has no run_id, so its restarts cannot be seen: Dragonfly, \
               Kvrocks and some proxies cannot vote";
    field(info, "run_id").map_err(|_| Cause::Rejected(Reason::of(ServerError::CannotVote, why)))
}

/// Why a server may delete votes, if it may.
fn evicts(info: &str) -> Option<Reason> {
    let policy = field(info, "maxmemory_policy").ok()?;
    let limit = field(info, "maxmemory").ok().filter(|limit| *limit != "0")?;
    (policy != "noeviction").then(|| {
        let why = format!(
            "it deletes keys, and so votes, when its memory is full (maxmemory-policy {policy} \
             with maxmemory {limit}): set `noeviction`, or accept that by \
             `Builder::allow_eviction`"
        );
        Reason::of(ServerError::CannotVote, why)
    })
}

fn identity(info: &str, syncs_always: bool) -> Outcome<Identity> {
    // Negative if the server's clock was set back after its start. Then it counts as just started.
    let uptime = field(info, "uptime_in_seconds")?.parse::<i64>();
    let uptime = uptime.map_err(|_| Cause::Rejected("the answer to INFO has no uptime".into()))?;
    let uptime = u64::try_from(uptime).unwrap_or(0);
    // After the append-only file is switched on, the first one is written by a rewrite. A crash
    // before its end leaves no file.
    let appends = is_on(info, "aof_enabled") && !is_on(info, "aof_rewrite_in_progress");
    // A server that was a replica may lack what the primary before had on its disk.
    let promoted = tenure_of(info).is_some();
    let limit = number(info, "maxmemory").filter(|limit| *limit > 0);
    let used =
        limit.and_then(|limit| Some(number(info, "used_memory")?.saturating_mul(1000) / limit));
    Ok(Identity {
        run_id: run_id(info)?.to_owned(),
        age: Duration::from_secs(uptime),
        durable: syncs_always && appends && !promoted,
        memory: used.map(|used| used.try_into().unwrap_or(u32::MAX)),
        ..Identity::default()
    })
}

/// The latest time that a clock may show.
// Far below the end of `Duration`, so that no sum overflows, whatever a server answers.
const LATEST: Duration = Duration::from_secs(1 << 40);

/// The time since 1970 in an answer to `TIME`.
fn time(reply: Frame) -> Option<Duration> {
    let Ok(Value::List(parts)) = wire::value(reply) else { return None };
    let [Value::Text(seconds), Value::Text(micros)] = &*parts else { return None };
    let (seconds, micros) = (seconds.parse().ok()?, micros.parse().ok()?);
    let shown = Duration::from_secs(seconds).checked_add(Duration::from_micros(micros));
    shown.filter(|shown| *shown <= LATEST)
}

/// The tenure of a primary that was a replica before, or was started with a copy of a primary's
/// data: another one after each promotion. None once the server has forgotten it, which it does
/// after an hour without replicas (`repl-backlog-ttl`).
// The run id stays the same when a replica is promoted, though it may lack votes of its primary.
fn tenure_of(info: &str) -> Option<String> {
    let before = field(info, "master_replid2").ok()?;
    let id = field(info, "master_replid").ok()?;
    before.bytes().any(|byte| byte != b'0').then(|| id.to_owned())
}

/// Gives the inspected data another name, unless they have another one already.
// Otherwise the second of two clients would rename what the first has renamed, and each renaming is
// a loss to all others.
pub(super) async fn rename(link: &Link, inspection: &Inspection) -> Outcome<()> {
    let Some(birth) = &inspection.identity.birth else { return Ok(()) };
    let call = look_call(&birth.fingerprint, &inspection.life, None, Some(birth));
    look_at_fingerprint(link, &call).await.map(drop)
}

/// A call that reads the fingerprint at `key`, and writes it. `keeps`: whether a restart of the
/// server forgets nothing; `None` leaves what the fingerprint says of that. Data with the name of
/// `lost` get another name.
pub(super) fn look_call(key: &str, life: &str, keeps: Option<bool>, lost: Option<&Birth>) -> Call {
    let keeps = keeps.map_or("", |keeps| if keeps { "1" } else { "0" });
    let kept = FINGERPRINT_IS_KEPT.as_millis().to_string();
    // A name for data that have none.
    let fresh = format!("{:016x}", rand::random::<u64>());
    // A party of its own. If two looks were one party, and the server had forgotten the script, the
    // first would count as overtaken, and its voter as one that refuses votes.
    let itself = HoldId::parse(&fresh);
    let birth = lost.map_or_else(|| fresh.clone(), |lost| lost.rename(&fresh));
    let lost = lost.map_or("", Birth::data);
    let args = [Word::from(&birth), life.into(), keeps.into(), lost.into()];
    let requests = [Request::new([Word::from(key)], args, Some(&itself))].into();
    let (shared, deadline) = ([kept.into()].into(), IDENTIFICATION);
    Call { script: &LOOK, shared, requests, deadline, longest: deadline }
}

/// Sends such a call past the gate, which may be shut, and by its text.
async fn look_at_fingerprint(link: &Link, call: &Call) -> Outcome<Outcome<Answer>> {
    let source = Bytes::from_static(LOOK.source.as_bytes());
    let words = wire::arguments(call, source, "PUBLISH", false, None);
    let reply = link.carrier.command(&patient(IDENTIFICATION), "EVAL", words).await;
    let answer = wire::unpacked(link.note_reply(reply, IDENTIFICATION)?)
        .and_then(|value| Answer::each(value, 1, LOOK.width).remove(0));
    if wire::is_of_a_replica(&answer) {
        return Err(Cause::Rejected(link.demote()));
    }
    Ok(answer)
}

/// Reads the fingerprint at `key`, and writes it. None if the server may never allow that.
/// `is_unmarked`: whether the look before, on whichever connection, could not do it.
async fn look(
    link: &Link,
    key: &str,
    life: &str,
    keeps: Option<bool>,
    is_unmarked: &AtomicBool,
) -> Outcome<Option<Fingerprint>> {
    let server = Arc::clone(&link.place);
    match look_at_fingerprint(link, &look_call(key, life, keeps, None)).await? {
        Ok(answer) => {
            if is_unmarked.swap(false, Relaxed) {
                log::report(
                    move || tracing::warn!(%server, "the fingerprint of a server can be read again"),
                );
            }
            Ok(Fingerprint::read(&answer))
        }
        // In this state it cannot vote either, so it takes no votes now. As its age is unknown, its
        // data count as new.
        Err(Cause::Rejected(why)) if why.is_passing() => {
            // If only the fingerprint's slot has moved to another server, this one takes votes.
            let refusal = (!why.is_elsewhere()).then(|| Arc::clone(why.text()));
            log::report(move || {
                tracing::debug!(%server, %why, "the fingerprint of a server cannot be read now");
            });
            let [age, began, set_back] = [Duration::ZERO; 3];
            Ok(Some(Fingerprint { birth: None, age, refusal, began, set_back, clock: None }))
        }
        Err(Cause::Rejected(why)) if why.is(ServerError::UnknownCommand) => {
            let why = format!(
                "it runs no Lua scripts, which all locks need ({why}): Valkey 9.1 takes them from \
                 the package `valkey-lua`, and Garnet with `--lua`"
            );
            Err(Cause::Rejected(Reason::of(ServerError::CannotVote, why)))
        }
        // A missing right to the key may last for ever. If it made the data new, every new client
        // would wait for a longest lease.
        Err(cause) => {
            if !is_unmarked.swap(true, Relaxed) {
                log::report(move || {
                    tracing::warn!(
                        %server, %cause,
                        "the fingerprint of a server cannot be read: deleted data go unnoticed"
                    );
                });
            }
            Ok(None)
        }
    }
}

/// The reply to a command. An error reply is a frame too.
pub(super) async fn ask(link: &Link, name: &'static str, words: &[&str]) -> Outcome<Frame> {
    let words = words.iter().map(|word| (*word).into()).collect();
    let reply = link.carrier.command(&patient(IDENTIFICATION), name, words).await;
    link.note_reply(reply, IDENTIFICATION)
}

/// The value of a field in an answer to `INFO`.
fn field<'a>(info: &'a str, name: &str) -> Outcome<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':').map(str::trim);
    let missing = || Cause::Rejected(format!("the answer to INFO has no {name}").into());
    info.lines().find_map(value).ok_or_else(missing)
}

fn is_on(info: &str, name: &str) -> bool {
    field(info, name).is_ok_and(|value| value == "1")
}

fn number(info: &str, name: &str) -> Option<u64> {
    field(info, name).ok()?.parse().ok()
}

fn is_replica(info: &str) -> bool {
    field(info, "role").is_ok_and(|role| role == "slave")
}

fn text(info: Frame) -> Outcome<String> {
    match wire::value(info)? {
        Value::Text(text) => Ok(text),
        other => Err(Cause::Rejected(format!("INFO answers {other:?}").into())),
    }
}

/// The settings in an answer to `CONFIG GET`; none if the server refuses it.
fn pairs(reply: Frame) -> BTreeMap<String, String> {
    let Frame::Map { data, .. } = reply else { return BTreeMap::new() };
    let text = |frame| match wire::value(frame) {
        Ok(Value::Text(text)) => Some(text),
        _ => None,
    };
    data.into_iter().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect()
}

/// How a server writes to its disk, as far as it tells. Whether it writes at all is in `INFO`.
async fn persistence(link: &Link) -> Outcome<Persistence> {
    // One pattern, as `CONFIG GET` takes several names only since Redis 7.0.
    let mut settings = pairs(ask(link, "CONFIG", &["GET", "*a[op][fp]*"]).await?);
    Ok(Persistence {
        appendonly: true,
        no_appendfsync_on_rewrite: settings.get("no-appendfsync-on-rewrite").map(|it| it == "yes"),
        appendfsync: settings.remove("appendfsync"),
        aof_load_corrupt_tail_max_size: settings.remove("aof-load-corrupt-tail-max-size"),
        ..Persistence::default()
    })
}

/// A setting of the server; none if it refuses to tell.
pub(super) async fn setting(link: &Link, name: &'static str) -> Outcome<Option<String>> {
    Ok(pairs(ask(link, "CONFIG", &["GET", name]).await?).remove(name))
}

/// How many keys a server looks at in one step of a search.
// Such a step takes less than a millisecond, and a server answers nobody else meanwhile.
const STEP: &str = "1000";
/// Whether a server of a cluster serves no slot while any slot has no primary.
const COVERAGE: &str = "cluster-require-full-coverage";
/// The most steps of one search.
const STEPS: usize = 10_000;

/// A command for each right that locks need. `KEY`, `CHANNEL` and `CALLS` stand for names of this
/// client.
// None of them changes anything. A command that would write has arguments that make no sense: the
// server says so only after it has checked the right.
const COMMANDS: &str = "\
PING,INFO server,CLIENT ID,CONFIG GET save,TIME,EVAL return 0,\
EVALSHA 0000000000000000000000000000000000000000 0,GET KEY,SET KEY  PX 0,HSET KEY f v f,\
HGET KEY f,HGETALL KEY,HDEL KEY f,HEXISTS KEY f,PTTL KEY,PEXPIRE KEY 1,PEXPIREAT KEY 1,EXISTS KEY,\
DEL KEY,ZADD KEY XX 0 m,ZREM KEY m,ZSCORE KEY m,ZRANK KEY m,ZCARD KEY,ZCOUNT KEY 0 0,\
ZRANGE KEY 0 0,ZRANGEBYSCORE KEY 0 0,PUBLISH CALLS ,PUBLISH CHANNEL ,SPUBLISH CHANNEL ";

impl Runner {
    /// What the server says of itself now, without what it refuses to say. `calls`: a channel as it
    /// is used for wake-ups.
    pub(super) async fn survey(self: Arc<Self>, calls: Arc<str>) -> Outcome<ServerInfo> {
        let info = text(self.reply("INFO", &[]).await?)?;
        let asked = Clock::System.now();
        let shown = time(self.reply("TIME", &[]).await?);
        let (took, wall) = (Clock::System.now().since(asked), Clock::System.wall());
        let coverage = pairs(self.reply("CONFIG", &["GET", COVERAGE]).await?).remove(COVERAGE);
        let coverage = coverage.filter(|_| is_on(&info, "cluster_enabled"));
        let number = |name| number(&info, name);
        let text = |name: &str| field(&info, name).map(str::to_owned);
        let software = text("server_name").unwrap_or_else(|_| "redis".into());
        let replicas = number("connected_slaves").unwrap_or_default();
        Ok(ServerInfo {
            run_id: text("run_id")?,
            version: text(&format!("{software}_version")).or_else(|_| text("redis_version"))?,
            software,
            is_primary: !is_replica(&info),
            uptime: Duration::from_secs(number("uptime_in_seconds").unwrap_or_default()),
            replicas: u32::try_from(replicas).unwrap_or(u32::MAX),
            memory_used: number("used_memory").unwrap_or_default(),
            memory_limit: number("maxmemory").filter(|limit| *limit > 0),
            eviction_policy: text("maxmemory_policy").unwrap_or_default(),
            persistence: self.persistence(&info).await?,
            needs_all_slots: coverage.map(|value| value == "yes"),
            clock: shown.map(|shown| ClockOffset::new(shown, wall, took)),
            missing_rights: self.missing_rights(&calls).await?,
        })
    }

    async fn persistence(&self, info: &str) -> Outcome<Persistence> {
        let link = self.gate.pass()?;
        let mut settings = pairs(self.reply("CONFIG", &["GET", "save"]).await?);
        // A server replays its append-only file as this user. Most versions drop transactions for
        // which it lacks a right, and with them votes, and start all the same (guarantee 4).
        let default = pairs(self.reply("ACL", &["GETUSER", "default"]).await?);
        let commands = default.get("commands");
        // Further rights that it lacks, such as `-eval`, are not needed: no file has that command.
        let may_write = |commands: &String| {
            commands.starts_with("+@all") && default.get("keys").is_none_or(|keys| keys == "~*")
        };
        Ok(Persistence {
            appendonly: is_on(info, "aof_enabled"),
            default_user_may_write: commands.map(may_write),
            save: settings.remove("save"),
            ..persistence(&link).await?
        })
    }

    /// The rights that the user lacks, as `ACL SETUSER` takes them. Unknown, and so none, if the
    /// server has no slots: then there is no key to try.
    async fn missing_rights(&self, calls: &str) -> Outcome<Vec<String>> {
        let InspectionSettings { fingerprint: Some(fingerprint), seat, .. } = &self.looks else {
            return Ok(Vec::new());
        };
        let calls = &*seat.map_or_else(|| calls.into(), |seat| seat.name(calls));
        let (key, channel) = (format!("{fingerprint}:rights"), format!("{fingerprint}:wake"));
        let asked = COMMANDS.split(',').map(async |command: &'static str| {
            let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
            let right = match name {
                "CLIENT" | "CONFIG" => command.split(' ').take(2).collect::<Vec<_>>().join("|"),
                _ => name.to_owned(),
            };
            let words = rest.split(' ').filter(|_| !rest.is_empty()).map(|word| match word {
                "KEY" => &*key,
                "CHANNEL" => &*channel,
                "CALLS" => calls,
                word => word,
            });
            let words: Vec<&str> = words.collect();
            // Only one of `PUBLISH` and `SPUBLISH` is used for the channels of locks.
            if words.first() == Some(&&*channel) && name != self.publish() {
                return Ok(None);
            }
            match wire::value(self.reply(name, &words).await?) {
                Err(Cause::Rejected(why)) => {
                    Ok(lacked(&why, &format!("+{}", right.to_lowercase()), words.first().copied()))
                }
                _ => Ok(None),
            }
        });
        let missing: BTreeSet<String> = try_join_all(asked).await?.into_iter().flatten().collect();
        Ok(missing.into_iter().collect())
    }

    /// The locks whose keys the server has, by their names outside of the cluster.
    pub(super) async fn search(self: Arc<Self>, search: KeySearch) -> Outcome<KeysFound> {
        let seat = self.looks.seat;
        let pattern = search.keys.pattern(&search.names, seat.map_or("", Seat::any_ending));
        let found = |key: String| {
            let outside = seat.map_or(Some(key.clone()), |seat| seat.outside(&key));
            search.found(&outside?)
        };
        let (mut locks, mut cursor) = (BTreeSet::new(), "0".to_owned());
        for _ in 0..STEPS {
            let words = [&cursor, "MATCH", &pattern, "COUNT", STEP];
            let (next, keys) = step(wire::value(self.reply("SCAN", &words).await?)?)?;
            locks.extend(keys.into_iter().filter_map(found));
            if locks.len() > search.limit {
                break;
            }
            if next == "0" {
                return Ok(KeysFound { locks, is_complete: true });
            }
            cursor = next;
        }
        Ok(KeysFound { locks, is_complete: false })
    }
}

/// The next cursor and the keys in an answer to `SCAN`.
fn step(reply: Value) -> Outcome<(String, Vec<String>)> {
    let text = |value| if let Value::Text(text) = value { Some(text) } else { None };
    let parts = if let Value::List(parts) = reply { parts } else { Vec::new() };
    match <[Value; 2]>::try_from(parts) {
        Ok([Value::Text(cursor), Value::List(keys)]) => {
            Ok((cursor, keys.into_iter().filter_map(text).collect()))
        }
        _ => Err(Cause::Rejected("unexpected answer to SCAN".into())),
    }
}

/// The right that a refusal is about: `right` to the command, or that to the key or channel `name`.
fn lacked(why: &Reason, right: &str, name: Option<&str>) -> Option<String> {
    // A pattern for all locks, as nobody grants the key of one.
    let begins = |name: &str| {
        let upto = |sign: &str| Some(format!("{}{sign}*", name.split_once(sign)?.0));
        upto("{").or_else(|| upto("calls:")).unwrap_or_else(|| name.to_owned())
    };
    Some(match (why.lacks()?, name) {
        (Permission::Channel, Some(name)) => format!("&{}", begins(name)),
        (Permission::Key, Some(name)) => format!("~{}", begins(name)),
        _ => right.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn no_look_overtakes_another() {
        let look = || look_call("fingerprint", "life/", None, None).requests[0].party;
        assert_ne!(look(), look());
    }

    fn read(uptime: &str, more: &str) -> Outcome<Identity> {
        let info = format!(
            "run_id:life\r\nuptime_in_seconds:{uptime}\r\naof_enabled:1\r\n\
             master_replid2:0000\r\n{more}"
        );
        identity(&info, true)
    }

    // The clock by which the server counts was set back by an hour after its start.
    #[test]
    fn a_server_with_a_negative_uptime_has_just_started() {
        let identity = read("-3598", "").unwrap();
        assert_eq!((identity.age, identity.durable), (Duration::ZERO, true));
        assert_eq!(read("3598", "").unwrap().age, Duration::from_secs(3598));
        let lacks = |what: &str| Err(Cause::Rejected(what.into()));
        assert_eq!(read("soon", ""), lacks("the answer to INFO has no uptime"));
        assert_eq!(super::identity("", true), lacks("the answer to INFO has no uptime_in_seconds"));
        let Err(Cause::Rejected(why)) = super::identity("uptime_in_seconds:1", true) else {
            panic!("it has no run_id")
        };
        assert!(why.needs_an_operator(), "{why}");
    }

    #[test]
    fn a_server_that_writes_its_file_anew_may_not_have_all_on_disk() {
        assert!(read("1", "aof_rewrite_in_progress:0").unwrap().durable);
        assert!(!read("1", "aof_rewrite_in_progress:1").unwrap().durable);
    }

    // Servers that have both are refused, as tests of real ones show.
    #[test]
    fn only_a_server_with_limited_memory_deletes_keys() {
        let why =
            |limit, policy| evicts(&format!("maxmemory:{limit}\r\nmaxmemory_policy:{policy}"));
        assert_eq!((why(0, "volatile-lru"), why(5, "noeviction")), (None, None));
    }

    #[test]
    fn a_refusal_names_the_right_that_is_missing() {
        let key = Some("quorate:{%voter}:rights");
        for (why, right, name, missing) in [
            ("ERR syntax error", "+set", key, None),
            (
                "NOPERM this user has no permissions to run the 'set' command",
                "+set",
                key,
                Some("+set"),
            ),
            (
                "NOPERM this user has no permissions to access one of the keys used as arguments",
                "+get",
                key,
                Some("~quorate:{*"),
            ),
            ("NOPERM No permissions to access a key", "+get", key, Some("~quorate:{*")),
            (
                "NOPERM No permissions to access a channel",
                "+publish",
                Some("quorate:calls:c:survey"),
                Some("&quorate:calls:*"),
            ),
        ] {
            assert_eq!(lacked(&Reason::of_server(why), right, name).as_deref(), missing, "{why}");
        }
    }

    proptest! {
        #[test]
        fn whatever_info_says_is_read_or_refused(
            values in vec("-?[0-9]{0,20}|1|slave|\\PC{0,12}", 10),
        ) {
            let names = "run_id uptime_in_seconds aof_enabled aof_rewrite_in_progress \
                         master_replid master_replid2 maxmemory used_memory maxmemory_policy role";
            let lines = names.split_whitespace().zip(&values);
            let lines: Vec<_> = lines.map(|(name, value)| format!("{name}:{value}\r\n")).collect();
            let info = lines.concat();
            if let Ok(identity) = super::identity(&info, true) {
                prop_assert_eq!(Ok(&*identity.run_id), run_id(&info));
            }
            drop((evicts(&info), is_replica(&info)));
        }

        #[test]
        fn a_clock_shows_a_time_that_one_can_reckon_with_or_none(
            seconds in "[0-9]{0,20}|-1", micros in "[0-9]{0,20}",
        ) {
            let blob = |text: String| Frame::BlobString { data: text.into(), attributes: None };
            let data = vec![blob(seconds), blob(micros)];
            let shown = time(Frame::Array { data, attributes: None });
            prop_assert!(shown.is_none_or(|shown| shown <= LATEST), "{:?}", shown);
        }
    }
}
