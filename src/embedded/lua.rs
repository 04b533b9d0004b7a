//! Runs commands and scripts on a voter's data.

use std::{cell::RefCell, mem, ptr};

use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value};

use super::{
    commands::{self, Answered, Reply, integer, wrong_number_of_arguments},
    data::Database,
};
use crate::{
    scripts::Script,
    voter::{Call, sha1_hash},
};

/// How deep a script's answer may nest.
// A table that contains itself would overflow the stack. A server has a limit too, a larger one.
const DEEPEST: usize = 200;

thread_local! {
    // One for all voters on a thread: making it and compiling take far longer than a run. Only the
    // crate's own scripts run in it, and they leave nothing behind.
    static SHARED: RefCell<Interpreter> = RefCell::new(Interpreter::new());
}

/// Runs a call of one of the crate's scripts.
pub(super) fn run(database: &mut Database, call: &Call) -> Result<Reply, String> {
    let publish = call.script.publishes().then_some("PUBLISH");
    let args = call.shared.iter().map(|arg| &**arg).chain(publish).chain(call.args());
    SHARED.with_borrow_mut(|interpreter| {
        let function = interpreter.compiled(call.script)?;
        interpreter.call(database, &function, call.keys(), args)
    })
}

/// Runs one command, `EVAL` included.
pub(super) fn command(database: &mut Database, words: &[&str]) -> Result<Reply, String> {
    let [name, words @ ..] = words else { return Err("ERR empty command".into()) };
    let lower = name.to_ascii_lowercase();
    if lower == "eval" {
        return eval(database, words);
    }
    match commands::takes(&lower, words.len()) {
        Some(true) => commands::run(database, &lower, words).map(Reply::from),
        Some(false) => Err(wrong_number_of_arguments(&lower)),
        None => {
            let words: String = words.iter().flat_map(|word| ["'", word, "' "]).collect();
            Err(format!("ERR unknown command '{name}', with args beginning with: {words}"))
        }
    }
}

fn eval(database: &mut Database, words: &[&str]) -> Result<Reply, String> {
    let [source, count, words @ ..] = words else { return Err(wrong_number_of_arguments("eval")) };
    let count = usize::try_from(integer(count)?)
        .map_err(|_| "ERR Number of keys can't be negative".to_owned())?;
    let (keys, args) = words
        .split_at_checked(count)
        .ok_or("ERR Number of keys can't be greater than number of args")?;
    // An interpreter of its own: what an unknown script does to its Lua state ends with it.
    let interpreter = Interpreter::new();
    let script = interpreter.compile(source)?;
    interpreter.call(database, &script, keys.iter().copied(), args.iter().copied())
}

/// A Lua state with the sandbox. It has a voter's data while a script runs.
#[derive(Debug)]
struct Interpreter {
    lua: Lua,
    /// What scripts see, read-only.
    environment: Table,
    /// The table behind it, for KEYS and ARGV.
    globals: Table,
    protected_call: Function,
    // A list that is searched by address: there are only some tens of scripts.
    compiled: Vec<(&'static Script, Function)>,
}

impl Interpreter {
    fn new() -> Self {
        Self::build().expect("a fresh Lua state takes the sandbox")
    }

    fn build() -> mlua::Result<Self> {
        // No files, no clock, no other code: scripts of this library must not need what a server
        // does not give them
        // (`a_script_reaches_neither_the_system_nor_other_code_nor_other_scripts`).
        let safe = StdLib::MATH | StdLib::STRING | StdLib::TABLE;
        let lua = Lua::new_with(safe, LuaOptions::default())?;
        lua.set_app_data(Database::default());
        let command = lua.create_function(command_from_script)?;
        let sandbox = lua.load(include_str!("sandbox.lua")).set_name("@sandbox");
        let sha1hex = lua.create_function(|_, text: String| Ok(sha1_hash(&text)))?;
        let (environment, globals, protected_call) = sandbox.call((command, sha1hex))?;
        Ok(Self { lua, environment, globals, protected_call, compiled: Vec::new() })
    }

    fn compiled(&mut self, script: &'static Script) -> Result<Function, String> {
        let found = self.compiled.iter().find(|(compiled, _)| ptr::eq(*compiled, script));
        if let Some((_, function)) = found {
            return Ok(function.clone());
        }
        let source = &script.source;
        #[cfg(quorate_mutants)]
        let source = &crate::mutant::mutated(script.name, source);
        let function = self.compile(source)?;
        self.compiled.push((script, function.clone()));
        Ok(function)
    }

    fn compile(&self, source: &str) -> Result<Function, String> {
        let chunk = self.lua.load(source).set_name("@user_script");
        let function = chunk.set_environment(self.environment.clone()).into_function();
        function.map_err(|error| format!("ERR Error compiling script: {error}"))
    }

