//! `quorate run`, `quorate lead` and `quorate leader`: hold a lock, or lead, while a command runs.
//!
//! The command and its process group are dead before the lock's validity ends, whatever happens to
//! this process. [`supervisor`] says when and how, and [`watcher`] does it if this process cannot.

mod command;
mod listen;
mod supervisor;
mod watcher;

use std::{
    env,
    ffi::OsString,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::pin,
    process::ExitCode,
    rc::Rc,
    time::{Duration, UNIX_EPOCH},
};

use clap::{Args, builder::NonEmptyStringValueParser};
use futures::FutureExt;
use nix::sys::signal::Signal;
use quorate::{Firing, HoldTicket, Quorate};
use tokio::time;

use self::{
    command::CommandEnd,
    listen::Desk,
    supervisor::{Plan, supervise},
};
pub(crate) use self::{command::WaitingCommand, watcher::Watcher};
use crate::{
    asking::{Asking, AskingOptions},
    clock,
    console::{Code, Console, Failure},
    http,
    lock::{KindOptions, LockKind},
    process::{self, PrivateFolder, Signals},
    screen::{self, quoted},
    setup::{self, Setup, VoterOptions},
    tickets,
};

/// The pause before `lead --again` campaigns again.
const BEFORE_AGAIN: Duration = Duration::from_millis(500);

/// The longest time from a grant until this program sees it, unless the machine is very busy.
const NOTICED: Duration = Duration::from_secs(1);

const MAX_HOLD: &str = "\
Hold the lock no longer than this: the command is ended before [default: no limit]

SIGKILL comes a margin before that, SIGTERM a grace earlier. The margin is a tenth of this time, or \
of the lease if that is shorter: from 100ms to 1s. With a lease of 30s:

                            SIGTERM  SIGKILL
  --max-hold 3s                1.7s     2.7s
  --max-hold 10s               5.7s     9.0s
  --max-hold 1m               49.0s    59.0s
  --max-hold 1m --grace 2s    57.0s    59.0s";

/// Hold a lock while a command runs
///
/// Waits for the lock, runs the command, and releases the lock. The command and its process group
/// are ended before the lock is lost: by SIGTERM, and by SIGKILL after the grace.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate run nightly-report -- make-report --all
  quorate run nightly-report --every 24h --offset 14h -- make-report    # once, on all machines
  quorate run build --once 4711 -- ./build.sh
  quorate run deploy --wait 5m --grace 10s -- ./deploy.sh
  quorate run prices --read -- ./publish.sh            # many may read, while nobody writes
  quorate run exports --permits 3 -- ./export.sh       # three run at the same time

The command sees QUORATE_LOCK, QUORATE_HOLD, QUORATE_TOKEN (unless it reads or has a permit),
QUORATE_SLOT (the number of its permit), and QUORATE_DEADLINE_FILE: a file with the time at which
the command will be killed unless the lock is renewed, in milliseconds since 1970. It is in a folder
of XDG_RUNTIME_DIR or TMPDIR; without one that can be written there is none.")]
pub(crate) struct RunOptions {
    /// The name of the lock
    #[arg(required_unless_present = "ticket")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,

    #[command(flatten)]
    kind: KindOptions,

