//! What a server is started with beyond the usual.

use std::fs;
use std::path::{Path, PathBuf};

#[cfg(feature = "tls")]
use super::tls::{Certificates, ClientCertificates};

/// The one who may do everything where a server has users of its own: the tests themselves, by
/// [`RedisServer::command`](super::RedisServer::command), and servers among each other.
const MASTER: [&str; 2] = ["harness", "of-the-harness"];

const CONFIG: &str = "server.conf";

/// Settings of one server, or of all nodes of a cluster. They add up:
/// `Settings::new().tls(..).users(..)`.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    flags: Vec<String>,
    files: Vec<(String, String)>,
    program: Option<PathBuf>,
    variables: Vec<(String, String)>,
    has_users: bool,
    speaks_tls: bool,
}

impl Settings {
    /// The usual ones.
    pub fn new() -> Self {
        Self::default()
    }

    /// Further flags, which win over the usual ones and over earlier ones.
    ///
    /// `{port}` and `{dir}` in a flag stand for the server's port and its private directory:
    /// `&["--aclfile", "{dir}/users"]`.
    #[must_use]
    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|&flag| flag.to_owned()));
        self
    }

    /// As [`flags`](Self::flags), and earlier ones win over these.
    #[must_use]
    pub(super) fn flags_before(mut self, flags: &[&str]) -> Self {
        self.flags.splice(0..0, flags.iter().map(|&flag| flag.to_owned()));
        self
    }

    /// Another program than that of all tests.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// A variable of its environment; `{dir}` stands for the server's private directory.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A file in the server's directory, written before its first start and not again.
    #[must_use]
    pub fn file(mut self, name: &str, text: &str) -> Self {
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    /// A configuration file, which the server may rewrite.
    #[must_use]
    pub fn config(self, text: &str) -> Self {
        self.file(CONFIG, text)
    }

    /// Only who is named here may log in, and nobody can do anything without it: each is what
    /// `ACL SETUSER` takes, `"locker on >secret ~quorate:* +evalsha"`.
    ///
    /// They are in the file `users` of the directory, which `ACL LOAD` reads again. The test's own
    /// [`command`](super::RedisServer::command) may do everything.
    #[must_use]
    pub fn users(mut self, users: &[&str]) -> Self {
        let [name, password] = MASTER;
        let master = format!("{name} on >{password} ~* &* +@all");
        let names_default = users.iter().any(|user| user.starts_with("default "));
        let default = (!names_default).then_some("default off");
        let all = default.into_iter().chain([&*master]).chain(users.iter().copied());
        let text = all.map(|user| format!("user {user}\n")).collect::<Vec<_>>().concat();
        self.has_users = true;
        self.file("users", &text).flags(&["--aclfile", "{dir}/users"]).flags(&[
            "--masteruser",
            name,
            "--masterauth",
            password,
        ])
    }

    /// The port speaks TLS and nothing else, also with replicas and among nodes of a cluster. The
    /// server's directory has the files that [`Certificates`] names.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, certificates: &Certificates, clients: ClientCertificates) -> Self {
        self.speaks_tls = true;
        let auth_clients = match clients {
            ClientCertificates::Demanded => "yes",
            ClientCertificates::NotAsked => "no",
        };
        let files = certificates.files().into_iter();
        files
            .fold(self, |settings, (name, text)| settings.file(name, text))
            .flags(&["--port", "0", "--tls-port", "{port}", "--tls-auth-clients", auth_clients])
            .flags(&["--tls-ca-cert-file", "{dir}/ca.pem"])
            .flags(&["--tls-cert-file", "{dir}/server.pem", "--tls-key-file", "{dir}/server.key"])
            .flags(&["--tls-replication", "yes", "--tls-cluster", "yes"])
    }

    /// The program, where it is another.
    pub(super) fn own_program(&self) -> Option<PathBuf> {
        self.program.clone()
    }

    pub(super) fn variables_for(&self, dir: &str) -> impl Iterator<Item = (&str, String)> {
        self.variables.iter().map(move |(name, value)| (&**name, value.replace("{dir}", dir)))
    }

    /// The name and the password of the user who may do everything, where there are users.
    pub(super) fn master(&self) -> Option<[&'static str; 2]> {
        self.has_users.then_some(MASTER)
    }

    /// The command that logs this one in.
    pub(super) fn login(&self) -> Option<[&'static str; 3]> {
        self.master().map(|[name, password]| ["AUTH", name, password])
    }

    pub(super) fn scheme_and_host(&self, login: &str) -> String {
        if self.speaks_tls {
            format!("rediss://{login}localhost")
        } else {
            format!("redis://{login}127.0.0.1")
        }
    }

    pub(super) fn write_files(&self, dir: &Path) {
        for (name, text) in &self.files {
            fs::write(dir.join(name), text).expect("the temp dir can be written");
        }
    }

    /// The configuration file, where there is one: the first argument.
    pub(super) fn config_file(&self, dir: &Path) -> Option<PathBuf> {
        self.files.iter().any(|(name, _)| name == CONFIG).then(|| dir.join(CONFIG))
    }

    pub(super) fn flags_for(&self, port: u16, dir: &str) -> impl Iterator<Item = String> {
        let port = port.to_string();
        self.flags.iter().map(move |flag| flag.replace("{port}", &port).replace("{dir}", dir))
    }
}
