//! A voter's address: checked, and without its credentials wherever it is shown; and credentials
//! that are asked for before each connection.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use tokio::time::timeout;
use url::Url;

#[cfg(feature = "tls")]
use super::carrier::TlsConnector;
use super::{
    Security,
    carrier::{Config, RespVersion, Server, ServerConfig},
};
use crate::proto::Error;
#[cfg(feature = "tls")]
use crate::voter::{SingleFlight, Tls};

/// How long whoever is asked for credentials may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a server is and how to log in there.
#[derive(Clone)]
pub(crate) struct Address {
    label: Arc<str>,
    pub(super) secured: Secured,
    /// Who is to be asked where the server is.
    pub(super) sentinels: Option<Arc<Sentinels>>,
    /// Who is to be asked for credentials: nobody where the address has some.
    pub(super) provider: Option<Provider>,
}

/// Who says where the server is.
pub(super) struct Sentinels {
    pub(super) service: String,
    /// Each with its name, `host:port`.
    pub(super) all: Vec<(String, Secured)>,
}

/// What connections are made with, and how they are secured.
#[derive(Clone)]
pub(super) struct Secured {
    pub(super) config: Config,
    /// Where the scheme asks for TLS.
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Arc<Tls>>,
    /// Reads the files of TLS, also for copies of this.
    #[cfg(feature = "tls")]
    reading: Arc<SingleFlight<Result<TlsConnector, String>>>,
}

const SCHEMES: &str = "redis://, rediss://, redis+unix:// or redis-sentinel://";

impl Address {
    /// Reads `redis://`, `rediss://`, `redis+unix://`, `redis-sentinel://` and `rediss-sentinel://`
    /// addresses. No message shows a password, also where the text is not what its writer took it
    /// for: none has more of it than its hosts, and these only once they could be read.
    pub(crate) fn parse(text: &str, security: &Security) -> Result<Self, Error> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(Error::invalid(without_scheme(text)));
        };
        let mut shown = format!("the {scheme}:// address");
        let read = match scheme {
            "redis" | "rediss" | "redis+unix" | "redis-sentinel" | "rediss-sentinel" => {
                Self::read(scheme, rest, security, &mut shown)
            }
            "redis-cluster" | "rediss-cluster" => {
                Err("names a cluster, which is not one server: see `Builder::cluster`".to_owned())
            }
            _ => {
                let why = format!("the address has an unknown scheme; known are {SCHEMES}");
                return Err(Error::invalid(why));
            }
        };
        read.map_err(|why| Error::invalid(format!("{shown} {why}")))
    }

    fn read(
        scheme: &str,
        rest: &str,
        security: &Security,
        shown: &mut String,
    ) -> Result<Self, String> {
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (user, hosts) = authority.split_once('@').unwrap_or(("", authority));
        if hosts.contains('@') || tail.contains('@') {
            return Err("has an `@` too many; in a password or a path it is written %40".to_owned());
        }
        if tail.contains('#') {
            return Err("has a `#`; in a password it is written %23".to_owned());
        }
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let (login, mut sentinels) = (login(user)?, None);
        let (label, server, database) = match scheme {
            "redis+unix" if !hosts.is_empty() && user.is_empty() => {
                return Err("has a host, but a socket has none: its path begins with the third \
                            slash"
                    .to_owned());
            }
            "redis+unix" => socket(path, query)?,
            "redis" | "rediss" => {
                if hosts.contains(',') {
                    return Err("has others behind it: give each voter by itself".to_owned());
                }
                if tail.contains('?') {
                    return Err("has a `?`, but takes no parameters; in a password it is written \
                                %3F"
                    .to_owned());
                }
                let (host, port) = host_and_port(hosts, 6379)?;
                *shown = format!("`{scheme}://{hosts}`");
                let database = database(path.strip_prefix('/').unwrap_or_default())?;
                let label = labelled(format!("{host}:{port}"), database);
                (label, server_at(&host, port), database)
            }
            _ => {
                if hosts.split(',').all(|host| host_and_port(host, 26379).is_ok()) {
                    *shown = format!("`{scheme}://{hosts}`");
                }
                let secured = |config| Secured::new(config, scheme, security);
                let all = all_sentinels(hosts, query, secured)?;
                let (service, database) = service(path)?;
                let names: Vec<&str> = all.iter().map(|(name, _)| &**name).collect();
                let label = labelled(format!("{service}@{}", names.join(",")), database);
                sentinels = Some(Arc::new(Sentinels { service: service.to_owned(), all }));
                // Where the server is has to be asked.
                let server = ServerConfig::Centralized { server: Server::new(String::new(), 0) };
                (label, server, database)
            }
        };
        let secured = Secured::new(config(server, login, database), scheme, security)?;
        let named = secured.config.password.is_some();
        let provider = security.credentials.clone().filter(|_| !named);
        Ok(Self { label: label.into(), secured, sentinels, provider })
    }

    /// `host:port`, the path of a unix socket, or `service@host:port,host:port` of the sentinels;
    /// with the database unless it is 0.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// What the next connection is made with. Where there are sentinels, they name the server.
    pub(super) async fn config(&self) -> Result<Config, Arc<str>> {
        let mut config = self.secured.fresh().await?;
        if let Some(provider) = &self.provider {
            let credentials = provider.ask(&self.label).await?;
            (config.username, config.password) = (credentials.user, Some(credentials.password));
        }
        Ok(config)
    }

    /// The same way to log in, at another server.
    pub(in crate::voter) fn at(&self, host: &str, port: u16) -> Self {
        let mut secured = self.secured.clone();
        (secured.config.server, secured.config.database) = (server_at(host, port), None);
        Self { label: format!("{host}:{port}").into(), secured, ..self.clone() }
    }

    /// The host, where it is not a socket.
    pub(in crate::voter) fn host(&self) -> &str {
        match &self.secured.config.server {
            ServerConfig::Centralized { server } => &server.host,
            _ => "",
        }
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.secured.config.uses_tls()
    }

    /// Whether it can name a server of a cluster: those have one database, and nobody else says
    /// where they are.
    pub(crate) fn is_of_a_cluster(&self) -> bool {
        let is_there = matches!(self.secured.config.server, ServerConfig::Centralized { .. });
        self.secured.config.database.is_none() && self.sentinels.is_none() && is_there
    }
}

