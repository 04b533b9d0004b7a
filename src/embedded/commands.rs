//! The commands, as a Redis server of version 7 answers them.

use std::ops::{Bound, RangeBounds};

use super::data::{Database, Hash, Keyspace, SortedSet, Stored, wrong_type};
use crate::scripts::Value;

/// What a command or a script answers, as a server's client would see it.
///
/// ```
/// use quorate::embedded::{EmbeddedVoter, Reply};
///
/// let voter = EmbeddedVoter::new("a");
/// let status = Reply::Text("OK".into());
/// assert_eq!(voter.command(&["SET", "key", "value"]), Ok(status));
/// assert_eq!(voter.command(&["GET", "no such key"]), Ok(Reply::Nil));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing: the key or the field is not there.
    Nil,
    /// A number.
    Int(i64),
    /// A text or a status.
    Text(String),
    /// Several replies.
    List(Vec<Reply>),
}

impl From<Reply> for Value {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Nil => Self::Nil,
            Reply::Int(number) => Self::Int(number),
            Reply::Text(text) => Self::Text(text),
            Reply::List(replies) => Self::List(replies.into_iter().map(Self::from).collect()),
        }
    }
}

/// A command's answer.
// A status is not a text for a script: in Lua it is a table with the field `ok`, as on a server.
#[derive(Debug)]
pub(super) enum Answered {
    Reply(Reply),
    Status(&'static str),
}

impl From<Answered> for Reply {
    fn from(answered: Answered) -> Self {
        match answered {
            Answered::Reply(reply) => reply,
            Answered::Status(status) => Self::Text(status.into()),
        }
    }
}

type CommandResult = Result<Answered, String>;

/// Whether a command takes so many words behind its name. `None`: there is no such command.
// Before the command runs, so that the arms of `run` need no case for a wrong number.
pub(super) fn takes(name: &str, count: usize) -> Option<bool> {
    Some(match name {
        "flushall" | "time" => count == 0,
        "get" | "type" | "keys" | "pttl" | "hkeys" | "hgetall" | "zcard" => count == 1,
        "del" | "exists" => count >= 1,
        "pexpire" | "pexpireat" | "hget" | "hexists" | "zscore" | "zrank" | "publish" => count == 2,
        "set" | "hdel" | "zrem" => count >= 2,
        "zcount" => count == 3,
        "hset" | "zadd" | "zrange" | "zrangebyscore" => count >= 3,
        _ => return None,
    })
}

/// Runs a command within a script.
pub(super) fn run_in_script(database: &mut Database, name: &str, words: &[&str]) -> CommandResult {
    // As a full server does, which looks at the first write of a script only: an acquire begins
    // with one that takes memory and is refused, a renewal and a release begin with another and go
    // on (law 7, mutant `renewal_needs_room`).
    match name {
        "set" | "hset" | "zadd" if database.is_full => {
            return Err("OOM command not allowed when used memory > 'maxmemory'.".into());
        }
        "del" | "hdel" | "zrem" | "flushall" | "pexpire" | "pexpireat" => database.is_full = false,
        _ => {}
    }
    run(database, name, words)
}

/// Runs a command that [takes](takes) these words.
pub(super) fn run(database: &mut Database, name: &str, words: &[&str]) -> CommandResult {
    let Database { keyspace, channels, .. } = database;
    Ok(match (name, words) {
        ("set", [key, value, options @ ..]) => set(keyspace, key, value, options)?,
        ("get", [key]) => get(keyspace, key)?,
        ("del", keys) => count(keys.iter().filter(|key| keyspace.remove(key)).count()),
        ("exists", keys) => count(keys.iter().filter(|key| keyspace.get(key).is_some()).count()),
        ("type", [key]) => Answered::Status(match keyspace.get(key) {
            None => "none",
            Some(Stored::Text(_)) => "string",
            Some(Stored::Hash(_)) => "hash",
            Some(Stored::SortedSet(_)) => "zset",
        }),
        ("keys", ["*"]) => texts(keyspace.keys()),
        ("keys", [other]) => {
            return Err(format!("ERR the only pattern of an embedded voter is *, not {other}"));
        }
        ("flushall", _) => {
            keyspace.clear();
            Answered::Status("OK")
        }
        ("pttl", [key]) => number(keyspace.left_ms(key)),
        ("pexpire", [key, ms]) => {
            let at_ms = integer(ms)?.checked_add(keyspace.now_ms());
            expire_at(keyspace, key, at_ms.ok_or("ERR invalid expire time in 'pexpire' command")?)
        }
        ("pexpireat", [key, at_ms]) => expire_at(keyspace, key, integer(at_ms)?),
        ("time", _) => {
            let micros = keyspace.now_micros;
            texts([micros / 1_000_000, micros % 1_000_000].map(|part| part.to_string()))
        }
        ("publish", [channel, text]) => count(channels.publish(channel, text)),
        (_, [key, words @ ..]) if name.starts_with('h') => on_hash(keyspace, name, key, words)?,
        (_, [key, words @ ..]) => on_sorted_set(keyspace, name, key, words)?,
        (_, []) => unreachable!("`takes` has counted the words"),
    })
}

/// `SET` with the options `PX` and `GET`, in this order.
fn set(keyspace: &mut Keyspace, key: &str, value: &str, options: &[&str]) -> CommandResult {
    let is = |word: &str, option| word.eq_ignore_ascii_case(option);
    let (ms, is_old_asked) = match *options {
        [] => (None, false),
        [get] if is(get, "get") => (None, true),
        [px, ms] if is(px, "px") => (Some(ms), false),
        [px, ms, get] if is(px, "px") && is(get, "get") => (Some(ms), true),
        _ => return Err(syntax_error()),
    };
    let ends_at_ms = ms.map(|ms| {
        let ms = Some(integer(ms)?).filter(|ms| *ms > 0);
        let at_ms = ms.and_then(|ms| ms.checked_add(keyspace.now_ms()));
        at_ms.ok_or_else(|| "ERR invalid expire time in 'set' command".to_owned())
    });
    // All that can fail comes first: a command that fails changes nothing.
    let ends_at_ms = ends_at_ms.transpose()?;
    let answered = if is_old_asked { get(keyspace, key)? } else { Answered::Status("OK") };
    keyspace.set(key, Stored::Text(value.into()));
    if let Some(at_ms) = ends_at_ms {
        keyspace.expire_at(key, at_ms);
    }
    Ok(answered)
}

fn get(keyspace: &Keyspace, key: &str) -> CommandResult {
    match keyspace.get(key) {
        None => Ok(text_or_nil(None)),
        Some(Stored::Text(value)) => Ok(text_or_nil(Some(value.clone()))),
        Some(_) => Err(wrong_type()),
    }
}

fn expire_at(keyspace: &mut Keyspace, key: &str, at_ms: i64) -> Answered {
    // A server deletes the key at once, and does not keep it for its last millisecond.
    let is_over = at_ms <= keyspace.now_ms();
    number(if is_over { keyspace.remove(key) } else { keyspace.expire_at(key, at_ms) })
}

fn on_hash(keyspace: &mut Keyspace, name: &str, key: &str, words: &[&str]) -> CommandResult {
    let (pairs, odd) = words.as_chunks::<2>();
    if name == "hset" && !odd.is_empty() {
        return Err(wrong_number_of_arguments("hset"));
    }
    keyspace.with(key, Stored::Hash(Hash::new()), |stored| {
        let Stored::Hash(hash) = stored else { return None };
        let mut put = |field: &str, value: &str| hash.insert(field.into(), value.into()).is_none();
        Some(match (name, words) {
            ("hset", _) => count(pairs.iter().filter(|[field, value]| put(field, value)).count()),
            ("hget", [field]) => text_or_nil(hash.get(*field).cloned()),
            ("hdel", _) => {
                count(words.iter().filter(|field| hash.remove(**field).is_some()).count())
            }
            ("hexists", [field]) => number(hash.contains_key(*field)),
            ("hkeys", _) => texts(hash.keys()),
            _ => texts(hash.iter().flat_map(<[_; 2]>::from)),
        })
    })
}

fn on_sorted_set(keyspace: &mut Keyspace, name: &str, key: &str, words: &[&str]) -> CommandResult {
    // Arguments are read before the key is looked at: as at a server, a bad argument is the error
    // also where the key has another type.
    let with = |keyspace: &mut Keyspace, act: &dyn Fn(&mut SortedSet) -> Answered| {
        keyspace.with(key, Stored::SortedSet(SortedSet::default()), |stored| match stored {
            Stored::SortedSet(set) => Some(act(set)),
            _ => None,
        })
    };
    match *words {
        _ if name == "zadd" => {
            let entries = scored_members(words)?;
            with(keyspace, &|set| {
                count(entries.iter().filter(|(score, member)| set.put(member, *score)).count())
            })
        }
        _ if name == "zrem" => {
            with(keyspace, &|set| count(words.iter().filter(|member| set.remove(member)).count()))
        }
        [] => with(keyspace, &|set| count(set.0.len())),
        [member] if name == "zscore" => with(keyspace, &|set| {
            text_or_nil(set.rank(member).map(|rank| set.0[rank].0.to_string()))
        }),
        [member] => {
            with(keyspace, &|set| set.rank(member).map_or_else(|| text_or_nil(None), count))
        }
        [min, max] if name == "zcount" => {
            let range = score_range(min, max)?;
            with(keyspace, &|set| {
                count(set.0.iter().filter(|(score, _)| range.contains(score)).count())
            })
        }
        [start, stop, ref options @ ..] if name == "zrange" => {
            let shows_scores = shows_scores("ZRANGE", options)?;
            let (start, stop) = (integer(start)?, integer(stop)?);
            with(keyspace, &|set| members(set.slice(start, stop), shows_scores))
        }
        [min, max, ref options @ ..] => {
            let shows_scores = shows_scores("ZRANGEBYSCORE", options)?;
            let range = score_range(min, max)?;
            with(keyspace, &|set| {
                members(set.0.iter().filter(|(score, _)| range.contains(score)), shows_scores)
            })
        }
    }
}

/// Reads the pairs of `ZADD`.
fn scored_members(words: &[&str]) -> Result<Vec<(i64, String)>, String> {
    let (pairs, odd) = words.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(syntax_error());
    }
    let entry = |[score, member]: &[&str; 2]| Ok((whole(score)?, (*member).to_owned()));
    pairs.iter().map(entry).collect()
}

