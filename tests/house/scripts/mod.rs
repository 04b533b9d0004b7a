//! Conformance: the embedded voter and a real server get the same calls and must answer the same.

mod calls;
mod commands;
mod declared;
mod pair;

use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, RngSeed, TestRunner},
};

use calls::{
    any_call, calls_of, election_call, forced_ends, java_rw_planted, planted, rw_planted,
    semaphore_planted, with_leases,
};
use commands::{command, sorted_set_command};
pub(crate) use pair::Pair;
use quorate_support::{RedisServer, Reply, eventually, read_file};

/// One step of a random sequence: a command's words.
type Step = Vec<String>;

fn words(words: &[&str]) -> Step {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn config(seed: u64, cases: u32) -> Config {
    let rng_seed = RngSeed::Fixed(seed);
    Config { cases, rng_seed, failure_persistence: None, ..Config::default() }
}

/// Random steps leave the same answers and the same data on both sides.
fn compare<S: Strategy<Value = Step>>(step: impl Fn() -> S) {
    for seed in 1..=3 {
        let pair = Pair::start();
        let compared = TestRunner::new(config(seed, 100)).run(&vec(step(), 1..40), |steps| {
            pair.must_answer_alike(&["FLUSHALL"])?;
            for (number, step) in steps.iter().enumerate() {
                let step = with_leases(step, number);
                let words: Vec<_> = step.iter().map(String::as_str).collect();
                pair.must_answer_alike(&words)?;
            }
            pair.must_hold_the_same()
        });
        compared.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
}

#[test]
fn every_script_answers_as_on_a_server() {
    compare(|| prop_oneof![6 => any_call(), 1 => planted()]);
}

#[test]
fn every_script_of_an_election_answers_as_on_a_server() {
    compare(|| prop_oneof![9 => election_call(), 1 => planted()]);
}

#[test]
fn every_script_of_a_read_write_lock_answers_as_on_a_server() {
    compare(|| prop_oneof![9 => calls_of("rw/"), 1 => rw_planted()]);
}

#[test]
fn every_script_of_an_r_read_write_lock_answers_as_on_a_server() {
    compare(|| prop_oneof![7 => calls_of("redisson/rw_"), 3 => java_rw_planted()]);
}

#[test]
fn every_script_of_a_semaphore_answers_as_on_a_server() {
    compare(|| prop_oneof![9 => calls_of("semaphore/"), 1 => semaphore_planted()]);
}

#[test]
fn every_command_answers_as_a_server_does() {
    compare(command);
    compare(sorted_set_command);
}

// Each end of another hold once put off the end of all marks.
#[test]
fn a_mark_of_a_forced_end_stays_for_its_own_time_and_goes_at_the_next_end_after_that() {
    let pair = Pair::start();
    let ends = |script: usize, hold, marker_ms| {
        let end = &forced_ends(hold, marker_ms)[script];
        pair.must_answer_alike(&end.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    };
    for script in 0..forced_ends("", 0).len() {
        pair.must_answer_alike(&["FLUSHALL"]).unwrap();
        for (hold, marker_ms) in [("long:1", 200_000), ("short:1", 1), ("long:1", 100_000)] {
            ends(script, hold, marker_ms);
        }
        let left = [Reply::Text("long:1".into()), Reply::Text("next:1".into())];
        eventually("the short one goes", || {
            ends(script, "next:1", 50_000);
            let sides = pair.ask_both(&["EVAL", SORTED, "1", "revoked"]);
            sides.iter().all(|side| *side == Ok(Reply::List(left.to_vec())))
        });
        pair.must_hold_the_same().unwrap();
        let keys = pair.ask_both(&["PTTL", "revoked"]);
        let last = |ms: &Reply| matches!(ms, Reply::Int(ms) if *ms > 190_000);
        assert!(keys.iter().flatten().filter(|ms| last(ms)).count() == 2, "{keys:?}");
    }
}

/// The fields of a hash, in order.
const SORTED: &str = "local keys = redis.call('HKEYS', KEYS[1]) table.sort(keys) return keys";

/// Commands and arguments that random ones do not come to, one after the other.
const SELDOM: &str = "
    NOPE a; nope a b-c; GET; EVAL x; EVAL x 1; EVAL x -1; PUBLISH news 0;
    SET a 1; get a; EXISTS a b a; TYPE a; TYPE b; DEL a b a; GET a;
    SET a 1; PEXPIRE a 200000; SET a 2; PEXPIRE a 9223372036854775807; PEXPIRE a 01;
    PEXPIRE a 1.5; PEXPIREAT a soon; PEXPIRE a -9223372036854775808; PEXPIREAT none 1;
    HSET h y 1 x 2; HSET h y 3 z 4; HSET h f 1 g; HGET h y; HGET h w; HEXISTS h x;
    HDEL h x y w x; HDEL h z; HEXISTS h x; HKEYS h; HSET h f 1; GET h; ZCARD h; ZADD h 1 a;
    SET h 2; HSET h f 1; HGET h f; HDEL h f; HEXISTS h f; HKEYS h; HGETALL h; ZREM h a;
    ZCARD q; ZCOUNT q -inf +inf; ZSCORE q a; ZRANK q a; ZRANGE q 0 -1; ZRANGEBYSCORE q 0 1;
    ZADD q 7 c 3 b 3 a; HSET q f 1; GET q; ZRANK q b; ZRANGE q -9 -3; ZRANGE q -9 -4; ZRANGE q 3 9;
    ZRANGE q -9223372036854775808 9223372036854775807;
    ZRANGE q 9223372036854775807 -9223372036854775808; ZRANGE q 0 x; ZRANGE q 0;
    ZRANGEBYSCORE q (3 7; ZRANGEBYSCORE q 3 (7; ZRANGEBYSCORE q +inf -inf; ZCOUNT q 0 1 2;
    ZCOUNT q 7 3; ZADD q 1; ZADD q 1 a 2; PEXPIRE q 200000; ZREM q a x a; ZREM q b c other;
    ZREM q b; ZADD q 1 a; ZADD q +7 a -0 b 007 c 9007199254740992 d -9007199254740992 e";

#[test]
fn what_is_seldom_said_is_answered_as_by_a_server() {
    let pair = Pair::start();
    for words in SELDOM.split(';') {
        let words: Vec<_> = words.split_whitespace().collect();
        pair.must_answer_alike(&words).unwrap();
        pair.must_hold_the_same().unwrap();
    }
}

/// What ends every script.
fn each() -> String {
    let libraries = read_file("lua/lib.lua");
    let found = libraries.split("\n----\n").find(|part| part.starts_with("-- each: "));
    found.expect("it is there").to_owned()
}

// A server ends a list at the first nil: what comes behind it would be lost with it.
#[test]
fn a_request_whose_answer_lacks_an_entry_fails_alone() {
    let pair = Pair::start();
    let each = each();
    for width in 3..=5 {
        let entries: Vec<_> = (1..=width).map(|entry: i64| entry.to_string()).collect();
        let whole: Vec<_> = (1..=width).map(Reply::Int).collect();
        for lacking in 0..entries.len() {
            let mut cut = entries.clone();
            cut[lacking] = "nil".into();
            let (cut, entries) = (cut.join(", "), entries.join(", "));
            let run =
                format!("function(key) if key == 1 then return {cut} end return {entries} end");
            let script = format!("{each}\nreturn each(1, 0, 0, {width}, {run})");
            let reply = pair.ask(&["EVAL", &script, "3", "a", "b", "c"]);
            let Ok(Reply::List(reply)) = reply else { panic!("no list: {reply:?}") };
            let answers: Vec<_> = reply.chunks(whole.len()).collect();
            let message = Reply::Text("a part of the answer is missing".into());
            assert_eq!((answers[0], answers[2]), (&whole[..], &whole[..]));
            assert_eq!(answers[1][..3], [Reply::Int(-1), Reply::Int(0), message]);
        }
    }
}

#[test]
fn what_the_data_are_called_stands_behind_all_answers() {
    let pair = Pair::start();
    let each = each();
    let run = "function(key) return key, 0, KEYS[key + 2] end";
    let script = format!("{each}\nreturn each(2, 0, 0, 3, {run})");
    let keys = ["one", "two", "three", "four", "fingerprint"];
    // What stands behind the answers of so many keys.
    let asks = |keys: &[&str]| {
        let reply = pair.ask(&[&["EVAL", &script, &keys.len().to_string()], keys].concat());
        let Ok(Reply::List(mut reply)) = reply else { panic!("no list: {reply:?}") };
        assert_eq!(reply[..3], [Reply::Int(0), Reply::Int(0), Reply::Text(keys[1].into())]);
        reply.split_off(3 * (keys.len() / 2))
    };
    let named = |name: &str| vec![Reply::Text(name.into())];
    assert_eq!(asks(&keys), named(""), "there is none");
    pair.must_answer_alike(&["SET", "fingerprint", "name life/ 1 2 0"]).unwrap();
    assert_eq!((asks(&keys), asks(&keys[2..])), (named("name"), named("name")));
    assert_eq!(asks(&keys[..4]), [], "nobody asks");
    pair.must_answer_alike(&["DEL", "fingerprint"]).unwrap();
    pair.must_answer_alike(&["HSET", "fingerprint", "name", "1"]).unwrap();
    assert_eq!(asks(&keys), named(""), "it is another's");
}

#[test]
fn arguments_that_are_packed_are_those_that_come_one_by_one() {
    let server = RedisServer::start();
    let each = each();
    let packed = "local ARGV = { ARGV[1], cmsgpack.pack({ unpack(ARGV, 2) }) }\n";
    for (own, args) in [(2, ["a", "b", "c", "d"]), (4, ["", "\u{742}", "7", "x"])] {
        let requests = args.len() / own;
        let joined = format!("table.concat(args, ',', arg + 1, arg + {own})");
        let run = format!("function(key, args, arg) return key, 0, {joined} end");
        let answer = |head: &str| {
            let script = format!("{head}{each}\nreturn each(1, 1, {own}, 3, {run})");
            let keys = ["one", "two"];
            let count = requests.to_string();
            let head = ["EVAL", &script, &count];
            let words = [&head[..], &keys[..requests], &["shared"], &args].concat();
            server.command(&words).expect("it answers")
        };
        let of = |(key, args): (usize, &[&str])| {
            let key = i64::try_from(key).expect("there are few");
            [Reply::Int(key), Reply::Int(0), Reply::Text(args.join(","))]
        };
        let expected = Reply::List(args.chunks(own).enumerate().flat_map(of).collect());
        assert_eq!([answer(""), answer(packed)], [expected.clone(), expected]);
    }
}

#[test]
fn lua_is_a_servers_lua() {
    let pair = Pair::start();
    pair.must_answer_alike(&["SET", "text", "x"]).unwrap();
    for script in [
        "return {1, -2.9, 'x', {true}, nil, 3}",
        "return 7.9",
        "return true",
        "return nil",
        "return {false, {ok = 'fine'}}",
        "return {redis.call('TYPE', 'text'), redis.call('GET', 'none')}",
        "return {type(redis.call('GET', 'none')), type(redis.call('TYPE', 'text'))}",
        "return {type(redis.call('EXISTS', 'none')), type(redis.call('HKEYS', 'none'))}",
        "return tostring(redis.call('GET', 'none'))",
        "return redis.call('SET', KEYS[1], ARGV[2]).ok",
        "return {err = 'BUSY a lock'}",
        "return select(2, pcall(function() redis.call('HGET', 'text', 'f') end))",
        "return select(2, xpcall(function() redis.call('HGET', 'text', 'f') end, unpack{type}))",
        "redis.call()",
        "redis.call('GET')",
        "redis.call('NOPE')",
        "redis.call('GET', {})",
        "\nerror('no')",
        "return redis.pcall('HGET', 'text', 'f')",
        "return redis.pcall('HGET', 'text', 'f').err",
        "return redis.call('HGET', 'text', 'f')",
        "return {pcall(redis.call, 'HGET', 'text', 'f')}",
        "return {pcall(function() return redis.call('PEXPIRE', 'text', 'soon') end)}",
        "return {pcall(function() return 1 < 'x' end)}",
        "return nil + 1",
        "error('no')",
        "undefined = 1",
        "return undefined",
        "math.pi = 3",
        "return os",
        "return type(rawget(_G, 'undefined'))",
        "_G.redis = 1",
        "redis.call('SET', KEYS[1], 1e12) return redis.call('GET', KEYS[1])",
        "redis.call('SET', KEYS[1], 1.5) return redis.call('GET', KEYS[1])",
        "return {#KEYS, #ARGV, KEYS[1], ARGV[2]}",
        "redis.call('SET', KEYS[1], ARGV[1]) redis.call('HGET', KEYS[1], 'f')",
        "redis.call('DEL', KEYS[1]) return redis.call('ZADD', KEYS[1], 15, 'a', 1, 'b')",
        "return redis.call('ZADD', KEYS[1], 2^53, 'c', -2^53, 'd')",
        "return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')",
        "return {redis.call('ZRANK', KEYS[1], 'none'), redis.call('ZSCORE', KEYS[1], 'a') + 1}",
        "return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. 15)",
        "return redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. 15) - 1",
        "return redis.call('PEXPIREAT', KEYS[1], (redis.call('TIME')[1] + 100) * 1000)",
        "return redis.call('PEXPIREAT', KEYS[1], redis.call('TIME')[1] * 1000 - 1)",
    ] {
        pair.must_answer_alike(&["EVAL", script, "1", "key", "a", "b"]).unwrap();
        pair.must_hold_the_same().unwrap();
    }
}
