//! What a server says of itself and which keys it has, when somebody asks.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fred::types::Resp3Frame as Frame;

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
        let link = self.gate.pass()?.link;
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

    /// The locks whose keys the server has, by what `read` makes of each key that fits the pattern.
    pub(super) async fn search(
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
        let mut passage = self.gate.pass()?;
        let link = Arc::clone(&passage.link);
        tokio::select! {
            biased;
            reply = ask(&link, name, words) => reply,
            () = passage.closed() => Err(Cause::Broken(link.trouble())),
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