    fn call<'a>(
        &self,
        database: &mut Database,
        script: &Function,
        keys: impl Iterator<Item = &'a str>,
        args: impl Iterator<Item = &'a str>,
    ) -> Result<Reply, String> {
        let called = || -> mlua::Result<(bool, Value)> {
            self.globals.raw_set("KEYS", self.lua.create_sequence_from(keys)?)?;
            self.globals.raw_set("ARGV", self.lua.create_sequence_from(args)?)?;
            self.protected_call.call(script)
        };
        self.exchange(database);
        let result = called();
        self.exchange(database);
        let (ok, value) = result.map_err(|error| format!("ERR {error}"))?;
        match value {
            value if ok => reply(&value, DEEPEST),
            Value::String(message) => Err(with_code(&message.to_string_lossy())),
            _ => Err("ERR the script raised a value that is no message".into()),
        }
    }

    /// Puts `database` where commands from scripts find it, or takes it back.
    fn exchange(&self, database: &mut Database) {
        // A function that Lua calls cannot borrow: it may live as long as the state.
        let mut place = self.lua.app_data_mut().expect("the state was built with a database");
        mem::swap(&mut *place, database);
    }
}

/// Begins an error with a code.
fn with_code(message: &str) -> String {
    // As a server: an error that a script raises without a code gets `ERR`.
    let code = message.split(' ').next().unwrap_or_default();
    let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_uppercase());
    if is_code { message.into() } else { format!("ERR {message}") }
}

/// What `redis.pcall` does. The sandbox makes `redis.call` of it.
#[expect(clippy::needless_pass_by_value, reason = "mlua hands arguments over")]
fn command_from_script(lua: &Lua, values: MultiValue) -> mlua::Result<Value> {
    let answer = words_of(&values).and_then(|words| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (name, words) = words
            .split_first()
            .ok_or("ERR Please specify at least one argument for this redis lib call")?;
        let name = name.to_ascii_lowercase();
        let takes = commands::takes(&name, words.len());
        if !takes.ok_or("ERR Unknown Redis command called from script")? {
            return Err("ERR Wrong number of args calling Redis command from script".into());
        }
        let mut database = lua.app_data_mut::<Database>();
        let database = database.as_mut().expect("the state was built with a database");
        commands::run_in_script(database, &name, words)
    });
    match answer {
        Ok(Answered::Reply(reply)) => lua_value(lua, reply),
        Ok(Answered::Status(status)) => table_with(lua, "ok", status),
        Err(message) => table_with(lua, "err", &message),
    }
}

fn words_of(values: &MultiValue) -> Result<Vec<String>, String> {
    let word = |value: &Value| match value {
        Value::String(text) => text
            .to_str()
            .map(|text| text.to_owned())
            .map_err(|_| "ERR an embedded voter takes nothing but UTF-8".into()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err("ERR Lua redis lib command arguments must be strings or integers".into()),
    };
    values.iter().map(word).collect()
}

fn table_with(lua: &Lua, field: &str, text: &str) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(field, text)?;
    Ok(Value::Table(table))
}

fn lua_value(lua: &Lua, reply: Reply) -> mlua::Result<Value> {
    Ok(match reply {
        Reply::Nil => Value::Boolean(false),
        Reply::Int(number) => Value::Integer(number),
        Reply::Text(text) => Value::String(lua.create_string(text)?),
        Reply::List(replies) => {
            let values = replies.into_iter().map(|reply| lua_value(lua, reply));
            let values = values.collect::<mlua::Result<Vec<_>>>()?;
            Value::Table(lua.create_sequence_from(values)?)
        }
    })
}

/// A script's answer.
fn reply(value: &Value, depth: usize) -> Result<Reply, String> {
    // As a server converts it: numbers lose their fraction, false is nil, a list ends before its
    // first nil. A script that relies on more would fail at a server only.
    Ok(match value {
        Value::Boolean(true) => Reply::Int(1),
        Value::Integer(number) => Reply::Int(*number),
        #[expect(clippy::cast_possible_truncation, reason = "a server truncates")]
        Value::Number(number) => Reply::Int(*number as i64),
        Value::String(text) => Reply::Text(text.to_string_lossy()),
        Value::Table(table) => return table_reply(table, depth),
        _ => Reply::Nil,
    })
}

fn table_reply(table: &Table, depth: usize) -> Result<Reply, String> {
    let depth = depth.checked_sub(1).ok_or("ERR reached lua stack limit")?;
    if let Ok(Value::String(message)) = table.raw_get("err") {
        return Err(message.to_string_lossy());
    }
    if let Ok(Value::String(status)) = table.raw_get("ok") {
        return Ok(Reply::Text(status.to_string_lossy()));
    }
    let items = table.sequence_values::<Value>().map(|item| match item {
        Ok(item) => reply(&item, depth),
        Err(error) => Err(format!("ERR {error}")),
    });
    items.collect::<Result<_, _>>().map(Reply::List)
}
