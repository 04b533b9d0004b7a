//! TLS: the trusted authorities, and the client's own certificate.

use std::{fmt, fs, path::PathBuf, sync::Arc, time::Duration};

use tokio::time;
use webpki::{EndEntityCert, Error::CertExpired, Error::CertNotValidYet, KeyUsage};

use super::carrier::{
    TlsConnector, load_native_certs,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::{CryptoProvider, ring},
        pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject},
    },
};
use crate::{series, voter::SingleFlight};

/// The pause between two looks at the client's own certificate.
const INTERVAL: Duration = Duration::from_secs(10);

/// Settings of TLS (1.2 or 1.3) for `rediss://` addresses.
///
/// By default, a server's certificate must be signed by one of the platform's root certificates,
/// and the client shows no certificate. A server's certificate must name the host of the address;
/// with Sentinel, the host or IP address that the sentinels give.
///
/// [`connect`](crate::Builder::connect) reads the files, and fails if something is wrong with them.
/// They are read again for each new connection. So a certificate that is replaced on disk is used
/// from the next connection on. Open connections stay open.
///
/// # Examples
///
/// ```no_run
/// # async fn connect() -> Result<(), quorate::Error> {
/// use quorate::{Quorate, Tls};
///
/// let tls = Tls::new().ca_file("/etc/locks/ca.pem");
/// let tls = tls.client_files("/etc/locks/client.pem", "/etc/locks/client.key");
/// let servers = ["rediss://a.example", "rediss://b.example", "rediss://c.example"];
/// let quorum = Quorate::builder().voters(servers).tls(tls).connect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
#[must_use = "it does nothing until a builder has it"]
pub struct Tls {
    authorities: Vec<Pem>,
    client: Option<(Pem, Pem)>,
}

/// Certificates or a key.
#[derive(Clone)]
enum Pem {
    Text(Arc<[u8]>),
    File(PathBuf),
}

impl Tls {
    /// The defaults: the platform's root certificates, and no certificate of the client.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts the authorities whose certificates are in this PEM text, instead of the platform's.
    /// May be called more than once.
    pub fn ca_pem(mut self, certificates: impl AsRef<[u8]>) -> Self {
        self.authorities.push(Pem::text(certificates));
        self
    }

    /// As [`ca_pem`](Self::ca_pem), with a file.
    pub fn ca_file(mut self, certificates: impl Into<PathBuf>) -> Self {
        self.authorities.push(Pem::File(certificates.into()));
        self
    }

    /// Shows this certificate to servers that ask for one: the PEM texts of its chain, the client's
    /// own certificate first, and of its private key.
    pub fn client_pem(mut self, certificates: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        self.client = Some((Pem::text(certificates), Pem::text(key)));
        self
    }

    /// As [`client_pem`](Self::client_pem), with files.
    pub fn client_files(
        mut self,
        certificates: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.client = Some((Pem::File(certificates.into()), Pem::File(key.into())));
        self
    }