fn members<'a>(entries: impl Iterator<Item = &'a (i64, String)>, shows_scores: bool) -> Answered {
    texts(entries.flat_map(|(score, member)| {
        [Some(member.clone()), shows_scores.then(|| score.to_string())].into_iter().flatten()
    }))
}

fn shows_scores(command: &str, options: &[&str]) -> Result<bool, String> {
    match options {
        [] => Ok(false),
        [option] if option.eq_ignore_ascii_case("WITHSCORES") => Ok(true),
        _ => Err(format!("ERR an embedded voter knows {command} only with WITHSCORES or nothing")),
    }
}

fn score_range(min: &str, max: &str) -> Result<impl RangeBounds<i64> + use<>, String> {
    Ok((score_bound(min)?, score_bound(max)?))
}

/// Reads an end of a range of scores: `(` in front excludes it.
fn score_bound(text: &str) -> Result<Bound<i64>, String> {
    match (text, text.strip_prefix('(')) {
        ("-inf", _) => Ok(Bound::Included(i64::MIN)),
        ("+inf", _) => Ok(Bound::Included(i64::MAX)),
        (_, Some(score)) => whole(score).map(Bound::Excluded),
        (_, None) => whole(text).map(Bound::Included),
    }
}

/// Reads a score.
fn whole(text: &str) -> Result<i64, String> {
    // A server keeps scores as fractions of 53 bits. The scripts of the library only use whole
    // numbers within that, so nothing has to print or round a fraction as a server does.
    let score = text.parse::<i64>().ok().filter(|score| score.unsigned_abs() <= 1 << 53);
    score.ok_or_else(|| format!("ERR an embedded voter takes no score but whole ones: {text}"))
}

fn number(number: impl Into<i64>) -> Answered {
    Answered::Reply(Reply::Int(number.into()))
}

fn count(length: usize) -> Answered {
    number(i64::try_from(length).unwrap_or(i64::MAX))
}

fn text_or_nil(text: Option<String>) -> Answered {
    Answered::Reply(text.map_or(Reply::Nil, Reply::Text))
}

fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Answered {
    let texts = texts.into_iter().map(|text| Reply::Text(text.into()));
    Answered::Reply(Reply::List(texts.collect()))
}

/// Reads a whole number.
pub(super) fn integer(text: &str) -> Result<i64, String> {
    // As strictly as a server: no sign `+`, no blanks, no zeros in front.
    let number = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    number.ok_or_else(|| "ERR value is not an integer or out of range".into())
}

pub(super) fn wrong_number_of_arguments(name: &str) -> String {
    format!("ERR wrong number of arguments for '{name}' command")
}

fn syntax_error() -> String {
    "ERR syntax error".into()
}
