//! The address of a voter: made of parts, or read from a text as Redis clients write it.

use std::{
    fmt::{self, Write as _},
    net::Ipv6Addr,
};

use url::Url;

use super::credentials::Credentials;
use crate::proto::Error;

/// The address of a server. A text is one too: whatever takes an `Address` takes `&str` and
/// `String`.
///
/// In a text, user and password are percent-encoded:
///
/// - `redis://[user:password@]host[:port][/database]`: a server; port 6379 if none is given.
/// - `redis+unix://[user:password@]/path/to/socket[?db=number]`: a server by its socket (Unix).
/// - `redis-sentinel://[user:password@]host[:port][,host[:port]..]/service[/database]`: the primary
///   that sentinels name; port 26379 if none is given.
///
/// `rediss` and `rediss-sentinel` are the same with TLS (feature `tls`). Behind `redis-sentinel`
/// stand all sentinels of the service, of which a majority must answer. User and password are those
/// of the servers; the sentinels' own are parameters: `?sentinel_user=..&sentinel_password=..`.
///
/// What other Redis clients write is read, too (`valkey://`, `unix://`, `?database=3`), or refused
/// with the text that is meant here. Whether an address can be used is checked by
/// [`connect`](crate::Builder::connect). No error and no `Debug` output shows a password.
///
/// # Examples
///
/// ```no_run
/// # async fn connect(password: &str) -> Result<(), quorate::Error> {
/// use quorate::{Address, Credentials, Quorate};
///
/// // Nothing is percent-encoded.
/// let login = Credentials::new("quorate", password);
/// let server = |host| Address::new(host).tls().credentials(login.clone());
/// let quorum = Quorate::connect(["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(server)).await?;
///
/// // A text, with a password beside it.
/// let primary = Address::from("redis-sentinel://10.0.0.4,10.0.0.5,10.0.0.6/locks");
/// let builder = Quorate::builder().voter(primary.credentials(login));
/// # let _ = (quorum, builder);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use = "it does nothing until a builder has it"]
pub struct Address {
    /// The parts, or what is wrong with the address.
    // Kept until `connect`, as the methods of an address return no errors.
    parts: Result<Parts, String>,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) site: Site,
    pub(super) tls: bool,
    /// The password is not empty.
    pub(super) login: Option<Credentials>,
    pub(super) database: u8,
}

/// Where the server is.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Site {
    /// A host (an IPv6 address is in brackets) and a port.
    Server(String, u16),
    /// The path of a socket.
    Socket(String),
    /// The primary that sentinels name.
    Service { name: String, sentinels: Vec<(String, u16)>, login: Option<Credentials> },
}

impl Address {
    /// A server by its name or IP address, as `10.0.0.1`, `::1` or `locks.example:7000`. Port 6379
    /// if none is named.
    pub fn new(host: impl Into<String>) -> Self {
        let host = host.into();
        let is_ipv6 = host.parse::<Ipv6Addr>().is_ok();
        let host = if is_ipv6 { format!("[{host}]") } else { host };
        let server = host_and_port(&host, 6379).map(|(host, port)| Site::Server(host, port));
        Self { parts: server.map(Parts::at).map_err(|why| format!("the address {why}")) }
    }

    /// A server on this machine by the path of its socket, which begins with `/`. Needs Unix.
    pub fn socket(path: impl Into<String>) -> Self {
        let path = path.into();
        let is_path = path.len() > 1 && path.starts_with('/');
        let socket = is_path.then_some(Site::Socket(path)).map(Parts::at);
        Self { parts: socket.ok_or_else(|| "the address has no path of a socket".to_owned()) }
    }

    /// At another port. A socket has none, and each sentinel its own.
    pub fn port(self, port: u16) -> Self {
        self.with(|parts| match &mut parts.site {
            Site::Server(_, own) if port != 0 => {
                *own = port;
                Ok(())
            }
            Site::Server(..) => Err("has port 0"),
            _ => Err("is no server that has one port"),
        })
    }

    /// The login for the server.
    pub fn credentials(self, credentials: Credentials) -> Self {
        self.with(|parts| {
            parts.login = Some(checked(credentials)?);
            Ok(())
        })
    }

    /// The login for the sentinels, if the address names some.
    pub fn sentinel_credentials(self, credentials: Credentials) -> Self {
        self.with(|parts| {
            let Site::Service { login, .. } = &mut parts.site else {
                return Err("names no sentinels");
            };
            *login = Some(checked(credentials)?);
            Ok(())
        })
    }

