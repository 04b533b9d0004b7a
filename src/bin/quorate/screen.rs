//! Standard output: lines of text for people, or JSON for programs.

use std::{
    fmt::{self, Write as _},
    io::{self, IsTerminal, Write},
    mem,
    time::Duration,
};

use quorate::HoldId;
use terminal_size::{Height, Width, terminal_size_of};
use tokio::time;

use crate::{
    console::{Failure, has_colour},
    process::{INTERRUPTS, Signals},
};

/// The meaning of a line, which its colour shows. The number is the terminal's for that colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain = 0,
    Heading = 1,
    Bad = 31,
    Good = 32,
    Doubtful = 33,
}

/// Some lines.
#[derive(Default)]
pub(crate) struct Frame(Vec<Line>);

struct Line {
    tone: Tone,
    text: String,
    name: Option<NameInLine>,
}

/// The place of a name in a line, in columns.
// On a narrow screen the name is shortened, and not what the line says about it: `status --watch`
// cut the holder off (`on_a_narrow_screen_a_name_is_shortened_and_its_holder_is_not`).
#[derive(Clone, Copy)]
struct NameInLine {
    start: usize,
    width: usize,
    /// The width of the line; in a table the width of its widest line, so that columns stay
    /// columns.
    total: usize,
}

impl Frame {
    pub(crate) fn line(&mut self, tone: Tone, text: impl Into<String>) {
        self.0.push(Line { tone, text: text.into(), name: None });
    }

    /// A line about this name.
    pub(crate) fn about(&mut self, tone: Tone, [before, name, after]: [&str; 3]) {
        let text = format!("{before}{name}{after}");
        let [start, width, total] = [before, name, &text].map(|text| text.chars().count());
        self.0.push(Line { tone, text, name: Some(NameInLine { start, width, total }) });
    }

    pub(crate) fn blank(&mut self) {
        self.line(Tone::Plain, "");
    }

    /// A text behind its head, broken between words if it is wider than this.
    pub(crate) fn wrapped(&mut self, tone: Tone, head: &str, text: &str, width: Option<usize>) {
        let indent = head.chars().count();
        let mut line = head.to_owned();
        let mut columns = indent;
        for word in text.split(' ') {
            let length = word.chars().count();
            if columns > indent {
                if width.is_some_and(|width| columns + 1 + length > width) {
                    self.line(tone, mem::replace(&mut line, " ".repeat(indent)));
                    columns = indent;
                } else {
                    line.push(' ');
                    columns += 1;
                }
            }
            line.push_str(word);
            columns += length;
        }
        self.line(tone, line);
    }

    /// Columns as wide as their longest text, below their headings.
    pub(crate) fn table(&mut self, headings: &[&str], rows: &[(Tone, Vec<String>)]) {
        self.rows(headings, rows, false);
    }

    /// The same, with names in the first column.
    pub(crate) fn table_of_names(&mut self, headings: &[&str], rows: &[(Tone, Vec<String>)]) {
        self.rows(headings, rows, true);
    }

