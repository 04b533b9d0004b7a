//! The codes with which the program ends, and its messages on standard error.

// A thread of its own writes the messages: a pipe may be full, and a terminal stopped. Before, the
// thread of the clients waited to write a line of the log, and the program waited for standard
// error to say why the lock was lost (`a_command_goes_on_though_nobody_reads_the_log`).

use std::{
    env,
    fmt::Display,
    io::{self, IsTerminal, Write},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Duration,
};

use nix::sys::signal::{SigSet, Signal};
use quorate::{Cause, Error, ErrorKind, ServerError, Verdict, log};
use tracing::level_filters::LevelFilter;

/// The numbers of `sysexits.h`, where it has one that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Fine = 0,
    Warnings = 1,
    Errors = 2,
    Usage = 64,
    NotHolding = 65,
    Unavailable = 69,
    Software = 70,
    System = 71,
    Busy = 75,
    Lost = 76,
    Config = 78,
    NotExecutable = 126,
    NotFound = 127,
}

/// The codes, as the help shows them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
    0      all went well
    1      `doctor` has warnings; `break` was answered with no; or nobody leads
    2      `doctor` has errors
   64      the command line cannot be used
   65      the hold that `break` was to end does not hold the lock; or the ticket has ended
   69      no quorum: too few voters could be reached, or answered
   70      a fault of this program
   71      the operating system refused something, such as a new process
   75      the lock is taken, or was not acquired in time
   76      the lock was lost, also if the command ended well after that
   78      a setting cannot be used, or does not match that of other clients
  126      the command cannot be executed
  127      the command was not found
  128 + n  ended by the signal n
`run` and `lead` end with the code of their command where none of 64 to 78 applies. With
--command-code, these are never codes of the command.";

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// Why the program fails: a message, and a line for each cause.
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) what: String,
    /// One for each voter; the last may say what to set.
    pub(crate) causes: Vec<String>,
    /// Whether it stays until somebody changes something.
    pub(crate) is_permanent: bool,
}

impl Failure {
    pub(crate) fn new(code: Code, what: impl Into<String>) -> Self {
        Self { code, what: what.into(), causes: Vec::new(), is_permanent: false }
    }

    /// Whether another try may succeed, although nobody changes anything.
    pub(crate) fn passes(&self) -> bool {
        // Only errors of the library say whether they are permanent, so the code matters, too.
        matches!(self.code, Code::Lost | Code::Unavailable) && !self.is_permanent
    }

    /// The operating system has refused something.
    pub(crate) fn system<E: Display>(what: impl Display) -> impl FnOnce(E) -> Self {
        move |cause| Self::new(Code::System, format!("{what}: {cause}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Invalid | ErrorKind::ConfigurationMismatch => Code::Config,
            ErrorKind::NotConnected | ErrorKind::NoQuorum | ErrorKind::Overloaded => {
                Code::Unavailable
            }
            ErrorKind::Busy => Code::Busy,
            ErrorKind::Lost => Code::Lost,
            ErrorKind::NotHolding | ErrorKind::TicketEnded => Code::NotHolding,
            _ => Code::Software,
        };
        let causes: Vec<_> = error.voters().iter().map(ToString::to_string).collect();
        let what = error.to_string();
        // The library's text has all causes in one line behind the message. Here each has a line.
        let listed = format!(" ({})", causes.join("; "));
        let what = what.strip_suffix(&listed).unwrap_or(&what).to_owned();
        let login = error.voters().iter().find_map(|report| match &report.verdict {
            Verdict::Unknown(cause) => login_to_set(cause),
            _ => None,
        });
        let causes = causes.iter().cloned().chain(login.map(str::to_owned)).collect();
        Self { code, what, causes, is_permanent: error.is_permanent() }
    }
}

/// The setting to correct, if a server refused the login.
pub(crate) fn login_to_set(cause: &Cause) -> Option<&'static str> {
    match cause.reason()?.server_error()? {
        ServerError::NotLoggedIn => Some(
            "set QUORATE_PASSWORD_FILE or --password-file to a file with the password, and \
             QUORATE_USER or --user unless the user is `default`",
        ),
        ServerError::WrongPassword => Some(
            "correct the user (QUORATE_USER or --user) or the password (QUORATE_PASSWORD_FILE or \
             --password-file)",
        ),
        _ => None,
    }
}

/// How long the end of the program waits until its last messages are written.
// Not for ever: nobody may read the pipe (`the_program_ends_though_nobody_reads_why`).
const LAST: Duration = Duration::from_secs(1);

