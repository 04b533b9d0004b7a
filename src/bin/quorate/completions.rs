//! What shells and `man` know of the program.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{
    command_line::CommandLine,
    exit::{Code, Failure},
    watch,
};

/// Print the completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate completions bash > ~/.local/share/bash-completion/completions/quorate
  quorate completions fish > ~/.config/fish/completions/quorate.fish")]
pub(crate) struct CompletionsOptions {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(options: &CompletionsOptions) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut CommandLine::command(), "quorate", &mut text);
    watch::print_bytes(&text)?;
    Ok(Code::Fine.into())
}

/// Write the man pages, one for each command
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate man /usr/local/share/man/man1
  quorate man . && man ./quorate-run.1")]
pub(crate) struct ManOptions {
    /// The folder in which quorate.1, quorate-run.1 and so on are written
    folder: PathBuf,
}

pub(crate) fn man(ManOptions { folder }: &ManOptions) -> Result<ExitCode, Failure> {
    let written = clap_mangen::generate_to(CommandLine::command(), folder);
    let place = folder.display();
    written.map_err(|cause| Failure::new(Code::System, format!("{place}: {cause}")))?;
    Ok(Code::Fine.into())
}