    /// Take the lock over from the one who has it for this ticket: see `lock`
    ///
    /// - is the next line of standard input; without a value it is QUORATE_TICKET.
    #[arg(
        long,
        value_name = "TICKET",
        conflicts_with_all = [
            "name", "fair", "read", "write", "permits", "once", "every",
            "wait", "now", "lease", "max_hold", "note"
        ]
    )]
    #[expect(clippy::option_option, reason = "with clap, an option whose value may be left out")]
    ticket: Option<Option<String>>,

    /// Leave the lock taken for this time after the command has ended with 0
    ///
    /// With --once and --every: for how long servers remember that it has [default: 24h].
    #[arg(long, value_name = "TIME", value_parser = setup::parse_time)]
    keep: Option<Duration>,

    /// Run the command for this firing of the job once, on all machines: a number that grows
    ///
    /// If another machine is at it, it waits, and takes over if that one fails. If the firing is
    /// done, or a later one, it ends with 0.
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["fair", "read", "write", "permits", "every"]
    )]
    once: Option<u64>,

    /// The same for a job that is due once in this time: its number is that of the period by the
    /// own clock
    ///
    /// The timers of all machines must fire within one period, and not near its edge: see --offset.
    #[arg(
        long,
        value_name = "PERIOD",
        value_parser = setup::parse_interval,
        conflicts_with_all = ["fair", "read", "write", "permits"]
    )]
    every: Option<Duration>,

    /// How long after midnight of 1970-01-01, in UTC, the periods of --every begin
    #[arg(long, value_name = "TIME", value_parser = setup::parse_time, requires = "every")]
    offset: Option<Duration>,

    #[command(flatten)]
    command: CommandOptions,
}

/// Lead an election while a command runs
///
/// Waits until this candidate leads, in the order of asking, and runs the command. It is ended
/// before the lead is lost, as that of `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate lead scheduler --value 10.0.0.1:80 -- ./schedule.sh
  quorate lead scheduler --value 10.0.0.1:80 --again -- ./schedule.sh
  quorate leader scheduler                             # prints 10.0.0.1:80

The command sees the same variables as that of `run`.")]
pub(crate) struct LeadOptions {
    /// The name of the election
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,

    /// What others are to know of the leader, such as its address
    #[arg(long, value_name = "TEXT")]
    value: String,

    /// Campaign again after a loss, and run the command anew
    ///
    /// Also if no quorum answers, until the command ends by itself or the program is told to end.
    #[arg(long)]
    again: bool,

    #[command(flatten)]
    command: CommandOptions,
}

/// Print what the leader of an election says of itself
///
/// If nobody leads, it says so on standard error and ends with 1.
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

/// A command, and how a lock is taken for it.
#[derive(Debug, Args)]
struct CommandOptions {
    /// The command, and its arguments as they are: no shell reads them
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    asking: AskingOptions,

    /// Hold the lock no longer than this: the command is ended before [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = setup::parse_time, long_help = MAX_HOLD)]
    max_hold: Option<Duration>,

    /// The time from SIGTERM to SIGKILL [default: a third of the lease, 10s at most]
    #[arg(long, value_name = "TIME", value_parser = setup::parse_time)]
    grace: Option<Duration>,

    /// End with this code if the command itself ends with one of 64 to 78
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(u8).range(1..64))]
    command_code: Option<u8>,

    /// Answer GET /leader and GET /healthz over HTTP, as in 127.0.0.1:4040
    ///
    /// /leader answers with 200 while the lock is held, and otherwise with 503 and with who has it.
    /// /healthz answers with 200 while the program works, also without servers. Whoever reaches
    /// the address may ask.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    #[command(flatten)]
    voters: VoterOptions,
}

/// Runs as a watcher or as the first step of a command, if this program started itself for that.
pub(crate) fn hidden(arguments: &[OsString]) -> Option<Code> {
    let (first, rest) = arguments.split_first()?;
    if first == command::START {
        Some(command::start(rest))
    } else if first == watcher::WATCH {
        watcher::watch(rest);
        Some(Code::Fine)
    } else {
        None
    }
}

