//! `quorate bench`: how fast these voters give locks to this machine.

mod load;
mod progress;
mod results;

use std::{num::NonZeroUsize, process::ExitCode, sync::Arc, time::Duration};

use clap::Args;
use quorate::{Builder, Quorate};
use tokio::time;

use self::{
    load::{Load, LoadTally},
    progress::Progress,
    results::Results,
};
use crate::{
    clock,
    connection::VoterOptions,
    console::Console,
    durations,
    exit::{Code, Failure},
    interrupt::Interrupts,
    lock::KindOptions,
    settle::settle,
    watch::{self, Picture},
};

/// For so long the voters remember the tokens of its locks: then nothing of it is left there.
const MEMORY: Duration = Duration::from_secs(1);

/// Measure how fast locks are taken and released
///
/// Takes and releases locks on all cores of this machine, and shows for how long it waited. The
/// locks are its own, and nothing of them is left behind. It loads the servers: think of who else
/// uses them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate bench
  quorate bench --time 1m --tasks 64
  quorate bench --locks 1 --fair --hold 5ms      # all want one lock, and take turns
  quorate bench --json | jq .cycles_per_second")]
pub(crate) struct BenchOptions {
    /// For how long
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = durations::parse)]
    time: Duration,

    /// How many tasks lock at the same time
    #[arg(long, value_name = "N", default_value = "16")]
    tasks: NonZeroUsize,

    /// How many locks the tasks share [default: each has its own]
    #[arg(long, value_name = "N")]
    locks: Option<NonZeroUsize>,

    /// For how long each lock is held
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = durations::parse)]
    hold: Duration,

    #[command(flatten)]
    kind: KindOptions,

    /// Write JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    voters: VoterOptions,
}

pub(crate) async fn run(options: BenchOptions, console: &Console) -> Result<ExitCode, Failure> {
    let builder: Builder = options.voters.setup()?.builder()?;
    let quorum = builder.fence_memory(MEMORY).connect().await?;
    let measured = options.measure(&quorum, console).await;
    quorum.close().await;
    let (results, failure) = measured?;
    let shown =
        if options.json { Picture::Json(results.json()) } else { Picture::Frame(results.frame()) };
    watch::print(&shown)?;
    match failure {
        Some(failure) => Err(failure),
        None => Ok(Code::Fine.into()),
    }
}

impl BenchOptions {
    /// What was measured, and the last of the errors if there were any.
    async fn measure(
        &self,
        quorum: &Quorate,
        console: &Console,
    ) -> Result<(Results, Option<Failure>), Failure> {
        let mut interrupts = Interrupts::listen()?;
        settle(quorum).await;
        let survey = quorum.survey().await;
        let load = Load {
            kind: self.kind.kind(),
            tasks: self.tasks.get(),
            locks: self.locks.unwrap_or(self.tasks).get(),
            hold: self.hold,
        };
        let tally = Arc::new(LoadTally::new());
        let running = load.start(quorum, &tally);
        let started = clock::now();
        let mut progress = Progress::new(self.time, console);
        tokio::select! {
            () = time::sleep(self.time) => {}
            () = interrupts.next() => {}
            () = progress.show(&tally) => {}
        }
        let took = clock::now().saturating_sub(started);
        drop(progress);
        running.stop().await;
        let round_trips = survey.voters.iter().map(|voter| voter.round_trip).collect();
        let tally = Arc::into_inner(tally).expect("all tasks have ended");
        let (measured, failure) = tally.end();
        Ok((Results { load, took, round_trips, measured }, failure.map(Failure::from)))
    }
}
