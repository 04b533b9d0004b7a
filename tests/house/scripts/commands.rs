//! Random commands.

use proptest::{collection::vec, prelude::*, sample::select};

use crate::scripts::{Step, words};

/// Any command with any arguments that may suit it or not.
pub(crate) fn command() -> impl Strategy<Value = Step> {
    let names = "GET DEL EXISTS TYPE PTTL HKEYS HGET HEXISTS HDEL HSET SET PEXPIRE PEXPIREAT \
        PUBLISH ZREM ZSCORE ZRANK ZCARD";
    let argument = select(vec!["lock:1", "lock:2", "f", "0", "-1", "200000", "1.5", "07", ""]);
    prop_oneof![8 => some_command(names.split(' ').collect(), argument), 1 => set()]
}

/// The options of SET that are known.
fn set() -> impl Strategy<Value = Step> {
    const OPTIONS: [&[&str]; 7] = [
        &["PX", "200000"],
        &["px", "200000", "get"],
        &["PX", "200000", "GET"],
        &["PX", "0"],
        &["PX", "-1", "GET"],
        &["PX", "x"],
        &["PX"],
    ];
    let key = select(&["lock:1", "lock:2"]);
    (key, select(&["1", "text"]), select(&OPTIONS))
        .prop_map(|(key, value, options)| [words(&["SET", key, value]), words(options)].concat())
}

fn some_command(
    names: Vec<&'static str>,
    argument: impl Strategy<Value = &'static str>,
) -> impl Strategy<Value = Step> {
    (select(names), vec(argument, 1..=4))
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
/// Whole ones, as scripts have them.
const SCORES: [&str; 7] = ["0", "-1", "3", "+7", "-0", "1763712000000", "9007199254740992"];
const INDEXES: [&str; 9] = ["0", "1", "2", "-1", "-2", "-9", "9", "-0", "x"];
const BOUNDS: [&str; 7] = ["-inf", "+inf", "0", "(0", "3", "(3", "(-1"];
const SHOWN: [&[&str]; 3] = [&[], &[], &["withscores"]];
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
pub(crate) fn sorted_set_command() -> impl Strategy<Value = Step> {
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
        2 => (key(), select(&BOUNDS), select(&BOUNDS)).prop_map(|(key, min, max)| {
            words(&["ZCOUNT", key, min, max])
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
    (select(&SETS), pairs, 0..12_u8).prop_map(|(key, pairs, fate)| {
        let mut step = vec!["ZADD", key];
        step.extend(pairs.iter().flat_map(|(score, member)| [score, member]));
        if fate == 0 {
            step.pop();
        }
        words(&step)
    })
}