pub(crate) async fn run(options: RunOptions, console: &Console) -> Result<ExitCode, Failure> {
    // Before anything is awaited: a machine that waits for the lock until the next period is still
    // there for the firing of this one.
    let now = UNIX_EPOCH + clock::wall();
    let every =
        options.every.map(|period| Firing::every(period, options.offset.unwrap_or_default(), now));
    let ticket = options.ticket.map(|given| tickets::read(given.as_deref())).transpose()?;
    let firing = options.once.map(Firing::from).or(every);
    let (kind, keep) = match (&ticket, firing) {
        (Some(ticket), _) => (LockKind::Parked(ticket), options.keep),
        (_, Some(firing)) => (LockKind::Once(firing, options.keep), None),
        _ => (options.kind.kind(), options.keep),
    };
    let name =
        ticket.as_ref().map(HoldTicket::lock).or(options.name.as_deref()).unwrap_or_default();
    let (options, desk) = (&options.command, Desk::new(kind, name));
    Job { keep, again: false, options, console, desk }.run_and_listen().await
}

pub(crate) async fn lead(options: LeadOptions, console: &Console) -> Result<ExitCode, Failure> {
    let desk = Desk::new(LockKind::Lead(&options.value), &options.name);
    let LeadOptions { again, command: options, .. } = &options;
    Job { keep: None, again: *again, options, console, desk }.run_and_listen().await
}

pub(crate) async fn leader(options: LeaderOptions, console: &Console) -> Result<Code, Failure> {
    let quorum = options.voters.setup()?.connect().await?;
    let leader = quorum.election(&options.name).leader().await;
    let _ = quorum.close().await;
    let Some(leader) = leader? else {
        console.warn(format_args!("nobody leads `{}`", quoted(&options.name)));
        return Ok(Code::Warnings);
    };
    screen::print_bytes(&[leader.value(), b"\n"].concat())?;
    Ok(Code::Fine)
}

/// A command, and the lock that it runs under.
struct Job<'a> {
    keep: Option<Duration>,
    /// Whether to begin again after a loss, and without a quorum.
    again: bool,
    options: &'a CommandOptions,
    console: &'a Console,
    /// The kind and the name of the lock, and the answers about it over HTTP.
    desk: Desk<'a>,
}

