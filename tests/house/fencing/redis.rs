//! `docs/fencing/redis.lua`, on a server and on an embedded voter.

use quorate::embedded::{self, EmbeddedVoter};

use crate::fencing::{OFFERED, judged_by_the_gate, texts::LUA};
use quorate_support::{RedisServer, Reply};

/// Whoever runs commands.
trait Runs {
    /// A number or a text, as text.
    fn run(&self, words: &[&str]) -> Result<String, String>;

    fn offer(&self, token: &str, value: &str) -> Result<String, String> {
        self.run(&["EVAL", LUA, "2", "{a}:value", "{a}:fence", token, value])
    }
}

impl Runs for RedisServer {
    fn run(&self, words: &[&str]) -> Result<String, String> {
        match self.command(words)? {
            Reply::Int(number) => Ok(number.to_string()),
            Reply::Text(text) => Ok(text),
            other => Ok(format!("{other:?}")),
        }
    }
}

impl Runs for EmbeddedVoter {
    fn run(&self, words: &[&str]) -> Result<String, String> {
        match self.command(words)? {
            embedded::Reply::Int(number) => Ok(number.to_string()),
            embedded::Reply::Text(text) => Ok(text),
            other => Ok(format!("{other:?}")),
        }
    }
}

fn on_both(test: impl Fn(&dyn Runs)) {
    test(&EmbeddedVoter::new("embedded"));
    test(&RedisServer::start());
}

#[test]
fn the_lua_text_lets_pass_what_the_gate_does_and_keeps_the_last_that_passed() {
    on_both(|server| {
        let mut last = 0;
        for (number, passes) in OFFERED.into_iter().zip(judged_by_the_gate()) {
            let text = number.to_string();
            let set = server.offer(&text, &format!("by {text}"));
            assert_eq!(set.as_deref(), Ok(if passes { "1" } else { "0" }), "{number}");
            last = if passes { number } else { last };
            assert_eq!(server.run(&["GET", "{a}:value"]), Ok(format!("by {last}")));
            assert_eq!(server.run(&["GET", "{a}:fence"]), Ok(last.to_string()));
        }
    });
}

#[test]
fn the_lua_text_refuses_what_is_no_token_and_changes_nothing() {
    on_both(|server| {
        for token in ["", "0", "-1", "+1", "1.5", "1e3", "0x10", "9007199254740992", "inf"] {
            let refused = server.offer(token, "late");
            assert_eq!(refused, Err("ERR not a fencing token".into()), "{token}");
        }
        assert_eq!(server.run(&["EXISTS", "{a}:value", "{a}:fence"]), Ok("0".into()));
    });
}

/// As the text says: with an expiry a late writer would pass.
#[test]
fn the_fence_has_no_expiry_and_outlives_the_value() {
    on_both(|server| {
        server.offer("9", "by 9").unwrap();
        assert_eq!(server.run(&["PTTL", "{a}:fence"]), Ok("-1".into()));
        server.run(&["DEL", "{a}:value"]).unwrap();
        assert_eq!(server.offer("8", "late"), Ok("0".into()));
        assert_eq!(server.run(&["EXISTS", "{a}:value"]), Ok("0".into()));
    });
}
