//! TLS with the platform's root certificates.

use std::sync::Arc;

use fred::{
    rustls::{
        ClientConfig, RootCertStore,
        crypto::{CryptoProvider, ring},
    },
    rustls_native_certs::load_native_certs,
    types::config::TlsConnector,
};

/// Built by hand, because fred's own way panics where a program has several cryptography providers
/// compiled in and installed none, and fails on the first odd certificate in the platform's store.
pub(super) fn connector() -> Result<TlsConnector, String> {
    let found = load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        let why = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        return Err(format!("needs the platform's root certificates, but none are usable{why}"));
    }
    let provider = CryptoProvider::get_default()
        .map_or_else(|| Arc::new(ring::default_provider()), Arc::clone);
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("cannot use TLS: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config.into())
}
