//! `quorate leader`: who leads.

use std::process::ExitCode;

use clap::{Args, builder::NonEmptyStringValueParser};

use crate::{
    connection::VoterOptions,
    exit::{Code, Failure},
    watch,
};

/// Print what the leader of an election says of itself
///
/// If nobody leads, it prints nothing and ends with 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate leader scheduler
  curl \"http://$(quorate leader scheduler)/queue\"")]
pub(crate) struct LeaderOptions {
    /// The name of the election
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,

    #[command(flatten)]
    voters: VoterOptions,
}

pub(crate) async fn run(options: LeaderOptions) -> Result<ExitCode, Failure> {
    let quorum = options.voters.setup()?.connect().await?;
    let leader = quorum.election(&options.name).leader().await;
    quorum.close().await;
    let Some(leader) = leader? else { return Ok(Code::Warnings.into()) };
    watch::print_bytes(&[leader.value(), b"\n"].concat())?;
    Ok(Code::Fine.into())
}
