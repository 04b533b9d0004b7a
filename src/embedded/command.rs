//! What a command is, and what it works on.

use super::{channels::Channels, keyspace::Keyspace, reply::Reply};

/// What commands work on.
#[derive(Debug, Default)]
pub(super) struct Database {
    pub(super) keyspace: Keyspace,
    pub(super) channels: Channels,
    memory: Room,
}

/// What a script may do on a voter that is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Room {
    #[default]
    Room,
    /// Only what cannot take memory, until it has written something.
    Full,
}

pub(super) type CommandResult = Result<Answered, String>;

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

impl<T: Into<i64>> From<T> for Answered {
    fn from(number: T) -> Self {
        Self::Reply(Reply::Int(number.into()))
    }
}

/// One command: how many words it takes, its own name included (a negative number: at least so
/// many), and what it does with those behind the name.
pub(super) struct Command {
    pub(super) name: &'static str,
    pub(super) arity: isize,
    pub(super) run: fn(&mut Database, &[&str]) -> CommandResult,
}

impl Command {
    /// Whether the command takes so many words behind its name.
    pub(super) fn takes(&self, count: usize) -> bool {
        let needed = self.arity.unsigned_abs() - 1;
        if self.arity < 0 { count >= needed } else { count == needed }
    }

    pub(super) fn run(&self, database: &mut Database, words: &[&str]) -> CommandResult {
        (self.run)(database, words)
    }

    /// As [`run`](Self::run), within a script: a server that is full refuses the first write of one
    /// where that could take memory, and none that follows.
    pub(super) fn run_in_script(&self, database: &mut Database, words: &[&str]) -> CommandResult {
        let may_grow = matches!(self.name, "set" | "hset" | "zadd");
        if database.memory == Room::Full && may_grow {
            return Err("OOM command not allowed when used memory > 'maxmemory'.".into());
        }
        let shrinks = matches!(self.name, "del" | "hdel" | "zrem" | "flushall");
        if shrinks || matches!(self.name, "pexpire" | "pexpireat") {
            database.memory = Room::Room;
        }
        self.run(database, words)
    }
}

impl Database {
    /// A script begins, on a voter that has room in memory or not.
    pub(super) fn begin_script(&mut self, no_room: bool) {
        self.memory = if no_room { Room::Full } else { Room::Room };
    }
}

pub(super) fn wrong_number_of_arguments(name: &str) -> String {
    format!("ERR wrong number of arguments for '{}' command", name.to_lowercase())
}

/// Reads a number as strictly as a server does: no sign `+`, no blanks, no zeros in front.
pub(super) fn integer(text: &str) -> Result<i64, String> {
    let number = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    number.ok_or_else(|| "ERR value is not an integer or out of range".into())
}

pub(super) fn count(length: usize) -> Answered {
    Answered::Reply(Reply::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

pub(super) fn wrong_type() -> String {
    "WRONGTYPE Operation against a key holding the wrong kind of value".into()
}
