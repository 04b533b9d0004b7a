//! A voter's address: checked, and without its credentials wherever it is shown; and credentials
//! that are asked for before each connection.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use fred::types::{
    RespVersion,
    config::{Config, Server, ServerConfig},
};
use futures::{FutureExt, future::BoxFuture};
use tokio::time::timeout;
use url::Url;

use super::Security;
use crate::proto::Error;
#[cfg(feature = "tls")]
use crate::voter::Tls;

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
}

const SCHEMES: &str = "redis://, rediss://, redis+unix:// or redis-sentinel://";

impl Address {
    /// Reads `redis://`, `rediss://`, `redis+unix://`, `redis-sentinel://` and `rediss-sentinel://`
    /// addresses. No message shows a password, also where the text is not what its writer took it
    /// for.
    pub(crate) fn parse(text: &str, security: &Security) -> Result<Self, Error> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(Error::invalid(without_scheme(text)));
        };
        if matches!(scheme, "redis-sentinel" | "rediss-sentinel") {
            return Self::under_sentinels(scheme, rest, security);
        }
        let url = Url::parse(text).map_err(|why| {
            let shown = shown(text, None);
            Error::invalid(match text.split(',').filter(|part| part.contains("://")).count() {
                0 | 1 => format!("{shown} is no address: {why}"),
                _ => format!("{shown} has others behind it: give each voter by itself"),
            })
        })?;
        let wrong = |what: &str| Error::invalid(format!("{} {what}", shown(text, Some(&url))));
        match url.scheme() {
            "redis" | "rediss" | "redis+unix" => {}
            "redis-cluster" | "rediss-cluster" => {
                return Err(wrong(
                    "names a cluster, which is not one server: see `Builder::cluster`",
                ));
            }
            _ => return Err(wrong(&format!("has an unknown scheme; known are {SCHEMES}"))),
        }
        if url.fragment().is_some() {
            return Err(wrong("has a `#`; in a password it is written %23"));
        }
        let login = login(&url).map_err(wrong)?;
        let (label, server, database) = place(&url).map_err(wrong)?;
        let secured = Secured::new(config(server, login, database), url.scheme(), security);
        let secured = secured.map_err(|why| wrong(&why))?;
        Ok(Self::new(label, secured, None, security))
    }

    /// Several hosts, which `url` does not read.
    fn under_sentinels(scheme: &str, rest: &str, security: &Security) -> Result<Self, Error> {
        let unclear = |what: &str| Error::invalid(format!("the {scheme}:// address {what}"));
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (user, hosts) = authority.split_once('@').unwrap_or(("", authority));
        if hosts.contains('@') || tail.contains('@') {
            return Err(unclear("has an `@` too many; in a password it is written %40"));
        }
        let hosts = hosts.split(',').map(sentinel).collect::<Result<Vec<_>, _>>();
        let hosts = hosts.map_err(unclear)?;
        // From here on it is known that these are hosts, and may be shown.
        let names: Vec<_> = hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        let listed = names.join(",");
        let wrong = |what: &str| Error::invalid(format!("`{scheme}://{listed}` {what}"));
        if (0..names.len()).any(|at| names[..at].contains(&names[at])) {
            return Err(wrong("names a sentinel twice, and each has one voice"));
        }
        let url = Url::parse(&format!("redis://{user}@host{tail}"));
        let url = url.map_err(|_| wrong("has credentials that cannot be read"))?;
        if url.fragment().is_some() {
            return Err(wrong("has a `#`; in a password it is written %23"));
        }
        let login = login(&url).map_err(wrong)?;
        let (service, database) = service(url.path()).map_err(wrong)?;
        let query = url.query().unwrap_or_default();
        let sentinel_login = sentinel_login(query).map_err(wrong)?;
        let secured = |config| Secured::new(config, scheme, security).map_err(|why| wrong(&why));
        let all = hosts.iter().zip(names).map(|((host, port), name)| {
            let config = config(server_at(host, *port), sentinel_login.clone(), 0);
            // What a sentinel answers is the same in either version, and no old one knows HELLO.
            Ok((name, secured(Config { version: RespVersion::RESP2, ..config })?))
        });
        let all = all.collect::<Result<_, Error>>()?;
        // Where the server is has to be asked.
        let server = ServerConfig::Centralized { server: Server::new(String::new(), 0) };
        let secured = secured(config(server, login, database))?;
        let label = labelled(format!("{service}@{listed}"), database);
        let sentinels = Arc::new(Sentinels { service: service.to_owned(), all });
        Ok(Self::new(label, secured, Some(sentinels), security))
    }

    fn new(
        label: String,
        secured: Secured,
        sentinels: Option<Arc<Sentinels>>,
        security: &Security,
    ) -> Self {
        let named = secured.config.password.is_some();
        let provider = security.credentials.clone().filter(|_| !named);
        Self { label: label.into(), secured, sentinels, provider }
    }

    /// `host:port`, the path of a unix socket, or `service@host:port,host:port` of the sentinels;
    /// with the database unless it is 0.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// What the next connection is made with, but for what sentinels say.
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
            return Ok(Self { config, tls: None });
        }
        let tls = security.tls.clone().unwrap_or_default();
        let config = Config { tls: Some(tls.connector()?.into()), ..config };
        Ok(Self { config, tls: Some(tls.into()) })
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
            let tls = Some(Arc::clone(tls).read().await?.into());
            return Ok(Config { tls, ..self.config.clone() });
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