    fn rows(&mut self, headings: &[&str], rows: &[(Tone, Vec<String>)], has_names: bool) {
        let texts = |column: usize| rows.iter().map(move |(_, row)| row[column].as_str());
        let width = |column: usize| {
            let texts = texts(column).chain([headings[column]]);
            texts.map(|text| text.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..headings.len()).map(width).collect();
        let row = |texts: &mut dyn Iterator<Item = &str>| {
            let mut line = String::new();
            for (text, width) in texts.zip(&widths) {
                let _ = write!(line, "{text:width$}  ");
            }
            line.trim_end().to_owned()
        };
        let name = has_names.then(|| {
            let total = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
            NameInLine { start: 0, width: widths[0], total }
        });
        let text = row(&mut headings.iter().copied());
        self.0.push(Line { tone: Tone::Heading, text, name });
        for (tone, texts) in rows {
            let text = row(&mut texts.iter().map(String::as_str));
            self.0.push(Line { tone: *tone, text, name });
        }
    }

    /// All lines, with their ends.
    pub(crate) fn shown(&self, has_colour: bool) -> String {
        let lines = self.0.iter().map(|line| coloured(line.tone, &line.text, has_colour) + "\n");
        lines.collect()
    }

    /// The lines that fit a screen, and as much of each as fits.
    pub(crate) fn cut(&self, width: usize, height: usize, has_colour: bool) -> Vec<String> {
        let cut = |line: &Line| {
            let coloured = |text: &String| coloured(line.tone, text, has_colour);
            line.fitted(width).iter().map(coloured).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(cut).take(height).collect()
    }
}

impl Line {
    /// The shortest width of a shortened name.
    const NAME: usize = 9;

    /// The line, cut to this width; or in several lines, if it is about a name.
    fn fitted(&self, width: usize) -> Vec<String> {
        let Some(NameInLine { start, width: room, total }) = self.name else {
            return vec![self.text.chars().take(width).collect()];
        };
        let left = room.saturating_sub(total.saturating_sub(width)).max(room.min(Self::NAME));
        let signs: Vec<char> = self.text.chars().collect();
        let (before, rest) = signs.split_at(start);
        let (name, after) = rest.split_at(room.min(rest.len()));
        let text = |signs: &[char]| signs.iter().collect::<String>();
        let name = shortened(text(name).trim_end(), left);
        let mut rest = format!("{}{name:left$}{}", text(before), text(after));
        let mut lines = Vec::new();
        while rest.chars().count() > width.max(1) {
            let end = rest.char_indices().nth(width.max(1)).map_or(rest.len(), |(at, _)| at);
            // Between two words, if there are two.
            let is_between = rest[end..].starts_with(' ');
            let blank = rest[..end].rfind(' ').filter(|at| *at > 0 && !is_between);
            let end = blank.unwrap_or(end);
            let next = rest.split_off(end).trim_start().to_owned();
            lines.push(mem::replace(&mut rest, next).trim_end().to_owned());
        }
        lines.push(rest);
        lines
    }
}

/// A name with at most so many letters.
fn shortened(name: &str, most: usize) -> String {
    // Cut in the middle: names begin alike, and differ at their ends, as `invoice:41` and `:42`.
    let count = name.chars().count();
    if count <= most {
        return name.to_owned();
    }
    let (head, tail) = (most / 2, most.saturating_sub(1) - most / 2);
    let begin = name.chars().take(head);
    begin.chain(['…']).chain(name.chars().skip(count - tail)).collect()
}

fn coloured(tone: Tone, text: &str, has_colour: bool) -> String {
    if has_colour && tone != Tone::Plain {
        format!("\x1b[{}m{text}\x1b[0m", tone as u8)
    } else {
        text.to_owned()
    }
}

/// A text of somebody else, such as the name of a lock, without control characters.
pub(crate) fn quoted(text: &str) -> String {
    // Otherwise a lock with a name of escape sequences could forge lines on an operator's terminal
    // (`what_others_wrote_cannot_move_the_cursor`).
    let shown = |sign: char| match sign {
        sign if sign.is_control() => sign.escape_default().to_string(),
        sign => sign.to_string(),
    };
    text.chars().map(shown).collect()
}

/// The note of a hold in brackets behind a blank, or nothing.
pub(crate) fn noted(hold: &HoldId) -> String {
    hold.note().map_or_else(String::new, |note| format!(" ({note:?})"))
}

/// A count and its word: `1 lock`, `2 locks`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

/// A time with three figures: `1.23ms`, `29.8s`.
pub(crate) struct Short(pub(crate) Duration);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let step = 10_u128.pow(nanos.checked_ilog10().unwrap_or(0).saturating_sub(2));
        let rounded = u64::try_from((nanos + step / 2) / step * step).unwrap_or(u64::MAX);
        write!(f, "{:?}", Duration::from_nanos(rounded))
    }
}

