//! Runs the simulation of the copy, and reads what it says.

use std::{fmt, path::Path, process::Stdio, time::Duration};

use tokio::{process::Command, time::timeout};

use crate::{copy::ALIVE, plant::Plant};

/// More than anybody wants to wait for: a plant may make the library go round in circles.
const LONGEST: Duration = Duration::from_mins(2);

/// What came of a hunt.
#[derive(Debug)]
pub(crate) enum Catch {
    /// The first law that was broken, and the seed.
    Law { law: String, seed: String },
    /// Every schedule was kept by all laws.
    Nothing,
    /// It neither passed nor named a law.
    Trouble(String),
}

/// Runs so many schedules with this plant alive; without one, of the copy as it is.
pub(crate) async fn hunt(program: &Path, plant: Option<&Plant>, schedules: u64) -> Catch {
    let mut sweep = Command::new(program);
    sweep.args(["--exact", "sweep::sweep", "--nocapture"]);
    sweep.env("QUORATE_SIM_SEEDS", schedules.to_string());
    for name in ["QUORATE_SIM_SEED", "QUORATE_SIM_FIRST", ALIVE] {
        sweep.env_remove(name);
    }
    if let Some(plant) = plant {
        sweep.env(ALIVE, plant.name);
    }
    sweep.stdin(Stdio::null()).kill_on_drop(true);
    let Ok(output) = timeout(LONGEST, sweep.output()).await else {
        return Catch::Trouble(format!("it has no end within {LONGEST:?}"));
    };
    let output = output.expect("the simulation can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        let ran = String::from_utf8_lossy(&output.stdout);
        let all = ran.contains(&format!("{schedules} schedules"));
        return if all { Catch::Nothing } else { Catch::Trouble(format!("it ran nothing: {ran}")) };
    }
    read(&said).unwrap_or_else(|| Catch::Trouble(said.into_owned()))
}

/// Finds the law and the seed in what a sweep says that fails.
fn read(said: &str) -> Option<Catch> {
    let (before, after) = said.split_once(" did not hold at ")?;
    let law = before.split_whitespace().next_back()?.to_owned();
    let (_, after) = after.split_once("QUORATE_SIM_SEED=")?;
    let seed = after.split_whitespace().next()?.to_owned();
    Some(Catch::Law { law, seed })
}

impl fmt::Display for Catch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Law { law, seed } => write!(f, "{law} at seed {seed}"),
            Self::Nothing => f.write_str("nothing"),
            Self::Trouble(what) => f.write_str(what),
        }
    }
}
