//! `quorate demo`: the story of a lock on five voters, told as it happens.

mod scenes;
mod story;

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
    time::Duration,
};

use clap::Args;

use self::story::Story;
use crate::{
    durations,
    exit::{Code, Failure},
    watch::{self, Picture},
};

/// Between two looks at the voters.
const INTERVAL: Duration = Duration::from_millis(50);
const PACE: Duration = Duration::from_secs(3);

/// Watch a lock on five voters: no server is needed
///
/// Five voters inside this process vote, die, forget and fall silent, while three clients want one
/// lock. Nothing of it is played: the voters run the scripts that servers run, and the program
/// fails where something turns out otherwise than told.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate demo
  quorate demo --pace 6s      # more time to read
  quorate demo | less         # plain lines")]
pub(crate) struct DemoOptions {
    /// The time to read each sentence [default: 3s on a terminal, none elsewhere]
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    pace: Option<Duration>,
}

pub(crate) async fn run(options: DemoOptions) -> Result<ExitCode, Failure> {
    let is_drawn = io::stdout().is_terminal();
    let pace = options.pace.unwrap_or(if is_drawn { PACE } else { Duration::ZERO });
    let story = Story::start(pace, is_drawn).await?;
    if is_drawn {
        tokio::select! {
            told = scenes::play(&story) => told?,
            shown = watch::repeat(INTERVAL, async || Ok(Picture::Frame(story.frame().await))) => {
                shown?;
            }
        }
    } else {
        scenes::play(&story).await?;
    }
    Ok(Code::Fine.into())
}
