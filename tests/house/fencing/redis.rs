//! `docs/fencing/redis.lua`, on a server and on an embedded voter.

use quorate_tests::prelude::*;

use crate::{fencing::judged_by_the_gate, scripts::Pair};

struct Fenced {
    text: String,
    pair: Pair,
}

impl Fenced {
    fn new() -> Self {
        Self { text: read_file("docs/fencing/redis.lua"), pair: Pair::start() }
    }

    fn offer(&self, token: &str, value: &str) -> Result<Reply, String> {
        self.pair.ask(&["EVAL", &self.text, "2", "{a}:value", "{a}:fence", token, value])
    }

    fn get(&self, key: &str) -> Reply {
        self.pair.ask(&["GET", key]).unwrap()
    }
}

#[test]
fn the_lua_text_lets_pass_what_the_gate_does_and_keeps_the_last_that_passed() {
    let fenced = Fenced::new();
    for (number, passes, last) in judged_by_the_gate() {
        let set = fenced.offer(&number.to_string(), &format!("by {number}"));
        assert_eq!(set, Ok(Reply::Int(i64::from(passes))), "{number}");
        assert_eq!(fenced.get("{a}:value"), Reply::Text(format!("by {last}")));
        assert_eq!(fenced.get("{a}:fence"), Reply::Text(last.to_string()));
    }
}

#[test]
fn the_lua_text_refuses_what_is_no_token_and_changes_nothing() {
    let fenced = Fenced::new();
    for token in ["", "0", "-1", "+1", "1.5", "1e3", "0x10", "9007199254740992", "inf"] {
        let refused = fenced.offer(token, "late");
        assert_eq!(refused, Err("ERR not a fencing token".into()), "{token}");
    }
    assert_eq!((fenced.get("{a}:value"), fenced.get("{a}:fence")), (Reply::Nil, Reply::Nil));
}

/// As the text says: with an expiry a late writer would pass.
#[test]
fn the_fence_has_no_expiry_and_outlives_the_value() {
    let fenced = Fenced::new();
    fenced.offer("9", "by 9").unwrap();
    assert_eq!(fenced.pair.ask(&["PTTL", "{a}:fence"]), Ok(Reply::Int(-1)));
    fenced.pair.ask(&["DEL", "{a}:value"]).unwrap();
    assert_eq!(fenced.offer("8", "late"), Ok(Reply::Int(0)));
    assert_eq!(fenced.get("{a}:value"), Reply::Nil);
}
