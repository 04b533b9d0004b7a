//! Many locks that one client keeps.

use std::{thread::sleep, time::Duration};

use crate::{program::Program, tools::Tool};

/// How many locks are kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub count: u32,
    /// How long they are kept before anything is measured: for longer than a first renewal takes.
    pub settle: Duration,
    /// How long processor time is measured.
    pub window: Duration,
}

/// What it costs a client to keep them.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    pub seconds_to_take: f64,
    /// Processor time of the client in the window, in percent of one core.
    pub percent: f64,
    /// Memory of the client for each lock. Of a JVM it is what its heap has after a collection.
    pub bytes_each: f64,
    /// Locks that could not be taken.
    pub failed: u32,
    /// Locks that were taken, and that no majority of the servers has at the end of the window.
    pub lost: u32,
}

/// Takes locks by Redisson and keeps them, which its watchdog does: by its lock on one server, by
/// its RedLock on several. The lease is 30 seconds, as by default. `at_window` is called as the
/// window begins and as it ends, for what the servers use.
///
/// It blocks, for the time of the plan and a few seconds. The JVM is a new one.
///
/// # Errors
///
/// What is not installed here, or why it does not run.
///
/// # Examples
///
/// ```ignore
/// let plan = Plan { count: 10_000, settle: seconds(15), window: seconds(30) };
/// let kept = redisson(&urls, plan, false, || before_and_after.push(used_by(&servers)))?;
/// println!("{:.1} % of a core", kept.percent);
/// ```
pub fn redisson(
    urls: &[String],
    plan: Plan,
    download: bool,
    at_window: impl FnMut(),
) -> Result<Kept, String> {
    let mut program = Tool::redisson(download)?.start()?;
    keep(&mut program, urls, plan, at_window)
}

/// As [`redisson`], by a program that runs already.
///
/// # Errors
///
/// Why it could not.
pub fn keep(
    program: &mut Program,
    urls: &[String],
    plan: Plan,
    mut at_window: impl FnMut(),
) -> Result<Kept, String> {
    program.ask(&format!("connect {}", urls.join(" ")))?;
    // What everything loads and allocates at first is not measured.
    let before = program.ask("take 1")?.memory;
    let taken = program.ask(&format!("take {}", plan.count))?;
    sleep(plan.settle);
    at_window();
    let kept = program.ask(&format!("keep {}", plan.window.as_millis()))?;
    at_window();
    let counted = program.ask("count")?;
    #[expect(clippy::cast_precision_loss, reason = "it is not that much")]
    let bytes = kept.memory.saturating_sub(before) as f64;
    Ok(Kept {
        seconds_to_take: taken.elapsed.as_secs_f64(),
        percent: kept.processor.as_secs_f64() / kept.elapsed.as_secs_f64() * 100.0,
        bytes_each: bytes / f64::from(plan.count),
        failed: taken.failed,
        lost: counted.failed.saturating_sub(taken.failed),
    })
}
