//! The embedded voter and the server, side by side.

use proptest::{prelude::*, test_runner::TestCaseResult};
use quorate::embedded::EmbeddedVoter;

use crate::scripts::calls;
use quorate_support::{RedisServer, Reply};
use quorate_tests::fixture::plain;

/// How far the times left may lie apart: both sides count real time, one call after the other.
const TOLERANCE_MS: u64 = 1500;

/// Both sides of the comparison.
pub(crate) struct Pair {
    voter: EmbeddedVoter,
    server: RedisServer,
}

impl Pair {
    pub(crate) fn start() -> Self {
        let pair = Self { voter: EmbeddedVoter::new("embedded"), server: RedisServer::start() };
        // Deadlines in queues are told by the clock of each.
        let [embedded, served] = pair.ask_both(&["TIME"]).map(|reply| micros(&reply.unwrap()));
        pair.voter.jump_clock(served - embedded);
        pair
    }

    /// Runs one command on both sides.
    pub(crate) fn ask_both(&self, words: &[&str]) -> [Result<Reply, String>; 2] {
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

    pub(crate) fn must_answer_alike(&self, words: &[&str]) -> TestCaseResult {
        let [embedded, served] = self.ask_both(words);
        // For how long data are known may be no time at all. So many entries are a request's.
        let widths = [("fingerprint:", 5), ("configurations:", 4)];
        let asks = |key| words.iter().any(|word| word.starts_with(key));
        let ages = widths.iter().find(|(key, _)| asks(*key)).map(|(_, width)| *width);
        let alike = match (&embedded, &served) {
            (Ok(embedded), Ok(served)) => are_alike(embedded, served, ages),
            (embedded, served) => embedded == served,
        };
        prop_assert!(alike, "{words:?}:\nembedded {embedded:?}\n  server {served:?}");
        Ok(())
    }

    /// What both answer.
    pub(crate) fn ask(&self, words: &[&str]) -> Result<Reply, String> {
        let [embedded, served] = self.ask_both(words);
        assert_eq!(embedded, served, "{words:?}");
        served
    }

    /// Compares all there is, types and times left included.
    pub(crate) fn must_hold_the_same(&self) -> TestCaseResult {
        let keys = self.voter.keys();
        prop_assert_eq!(&keys, &self.server.keys());
        for key in keys {
            self.must_answer_alike(&["TYPE", &key])?;
            self.must_answer_alike(&["PTTL", &key])?;
            self.must_answer_alike(&["GET", &key])?;
            let [embedded, served] =
                self.ask_both(&["HGETALL", &key]).map(|reply| reply.map(sorted));
            let alike = match (&embedded, &served) {
                // When clients were here.
                (Ok(embedded), Ok(served)) if key.starts_with("configurations:") => {
                    are_alike(embedded, served, Some(4))
                }
                // Until when they stay.
                (Ok(embedded), Ok(served)) if key.contains("revoked") => {
                    are_alike(embedded, served, None)
                }
                (embedded, served) => embedded == served,
            };
            prop_assert!(alike, "{key}:\nembedded {embedded:?}\n  server {served:?}");
            self.must_answer_alike(&["ZRANGE", &key, "0", "-1", "WITHSCORES"])?;
        }
        Ok(())
    }
}

fn micros(time: &Reply) -> i64 {
    let parts = time.clone().texts();
    let part = |part: &String| part.parse::<i64>().expect("a number");
    part(&parts[0]) * 1_000_000 + part(&parts[1])
}

/// Equal, but for times, which are the only numbers this large besides the last ticket; or where
/// there are `ages`, in replies of so many entries for each request: then the second, the fourth
/// and those of a fifth may be small, too. Tokens are times in microseconds.
fn are_alike(embedded: &Reply, served: &Reply, ages: Option<usize>) -> bool {
    let is_time =
        |number: i64| (ages.is_some() || number > 10_000) && number.to_string() != calls::LAST;
    let tolerance = |a: i64| TOLERANCE_MS * if a > 100_000_000_000_000 { 1_000 } else { 1 };
    let numbers =
        |a: i64, b: i64| a == b || is_time(a) && is_time(b) && a.abs_diff(b) < tolerance(a);
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
            let mut both = a.iter().zip(b).enumerate();
            let age = |at| ages.filter(|width| at % width % 2 == 1 || at % width == 4);
            a.len() == b.len() && both.all(|(at, (a, b))| are_alike(a, b, age(at)))
        }
        (a, b) => a == b,
    }
}

/// A server lists the fields of a hash in no order.
fn sorted(reply: Reply) -> Reply {
    let Reply::List(entries) = reply else { return reply };
    let mut fields: Vec<_> = entries.chunks(2).map(<[_]>::to_vec).collect();
    fields.sort_by_key(|field| format!("{field:?}"));
    Reply::List(fields.concat())
}
