//! `quorate copy-once`: copies to the new voters which firings are done.

use clap::Args;

use crate::{
    console::{Code, Failure},
    screen::{self, counted},
    setup::VoterOptions,
};

/// Copy which firings of jobs are done to the new voters
///
/// In a change of the voters, when all clients have both sets, and with their settings. Then no
/// machine that comes late does a firing again. `doctor` says whether it is needed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  QUORATE_REPLACED_VOTERS=redis://10.0.0.9 quorate copy-once

The user of the servers needs the right +scan.")]
pub(crate) struct CopyOnceOptions {
    #[command(flatten)]
    voters: VoterOptions,
}

pub(crate) async fn run(options: CopyOnceOptions) -> Result<Code, Failure> {
    // A client that takes no lock: copies are written without a vote, as what one voter has is
    // done, whoever has the lock.
    let quorum = options.voters.setup()?.connect().await?;
    let copied = quorum.admin().copy_once().await;
    let _ = quorum.close().await;
    let jobs = counted(copied?, "job");
    screen::print_bytes(format!("{jobs}: a majority knows which firing is done\n").as_bytes())?;
    Ok(Code::Fine)
}
