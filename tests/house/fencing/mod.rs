//! Fencing: the gate, and the texts of `docs/fencing/` that do the same elsewhere.

#[cfg(feature = "full")]
mod databases;
mod gate;
#[cfg(feature = "full")]
mod postgres;
mod redis;

use proptest::test_runner::{Config, RngSeed};
use quorate_tests::prelude::*;

fn token(number: u64) -> Token {
    Token::try_from(number).expect("a token")
}

/// The same cases in each run.
fn config(cases: u32) -> Config {
    let rng_seed = RngSeed::Fixed(1);
    Config { cases, rng_seed, failure_persistence: None, ..Config::default() }
}

const REAL: u64 = 1_763_766_000_123_456;
const MAX: u64 = 9_007_199_254_740_991;
/// Tokens as they may come to the protected side: in order, late, the same again; with a change of
/// length, which text would compare wrongly, at the size of real ones, and next to the largest.
const OFFERED: [u64; 16] =
    [9, 10, 9, 10, 2, 99, 100, 100, 11, REAL, REAL / 1_000, 100, REAL, MAX - 1, MAX, MAX - 1];

/// What the gate makes of [`OFFERED`]: whether each passes, and the highest that has passed.
fn judged_by_the_gate() -> impl Iterator<Item = (u64, bool, u64)> {
    let gate = quorate::FenceGate::new();
    OFFERED.into_iter().map(move |number| {
        let passes = gate.check("a", token(number)).is_ok();
        (number, passes, gate.highest("a").expect("one has passed").into())
    })
}

#[test]
fn the_page_and_the_example_quote_the_texts_as_they_are_tested() {
    let page = read_file("docs/fencing.md");
    let quotes = page.split("\n```");
    let quotes = quotes.filter_map(|it| it.strip_prefix("lua\n").or(it.strip_prefix("sql\n")));
    // Those for SQLite, which differ by the names of parameters, it only links.
    let texts = ["redis.lua", "postgresql.sql"];
    let texts = texts.map(|text| read_file(&format!("docs/fencing/{text}")));
    assert_eq!(quotes.map(|quote| format!("{quote}\n")).collect::<Vec<_>>(), texts);
    let example = read_file("examples/fenced_write.rs");
    let statement = example.split_once("const UPDATE: &str = \"").expect("it has one").1;
    let statement = statement.split('"').next().expect("it ends");
    assert!(texts[1].lines().any(|line| line == statement), "{statement}");
}
