//! The read/write lock over five nodes: what reading one lock costs where many do, and how long a
//! writer waits for readers that come and go.
//!
//! `cargo bench --bench rw`; `QUORATE_BENCH_ROUNDS` sets its length (default 30, some minute). It
//! starts its own servers. What counts are ratios: both sides of each take turns, or are measured
//! at the same moment, so whatever else the machine does falls on both.

#[path = "../common/mod.rs"]
mod common;
mod entering;
#[path = "../floor/mod.rs"]
mod floor;
mod reading;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use common::Bars;
use quorate::{Builder, Preference};
use support::RedisServer;

/// How many read at once.
const READERS: [usize; 3] = [1, 16, 256];
/// Tries to write past readers that nobody makes wait: more of them would show the same.
const VAIN: usize = 3;

#[tokio::main]
async fn main() {
    let rounds = common::rounds(30);
    // In a task, as in a service: `main` itself stands outside the runtime's workers.
    let measured = tokio::spawn(async move {
        let servers: Vec<RedisServer> = (0..5).map(|_| RedisServer::start()).collect();
        let mut bars = Bars::default();
        println!(
            "enter + leave              per second  / mutex   client us  servers us   script us"
        );
        for readers in READERS {
            println!("{readers} at once");
            reading::compare(&mut bars, &servers, readers, rounds).await;
        }
        println!("\na writer among readers{:9}     entered    p50 ms  floor ms  p50/floor", "");
        entering::among(&mut bars, &servers, Preference::Writers, rounds).await;
        entering::among(&mut bars, &servers, Preference::Fair, rounds).await;
        entering::among(&mut bars, &servers, Preference::Readers, rounds.min(VAIN)).await;
        bars.print();
    });
    measured.await.expect("the measuring task ends");
}

/// Nothing is lost here, and whatever is late is to be measured.
fn patient(builder: Builder) -> Builder {
    builder.voter_deadline(Duration::from_secs(1))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
