//! What a client is called.

use std::{env, process, sync::Arc};

use super::Error;

/// The name of a client: 1 to [`ClientName::LONGEST`] bytes of UTF-8, without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientName(Arc<str>);

impl ClientName {
    /// The longest name in bytes. The longest name of a host has 253.
    pub(crate) const LONGEST: usize = 300;

    pub(crate) fn parse(name: &str) -> Result<Self, Error> {
        match name.len() {
            _ if name.trim().is_empty() => Err(Error::invalid("the client name is empty")),
            length if length > Self::LONGEST => Err(Error::invalid(format!(
                "the client name has {length} bytes, the limit is {}",
                Self::LONGEST
            ))),
            _ if name.chars().any(char::is_control) => Err(Error::invalid(format!(
                "the client name {name:?} has a control character in it"
            ))),
            _ => Ok(Self(name.into())),
        }
    }

    /// The host and the id of this process.
    pub(crate) fn of_this_process() -> Self {
        let host: String = host().chars().filter(|sign| !sign.is_control()).take(60).collect();
        let host = if host.trim().is_empty() { "unknown-host" } else { host.trim() };
        Self(format!("{host}:{}", process::id()).into())
    }

    pub(crate) fn text(&self) -> &Arc<str> {
        &self.0
    }
}

/// What the system calls this host; empty where it does not say.
fn host() -> String {
    #[cfg(target_os = "linux")]
    if let Ok(name) = rustix::system::uname().nodename().to_str() {
        return name.to_owned();
    }
    let named = ["HOSTNAME", "COMPUTERNAME"].iter().find_map(|name| env::var(name).ok());
    named.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str) -> String {
        let error = ClientName::parse(name).unwrap_err();
        assert!(error.is_invalid());
        error.to_string()
    }

    #[test]
    fn names_that_cannot_be_shown_are_refused() {
        assert_eq!(refused(""), "the client name is empty");
        assert_eq!(refused(" "), "the client name is empty");
        let long = "a".repeat(301);
        assert_eq!(refused(&long), "the client name has 301 bytes, the limit is 300");
        assert_eq!(refused("web\n1"), "the client name \"web\\n1\" has a control character in it");
        assert_eq!(&**ClientName::parse("web 1, Zürich").unwrap().text(), "web 1, Zürich");
    }

    #[test]
    fn by_default_a_client_is_called_by_its_host_and_process() {
        let name = ClientName::of_this_process();
        let (host, process) = name.text().rsplit_once(':').unwrap();
        assert!(!host.is_empty());
        assert_eq!(process, process::id().to_string());
        assert_eq!(ClientName::parse(name.text()).unwrap(), name);
    }
}
