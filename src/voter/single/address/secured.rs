//! What connections are made with, and the files of its TLS, which are read again for each.

use std::sync::Arc;

use fred::types::config::Config;

use crate::voter::Security;
#[cfg(feature = "tls")]
use crate::voter::Tls;

/// A configuration, and how it is secured.
#[derive(Clone)]
pub(in crate::voter::single) struct Secured {
    pub(in crate::voter::single) config: Config,
    /// Where the scheme asks for TLS.
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Arc<Tls>>,
}

#[cfg(feature = "tls")]
impl Secured {
    /// With TLS where the scheme says so; or what is wrong with the settings or the files of TLS.
    pub(super) fn new(config: Config, scheme: &str, security: &Security) -> Result<Self, String> {
        if !scheme.starts_with("rediss") {
            return Ok(Self { config, tls: None });
        }
        let tls = security.tls.clone().unwrap_or_default();
        let config = Config { tls: Some(tls.connector()?.into()), ..config };
        Ok(Self { config, tls: Some(tls.into()) })
    }

    /// What the next connection is made with: the files are read again, as certificates that live
    /// for hours are replaced many times while a client is there.
    pub(in crate::voter::single) async fn fresh(&self) -> Result<Config, Arc<str>> {
        let mut config = self.config.clone();
        if let Some(tls) = self.tls.as_ref().filter(|tls| tls.has_files()) {
            config.tls = Some(Arc::clone(tls).read().await?.into());
        }
        Ok(config)
    }
}

#[cfg(not(feature = "tls"))]
impl Secured {
    pub(super) fn new(config: Config, scheme: &str, _: &Security) -> Result<Self, String> {
        if scheme.starts_with("rediss") {
            return Err("needs the cargo feature `tls`".to_owned());
        }
        Ok(Self { config })
    }

    /// What the next connection is made with.
    #[expect(clippy::unused_async, reason = "with TLS it reads files")]
    pub(in crate::voter::single) async fn fresh(&self) -> Result<Config, Arc<str>> {
        Ok(self.config.clone())
    }
}
