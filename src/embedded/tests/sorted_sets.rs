use super::{
    commands::{error, ok},
    *,
};

fn list(texts: &[&str]) -> Reply {
    Reply::texts(texts.iter().copied())
}

/// A voter with three members: two of one score, and a later one.
fn voter_with_a_queue() -> EmbeddedVoter {
    let voter = voter();
    assert_eq!(ok(&voter, &["ZADD", "q", "7", "c", "3", "b", "3", "a"]), Reply::Int(3));
    voter
}

#[test]
fn members_are_ranked_by_score_and_then_by_name() {
    let voter = voter_with_a_queue();
    assert_eq!(ok(&voter, &["TYPE", "q"]), text("zset"));
    assert_eq!(ok(&voter, &["ZCARD", "q"]), Reply::Int(3));
    assert_eq!(ok(&voter, &["ZRANK", "q", "b"]), Reply::Int(1));
    assert_eq!(ok(&voter, &["ZRANK", "q", "x"]), Reply::Nil);
    assert_eq!(ok(&voter, &["ZSCORE", "q", "c"]), text("7"));
    assert_eq!(ok(&voter, &["ZSCORE", "q", "x"]), Reply::Nil);
    assert_eq!(ok(&voter, &["ZADD", "q", "1763712000000.5", "a"]), Reply::Int(0), "none is new");
    let all = ["b", "3", "c", "7", "a", "1763712000000.5"];
    assert_eq!(ok(&voter, &["ZRANGE", "q", "0", "-1", "WITHSCORES"]), list(&all));
}

#[test]
fn a_sorted_set_is_gone_with_its_last_member_and_its_expiry_with_it() {
    let voter = voter_with_a_queue();
    ok(&voter, &["PEXPIRE", "q", "1000"]);
    assert_eq!(ok(&voter, &["ZREM", "q", "a", "x", "a"]), Reply::Int(1));
    // The time goes on meanwhile.
    let left = ok(&voter, &["PTTL", "q"]);
    assert!(matches!(left, Reply::Int(1..=1000)), "{left:?}");
    assert_eq!(ok(&voter, &["ZREM", "q", "b", "c"]), Reply::Int(2));
    assert!(voter.keys().is_empty());
    assert_eq!(ok(&voter, &["ZREM", "q", "b"]), Reply::Int(0));
    ok(&voter, &["ZADD", "q", "1", "a"]);
    assert_eq!(ok(&voter, &["PTTL", "q"]), Reply::Int(-1));
}

#[test]
fn a_set_that_is_not_there_is_empty() {
    let voter = voter();
    assert_eq!(ok(&voter, &["ZCARD", "q"]), Reply::Int(0));
    assert_eq!(ok(&voter, &["ZCOUNT", "q", "-inf", "+inf"]), Reply::Int(0));
    assert_eq!(ok(&voter, &["ZSCORE", "q", "a"]), Reply::Nil);
    assert_eq!(ok(&voter, &["ZRANK", "q", "a"]), Reply::Nil);
    assert_eq!(ok(&voter, &["ZRANGE", "q", "0", "-1"]), list(&[]));
    assert_eq!(ok(&voter, &["ZRANGEBYSCORE", "q", "0", "1"]), list(&[]));
}

#[test]
fn indexes_count_from_either_end() {
    let voter = voter_with_a_queue();
    for (start, stop, members) in [
        ("0", "0", &["a"][..]),
        ("1", "9", &["b", "c"]),
        ("-2", "-1", &["b", "c"]),
        ("-9", "-3", &["a"]),
        ("-9", "-4", &[]),
        ("2", "1", &[]),
        ("3", "9", &[]),
        ("-9223372036854775808", "9223372036854775807", &["a", "b", "c"]),
        ("9223372036854775807", "-9223372036854775808", &[]),
    ] {
        assert_eq!(ok(&voter, &["ZRANGE", "q", start, stop]), list(members), "{start} {stop}");
    }
}

#[test]
fn a_range_of_scores_has_its_ends_in_it_unless_they_are_excluded() {
    let voter = voter_with_a_queue();
    for (min, max, members) in [
        ("-inf", "+inf", &["a", "b", "c"][..]),
        ("3", "7", &["a", "b", "c"]),
        ("(3", "7", &["c"]),
        ("3", "(7", &["a", "b"]),
        ("(3", "(7", &[]),
        ("(3", "(3", &[]),
        ("7", "3", &[]),
        ("-inf", "6.99", &["a", "b"]),
    ] {
        assert_eq!(ok(&voter, &["ZRANGEBYSCORE", "q", min, max]), list(members), "{min} {max}");
        let count = Reply::Int(i64::try_from(members.len()).unwrap());
        assert_eq!(ok(&voter, &["ZCOUNT", "q", min, max]), count, "{min} {max}");
    }
    let with_scores = ["ZRANGEBYSCORE", "q", "(3", "+inf", "withscores"];
    assert_eq!(ok(&voter, &with_scores), list(&["c", "7"]));
}

