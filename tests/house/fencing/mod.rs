//! Fencing: the gate, and the texts of `docs/fencing/` that do the same elsewhere.

mod gate;
mod page;
#[cfg(feature = "full")]
mod postgres;
#[cfg(feature = "full")]
mod postgresql;
mod redis;
#[cfg(feature = "full")]
mod session;
#[cfg(feature = "full")]
mod sqlite;
mod texts;

use proptest::test_runner::{Config, RngSeed};
use quorate::Token;

fn token(number: u64) -> Token {
    Token::try_from(number).expect("a token")
}

/// The same cases in each run.
fn config(cases: u32) -> Config {
    let rng_seed = RngSeed::Fixed(1);
    Config { cases, rng_seed, failure_persistence: None, ..Config::default() }
}

/// Tokens as they may come to the protected side: in order, late, the same again; with a change of
/// length, which text would compare wrongly, at the size of real ones, and next to the largest.
const OFFERED: [u64; 16] = [
    9,
    10,
    9,
    10,
    2,
    99,
    100,
    100,
    11,
    1_763_766_000_123_456,
    1_763_766_000_122,
    100,
    1_763_766_000_123_456,
    9_007_199_254_740_990,
    9_007_199_254_740_991,
    9_007_199_254_740_990,
];

/// What the gate makes of [`OFFERED`].
fn judged_by_the_gate() -> Vec<bool> {
    let gate = quorate::FenceGate::new();
    OFFERED.iter().map(|&number| gate.check("a", token(number)).is_ok()).collect()
}