impl Secured {
    /// With TLS where the scheme says so; or what is wrong with the settings or the files of TLS.
    #[cfg(feature = "tls")]
    fn new(config: Config, scheme: &str, security: &Security) -> Result<Self, String> {
        if !scheme.starts_with("rediss") {
            return Ok(Self { config, tls: None, reading: Arc::default() });
        }
        let tls = security.tls.clone().unwrap_or_default();
        let config = Config { tls: Some(tls.connector()?.into()), ..config };
        Ok(Self { config, tls: Some(tls.into()), reading: Arc::default() })
    }

    #[cfg(not(feature = "tls"))]
    fn new(config: Config, scheme: &str, _: &Security) -> Result<Self, String> {
        if scheme.starts_with("rediss") {
            return Err("needs the cargo feature `tls`".to_owned());
        }
        Ok(Self { config })
    }

    /// What the next connection is made with: the files are read again, as certificates that live
    /// for hours are replaced many times while a client is there.
    #[cfg_attr(
        not(feature = "tls"),
        expect(clippy::unused_async, reason = "with TLS it reads files")
    )]
    pub(super) async fn fresh(&self) -> Result<Config, Arc<str>> {
        #[cfg(feature = "tls")]
        if let Some(tls) = self.tls.as_ref().filter(|tls| tls.has_files()) {
            let tls = Arc::clone(tls);
            // A disk may take its time, and renewals run on this thread.
            let read = self.reading.outcome(|_| false, move || tls.connector()).await;
            let read = read.map_err(|error| format!("cannot use TLS: {error}"))?;
            return Ok(Config { tls: Some(read?.into()), ..self.config.clone() });
        }
        Ok(self.config.clone())
    }
}

/// What is wrong with a text that says nothing of a scheme; shown where it can hold no password.
fn without_scheme(text: &str) -> String {
    let is_place = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    if text.is_empty() {
        return "the address is empty".to_owned();
    }
    if text.chars().all(is_place) {
        return format!("`{text}` is no address: write `redis://{text}`");
    }
    format!("the address has no scheme; known are {SCHEMES}")
}

/// User and password, each where there is one.
type Login = (Option<String>, Option<String>);

fn login(text: &str) -> Result<Login, &'static str> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let [user, password] = [user, password].map(decode);
    let both = user.zip(password).ok_or("has credentials that are not percent-encoded UTF-8")?;
    match both {
        (user, password) if password.is_empty() && !user.is_empty() => {
            Err("has a user without a password (`user:password@`, or `:password@`)")
        }
        (user, password) => {
            let given = |text: String| Some(text).filter(|text| !text.is_empty());
            Ok((given(user), given(password)))
        }
    }
}

fn config(server: ServerConfig, (username, password): Login, database: u8) -> Config {
    Config {
        version: RespVersion::RESP3,
        server,
        username,
        password,
        database: (database != 0).then_some(database),
        ..Config::default()
    }
}

fn host_and_port(text: &str, usual_port: u16) -> Result<(String, u16), String> {
    let url = Url::parse(&format!("redis://{text}"));
    let url = url.map_err(|why| format!("has a host that cannot be read: {why}"))?;
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or("has no host")?;
    match url.port().unwrap_or(usual_port) {
        0 => Err("has port 0".to_owned()),
        port => Ok((host.to_owned(), port)),
    }
}

/// What these parameters are, each where it is given.
fn parameters<const N: usize>(
    query: &str,
    known: [&str; N],
) -> Result<[Option<String>; N], String> {
    let mut values = [const { None }; N];
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let at = known.iter().position(|known| *known == name);
        let at =
            at.ok_or_else(|| format!("has a parameter other than `{}`", known.join("`, `")))?;
        let value = decode(value).filter(|value| !value.is_empty());
        let unread = "has a parameter that is empty or not percent-encoded UTF-8";
        values[at] = Some(value.ok_or(unread)?);
    }
    Ok(values)
}

