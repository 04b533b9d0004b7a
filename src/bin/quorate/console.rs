//! What the program itself says, on standard error: standard output is for results.

use std::{
    env,
    fmt::Display,
    io::{self, IsTerminal, Write},
};

use tracing::level_filters::LevelFilter;

use crate::exit::Failure;

#[derive(Debug)]
pub(crate) struct Console {
    quiet: bool,
    colour: bool,
}

impl Console {
    /// From here on the library's log is shown as well, if that is wished.
    pub(crate) fn new(quiet: bool, verbose: u8) -> Self {
        let level = match verbose {
            0 => LevelFilter::OFF,
            1 => LevelFilter::INFO,
            _ => LevelFilter::DEBUG,
        };
        if level != LevelFilter::OFF {
            let log = tracing_subscriber::fmt().with_max_level(level).with_ansi(false);
            log.with_writer(io::stderr).init();
        }
        Self { quiet, colour: has_colour(&io::stderr()) }
    }

    /// Whether somebody looks at it.
    pub(crate) fn is_watched(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// What the program waits for.
    pub(crate) fn note(&self, what: impl Display) {
        self.say("36", what);
    }

    pub(crate) fn failure(&self, failure: &Failure) {
        self.say("31", &failure.what);
        for cause in &failure.causes {
            Self::line(format_args!("  {cause}"));
        }
    }

    /// What the user should know although the program goes on.
    pub(crate) fn warn(&self, what: impl Display) {
        if !self.quiet {
            self.say("33", what);
        }
    }

    fn say(&self, colour: &str, what: impl Display) {
        if self.colour {
            Self::line(format_args!("\x1b[1;{colour}mquorate:\x1b[0m {what}"));
        } else {
            Self::line(format_args!("quorate: {what}"));
        }
    }

    /// Where nobody reads it, nothing is to be done.
    fn line(text: impl Display) {
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// Whether to write there in colour: <https://no-color.org>.
pub(crate) fn has_colour(stream: &impl IsTerminal) -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb
}
