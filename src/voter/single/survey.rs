//! What a server says of itself, which keys it has, and which rights the client's user lacks on it,
//! when somebody asks. The rights are found by commands that change nothing.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fred::types::Resp3Frame as Frame;
use futures::future::try_join_all;

use super::{
    identity::shown,
    info::{ask, field, is_replica, pairs, persistence},
    replies,
    run::Runner,
};
use crate::{
    clock::Clock,
    proto::{Cause, ClockOffset, FoundLock, Persistence, ServerInfo},
    scripts::Value,
    voter::{KeysFound, Outcome},
};

/// So many keys the server looks at in one step: a step of this length takes less than one
/// millisecond.
const STEP: &str = "1000";
/// Whether a server of a cluster serves none of its slots while another has no primary.
const COVERAGE: &str = "cluster-require-full-coverage";
/// The most steps of one search.
const STEPS: usize = 10_000;

/// What locks need, and a command for which it is needed, by which nothing changes: one that would
/// write has arguments that make no sense, of which the server says so after it has looked whether
/// the command is allowed. `KEY`, `CHANNEL` and `CALLS` stand for names of this client.
const COMMANDS: [(&str, &str, &[&str]); 30] = [
    ("+ping", "PING", &[]),
    ("+info", "INFO", &["server"]),
    ("+client|id", "CLIENT", &["ID"]),
    ("+config|get", "CONFIG", &["GET", "save"]),
    ("+time", "TIME", &[]),
    ("+eval", "EVAL", &["return 1", "0"]),
    ("+evalsha", "EVALSHA", &["0000000000000000000000000000000000000000", "0"]),
    ("+get", "GET", &["KEY"]),
    ("+set", "SET", &["KEY", "", "PX", "0"]),
    ("+hset", "HSET", &["KEY", "f", "v", "f"]),
    ("+hget", "HGET", &["KEY", "f"]),
    ("+hgetall", "HGETALL", &["KEY"]),
    ("+hdel", "HDEL", &["KEY", "f"]),
    ("+hexists", "HEXISTS", &["KEY", "f"]),
    ("+pttl", "PTTL", &["KEY"]),
    ("+pexpire", "PEXPIRE", &["KEY", "1"]),
    ("+pexpireat", "PEXPIREAT", &["KEY", "1"]),
    ("+exists", "EXISTS", &["KEY"]),
    ("+del", "DEL", &["KEY"]),
    ("+zadd", "ZADD", &["KEY", "XX", "0", "m"]),
    ("+zrem", "ZREM", &["KEY", "m"]),
    ("+zscore", "ZSCORE", &["KEY", "m"]),
    ("+zrank", "ZRANK", &["KEY", "m"]),
    ("+zcard", "ZCARD", &["KEY"]),
    ("+zcount", "ZCOUNT", &["KEY", "0", "0"]),
    ("+zrange", "ZRANGE", &["KEY", "0", "0"]),
    ("+zrangebyscore", "ZRANGEBYSCORE", &["KEY", "0", "0"]),
    ("+publish", "PUBLISH", &["CALLS", ""]),
    ("+publish", "PUBLISH", &["CHANNEL", ""]),
    ("+spublish", "SPUBLISH", &["CHANNEL", ""]),
];

impl Runner {
    /// What the server says of itself now. What it refuses to say is left out.
    /// `calls`: a channel on which a client could be called.
    pub(super) async fn survey(self: Arc<Self>, calls: Arc<str>) -> Outcome<ServerInfo> {
        let info = match replies::value(self.reply("INFO", &[]).await?)? {
            Value::Text(info) => info,
            other => return Err(Cause::Rejected(format!("INFO answers {other:?}").into())),
        };
        let clock = self.clock_offset().await?;
        let persistence = self.persistence(&info).await?;
        let told = pairs(self.reply("CONFIG", &["GET", COVERAGE]).await?);
        let is_in_cluster = field(&info, "cluster_enabled").is_ok_and(|value| value == "1");
        let coverage = told.get(COVERAGE).filter(|_| is_in_cluster);
        let missing_rights = self.missing_rights(&calls).await?;
        let number = |name| field(&info, name).ok().and_then(|value| value.parse::<u64>().ok());
        let text = |name| field(&info, name).map(str::to_owned);
        let software = text("server_name").unwrap_or_else(|_| "redis".into());
        let own_version = format!("{software}_version");
        let version = text(&own_version).or_else(|_| text("redis_version"))?;
        let replicas = number("connected_slaves").unwrap_or_default();
        Ok(ServerInfo {
            run_id: text("run_id")?,
            software,
            version,
            is_primary: !is_replica(&info),
            uptime: Duration::from_secs(number("uptime_in_seconds").unwrap_or_default()),
            replicas: u32::try_from(replicas).unwrap_or(u32::MAX),
            memory_used: number("used_memory").unwrap_or_default(),
            memory_limit: number("maxmemory").filter(|limit| *limit > 0),
            eviction_policy: text("maxmemory_policy").unwrap_or_default(),
            persistence,
            needs_all_slots: coverage.map(|value| value == "yes"),
            clock,
            missing_rights,
        })
    }

