//! `quorate run`: holds a lock while a command runs.
//!
//! The command and its process group are dead before the lock's validity ends, whatever happens to
//! this process: see [`plan`] for when, [`supervisor`] for how, and [`watcher`] for who does it
//! where this process cannot.

mod command;
mod deadline_file;
mod plan;
mod signals;
mod supervisor;
mod terminal;
mod this_program;
mod watcher;

use std::{
    ffi::{OsStr, OsString},
    io,
    pin::pin,
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use nix::sys::signal::Signal;
use quorate::{Quorate, Status};

use self::{
    command::WaitingCommand,
    deadline_file::DeadlineFile,
    plan::Plan,
    signals::Signals,
    supervisor::{RunEnd, Supervisor, Surroundings},
    terminal::Terminal,
    watcher::Watcher,
};
use crate::{
    clock,
    connection::VoterOptions,
    console::Console,
    durations,
    exit::{Code, Failure},
    lock::{KindOptions, LockHeld},
    setup::Layer,
};

/// Hold a lock while a command runs
///
/// Waits for the lock, runs the command, and releases the lock. The command and its process group
/// are ended before the lock is lost: by SIGTERM, and by SIGKILL after the grace.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate run nightly-report -- make-report --all
  quorate run nightly-report --try -- make-report      # ends with 75 if it runs elsewhere
  quorate run deploy --wait 5m --grace 10s -- ./deploy.sh
  quorate run prices --read -- ./publish.sh            # many may read, while nobody writes

The command sees QUORATE_LOCK, QUORATE_HOLD, QUORATE_TOKEN (unless it reads), and
QUORATE_DEADLINE_FILE: a file with the time at which the command will be killed unless the lock is
renewed, in milliseconds since 1970.")]
pub(crate) struct RunOptions {
    /// The name of the lock
    name: String,

    /// The command, and its arguments as they are: no shell reads them
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    kind: KindOptions,

    /// Wait no longer than this for the lock, as in 30s [default: as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = durations::parse, conflicts_with = "now")]
    wait: Option<Duration>,

    /// Do not wait for the lock
    #[arg(long = "try", id = "now")]
    now: bool,

    /// For how long the servers give the lock; it is renewed from a third of it on
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    lease: Option<Duration>,

    /// The time from SIGTERM to SIGKILL [default: a third of the lease, 10s at most]
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    grace: Option<Duration>,

    #[command(flatten)]
    voters: VoterOptions,
}

/// Does what this program starts itself for, if these arguments say so.
pub(crate) fn hidden(arguments: &[OsString]) -> Option<ExitCode> {
    let (first, rest) = arguments.split_first()?;
    if first == OsStr::new(command::START) {
        Some(command::start(rest))
    } else if first == OsStr::new(watcher::WATCH) {
        watcher::watch(rest);
        Some(Code::Fine.into())
    } else {
        None
    }
}

impl RunOptions {
    fn limit(&self) -> Option<Duration> {
        if self.now { Some(Duration::ZERO) } else { self.wait }
    }
}

pub(crate) async fn run(options: RunOptions, console: &Console) -> Result<ExitCode, Failure> {
    let mut setup = options.voters.setup()?;
    if let Some(lease) = options.lease {
        let mut layer = Layer::command_line();
        layer.set("lease", format!("{}ms", lease.as_millis()));
        setup.put_on(layer);
    }
    let plan = Plan::new(setup.lease(), options.grace);
    let plan = plan.map_err(|what| Failure::new(Code::Usage, what))?;
    let builder = setup.builder()?;
    let mut signals = Signals::listen().map_err(system("signals"))?;
    let ready = Ready::new(&options.command)?;
    let quorum = match unless_ended(&mut signals, builder.connect()).await {
        Ok(connected) => connected?,
        Err(signal) => return Ok(ended_by(signal)),
    };
    let result = with_lock(&options, plan, ready, &mut signals, &quorum, console).await;
    quorum.close().await;
    // The watcher has had the time to end; in a container nobody else may wait for it.
    command::reap();
    result
}

async fn with_lock(
    options: &RunOptions,
    plan: Plan,
    ready: Ready,
    signals: &mut Signals,
    quorum: &Quorate,
    console: &Console,
) -> Result<ExitCode, Failure> {
    let acquiring = LockHeld::acquire(quorum, options.kind.kind(), &options.name, options.limit());
    let lock = match unless_ended(signals, acquiring).await {
        Ok(Err(error)) if error.is_invalid() => {
            return Err(Failure::new(Code::Usage, error.to_string()));
        }
        Ok(acquired) => acquired?,
        Err(signal) => return Ok(ended_by(signal)),
    };
    let run = supervise(&options.name, plan, ready, signals, &lock).await?;
    if lock.remaining().is_zero() {
        let mut failure = Failure::from(lock.lost().await);
        failure.code = Code::Lost;
        return Err(failure);
    }
    let released = lock.release().await;
    if run.is_lost {
        let what =
            format!("lock `{}` was not renewed in time: the command was ended", options.name);
        let causes = without_a_vote(&quorum.status().await);
        return Err(Failure { code: Code::Lost, what, causes });
    }
    match released {
        Err(error) if error.is_lost() => return Err(error.into()),
        // The lock was held until here.
        Err(error) => console.warn(error),
        Ok(()) => {}
    }
    Ok(run.end.into())
}

/// All that can be there before the lock is.
#[derive(Debug)]
struct Ready {
    watcher: Watcher,
    waiting: WaitingCommand,
    file: DeadlineFile,
}

impl Ready {
    fn new(command: &[OsString]) -> Result<Self, Failure> {
        // What the command leaves behind is then waited for here.
        #[cfg(target_os = "linux")]
        let _ = nix::sys::prctl::set_child_subreaper(true);
        let file = DeadlineFile::create().map_err(system("the file of the deadline"))?;
        let mut watcher = Watcher::start(file.folder(), None).map_err(system("the watcher"))?;
        let waiting = WaitingCommand::start(command).map_err(system("the command"))?;
        watcher.watch(waiting.group()).map_err(system("the watcher"))?;
        Ok(Self { watcher, waiting, file })
    }
}

async fn supervise(
    name: &str,
    plan: Plan,
    ready: Ready,
    signals: &mut Signals,
    lock: &LockHeld,
) -> Result<RunEnd, Failure> {
    let Ready { mut watcher, waiting, file } = ready;
    let mut terminal = Terminal::open();
    if Terminal::is_for_one() {
        terminal.give(waiting.group());
    }
    // Before it runs: from here on it is killed in time, whatever happens to this process.
    let now = clock::now();
    let time = lock.remaining().saturating_sub(plan.margin);
    let kill_at = now + time;
    watcher.kill_at(kill_at).map_err(system("the watcher"))?;
    file.write(time).map_err(system("the file of the deadline"))?;
    let group = waiting.go(variables(name, lock, &file));
    let around = Surroundings { lock, plan, file: &file, signals, terminal, watcher, kill_at };
    Supervisor::new(group, around).run().await.map_err(system("the watcher"))
}

fn variables(
    name: &str,
    lock: &LockHeld,
    file: &DeadlineFile,
) -> impl Iterator<Item = (&'static str, OsString)> {
    let token = lock.token().map(|token| ("QUORATE_TOKEN", token.to_string().into()));
    let others = [
        ("QUORATE_LOCK", name.into()),
        ("QUORATE_HOLD", lock.hold().to_string().into()),
        ("QUORATE_DEADLINE_FILE", file.path().into_os_string()),
    ];
    others.into_iter().chain(token)
}

/// The error is the signal that asks this process to end before the task is done.
async fn unless_ended<T>(
    signals: &mut Signals,
    task: impl Future<Output = T>,
) -> Result<T, Signal> {
    let mut task = pin!(task);
    loop {
        tokio::select! {
            biased;
            signal = signals.next() => match signal {
                Signal::SIGTSTP => terminal::stop(),
                Signal::SIGCHLD | Signal::SIGCONT => {}
                signal => return Err(signal),
            },
            done = &mut task => return Ok(done),
        }
    }
}

fn ended_by(signal: Signal) -> ExitCode {
    command::CommandEnd::Signaled(signal as i32).into()
}

fn without_a_vote(status: &Status) -> Vec<String> {
    status.voters.iter().filter(|voter| !voter.counts()).map(ToString::to_string).collect()
}

fn system(what: &'static str) -> impl Fn(io::Error) -> Failure {
    move |cause| Failure::new(Code::System, format!("{what}: {cause}"))
}
