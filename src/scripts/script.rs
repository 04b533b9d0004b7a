//! A Lua script, and what it takes.

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
        )
    };
}

/// One Lua script.
#[derive(Debug)]
pub(crate) struct Script {
    /// Its path under `lua/`, without the ending.
    pub(crate) name: &'static str,
    /// The text that is loaded into the server.
    pub(crate) source: &'static str,
    /// What one request puts into KEYS.
    pub(crate) keys: &'static [&'static str],
    /// What stands at the beginning of ARGV, once for all requests; by the names in its header.
    pub(crate) shared: &'static [&'static str],
    /// What one request puts into ARGV.
    pub(crate) args: &'static [&'static str],
    /// How many entries of the reply a request has.
    pub(crate) width: usize,
    /// Whether its answers are votes. Then it is told where the mark of the voter's data is, behind
    /// all other keys.
    pub(crate) votes: bool,
}

impl Script {
    /// One that is told nothing and has no more to say than `code, ms, id`.
    pub(crate) const fn new(name: &'static str, source: &'static str) -> Self {
        Self { name, source, keys: &[], shared: &[], args: &[], width: 3, votes: false }
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
