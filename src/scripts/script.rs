//! A Lua script with its keys and arguments.

use std::{ops::Deref, sync::OnceLock};

/// The code that scripts of several kinds share.
const LIBRARIES: &str = include_str!("../../lua/lib.lua");

/// A script of a test: the names of the keys and of the arguments of each request, with commas
/// between them, and the code.
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

/// One Lua script.
// Its libraries, keys and arguments are named in its header, and nowhere else: a header that is
// only a comment rots. `headers.rs` compares it with the code.
#[derive(Debug)]
pub(crate) struct Script {
    /// The name in the first line of its header.
    pub(crate) name: &'static str,
    // The fingerprint is then its last key. So each grant shows whether the voter still has the
    // data that it had, before the vote counts (guarantee 4).
    /// Whether its answers are votes.
    pub(crate) votes: bool,
    file: &'static str,
    text: OnceLock<Text>,
}

/// The source of a script, and the names in its header.
#[derive(Debug)]
pub(crate) struct Text {
    /// The source that is loaded into the server.
    pub(crate) source: String,
    /// The keys of one request.
    pub(crate) keys: Vec<&'static str>,
    /// The arguments at the beginning of ARGV, once for all requests.
    pub(crate) shared: Vec<&'static str>,
    /// The arguments of one request.
    pub(crate) args: Vec<&'static str>,
    /// How many entries of the reply one request has.
    pub(crate) width: usize,
}

impl Script {
    /// The script with this name in a file of `lua/`.
    pub(crate) const fn new(name: &'static str, file: &'static str) -> Self {
        Self { name, votes: false, file, text: OnceLock::new() }
    }

    /// The same script, marked as one whose answers are votes.
    pub(crate) const fn that_votes(mut self) -> Self {
        self.votes = true;
        self
    }

    /// Whether its last shared argument is the command that publishes.
    pub(crate) fn publishes(&self) -> bool {
        // The voter adds it, as only the voter knows whether its server is in a cluster: there it
        // is SPUBLISH.
        self.shared.last() == Some(&"publish")
    }

    /// Whether an argument is a channel or the beginning of one. Its name is another one in a
    /// cluster.
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

// By name: each script is one static with a name of its own, and the text need not be compared.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Script {}

impl Text {
    /// The source: the libraries in their order, then the script's own part of the file.
    fn read(name: &str, file: &'static str) -> Self {
        // Libraries that few requests need stand inside a function `rest`, which returns some of
        // their functions. A server builds all functions of a script again at each call, but these
        // only when `rest` is called: of 21 µs for one acquire, its commands took 4 (`1e6d5dc2`).
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

/// The part of a file between two lines `----` that begins with this name.
fn part(file: &'static str, name: &str) -> Option<&'static str> {
    let start = format!("-- {name}: ");
    file.split("\n----\n").find(|part| part.starts_with(&start))
}

/// The names behind a label of the header. The word `none` stands for an empty list.
fn names(part: &'static str, label: &str) -> Option<Vec<&'static str>> {
    let line = part
        .lines()
        .find_map(|line| line.strip_prefix("-- ")?.strip_prefix(label)?.strip_prefix(": "))?;
    Some(line.split(", ").filter(|name| *name != "none").collect())
}
