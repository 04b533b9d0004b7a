//! The commands, as a server of version 7 answers them.
#![expect(clippy::unnecessary_wraps, reason = "all commands have one signature")]

use std::ops::{Bound, RangeBounds};

use super::data::{Database, Stored, wrong_type};
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

/// A command's answer; Lua tells a status from a text.
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

/// One command: how many words it takes, its own name included (a negative number: at least so
/// many), and what it does with those behind the name.
pub(super) struct Command {
    name: &'static str,
    arity: isize,
    pub(super) run: fn(&mut Database, &[&str]) -> CommandResult,
}

static COMMANDS: [Command; 26] = [
    Command { name: "set", arity: -3, run: set },
    Command { name: "get", arity: 2, run: get },
    Command { name: "del", arity: -2, run: del },
    Command { name: "exists", arity: -2, run: exists },
    Command { name: "type", arity: 2, run: type_of },
    Command { name: "keys", arity: 2, run: keys },
    Command { name: "flushall", arity: 1, run: flush_all },
    Command { name: "pttl", arity: 2, run: pttl },
    Command { name: "pexpire", arity: 3, run: pexpire },
    Command { name: "pexpireat", arity: 3, run: pexpireat },
    Command { name: "time", arity: 1, run: time },
    Command { name: "hset", arity: -4, run: hset },
    Command { name: "hget", arity: 3, run: hget },
    Command { name: "hdel", arity: -3, run: hdel },
    Command { name: "hexists", arity: 3, run: hexists },
    Command { name: "hkeys", arity: 2, run: hkeys },
    Command { name: "hgetall", arity: 2, run: hgetall },
    Command { name: "zadd", arity: -4, run: zadd },
    Command { name: "zrem", arity: -3, run: zrem },
    Command { name: "zscore", arity: 3, run: zscore },
    Command { name: "zrank", arity: 3, run: zrank },
    Command { name: "zcard", arity: 2, run: zcard },
    Command { name: "zcount", arity: 4, run: zcount },
    Command { name: "zrange", arity: -4, run: zrange },
    Command { name: "zrangebyscore", arity: -4, run: zrangebyscore },
    Command { name: "publish", arity: 3, run: publish },
];

impl Command {
    /// Finds a command by its name in any case.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(name))
    }

    /// Whether the command takes so many words behind its name.
    pub(super) fn takes(&self, count: usize) -> bool {
        let needed = self.arity.unsigned_abs() - 1;
        if self.arity < 0 { count >= needed } else { count == needed }
    }

    /// Runs it within a script: a server that is full refuses the first write of one where that
    /// could take memory, and none that follows.
    pub(super) fn run_in_script(&self, database: &mut Database, words: &[&str]) -> CommandResult {
        match self.name {
            "set" | "hset" | "zadd" if database.is_full => {
                return Err("OOM command not allowed when used memory > 'maxmemory'.".into());
            }
            "del" | "hdel" | "zrem" | "flushall" | "pexpire" | "pexpireat" => {
                database.is_full = false;
            }
            _ => {}
        }
        (self.run)(database, words)
    }
}

/// Of a server's options it knows `PX` and, behind that or alone, `GET`.
fn set(database: &mut Database, words: &[&str]) -> CommandResult {
    let is = |word: &str, option| word.eq_ignore_ascii_case(option);
    let (ms, tells) = match words[2..] {
        [] => (None, false),
        [get] if is(get, "get") => (None, true),
        [px, ms] if is(px, "px") => (Some(ms), false),
        [px, ms, get] if is(px, "px") && is(get, "get") => (Some(ms), true),
        _ => return Err(syntax_error()),
    };
    let ends_at_ms = ms.map(|ms| {
        let ms = Some(integer(ms)?).filter(|ms| *ms > 0);
        let at_ms = ms.and_then(|ms| ms.checked_add(database.keyspace.now_ms()));
        at_ms.ok_or_else(|| "ERR invalid expire time in 'set' command".to_owned())
    });
    let ends_at_ms = ends_at_ms.transpose()?;
    let answered = if tells { get(database, words)? } else { Answered::Status("OK") };
    database.keyspace.set(words[0], Stored::Text(words[1].into()));
    if let Some(at_ms) = ends_at_ms {
        database.keyspace.expire_at(words[0], at_ms);
    }
    Ok(answered)
}

