//! `quorate lock`, `quorate renew` and `quorate unlock`: a lock that is kept for a ticket.
//!
//! Somebody has to renew the lock until the ticket is used. That is the *keeper*: this program once
//! more, with the same arguments, in a session of its own. It takes the lock, or resumes the old
//! ticket, and parks the hold. The first process waits for the ticket, prints it and ends. From
//! then on the keeper has no file or terminal of its caller, and ends with the ticket.
//!
//! A pipe between the two shows which of them is still there. If the first process ends before it
//! has printed the ticket, the keeper releases the lock, as nobody else could.

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

/// The message to the keeper that its ticket has been printed.
// A word, and not only the end of the pipe: the pipe also ends if the first process is killed.
const PRINTED: &str = "printed";

/// The longest ticket.
const LONGEST: usize = 4096;

/// How long after the time of its ticket the keeper ends at the latest.
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

    /// For how long the lock is kept for the ticket
    #[arg(long = "for", value_name = "TIME", default_value = "10m")]
    #[arg(value_parser = setup::parse_interval)]
    time: Duration,

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
    /// The ticket, or - for the next line of standard input [default: QUORATE_TICKET]
    #[arg(value_name = "TICKET")]
    ticket: Option<String>,

    /// For how long the lock is kept for the ticket
    #[arg(long = "for", value_name = "TIME", default_value = "10m")]
    #[arg(value_parser = setup::parse_interval)]
    time: Duration,

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
    /// The ticket, or - for the next line of standard input [default: QUORATE_TICKET]
    #[arg(value_name = "TICKET")]
    ticket: Option<String>,

    #[command(flatten)]
    voters: VoterOptions,
}

/// Reads the ticket of the command line, of standard input, or of the environment.
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

/// The next line of standard input.
fn next_line() -> io::Result<String> {
    // Byte by byte and without a buffer: the rest of the input is for the command of `run
    // --ticket`.
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.len() < LONGEST && input.read(&mut byte)? > 0 && byte != *b"\n" {
        line.extend(byte);
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// Whether this is the keeper; and the arguments without the hidden one.
pub(crate) fn keeps(mut arguments: Vec<OsString>) -> (bool, Vec<OsString>) {
    if arguments.first().is_none_or(|first| first != KEEP) {
        return (false, arguments);
    }
    let open = fs::read_dir("/dev/fd").into_iter().flatten().map_while(Result::ok);
    let open = open.filter_map(|file| file.file_name().to_str()?.parse().ok());
    // The keeper outlives its caller, who may have opened files without `O_CLOEXEC`. Another
    // process may wait for the end of such a pipe, or for the lock of such a file
    // (`the_process_of_a_ticket_has_nothing_of_its_caller_and_survives_it`).
    for file in open.filter(|file| *file > 2).collect::<Vec<i32>>() {
        let _ = close(file);
    }
    process::rename(c"quorate");
    arguments.remove(0);
    (true, arguments)
}

/// Starts the keeper, and prints its ticket. `used`: the ticket that the keeper is to resume.
pub(crate) fn start(used: Option<&HoldTicket>) -> Result<ExitCode, Failure> {
    let refused = || Failure::system("the process that keeps the lock");
    // A ticket is a secret. The keeper lives long, so its arguments have `-` in place of the
    // ticket, which it reads from its input.
    let used = used.map(HoldTicket::to_string);
    let is_used = |argument: &OsString| used.as_ref().is_some_and(|used| *argument == **used);
    let shown = |argument| if is_used(&argument) { "-".into() } else { argument };
    let mut command = process::again();
    command.arg(KEEP).args(env::args_os().skip(1).map(shown));
    let mut keeper =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(refused())?;
    let pipes = keeper.stdin.take().zip(keeper.stdout.take());
    let (mut to, from) = pipes.ok_or_else(|| io::ErrorKind::BrokenPipe.into()).map_err(refused())?;
    // A keeper that has ended has said why.
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
        keep(&setup, self.time, async |quorum| match asking.acquire(quorum).await? {
            Some(LockHeld::Exclusive(guard)) => Ok(guard),
            _ => unreachable!("a mutex has this guard"),
        })
        .await
    }
}

impl RenewOptions {
    pub(crate) fn start(&self) -> Result<ExitCode, Failure> {
        start(Some(&read(self.ticket.as_deref())?))
    }

    /// What the keeper does.
    pub(crate) async fn keep(self) -> Result<Code, Failure> {
        let (setup, ticket) = (self.voters.setup()?, read(Some("-"))?);
        keep(&setup, self.time, async |quorum| resume(quorum, &ticket).await).await
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
    // Signals of the terminal are not for the keeper. It has asked for a password before, if at
    // all.
    let _ = setsid();
    let mut caller = task::spawn_blocking(|| io::read_to_string(io::stdin()));
    let quorum = builder.connect().await?;
    let taken = async { Ok::<_, Failure>(take(&quorum).await?.detach_for(time).await?) };
    let taken = tokio::select! {
        // The lock is given up if the caller ends first: nobody would have the ticket
        // (`a_ticket_that_nobody_reads_keeps_nobody_out`).
        biased;
        taken = taken => taken.map(Some),
        _ = &mut caller => Ok(None),
    };
    if let Ok(Some(ticket)) = &taken {
        // The caller says whether it has printed it.
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
        // With a limit, so that no keeper stays for ever. Nobody is left to read an error.
        let _ = time::timeout(time + LATEST, kept).await;
    }
    let _ = quorum.close().await;
    taken.map(|_| Code::Fine)
}

pub(crate) async fn unlock(options: UnlockOptions) -> Result<Code, Failure> {
    let ticket = read(options.ticket.as_deref())?;
    let quorum = options.voters.setup()?.builder()?.connect().await?;
    let released = async { Ok(resume(&quorum, &ticket).await?.release().await?) }.await;
    let _ = quorum.close().await;
    released.map(|()| Code::Fine)
}

async fn resume(quorum: &Quorate, ticket: &HoldTicket) -> Result<MutexGuard, Failure> {
    quorum.resume(ticket).await.map_err(|error| {
        // A ticket that cannot be read is a wrong argument, and no wrong setting.
        if error.is_invalid() { Failure::new(Code::Usage, error.to_string()) } else { error.into() }
    })
}
