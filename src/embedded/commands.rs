//! The commands, as a server of version 7 answers them.
#![expect(clippy::unnecessary_wraps, reason = "all commands have one signature")]

use std::collections::BTreeMap;

use super::{
    command::{
        Answered, Command, CommandResult, Database, count, integer, wrong_number_of_arguments,
        wrong_type,
    },
    keyspace::{Keyspace, Stored, TimeLeft},
    reply::Reply,
    sorted_set_commands,
};

static COMMANDS: [Command; 18] = [
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
    Command { name: "publish", arity: 3, run: publish },
];

/// Finds a command by its name in any case.
pub(super) fn find(name: &str) -> Option<&'static Command> {
    let mut all = COMMANDS.iter().chain(&sorted_set_commands::COMMANDS);
    all.find(|command| command.name.eq_ignore_ascii_case(name))
}

/// Of a server's options it knows `PX` and, behind that or alone, `GET`.
fn set(database: &mut Database, words: &[&str]) -> CommandResult {
    let is = |word: &str, option| word.eq_ignore_ascii_case(option);
    let (ms, tells) = match words[2..] {
        [] => (None, false),
        [get] if is(get, "get") => (None, true),
        [px, ms] if is(px, "px") => (Some(ms), false),
        [px, ms, get] if is(px, "px") && is(get, "get") => (Some(ms), true),
        _ => return Err("ERR syntax error".into()),
    };
    let ends_at_ms = ms.map(|ms| {
        let ms = Some(integer(ms)?).filter(|ms| *ms > 0);
        let at_ms = ms.and_then(|ms| ms.checked_add(database.keyspace.now_ms()));
        at_ms.ok_or_else(|| "ERR invalid expire time in 'set' command".to_owned())
    });
    let ends_at_ms = ends_at_ms.transpose()?;
    let former = if tells { Some(get(database, words)?) } else { None };
    database.keyspace.set(words[0], Stored::Text(words[1].into()));
    if let Some(at_ms) = ends_at_ms {
        database.keyspace.expire_at(words[0], at_ms);
    }
    if let Some(former) = former {
        return Ok(former);
    }
    Ok(Answered::Status("OK"))
}

fn get(database: &mut Database, words: &[&str]) -> CommandResult {
    match database.keyspace.get(words[0]) {
        None => Ok(Answered::Reply(Reply::Nil)),
        Some(Stored::Text(text)) => Ok(Answered::Reply(Reply::Text(text.clone()))),
        Some(_) => Err(wrong_type()),
    }
}

fn del(database: &mut Database, words: &[&str]) -> CommandResult {
    Ok(count(words.iter().filter(|key| database.keyspace.remove(key)).count()))
}

fn exists(database: &mut Database, words: &[&str]) -> CommandResult {
    Ok(count(words.iter().filter(|key| database.keyspace.get(key).is_some()).count()))
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
    Ok(Answered::Reply(Reply::texts(database.keyspace.keys())))
}

fn flush_all(database: &mut Database, _: &[&str]) -> CommandResult {
    database.keyspace.clear();
    Ok(Answered::Status("OK"))
}

fn pttl(database: &mut Database, words: &[&str]) -> CommandResult {
    Ok(match database.keyspace.left(words[0]) {
        TimeLeft::NoKey => (-2).into(),
        TimeLeft::Forever => (-1).into(),
        TimeLeft::Ms(left_ms) => left_ms.into(),
    })
}

fn pexpire(database: &mut Database, words: &[&str]) -> CommandResult {
    let at_ms = integer(words[1])?.checked_add(database.keyspace.now_ms());
    let at_ms = at_ms.ok_or("ERR invalid expire time in 'pexpire' command")?;
    Ok(expire_at(&mut database.keyspace, words[0], at_ms))
}

fn pexpireat(database: &mut Database, words: &[&str]) -> CommandResult {
    let at_ms = integer(words[1])?;
    Ok(expire_at(&mut database.keyspace, words[0], at_ms))
}

fn expire_at(keyspace: &mut Keyspace, key: &str, at_ms: i64) -> Answered {
    let was_there = if at_ms <= keyspace.now_ms() {
        keyspace.remove(key)
    } else {
        keyspace.expire_at(key, at_ms)
    };
    was_there.into()
}

fn time(database: &mut Database, _: &[&str]) -> CommandResult {
    let micros = database.keyspace.now_micros();
    let parts = [micros / 1_000_000, micros % 1_000_000];
    Ok(Answered::Reply(Reply::texts(parts.map(|part| part.to_string()))))
}

fn hset(database: &mut Database, words: &[&str]) -> CommandResult {
    let (pairs, rest) = words[1..].as_chunks::<2>();
    if !rest.is_empty() {
        return Err(wrong_number_of_arguments("hset"));
    }
    let stored = database.keyspace.get_or_set(words[0], Stored::Hash(BTreeMap::new()));
    let Stored::Hash(hash) = stored else { return Err(wrong_type()) };
    let fresh =
        |[field, value]: &&[&str; 2]| hash.insert((*field).into(), (*value).into()).is_none();
    Ok(count(pairs.iter().filter(fresh).count()))
}

fn hget(database: &mut Database, words: &[&str]) -> CommandResult {
    let value = hash(database, words[0])?.and_then(|hash| hash.get(words[1]));
    Ok(Answered::Reply(value.map_or(Reply::Nil, |value| Reply::Text(value.clone()))))
}

fn hdel(database: &mut Database, words: &[&str]) -> CommandResult {
    let hash = match database.keyspace.get_mut(words[0]) {
        None => return Ok(0.into()),
        Some(Stored::Hash(hash)) => hash,
        Some(_) => return Err(wrong_type()),
    };
    let gone = words[1..].iter().filter(|field| hash.remove(**field).is_some()).count();
    if hash.is_empty() {
        database.keyspace.remove(words[0]);
    }
    Ok(count(gone))
}

fn hexists(database: &mut Database, words: &[&str]) -> CommandResult {
    Ok(hash(database, words[0])?.is_some_and(|hash| hash.contains_key(words[1])).into())
}

fn hkeys(database: &mut Database, words: &[&str]) -> CommandResult {
    Ok(Answered::Reply(Reply::texts(
        hash(database, words[0])?.into_iter().flat_map(BTreeMap::keys),
    )))
}

fn hgetall(database: &mut Database, words: &[&str]) -> CommandResult {
    let pairs = hash(database, words[0])?.into_iter().flatten();
    Ok(Answered::Reply(Reply::texts(pairs.flat_map(|(field, value)| [field, value]))))
}

fn publish(database: &mut Database, words: &[&str]) -> CommandResult {
    Ok(count(database.channels.publish(words[0], words[1])))
}

fn hash<'a>(
    database: &'a Database,
    key: &str,
) -> Result<Option<&'a BTreeMap<String, String>>, String> {
    match database.keyspace.get(key) {
        None => Ok(None),
        Some(Stored::Hash(hash)) => Ok(Some(hash)),
        Some(_) => Err(wrong_type()),
    }
}
