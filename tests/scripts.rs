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
const HOLDS: [&str; 3] = ["client-a:1", "client-a:2", "client-b:1"];

/// Both sides of the comparison.
struct Pair {
    voter: EmbeddedVoter,
    server: RedisServer,
}

impl Pair {
    fn start() -> Self {
        Self { voter: EmbeddedVoter::new("embedded"), server: RedisServer::start() }
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

/// Equal, but for times left, which are the only numbers this large.
fn are_alike(embedded: &Reply, served: &Reply) -> bool {
    match (embedded, served) {
        (Reply::Int(a), Reply::Int(b)) if a.min(b) > &10_000 => a.abs_diff(*b) < TOLERANCE_MS,
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

/// A call of any script with one to four requests.
fn script_call() -> impl Strategy<Value = Step> {
    let scripts: Vec<_> = quorate::scripts().collect();
    let request = (select(&LOCKS), select(&HOLDS), select(&LEASES_MS), 0..3_u8);
    (select(scripts), vec(request, 1..=4)).prop_map(|((name, source), requests)| {
        let (mut keys, mut args) = (Vec::new(), Vec::new());
        for (lock, hold, lease_ms, count) in requests {
            let revoked = format!("revoked:{lock}");
            let of_request = arguments(name, lock, &revoked, hold, lease_ms, &count.to_string());
            keys.extend(of_request.0);
            args.extend(of_request.1);
        }
        let head = [words(&["EVAL", source]), vec![keys.len().to_string()]];
        [head.concat(), keys, args].concat()
    })
}

/// The keys and arguments of one request.
fn arguments(
    script: &str,
    lock: &str,
    revoked: &str,
    hold: &str,
    lease_ms: &str,
    count: &str,
) -> (Step, Step) {
    let (keys, args): (&[&str], &[&str]) = match script {
        "mutex/acquire" => (&[lock], &[hold, count, lease_ms]),
        "mutex/renew" => (&[lock, revoked], &[hold, count, lease_ms]),
        "mutex/release" => (&[lock], &[hold, count, "channel"]),
        "mutex/force_release" => (&[lock, revoked], &[hold, lease_ms, "channel"]),
        "mutex/inspect" => (&[lock], &[]),
        other => panic!("{other} is not compared: say here what it takes"),
    };
    (words(keys), words(args))
}

/// What a script may find: keys of another type, records without an expiry or without sense.
fn planted() -> impl Strategy<Value = Step> {
    let key = select(&LOCKS);
    let revoked = select(&LOCKS).prop_map(|lock| format!("revoked:{lock}"));
    prop_oneof![
        2 => key.clone().prop_map(|key| words(&["SET", key, "text"])),
        1 => revoked.prop_map(|key| words(&["SET", &key, "text"])),
        1 => key.clone().prop_map(|key| words(&["HSET", key, "other", "no number"])),
        2 => key.clone().prop_map(|key| words(&["DEL", key])),
        1 => key.prop_map(|key| words(&["PEXPIRE", key, "-1"])),
        1 => Just(words(&["FLUSHALL"])),
    ]
}

/// Any command with any arguments that may suit it or not.
fn command() -> impl Strategy<Value = Step> {
    let names = [
        "GET", "DEL", "EXISTS", "TYPE", "PTTL", "HKEYS", "HGET", "HEXISTS", "HDEL", "HSET", "SET",
        "PEXPIRE", "PUBLISH",
    ];
    let argument = select(vec!["lock:1", "lock:2", "f", "0", "-1", "200000", "1.5", "07", ""]);
    (select(names.to_vec()), vec(argument, 1..=4))
        // `SET` and `PEXPIRE` have options on a server.
        .prop_filter("options", |(name, args)| {
            args.len() <= 2 || !["SET", "PEXPIRE"].contains(name)
        })
        // A hash with two fields has no order.
        .prop_filter("order", |(name, args)| {
            *name != "HSET" || args.get(1) == Some(&"f") && args.len() < 4
        })
        .prop_map(|(name, args)| [words(&[name]), words(&args)].concat())
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
    ] {
        pair.must_answer_alike(&["EVAL", script, "1", "key", "a", "b"]).unwrap();
        pair.must_hold_the_same().unwrap();
    }
}
