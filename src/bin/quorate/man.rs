//! The man pages, made from the definition of the command line.

use std::{
    fmt::Write,
    fs,
    io::{self, ErrorKind},
    path::Path,
};

use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;

/// Writes a page for the program and one for each subcommand, into a folder that is made if needed.
pub(crate) fn write(mut program: Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    program.build();
    for command in [&program].into_iter().chain(program.get_subcommands()) {
        let man = Man::new(command.clone());
        let mut page = Vec::new();
        man.render(&mut page)?;
        let page = String::from_utf8(page).map_err(io::Error::other)?;
        fs::write(folder.join(man.get_filename()), with_synopsis(&page, command)?)?;
    }
    Ok(())
}

/// The page with another synopsis.
// `clap_mangen` leaves out the values of options, and the `--` before a command.
fn with_synopsis(page: &str, command: &Command) -> io::Result<String> {
    const HEAD: &str = ".SH SYNOPSIS\n";
    let (before, rest) = page.split_once(HEAD).ok_or(ErrorKind::InvalidData)?;
    let (_, after) = rest.split_once(".SH ").ok_or(ErrorKind::InvalidData)?;
    Ok(format!("{before}{HEAD}{}.SH {after}", synopsis(command)))
}

fn synopsis(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let mut text = format!("\\fB{}\\fR", escaped(name));
    let (positionals, options): (Vec<_>, Vec<_>) =
        command.get_arguments().partition(|argument| argument.is_positional());
    for argument in options.into_iter().chain(positionals) {
        let shown = shown(argument);
        let is_required = argument.is_required_set();
        let _ = if is_required { write!(text, " {shown}") } else { write!(text, " [{shown}]") };
    }
    if command.has_subcommands() {
        text.push_str(" \\fICOMMAND\\fR");
    }
    text + "\n"
}

/// An argument of the synopsis: `-v|--verbose...`, `--grace TIME`, `-- CMD...`.
fn shown(argument: &Arg) -> String {
    let short = argument.get_short().map(|short| format!("\\-{short}"));
    let long = argument.get_long().map(|long| format!("\\-\\-{}", escaped(long)));
    let separator = argument.is_last_set().then(|| "\\-\\-".to_owned());
    let names: Vec<_> = [short, long, separator].into_iter().flatten().collect();
    let mut text = names.iter().map(|name| format!("\\fB{name}\\fR")).collect::<Vec<_>>().join("|");
    if argument.get_num_args().is_some_and(|count| count.takes_values()) {
        for value in argument.get_value_names().into_iter().flatten() {
            let blank = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{blank}\\fI{}\\fR", escaped(value));
        }
    }
    if matches!(argument.get_action(), ArgAction::Append | ArgAction::Count) {
        text.push_str("...");
    }
    text
}

fn escaped(text: &str) -> String {
    // A bare `-` is a hyphen in a man page: an option that is copied from it would not work.
    text.replace('-', "\\-")
}