    async fn clock_offset(&self) -> Outcome<Option<ClockOffset>> {
        let asked = Clock::System.now();
        let reply = self.reply("TIME", &[]).await?;
        let (took, wall) = (Clock::System.now().since(asked), Clock::System.wall());
        Ok(shown(reply).map(|shown| ClockOffset::new(shown, wall, took)))
    }

    async fn persistence(&self, info: &str) -> Outcome<Persistence> {
        let link = self.gate.pass()?;
        let mut told = pairs(self.reply("CONFIG", &["GET", "save"]).await?);
        let default = pairs(self.reply("ACL", &["GETUSER", "default"]).await?);
        let commands = default.get("commands");
        // What it may not on purpose, as `-eval`, is in no file.
        let may_write = |commands: &String| {
            commands.starts_with("+@all") && default.get("keys").is_none_or(|keys| keys == "~*")
        };
        Ok(Persistence {
            appendonly: field(info, "aof_enabled").is_ok_and(|value| value == "1"),
            default_user_may_write: commands.map(may_write),
            save: told.remove("save"),
            ..persistence(&link).await?
        })
    }

    /// What the user lacks, as `ACL SETUSER` takes it. `calls`: a channel on which a client could
    /// be called. A server that can have no mark can have no key of a lock: then nothing is known.
    pub(super) async fn missing_rights(&self, calls: &str) -> Outcome<Vec<String>> {
        let Some(mark) = &self.looks.mark else { return Ok(Vec::new()) };
        let (key, channel) = (format!("{mark}:rights"), format!("{mark}:wake"));
        let fill = |word: &&'static str| match *word {
            "KEY" => key.clone(),
            "CHANNEL" => channel.clone(),
            "CALLS" => calls.to_owned(),
            word => word.to_owned(),
        };
        // What is published on the channel of a lock is published by one of the two.
        let is_needed = |(_, command, words): &&(&str, &str, &[&str])| {
            words.first() != Some(&"CHANNEL") || *command == self.publish()
        };
        let asked = COMMANDS.iter().filter(is_needed).map(async |(right, command, words)| {
            let words: Vec<String> = words.iter().map(fill).collect();
            let texts: Vec<&str> = words.iter().map(String::as_str).collect();
            match replies::value(self.reply(command, &texts).await?) {
                Err(Cause::Rejected(why)) => Ok(lacked(&why, right, texts.first().copied())),
                _ => Ok(None),
            }
        });
        let missing: BTreeSet<String> = try_join_all(asked).await?.into_iter().flatten().collect();
        Ok(missing.into_iter().collect())
    }

    /// The locks whose keys the server has, by what `read` makes of each key that fits the pattern.
    pub(in crate::voter) async fn search(
        self: Arc<Self>,
        pattern: String,
        limit: usize,
        read: impl Fn(&str) -> Option<FoundLock> + Send,
    ) -> Outcome<KeysFound> {
        let (mut locks, mut cursor) = (BTreeSet::new(), "0".to_owned());
        for _ in 0..STEPS {
            let words = [&cursor, "MATCH", &pattern, "COUNT", STEP];
            let (next, keys) = step(&replies::value(self.reply("SCAN", &words).await?)?)?;
            locks.extend(keys.iter().filter_map(|key| read(key)));
            if locks.len() > limit {
                break;
            }
            if next == "0" {
                return Ok(KeysFound { locks, is_complete: true });
            }
            cursor = next;
        }
        Ok(KeysFound { locks, is_complete: false })
    }

    /// The reply to a command on the connection that stands.
    pub(super) async fn reply(&self, name: &'static str, words: &[&str]) -> Outcome<Frame> {
        let link = self.gate.pass()?;
        tokio::select! {
            biased;
            reply = ask(&link, name, words) => reply,
            () = self.gate.closed(&link) => Err(Cause::Broken(link.trouble())),
        }
    }
}

/// The next cursor, and the keys.
fn step(reply: &Value) -> Outcome<(String, Vec<String>)> {
    let text = |key: &Value| match key {
        Value::Text(key) => Some(key.clone()),
        _ => None,
    };
    if let Value::List(parts) = reply
        && let [Value::Text(cursor), Value::List(keys)] = &**parts
    {
        return Ok((cursor.clone(), keys.iter().filter_map(text).collect()));
    }
    Err(Cause::Rejected(format!("SCAN answers {reply:?}").into()))
}

/// The right that a refusal is about: to the command, to a key or to a channel, of which the first
/// argument is one.
fn lacked(why: &str, right: &str, name: Option<&str>) -> Option<String> {
    why.strip_prefix("NOPERM")?;
    // What all names of locks begin with.
    let begins = |name: &str| {
        let upto = |sign: &str| Some(format!("{}{sign}*", name.split_once(sign)?.0));
        upto("{").or_else(|| upto("calls:")).unwrap_or_else(|| name.to_owned())
    };
    match name {
        _ if why.contains("command") => Some(right.to_owned()),
        Some(name) if why.contains("channel") => Some(format!("&{}", begins(name))),
        Some(name) if why.contains("key") => Some(format!("~{}", begins(name))),
        _ => Some(right.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(lacked(why, right, name).as_deref(), missing, "{why}");
        }
    }
}