    /// A database other than 0. A cluster has only database 0.
    pub fn database(self, database: u8) -> Self {
        self.with(|parts| {
            parts.database = database;
            Ok(())
        })
    }

    /// With TLS (feature `tls`), as `Builder::tls` sets it up.
    pub fn tls(self) -> Self {
        self.with(|parts| {
            parts.tls = !matches!(parts.site, Site::Socket(_));
            parts.tls.then_some(()).ok_or("is a socket, which has no TLS")
        })
    }

    /// The address as a text, for settings such as `QUORATE_VOTERS`. It contains the password.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid): the address cannot be used.
    pub fn to_url(&self) -> Result<String, Error> {
        Ok(self.parts()?.text(false))
    }

    pub(super) fn parts(&self) -> Result<&Parts, Error> {
        self.parts.as_ref().map_err(|why| Error::invalid(why.clone()))
    }

    /// Whether a text begins with the scheme of an address.
    pub(crate) fn begins(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| Scheme::of(scheme).is_some())
    }

    fn with(mut self, change: impl FnOnce(&mut Parts) -> Result<(), &'static str>) -> Self {
        if let Ok(parts) = &mut self.parts
            && let Err(why) = change(parts)
        {
            self.parts = Err(format!("`{}` {why}", parts.text(true)));
        }
        self
    }
}

impl<T: AsRef<str> + ?Sized> From<&T> for Address {
    fn from(text: &T) -> Self {
        Self { parts: read(text.as_ref()) }
    }
}

impl From<String> for Address {
    fn from(text: String) -> Self {
        Self::from(&text)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.parts {
            Ok(parts) => write!(f, "Address({})", parts.text(true)),
            Err(why) => write!(f, "Address({why})"),
        }
    }
}

impl Parts {
    fn at(site: Site) -> Self {
        Self { site, tls: false, login: None, database: 0 }
    }

    /// The name of the voter: the address without user and password.
    pub(super) fn label(&self) -> String {
        match &self.site {
            Site::Server(host, port) => format!("{host}:{port}{}", self.database("/")),
            Site::Socket(path) => format!("{path}{}", self.database("?db=")),
            Site::Service { name, sentinels, .. } => {
                format!("{name}@{}{}", listed(sentinels), self.database("/"))
            }
        }
    }

    /// A text that [`read`] takes. `hidden`: with words in place of users and passwords.
    pub(super) fn text(&self, hidden: bool) -> String {
        let login = self.login.as_ref().map(|login| login.words(hidden));
        let login =
            login.map_or_else(String::new, |(user, password)| format!("{user}:{password}@"));
        let secured = if self.tls { "s" } else { "" };
        match &self.site {
            Site::Server(..) => format!("redis{secured}://{login}{}", self.label()),
            Site::Socket(path) => {
                let path = encoded(path, "/");
                format!("redis+unix://{login}{path}{}", self.database("?db="))
            }
            Site::Service { name, sentinels, login: own } => {
                let (all, database) = (listed(sentinels), self.database("/"));
                let own = match own.as_ref().map(|own| own.words(hidden)) {
                    None => String::new(),
                    Some((user, password)) if user.is_empty() => {
                        format!("?sentinel_password={password}")
                    }
                    Some((user, password)) => {
                        format!("?sentinel_user={user}&sentinel_password={password}")
                    }
                };
                format!("redis{secured}-sentinel://{login}{all}/{name}{database}{own}")
            }
        }
    }

    /// The database behind `begin`; empty if it is 0.
    fn database(&self, begin: &str) -> String {
        if self.database == 0 { String::new() } else { format!("{begin}{}", self.database) }
    }
}

impl Credentials {
    /// User and password as a text has them.
    fn words(&self, hidden: bool) -> (String, String) {
        match &self.user {
            Some(_) if hidden => ("USER".to_owned(), "PASSWORD".to_owned()),
            None if hidden => (String::new(), "PASSWORD".to_owned()),
            user => (encoded(user.as_deref().unwrap_or(""), ""), encoded(&self.password, "")),
        }
    }
}

/// Refuses credentials that a text cannot have.
// `to_url` must have the same address as the value.
fn checked(Credentials { user, password }: Credentials) -> Result<Credentials, &'static str> {
    if password.is_empty() {
        return Err("has credentials without a password");
    }
    Ok(Credentials { user: user.filter(|user| !user.is_empty()), password })
}

fn listed(hosts: &[(String, u16)]) -> String {
    let hosts: Vec<_> = hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
    hosts.join(",")
}

/// What a scheme names.
#[derive(Clone, Copy, Default, PartialEq)]
enum Scheme {
    #[default]
    Server,
    Socket,
    Sentinels,
    Cluster,
}

