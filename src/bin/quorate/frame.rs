//! Lines of text for people: tables, times, and what comes from others.

use std::{
    fmt::{self, Write},
    mem,
    time::Duration,
};

/// What a line says to somebody who only looks at its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Heading,
    Good,
    Doubtful,
    Bad,
}

impl Tone {
    fn colour(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Heading => "1",
            Self::Good => "32",
            Self::Doubtful => "33",
            Self::Bad => "31",
        }
    }
}

/// Some lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame(Vec<(Tone, String)>);

impl Frame {
    pub(crate) fn line(&mut self, tone: Tone, text: impl Into<String>) {
        self.0.push((tone, text.into()));
    }

    pub(crate) fn blank(&mut self) {
        self.line(Tone::Plain, "");
    }

    /// A text behind its head, broken between words where it is wider than this.
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
        self.line(Tone::Heading, row(&mut headings.iter().copied()));
        for (tone, texts) in rows {
            self.line(*tone, row(&mut texts.iter().map(String::as_str)));
        }
    }

    /// All lines, with their ends.
    pub(crate) fn shown(&self, has_colour: bool) -> String {
        let lines = self.0.iter().map(|(tone, text)| coloured(*tone, text, has_colour) + "\n");
        lines.collect()
    }

    /// As many lines, and as much of each, as a screen has room for.
    pub(crate) fn cut(&self, width: usize, height: usize, has_colour: bool) -> Vec<String> {
        let cut = |(tone, text): &(Tone, String)| {
            let text: String = text.chars().take(width).collect();
            coloured(*tone, &text, has_colour)
        };
        self.0.iter().take(height).map(cut).collect()
    }
}

fn coloured(tone: Tone, text: &str, has_colour: bool) -> String {
    if has_colour && tone != Tone::Plain {
        format!("\x1b[{}m{text}\x1b[0m", tone.colour())
    } else {
        text.to_owned()
    }
}

/// A text of somebody else, such as the name of a lock: nothing in it can move the cursor.
pub(crate) fn quoted(text: &str) -> String {
    let shown = |sign: char| match sign {
        sign if sign.is_control() => sign.escape_default().to_string(),
        sign => sign.to_string(),
    };
    text.chars().map(shown).collect()
}

/// So many of what this word says.
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

/// The part of a bar of this width that is full when so much of all the time is there.
pub(crate) fn share_of(time: Duration, all: Duration, width: usize) -> usize {
    let full = time.as_nanos().saturating_mul(width as u128) / all.as_nanos().max(1);
    usize::try_from(full).map_or(width, |full| full.min(width))
}

/// One time, or another text where there is none.
pub(crate) fn time_or(time: Option<Duration>, none: &str) -> String {
    time.map_or_else(|| none.to_owned(), |time| Short(time).to_string())
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
