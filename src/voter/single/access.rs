//! How to connect to a server: where it is, or which sentinels say so; the login, and TLS.

use std::sync::Arc;

#[cfg(feature = "tls")]
use super::carrier::TlsConnector;
use super::{
    Security,
    address::{Address, Site},
    carrier::{Config, RespVersion, Server, ServerConfig},
    credentials::{Credentials, Provider},
};
use crate::proto::Error;
#[cfg(feature = "tls")]
use crate::voter::{SingleFlight, Tls};

/// Where a server is, how to log in there, and TLS.
#[derive(Clone)]
pub(crate) struct Access {
    label: Arc<str>,
    pub(super) config: Config,
    /// Set if the address asks for TLS.
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Arc<Tls>>,
    /// Reads the files of TLS. Copies share it, so that they share the thread.
    #[cfg(feature = "tls")]
    reading: Arc<SingleFlight<Result<TlsConnector, String>>>,
    pub(super) sentinels: Option<Arc<Sentinels>>,
    /// The user's function for credentials. None if the address has credentials.
    pub(super) provider: Option<Provider>,
}

/// The sentinels that say where the server is.
pub(super) struct Sentinels {
    pub(super) service: String,
    pub(super) all: Vec<Access>,
}

impl Access {
    /// Fails if something is wrong with the address, or with the settings or files of TLS.
    pub(crate) fn new(address: &Address, security: &Security) -> Result<Self, Error> {
        let parts = address.parts()?;
        let secured = |label: String, config| {
            Self::secured(label.into(), config, parts.tls, security)
                .map_err(|why| Error::invalid(format!("`{}` {why}", parts.text(true))))
        };
        let (server, sentinels) = match &parts.site {
            Site::Server(host, port) => (server_at(host, *port), None),
            #[cfg(unix)]
            Site::Socket(path) => (ServerConfig::Unix { path: path.into() }, None),
            #[cfg(not(unix))]
            Site::Socket(_) => {
                let why = "sockets need Unix: this system has no such sockets";
                return Err(Error::invalid(why));
            }
            Site::Service { name, sentinels, login } => {
                let sentinel = |(host, port): &(String, u16)| {
                    let config = config(server_at(host, *port), login.as_ref(), 0);
                    // Old sentinels have no `HELLO`, and the answers are the same in both versions.
                    let config = Config { version: RespVersion::RESP2, ..config };
                    secured(format!("{host}:{port}"), config)
                };
                let all = sentinels.iter().map(sentinel).collect::<Result<_, Error>>()?;
                // `Dialer::connect` sets it, by what the sentinels say.
                let server = ServerConfig::Centralized { server: Server::new(String::new(), 0) };
                (server, Some(Arc::new(Sentinels { service: name.clone(), all })))
            }
        };
        let config = config(server, parts.login.as_ref(), parts.database);
        let provider = security.credentials.clone().filter(|_| parts.login.is_none());
        Ok(Self { sentinels, provider, ..secured(parts.label(), config)? })
    }

    /// Adds TLS. Fails if something is wrong with its settings or files.
    #[cfg(feature = "tls")]
    fn secured(
        label: Arc<str>,
        config: Config,
        has_tls: bool,
        security: &Security,
    ) -> Result<Self, String> {
        let tls = has_tls.then(|| security.tls.clone().unwrap_or_default());
        let connector = tls.as_ref().map(Tls::connector).transpose()?;
        let config = Config { tls: connector.map(Into::into), ..config };
        let (tls, reading) = (tls.map(Into::into), Arc::new(SingleFlight::new()));
        Ok(Self { label, config, tls, reading, sentinels: None, provider: None })
    }

    #[cfg(not(feature = "tls"))]
    fn secured(
        label: Arc<str>,
        config: Config,
        has_tls: bool,
        _: &Security,
    ) -> Result<Self, String> {
        if has_tls {
            return Err("needs the cargo feature `tls`".to_owned());
        }
        Ok(Self { label, config, sentinels: None, provider: None })
    }

    /// `host:port`, the path of a unix socket, or `service@host:port,host:port` of the sentinels;
    /// with the database unless it is 0.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// The configuration of the next connection, without the server if sentinels name it.
    pub(super) async fn config(&self) -> Result<Config, Arc<str>> {
        let mut config = self.config.clone();
        // Read again for each connection: certificates that are valid for hours are replaced many
        // times during the life of a client.
        #[cfg(feature = "tls")]
        if let Some(tls) = self.tls.clone().filter(|tls| tls.has_files()) {
            // On a thread of its own: a disk may take its time, and renewals run on this one.
            let read = self.reading.outcome(|_| false, move || tls.connector()).await;
            let read = read.map_err(|error| format!("cannot use TLS: {error}"))?;
            config.tls = Some(read?.into());
        }
        if let Some(provider) = &self.provider {
            let credentials = provider.ask(&self.label).await?;
            (config.username, config.password) = (credentials.user, Some(credentials.password));
        }
        Ok(config)
    }

    /// The same login and TLS for another server.
    pub(in crate::voter) fn at(&self, host: &str, port: u16) -> Self {
        let config =
            Config { server: server_at(host, port), database: None, ..self.config.clone() };
        Self { label: format!("{host}:{port}").into(), config, ..self.clone() }
    }

    /// The host; empty for a socket.
    pub(in crate::voter) fn host(&self) -> &str {
        match &self.config.server {
            ServerConfig::Centralized { server } => &server.host,
            _ => "",
        }
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.config.uses_tls()
    }

    /// Whether this may be a server of a cluster, which has no sentinels and one database.
    pub(crate) fn is_of_a_cluster(&self) -> bool {
        let is_there = matches!(self.config.server, ServerConfig::Centralized { .. });
        self.config.database.is_none() && self.sentinels.is_none() && is_there
    }
}

fn config(server: ServerConfig, login: Option<&Credentials>, database: u8) -> Config {
    Config {
        version: RespVersion::RESP3,
        server,
        username: login.and_then(|login| login.user.clone()),
        password: login.map(|login| login.password.clone()),
        database: (database != 0).then_some(database),
        ..Config::default()
    }
}

/// A server by its host (an IPv6 address in brackets) and port.
pub(super) fn server_at(host: &str, port: u16) -> ServerConfig {
    let server = Server::new(host.to_owned(), port);
    // The name that a certificate must have. Set here, because fred gets the number of the host as
    // its address (`Link::connect`).
    #[cfg(feature = "tls")]
    let server =
        Server { tls_server_name: Some(host.trim_matches(['[', ']']).to_owned().into()), ..server };
    ServerConfig::Centralized { server }
}