    // Not by fred's own function. That panics if a program has several cryptography providers
    // compiled in and installed none, and fails on the first odd certificate of the platform.
    pub(super) fn connector(&self) -> Result<TlsConnector, String> {
        let provider = CryptoProvider::get_default()
            .map_or_else(|| Arc::new(ring::default_provider()), Arc::clone);
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("cannot use TLS: {error}"))?
            .with_root_certificates(self.roots()?);
        let Some((certificates, key)) = &self.client else {
            return Ok(config.with_no_client_auth().into());
        };
        let chain = certificates.certificates("the client's certificate")?;
        let key = key.key()?;
        let config = config
            .with_client_auth_cert(chain, key)
            .map_err(|error| format!("cannot use the client's certificate and key: {error}"))?;
        Ok(config.into())
    }

    /// Whether a part of it is in files, which may be replaced.
    pub(super) fn has_files(&self) -> bool {
        let client = self.client.iter().flat_map(|(certificates, key)| [certificates, key]);
        self.authorities.iter().chain(client).any(|pem| matches!(pem, Pem::File(_)))
    }

    /// Writes to the metrics from when until when the client's own certificate is valid, again and
    /// again, as the file may be replaced. Ends at once if there is no such certificate.
    pub(super) async fn watch_certificate(self: Arc<Self>) {
        let Some((certificates, _)) = &self.client else { return };
        let reading = SingleFlight::new();
        loop {
            let pem = certificates.clone();
            let validity =
                move || validity(pem.certificates("the client's certificate").ok()?.first()?);
            let read = reading.outcome(|_| false, validity);
            // A file that cannot be read is no matter of metrics: the next connection names it.
            if let Ok(Some([start, end])) = read.await {
                series::CERTIFICATE_START.set(start.as_secs_f64());
                series::CERTIFICATE_END.set(end.as_secs_f64());
            }
            time::sleep(INTERVAL).await;
        }
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        if self.authorities.is_empty() {
            return platform_roots();
        }
        let mut roots = RootCertStore::empty();
        for pem in &self.authorities {
            for certificate in pem.certificates("the authority's certificate")? {
                roots.add(certificate).map_err(|error| {
                    format!("cannot trust the authority's certificate{}: {error}", pem.place())
                })?;
            }
        }
        Ok(roots)
    }
}

/// From when until when a certificate is valid, as time since 1970.
fn validity(certificate: &CertificateDer<'_>) -> Option<[Duration; 2]> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    // webpki names these times only when it refuses a certificate because of them. It checks them
    // before the signature, so this needs no authority.
    let refused = |time| {
        let (time, usage) = (UnixTime::since_unix_epoch(time), KeyUsage::client_auth());
        certificate.verify_for_usage(&[], &[], &[], time, usage, None, None).err()
    };
    let since_1970 = |time: UnixTime| Duration::from_secs(time.as_secs());
    let start = match refused(Duration::ZERO)? {
        CertNotValidYet { not_before, .. } => since_1970(not_before),
        _ => Duration::ZERO,
    };
    match refused(Duration::MAX)? {
        CertExpired { not_after, .. } => Some([start, since_1970(not_after)]),
        _ => None,
    }
}

fn platform_roots() -> Result<RootCertStore, String> {
    let found = load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        let why = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        return Err(format!("needs the platform's root certificates, but none are usable{why}"));
    }
    Ok(roots)
}

impl Pem {
    fn text(text: impl AsRef<[u8]>) -> Self {
        Self::Text(text.as_ref().into())
    }

    fn read(&self, what: &str) -> Result<Arc<[u8]>, String> {
        match self {
            Self::Text(text) => Ok(Arc::clone(text)),
            Self::File(path) => fs::read(path)
                .map(Into::into)
                .map_err(|error| format!("cannot read {what}{}: {error}", self.place())),
        }
    }

    fn certificates(&self, what: &str) -> Result<Vec<CertificateDer<'static>>, String> {
        let text = self.read(what)?;
        let found = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
        let found = found.map_err(|error| format!("cannot use {what}{}: {error}", self.place()))?;
        if found.is_empty() {
            return Err(format!("cannot use {what}{}: it has no PEM certificate", self.place()));
        }
        Ok(found)
    }

    // The error names no part of the text, which may be the key.
    fn key(&self) -> Result<PrivateKeyDer<'static>, String> {
        let text = self.read("the client's key")?;
        PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
            format!("cannot use the client's key{}: it has no PEM private key", self.place())
        })
    }

    /// Where it is, for errors; empty for a text.
    fn place(&self) -> String {
        match self {
            Self::Text(_) => String::new(),
            Self::File(path) => format!(" in {}", path.display()),
        }
    }
}

// Without the texts, as one of them is a private key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("own_authorities", &!self.authorities.is_empty())
            .field("client_certificate", &self.client.is_some())
            .finish()
    }
}