fn get(database: &mut Database, words: &[&str]) -> CommandResult {
    match database.keyspace.get(words[0]) {
        None => text_or_nil(None),
        Some(Stored::Text(value)) => text_or_nil(Some(value.clone())),
        Some(_) => Err(wrong_type()),
    }
}

fn del(database: &mut Database, words: &[&str]) -> CommandResult {
    count(words.iter().filter(|key| database.keyspace.remove(key)).count())
}

fn exists(database: &mut Database, words: &[&str]) -> CommandResult {
    count(words.iter().filter(|key| database.keyspace.get(key).is_some()).count())
}

fn type_of(database: &mut Database, words: &[&str]) -> CommandResult {
    Ok(Answered::Status(match database.keyspace.get(words[0]) {
        None => "none",
        Some(Stored::Text(_)) => "string",
        Some(Stored::Hash(_)) => "hash",
        Some(Stored::SortedSet(_)) => "zset",
    }))
}

fn keys(database: &mut Database, words: &[&str]) -> CommandResult {
    if words[0] != "*" {
        return Err(format!("ERR the only pattern of an embedded voter is *, not {}", words[0]));
    }
    texts(database.keyspace.keys())
}

fn flush_all(database: &mut Database, _: &[&str]) -> CommandResult {
    database.keyspace.clear();
    Ok(Answered::Status("OK"))
}

fn pttl(database: &mut Database, words: &[&str]) -> CommandResult {
    number(database.keyspace.left_ms(words[0]))
}

fn pexpire(database: &mut Database, words: &[&str]) -> CommandResult {
    let at_ms = integer(words[1])?.checked_add(database.keyspace.now_ms());
    expire_at(database, words[0], at_ms.ok_or("ERR invalid expire time in 'pexpire' command")?)
}

fn pexpireat(database: &mut Database, words: &[&str]) -> CommandResult {
    expire_at(database, words[0], integer(words[1])?)
}

fn expire_at(database: &mut Database, key: &str, at_ms: i64) -> CommandResult {
    let keyspace = &mut database.keyspace;
    let is_over = at_ms <= keyspace.now_ms();
    number(if is_over { keyspace.remove(key) } else { keyspace.expire_at(key, at_ms) })
}

fn time(database: &mut Database, _: &[&str]) -> CommandResult {
    let micros = database.keyspace.now_micros;
    texts([micros / 1_000_000, micros % 1_000_000].map(|part| part.to_string()))
}

fn hset(database: &mut Database, words: &[&str]) -> CommandResult {
    let (pairs, rest) = words[1..].as_chunks::<2>();
    if !rest.is_empty() {
        return Err(wrong_number_of_arguments("hset"));
    }
    count(database.keyspace.with_hash(words[0], |hash| {
        let mut put = |field: &str, value: &str| hash.insert(field.into(), value.into()).is_none();
        pairs.iter().filter(|[field, value]| put(field, value)).count()
    })?)
}

fn hget(database: &mut Database, words: &[&str]) -> CommandResult {
    text_or_nil(database.keyspace.with_hash(words[0], |hash| hash.get(words[1]).cloned())?)
}

fn hdel(database: &mut Database, words: &[&str]) -> CommandResult {
    count(database.keyspace.with_hash(words[0], |hash| {
        words[1..].iter().filter(|field| hash.remove(**field).is_some()).count()
    })?)
}

fn hexists(database: &mut Database, words: &[&str]) -> CommandResult {
    number(database.keyspace.with_hash(words[0], |hash| hash.contains_key(words[1]))?)
}

fn hkeys(database: &mut Database, words: &[&str]) -> CommandResult {
    database.keyspace.with_hash(words[0], |hash| texts(hash.keys()))?
}

fn hgetall(database: &mut Database, words: &[&str]) -> CommandResult {
    database.keyspace.with_hash(words[0], |hash| texts(hash.iter().flat_map(<[_; 2]>::from)))?
}

fn zadd(database: &mut Database, words: &[&str]) -> CommandResult {
    let (pairs, odd) = words[1..].as_chunks::<2>();
    if !odd.is_empty() {
        return Err(syntax_error());
    }
    // All are read before the key is looked at.
    let scores = pairs.iter().map(|[score, _]| whole(score)).collect::<Result<Vec<_>, _>>()?;
    count(database.keyspace.with_sorted_set(words[0], |set| {
        let scored = scores.into_iter().zip(pairs);
        scored.filter(|(score, [_, member])| set.put(member, *score)).count()
    })?)
}

