//! Certificates for one test, with an authority of their own.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// Whether a server wants a certificate of its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Who has none that the authority signed is turned away.
    Demanded,
    /// Clients need none.
    NotAsked,
}

/// A certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// What both sides of a TLS connection need, as PEM. A server's directory has it as files:
/// `ca.pem`, `server.pem`, `server.key`, `client.pem`, `client.key`, and of strangers
/// `stranger-ca.pem`, `stranger.pem`, `stranger.key`.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The authority that signed the server and the client.
    pub authority: String,
    /// For `localhost` and `127.0.0.1`.
    pub server: Pair,
    /// What a client shows.
    pub client: Pair,
    /// An authority that signed neither.
    pub stranger_authority: String,
    /// What a client shows whom the other authority signed.
    pub stranger: Pair,
}

impl Certificates {
    /// New ones: no test trusts those of another.
    #[expect(clippy::new_without_default, reason = "each is another: there is no default one")]
    pub fn new() -> Self {
        let (issuer, authority) = authority("authority.example");
        let (other, stranger_authority) = self::authority("stranger.example");
        Self {
            authority,
            server: pair(&["localhost", "127.0.0.1"], &issuer),
            client: pair(&["client.example"], &issuer),
            stranger_authority,
            stranger: pair(&["client.example"], &other),
        }
    }

    pub(super) fn files(&self) -> [(&'static str, &str); 8] {
        [
            ("ca.pem", &self.authority),
            ("server.pem", &self.server.certificate),
            ("server.key", &self.server.key),
            ("client.pem", &self.client.certificate),
            ("client.key", &self.client.key),
            ("stranger-ca.pem", &self.stranger_authority),
            ("stranger.pem", &self.stranger.certificate),
            ("stranger.key", &self.stranger.key),
        ]
    }
}

fn authority(name: &str) -> (Issuer<'static, KeyPair>, String) {
    let mut params = params(&[name]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate").pem();
    (Issuer::new(params, key), certificate)
}

fn pair(names: &[&str], issuer: &Issuer<'static, KeyPair>) -> Pair {
    let key = KeyPair::generate().expect("a key");
    let certificate = params(names).signed_by(&key, issuer).expect("a certificate").pem();
    Pair { certificate, key: key.serialize_pem() }
}

fn params(names: &[&str]) -> CertificateParams {
    let all: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(all).expect("names of hosts");
    params.distinguished_name.push(DnType::CommonName, names[0]);
    params
}
