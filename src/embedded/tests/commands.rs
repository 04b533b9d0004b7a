//! What `tests/house/scripts` cannot compare with a server: the clock, an order that a server does
//! not promise, and what is not there.

use super::*;

fn ok(voter: &EmbeddedVoter, words: &[&str]) -> Reply {
    voter.command(words).unwrap()
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
    tokio::time::advance(ms(400)).await;
    assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(600));
    tokio::time::advance(ms(600)).await;
    assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(0), "its last millisecond");
    assert_eq!(ok(&voter, &["TIME"]), Reply::texts(["1700000001", "0"]));
    tokio::time::advance(Duration::from_micros(1_250)).await;
    assert_eq!(ok(&voter, &["PTTL", "a"]), Reply::Int(-2));
    assert_eq!(ok(&voter, &["TIME"]), Reply::texts(["1700000001", "1250"]));
    assert_eq!(ok(&voter, &["PEXPIRE", "a", "1000"]), Reply::Int(0));
    assert!(voter.keys().is_empty());
}

#[test]
fn keys_and_fields_are_listed_in_order() {
    let voter = voter();
    for words in [&["SET", "b", "1"][..], &["HSET", "a", "y", "1", "x", "2"]] {
        ok(&voter, words);
    }
    assert_eq!(ok(&voter, &["KEYS", "*"]), Reply::texts(["a", "b"]));
    assert_eq!(ok(&voter, &["HKEYS", "a"]), Reply::texts(["x", "y"]));
    assert_eq!(ok(&voter, &["HGETALL", "a"]), Reply::texts(["x", "2", "y", "1"]));
}

#[test]
fn an_option_that_only_a_server_has_is_named() {
    let voter = voter();
    for (words, message) in [
        (&["ZADD", "q", "INCR", "1", "a"][..], "ERR ZADD has no INCR on an embedded voter"),
        (&["ZRANGE", "q", "0", "1", "rev"], "ERR ZRANGE has no REV on an embedded voter"),
        (
            &["ZRANGEBYSCORE", "q", "0", "1", "LIMIT", "0", "1"],
            "ERR ZRANGEBYSCORE has no LIMIT on an embedded voter",
        ),
        (&["KEYS", "a*"], "ERR the only pattern of an embedded voter is *, not a*"),
    ] {
        assert_eq!(voter.command(words), Err(message.into()), "{words:?}");
    }
}
