use super::*;

fn eval(script: &str) -> Result<Reply, String> {
    voter().command(&["EVAL", script, "1", "k", "a", "b"])
}

#[test]
fn values_of_lua_become_replies_as_a_server_makes_them() {
    for (script, reply) in [
        ("return 7", Reply::Int(7)),
        ("return 7.9", Reply::Int(7)),
        ("return -7.9", Reply::Int(-7)),
        ("return true", Reply::Int(1)),
        ("return false", Reply::Nil),
        ("return nil", Reply::Nil),
        ("return 'x'", text("x")),
        ("return {1, 'x', nil, 3}", Reply::List(vec![Reply::Int(1), text("x")])),
        ("return {1, {false}}", Reply::List(vec![Reply::Int(1), Reply::List(vec![Reply::Nil])])),
        ("return {ok = 'fine'}", text("fine")),
        ("return redis.call('SET', KEYS[1], ARGV[2]).ok", text("OK")),
        ("return {#KEYS, #ARGV}", Reply::List(vec![Reply::Int(1), Reply::Int(2)])),
    ] {
        assert_eq!(eval(script), Ok(reply), "{script}");
    }
}

#[test]
fn replies_become_values_of_lua_as_a_server_makes_them() {
    for (script, reply) in [
        ("return tostring(redis.call('GET', 'none'))", "false"),
        ("return type(redis.call('EXISTS', 'none'))", "number"),
        ("return type(redis.call('HKEYS', 'none'))", "table"),
        ("return type(redis.call('TYPE', 'none'))", "table"),
        ("redis.call('SET', 'n', 1e12) return redis.call('GET', 'n')", "1000000000000"),
        ("redis.call('SET', 'n', 1.5) return redis.call('GET', 'n')", "1.5"),
    ] {
        assert_eq!(eval(script), Ok(text(reply)), "{script}");
    }
}

#[test]
fn errors_of_commands_are_tables_and_a_pcall_takes_the_message_out() {
    let wrong = "redis.call('SET', 'k', 'x') ";
    let call = "redis.call('HGET', 'k', 'f')";
    let message = "WRONGTYPE Operation against a key holding the wrong kind of value";
    for script in [
        format!("{wrong} return redis.pcall('HGET', 'k', 'f').err"),
        format!("{wrong} return select(2, pcall(function() {call} end))"),
        format!("{wrong} return select(2, xpcall(function() {call} end, unpack{{type}}))"),
    ] {
        let expected = if script.contains("xpcall") { "table" } else { message };
        assert_eq!(eval(&script), Ok(text(expected)), "{script}");
    }
    assert_eq!(eval(&format!("{wrong} {call}")), Err(message.into()));
    assert_eq!(eval("return {err = 'BUSY a lock'}"), Err("BUSY a lock".into()));
}

#[test]
fn errors_of_scripts_name_the_line() {
    for (script, message) in [
        ("return nil + 1", "ERR user_script:1: attempt to perform arithmetic on a nil value"),
        ("\nerror('no')", "ERR user_script:2: no"),
        ("redis.call()", "ERR Please specify at least one argument for this redis lib call"),
        ("redis.call('GET')", "ERR Wrong number of args calling Redis command from script"),
        ("redis.call('NOPE')", "ERR Unknown Redis command called from script"),
        (
            "redis.call('GET', {})",
            "ERR Lua redis lib command arguments must be strings or integers",
        ),
        ("local t = {} t[1] = t return t", "ERR reached lua stack limit"),
        ("error({})", "ERR the script raised a value that is no message"),
    ] {
        assert_eq!(eval(script), Err(message.into()), "{script}");
    }
    assert!(eval("no lua").unwrap_err().starts_with("ERR Error compiling script"));
}

#[test]
fn a_script_reaches_neither_the_system_nor_other_code() {
    for name in [
        "os",
        "io",
        "debug",
        "package",
        "require",
        "module",
        "dofile",
        "loadfile",
        "load",
        "loadstring",
        "print",
        "rawset",
        "setfenv",
        "getfenv",
        "newproxy",
        "collectgarbage",
        "coroutine",
    ] {
        let message = format!(
            "ERR user_script:1: Script attempted to access nonexistent global variable '{name}'"
        );
        assert_eq!(eval(&format!("return {name}")), Err(message.clone()));
        assert_eq!(eval(&format!("return _G.{name}")), Err(message));
    }
}

#[test]
fn a_script_leaves_nothing_behind_in_the_lua_state() {
    let readonly = "ERR user_script:1: Attempt to modify a readonly table";
    for script in [
        "x = 1",
        "function f() end",
        "KEYS = {}",
        "math.pi = 3",
        "string.upper = nil",
        "redis.call = nil",
    ] {
        assert_eq!(eval(script), Err(readonly.into()), "{script}");
    }
    for script in ["setmetatable(math, {})", "setmetatable(redis, nil)"] {
        assert!(eval(script).unwrap_err().contains("protected metatable"), "{script}");
    }
    assert_eq!(eval("return getmetatable('')"), Ok(Reply::Nil));
    assert_eq!(eval("return getmetatable(math)"), Ok(Reply::Nil));
}

#[test]
fn nothing_in_a_script_is_left_to_chance() {
    assert_eq!(eval("return math.random"), Ok(Reply::Nil));
}

#[test]
fn what_a_script_does_to_its_lua_state_reaches_no_other_script() {
    let voter = voter();
    let run = |script| voter.command(&["EVAL", script, "0"]);
    assert_eq!(run("table.insert(redis, 1) return #redis"), Ok(Reply::Int(1)));
    assert_eq!(run("return #redis"), Ok(Reply::Int(0)));
}
