//! Runs the simulation of the copy, and reads what it says.

use std::{fmt, path::Path, process::Stdio, time::Duration};

use tokio::{process::Command, time::timeout};

use crate::{copy::ALIVE, plant::Plant};

/// More than anybody wants to wait for: a plant may make the library go round in circles.
const LONGEST: Duration = Duration::from_mins(5);

/// Where to begin to look for those that the first few hundred schedules do not catch. What a seed
/// means changes with the simulation: where a number is out of date the hunt only takes longer.
const FAR: [(&str, u64); 7] = [
    ("ticket_is_never_fixed", 162),
    ("shared_renewal_ignores_the_mark", 328),
    ("quarantined_vote_counts", 369),
    ("restart_not_noticed", 369),
    ("renew_never_grants_again", 793),
    ("force_ends_anybodys", 975),
    ("clock_jump_not_noticed", 995),
];

/// What came of a hunt.
#[derive(Debug)]
pub(crate) enum Catch {
    /// The first law that was broken, the seed, and all laws that were broken with this seed.
    Law { law: String, seed: String, all: Vec<String> },
    /// Every schedule was kept by all laws.
    Nothing,
    /// It neither passed nor named a law.
    Trouble(String),
}

/// Runs so many schedules with this plant alive; without one, of the copy as it is.
pub(crate) async fn hunt(program: &Path, plant: Option<&Plant>, schedules: u64) -> Catch {
    let mut sweep = Command::new(program);
    sweep.args(["--exact", "sweep::sweep", "--nocapture"]);
    sweep.env("QUORATE_SIM_SEEDS", schedules.to_string()).env("QUORATE_SIM_SHRINK", "0");
    for name in ["QUORATE_SIM_SEED", "QUORATE_SIM_FIRST", ALIVE] {
        sweep.env_remove(name);
    }
    if let Some(plant) = plant {
        sweep.env(ALIVE, plant.name);
        sweep.env("QUORATE_SIM_FIRST", first(plant).to_string());
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
    let traced = String::from_utf8_lossy(&output.stdout);
    read(&said, &traced).unwrap_or_else(|| Catch::Trouble(said.into_owned()))
}

/// The first seed of the hunt for this plant.
pub(crate) fn first(plant: &Plant) -> u64 {
    FAR.iter().find(|(name, _)| *name == plant.name).map_or(0, |(_, seed)| *seed)
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
    let all = further.chain([law.clone()]).collect();
    Some(Catch::Law { law, seed, all })
}

impl fmt::Display for Catch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Law { law, seed, .. } => write!(f, "{law} at seed {seed}"),
            Self::Nothing => f.write_str("nothing"),
            Self::Trouble(what) => f.write_str(what),
        }
    }
}
