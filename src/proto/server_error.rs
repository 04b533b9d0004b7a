//! The errors of servers, parsed from their texts.
//!
//! Versions word them differently, so every decision that depends on a text is made here. No other
//! file compares the text of a server with anything (a test in `tests/house/tidy`).

use std::{fmt, sync::Arc};

use self::ServerError::{
    Ask, ClusterDown, Moved, NoPasswordSet, NotLocal, NotLoggedIn, NotNow, NotPermitted,
    PrimaryDown, ReadOnly, TryAgain, UnknownCommand, UnknownScript, WrongPassword,
};

/// Why something failed, in words, and the error of the server, if anything depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    text: Arc<str>,
    error: Option<ServerError>,
}

/// An error of a server on which something depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerError {
    /// It requires a password, and got none: `NOAUTH`.
    NotLoggedIn,
    /// It does not know the user, or the password is wrong: `WRONGPASS`.
    WrongPassword,
    /// It got a password, and has none.
    NoPasswordSet,
    /// The user has no right to that: `NOPERM`.
    NotPermitted(Permission),
    /// One side refuses the other's certificate, or its way of speaking TLS.
    Tls,
    /// It cannot be a voter: it runs no Lua scripts, may delete votes, or does not show when it
    /// restarts.
    CannotVote,
    /// It does not know the command, or cannot run scripts.
    UnknownCommand,
    /// It does not know the script: `NOSCRIPT`. Nothing ran.
    UnknownScript,
    /// It is a replica: `READONLY`.
    ReadOnly,
    /// It is a replica without a connection to its primary: `MASTERDOWN`.
    PrimaryDown,
    /// The hash slot belongs to another server: `MOVED`.
    Moved,
    /// Another server must be asked this time: `ASK`.
    Ask,
    /// Some keys are already on another server: `TRYAGAIN`.
    TryAgain,
    /// A script used a key that is already on another server.
    NotLocal,
    /// The cluster does not serve the hash slot: `CLUSTERDOWN`.
    ClusterDown,
    /// It cannot do that now: `LOADING`, `BUSY`, `MISCONF`, `OOM`, `NOREPLICAS`.
    NotNow,
}

/// What a user has no right to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Permission {
    /// A command.
    Command,
    /// A key.
    Key,
    /// A channel.
    Channel,
    /// The server does not say what.
    Unknown,
}

/// How the errors begin.
const ERRORS: [(&str, ServerError); 21] = [
    ("NOAUTH", NotLoggedIn),
    ("WRONGPASS", WrongPassword),
    // Before Redis 6, servers had no code for these two.
    ("ERR invalid password", WrongPassword),
    ("ERR Client sent AUTH", NoPasswordSet),
    ("NOPERM", NotPermitted(Permission::Unknown)),
    ("ERR unknown command", UnknownCommand),
    ("ERR Could not find scripting engine", UnknownCommand),
    ("NOSCRIPT", UnknownScript),
    ("READONLY", ReadOnly),
    ("MASTERDOWN", PrimaryDown),
    ("MOVED", Moved),
    ("ASK ", Ask),
    ("TRYAGAIN", TryAgain),
    ("CLUSTERDOWN", ClusterDown),
    ("LOADING", NotNow),
    ("BUSY", NotNow),
    ("MISCONF", NotNow),
    ("OOM", NotNow),
    ("NOREPLICAS", NotNow),
    // These two are parts of longer sentences.
    ("access a non local key", NotLocal),
    ("Could not find scripting engine", UnknownCommand),
];

impl ServerError {
    fn read(text: &str) -> Option<Self> {
        // The beginning goes first: the arguments of an unknown command are part of its text, and
        // could contain any of these words. But a script's error stands behind words that each
        // version chooses, so the inside is looked at as well.
        let begins = ERRORS.iter().find(|(begin, _)| text.starts_with(begin));
        let inside = || ERRORS.iter().find(|(words, _)| text.contains(words));
        let error = match begins.or_else(inside)?.1 {
            NotPermitted(_) => NotPermitted(Permission::read(text)),
            // Only the beginning of a text says where to go instead, or that nothing ran. A script
            // that met such an error inside has run in part.
            Moved | Ask | TryAgain | ClusterDown | PrimaryDown | UnknownScript
                if begins.is_none() =>
            {
                NotNow
            }
            error => error,
        };
        Some(error)
    }
}

impl Permission {
    fn read(text: &str) -> Self {
        let words = [("command", Self::Command), ("channel", Self::Channel), ("key", Self::Key)];
        words.iter().find(|(word, _)| text.contains(word)).map_or(Self::Unknown, |(_, what)| *what)
    }
}

impl Reason {
    /// Why a server refuses something, in its own words.
    pub(crate) fn of_server(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        Self { error: ServerError::read(&text), text }
    }