const SCHEMES: &str = "redis://, rediss://, redis+unix:// and redis-sentinel://";

impl Scheme {
    /// What this scheme names, and whether with TLS.
    fn of(scheme: &str) -> Option<(Self, bool)> {
        let scheme = scheme.to_ascii_lowercase();
        let (family, kind) = scheme.split_at(scheme.find(['+', '-']).unwrap_or(scheme.len()));
        let tls = match family {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            "unix" if kind.is_empty() => return Some((Self::Socket, false)),
            _ => return None,
        };
        match kind {
            "" => Some((Self::Server, tls)),
            "+ssl" | "+tls" => Some((Self::Server, true)),
            "+unix" | "+uds" | "+socket" | "-socket" => {
                Some((Self::Socket, false)).filter(|_| !tls)
            }
            "-sentinel" | "+sentinel" => Some((Self::Sentinels, tls)),
            "-cluster" | "+cluster" => Some((Self::Cluster, tls)),
            _ => None,
        }
    }
}

// Why an address is refused although it can be read. Such an address is never guessed at: the error
// has the text to write instead, so nobody connects to another server than the one that is meant.
const ALONE: &str = "names several servers, and each voter has an address of its own";
const CLUSTER: &str = "names a cluster, whose servers are given to `Builder::cluster`";
const FOREIGN: &str = "has a parameter that addresses do not have here";
const ONE_WORD: &str = "has one word before the `@`, and it may be a password";
const RESP2: &str = "asks for another protocol than RESP3";
const SENTINELS: &str = "names a service of sentinels, whose own login is `sentinel_user` and \
                         `sentinel_password`";
const UNVERIFIED: &str = "has a setting of TLS: certificates are always checked, by the \
                          authorities of `Tls::ca_file`";

/// Reads an address. If it is refused for its form, the message has the form that is taken.
// No message shows a password, also if the text is not what its writer took it for. So it has no
// more of the text than hosts, path and service, and these only once they could be read.
fn read(text: &str) -> Result<Parts, String> {
    let Some((name, rest)) = text.split_once("://") else { return Err(without_scheme(text)) };
    let Some((scheme, tls)) = Scheme::of(name) else {
        return Err(format!("the address has an unknown scheme; known are {SCHEMES}"));
    };
    let mut reader = Reader { scheme, tls, ..Reader::default() };
    let why = match (reader.read(rest), reader.refused) {
        (Ok(parts), None) => return Ok(parts),
        (Ok(parts), Some(why)) => format!("{why}: write `{}`", parts.text(true)),
        (Err(why), _) => why,
    };
    Err(format!("the {name}:// address {why}"))
}

/// What is wrong with a text without a scheme.
fn without_scheme(text: &str) -> String {
    if text.is_empty() {
        return "the address is empty".to_owned();
    }
    if text.starts_with("env:") {
        let instead = "`QUORATE_VOTERS=env:NAME`";
        return format!("the address names a variable, which only variables do: {instead}");
    }
    let bare = text.strip_prefix("//").unwrap_or(text);
    let (scheme, rest) = match bare {
        path if path.starts_with('/') => (Scheme::Socket, path.to_owned()),
        // Some clients take a port number alone.
        port if port.parse::<u16>().is_ok() => (Scheme::Server, format!(":{port}")),
        host => (Scheme::Server, host.to_owned()),
    };
    match (Reader { scheme, ..Reader::default() }).read(&rest) {
        Ok(parts) => format!("the address has no scheme: write `{}`", parts.text(true)),
        Err(_) => format!("the address has no scheme; known are {SCHEMES}"),
    }
}

/// Reads what stands behind a scheme, also if it is refused then.
#[derive(Default)]
struct Reader {
    scheme: Scheme,
    tls: bool,
    /// The first reason to refuse the address.
    refused: Option<&'static str>,
    // Parameters, by the names that any client has for them.
    database: Option<String>,
    user: Option<String>,
    password: Option<String>,
    /// The name by which sentinels know the servers.
    service: Option<String>,
    sentinel_user: Option<String>,
    sentinel_password: Option<String>,
    /// Further servers, or sentinels.
    nodes: Vec<String>,
}

