//! Shows something again and again, in place where it is a terminal.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use terminal_size::{Height, Width, terminal_size_of};
use tokio::time;

use crate::{
    console::has_colour,
    exit::{Code, Failure},
    frame::Frame,
    interrupt::Interrupts,
};

/// What is shown: lines for people, or one line for programs.
pub(crate) enum Picture {
    Frame(Frame),
    Json(serde_json::Value),
}

/// How wide the terminal is, if standard output is one.
pub(crate) fn width() -> Option<usize> {
    let (Width(width), _) = terminal_size_of(io::stdout())?;
    Some(width.into())
}

/// Writes to standard output what may be no text.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    unless_gone(write(bytes))
}

/// Writes it once.
pub(crate) fn print(shown: &Picture) -> Result<(), Failure> {
    let text = match shown {
        Picture::Frame(frame) => frame.shown(has_colour(&io::stdout())),
        Picture::Json(value) => format!("{value:#}\n"),
    };
    print_bytes(text.as_bytes())
}

/// Shows what `look` makes, now and after each interval, until a signal ends it. With programs as
/// readers, one line of JSON each time.
pub(crate) async fn repeat(
    interval: Duration,
    mut look: impl AsyncFnMut() -> Result<Picture, Failure>,
) -> Result<(), Failure> {
    let mut interrupts = Interrupts::listen()?;
    let mut screen = Screen::default();
    let showing = async {
        loop {
            let shown = look().await?;
            if let Err(cause) = screen.show(&shown) {
                return unless_gone(Err(cause));
            }
            time::sleep(interval).await;
        }
    };
    tokio::select! {
        failed = showing => failed,
        () = interrupts.next() => Ok(()),
    }
}

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// The terminal, with what it showed before kept until the end.
#[derive(Default)]
struct Screen {
    is_entered: bool,
    /// Stays on the terminal at the end.
    last: String,
}

impl Screen {
    fn show(&mut self, shown: &Picture) -> io::Result<()> {
        let stdout = io::stdout();
        let frame = match shown {
            Picture::Json(value) => return write(format!("{value}\n").as_bytes()),
            Picture::Frame(frame) if !stdout.is_terminal() => {
                return write(format!("{}\n", frame.shown(false)).as_bytes());
            }
            Picture::Frame(frame) => frame,
        };
        let (Width(width), Height(height)) =
            terminal_size_of(&stdout).unwrap_or((Width(80), Height(24)));
        let has_colour = has_colour(&stdout);
        self.last = frame.shown(has_colour);
        let mut text = String::new();
        if !std::mem::replace(&mut self.is_entered, true) {
            text.push_str(ENTER);
        }
        text.push_str("\x1b[H");
        let lines = frame.cut(width.into(), height.into(), has_colour);
        // Without an end behind the last: that would scroll a full screen.
        text.push_str(&lines.join("\x1b[K\n"));
        text.push_str("\x1b[K\x1b[J");
        write(text.as_bytes())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.is_entered {
            // Where nobody reads it, nothing is to be done.
            let _ = write(format!("{LEAVE}{}", self.last).as_bytes());
        }
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Whoever reads it may have gone: then there is nobody to tell.
fn unless_gone(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Code::System, format!("standard output: {cause}")))
        }
        _ => Ok(()),
    }
}