pub(crate) struct Console {
    quiet: bool,
    pub(crate) is_verbose: bool,
    colour: bool,
    errors: StandardError,
}

impl Console {
    /// A console. With `verbose`, it also shows the library's log from now on.
    pub(crate) fn new(quiet: bool, verbose: u8) -> Self {
        let level = match verbose {
            0 => LevelFilter::OFF,
            1 => LevelFilter::INFO,
            _ => LevelFilter::DEBUG,
        };
        let errors = StandardError::start();
        if level != LevelFilter::OFF {
            let log = tracing_subscriber::fmt().with_max_level(level).with_ansi(false);
            let errors = errors.clone();
            log.with_writer(move || errors.clone()).init();
        }
        let is_verbose = verbose > 0;
        Self { quiet, is_verbose, colour: has_colour(&io::stderr()), errors }
    }

    /// Whether a terminal shows the messages.
    pub(crate) fn is_watched(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Says what the program waits for.
    pub(crate) fn note(&self, what: impl Display) {
        self.say("36", what);
    }

    pub(crate) fn failure(&self, failure: &Failure) {
        // The library's thread of the log has the events that led to this, and may be behind.
        log::flush(LAST);
        self.say("31", &failure.what);
        for cause in &failure.causes {
            self.line(format_args!("  {cause}"));
        }
    }

    /// Warns of something, while the program goes on.
    pub(crate) fn warn(&self, what: impl Display) {
        if !self.quiet {
            self.say("33", what);
        }
    }

    fn say(&self, colour: &str, what: impl Display) {
        if self.colour {
            self.line(format_args!("\x1b[1;{colour}mquorate:\x1b[0m {what}"));
        } else {
            self.line(format_args!("quorate: {what}"));
        }
    }

    fn line(&self, text: impl Display) {
        self.errors.say(format!("{text}\n").into_bytes());
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        log::flush(LAST);
        self.errors.finish();
    }
}

/// The queue of texts for standard error.
#[derive(Clone)]
struct StandardError {
    texts: Sender<ErrorText>,
    backlog: Arc<Backlog>,
}

enum ErrorText {
    Said(Vec<u8>),
    /// Answered when all texts before it have been written.
    End(Sender<()>),
}

#[derive(Default)]
struct Backlog {
    waiting: AtomicUsize,
    /// How many texts found no room since the last message about that.
    missing: AtomicUsize,
}

impl StandardError {
    /// How many texts may wait.
    // A bounded channel would not do: `End` must find room when it is full.
    const MOST: usize = 4096;

    fn start() -> Self {
        let ((texts, said), backlog) = (mpsc::channel(), Arc::<Backlog>::default());
        let of_thread = Arc::clone(&backlog);
        let thread = thread::Builder::new().name("quorate-stderr".into());
        // Without a thread nothing is written, but the lock is kept all the same.
        let _ = thread.spawn(move || Self::write_all(&said, &of_thread));
        Self { texts, backlog }
    }

    fn write_all(texts: &Receiver<ErrorText>, backlog: &Backlog) {
        // A process in the background that writes to the terminal may be stopped by this signal.
        let _ = SigSet::from(Signal::SIGTTOU).thread_block();
        let mut stderr = io::stderr();
        for text in texts {
            match text {
                ErrorText::End(done) => {
                    let _ = done.send(());
                }
                ErrorText::Said(text) => {
                    // An error here has nowhere to go.
                    let _ = stderr.write_all(&text);
                    let missing = backlog.missing.swap(0, Ordering::Relaxed);
                    if missing > 0 {
                        let _ = writeln!(stderr, "quorate: {missing} messages are missing");
                    }
                    backlog.waiting.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    }

    fn say(&self, text: Vec<u8>) {
        let Backlog { waiting, missing } = &*self.backlog;
        if waiting.fetch_add(1, Ordering::Relaxed) < Self::MOST {
            let _ = self.texts.send(ErrorText::Said(text));
        } else {
            waiting.fetch_sub(1, Ordering::Relaxed);
            missing.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for a while until all has been written.
    fn finish(&self) {
        let (done, written) = mpsc::channel();
        if self.texts.send(ErrorText::End(done)).is_ok() {
            let _ = written.recv_timeout(LAST);
        }
    }
}

// For the library's log: each event is one text, so none is cut by another.
impl Write for StandardError {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.say(text.to_vec());
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether to write there in colour.
pub(crate) fn has_colour(stream: &impl IsTerminal) -> bool {
    // By <https://no-color.org>: any value but an empty one means no colour.
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb
}
