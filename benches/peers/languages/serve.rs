//! Our side: this very program, which does with this library what each line of its input asks for.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]

use std::{
    io::{self, BufRead},
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use quorate::{MutexGuard, Quorate};
use quorate_benches::common;
use quorate_peers::{
    program::Answer,
    usage::{processor_time, resident},
};
use tokio::{runtime::Runtime, time::sleep};

use crate::load::{self, Kind};

/// So many locks are taken at once.
const AT_ONCE: usize = 256;

/// What it is connected to, with default settings.
#[derive(Debug, Default)]
struct Ours {
    urls: Vec<String>,
    clients: Vec<Quorate>,
    guards: Vec<MutexGuard>,
    names: u32,
}

/// Answers until its input ends.
pub(crate) fn serve() {
    let runtime = Runtime::new().expect("a runtime");
    println!("quorate");
    let mut ours = Ours::default();
    for line in io::stdin().lock().lines() {
        let line = line.expect("it is text");
        let words: Vec<&str> = line.split(' ').collect();
        let answered = runtime.block_on(ours.answer(&words));
        println!("{}", answered.map_or_else(|why| format!("error {why}"), |answer| answer.line()));
    }
}

impl Ours {
    async fn answer(&mut self, words: &[&str]) -> Result<Answer, String> {
        let name = format!("quorate:{}", self.names);
        self.names += 1;
        match *words {
            ["connect", ref urls @ ..] => {
                *self = Self {
                    urls: urls.iter().map(|&url| url.to_owned()).collect(),
                    ..Self::default()
                };
                self.have(1).await.map(|()| Answer::default())
            }
            ["cycles", tasks, within] => {
                let (tasks, within) = (number(tasks)?, milliseconds(within)?);
                Ok(load::cycles(&self.clients[0], &name, tasks, within).await)
            }
            [request @ ("handoff" | "crowd"), kind, waiters, clients, within] => {
                let kind = if kind == "fair" { Kind::Fair } else { Kind::Plain };
                let (waiters, clients) = (number(waiters)?, number(clients)?);
                self.have(clients).await?;
                let (clients, within) = (&self.clients[..clients], milliseconds(within)?);
                Ok(match request {
                    "crowd" => load::crowd(kind, clients, &name, waiters, within).await,
                    _ => load::handoff(kind, clients, &name, waiters, within).await,
                })
            }
            ["take", count] => Ok(self.take(&name, number(count)?).await),
            ["keep", within] => Ok(keep(milliseconds(within)?).await),
            ["count"] => Ok(self.count()),
            _ => Err(format!("there is no request {words:?}")),
        }
    }

    async fn have(&mut self, clients: usize) -> Result<(), String> {
        while self.clients.len() < clients {
            let client = common::builder(self.urls.iter().cloned()).connect().await;
            self.clients.push(client.map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    async fn take(&mut self, name: &str, count: usize) -> Answer {
        let (used, started) = (processor_time(), Instant::now());
        let client = &self.clients[0];
        let before = self.guards.len();
        let mutexes = (0..count).map(|number| client.mutex(format!("{name}:{number}")));
        let taking = stream::iter(mutexes).map(|mutex| async move { mutex.lock().await });
        let mut taken = taking.buffer_unordered(AT_ONCE);
        while let Some(taken) = taken.next().await {
            self.guards.extend(taken);
        }
        drop(taken);
        let taken = self.guards.len() - before;
        counted(taken, count - taken, started.elapsed(), processor_time().saturating_sub(used))
    }

    fn count(&self) -> Answer {
        let held = self.guards.iter().filter(|guard| guard.is_held()).count();
        counted(held, self.guards.len() - held, Duration::ZERO, Duration::ZERO)
    }
}

async fn keep(within: Duration) -> Answer {
    let (used, started) = (processor_time(), Instant::now());
    sleep(within).await;
    counted(0, 0, started.elapsed(), processor_time().saturating_sub(used))
}

fn counted(count: usize, failed: usize, elapsed: Duration, processor: Duration) -> Answer {
    let number = |count: usize| u32::try_from(count).expect("there are not that many");
    let (count, failed) = (number(count), number(failed));
    Answer { count, failed, elapsed, processor, memory: resident(), ..Answer::default() }
}

fn number(word: &str) -> Result<usize, String> {
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

fn milliseconds(word: &str) -> Result<Duration, String> {
    number(word).map(|count| Duration::from_millis(count as u64))
}