impl Reader {
    /// Fails with what cannot be read.
    fn read(&mut self, text: &str) -> Result<Parts, String> {
        let (authority, tail) = text.split_at(text.find(['/', '?', '#']).unwrap_or(text.len()));
        let (user, hosts) = authority.split_once('@').unwrap_or(("", authority));
        if hosts.contains('@') || tail.contains('@') {
            return Err("has an `@` too many; in a password or a path it is written %40".to_owned());
        }
        let (tail, fragment) = match tail.split_once('#') {
            Some((tail, fragment)) => (tail, Some(fragment)),
            None => (tail, None),
        };
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        self.parameters(query)?;
        match (self.scheme, fragment) {
            (_, None) => {}
            (Scheme::Server, Some("insecure")) => self.refuse(UNVERIFIED),
            // As Lettuce writes it. Behind a password it may be the rest of the password.
            (Scheme::Sentinels, Some(name))
                if self.password.is_none() && self.sentinel_password.is_none() =>
            {
                set(&mut self.service, name.to_owned())?;
            }
            _ => return Err("has a `#`; in a password it is written %23".to_owned()),
        }
        if self.scheme == Scheme::Server && self.service.is_some() {
            self.refuse(SENTINELS);
            self.scheme = Scheme::Sentinels;
        }
        let login = self.login(user)?;
        let (site, database) = match self.scheme {
            Scheme::Socket => (self.socket(hosts, user, path)?, ""),
            Scheme::Server | Scheme::Cluster => (self.server(hosts)?, path),
            Scheme::Sentinels => self.service(hosts, path)?,
        };
        let database = match (database.trim_matches('/'), self.database.as_deref()) {
            // Behind the first of several hosts may be the next one, not a database.
            (_, None) if self.refused == Some(ALONE) => 0,
            (number, None) | ("", Some(number)) => database_number(number)?,
            (one, Some(other)) if one == other => database_number(one)?,
            _ => return Err("has two databases".to_owned()),
        };
        Ok(Parts { site, tls: self.tls, login, database })
    }

    fn refuse(&mut self, why: &'static str) {
        self.refused.get_or_insert(why);
    }

    fn parameters(&mut self, query: &str) -> Result<(), &'static str> {
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let mut node = None;
            // Clients differ: `sentinel_username`, `sentinelUsername`.
            let part = match &*name.to_ascii_lowercase().replace('_', "") {
                "db" | "database" => &mut self.database,
                "user" | "username" => &mut self.user,
                "pass" | "password" => &mut self.password,
                "sentinelmasterid" | "sentinelservicename" | "servicename" | "mastername" => {
                    &mut self.service
                }
                "sentineluser" | "sentinelusername" => &mut self.sentinel_user,
                "sentinelpassword" => &mut self.sentinel_password,
                "node" | "addr" => &mut node,
                "protocol" if ["3", "resp3"].contains(&value) => continue,
                foreign => {
                    self.refuse(match foreign {
                        "protocol" => RESP2,
                        "skipverify" | "sslcertreqs" | "sslcheckhostname" | "verifypeer" => {
                            UNVERIFIED
                        }
                        _ => FOREIGN,
                    });
                    continue;
                }
            };
            let value = decode(value).filter(|value| !value.is_empty());
            set(part, value.ok_or("has a parameter that is empty or not percent-encoded UTF-8")?)?;
            self.nodes.extend(node);
        }
        Ok(())
    }

    /// The login for the server. That for sentinels is in parameters.
    fn login(&mut self, text: &str) -> Result<Option<Credentials>, &'static str> {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        for (part, text) in [(&mut self.user, user), (&mut self.password, password)] {
            let text = decode(text).ok_or("has credentials that are not percent-encoded UTF-8")?;
            if !text.is_empty() {
                set(part, text)?;
            }
        }
        match (self.user.take(), self.password.take()) {
            (None, None) => Ok(None),
            (user, Some(password)) => Ok(Some(Credentials { user, password })),
            (user, None) => {
                // Some clients take one word for a password, others for a user.
                let is_one_word = !text.is_empty() && !text.contains(':');
                self.refuse(if is_one_word { ONE_WORD } else { "has a user without a password" });
                let user = user.filter(|_| !is_one_word);
                Ok(Some(Credentials { user, password: String::new() }))
            }
        }
    }

    fn server(&mut self, hosts: &str) -> Result<Site, String> {
        if self.scheme == Scheme::Cluster {
            self.refuse(CLUSTER);
        }
        let (first, others) = hosts.split_once(',').unwrap_or((hosts, ""));
        if !others.is_empty() || !self.nodes.is_empty() {
            self.refuse(ALONE);
        }
        if self.names_sentinels() {
            self.refuse(FOREIGN);
        }
        let (host, port) = if let Some(ipv6) = bracketed(first) {
            self.refuse("has an IPv6 address without brackets");
            host_and_port(&ipv6, 6379)?
        } else if first.is_empty() || first.starts_with(':') {
            self.refuse("has no host");
            host_and_port(&format!("127.0.0.1{first}"), 6379)?
        } else {
            host_and_port(first, 6379)?
        };
        Ok(Site::Server(host, port))
    }

    fn socket(&mut self, hosts: &str, user: &str, path: &str) -> Result<Site, &'static str> {
        if !hosts.is_empty() && user.is_empty() {
            return Err("has a host, but a socket has none: its path begins with the third slash");
        }
        if self.names_sentinels() || !self.nodes.is_empty() {
            self.refuse(FOREIGN);
        }
        let path = decode(path).ok_or("has a path that is not percent-encoded UTF-8")?;
        let path = Some(path).filter(|path| path.len() > 1);
        path.map(Site::Socket).ok_or("has no path of a socket")
    }

    fn names_sentinels(&self) -> bool {
        [&self.service, &self.sentinel_user, &self.sentinel_password].iter().any(|it| it.is_some())
    }

    /// The service of the sentinels, and the text of the database.
    fn service<'a>(&self, hosts: &str, path: &'a str) -> Result<(Site, &'a str), String> {
        let mut sentinels = Vec::new();
        for host in hosts.split(',').chain(self.nodes.iter().map(String::as_str)) {
            let sentinel = host_and_port(host, 26379)?;
            // Two answers of one sentinel could be a majority.
            if sentinels.contains(&sentinel) {
                return Err("names a sentinel twice, and each has one voice".to_owned());
            }
            sentinels.push(sentinel);
        }
        let path = path.strip_prefix('/').unwrap_or_default();
        let (name, database) = match &self.service {
            Some(name) => (name.as_str(), path),
            None => path.split_once('/').unwrap_or((path, "")),
        };
        if name.is_empty() {
            return Err("has no service: `/name` behind the sentinels".to_owned());
        }
        // Sentinels allow no others.
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)) {
            let why = "has a service with characters other than letters, digits and `.-_`";
            return Err(why.to_owned());
        }
        let login = match (self.sentinel_user.clone(), self.sentinel_password.clone()) {
            (user, Some(password)) => Some(Credentials { user, password }),
            (None, None) => None,
            (Some(_), None) => {
                return Err("has a `sentinel_user` without a `sentinel_password`".to_owned());
            }
        };
        Ok((Site::Service { name: name.to_owned(), sentinels, login }, database))
    }
}

