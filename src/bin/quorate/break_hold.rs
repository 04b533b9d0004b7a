//! `quorate break`: ends holds by force.

use std::{
    fmt::Display,
    io::{self, BufRead, IsTerminal, Write},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use quorate::{Error, HoldId, Quorate};

use crate::{
    connection::VoterOptions,
    console::Console,
    exit::{Code, Failure},
    frame::{Short, quoted},
    lock::any_semaphore,
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
  quorate break invoice:42 --hold 5f0ad4b3-96b1-4a3c-8c2f-1f5d2f1c7a10:1000000000042")]
pub(crate) struct BreakOptions {
    /// The name of the lock: of the mutex, the read/write lock, the semaphore and the election
    #[arg(value_name = "NAME")]
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

pub(crate) async fn run(options: BreakOptions, console: &Console) -> Result<ExitCode, Failure> {
    let quorum = options.voters.setup()?.connect().await?;
    let code = options.end(&quorum, console).await;
    quorum.close().await;
    code.map(ExitCode::from)
}

impl BreakOptions {
    async fn end(&self, quorum: &Quorate, console: &Console) -> Result<Code, Failure> {
        let holds = find(quorum, &self.name).await?;
        if let Some(wanted) = &self.hold {
            let Some(hold) = holds.iter().find(|held| held.hold == *wanted) else {
                // The library says what each voter says.
                quorum.mutex(&self.name).force_release_hold(wanted).await?;
                return Ok(Code::Fine);
            };
            hold.end(quorum, &self.name).await?;
            say(format_args!("ended: {}", hold.shown()));
            say(MEANS);
            return Ok(Code::Fine);
        }
        let name = quoted(&self.name);
        if holds.is_empty() {
            say(format_args!("nobody holds `{name}`"));
            return Ok(Code::Fine);
        }
        for hold in &holds {
            say(format_args!("`{name}` is {}", hold.shown()));
        }
        say(MEANS);
        if !self.yes && !confirm(holds.len())? {
            return Ok(Code::Warnings);
        }
        for hold in holds {
            match hold.end(quorum, &self.name).await {
                Ok(()) => say(format_args!("ended: {}", hold.shown())),
                Err(error) if error.is_not_holding() => {
                    console.warn(format_args!("had ended by itself: {}", hold.shown()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Code::Fine)
    }
}

/// Of which lock of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Mutex,
    Write,
    Read,
    Permits,
    Lead,
}

/// A hold that has votes.
#[derive(Debug)]
struct FoundHold {
    held: Held,
    hold: HoldId,
    client_name: Option<String>,
    /// The longest that is left on any voter; none where the record has no expiry.
    left: Option<Duration>,
    votes: usize,
    voters: usize,
}

impl FoundHold {
    async fn end(&self, quorum: &Quorate, name: &str) -> Result<(), Error> {
        match self.held {
            Held::Mutex => quorum.mutex(name).force_release_hold(&self.hold).await,
            Held::Write | Held::Read => quorum.rw_lock(name).force_release_hold(&self.hold).await,
            Held::Permits => any_semaphore(quorum, name).force_release_hold(&self.hold).await,
            Held::Lead => quorum.election(name).force_release_hold(&self.hold).await,
        }
    }

    fn shown(&self) -> String {
        let Self { held, hold, client_name, left, votes, voters } = self;
        let held = match held {
            Held::Mutex => "held",
            Held::Write => "written",
            Held::Read => "read",
            Held::Permits => "held, with permits,",
            Held::Lead => "led",
        };
        let client = client_name.as_ref().map(|name| format!(" of {}", quoted(name)));
        let left = left.map_or_else(
            || "without an end".to_owned(),
            |left| format!("for {} more unless renewed", Short(left)),
        );
        format!(
            "{held} by {}{}, with {votes} of {voters} votes, {left}",
            quoted(hold.as_str()),
            client.unwrap_or_default()
        )
    }
}

/// All holds of all locks of the name, also of a minority of the voters.
async fn find(quorum: &Quorate, name: &str) -> Result<Vec<FoundHold>, Error> {
    let (mutex, rw_lock) = (quorum.mutex(name), quorum.rw_lock(name));
    let (semaphore, election) = (any_semaphore(quorum, name), quorum.election(name));
    let (in_mutex, in_rw_lock, in_semaphore, in_election) = tokio::try_join!(
        mutex.inspect(),
        rw_lock.inspect(),
        semaphore.inspect(),
        election.inspect()
    )?;
    let mut holds: Vec<FoundHold> = Vec::new();
    let voters = in_mutex.voters.len();
    let mut note = |held, hold: &HoldId, client_name: &Option<String>, left: Option<Duration>| {
        let longer = |one: Option<Duration>, other: Option<Duration>| Some(one?.max(other?));
        match holds.iter_mut().find(|found| found.held == held && found.hold == *hold) {
            Some(found) => {
                (found.votes, found.left) = (found.votes + 1, longer(found.left, left));
            }
            None => holds.push(FoundHold {
                held,
                hold: hold.clone(),
                client_name: client_name.clone(),
                left,
                votes: 1,
                voters,
            }),
        }
    };
    for (held, seen) in [(Held::Mutex, &in_mutex), (Held::Lead, &in_election)] {
        for holder in seen.voters.iter().filter_map(|view| view.holder.as_ref().ok()?.as_ref()) {
            note(held, &holder.hold, &holder.client_name, holder.ttl);
        }
    }
    for state in in_rw_lock.voters.iter().filter_map(|view| view.state.as_ref().ok()) {
        if let Some(writer) = &state.writer {
            note(Held::Write, &writer.hold, &writer.client_name, writer.ttl);
        }
        for reader in &state.readers {
            note(Held::Read, &reader.hold, &reader.client_name, Some(reader.ttl));
        }
    }
    for state in in_semaphore.voters.iter().filter_map(|view| view.state.as_ref().ok()) {
        for held in &state.holders {
            note(Held::Permits, &held.hold, &held.client_name, Some(held.ttl));
        }
    }
    Ok(holds)
}

/// Asks on the terminal.
fn confirm(holds: usize) -> Result<bool, Failure> {
    let (stdin, mut stderr) = (io::stdin(), io::stderr());
    if !stdin.is_terminal() {
        let what = "nobody can be asked, as standard input is no terminal: use --yes, or --hold ID";
        return Err(Failure::new(Code::Usage, what));
    }
    let what = if holds == 1 { "it".to_owned() } else { format!("all {holds}") };
    let failed = |cause: io::Error| Failure::new(Code::System, format!("the terminal: {cause}"));
    write!(stderr, "End {what} by force? [y/N] ").map_err(failed)?;
    stderr.flush().map_err(failed)?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Where nobody reads it, nothing is to be done.
fn say(what: impl Display) {
    let _ = writeln!(io::stdout(), "{what}");
}