fn database(text: &str) -> Result<u8, &'static str> {
    if text.is_empty() {
        return Ok(0);
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { text.parse().ok() } else { None };
    number.ok_or("has a database that is no number from 0 to 255")
}

fn labelled(place: String, database: u8) -> String {
    if database == 0 { place } else { format!("{place}/{database}") }
}

#[cfg(not(unix))]
fn socket(_: &str, _: &str) -> Result<(String, ServerConfig, u8), String> {
    Err("needs Unix: this system has no such sockets".to_owned())
}

#[cfg(unix)]
fn socket(path: &str, query: &str) -> Result<(String, ServerConfig, u8), String> {
    let path = decode(path).ok_or("has a path that is not percent-encoded UTF-8")?;
    if path.len() < 2 {
        return Err("has no path of a socket".to_owned());
    }
    let [number] = parameters(query, ["db"])?;
    let number = database(&number.unwrap_or_default())?;
    let label = if number == 0 { path.clone() } else { format!("{path}?db={number}") };
    Ok((label, ServerConfig::Unix { path: path.into() }, number))
}

/// Each with its name.
fn all_sentinels(
    hosts: &str,
    query: &str,
    secured: impl Fn(Config) -> Result<Secured, String>,
) -> Result<Vec<(String, Secured)>, String> {
    let [user, password] = parameters(query, ["sentinel_user", "sentinel_password"])?;
    if user.is_some() && password.is_none() {
        return Err("has a `sentinel_user` without a `sentinel_password`".to_owned());
    }
    let mut all: Vec<(String, Secured)> = Vec::new();
    for host in hosts.split(',') {
        let (host, port) = host_and_port(host, 26379)?;
        let name = format!("{host}:{port}");
        if all.iter().any(|(other, _)| *other == name) {
            return Err("names a sentinel twice, and each has one voice".to_owned());
        }
        let config = config(server_at(&host, port), (user.clone(), password.clone()), 0);
        // What a sentinel answers is the same in either version, and no old one knows HELLO.
        all.push((name, secured(Config { version: RespVersion::RESP2, ..config })?));
    }
    Ok(all)
}

/// The name by which sentinels know the servers, and the database.
fn service(path: &str) -> Result<(&str, u8), &'static str> {
    let path = path.strip_prefix('/').unwrap_or_default();
    let (service, number) = path.split_once('/').unwrap_or((path, ""));
    if service.is_empty() {
        return Err("has no service: `/name` behind the sentinels");
    }
    // What sentinels allow.
    if !service.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)) {
        return Err("has a service with characters other than letters, digits and `.-_`");
    }
    Ok((service, database(number)?))
}

/// Undoes percent-encoding; `None` where it is broken or not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let digits = Some(digits).filter(|digits| !digits.starts_with('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// A server by its host, an IPv6 address in brackets; without these it is the name that a
/// certificate must carry.
pub(super) fn server_at(host: &str, port: u16) -> ServerConfig {
    let server = Server::new(host.to_owned(), port);
    #[cfg(feature = "tls")]
    let server =
        Server { tls_server_name: Some(host.trim_matches(['[', ']']).to_owned().into()), ..server };
    ServerConfig::Centralized { server }
}

/// What a server is logged in to with. Never shows its password.
///
/// See [`Builder::credentials`](crate::Builder::credentials).
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(super) user: Option<String>,
    pub(super) password: String,
}

impl Credentials {
    /// A user and its password.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: Some(user.into()), password: password.into() }
    }

    /// The password of the user `default`, which a server has by `requirepass`.
    pub fn password(password: impl Into<String>) -> Self {
        Self { user: None, password: password.into() }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

type Fetched = BoxFuture<'static, Result<Credentials, String>>;

/// The user's own function.
#[derive(Clone)]
pub(crate) struct Provider(Arc<dyn Fn(&str) -> Fetched + Send + Sync>);

impl Provider {
    pub(crate) fn new<F, Asked, E>(ask: F) -> Self
    where
        F: Fn(&str) -> Asked + Send + Sync + 'static,
        Asked: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: fmt::Display,
    {
        Self(Arc::new(move |voter| {
            let asked = ask(voter);
            async move { asked.await.map_err(|error| error.to_string()) }.boxed()
        }))
    }

    /// Asks for those of one voter.
    pub(crate) async fn ask(&self, voter: &str) -> Result<Credentials, String> {
        // A panic of the user's must not end the task that keeps up the connection.
        let asked = async { (self.0)(voter).await };
        match timeout(PATIENCE, AssertUnwindSafe(asked).catch_unwind()).await {
            Ok(Ok(answer)) => answer.map_err(|error| format!("no credentials: {error}")),
            Ok(Err(_)) => Err("no credentials: whoever was asked for them panicked".to_owned()),
            Err(_) => Err(format!("no credentials within {PATIENCE:?}")),
        }
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<credentials>")
    }
}