fn set(part: &mut Option<String>, value: String) -> Result<(), &'static str> {
    part.replace(value).map_or(Ok(()), |_| Err("has a user, a password or a parameter twice"))
}

fn host_and_port(text: &str, usual_port: u16) -> Result<(String, u16), String> {
    let unread = |why: &dyn fmt::Display| format!("has a host that cannot be read: {why}");
    // For the url crate, these would end the host.
    if text.contains(['@', '/', '?', '#', '\\']) {
        return Err(unread(&"invalid character"));
    }
    let url = Url::parse(&format!("redis://{text}")).map_err(|why| unread(&why))?;
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or("has no host")?;
    // No name of a host has a percent sign, encoded or not.
    if host.contains('%') {
        return Err(unread(&"invalid character"));
    }
    match url.port().unwrap_or(usual_port) {
        0 => Err("has port 0".to_owned()),
        port => Ok((host.to_owned(), port)),
    }
}

/// Puts an IPv6 address without brackets into brackets. The text behind the last colon is its port
/// if the rest is an address too.
fn bracketed(text: &str) -> Option<String> {
    let is_ipv6 = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    match text.rsplit_once(':') {
        Some((host, port)) if is_ipv6(host) && port.parse::<u16>().is_ok() => {
            Some(format!("[{host}]:{port}"))
        }
        _ => is_ipv6(text).then(|| format!("[{text}]")),
    }
}

fn database_number(text: &str) -> Result<u8, &'static str> {
    if text.is_empty() {
        return Ok(0);
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { text.parse().ok() } else { None };
    number.ok_or("has a database that is no number from 0 to 255")
}

/// Percent-encodes all characters but letters, digits, `-._~` and `others`.
fn encoded(text: &str, others: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let sign = char::from(byte);
        if sign.is_ascii_alphanumeric() || "-._~".contains(sign) || others.contains(sign) {
            encoded.push(sign);
        } else {
            write!(encoded, "%{byte:02X}").expect("memory takes it");
        }
    }
    encoded
}

/// Undoes percent-encoding. `None` if it is broken, or not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        // The standard library takes a sign before the digits.
        let digits = Some(digits).filter(|digits| !digits.starts_with('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}
