//! Runs the sweep of this program with a mutant alive, and reads what it says.

use std::{env, path::PathBuf, process::Stdio, time::Duration};

use tokio::{process::Command, time::timeout};

use super::list::Mutant;

/// Which mutant is alive.
pub(crate) const ALIVE: &str = "QUORATE_MUTANT";

/// The arguments by which this program runs the sweep alone.
pub(crate) const SWEEP: [&str; 3] = ["--exact", "sim::sweep::sweep", "--nocapture"];

/// More than anybody wants to wait for: a mutant may make the library go round in circles.
const LONGEST: Duration = Duration::from_mins(5);

/// The first schedule in which a law was broken.
#[derive(Debug)]
pub(crate) struct Catch {
    pub(crate) seed: String,
    /// The laws that were broken, the first one last.
    pub(crate) laws: Vec<String>,
}

/// What a hunt comes to in which every schedule was kept by all laws.
pub(crate) const NOTHING: &str = "nothing";

/// This program.
pub(crate) fn program() -> PathBuf {
    env::current_exe().expect("this program has a path")
}

/// Runs so many schedules with this mutant alive; without one, of the library as it is. An error is
/// what was said where no law was broken.
pub(crate) async fn hunt(mutant: Option<&Mutant>, schedules: u64) -> Result<Catch, String> {
    let mut sweep = Command::new(program());
    sweep.args(SWEEP);
    sweep.env("QUORATE_SIM_SEEDS", schedules.to_string());
    for name in ["QUORATE_SIM_SEED", "QUORATE_SIM_FIRST", ALIVE] {
        sweep.env_remove(name);
    }
    if let Some(mutant) = mutant {
        sweep.env(ALIVE, mutant.name).env("QUORATE_SIM_FIRST", mutant.from.to_string());
    }
    sweep.stdin(Stdio::null()).kill_on_drop(true);
    let Ok(output) = timeout(LONGEST, sweep.output()).await else {
        return Err(format!("no law was broken in {LONGEST:?}: begin the hunt at a later seed"));
    };
    let output = output.expect("the simulation can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    let traced = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        let all = traced.contains(&format!("{schedules} schedules"));
        return Err(if all { NOTHING.into() } else { format!("it ran: {traced}") });
    }
    read(&said, &traced).ok_or_else(|| said.into_owned())
}

/// Finds the law and the seed in what a sweep says that fails, and further laws in its trace.
fn read(said: &str, traced: &str) -> Option<Catch> {
    let (before, after) = said.split_once(" did not hold at ")?;
    let law = before.split_whitespace().next_back()?.to_owned();
    let (_, after) = after.split_once("QUORATE_SIM_SEED=")?;
    let seed = after.split_whitespace().next()?.to_owned();
    let broken = traced.lines().filter(|line| !line.contains("outside the promise"));
    let further = broken.filter_map(|line| {
        let (_, law) = line.split_once(" ms  LAW ")?;
        Some(law.split_once(':')?.0.trim().to_owned())
    });
    Some(Catch { seed, laws: further.chain([law.clone()]).collect() })
}