    /// A reason that does not come from the text of a server.
    pub(crate) fn of(error: ServerError, text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), error: Some(error) }
    }

    /// The same error, in other words.
    pub(crate) fn reworded(&self, text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), ..*self }
    }

    /// The error of the server; `None` if nothing depends on it.
    pub fn server_error(&self) -> Option<ServerError> {
        self.error
    }

    /// In words.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Whether the server may do that later.
    pub(crate) fn is_passing(&self) -> bool {
        let passes = matches!(
            self.error,
            Some(NotNow | ReadOnly | PrimaryDown | ClusterDown | UnknownScript | NotLocal)
        );
        passes || self.is_elsewhere()
    }

    /// Whether another server of the cluster has the hash slot.
    pub(crate) fn is_elsewhere(&self) -> bool {
        matches!(self.error, Some(Moved | Ask | TryAgain))
    }

    /// Whether it stays until an operator changes something.
    pub(crate) fn needs_an_operator(&self) -> bool {
        // Time alone mends none of these, so a client seldom tries again (`src/voter/pauses.rs`).
        use ServerError::{CannotVote, Tls};
        let is_login = matches!(self.error, Some(NotLoggedIn | WrongPassword | NoPasswordSet));
        is_login || matches!(self.error, Some(NotPermitted(_) | Tls | CannotVote))
    }

    pub(crate) fn is(&self, error: ServerError) -> bool {
        self.error == Some(error)
    }

    /// What the user has no right to use, if that is the reason.
    pub(crate) fn lacks(&self) -> Option<Permission> {
        if let Some(NotPermitted(what)) = self.error { Some(what) } else { None }
    }

    /// Whether it is about this command, in lower case.
    pub(crate) fn is_about(&self, command: &str) -> bool {
        self.text.contains(&format!("'{command}'"))
    }

    /// The server that has the hash slot, `host:port`, in a text of `MOVED` or `ASK`.
    pub(crate) fn points_to(&self) -> Option<&str> {
        self.text.split(' ').nth(2)
    }
}

impl<T: Into<Arc<str>>> From<T> for Reason {
    fn from(text: T) -> Self {
        Self { text: text.into(), error: None }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<ServerError> {
        Reason::of_server(text).server_error()
    }

    // As Redis 6.2, Redis 7.0 and others say it; also of a script that met the error.
    #[test]
    fn an_error_is_known_by_its_code_wherever_a_version_puts_it() {
        for (text, error) in [
            ("NOAUTH HELLO must be called with the client already authenticated", NotLoggedIn),
            ("WRONGPASS invalid username-password pair or user is disabled", WrongPassword),
            ("ERR Client sent AUTH, but no password is set", NoPasswordSet),
            ("ERR unknown command 'SSUBSCRIBE', with args beginning with: 'OOM '", UnknownCommand),
            ("ERR Could not find scripting engine 'lua'", UnknownCommand),
            ("NOSCRIPT No matching script. Please use EVAL.", UnknownScript),
            ("@user_script: 1: -READONLY You can't write against a read only replica.", ReadOnly),
            ("READONLY script: on @user_script:1.", ReadOnly),
            ("MASTERDOWN Link with MASTER is down", PrimaryDown),
            ("MOVED 3999 10.0.0.2:6381", Moved),
            ("ASK 3999 ::1:6381", Ask),
            ("TRYAGAIN Multiple keys request during rehashing of slot", TryAgain),
            ("ERR Script attempted to access a non local key in a cluster node", NotLocal),
            ("CLUSTERDOWN Hash slot not served", ClusterDown),
            ("OOM command not allowed when used memory > 'maxmemory'.", NotNow),
            ("ERR Error running script: @user_script: 17: -OOM command not allowed", NotNow),
            ("NOREPLICAS Not enough good replicas to write.", NotNow),
        ] {
            assert_eq!(read(text), Some(error), "{text}");
        }
        // Nothing depends on these.
        for text in ["WRONGTYPE Operation against a key", "ERR syntax error", "EXECABORT"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_refusal_says_what_the_user_has_no_right_to() {
        for (text, what) in [
            ("this user has no permissions to run the 'set' command", Permission::Command),
            ("this user has no permissions to access one of the keys used", Permission::Key),
            ("No permissions to access a channel", Permission::Channel),
            ("no", Permission::Unknown),
        ] {
            assert_eq!(Reason::of_server(format!("NOPERM {text}")).lacks(), Some(what));
        }
        assert_eq!(Reason::of_server("ERR no permissions to run the command").lacks(), None);
    }

    #[test]
    fn only_at_its_beginning_an_error_says_that_nothing_ran_and_where_to_go() {
        assert_eq!(read("ERR Error running script: -MOVED 1 a:2"), Some(NotNow));
        assert_eq!(read("ERR Error running script: -NOSCRIPT"), Some(NotNow));
        let moved = Reason::of_server("MOVED 3999 10.0.0.2:6381");
        assert_eq!(moved.points_to(), Some("10.0.0.2:6381"));
    }

    #[test]
    fn what_passes_is_tried_again_and_what_needs_an_operator_is_not() {
        let passes = [NotNow, ReadOnly, ClusterDown, UnknownScript, Moved, Ask, TryAgain, NotLocal];
        let stays = [NotLoggedIn, WrongPassword, NoPasswordSet, NotPermitted(Permission::Key)];
        let stays = [&stays[..], &[ServerError::Tls, ServerError::CannotVote]].concat();
        for (errors, does_pass) in [(&passes[..], true), (&stays, false)] {
            for error in errors {
                let reason = Reason::of(*error, "in words");
                assert_eq!(
                    (reason.is_passing(), reason.needs_an_operator()),
                    (does_pass, !does_pass)
                );
            }
        }
        let other = Reason::from("ERR syntax error");
        assert!(!other.is_passing() && !other.needs_an_operator());
    }
}
