//! `quorate`: holds a lock while a command runs, and shows operators how their voters are.
//!
//! It is written against the public interface of the library, as any other program. Each
//! subcommand is a module with its options and a function `run`; [`command_line`] names them all.

#[cfg(not(unix))]
compile_error!("the program `quorate` needs Unix: process groups and signals");

mod bench;
mod break_hold;
mod clock;
mod command_line;
mod completions;
mod config_file;
mod connection;
mod console;
mod doctor;
mod durations;
mod exit;
mod frame;
mod holds;
mod interrupt;
mod leader;
mod lock;
mod private_folder;
mod run;
mod settle;
mod setup;
mod status;
mod try_out;
mod watch;

use std::{env, ffi::OsString, process::ExitCode};

use clap::Parser;
use command_line::{CommandLine, Subcommand};
use console::Console;
use exit::{Code, Failure};
use tokio::runtime::Builder;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if let Some(code) = run::hidden(&arguments) {
        return code;
    }
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => {
            // What `--help` and `--version` print is no error. Where nobody reads it, nothing is
            // to be done.
            let _ = error.print();
            return if error.use_stderr() { Code::Usage } else { Code::Fine }.into();
        }
    };
    let console = Console::new(line.quiet, line.log());
    match dispatch(line, &console) {
        Ok(code) => code,
        Err(failure) => {
            console.failure(&failure);
            failure.code.into()
        }
    }
}

fn dispatch(line: CommandLine, console: &Console) -> Result<ExitCode, Failure> {
    let shows_all = line.verbose > 0;
    match line.subcommand {
        Subcommand::Run(options) => on_runtime(run::run(options, console)),
        Subcommand::Lead(options) => on_runtime(run::lead(options, console)),
        Subcommand::Leader(options) => on_runtime(leader::run(options)),
        Subcommand::Status(options) => on_runtime(status::run(options, shows_all)),
        Subcommand::Doctor(options) => on_runtime(doctor::run(options, shows_all)),
        Subcommand::Break(options) => on_runtime(break_hold::run(options, console)),
        Subcommand::Bench(options) => on_all_cores(bench::run(options, console)),
        Subcommand::Try(options) => on_runtime(try_out::run(options, console)),
        Subcommand::Completions(options) => completions::run(&options),
        Subcommand::Man(options) => completions::man(&options),
    }
}

/// Runs on this thread: a process that the kernel ends with its parent ends with the thread that
/// started it.
fn on_runtime(task: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    on(&mut Builder::new_current_thread(), task)
}

/// Runs as in a service.
fn on_all_cores(
    task: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    on(&mut Builder::new_multi_thread(), task)
}

fn on(
    runtime: &mut Builder,
    task: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    let runtime = runtime.enable_all().build();
    let runtime = runtime.map_err(|cause| Failure::new(Code::System, cause.to_string()))?;
    let result = runtime.block_on(task);
    // Nobody waits for what still hangs in the background.
    runtime.shutdown_background();
    result
}