#[test]
fn flags_decide_which_scores_are_set() {
    let voter = voter_with_a_queue();
    for (words, count, score) in [
        (&["NX", "1", "a"][..], 0, "3"),
        (&["GT", "2", "a"], 0, "3"),
        (&["lt", "4", "a"], 0, "3"),
        (&["GT", "CH", "4", "a"], 1, "4"),
        (&["CH", "4", "a"], 0, "4"),
        (&["XX", "5", "a", "1", "new"], 0, "5"),
        (&["LT", "CH", "1", "a", "1", "other"], 2, "1"),
    ] {
        let words = [&["ZADD", "q"], words].concat();
        assert_eq!(ok(&voter, &words), Reply::Int(count), "{words:?}");
        assert_eq!(ok(&voter, &["ZSCORE", "q", "a"]), text(score), "{words:?}");
    }
    assert_eq!(ok(&voter, &["ZSCORE", "q", "new"]), Reply::Nil);
    assert_eq!(ok(&voter, &["ZADD", "none", "XX", "1", "a"]), Reply::Int(0));
    assert_eq!(voter.keys(), ["q"], "nothing is left where nothing was set");
}

#[test]
fn an_error_has_the_text_of_a_server_and_nothing_changes() {
    let voter = voter_with_a_queue();
    let records = voter.records();
    for (words, message) in [
        (&["ZADD", "q", "1"][..], "ERR wrong number of arguments for 'zadd' command"),
        (&["ZRANK", "q"], "ERR wrong number of arguments for 'zrank' command"),
        (&["ZRANGE", "q", "0"], "ERR wrong number of arguments for 'zrange' command"),
        (&["ZCOUNT", "q", "0"], "ERR wrong number of arguments for 'zcount' command"),
        (&["ZCOUNT", "q", "0", "1", "2"], "ERR wrong number of arguments for 'zcount' command"),
        (&["ZADD", "q", "1", "a", "2"], "ERR syntax error"),
        (&["ZADD", "q", "NX", "CH"], "ERR syntax error"),
        (&["ZADD", "q", "1", "new", "x", "a"], "ERR value is not a valid float"),
        (&["ZADD", "q", "nan", "a"], "ERR value is not a valid float"),
        (
            &["ZADD", "q", "NX", "XX", "1", "a"],
            "ERR XX and NX options at the same time are not compatible",
        ),
        (
            &["ZADD", "q", "GT", "LT", "1", "a"],
            "ERR GT, LT, and/or NX options at the same time are not compatible",
        ),
        (&["ZRANGE", "q", "0", "x"], "ERR value is not an integer or out of range"),
        (&["ZRANGE", "q", "0", "x", "what"], "ERR syntax error"),
        (&["ZRANGEBYSCORE", "q", "0", "x"], "ERR min or max is not a float"),
        (&["ZCOUNT", "q", "0", "x"], "ERR min or max is not a float"),
        (&["ZCOUNT", "q", "((0", "1"], "ERR min or max is not a float"),
        (&["ZRANGEBYSCORE", "q", "0", "1", "REV"], "ERR syntax error"),
    ] {
        assert_eq!(error(&voter, words), message, "{words:?}");
    }
    assert_eq!(voter.records(), records);
}

#[test]
fn an_option_that_only_a_server_has_is_named() {
    let voter = voter_with_a_queue();
    for (words, message) in [
        (&["ZADD", "q", "INCR", "1", "a"][..], "ERR ZADD has no INCR on an embedded voter"),
        (&["ZRANGE", "q", "0", "1", "rev"], "ERR ZRANGE has no REV on an embedded voter"),
        (
            &["ZRANGEBYSCORE", "q", "0", "1", "LIMIT", "0", "1"],
            "ERR ZRANGEBYSCORE has no LIMIT on an embedded voter",
        ),
    ] {
        assert_eq!(error(&voter, words), message, "{words:?}");
    }
}

#[test]
fn a_key_of_another_type_is_refused_either_way() {
    let voter = voter_with_a_queue();
    ok(&voter, &["SET", "text", "x"]);
    let records = voter.records();
    for words in [
        &["ZADD", "text", "1", "a"][..],
        &["ZREM", "text", "a"],
        &["ZSCORE", "text", "a"],
        &["ZRANK", "text", "a"],
        &["ZCARD", "text"],
        &["ZCOUNT", "text", "0", "1"],
        &["ZRANGE", "text", "0", "1"],
        &["ZRANGEBYSCORE", "text", "0", "1"],
        &["GET", "q"],
        &["HSET", "q", "f", "1"],
        &["HGET", "q", "f"],
        &["HDEL", "q", "f"],
    ] {
        let message = "WRONGTYPE Operation against a key holding the wrong kind of value";
        assert_eq!(error(&voter, words), message, "{words:?}");
    }
    assert_eq!(voter.records(), records);
}
