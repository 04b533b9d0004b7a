//! A Lua script, and what it takes.

use std::ops::Deref;

/// A script by its path under `lua/`. Its source is its libraries, in their order, and its own
/// file.
///
/// `rest "f, g": [..]` are libraries that few requests need. They stand inside a function `rest`,
/// which returns the functions `f` and `g` of them. A server makes all functions of a script anew
/// at each call, which takes it as long as some commands do. These it makes when `rest` is called.
macro_rules! script {
    ($name:literal, [$($lib:literal),*] $(, rest $functions:literal: [$($rest:literal),*])?) => {
        Script::new(
            $name,
            concat!(
                $(include_str!(concat!("../../lua/lib/", $lib, ".lua")),)*
                $(
                    "local function rest()\n",
                    $(include_str!(concat!("../../lua/lib/", $rest, ".lua")),)*
                    "return ", $functions, "\nend\n",
                )?
                include_str!(concat!("../../lua/", $name, ".lua"))
            ),
            include_str!(concat!("../../lua/", $name, ".lua")),
        )
    };
}

/// A script of a test: what each request has of KEYS and of ARGV, with commas between them, and
/// its text.
#[cfg(test)]
macro_rules! test_script {
    ($name:literal, $keys:literal, $args:literal, $text:literal) => {
        $crate::scripts::Script::new(
            $name,
            $text,
            concat!(
                "-- KEYS, for each request: ",
                $keys,
                "\n-- ARGV, for all requests: none\n-- ARGV, for each request: ",
                $args,
                "\n-- returns, for each request: code, ms, id\n"
            ),
        )
    };
}

#[cfg(test)]
pub(crate) use test_script;

/// One Lua script. What it takes stands in the header of its file, and nowhere else.
#[derive(Debug)]
pub(crate) struct Script {
    /// Its path under `lua/`, without the ending.
    pub(crate) name: &'static str,
    /// The text that is loaded into the server.
    pub(crate) source: &'static str,
    /// What one request puts into KEYS.
    pub(crate) keys: Labels,
    /// What stands at the beginning of ARGV, once for all requests.
    pub(crate) shared: Labels,
    /// What one request puts into ARGV.
    pub(crate) args: Labels,
    /// How many entries of the reply a request has.
    pub(crate) width: usize,
    /// Whether its answers are votes. Then it is told where the mark of the voter's data is, behind
    /// all other keys.
    pub(crate) votes: bool,
}

impl Script {
    /// `file`: its own, with the header.
    pub(crate) const fn new(name: &'static str, source: &'static str, file: &'static str) -> Self {
        Self {
            name,
            source,
            keys: Labels::read(file, "-- KEYS, for each request: "),
            shared: Labels::read(file, "-- ARGV, for all requests: "),
            args: Labels::read(file, "-- ARGV, for each request: "),
            width: Labels::read(file, "-- returns, for each request: ").count,
            votes: false,
        }
    }

    /// The same with answers that are votes.
    pub(crate) const fn that_votes(self) -> Self {
        Self { votes: true, ..self }
    }

    /// Whether the node adds, behind the other shared arguments, the command that publishes.
    pub(crate) fn publishes(&self) -> bool {
        self.shared.last() == Some(&"publish")
    }

    /// Whether an argument is a channel, or what the names of channels begin with. In a cluster it
    /// has another name.
    pub(crate) fn is_channel(arg: &str) -> bool {
        matches!(arg, "calls" | "channel" | "news")
    }
}

/// Two scripts are the same when they are the same static.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Script {}

/// The names in one line of a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Labels {
    names: [&'static str; Self::MOST],
    count: usize,
}

impl Labels {
    const MOST: usize = 8;

    /// Those behind `label` at the beginning of a line, with commas between them; `none`: none. It
    /// is no program without such a line.
    const fn read(file: &'static str, label: &str) -> Self {
        let mut read = Self { names: [""; Self::MOST], count: 0 };
        let mut line = after(file, label);
        loop {
            let end = position(line, b"\n");
            let next = position(line, b", ");
            let (name, _) = line.split_at(if next < end { next } else { end });
            if !starts_with(name, "none") {
                read.names[read.count] = name;
                read.count += 1;
            }
            if end < next || next == line.len() {
                return read;
            }
            (_, line) = line.split_at(next + 2);
        }
    }
}

impl Deref for Labels {
    type Target = [&'static str];

    fn deref(&self) -> &Self::Target {
        &self.names[..self.count]
    }
}

/// What stands behind `label`, which is the beginning of a line.
const fn after<'a>(file: &'a str, label: &str) -> &'a str {
    let mut rest = file;
    while !starts_with(rest, label) {
        let end = position(rest, b"\n");
        assert!(end < rest.len(), "the header lacks a line");
        (_, rest) = rest.split_at(end + 1);
    }
    rest.split_at(label.len()).1
}

const fn starts_with(text: &str, start: &str) -> bool {
    let (text, start) = (text.as_bytes(), start.as_bytes());
    let mut at = 0;
    while at < start.len() {
        if at == text.len() || text[at] != start[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Where `what` is in the text, or the end of the text.
const fn position(text: &str, what: &[u8]) -> usize {
    let text = text.as_bytes();
    let mut at = 0;
    while at + what.len() <= text.len() {
        if text[at] == what[0] && (what.len() == 1 || text[at + 1] == what[1]) {
            return at;
        }
        at += 1;
    }
    text.len()
}
