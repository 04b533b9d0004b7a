//! `quorate status`: how the voters are, and what they say about locks.

mod locks;
mod voters;

use std::{num::NonZeroUsize, process::ExitCode, time::Duration};

use clap::{Args, builder::NonEmptyStringValueParser};
use quorate::{FoundLocks, Quorate, Survey};
use serde_json::{Value, json};

use self::locks::LockSeen;
use crate::{
    connection::VoterOptions,
    durations,
    exit::{Code, Failure},
    frame::Frame,
    holds::KINDS,
    settle::settle,
    watch::{self, Picture},
};

/// The shape of what `--json` writes. A later one may have further fields under the same number.
const VERSION: u32 = 1;

/// Show the voters and the locks, or what each voter says about some locks
///
/// With names, each voter's answer about the mutex, the read/write lock, the semaphore and the
/// election of that name: who holds it, for how much longer, with which token, and who waits.
/// Without, how each server is set up and which locks are held or waited for; with -v in all
/// columns. To look for locks, the user of the servers needs the right +scan.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate status
  quorate status --watch invoice:42
  quorate status --match 'invoice:*' --limit 1000
  quorate status --json invoice:42 | jq -r '.locks[].holders[].hold'")]
pub(crate) struct StatusOptions {
    /// Names of locks
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    names: Vec<String>,

    /// Show it again and again, in place, until Ctrl-C
    #[arg(short, long)]
    watch: bool,

    /// The time between two looks of --watch
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "watch")]
    #[arg(value_parser = durations::parse_interval)]
    interval: Duration,

    /// Write JSON: one document, or with --watch one in each line
    #[arg(long)]
    json: bool,

    /// Look for locks with names like this: * is any text, ? any sign
    #[arg(long = "match", value_name = "PATTERN", default_value = "*", conflicts_with = "names")]
    pattern: String,

    /// Look for so many locks at most
    #[arg(long, value_name = "N", default_value = "100", conflicts_with = "names")]
    limit: NonZeroUsize,

    #[command(flatten)]
    voters: VoterOptions,
}

pub(crate) async fn run(options: StatusOptions, shows_all: bool) -> Result<ExitCode, Failure> {
    let quorum = options.voters.setup()?.connect().await?;
    let shown = options.show(&quorum, shows_all).await;
    quorum.close().await;
    shown.map(ExitCode::from)
}

/// All that is shown at one moment.
struct StatusSeen {
    /// Nothing where locks were named.
    voters: Option<(Survey, FoundLocks)>,
    locks: Vec<LockSeen>,
}

impl StatusOptions {
    async fn show(&self, quorum: &Quorate, shows_all: bool) -> Result<Code, Failure> {
        let mut code = Code::Fine;
        let mut look = async || {
            let seen = self.look(quorum).await;
            code = seen.code();
            Ok(if self.json {
                Picture::Json(seen.json())
            } else {
                Picture::Frame(seen.frame(shows_all))
            })
        };
        if self.watch {
            watch::repeat(self.interval, look).await?;
            return Ok(Code::Fine);
        }
        settle(quorum).await;
        watch::print(&look().await?)?;
        Ok(code)
    }

    async fn look(&self, quorum: &Quorate) -> StatusSeen {
        if !self.names.is_empty() {
            let of_name = |name: &String| KINDS.map(|kind| (name.clone(), kind));
            let locks = locks::look(quorum, self.names.iter().flat_map(of_name)).await;
            return StatusSeen { voters: None, locks };
        }
        let admin = quorum.admin();
        let found = admin.find(&self.pattern, self.limit.get());
        let (survey, found) = tokio::join!(quorum.survey(), found);
        let wanted = found.locks.iter().map(|lock| (lock.name.clone(), lock.kind));
        let locks = locks::look(quorum, wanted).await;
        StatusSeen { voters: Some((survey, found)), locks }
    }
}

impl StatusSeen {
    fn code(&self) -> Code {
        let has_quorum =
            self.voters.as_ref().is_none_or(|(survey, _)| survey.status().has_quorum());
        let is_fine = has_quorum && self.locks.iter().all(|lock| lock.seen.is_ok());
        if is_fine { Code::Fine } else { Code::Unavailable }
    }

    fn json(&self) -> Value {
        let mut json = json!({
            "version": VERSION,
            "locks": self.locks.iter().map(LockSeen::json).collect::<Vec<_>>(),
        });
        if let Some((survey, found)) = &self.voters {
            let status = survey.status();
            json["status"] = json!({
                "has_quorum": status.has_quorum(),
                "counting": status.counting(),
                "needed": status.needed(),
            });
            json["survey"] = json!(survey);
            json["found"] = json!({
                "is_complete": found.is_complete,
                "missing": json!(found)["missing"],
            });
        }
        json
    }

    fn frame(&self, shows_all: bool) -> Frame {
        let mut frame = Frame::default();
        if let Some((survey, found)) = &self.voters {
            voters::show(&mut frame, survey, shows_all);
            frame.blank();
            locks::show_found(&mut frame, found, &self.locks, shows_all);
            return frame;
        }
        for (place, of_name) in self.locks.chunks(KINDS.len()).enumerate() {
            if place > 0 {
                frame.blank();
            }
            locks::show(&mut frame, of_name);
        }
        frame
    }
}