impl Job<'_> {
    async fn run_and_listen(&self) -> Result<ExitCode, Failure> {
        let Some(address) = self.options.listen else { return self.run().await };
        // First: no command starts if the address cannot be used
        // (`an_address_that_cannot_be_used_is_refused_before_the_command_starts`).
        let listener = http::listen("--listen", address).await?;
        tokio::select! {
            // Requests over HTTP put off neither the end of the command nor a signal to it.
            biased;
            ended = self.run() => ended,
            never = http::serve(&self.desk, listener) => match never {},
        }
    }

    async fn run(&self) -> Result<ExitCode, Failure> {
        let CommandOptions { command, asking, max_hold, grace, voters, .. } = self.options;
        let mut setup = voters.setup()?;
        let of_ticket =
            if let LockKind::Parked(ticket) = self.desk.kind { Some(ticket.lease()) } else { None };
        setup.set_time("lease", of_ticket.or(asking.lease));
        setup.set_time("hold_at_most", *max_hold);
        let plan = Plan::new(setup.lease(), setup.hold_at_most(), *grace);
        let plan = plan.map_err(|what| Failure::new(Code::Usage, what))?;
        let builder = setup.builder()?;
        let mut signals = Signals::listen_for_command()?;
        // Before the lock: to start two processes would cost time under it.
        let ready = Ready::new(command, self.console)?;
        let quorum = match unless_ended(&mut signals, &ready, builder.connect()).await {
            Ok(connected) => connected?,
            Err(signal) => return Ok(ended_by(signal)),
        };
        let quorum = self.desk.quorum.get_or_init(|| quorum);
        let held = self.again_and_again(plan, &setup, ready, &mut signals, quorum);
        let result = Box::pin(held).await;
        let _ = quorum.close().await;
        // The watcher has had the time to end. In a container, nobody else may reap it.
        command::reap();
        result
    }

    /// Runs the command until it ends by itself, or fails for a reason that stays.
    async fn again_and_again(
        &self,
        plan: Plan,
        setup: &Setup,
        mut ready: Ready,
        signals: &mut Signals,
        quorum: &Quorate,
    ) -> Result<ExitCode, Failure> {
        loop {
            let failure = match self.with_lock(plan, setup, ready, signals, quorum).await {
                Err(failure) if self.again && failure.passes() => failure,
                ended => return ended,
            };
            self.console.warn(format_args!("campaigns again: {}", failure.what));
            ready = Ready::new(&self.options.command, self.console)?;
            let pause = time::sleep(BEFORE_AGAIN);
            if let Err(signal) = unless_ended(signals, &ready, pause).await {
                return Ok(ended_by(signal));
            }
        }
    }

    async fn with_lock(
        &self,
        plan: Plan,
        setup: &Setup,
        ready: Ready,
        signals: &mut Signals,
        quorum: &Quorate,
    ) -> Result<ExitCode, Failure> {
        let Self { desk: Desk { kind, name, .. }, console, .. } = *self;
        // A time that cannot be used is refused now, and not after the command has run. The first
        // poll checks the lease; no answer is awaited.
        if let Some(time) = self.keep
            && let Some(Err(error)) = quorum.mutex(name).lease(time).inspect().now_or_never()
        {
            return Err(Failure::new(Code::Usage, format!("--keep: {error}")));
        }
        let (options, longest) = (&self.options.asking, setup.longest_lease());
        let asking = Asking { name, kind, options, longest, console };
        let lock = match unless_ended(signals, &ready, asking.acquire(quorum)).await {
            Ok(acquired) => match acquired? {
                Some(lock) => Rc::new(lock),
                // The firing is done. Only the log says so, as cron mails whatever is printed.
                None => return Ok(ExitCode::SUCCESS),
            },
            Err(signal) => return Ok(ended_by(signal)),
        };
        self.desk.lock.replace(Rc::downgrade(&lock));
        let granted = clock::now();
        let run = supervise(name, plan, ready, signals, &lock, console).await?;
        let (left, now) = (lock.remaining(), clock::now());
        // Lost, whatever the command ended with: it may have worked beside the next holder.
        if left.is_zero() {
            let mut failure = Failure::from(lock.lost().await);
            failure.code = Code::Lost;
            return Err(failure);
        }
        // From here on `/leader` no longer says that this process holds the lock.
        let lock = Rc::into_inner(lock).expect("all others have it for a moment only");
        let went_well = !run.is_lost && run.end == CommandEnd::Exited(0);
        let released = match self.keep.filter(|_| went_well) {
            Some(time) => lock.keep_for(time).await,
            None if went_well => lock.finish().await,
            None => lock.release().await,
        };
        // The command was ended before its lock. It was the limit, and no failed renewal, if the
        // lock would have ended at the limit.
        let is_its_end = |most: &Duration| now + left + NOTICED >= granted + *most;
        if let Some(most) = setup.hold_at_most().filter(|most| run.is_lost && is_its_end(most)) {
            let what = format!("lock `{name}` may be held for {most:?} at most");
            return Err(Failure::new(Code::Lost, format!("{what}: the command was ended")));
        }
        if run.is_lost {
            let what = format!("lock `{name}` was lost: it was not renewed in time");
            let mut voters = quorum.status().await.voters;
            voters.retain(|voter| !voter.counts);
            let causes = voters.iter().map(ToString::to_string).collect();
            return Err(Failure { causes, ..Failure::new(Code::Lost, what) });
        }
        match released {
            Err(error) if error.is_lost() => return Err(error.into()),
            // A warning: the command ran under the lock, and only its release is unconfirmed.
            Err(error) => console.warn(error),
            Ok(()) => {}
        }
        Ok(self.code(run.end))
    }

    fn code(&self, end: CommandEnd) -> ExitCode {
        // Otherwise a command that ends with 75 looks like a lock that is taken, and systemd or
        // Kubernetes would not see a failure.
        match (end, self.options.command_code) {
            (CommandEnd::Exited(code @ 64..=78), Some(instead)) => {
                self.console.warn(format_args!("the command itself ended with {code}"));
                instead.into()
            }
            _ => end.into(),
        }
    }
}

