//! Conformance: the embedded voter and a real server get the same calls and must answer the same.

mod support;

use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    test_runner::{Config, RngSeed, TestCaseResult, TestRunner},
};
use quorate::embedded::EmbeddedVoter;
use support::{RedisServer, Reply};

/// Leases this long, and further apart than the tolerance, cannot be taken for one another.
const LEASES_MS: [&str; 3] = ["100000", "200000", "300000"];
/// How far the times left may lie apart: both sides count real time, one call after the other.
const TOLERANCE_MS: u64 = 1500;

const LOCKS: [&str; 3] = ["lock:1", "lock:2", "lock:3"];
/// The last four are of two places in a queue.
const HOLDS: [&str; 7] = [
    "client-a:1",
    "client-a:2",
    "client-b:1",
    "client-a:7.1",
    "client-a:7.2",
    "client-b:7.1",
    "client-b:7.2",
];
const TICKETS: [&str; 4] = ["", "", "1", "3"];

/// Both sides of the comparison.
struct Pair {
    voter: EmbeddedVoter,
    server: RedisServer,
}

impl Pair {
    fn start() -> Self {
        let pair = Self { voter: EmbeddedVoter::new("embedded"), server: RedisServer::start() };
        // Deadlines in queues are told by the clock of each.
        let [embedded, served] = pair.ask(&["TIME"]).map(|reply| micros(&reply.unwrap()));
        pair.voter.jump_clock(served - embedded);
        pair
    }

    /// Runs one command on both sides.
    fn ask(&self, words: &[&str]) -> [Result<Reply, String>; 2] {
        // The harness cuts off the blanks at the end of an error.
        let embedded = self.voter.command(words).map(plain);
        let embedded = embedded.map_err(|message| message.trim_end().to_owned());
        // In the error of a script a server names the script too.
        let served = self
            .server
            .command(words)
            .map_err(|message| message.split(" script: ").next().unwrap_or_default().to_owned());
        [embedded, served]
    }

    fn must_answer_alike(&self, words: &[&str]) -> TestCaseResult {
        let [embedded, served] = self.ask(words);
        let alike = match (&embedded, &served) {
            (Ok(embedded), Ok(served)) => are_alike(embedded, served),
            (embedded, served) => embedded == served,
        };
        prop_assert!(alike, "{words:?}:\nembedded {embedded:?}\n  server {served:?}");
        Ok(())
    }

    /// Compares all there is, types and times left included.
    fn must_hold_the_same(&self) -> TestCaseResult {
        let keys = self.voter.keys();
        prop_assert_eq!(&keys, &self.server.keys());
        for key in keys {
            self.must_answer_alike(&["TYPE", &key])?;
            self.must_answer_alike(&["PTTL", &key])?;
            let [embedded, served] = self.ask(&["HGETALL", &key]).map(|reply| reply.map(sorted));
            prop_assert_eq!(embedded, served, "{}", key);
            if key.starts_with("alive:") {
                self.must_keep_alive_the_same(&key)?;
            } else {
                self.must_answer_alike(&["ZRANGE", &key, "0", "-1", "WITHSCORES"])?;
            }
        }
        Ok(())
    }

    /// Deadlines of the same millisecond on one side may not be so on the other: the order says
    /// nothing.
    fn must_keep_alive_the_same(&self, key: &str) -> TestCaseResult {
        let all = ["ZRANGE", key, "0", "-1"];
        let [embedded, served] = self.ask(&all).map(|reply| reply.map(sorted));
        prop_assert_eq!(embedded, served, "{}", key);
        let places = HOLDS.iter().filter_map(|hold| hold.split_once('.'));
        for (place, _) in places {
            self.must_answer_alike(&["ZSCORE", key, place])?;
        }
        Ok(())
    }
}

fn plain(reply: quorate::embedded::Reply) -> Reply {
    use quorate::embedded::Reply as Embedded;
    match reply {
        Embedded::Nil => Reply::Nil,
        Embedded::Int(number) => Reply::Int(number),
        Embedded::Text(text) => Reply::Text(text),
        Embedded::List(replies) => Reply::List(replies.into_iter().map(plain).collect()),
    }
}

fn micros(time: &Reply) -> i64 {
    let Reply::List(parts) = time else { panic!("no list: {time:?}") };
    let part = |part: &Reply| match part {
        Reply::Text(text) => text.parse::<i64>().expect("a number"),
        other => panic!("no text: {other:?}"),
    };
    part(&parts[0]) * 1_000_000 + part(&parts[1])
}

