//! What a client is called.

use std::{env, process, sync::Arc};

use super::Error;

/// The name of a client, with which its id begins: 1 to [`ClientName::LONGEST`] letters, digits,
/// `.`, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientName(Arc<str>);

impl ClientName {
    pub const LONGEST: usize = 64;
    /// So much is left of the name of a host: the end, which tells pods of one service apart. Then
    /// the id of a hold has 64 bytes at most, up to which servers keep records small.
    const HOST: usize = 20;

    pub fn parse(name: &str) -> Result<Self, Error> {
        if name.is_empty() {
            return Err(Error::invalid("the client name is empty"));
        }
        if name.len() > Self::LONGEST {
            return Err(Error::invalid(format!(
                "the client name has {} bytes, the limit is {}",
                name.len(),
                Self::LONGEST
            )));
        }
        match name.chars().find(|sign| !is_plain(*sign)) {
            Some(sign) => Err(Error::invalid(format!(
                "the client name {name:?} has {sign:?} in it: letters, digits, `.`, `_` and `-` \
                 can be used"
            ))),
            None => Ok(Self(name.into())),
        }
    }

    /// The host and the id of this process.
    pub fn of_this_process() -> Self {
        let host: String = host().chars().map(|it| if is_plain(it) { it } else { '-' }).collect();
        let host = host.get(host.len().saturating_sub(Self::HOST)..).unwrap_or_default();
        // No program takes such an id for an option.
        let host = host.trim_start_matches(['-', '.']);
        let host = if host.is_empty() { "unknown-host" } else { host };
        Self(format!("{host}.{}", process::id()).into())
    }

    pub fn text(&self) -> &Arc<str> {
        &self.0
    }
}

/// It means nothing in an id, a key or a channel.
fn is_plain(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '.' | '_' | '-')
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
    fn names_that_cannot_stand_in_an_id_are_refused() {
        assert_eq!(refused(""), "the client name is empty");
        let long = "a".repeat(65);
        assert_eq!(refused(&long), "the client name has 65 bytes, the limit is 64");
        let told = "in it: letters, digits, `.`, `_` and `-` can be used";
        assert_eq!(refused("web:1"), format!("the client name \"web:1\" has ':' {told}"));
        assert_eq!(refused("Zürich"), format!("the client name \"Zürich\" has 'ü' {told}"));
        assert_eq!(&**ClientName::parse("web-1.Eu_2").unwrap().text(), "web-1.Eu_2");
    }

    #[test]
    fn by_default_a_client_is_called_by_its_host_and_process() {
        let name = ClientName::of_this_process();
        let (host, process) = name.text().rsplit_once('.').unwrap();
        assert!(!host.is_empty());
        assert_eq!(process, process::id().to_string());
        assert_eq!(ClientName::parse(name.text()).unwrap(), name);
    }
}