/// A time that may be long: `29.8s`, `5m`, `7h`, `3d`.
pub(crate) fn long(time: Duration) -> String {
    match time.as_secs() / 60 {
        0 | 1 => Short(time).to_string(),
        minutes @ ..120 => format!("{minutes}m"),
        minutes @ ..2_880 => format!("{}h", minutes / 60),
        minutes => format!("{}d", minutes / 1_440),
    }
}

/// How much of a bar of this width is full when so much of all the time has passed.
pub(crate) fn share_of(time: Duration, all: Duration, width: usize) -> usize {
    let full = time.as_nanos().saturating_mul(width as u128) / all.as_nanos().max(1);
    usize::try_from(full).map_or(width, |full| full.min(width))
}

pub(crate) fn time_or(time: Option<Duration>, none: &str) -> String {
    time.map_or_else(|| none.to_owned(), |time| Short(time).to_string())
}

/// The output of a command: lines for people, or JSON for programs.
pub(crate) enum Picture {
    Frame(Frame),
    Json(serde_json::Value),
}

impl Picture {
    pub(crate) fn new(
        is_json: bool,
        json: impl FnOnce() -> serde_json::Value,
        frame: impl FnOnce() -> Frame,
    ) -> Self {
        if is_json { Self::Json(json()) } else { Self::Frame(frame()) }
    }
}

/// The width of the terminal, if standard output is one.
pub(crate) fn width() -> Option<usize> {
    let (Width(width), _) = terminal_size_of(io::stdout())?;
    Some(width.into())
}

/// Writes bytes to standard output: the value of a leader need not be text.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    unless_gone(write(bytes))
}

pub(crate) fn print(shown: &Picture) -> Result<(), Failure> {
    let text = match shown {
        Picture::Frame(frame) => frame.shown(has_colour(&io::stdout())),
        Picture::Json(value) => format!("{value:#}\n"),
    };
    print_bytes(text.as_bytes())
}

/// Shows what `look` makes, now and after each interval, until a signal ends it.
pub(crate) async fn repeat(
    interval: Duration,
    mut look: impl AsyncFnMut() -> Result<Picture, Failure>,
) -> Result<(), Failure> {
    let mut interrupts = Signals::listen(&INTERRUPTS)?;
    let mut screen = Screen::default();
    let showing = async {
        loop {
            let shown = look().await?;
            // A reader that has gone ends it, as with `quorate status --watch | head`.
            if let Err(cause) = screen.show(&shown) {
                return unless_gone(Err(cause));
            }
            time::sleep(interval).await;
        }
    };
    tokio::select! {
        failed = showing => failed,
        _ = interrupts.next() => Ok(()),
    }
}

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// The terminal, while a picture is drawn again and again.
// On the alternate screen: what the terminal showed before comes back at the end.
#[derive(Default)]
struct Screen {
    is_entered: bool,
    /// The last picture, which stays on the terminal at the end.
    last: String,
}

