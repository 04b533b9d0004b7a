//! A Lua script, and what it takes.

use std::{ops::Deref, sync::OnceLock};

/// What scripts of several kinds are made of.
const LIBRARIES: &str = include_str!("../../lua/lib.lua");

/// A script of a test: what each request has of KEYS and of ARGV, with commas between them, and
/// its text.
#[cfg(test)]
macro_rules! test_script {
    ($name:literal, $keys:literal, $args:literal, $text:literal) => {
        $crate::scripts::Script::new(
            $name,
            concat!(
                "\n----\n-- ",
                $name,
                ": of a test\n-- libraries: none\n-- KEYS, for each request: ",
                $keys,
                "\n-- ARGV, for all requests: none\n-- ARGV, for each request: ",
                $args,
                "\n-- returns, for each request: code, ms, id\n",
                $text
            ),
        )
    };
}

#[cfg(test)]
pub(crate) use test_script;

/// One Lua script. What it is made of and what it takes stands in its header, and nowhere else.
#[derive(Debug)]
pub(crate) struct Script {
    /// As the first line of its header says.
    pub(crate) name: &'static str,
    /// Whether its answers are votes. Then it is told where the fingerprint of the voter's data is,
    /// behind all other keys.
    pub(crate) votes: bool,
    file: &'static str,
    text: OnceLock<Text>,
}

/// What its file says of a script.
#[derive(Debug)]
pub(crate) struct Text {
    /// What is loaded into the server.
    pub(crate) source: String,
    /// What one request puts into KEYS.
    pub(crate) keys: Vec<&'static str>,
    /// What stands at the beginning of ARGV, once for all requests.
    pub(crate) shared: Vec<&'static str>,
    /// What one request puts into ARGV.
    pub(crate) args: Vec<&'static str>,
    /// How many entries of the reply a request has.
    pub(crate) width: usize,
}

impl Script {
    /// The part of a file of `lua/` that begins with this name.
    pub(crate) const fn new(name: &'static str, file: &'static str) -> Self {
        Self { name, votes: false, file, text: OnceLock::new() }
    }

    /// The same with answers that are votes.
    pub(crate) const fn that_votes(mut self) -> Self {
        self.votes = true;
        self
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

impl Deref for Script {
    type Target = Text;

    fn deref(&self) -> &Text {
        self.text.get_or_init(|| Text::read(self.name, self.file))
    }
}

/// Two scripts are the same when they are the same static.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Script {}

impl Text {
    /// The libraries, in their order, and behind them the script's own part of the file.
    ///
    /// Libraries that few requests need stand inside a function `rest`, which returns some
    /// functions of them. A server makes all functions of a script anew at each call, which takes
    /// it as long as some commands do. These it makes when `rest` is called.
    fn read(name: &str, file: &'static str) -> Self {
        let found = |name| part(file, name).or_else(|| part(LIBRARIES, name));
        let library = |name| found(name).unwrap_or_else(|| panic!("no file has `{name}`"));
        let own = library(name);
        let listed = |label| names(own, label).unwrap_or_else(|| panic!("{name} lacks `{label}`"));
        let libraries = |names: Vec<_>| names.into_iter().map(library).collect::<String>();
        let rest = names(own, "libraries of rest").map_or_else(String::new, |rest| {
            let (rest, returned) = (libraries(rest), listed("rest returns").join(", "));
            format!("local function rest()\n{rest}return {returned}\nend\n")
        });
        Self {
            source: libraries(listed("libraries")) + &rest + own,
            keys: listed("KEYS, for each request"),
            shared: listed("ARGV, for all requests"),
            args: listed("ARGV, for each request"),
            width: listed("returns, for each request").len(),
        }
    }
}

/// What of a file stands between two lines `----` and begins with this name.
fn part(file: &'static str, name: &str) -> Option<&'static str> {
    let start = format!("-- {name}: ");
    file.split("\n----\n").find(|part| part.starts_with(&start))
}

/// The names behind a label of the header, with commas between them; `none`: none.
fn names(part: &'static str, label: &str) -> Option<Vec<&'static str>> {
    let line = part
        .lines()
        .find_map(|line| line.strip_prefix("-- ")?.strip_prefix(label)?.strip_prefix(": "))?;
    Some(line.split(", ").filter(|name| *name != "none").collect())
}
