//! `quorate`: holds a lock while a command runs, and shows operators how their voters are.
//!
//! It only uses the public interface of the library. Each subcommand is a module with its options
//! and a function `run`; [`CommandLine`] names them all.

// A command ends in time by signals to its process group, and a watcher leads a session of its own:
// Windows has neither.
#[cfg(not(unix))]
compile_error!("the program `quorate` needs Unix: process groups and signals");

mod agent;
mod asking;
mod bench;
mod break_hold;
mod clock;
mod console;
mod copy_once;
mod doctor;
mod http;
mod lock;
mod man;
mod process;
mod run;
mod screen;
mod setup;
mod status;
mod tickets;
mod try_out;

use std::{env, ffi::OsString, iter, path::PathBuf, process::ExitCode};

use clap::{ArgAction, CommandFactory, Parser};
use clap_complete::Shell;
use tokio::runtime::Builder;

use self::console::{Code, Console, EXIT_CODES, Failure};

/// Distributed locks held by a quorum of Redis or Valkey servers
//
// Help, completions and the man page are made from it.
#[derive(Debug, Parser)]
#[command(
    name = "quorate",
    bin_name = "quorate",
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    after_long_help = EXIT_CODES,
)]
struct CommandLine {
    /// Print errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,

    /// Show more: first all columns and lines of `status` and `doctor`, then the library's log
    ///
    /// `status` and `doctor` show the log on standard error from the second -v on, other commands
    /// from the first. One more -v shows all of it.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,

    #[command(subcommand)]
    subcommand: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    Run(run::RunOptions),
    Lock(tickets::LockOptions),
    Renew(tickets::RenewOptions),
    Unlock(tickets::UnlockOptions),
    Lead(run::LeadOptions),
    Leader(run::LeaderOptions),
    Agent(agent::AgentOptions),
    Status(status::StatusOptions),
    Doctor(doctor::DoctorOptions),
    Break(break_hold::BreakOptions),
    CopyOnce(copy_once::CopyOnceOptions),
    Bench(bench::BenchOptions),
    /// Start three servers on this machine, to try locks with
    ///
    /// Says what to export in another terminal, and what to try there. Needs `redis-server` or
    /// `valkey-server` in PATH. The servers listen to 127.0.0.1 alone, for whoever has their
    /// password: it is in a file that only you can read. They end with this command; so do their
    /// data.
    Try,
    /// Print the completions for a shell
    #[command(after_help = "\
Examples:
  quorate completions bash > ~/.local/share/bash-completion/completions/quorate
  quorate completions fish > ~/.config/fish/completions/quorate.fish")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the man pages, one for each command
    #[command(after_help = "\
Examples:
  quorate man /usr/local/share/man/man1
  quorate man . && man ./quorate-run.1")]
    Man {
        /// The folder in which quorate.1, quorate-run.1 and so on are written; it is made if needed
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    // Before the command line is read: this process may be a watcher or the first step of a
    // command, whose arguments are no options of this program.
    if let Some(code) = run::hidden(&arguments) {
        return code.into();
    }
    let (keeps, arguments) = tickets::keeps(arguments);
    let arguments = iter::once("quorate".into()).chain(arguments);
    let line = match CommandLine::try_parse_from(arguments) {
        Ok(line) => line,
        Err(error) => {
            // clap gives `--help` and `--version` as errors, too. A reader that is gone misses
            // nothing.
            let _ = error.print();
            return if error.use_stderr() { Code::Usage } else { Code::Fine }.into();
        }
    };
    // The first -v of these two shows more columns. The log begins with the second: in a picture
    // that is drawn in place there is no room for it.
    let has_more = matches!(line.subcommand, Subcommand::Status(_) | Subcommand::Doctor(_));
    let console = Console::new(line.quiet, line.verbose.saturating_sub(u8::from(has_more)));
    dispatch(line, keeps, &console).unwrap_or_else(|failure| {
        console.failure(&failure);
        failure.code.into()
    })
}

fn dispatch(line: CommandLine, keeps: bool, console: &Console) -> Result<ExitCode, Failure> {
    let shows_all = line.verbose > 0;
    // On this thread: the kernel kills a process with its parent (`PR_SET_PDEATHSIG`) when the
    // thread ends that started it, and a worker of a runtime may end sooner than this process.
    let here = &mut Builder::new_current_thread();
    match line.subcommand {
        Subcommand::Run(options) => on(here, run::run(options, console)),
        Subcommand::Lock(options) if keeps => on(here, options.keep(console)),
        Subcommand::Lock(_) => tickets::start(None),
        Subcommand::Renew(options) if keeps => on(here, options.keep()),
        Subcommand::Renew(options) => options.start(),
        Subcommand::Unlock(options) => on(here, tickets::unlock(options)),
        Subcommand::Lead(options) => on(here, run::lead(options, console)),
        Subcommand::Leader(options) => on(here, run::leader(options, console)),
        Subcommand::Agent(options) => on(here, agent::run(options, console)),
        Subcommand::Status(options) => on(here, status::run(options, shows_all)),
        Subcommand::Doctor(options) => on(here, doctor::run(options, shows_all)),
        Subcommand::Break(options) => on(here, break_hold::run(options, console)),
        Subcommand::CopyOnce(options) => on(here, copy_once::run(options)),
        // On all cores, as a service that locks.
        Subcommand::Bench(options) => {
            on(&mut Builder::new_multi_thread(), bench::run(options, console))
        }
        Subcommand::Try => on(here, try_out::run(console)),
        Subcommand::Completions { shell } => {
            // Not to standard output itself: clap panics when its reader has gone.
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut CommandLine::command(), "quorate", &mut text);
            screen::print_bytes(&text)?;
            Ok(Code::Fine.into())
        }
        Subcommand::Man { folder } => {
            let written = man::write(CommandLine::command(), &folder);
            written.map_err(Failure::system(folder.display()))?;
            Ok(Code::Fine.into())
        }
    }
}

fn on(
    runtime: &mut Builder,
    task: impl Future<Output = Result<impl Into<ExitCode>, Failure>>,
) -> Result<ExitCode, Failure> {
    let runtime = runtime.enable_all().build().map_err(Failure::system("the runtime"))?;
    let result = runtime.block_on(task);
    // Without waiting: a file that hangs may keep a thread of the pool for ever.
    runtime.shutdown_background();
    result.map(Into::into)
}