/// Equal, but for times, which are the only numbers this large.
fn are_alike(embedded: &Reply, served: &Reply) -> bool {
    let numbers = |a: i64, b: i64| a == b || a.min(b) > 10_000 && a.abs_diff(b) < TOLERANCE_MS;
    let texts = |a: &str, b: &str| match (a.parse(), b.parse()) {
        (Ok(a), Ok(b)) => numbers(a, b),
        _ => a == b,
    };
    let parts = |text: &str| text.split([' ', '\n']).map(str::to_owned).collect::<Vec<_>>();
    match (embedded, served) {
        (Reply::Int(a), Reply::Int(b)) => numbers(*a, *b),
        (Reply::Text(a), Reply::Text(b)) => {
            let (a, b) = (parts(a), parts(b));
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| texts(a, b))
        }
        (Reply::List(a), Reply::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| are_alike(a, b))
        }
        (a, b) => a == b,
    }
}

/// A server lists the fields of a hash in no order.
fn sorted(reply: Reply) -> Vec<String> {
    let Reply::List(entries) = reply else { return vec![format!("{reply:?}")] };
    let mut texts: Vec<_> = entries.iter().map(|entry| format!("{entry:?}")).collect();
    texts.sort();
    texts
}

/// One step of a random sequence: a command's words.
type Step = Vec<String>;

