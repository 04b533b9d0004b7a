//! What `tests/house/scripts` cannot compare with a server: the clock, an order that a server does
//! not promise, what is not there, and what a script cannot reach.

use super::*;

fn ok(voter: &EmbeddedVoter, words: &[&str]) -> Reply {
    voter.command(words).unwrap()
}

fn texts<const COUNT: usize>(texts: [&str; COUNT]) -> Reply {
    Reply::List(texts.map(text).into())
}

#[tokio::test(start_paused = true)]
async fn a_key_expires_by_the_clock_of_the_runtime() {
    let voter = voter();
    for (words, left) in [
        (["PEXPIRE", "a", "1000"], 1000),
        (["PEXPIREAT", "a", "1700000001000"], 1000),
        (["PEXPIREAT", "a", "1700000000001"], 1),
    ] {
        assert_eq!(ok(&voter, &words), Reply::Int(0));
        ok(&voter, &["SET", "a", "1"]);
        assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(-1));
        assert_eq!(ok(&voter, &words), Reply::Int(1));
        assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(left));
        ok(&voter, &["DEL", "a"]);
    }
    ok(&voter, &["SET", "a", "1", "PX", "1000"]);
    tokio::time::advance(ms(1_000)).await;
    assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(0), "its last millisecond");
    tokio::time::advance(Duration::from_micros(1_250)).await;
    assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(-2));
    assert_eq!(ok(&voter, &["TIME"]), texts(["1700000001", "1250"]));
    ok(&voter, &["HSET", "a", "f", "1"]);
    assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(-1), "a key inherits no expiry");
    ok(&voter, &["PEXPIRE", "a", "1000"]);
    tokio::time::advance(ms(1_001)).await;
    assert_eq!(ok(&voter, &["PEXPIRE", "a", "1000"]), Reply::Int(0));
    assert!(voter.keys().is_empty());
}

#[test]
fn keys_and_fields_are_listed_in_order() {
    let voter = voter();
    for words in [&["SET", "b", "1"][..], &["HSET", "a", "y", "1", "x", "2"]] {
        ok(&voter, words);
    }
    assert_eq!(ok(&voter, &["KEYS", "*"]), texts(["a", "b"]));
    assert_eq!(ok(&voter, &["HKEYS", "a"]), texts(["x", "y"]));
    assert_eq!(ok(&voter, &["HGETALL", "a"]), texts(["x", "2", "y", "1"]));
}

#[test]
fn what_only_a_server_has_is_named() {
    let voter = voter();
    for (words, named) in [
        (&["ZADD", "q", "0.5", "a"][..], "no score but whole ones: 0.5"),
        (&["ZADD", "q", "9007199254740993", "a"], "no score but whole ones: 9007199254740993"),
        (&["ZCOUNT", "q", "0", "(1e3"], "no score but whole ones: 1e3"),
        (&["ZADD", "q", "NX", "1", "a", "b"], "no score but whole ones: NX"),
        (&["ZRANGE", "q", "0", "1", "rev"], "ZRANGE only with WITHSCORES"),
        (&["KEYS", "a*"], "the only pattern of an embedded voter is *, not a*"),
    ] {
        let error = voter.command(words).unwrap_err();
        assert!(error.starts_with("ERR ") && error.contains(named), "{error}");
    }
}

fn eval(script: &str) -> Result<Reply, String> {
    voter().command(&["EVAL", script, "1", "k", "a", "b"])
}

#[test]
fn an_error_that_only_an_embedded_voter_words_so_is_an_error() {
    for (script, message) in [
        ("no lua", "ERR Error compiling script"),
        ("error({})", "ERR the script raised a value that is no message"),
        ("local t = {} t[1] = t return t", "ERR reached lua stack limit"),
    ] {
        assert!(eval(script).unwrap_err().starts_with(message), "{script}");
    }
}

#[test]
fn a_script_reaches_neither_the_system_nor_other_code_nor_other_scripts() {
    let names = "os io debug package require module dofile loadfile load loadstring print rawset \
        setfenv getfenv newproxy collectgarbage coroutine";
    for name in names.split_whitespace() {
        let message = format!(
            "ERR user_script:1: Script attempted to access nonexistent global variable '{name}'"
        );
        assert_eq!(eval(&format!("return {name}")), Err(message.clone()));
        assert_eq!(eval(&format!("return _G.{name}")), Err(message));
    }
    let readonly = "ERR user_script:1: Attempt to modify a readonly table";
    for script in
        ["x = 1", "function f() end", "KEYS = {}", "string.upper = nil", "redis.call = nil"]
    {
        assert_eq!(eval(script), Err(readonly.into()), "{script}");
    }
    for script in ["setmetatable(math, {})", "setmetatable(redis, nil)"] {
        assert!(eval(script).unwrap_err().contains("protected metatable"), "{script}");
    }
    for hidden in ["getmetatable('')", "getmetatable(math)", "math.random"] {
        assert_eq!(eval(&format!("return {hidden}")), Ok(Reply::Nil), "{hidden}");
    }
    let voter = voter();
    let run = |script| voter.command(&["EVAL", script, "0"]);
    assert_eq!(run("table.insert(redis, 1) return #redis"), Ok(Reply::Int(1)));
    assert_eq!(run("return #redis"), Ok(Reply::Int(0)));
}
