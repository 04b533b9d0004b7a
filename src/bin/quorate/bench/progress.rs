//! How far the measurement is: one line, on a terminal only.

use std::{
    io::{self, Write},
    time::Duration,
};

use tokio::time;

use super::load::LoadTally;
use crate::{
    clock,
    console::Console,
    frame::{Short, share_of},
};

const WIDTH: usize = 24;
const INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct Progress {
    time: Duration,
    started: Duration,
    is_shown: bool,
}

impl Progress {
    pub(super) fn new(time: Duration, console: &Console) -> Self {
        Self { time, started: clock::now(), is_shown: console.is_watched() }
    }

    /// Never ends.
    pub(super) async fn show(&mut self, tally: &LoadTally) {
        let mut interval = time::interval(INTERVAL);
        loop {
            interval.tick().await;
            if self.is_shown {
                let passed = clock::now().saturating_sub(self.started);
                write(&line(passed, self.time, tally.cycles()));
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            write("");
        }
    }
}

fn line(passed: Duration, time: Duration, cycles: u64) -> String {
    let passed = passed.min(time);
    let done = share_of(passed, time, WIDTH);
    let rest = WIDTH - done;
    let seconds = passed.as_secs();
    format!("[{:█<done$}{:rest$}] {seconds}s of {}  {cycles} locks", "", "", Short(time))
}

/// In place of the line that stands there. Where nobody reads it, nothing is to be done.
fn write(line: &str) {
    let mut stderr = io::stderr();
    let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
}
