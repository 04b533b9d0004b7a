use super::*;

fn eval(script: &str) -> Result<Reply, String> {
    voter().command(&["EVAL", script, "1", "k", "a", "b"])
}

#[test]
fn an_error_that_only_an_embedded_voter_words_so_is_an_error() {
    assert!(eval("no lua").unwrap_err().starts_with("ERR Error compiling script"));
    let no_message = "ERR the script raised a value that is no message";
    assert_eq!(eval("error({})"), Err(no_message.into()));
    let endless = "local t = {} t[1] = t return t";
    assert_eq!(eval(endless), Err("ERR reached lua stack limit".into()));
}

#[test]
fn a_script_reaches_neither_the_system_nor_other_code() {
    let names = "os io debug package require module dofile loadfile load loadstring print rawset \
        setfenv getfenv newproxy collectgarbage coroutine";
    for name in names.split_whitespace() {
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
    for script in
        ["x = 1", "function f() end", "KEYS = {}", "string.upper = nil", "redis.call = nil"]
    {
        assert_eq!(eval(script), Err(readonly.into()), "{script}");
    }
    for script in ["setmetatable(math, {})", "setmetatable(redis, nil)"] {
        assert!(eval(script).unwrap_err().contains("protected metatable"), "{script}");
    }
    assert_eq!(eval("return getmetatable('')"), Ok(Reply::Nil));
    assert_eq!(eval("return getmetatable(math)"), Ok(Reply::Nil));
    assert_eq!(eval("return math.random"), Ok(Reply::Nil), "nothing is left to chance");
}

#[test]
fn what_a_script_does_to_its_lua_state_reaches_no_other_script() {
    let voter = voter();
    let run = |script| voter.command(&["EVAL", script, "0"]);
    assert_eq!(run("table.insert(redis, 1) return #redis"), Ok(Reply::Int(1)));
    assert_eq!(run("return #redis"), Ok(Reply::Int(0)));
}
