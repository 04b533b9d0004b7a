//! The sides, each a program of its own, and their turns.

use std::{mem, rc::Rc, time::Duration};

use quorate_benches::report::Length;
use quorate_peers::{
    program::{Answer, Program},
    tools::{self, Tool},
    usage::used_by,
};
use quorate_support::RedisServer;

use crate::etcd::Members;

/// The argument with which this program is our side.
pub(crate) const SERVE: &str = "serve";

/// A library, by a program that runs. Where it does not, why not.
#[derive(Debug)]
pub(crate) struct Side {
    /// As bars have it.
    pub(crate) key: &'static str,
    program: Result<Program, String>,
    servers: Servers,
    length: Length,
}

/// What a side is connected to.
#[derive(Clone, Debug)]
pub(crate) enum Servers {
    Redis(Rc<Vec<RedisServer>>),
    Etcd(Rc<Members>),
    Nothing,
}

impl Servers {
    fn urls(&self) -> Vec<String> {
        match self {
            Self::Redis(servers) => servers.iter().map(RedisServer::url).collect(),
            Self::Etcd(members) => members.urls(),
            Self::Nothing => Vec::new(),
        }
    }

    fn used(&self) -> Duration {
        match self {
            Self::Redis(servers) => used_by(servers),
            Self::Etcd(members) => members.used(),
            Self::Nothing => Duration::ZERO,
        }
    }
}

/// One turn of one side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) answer: Answer,
    /// Processor time.
    servers: Duration,
}

/// The medians of a side's turns, or why there are none.
pub(crate) type Outcome = Result<Figures, String>;

/// Times in microseconds, processor time for each lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) rate: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) client: f64,
    pub(crate) servers: f64,
    pub(crate) seconds: f64,
    /// Median of what was had.
    pub(crate) count: f64,
    /// In all turns.
    pub(crate) failed: u32,
}

impl Side {
    pub(crate) fn ours(length: Length) -> Self {
        Self::start("quorate", length, Ok(Tool::own(SERVE)))
    }

    pub(crate) fn redisson(length: Length) -> Self {
        Self::start("redisson", length, Tool::redisson(may_download(length)))
    }

    /// `redsync` or `etcd`.
    pub(crate) fn go(key: &'static str, length: Length) -> Self {
        Self::start(key, length, Tool::go(key, may_download(length)))
    }

    /// `node`, `asyncio` or `threads`: ours from Node and Python.
    pub(crate) fn agent(key: &'static str, length: Length) -> Self {
        Self::start(key, length, Tool::agent(key))
    }

    /// A side that is not here.
    pub(crate) fn missing(key: &'static str, length: Length, why: String) -> Self {
        Self { key, program: Err(why), servers: Servers::Nothing, length }
    }

    fn start(key: &'static str, length: Length, tool: Result<Tool, String>) -> Self {
        let program = match tool {
            Ok(tool) => tool.start().map_err(|why| broken(length, key, &why)),
            Err(why) => Err(why),
        };
        if let Err(why) = &program {
            println!("{key}: {why}");
        }
        Self { key, program, servers: Servers::Nothing, length }
    }

    /// The library and its version; only its name where it does not run.
    pub(crate) fn name(&self) -> &str {
        self.program.as_ref().map_or(self.key, |program| program.name())
    }

    pub(crate) fn program(&mut self) -> Result<&mut Program, String> {
        self.program.as_mut().map_err(|why| why.clone())
    }

    pub(crate) fn connect(&mut self, servers: &Servers) {
        let request = format!("connect {}", servers.urls().join(" "));
        // They go on until nobody is connected to them.
        let _before = mem::replace(&mut self.servers, servers.clone());
        let _ = self.turn(&request);
    }

    /// What cannot answer once is not asked again.
    pub(crate) fn turn(&mut self, request: &str) -> Result<Turn, String> {
        let before = self.servers.used();
        match self.program()?.ask(request) {
            Ok(answer) => Ok(Turn { answer, servers: self.servers.used().saturating_sub(before) }),
            Err(why) => {
                let why = broken(self.length, self.key, &why);
                self.program = Err(why.clone());
                Err(why)
            }
        }
    }
}

pub(crate) fn may_download(length: Length) -> bool {
    tools::may_download(length == Length::Long)
}

/// A program that is here and does not work. A short run is there to show that it does.
fn broken(length: Length, key: &str, why: &str) -> String {
    assert!(length == Length::Long, "{key}: {why}");
    let why = format!("broke off: {}", why.replace('|', "/"));
    println!("{key}: {why}");
    why
}

/// All sides do the same, in turns, so often; a side for which `is_enough` has no more turns.
pub(crate) fn in_turns(
    sides: &mut [Side],
    request: &str,
    rounds: usize,
    is_enough: impl Fn(&Turn) -> bool,
) -> Vec<Outcome> {
    let mut turns: Vec<Result<Vec<Turn>, String>> = sides.iter().map(|_| Ok(Vec::new())).collect();
    for round in 0..rounds {
        for at in 0..sides.len() {
            // Everybody comes behind everybody else.
            let at = if round % 2 == 0 { at } else { sides.len() - 1 - at };
            let Ok(had) = &mut turns[at] else { continue };
            if had.last().is_some_and(&is_enough) {
                continue;
            }
            match sides[at].turn(request) {
                Ok(turn) => had.push(turn),
                Err(why) => turns[at] = Err(why),
            }
            // The next one has the machine for itself.
            if let Ok(program) = &sides[at].program {
                program.rest();
            }
        }
    }
    turns.into_iter().map(|turns| turns.map(|turns| Figures::median(&turns))).collect()
}

impl Figures {
    fn median(turns: &[Turn]) -> Self {
        let median = |of: &dyn Fn(&Turn) -> f64| {
            let mut values: Vec<f64> = turns.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
        };
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let each = |turn: &Turn, time| micros(time) / f64::from(turn.answer.count.max(1));
        Self {
            rate: median(&|turn| f64::from(turn.answer.count) / turn.answer.elapsed.as_secs_f64()),
            p50: median(&|turn| micros(turn.answer.p50)),
            p99: median(&|turn| micros(turn.answer.p99)),
            client: median(&|turn| each(turn, turn.answer.processor)),
            servers: median(&|turn| each(turn, turn.servers)),
            seconds: median(&|turn| turn.answer.elapsed.as_secs_f64()),
            count: median(&|turn| f64::from(turn.answer.count)),
            failed: turns.iter().map(|turn| turn.answer.failed).sum(),
        }
    }
}
