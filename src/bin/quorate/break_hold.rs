//! `quorate break`: ends holds by force.

use std::{
    fmt::Display,
    io::{self, BufRead, IsTerminal, Write},
};

use clap::{Args, builder::NonEmptyStringValueParser};
use quorate::{HoldId, LockKind, Quorate};

use crate::{
    console::{Code, Console, Failure},
    lock,
    screen::quoted,
    setup::VoterOptions,
};

const MEANS: &str = "\
The holder learns of it at its next renewal, within a third of its lease; until then it goes on. \
What the lock protects has two at work meanwhile, unless it checks the tokens.";

/// End a hold by force
///
/// Shows who has the lock, asks, and ends exactly the holds that were shown. Whoever gets the lock
/// meanwhile is left alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate break invoice:42
  quorate break invoice:42 --hold web-1.4711@5f0ad4b396b14a3c8c2f:1000000000042")]
pub(crate) struct BreakOptions {
    /// The name of the lock: of the mutex, the read/write lock, the semaphore, the election and the
    /// job
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// End this hold and no other, without a question
    #[arg(long, value_name = "ID", conflicts_with = "yes")]
    hold: Option<HoldId>,

    #[command(flatten)]
    voters: VoterOptions,
}

pub(crate) async fn run(options: BreakOptions, console: &Console) -> Result<Code, Failure> {
    let quorum = options.voters.setup()?.connect().await?;
    let code = options.end(&quorum, console).await;
    let _ = quorum.close().await;
    code
}

impl BreakOptions {
    async fn end(&self, quorum: &Quorate, console: &Console) -> Result<Code, Failure> {
        // By the ids that are shown, and never all of the lock: while the user reads, another
        // client may get it (`the_holder_that_was_shown_is_ended_and_learns_of_it`).
        let holds = lock::find(quorum, &self.name).await?;
        if let Some(wanted) = &self.hold {
            let Some(hold) = holds.iter().find(|found| found.held.hold == *wanted) else {
                // No voter named it a moment ago. The library decides, and its error has the answer
                // of each voter.
                quorum.admin().end(LockKind::Mutex, &self.name, wanted).await?;
                say(format_args!("ended: {}", quoted(wanted.as_str())));
                return Ok(Code::Fine);
            };
            say(format_args!("ended: {}", hold.end(quorum, &self.name).await?));
            say(MEANS);
            return Ok(Code::Fine);
        }
        let name = quoted(&self.name);
        if holds.is_empty() {
            say(format_args!("nobody holds `{name}`"));
            return Ok(Code::Fine);
        }
        for hold in &holds {
            say(format_args!("`{name}` is {hold}"));
        }
        say(MEANS);
        if !self.yes && !confirm(holds.len())? {
            return Ok(Code::Warnings);
        }
        for hold in holds {
            match hold.end(quorum, &self.name).await {
                Ok(ended) => say(format_args!("ended: {ended}")),
                // No failure: the user wanted it to end.
                Err(error) if error.is_not_holding() => {
                    console.warn(format_args!("had ended by itself: {}", hold.whose()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Code::Fine)
    }
}

/// Asks on the terminal.
fn confirm(holds: usize) -> Result<bool, Failure> {
    let (stdin, mut stderr) = (io::stdin(), io::stderr());
    // A script that has no terminal would wait for ever, or take the next line of a file for a yes.
    if !stdin.is_terminal() {
        let what = "nobody can be asked, as standard input is no terminal: use --yes, or --hold ID";
        return Err(Failure::new(Code::Usage, what));
    }
    let what = if holds == 1 { "it".to_owned() } else { format!("all {holds}") };
    let mut answer = String::new();
    write!(stderr, "End {what} by force? [y/N] ")
        .and_then(|()| stderr.flush())
        .and_then(|()| stdin.lock().read_line(&mut answer))
        .map_err(Failure::system("the terminal"))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn say(what: impl Display) {
    // The hold is ended, whether or not somebody reads this. `println!` would panic.
    let _ = writeln!(io::stdout(), "{what}");
}