fn words(words: &[&str]) -> Step {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// One request of a script.
#[derive(Clone, Debug)]
struct Request {
    lock: &'static str,
    hold: &'static str,
    time_ms: &'static str,
    ticket: &'static str,
    count: u8,
    leaves: bool,
}

fn request() -> impl Strategy<Value = Request> {
    let parts = (select(&LOCKS), select(&HOLDS), select(&LEASES_MS), select(&TICKETS));
    (parts, 0..3_u8, any::<bool>()).prop_map(|((lock, hold, time_ms, ticket), count, leaves)| {
        Request { lock, hold, time_ms, ticket, count, leaves }
    })
}

/// A call of any script with one to four requests.
fn script_call() -> impl Strategy<Value = Step> {
    let scripts: Vec<_> = quorate::scripts().collect();
    (select(scripts), vec(request(), 1..=4)).prop_map(|((name, source), requests)| {
        let (mut keys, mut args) = (Vec::new(), Vec::new());
        for request in requests {
            let of_request = request.arguments(name);
            keys.extend(of_request.0);
            args.extend(of_request.1);
        }
        let head = [words(&["EVAL", source]), vec![keys.len().to_string()]];
        [head.concat(), keys, args].concat()
    })
}

impl Request {
    fn arguments(self, script: &str) -> (Step, Step) {
        let Self { lock, hold, time_ms, ticket, count, leaves } = self;
        let count = &count.to_string()[..];
        let [revoked, queue, alive] = &["revoked", "queue", "alive"].map(|k| format!("{k}:{lock}"));
        let place = hold.split_once('.').map(|(place, _)| place);
        // Only an attempt from a place asks so.
        let attempt = place.map_or("client-c:9.1", |_| hold);
        let left = place.filter(|_| leaves).unwrap_or_default();
        let (keys, args): (&[&str], &[&str]) = match script {
            "mutex/acquire" => (&[lock, queue, alive], &[hold, count, time_ms]),
            "mutex/renew" => (&[lock, revoked], &[hold, count, time_ms]),
            "mutex/release" => (&[lock, queue, alive], &[hold, count, left, "channel", "calls:"]),
            "mutex/force_release" => {
                (&[lock, revoked, queue, alive], &[hold, time_ms, "channel", "calls:"])
            }
            "mutex/inspect" => (&[lock, queue, alive], &[]),
            "fair/acquire" => {
                (&[lock, queue, alive], &[attempt, "1", time_ms, ticket, time_ms, "calls:"])
            }
            other => panic!("{other} is not compared: say here what it takes"),
        };
        (words(keys), words(args))
    }
}

/// What a script may find: keys of another type, records without an expiry or without sense.
fn planted() -> impl Strategy<Value = Step> {
    let key = select(&LOCKS);
    let derived = (select(&["revoked", "queue", "alive"]), select(&LOCKS));
    let derived = derived.prop_map(|(kind, lock)| format!("{kind}:{lock}"));
    prop_oneof![
        2 => key.clone().prop_map(|key| words(&["SET", key, "text"])),
        1 => derived.clone().prop_map(|key| words(&["SET", &key, "text"])),
        1 => derived.prop_map(|key| words(&["DEL", &key])),
        1 => key.clone().prop_map(|key| words(&["HSET", key, "other", "no number"])),
        1 => key.clone().prop_map(|key| words(&["ZADD", key, "1", "other"])),
        2 => key.clone().prop_map(|key| words(&["DEL", key])),
        1 => key.prop_map(|key| words(&["PEXPIRE", key, "-1"])),
        1 => Just(words(&["FLUSHALL"])),
    ]
}

/// Any command with any arguments that may suit it or not.
fn command() -> impl Strategy<Value = Step> {
    let names = [
        "GET",
        "DEL",
        "EXISTS",
        "TYPE",
        "PTTL",
        "HKEYS",
        "HGET",
        "HEXISTS",
        "HDEL",
        "HSET",
        "SET",
        "PEXPIRE",
        "PEXPIREAT",
        "PUBLISH",
        "ZADD",
        "ZREM",
        "ZSCORE",
        "ZRANK",
        "ZCARD",
        "ZRANGE",
        "ZRANGEBYSCORE",
    ];
    let argument = select(vec!["lock:1", "lock:2", "f", "0", "-1", "200000", "1.5", "07", ""]);
    (select(names.to_vec()), vec(argument, 1..=4))
        // These have options on a server.
        .prop_filter("options", |(name, args)| {
            args.len() <= 2 || !["SET", "PEXPIRE", "PEXPIREAT"].contains(name)
        })
        // A hash with two fields has no order.
        .prop_filter("order", |(name, args)| {
            *name != "HSET" || args.get(1) == Some(&"f") && args.len() < 4
        })
        .prop_map(|(name, args)| [words(&[name]), words(&args)].concat())
}

const SETS: [&str; 2] = ["set:1", "set:2"];
/// Few: what a server makes of -0 in a large set is another thing.
const MEMBERS: [&str; 5] = ["", "B", "a", "a:1", "ä"];
const SCORES: [&str; 11] =
    ["0", "-1", "3", "3.5", "0.1", "-0", "+inf", "-inf", "1763712000000", "1e17", "x"];
const INDEXES: [&str; 9] = ["0", "1", "2", "-1", "-2", "-9", "9", "-0", "x"];
const BOUNDS: [&str; 13] =
    ["-inf", "+inf", "0", "(0", "3", "(3", "-2.5", "(0.1", "(", "", " 1", "(inf", "x"];
const FLAGS: [&[&str]; 12] = [
    &[],
    &[],
    &[],
    &[],
    &["NX"],
    &["xx"],
    &["GT"],
    &["lt", "CH"],
    &["CH", "XX", "GT"],
    &["NX", "XX"],
    &["GT", "NX"],
    &["LT", "GT"],
];
const SHOWN: [&[&str]; 5] = [&[], &[], &["withscores"], &["WITHSCORES", "withscores"], &["x"]];
/// What may happen to a key of any type.
const ON_ANY_KEY: [&[&str]; 7] = [
    &["SET", "text"],
    &["HSET", "field", "1"],
    &["DEL"],
    &["TYPE"],
    &["PEXPIRE", "200000"],
    &["PEXPIRE", "-1"],
    &["PEXPIREAT", "1"],
];

/// A command that works on a sorted set, or takes it away.
fn sorted_set_command() -> impl Strategy<Value = Step> {
    let (key, member, shown) = (|| select(&SETS), || select(&MEMBERS), || select(&SHOWN));
    let about_one = (select(&["ZSCORE", "ZRANK", "ZREM"]), key(), member());
    let about_some = (key(), vec(member(), 2..4));
    let by_index = (key(), select(&INDEXES), select(&INDEXES), shown());
    let by_score = (key(), select(&BOUNDS), select(&BOUNDS), shown());
    prop_oneof![
        8 => zadd(),
        4 => about_one.prop_map(|(name, key, member)| words(&[name, key, member])),
        1 => about_some.prop_map(|(key, members)| words(&[&["ZREM", key], &members[..]].concat())),
        1 => key().prop_map(|key| words(&["ZCARD", key])),
        3 => by_index.prop_map(|(key, start, stop, shown)| {
            words(&[&["ZRANGE", key, start, stop], shown].concat())
        }),
        3 => by_score.prop_map(|(key, min, max, shown)| {
            words(&[&["ZRANGEBYSCORE", key, min, max], shown].concat())
        }),
        1 => (select(&ON_ANY_KEY), key()).prop_map(|(step, key)| {
            words(&[&step[..1], &[key], &step[1..]].concat())
        }),
    ]
}

/// `ZADD` with up to three members; in one case of twelve the last one is left out.
fn zadd() -> impl Strategy<Value = Step> {
    let pairs = vec((select(&SCORES), select(&MEMBERS)), 1..4);
    (select(&SETS), select(&FLAGS), pairs, 0..12_u8).prop_map(|(key, flags, pairs, fate)| {
        let mut step = [&["ZADD", key], flags].concat();
        step.extend(pairs.iter().flat_map(|(score, member)| [score, member]));
        if fate == 0 {
            step.pop();
        }
        words(&step)
    })
}

fn compare(seed: u64, step: impl Strategy<Value = Step>) {
    let pair = Pair::start();
    let config = Config {
        cases: 100,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    };
    let compared = TestRunner::new(config).run(&vec(step, 1..40), |steps| {
        pair.must_answer_alike(&["FLUSHALL"])?;
        for step in &steps {
            let words: Vec<_> = step.iter().map(String::as_str).collect();
            pair.must_answer_alike(&words)?;
        }
        pair.must_hold_the_same()
    });
    compared.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
}

#[test]
fn every_script_answers_as_on_a_server() {
    for seed in 1..=3 {
        compare(seed, prop_oneof![6 => script_call(), 1 => planted()]);
    }
}

#[test]
fn every_command_answers_as_a_server_does() {
    for seed in 1..=3 {
        compare(seed, command());
    }
}

#[test]
fn every_command_for_sorted_sets_answers_as_a_server_does() {
    for seed in 1..=3 {
        compare(seed, sorted_set_command());
    }
}

#[test]
fn a_score_is_read_and_printed_as_by_a_server() {
    let pair = Pair::start();
    let numbers = "1763712000000,3.0,+7,.5,5.,0.1,-0.3,0.0001,0.00001,-2e-7,1e16,1e17,0e400,-0,\
        -99999999999999984,99999999999999999,9007199254740993,123456789012345678,INF,-Infinity,\
        1000000000000000.25,1000000000000000.75,1.7976931348623157e308,4.9e-324,1e-320";
    let others = "1e-400,1e400,nan,,.,-,e5,1e, 1,1 ,1_0,١";
    for score in numbers.split(',').chain(others.split(',')) {
        for words in [
            &["ZADD", "set", score, "member"][..],
            &["ZSCORE", "set", "member"],
            &["ZRANGE", "set", "0", "-1", "WITHSCORES"],
            &["ZRANGEBYSCORE", "set", score, "+inf"],
            &["ZRANGEBYSCORE", "set", "-inf", &format!("({score}")],
        ] {
            pair.must_answer_alike(words).unwrap();
        }
    }
}

#[test]
fn a_command_that_nobody_knows_is_refused_as_on_a_server() {
    let pair = Pair::start();
    for words in [&["NOPE", "a"][..], &["nope", "a", "b c"], &["EVAL", "x"], &["EVAL", "x", "1"]] {
        pair.must_answer_alike(words).unwrap();
    }
}

#[test]
fn lua_is_a_servers_lua() {
    let pair = Pair::start();
    pair.must_answer_alike(&["SET", "text", "x"]).unwrap();
    for script in [
        "return {1, -2.9, 'x', {true}, nil, 3}",
        "return {false, {ok = 'fine'}}",
        "return {redis.call('TYPE', 'text'), redis.call('GET', 'none')}",
        "return {type(redis.call('GET', 'none')), type(redis.call('TYPE', 'text'))}",
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
        "redis.call('SET', KEYS[1], 1e12) return redis.call('GET', KEYS[1])",
        "redis.call('SET', KEYS[1], 1.5) return redis.call('GET', KEYS[1])",
        "return {#KEYS, #ARGV, KEYS[1], ARGV[2]}",
        "redis.call('SET', KEYS[1], ARGV[1]) redis.call('HGET', KEYS[1], 'f')",
        "redis.call('DEL', KEYS[1]) return redis.call('ZADD', KEYS[1], 1.5, 'a', 0.1, 'b')",
        "return redis.call('ZADD', KEYS[1], 2^60, 'c', -math.huge, 'd')",
        "return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')",
        "return {redis.call('ZRANK', KEYS[1], 'none'), redis.call('ZSCORE', KEYS[1], 'a') + 1}",
        "return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. 1.5)",
        "return redis.call('PEXPIREAT', KEYS[1], (redis.call('TIME')[1] + 100) * 1000)",
        "return redis.call('PEXPIREAT', KEYS[1], redis.call('TIME')[1] * 1000 - 1)",
    ] {
        pair.must_answer_alike(&["EVAL", script, "1", "key", "a", "b"]).unwrap();
        pair.must_hold_the_same().unwrap();
    }
}
