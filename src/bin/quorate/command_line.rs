//! What the program understands: help, completions and the man page are made from it.

use clap::{ArgAction, Parser};

use crate::{
    bench::BenchOptions,
    break_hold::BreakOptions,
    completions::{CompletionsOptions, ManOptions},
    doctor::DoctorOptions,
    exit,
    leader::LeaderOptions,
    run::{LeadOptions, RunOptions},
    status::StatusOptions,
    try_out::TryOptions,
};

/// Distributed locks held by a quorum of Redis or Valkey servers
#[derive(Debug, Parser)]
#[command(
    name = "quorate",
    bin_name = "quorate",
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    after_long_help = exit::TABLE,
)]
pub(crate) struct CommandLine {
    /// Print errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Show more: first all columns and lines of `status` and `doctor`, then the library's log
    ///
    /// `status` and `doctor` show the log on standard error from the second -v on, other commands
    /// from the first. One more -v shows all of it.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) subcommand: Subcommand,
}

impl CommandLine {
    /// How much of the log is to be shown.
    pub(crate) fn log(&self) -> u8 {
        let has_more = matches!(self.subcommand, Subcommand::Status(_) | Subcommand::Doctor(_));
        self.verbose.saturating_sub(u8::from(has_more))
    }
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Subcommand {
    Run(RunOptions),
    Lead(LeadOptions),
    Leader(LeaderOptions),
    Status(StatusOptions),
    Doctor(DoctorOptions),
    Break(BreakOptions),
    Bench(BenchOptions),
    Try(TryOptions),
    Completions(CompletionsOptions),
    Man(ManOptions),
}
