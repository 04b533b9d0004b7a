//! What the benches share: how long they run, the clients that take part, and the bars.

#![allow(dead_code, reason = "compiled into several benches, and each of them uses only a part")]

use std::env;

use quorate::{Builder, Quorate};

use crate::support::RedisServer;

/// The most clients that take part, however many tasks they have between them.
const CLIENTS: usize = 10;

/// What `QUORATE_BENCH_ROUNDS` says.
pub(crate) fn rounds(otherwise: usize) -> usize {
    let rounds = env::var("QUORATE_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    rounds.unwrap_or(otherwise)
}

/// What must not be more than what.
#[derive(Default)]
pub(crate) struct Bars(Vec<(String, f64, f64)>);

impl Bars {
    pub(crate) fn add(&mut self, name: &str, value: f64, limit: f64) {
        self.0.push((name.to_owned(), value, limit));
    }

    pub(crate) fn print(&self) {
        println!();
        for (name, value, limit) in &self.0 {
            println!("BAR {name} {value:.2} {limit:.2}");
        }
        let missed = self.0.iter().filter(|(_, value, limit)| value > limit);
        let missed: Vec<&str> = missed.map(|(name, ..)| name.as_str()).collect();
        match missed.len() {
            0 => println!("all bars hold"),
            _ => println!("missed: {}", missed.join(", ")),
        }
    }
}

/// Clients for so many tasks.
pub(crate) async fn clients(
    servers: &[RedisServer],
    tasks: usize,
    set: fn(Builder) -> Builder,
) -> Vec<Quorate> {
    let mut clients = Vec::new();
    for _ in 0..tasks.min(CLIENTS) {
        let builder = Quorate::builder().voters(servers.iter().map(RedisServer::url));
        clients.push(set(builder).connect().await.expect("the servers answer"));
    }
    clients
}

pub(crate) async fn close(clients: Vec<Quorate>) {
    for client in clients {
        client.close().await;
    }
}
