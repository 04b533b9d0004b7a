//! A server's address: checked, and without its credentials wherever it is shown.

use std::{fmt, sync::Arc};

use fred::types::{
    RespVersion,
    config::{Config, Server, ServerConfig},
};
use url::Url;

use crate::words::Error;

/// Where a server is and how to log in there.
#[derive(Clone)]
pub(crate) struct Address {
    label: Arc<str>,
    config: Config,
}

const SCHEMES: &str = "redis://, rediss:// or redis+unix://";

impl Address {
    /// Reads `redis://`, `rediss://` and `redis+unix://` addresses. No message shows a password,
    /// also where the text is not what its writer took it for.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let url = Url::parse(text)
            .map_err(|why| Error::invalid(format!("{} is no address: {why}", shown(text, None))))?;
        let wrong = |what: &str| Error::invalid(format!("{} {what}", shown(text, Some(&url))));
        match url.scheme() {
            "redis" | "rediss" | "redis+unix" => {}
            "redis-cluster" | "rediss-cluster" => {
                return Err(wrong("names a cluster, which is not supported yet"));
            }
            "redis-sentinel" | "rediss-sentinel" => {
                return Err(wrong("names sentinels, which are not supported yet"));
            }
            _ => return Err(wrong(&format!("has an unknown scheme; known are {SCHEMES}"))),
        }
        if url.fragment().is_some() {
            return Err(wrong("has a `#`; in a password it is written %23"));
        }
        let (username, password) = credentials(&url).map_err(wrong)?;
        let (label, server, database) = place(&url).map_err(wrong)?;
        let config = Config {
            version: RespVersion::RESP3,
            server,
            username,
            password,
            database: (database != 0).then_some(database),
            ..Config::default()
        };
        let config = if url.scheme() == "rediss" {
            with_tls(config).map_err(|why| wrong(&why))?
        } else {
            config
        };
        Ok(Self { label: label.into(), config })
    }

    /// `host:port`, or the path of a unix socket; with the database unless it is 0.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Whether it can name a server of a cluster: those have one database, and no sockets.
    pub(crate) fn is_of_a_cluster(&self) -> bool {
        self.config.database.is_none()
            && matches!(self.config.server, ServerConfig::Centralized { .. })
    }

    /// The host, where it is not a socket.
    pub(in crate::node) fn host(&self) -> &str {
        match &self.config.server {
            ServerConfig::Centralized { server } => &server.host,
            _ => "",
        }
    }

    pub(super) fn with_server(&self, label: Arc<str>, server: ServerConfig) -> Self {
        Self { label, config: Config { server, database: None, ..self.config.clone() } }
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.label)
    }
}

/// What a message may repeat of an address. An `@` outside the place where credentials end means
/// that a part of them was read as something else: then nothing but the scheme is shown.
fn shown(text: &str, url: Option<&Url>) -> String {
    let known = ["redis", "rediss", "redis+unix", "redis-cluster", "rediss-cluster"];
    let scheme = known.iter().find(|scheme| text.starts_with(&format!("{scheme}://")));
    let Some(scheme) = scheme else { return "the address".to_owned() };
    let clear = url.filter(|url| {
        let expected = usize::from(!url.username().is_empty() || url.password().is_some());
        text.matches('@').count() == expected && url.fragment().is_none()
    });
    let host = clear.and_then(Url::host_str).filter(|host| !host.is_empty());
    match (host, clear.and_then(Url::port)) {
        (Some(host), Some(port)) => format!("`{scheme}://{host}:{port}`"),
        (Some(host), None) => format!("`{scheme}://{host}`"),
        (None, _) => format!("the {scheme}:// address"),
    }
}

type Credentials = (Option<String>, Option<String>);

fn credentials(url: &Url) -> Result<Credentials, &'static str> {
    let decoded =
        |text: &str| decode(text).ok_or("has credentials that are not percent-encoded UTF-8");
    let username = Some(decoded(url.username())?).filter(|name| !name.is_empty());
    let password = decoded(url.password().unwrap_or_default())?;
    let password = Some(password).filter(|password| !password.is_empty());
    if username.is_some() && password.is_none() {
        return Err("has a user without a password (`user:password@`, or `:password@`)");
    }
    Ok((username, password))
}

fn place(url: &Url) -> Result<(String, ServerConfig, u8), &'static str> {
    if url.scheme() == "redis+unix" {
        return socket(url);
    }
    if url.query().is_some() {
        return Err("has a `?`, but takes no parameters; in a password it is written %3F");
    }
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or("has no host")?;
    let port = url.port().unwrap_or(6379);
    if port == 0 {
        return Err("has port 0");
    }
    let database = database(url.path().trim_start_matches('/'))?;
    let label = match database {
        0 => format!("{host}:{port}"),
        _ => format!("{host}:{port}/{database}"),
    };
    let server = named(Server::new(host.to_owned(), port), host);
    Ok((label, ServerConfig::Centralized { server }, database))
}

fn socket(url: &Url) -> Result<(String, ServerConfig, u8), &'static str> {
    let host = url.host_str().is_some_and(|host| !host.is_empty());
    if host && url.username().is_empty() && url.password().is_none() {
        return Err("has a host, but a socket has none: its path begins with the third slash");
    }
    if url.path().contains('@') {
        return Err("has an `@` in its path; there it is written %40");
    }
    let path = decode(url.path()).ok_or("has a path that is not percent-encoded UTF-8")?;
    if path.len() < 2 {
        return Err("has no path of a socket");
    }
    let mut number = 0;
    for (name, value) in url.query_pairs() {
        if name != "db" {
            return Err("has a parameter other than `db`");
        }
        number = database(&value)?;
    }
    let label = if number == 0 { path.clone() } else { format!("{path}?db={number}") };
    Ok((label, ServerConfig::Unix { path: path.into() }, number))
}

fn database(text: &str) -> Result<u8, &'static str> {
    if text.is_empty() {
        return Ok(0);
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { text.parse().ok() } else { None };
    number.ok_or("has a database that is no number from 0 to 255")
}

/// Undoes percent-encoding; `None` where it is broken or not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

/// The name that a certificate must carry: the host, for an IPv6 address without its brackets.
#[cfg(feature = "tls")]
pub(super) fn named(mut server: Server, host: &str) -> Server {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    server.tls_server_name = Some(bare.to_owned().into());
    server
}

#[cfg(not(feature = "tls"))]
pub(super) fn named(server: Server, _: &str) -> Server {
    server
}

#[cfg(feature = "tls")]
fn with_tls(config: Config) -> Result<Config, String> {
    let connector = super::tls::connector()?;
    Ok(Config { tls: Some(connector.into()), ..config })
}

#[cfg(not(feature = "tls"))]
fn with_tls(_: Config) -> Result<Config, String> {
    Err("needs the cargo feature `tls`".to_owned())
}