impl Screen {
    fn show(&mut self, shown: &Picture) -> io::Result<()> {
        let stdout = io::stdout();
        let frame = match shown {
            // One line for each look, so that a program can read them one by one.
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
        if !mem::replace(&mut self.is_entered, true) {
            text.push_str(ENTER);
        }
        // From the top, and each line is cleared behind its text: to clear the screen first would
        // flicker.
        text.push_str("\x1b[H");
        let lines = frame.cut(width.into(), height.into(), has_colour);
        // No end of line behind the last line: it would scroll a full screen.
        text.push_str(&lines.join("\x1b[K\n"));
        text.push_str("\x1b[K\x1b[J");
        write(text.as_bytes())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.is_entered {
            // A reader that has gone misses nothing.
            let _ = write(format!("{LEAVE}{}", self.last).as_bytes());
        }
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

fn unless_gone(written: io::Result<()>) -> Result<(), Failure> {
    // `quorate status | head` is no failure.
    match written {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::system("standard output")(cause))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_text() {
        let mut frame = Frame::default();
        let row = |one: &str, other: &str| vec![one.to_owned(), other.to_owned()];
        let rows = [(Tone::Plain, row("é", "long text")), (Tone::Bad, row("longer", ""))];
        frame.table(&["A", "B"], &rows);
        assert_eq!(frame.shown(false), "A       B\né       long text\nlonger\n");
        assert_eq!(frame.cut(3, 2, false), ["A  ", "é  "]);
        assert!(frame.shown(true).ends_with("\x1b[31mlonger\x1b[0m\n"));
    }

    #[test]
    fn a_name_gives_way_to_what_is_said_of_it() {
        let mut frame = Frame::default();
        frame.about(Tone::Plain, ["mutex `", "invoice:1234567890", "`: held by web-1"]);
        let row = |name: &str| vec![name.to_owned(), "5s".to_owned(), "web-1".to_owned()];
        let rows = [row("invoice:1234567890"), row("b")].map(|row| (Tone::Plain, row));
        frame.table_of_names(&["LOCK", "LEFT", "HELD BY"], &rows);
        let cut = |width| frame.cut(width, 9, false);
        let all = ["mutex `invoice:1234567890`: held by web-1"];
        assert_eq!(cut(41)[..1], all);
        assert_eq!(cut(40)[0], "mutex `invoice:…34567890`: held by web-1");
        let rows = [
            "LOCK             LEFT  HELD BY",
            "invoice…4567890  5s    web-1",
            "b                5s    web-1",
        ];
        assert_eq!(cut(30)[2..], rows);
        // With the least of a name, the rest goes on.
        assert_eq!(cut(20)[..2], ["mutex `invo…7890`:", "held by web-1"]);
        assert_eq!(cut(20)[2..6], ["LOCK       LEFT", "HELD BY", "invo…7890  5s", "web-1"]);
        assert_eq!(frame.cut(41, 2, false).len(), 2);
    }

    #[test]
    fn a_text_is_broken_between_words_and_stands_behind_its_head() {
        let lines = |width| {
            let mut frame = Frame::default();
            frame.wrapped(Tone::Plain, "é  ", "one two three", width);
            frame.shown(false)
        };
        assert_eq!(lines(None), "é  one two three\n");
        assert_eq!(lines(Some(10)), "é  one two\n   three\n");
        assert_eq!(lines(Some(9)), "é  one\n   two\n   three\n");
        assert_eq!(lines(Some(1)), "é  one\n   two\n   three\n", "a word is never broken");
    }

    #[test]
    fn what_others_wrote_cannot_move_the_cursor() {
        assert_eq!(quoted("a\x1b[2Jb\r\nc é"), "a\\u{1b}[2Jb\\r\\nc é");
    }

    #[test]
    fn a_bar_is_as_full_as_the_time_is_over() {
        let secs = Duration::from_secs;
        let shares = [0, 5, 9, 10, 11].map(|time| share_of(secs(time), secs(10), 8));
        assert_eq!(shares, [0, 4, 7, 8, 8]);
        assert_eq!(share_of(secs(1), secs(0), 8), 8);
    }

    #[test]
    fn times_have_three_figures_and_long_ones_one_unit() {
        let minutes = [1, 2, 119, 120, 2_879, 2_880];
        let shown = minutes.map(|minutes| long(Duration::from_secs(minutes * 60)));
        assert_eq!(shown, ["60s", "2m", "119m", "2h", "47h", "2d"]);
        let short = |nanos| Short(Duration::from_nanos(nanos)).to_string();
        assert_eq!([1_234_567, 29_786_000_000, 0].map(short), ["1.23ms", "29.8s", "0ns"]);
    }
}
