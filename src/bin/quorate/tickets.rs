//! `quorate lock`, `quorate renew` and `quorate unlock`: a lock that a ticket stands for.
//!
//! Somebody has to renew the lock while nobody uses the ticket. That is the *keeper*: this program
//! once more, with the same arguments, in a session of its own. It takes the lock, or resumes the
//! old ticket, and parks the hold. The first process waits for the ticket, prints it and ends. From
//! then on the keeper has nothing of its caller, and ends with the ticket.
//!
//! Pipes say who is still there. If the first process ends before it has printed the ticket, the
//! keeper gives the lock back: nobody could.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    io::{self, Read, Write},
    os::{fd::AsFd, unix::process::ExitStatusExt},
    process::{ExitCode, Stdio},
    time::Duration,
};

use clap::{Args, builder::NonEmptyStringValueParser};
use nix::unistd::{close, dup2_stderr, dup2_stdin, dup2_stdout, setsid};
use quorate::{Error, HoldTicket, MutexGuard, Quorate};
use tokio::{task, time};

use crate::{
    asking::{Asking, AskingOptions},
    console::{Code, Console, Failure},
    lock::{LockHeld, LockKind},
    process,
    setup::{self, Setup, VoterOptions},
};

/// The hidden argument of the keeper, before all others.
const KEEP: &str = "__keep";

/// What the keeper hears when its ticket has been printed.
const PRINTED: &str = "printed";

/// No ticket is longer.
const LONGEST: usize = 4096;

/// The keeper ends no later than this after the time of its ticket.
const LATEST: Duration = Duration::from_secs(1);

/// Take a lock, and print a ticket for it
///
/// A process in the background keeps the lock until the ticket is used: `run --ticket` runs a
/// command under the lock, and `unlock` frees it. Between `lock` and `unlock` nothing ends your
/// work if the lock is lost, and without `unlock` nobody else gets the lock before the time of
/// --for is over: use `run` where you can.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  QUORATE_TICKET=$(quorate lock deploy --wait 1m --for 30m) && export QUORATE_TICKET
  quorate run --ticket -- ./deploy.sh                  # also from another machine
  quorate unlock                                       # instead, if there is nothing to deploy")]
pub(crate) struct LockOptions {
    /// The name of the lock, which is a mutex
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,

    /// Take the lock in the order of asking
    #[arg(long)]
    fair: bool,

    #[command(flatten)]
    time: TicketTime,

    #[command(flatten)]
    asking: AskingOptions,

    #[command(flatten)]
    voters: VoterOptions,
}

/// Print a new ticket, which has more time
///
/// The old ticket is used up. Nobody else gets the lock meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ticket=$(quorate renew \"$ticket\" --for 30m)")]
pub(crate) struct RenewOptions {
    #[command(flatten)]
    ticket: TicketOptions,

    #[command(flatten)]
    time: TicketTime,

    #[command(flatten)]
    voters: VoterOptions,
}

/// Free the lock of a ticket
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate unlock \"$ticket\"
  quorate unlock - < ticket")]
pub(crate) struct UnlockOptions {
    #[command(flatten)]
    ticket: TicketOptions,

    #[command(flatten)]
    voters: VoterOptions,
}

#[derive(Debug, Args)]
struct TicketTime {
    /// For how long the lock is kept for the ticket
    #[arg(long = "for", value_name = "TIME", default_value = "10m")]
    #[arg(value_parser = setup::parse_interval)]
    time: Duration,
}

#[derive(Debug, Args)]
struct TicketOptions {
    /// The ticket, or - for the next line of standard input [default: QUORATE_TICKET]
    #[arg(value_name = "TICKET")]
    ticket: Option<String>,
}

/// Reads the ticket from where the command line says.
pub(crate) fn read(given: Option<&str>) -> Result<HoldTicket, Failure> {
    let usage = |what: &str| Failure::new(Code::Usage, what);
    let text = match given {
        Some("-") => next_line().map_err(Failure::system("standard input"))?,
        Some(text) => text.to_owned(),
        None => env::var("QUORATE_TICKET").unwrap_or_default(),
    };
    if text.is_empty() {
        return Err(usage("no ticket: give it, or - for standard input, or set QUORATE_TICKET"));
    }
    text.parse().map_err(|error: Error| usage(&error.to_string()))
}