/// User and password, each where there is one.
type Login = (Option<String>, Option<String>);

fn login(url: &Url) -> Result<Login, &'static str> {
    let decoded = |text: &str| {
        let text = decode(text).map(|text| Some(text).filter(|text| !text.is_empty()));
        text.ok_or("has credentials that are not percent-encoded UTF-8")
    };
    let username = decoded(url.username())?;
    let password = decoded(url.password().unwrap_or_default())?;
    if username.is_some() && password.is_none() {
        return Err("has a user without a password (`user:password@`, or `:password@`)");
    }
    Ok((username, password))
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

fn place(url: &Url) -> Result<(String, ServerConfig, u8), &'static str> {
    if url.scheme() == "redis+unix" {
        return socket(url);
    }
    if url.query().is_some() {
        return Err("has a `?`, but takes no parameters; in a password it is written %3F");
    }
    let (host, port) = host_and_port(url, 6379)?;
    let database = database(url.path().trim_start_matches('/'))?;
    let label = labelled(format!("{host}:{port}"), database);
    Ok((label, server_at(&host, port), database))
}

fn host_and_port(url: &Url, usual_port: u16) -> Result<(String, u16), &'static str> {
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or("has no host")?;
    match url.port().unwrap_or(usual_port) {
        0 => Err("has port 0"),
        port => Ok((host.to_owned(), port)),
    }
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
fn socket(_: &Url) -> Result<(String, ServerConfig, u8), &'static str> {
    Err("needs Unix: this system has no such sockets")
}

#[cfg(unix)]
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

fn sentinel(text: &str) -> Result<(String, u16), &'static str> {
    let url = Url::parse(&format!("redis://{text}"));
    host_and_port(&url.map_err(|_| "has a host that cannot be read")?, 26379)
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

fn sentinel_login(query: &str) -> Result<Login, &'static str> {
    let (mut user, mut password) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value).filter(|value| !value.is_empty());
        let place = match name {
            "sentinel_user" => &mut user,
            "sentinel_password" => &mut password,
            _ => return Err("has a parameter other than `sentinel_user`, `sentinel_password`"),
        };
        *place = Some(value.ok_or("has a parameter that is empty or not percent-encoded UTF-8")?);
    }
    if user.is_some() && password.is_none() {
        return Err("has a `sentinel_user` without a `sentinel_password`");
    }
    Ok((user, password))
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
