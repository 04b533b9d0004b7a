use super::*;

pub(super) fn ok(voter: &EmbeddedVoter, words: &[&str]) -> Reply {
    voter.command(words).unwrap()
}

pub(super) fn error(voter: &EmbeddedVoter, words: &[&str]) -> String {
    voter.command(words).unwrap_err()
}

#[test]
fn texts_are_set_read_typed_and_deleted() {
    let voter = voter();
    assert_eq!(ok(&voter, &["SET", "a", "1"]), text("OK"));
    assert_eq!(ok(&voter, &["get", "a"]), text("1"));
    assert_eq!(ok(&voter, &["TYPE", "a"]), text("string"));
    assert_eq!(ok(&voter, &["TYPE", "b"]), text("none"));
    assert_eq!(ok(&voter, &["EXISTS", "a", "b", "a"]), Reply::Int(2));
    assert_eq!(ok(&voter, &["DEL", "a", "b", "a"]), Reply::Int(1));
    assert_eq!(ok(&voter, &["GET", "a"]), Reply::Nil);
}

#[test]
fn a_hash_counts_new_fields_and_is_gone_with_its_last_one() {
    let voter = voter();
    assert_eq!(ok(&voter, &["HSET", "h", "y", "1", "x", "2"]), Reply::Int(2));
    assert_eq!(ok(&voter, &["HSET", "h", "y", "3", "z", "4"]), Reply::Int(1));
    assert_eq!(ok(&voter, &["HKEYS", "h"]), Reply::texts(["x", "y", "z"]));
    assert_eq!(ok(&voter, &["HGETALL", "h"]), Reply::texts(["x", "2", "y", "3", "z", "4"]));
    assert_eq!(ok(&voter, &["HGET", "h", "y"]), text("3"));
    assert_eq!(ok(&voter, &["HGET", "h", "w"]), Reply::Nil);
    assert_eq!(ok(&voter, &["HEXISTS", "h", "x"]), Reply::Int(1));
    assert_eq!(ok(&voter, &["TYPE", "h"]), text("hash"));
    assert_eq!(ok(&voter, &["HDEL", "h", "x", "y", "w"]), Reply::Int(2));
    assert_eq!(ok(&voter, &["HDEL", "h", "z"]), Reply::Int(1));
    assert!(voter.keys().is_empty());
    assert_eq!(ok(&voter, &["HEXISTS", "h", "x"]), Reply::Int(0));
    assert_eq!(ok(&voter, &["HKEYS", "h"]), Reply::List(Vec::new()));
}

#[test]
fn a_command_for_another_type_is_refused_and_changes_nothing() {
    let voter = voter();
    ok(&voter, &["SET", "a", "1"]);
    ok(&voter, &["HSET", "h", "f", "1"]);
    let message = "WRONGTYPE Operation against a key holding the wrong kind of value";
    for words in [
        &["GET", "h"][..],
        &["HSET", "a", "f", "1"],
        &["HGET", "a", "f"],
        &["HDEL", "a", "f"],
        &["HEXISTS", "a", "f"],
        &["HKEYS", "a"],
        &["HGETALL", "a"],
    ] {
        assert_eq!(error(&voter, words), message, "{words:?}");
    }
    assert_eq!(ok(&voter, &["GET", "a"]), text("1"));
    assert_eq!(ok(&voter, &["SET", "h", "2"]), text("OK"), "SET takes any key");
}

#[test]
fn errors_have_the_texts_of_a_server() {
    let voter = voter();
    for (words, message) in [
        (&["GET"][..], "ERR wrong number of arguments for 'get' command"),
        (&["HSET", "h", "f", "1", "g"], "ERR wrong number of arguments for 'hset' command"),
        (&["EVAL", "return 1"], "ERR wrong number of arguments for 'eval' command"),
        (&["NOPE", "a", "b"], "ERR unknown command 'NOPE', with args beginning with: 'a' 'b' "),
        (&["PEXPIRE", "a", "1.5"], "ERR value is not an integer or out of range"),
        (&["PEXPIRE", "a", "01"], "ERR value is not an integer or out of range"),
        (&["PEXPIRE", "a", "9223372036854775807"], "ERR invalid expire time in 'pexpire' command"),
        (&["PEXPIREAT", "a", "soon"], "ERR value is not an integer or out of range"),
        (&["EVAL", "return 1", "-1"], "ERR Number of keys can't be negative"),
        (&["EVAL", "return 1", "1"], "ERR Number of keys can't be greater than number of args"),
    ] {
        assert_eq!(error(&voter, words), message, "{words:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_expires_by_the_clock_of_the_runtime() {
    let voter = voter();
    ok(&voter, &["SET", "a", "1"]);
    assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(-1));
    assert_eq!(ok(&voter, &["PEXPIRE", "a", "1000"]), Reply::Int(1));
    tokio::time::advance(ms(400)).await;
    assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(600));
    tokio::time::advance(ms(600)).await;
    assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(0), "its last millisecond");
    tokio::time::advance(ms(1)).await;
    assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(-2));
    assert_eq!(ok(&voter, &["PEXPIRE", "a", "1000"]), Reply::Int(0));
    assert!(voter.keys().is_empty());
}

#[test]
fn an_expiry_that_is_over_deletes_and_setting_takes_the_expiry_away() {
    let voter = voter();
    for over in ["0", "-1", "-9223372036854775808"] {
        ok(&voter, &["SET", "a", "1"]);
        assert_eq!(ok(&voter, &["PEXPIRE", "a", over]), Reply::Int(1));
        assert!(voter.keys().is_empty());
    }
    ok(&voter, &["SET", "a", "1"]);
    ok(&voter, &["PEXPIRE", "a", "1000"]);
    ok(&voter, &["SET", "a", "2"]);
    assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(-1));
}

#[tokio::test(start_paused = true)]
async fn an_absolute_expiry_goes_by_the_voters_clock() {
    let voter = voter();
    assert_eq!(ok(&voter, &["PEXPIREAT", "a", "1700000001000"]), Reply::Int(0));
    ok(&voter, &["SET", "a", "1"]);
    assert_eq!(ok(&voter, &["PEXPIREAT", "a", "1700000001000"]), Reply::Int(1));
    tokio::time::advance(ms(400)).await;
    assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(600));
    assert_eq!(ok(&voter, &["PEXPIREAT", "a", "1700000000401"]), Reply::Int(1));
    assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(1));
    assert_eq!(ok(&voter, &["PEXPIREAT", "a", "1700000000400"]), Reply::Int(1));
    assert!(voter.keys().is_empty(), "at once");
}

#[tokio::test(start_paused = true)]
async fn time_goes_on_with_the_clock_of_the_runtime() {
    let voter = voter();
    tokio::time::advance(ms(1250)).await;
    assert_eq!(ok(&voter, &["TIME"]), Reply::texts(["1700000001", "250000"]));
}

#[test]
fn keys_are_listed_in_order_and_flushed() {
    let voter = voter();
    for key in ["b", "a"] {
        ok(&voter, &["SET", key, "1"]);
    }
    assert_eq!(ok(&voter, &["KEYS", "*"]), Reply::texts(["a", "b"]));
    assert!(error(&voter, &["KEYS", "a*"]).contains("a*"));
    assert_eq!(ok(&voter, &["FLUSHALL"]), text("OK"));
    assert!(voter.keys().is_empty());
}

#[test]
fn publishing_counts_the_listeners() {
    assert_eq!(ok(&voter(), &["PUBLISH", "news", "0"]), Reply::Int(0));
}