/// Of standard input. What comes behind it is left to a command.
fn next_line() -> io::Result<String> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.len() < LONGEST && input.read(&mut byte)? > 0 && byte != *b"\n" {
        line.extend(byte);
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// The arguments of the command line; and whether this is the keeper, which then has no file open
/// that its caller did not mean for it.
pub(crate) fn keeps(mut arguments: Vec<OsString>) -> (bool, Vec<OsString>) {
    if arguments.first().is_none_or(|first| first != KEEP) {
        return (false, arguments);
    }
    let open = fs::read_dir("/dev/fd").into_iter().flatten().map_while(Result::ok);
    let open = open.filter_map(|file| file.file_name().to_str()?.parse().ok());
    // Another process may wait for the end of one of them, or for its lock.
    for file in open.filter(|file| *file > 2).collect::<Vec<i32>>() {
        let _ = close(file);
    }
    process::rename(c"quorate");
    arguments.remove(0);
    (true, arguments)
}

/// Starts the keeper, and prints its ticket. One that it resumes is a secret, which does not stand
/// among its arguments.
pub(crate) fn start(used: Option<&HoldTicket>) -> Result<ExitCode, Failure> {
    let refused = || Failure::system("the process that keeps the lock");
    let used = used.map(HoldTicket::to_string);
    let is_used = |argument: &OsString| used.as_ref().is_some_and(|used| *argument == **used);
    let shown = |argument| if is_used(&argument) { "-".into() } else { argument };
    let mut command = process::again();
    command.arg(KEEP).args(env::args_os().skip(1).map(shown));
    let mut keeper =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(refused())?;
    let pipes = keeper.stdin.take().zip(keeper.stdout.take());
    let (mut to, from) = pipes.ok_or_else(|| io::ErrorKind::BrokenPipe.into()).map_err(refused())?;
    // One that has ended meanwhile has said why.
    let _ = used.map(|ticket| to.write_all(format!("{ticket}\n").as_bytes()));
    let ticket = io::read_to_string(from).map_err(refused())?;
    if ticket.is_empty() {
        let end = keeper.wait().map_err(refused())?;
        let code = end.code().or(end.signal().map(|signal| 128 + signal)).unwrap_or_default();
        return Ok(u8::try_from(code).unwrap_or(u8::MAX).into());
    }
    let mut stdout = io::stdout();
    let printed = stdout.write_all(ticket.as_bytes()).and_then(|()| stdout.flush());
    printed.map_err(Failure::system("standard output"))?;
    to.write_all(PRINTED.as_bytes()).map_err(refused())?;
    Ok(ExitCode::SUCCESS)
}

impl LockOptions {
    /// What the keeper does.
    pub(crate) async fn keep(self, console: &Console) -> Result<Code, Failure> {
        let mut setup = self.voters.setup()?;
        setup.set_time("lease", self.asking.lease);
        let kind = if self.fair { LockKind::Fair } else { LockKind::Mutex };
        let (name, options, longest) = (&*self.name, &self.asking, setup.longest_lease());
        let asking = Asking { name, kind, options, longest, console };
        keep(&setup, self.time.time, async |quorum| match asking.acquire(quorum).await? {
            Some(LockHeld::Exclusive(guard)) => Ok(guard),
            _ => unreachable!("a mutex has this guard"),
        })
        .await
    }
}

impl RenewOptions {
    pub(crate) fn start(&self) -> Result<ExitCode, Failure> {
        start(Some(&read(self.ticket.ticket.as_deref())?))
    }

    /// What the keeper does.
    pub(crate) async fn keep(self) -> Result<Code, Failure> {
        let (setup, ticket) = (self.voters.setup()?, read(Some("-"))?);
        keep(&setup, self.time.time, async |quorum| resume(quorum, &ticket).await).await
    }
}

/// Takes the lock, parks it, and writes the ticket; returns when the ticket has ended.
async fn keep(
    setup: &Setup,
    time: Duration,
    take: impl AsyncFnOnce(&Quorate) -> Result<MutexGuard, Failure>,
) -> Result<Code, Failure> {
    let builder = setup.builder()?;
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(Failure::system("/dev/null"))?;
    // No signal of a terminal is for it. It was asked for a password before, if at all.
    let _ = setsid();
    let mut caller = task::spawn_blocking(|| io::read_to_string(io::stdin()));
    let quorum = builder.connect().await?;
    let taken = async { Ok::<_, Failure>(take(&quorum).await?.detach_for(time).await?) };
    let taken = tokio::select! {
        biased;
        taken = taken => taken.map(Some),
        _ = &mut caller => Ok(None),
    };
    if let Ok(Some(ticket)) = &taken {
        // Whether it was read is heard from the caller.
        let _ = io::stdout().write_all(format!("{ticket}\n").as_bytes());
        let _ = dup2_stdout(&null).and(dup2_stderr(&null));
        let kept = async {
            let is_printed = caller.await.is_ok_and(|said| said.is_ok_and(|said| said == PRINTED));
            let _ = dup2_stdin(&null);
            if !is_printed {
                quorum.resume(ticket).await?.release().await?;
            } else if let Some(parked) = quorum.parked(ticket) {
                parked.await;
            }
            Ok::<_, Error>(())
        };
        // Nobody is left to hear of an error.
        let _ = time::timeout(time + LATEST, kept).await;
    }
    let _ = quorum.close().await;
    taken.map(|_| Code::Fine)
}

pub(crate) async fn unlock(options: UnlockOptions) -> Result<Code, Failure> {
    let ticket = read(options.ticket.ticket.as_deref())?;
    let quorum = options.voters.setup()?.builder()?.connect().await?;
    let released = async { Ok(resume(&quorum, &ticket).await?.release().await?) }.await;
    let _ = quorum.close().await;
    released.map(|()| Code::Fine)
}

async fn resume(quorum: &Quorate, ticket: &HoldTicket) -> Result<MutexGuard, Failure> {
    quorum.resume(ticket).await.map_err(|error| {
        if error.is_invalid() { Failure::new(Code::Usage, error.to_string()) } else { error.into() }
    })
}
