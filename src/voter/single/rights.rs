//! Which rights the client's user lacks on a server, found by commands that change nothing.

use std::collections::BTreeSet;

use futures::future::try_join_all;

use super::{replies, run::Runner};
use crate::{proto::Cause, voter::Outcome};

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
    /// What the user lacks, as `ACL SETUSER` takes it. `calls`: a channel on which a client could
    /// be called. A server that can have no mark can have no key of a lock: then nothing is known.
    pub(super) async fn missing_rights(&self, calls: &str) -> Outcome<Vec<String>> {
        let Some(mark) = &self.mark else { return Ok(Vec::new()) };
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
