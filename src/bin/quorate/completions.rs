//! What shells and `man` know of the program.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{
    command_line::CommandLine,
    exit::{Code, Failure},
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
    print(&text)
}

/// One page for all subcommands would be long; each has a section of its own behind the first.
pub(crate) fn man() -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    let mut program = CommandLine::command();
    program.build();
    let pages = std::iter::once(&program).chain(program.get_subcommands());
    for page in pages.filter(|page| !page.is_hide_set()) {
        let rendered = clap_mangen::Man::new(page.clone()).render(&mut text);
        rendered.map_err(|cause| Failure::new(Code::Software, cause.to_string()))?;
    }
    print(&text)
}

fn print(text: &[u8]) -> Result<ExitCode, Failure> {
    let written = io::stdout().write_all(text);
    written.map_err(|cause| Failure::new(Code::System, format!("standard output: {cause}")))?;
    Ok(Code::Fine.into())
}