/// What is started before the lock is asked for.
struct Ready {
    watcher: Watcher,
    waiting: WaitingCommand,
    file: Option<DeadlineFile>,
}

impl Ready {
    fn new(command: &[OsString], console: &Console) -> Result<Self, Failure> {
        // So that processes whose parent has ended become children of this one, which sees their
        // end: the lock is kept until then.
        #[cfg(target_os = "linux")]
        let _ = nix::sys::prctl::set_child_subreaper(true);
        let file = DeadlineFile::create().inspect_err(|why| console.warn(why)).ok();
        let of_watcher = || Failure::system("the watcher");
        let folder = file.as_ref().map(DeadlineFile::folder);
        // The watcher first: the command is watched from the moment in which it exists.
        let mut watcher = Watcher::start(folder, None).map_err(of_watcher())?;
        let waiting = WaitingCommand::start(command).map_err(Failure::system("the command"))?;
        watcher.watch(waiting.group()).map_err(of_watcher())?;
        Ok(Self { watcher, waiting, file })
    }
}

/// Completes with the task, or with the signal that asks this process to end.
async fn unless_ended<T>(
    signals: &mut Signals,
    ready: &Ready,
    task: impl Future<Output = T>,
) -> Result<T, Signal> {
    let mut task = pin!(task);
    loop {
        tokio::select! {
            biased;
            signal = signals.next() => match signal {
                // Caught for the command, which does not run yet: so the key stops this process.
                Signal::SIGTSTP => process::stop(),
                Signal::SIGCHLD => {
                    command::reap_others([ready.watcher.id(), ready.waiting.group()]);
                }
                Signal::SIGCONT => {}
                signal => return Err(signal),
            },
            done = &mut task => return Ok(done),
        }
    }
}

fn ended_by(signal: Signal) -> ExitCode {
    CommandEnd::Signaled(signal as i32).into()
}

/// The file with the deadline, for the command. Removed with the value.
struct DeadlineFile(PrivateFolder);

impl DeadlineFile {
    const NAME: &str = "deadline";

    /// Makes the folder of the file. The error is a warning: the command can run without the file.
    fn create() -> Result<Self, String> {
        let of_the_session = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let of_the_session = of_the_session.filter(|path| path.is_absolute());
        // It may be another user's folder, as `su` leaves the variable
        // (`the_session_of_another_user_is_no_obstacle`).
        let there = of_the_session.and_then(|path| PrivateFolder::create(&path).ok());
        let folder = env::temp_dir();
        let there = there.map_or_else(|| PrivateFolder::create(&folder), Ok);
        there.map(Self).map_err(|cause| Self::refused(&folder, &cause))
    }

    fn refused(folder: &Path, cause: &io::Error) -> String {
        let mend = "set XDG_RUNTIME_DIR or TMPDIR to a folder that can be written";
        format!("no QUORATE_DEADLINE_FILE for the command: {}: {cause}; {mend}", folder.display())
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn path(&self) -> PathBuf {
        self.folder().join(Self::NAME)
    }

    /// Writes when the command will be killed: milliseconds since 1970, and the end of the line.
    fn write(folder: &Path, at: Duration) -> io::Result<()> {
        // By a rename, so that a reader sees the old text or the new one, and never half of it.
        let new = folder.join("new");
        fs::write(&new, format!("{}\n", at.as_millis()))?;
        fs::rename(new, folder.join(Self::NAME))
    }

    /// Writes it on another thread.
    fn write_soon(&self, kill_at: Duration) {
        // A disk that hangs must not keep this thread from ending the command. If the file cannot
        // be written, the command sees an earlier time, and no harm is done.
        let at = clock::wall() + kill_at.saturating_sub(clock::now());
        let folder = self.folder().to_owned();
        drop(tokio::task::spawn_blocking(move || Self::write(&folder, at)));
    }
}