fn zrem(database: &mut Database, words: &[&str]) -> CommandResult {
    count(database.keyspace.with_sorted_set(words[0], |set| {
        words[1..].iter().filter(|member| set.remove(member)).count()
    })?)
}

fn zscore(database: &mut Database, words: &[&str]) -> CommandResult {
    text_or_nil(database.keyspace.with_sorted_set(words[0], |set| {
        set.rank(words[1]).map(|rank| set.0[rank].0.to_string())
    })?)
}

fn zrank(database: &mut Database, words: &[&str]) -> CommandResult {
    let rank = database.keyspace.with_sorted_set(words[0], |set| set.rank(words[1]))?;
    rank.map_or(text_or_nil(None), count)
}

fn zcard(database: &mut Database, words: &[&str]) -> CommandResult {
    count(database.keyspace.with_sorted_set(words[0], |set| set.0.len())?)
}

fn zcount(database: &mut Database, words: &[&str]) -> CommandResult {
    let range = score_range(words[1], words[2])?;
    count(database.keyspace.with_sorted_set(words[0], |set| {
        set.0.iter().filter(|(score, _)| range.contains(score)).count()
    })?)
}

fn zrange(database: &mut Database, words: &[&str]) -> CommandResult {
    let shows_scores = shows_scores("ZRANGE", &words[3..])?;
    let (start, stop) = (integer(words[1])?, integer(words[2])?);
    database.keyspace.with_sorted_set(words[0], |set| {
        let length = i64::try_from(set.0.len()).unwrap_or(i64::MAX);
        // Counted from the end where negative; -1 where that is before the beginning.
        let at = |index: i64| if index < 0 { (index + length).max(-1) } else { index };
        let (first, end) = (at(start).max(0), at(stop).saturating_add(1));
        let count = usize::try_from(end.saturating_sub(first)).unwrap_or(0);
        let entries = set.0.iter().skip(usize::try_from(first).unwrap_or(usize::MAX));
        members(entries.take(count), shows_scores)
    })?
}

fn zrangebyscore(database: &mut Database, words: &[&str]) -> CommandResult {
    let shows_scores = shows_scores("ZRANGEBYSCORE", &words[3..])?;
    let range = score_range(words[1], words[2])?;
    database.keyspace.with_sorted_set(words[0], |set| {
        members(set.0.iter().filter(|(score, _)| range.contains(score)), shows_scores)
    })?
}

fn members<'a>(
    entries: impl Iterator<Item = &'a (i64, String)>,
    shows_scores: bool,
) -> CommandResult {
    texts(entries.flat_map(|(score, member)| {
        [Some(member.clone()), shows_scores.then(|| score.to_string())].into_iter().flatten()
    }))
}

/// Whether a range is asked for with its scores.
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

/// Reads a score. Scripts count with whole ones alone, which a server keeps as they are.
fn whole(text: &str) -> Result<i64, String> {
    let score = text.parse::<i64>().ok().filter(|score| score.unsigned_abs() <= 1 << 53);
    score.ok_or_else(|| format!("ERR an embedded voter takes no score but whole ones: {text}"))
}

fn publish(database: &mut Database, words: &[&str]) -> CommandResult {
    count(database.channels.publish(words[0], words[1]))
}

fn number(number: impl Into<i64>) -> CommandResult {
    Ok(Answered::Reply(Reply::Int(number.into())))
}

fn count(length: usize) -> CommandResult {
    number(i64::try_from(length).unwrap_or(i64::MAX))
}

fn text_or_nil(text: Option<String>) -> CommandResult {
    Ok(Answered::Reply(text.map_or(Reply::Nil, Reply::Text)))
}

fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> CommandResult {
    let texts = texts.into_iter().map(|text| Reply::Text(text.into()));
    Ok(Answered::Reply(Reply::List(texts.collect())))
}

/// Reads a number as strictly as a server does: no sign `+`, no blanks, no zeros in front.
pub(super) fn integer(text: &str) -> Result<i64, String> {
    let number = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    number.ok_or_else(|| "ERR value is not an integer or out of range".into())
}

pub(super) fn wrong_number_of_arguments(name: &str) -> String {
    format!("ERR wrong number of arguments for '{}' command", name.to_lowercase())
}

fn syntax_error() -> String {
    "ERR syntax error".into()
}
