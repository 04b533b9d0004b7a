//! A client that the environment sets up, as operators set up services.

#[path = "times.rs"]
mod times;

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    fs,
    time::Duration,
};

use self::times::parse_time as time;
use super::{Builder, Cluster, VoterSet};
#[cfg(feature = "tls")]
use crate::voter::Tls;
use crate::{
    proto::{Error, RestartGuard},
    voter::{Address, Credentials, SingleFlight},
};

const VOTERS: &str = "QUORATE_VOTERS";
const CLUSTER: &str = "QUORATE_CLUSTER";
const CLUSTER_VOTERS: &str = "QUORATE_CLUSTER_VOTERS";
const USER: &str = "QUORATE_USER";
const PASSWORD: &str = "QUORATE_PASSWORD";
const PASSWORD_FILE: &str = "QUORATE_PASSWORD_FILE";
const CA_FILE: &str = "QUORATE_TLS_CA_FILE";
const CERTIFICATE_FILE: &str = "QUORATE_TLS_CERTIFICATE_FILE";
const KEY_FILE: &str = "QUORATE_TLS_KEY_FILE";

/// Stands before the name of another variable that has the addresses.
// No other variable names voters by itself, not even `REDIS_URL`: a service whose `QUORATE_VOTERS`
// is missing would lock on its cache.
const REFERENCE: &str = "env:";

/// Sets one thing. The error says what is expected.
type Set = fn(Builder, &str) -> Result<Builder, &'static str>;

/// The variables that set one thing by themselves.
// A table, so that the spelling check, the file of the program and `every_setting_is_read` have all
// names without listing them again.
const SETTINGS: [(&str, Set); 19] = [
    ("QUORATE_LEASE", |builder, text| Ok(builder.lease(time(text)?))),
    ("QUORATE_HOLD_AT_MOST", |builder, text| Ok(builder.hold_at_most(time(text)?))),
    ("QUORATE_LONGEST_LEASE", |builder, text| Ok(builder.longest_lease(time(text)?))),
    ("QUORATE_VOTER_DEADLINE", |builder, text| Ok(builder.voter_deadline(time(text)?))),
    ("QUORATE_WAITER_DEADLINE", |builder, text| Ok(builder.waiter_deadline(time(text)?))),
    ("QUORATE_QUORUM_TIMEOUT", |builder, text| Ok(builder.quorum_timeout(time(text)?))),
    ("QUORATE_CONNECT_TIMEOUT", |builder, text| Ok(builder.connect_timeout(time(text)?))),
    ("QUORATE_POLL_INTERVAL", |builder, text| Ok(builder.poll_interval(time(text)?))),
    ("QUORATE_FENCE_MEMORY", |builder, text| Ok(builder.fence_memory(time(text)?))),
    ("QUORATE_REPLICA_TIMEOUT", |builder, text| Ok(builder.replica_timeout(time(text)?))),
    ("QUORATE_REPLICA_ACKS", |builder, text| {
        Ok(builder.replica_acks(text.parse().map_err(|_| "a number of replicas is expected")?))
    }),
    ("QUORATE_MINIMUM_VALIDITY", |builder, text| Ok(builder.minimum_validity(time(text)?))),
    ("QUORATE_DRIFT", |builder, text| {
        let (ppm, fixed) = drift(text)?;
        Ok(builder.drift(ppm, fixed))
    }),
    ("QUORATE_BATCH_SIZE", |builder, text| {
        Ok(builder.batch_size(text.parse().map_err(|_| "a number of requests is expected")?))
    }),
    ("QUORATE_ALLOW_EVICTION", |builder, text| {
        Ok(builder.allow_eviction(text.parse().map_err(|_| "`true` or `false` is expected")?))
    }),
    ("QUORATE_RESTART_GUARD", |builder, text| Ok(builder.restart_guard(restart_guard(text)?))),
    ("QUORATE_VOTER_CONFIGURATION", |builder, text| {
        Ok(builder.voter_configuration(
            text.parse().map_err(|_| "the number of a voter configuration is expected")?,
        ))
    }),
    ("QUORATE_CLIENT_NAME", |builder, text| Ok(builder.client_name(text))),
    ("QUORATE_PREFIX", |builder, text| Ok(builder.prefix(text))),
];

// The rest is read in groups: a number of voters means nothing without a cluster, and a password
// excludes a password file.
const SET: [&str; 3] = [VOTERS, CLUSTER, CLUSTER_VOTERS];
const REPLACED: [&str; 3] =
    ["QUORATE_REPLACED_VOTERS", "QUORATE_REPLACED_CLUSTER", "QUORATE_REPLACED_CLUSTER_VOTERS"];
const LOGIN: [&str; 3] = [USER, PASSWORD, PASSWORD_FILE];
const TLS: [&str; 3] = [CA_FILE, CERTIFICATE_FILE, KEY_FILE];

impl Builder {
    /// The settings that the environment has: what an operator sets, without a change of the
    /// program. What is set on the builder afterwards replaces them.
    ///
    /// | variable | sets |
    /// |---|---|
    /// | `QUORATE_VOTERS` | [`voters`](Self::voters), separated by blanks or commas |
    /// | `QUORATE_CLUSTER` | a [`cluster`](Self::cluster), by some of its servers |
    /// | `QUORATE_CLUSTER_VOTERS` | [`Cluster::voters`] |
    /// | `QUORATE_REPLACED_VOTERS` | [`replacing`](Self::replacing): the old voters |
    /// | `QUORATE_REPLACED_CLUSTER`, `QUORATE_REPLACED_CLUSTER_VOTERS` | the same, of a cluster |
    /// | `QUORATE_USER`, `QUORATE_PASSWORD` | the login at addresses that have none |
    /// | `QUORATE_PASSWORD_FILE` | the same, read again for each connection |
    /// | `QUORATE_TLS_CA_FILE` | `Tls::ca_file` (feature `tls`) |
    /// | `QUORATE_TLS_CERTIFICATE_FILE`, `QUORATE_TLS_KEY_FILE` | `Tls::client_files` |
    /// | `QUORATE_LEASE` | [`lease`](Self::lease) |
    /// | `QUORATE_HOLD_AT_MOST` | [`hold_at_most`](Self::hold_at_most) |
    /// | `QUORATE_LONGEST_LEASE` | [`longest_lease`](Self::longest_lease) |
    /// | `QUORATE_VOTER_DEADLINE` | [`voter_deadline`](Self::voter_deadline) |
    /// | `QUORATE_WAITER_DEADLINE` | [`waiter_deadline`](Self::waiter_deadline) |
    /// | `QUORATE_QUORUM_TIMEOUT` | [`quorum_timeout`](Self::quorum_timeout) |
    /// | `QUORATE_CONNECT_TIMEOUT` | [`connect_timeout`](Self::connect_timeout) |
    /// | `QUORATE_POLL_INTERVAL` | [`poll_interval`](Self::poll_interval) |
    /// | `QUORATE_MINIMUM_VALIDITY` | [`minimum_validity`](Self::minimum_validity) |
    /// | `QUORATE_DRIFT` | [`drift`](Self::drift), as in `10000ppm 2ms` |
    /// | `QUORATE_BATCH_SIZE` | [`batch_size`](Self::batch_size) |
    /// | `QUORATE_FENCE_MEMORY` | [`fence_memory`](Self::fence_memory) |
    /// | `QUORATE_REPLICA_ACKS` | [`replica_acks`](Self::replica_acks) |
    /// | `QUORATE_REPLICA_TIMEOUT` | [`replica_timeout`](Self::replica_timeout) |
    /// | `QUORATE_RESTART_GUARD` | [`restart_guard`](Self::restart_guard) |
    /// | `QUORATE_ALLOW_EVICTION` | [`allow_eviction`](Self::allow_eviction): `true` or `false` |
    /// | `QUORATE_VOTER_CONFIGURATION` | [`voter_configuration`](Self::voter_configuration) |
    /// | `QUORATE_CLIENT_NAME` | [`client_name`](Self::client_name) |
    /// | `QUORATE_PREFIX` | [`Builder::prefix`] |
    ///
    /// `QUORATE_VOTERS` or `QUORATE_CLUSTER` is required. If both are set, the voters of both
    /// vote together. Among the addresses, `env:NAME` stands for the addresses in another variable,
    /// as in `QUORATE_VOTERS=env:REDIS_URL`. No other variable names voters by itself: a service
    /// whose `QUORATE_VOTERS` is missing must not lock on its cache.
    ///
    /// Times are whole seconds, or have a unit, `ms`, `s`, `m`, `h` or `d`: `30`, `30s`, `500ms`.
    /// The restart guard is `relative`, `strict` or `off`. A variable that is empty counts as not
    /// set. Other variables that begin with `QUORATE_` are left to the program.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid):
    ///
    /// - there are no voters;
    /// - a value cannot be read;
    /// - the variable that `env:NAME` names is not set;
    /// - a variable is probably misspelt: its name differs from one above by one or two letters in
    ///   one place, or by a unit at its end (`QUORATE_LEASE_MS`).
    ///
    /// The message has the name and the value, but never a password, nor the value of a variable
    /// that is misspelt or that `env:NAME` names. What the values mean is checked by
    /// [`connect`](Self::connect).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn connect() -> Result<(), quorate::Error> {
    /// let quorum = quorate::Builder::from_env()?.connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If nothing is set:
    ///
    /// ```
    /// let error = quorate::Builder::from_env().unwrap_err();
    /// assert!(error.is_invalid());
    /// assert!(error.to_string().starts_with("QUORATE_VOTERS is not set"));
    /// ```
    pub fn from_env() -> Result<Self, Error> {
        Self::from_variables(env::vars_os())
    }

    /// As [`from_env`](Self::from_env), with these variables instead of the environment's: for
    /// programs that read some settings from elsewhere, such as a file. A variable that `env:NAME`
    /// names must be among them.
    ///
    /// # Errors
    ///
    /// As [`from_env`](Self::from_env).
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// let file = [("QUORATE_VOTERS", "redis://10.0.0.1"), ("QUORATE_LEASE", "20s")];
    /// let builder = quorate::Builder::from_variables(file)?;
    /// # let _ = builder;
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_variables<N: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, Error> {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Variables::of(variables)?.builder()
    }

    /// The names of the variables that [`from_env`](Self::from_env) reads.
    pub fn variables() -> impl Iterator<Item = &'static str> {
        let others = [SET, REPLACED, LOGIN, TLS].into_iter().flatten();
        SETTINGS.iter().map(|(name, _)| *name).chain(others)
    }
}

/// The variables that are set.
struct Variables {
    /// The variables of this library that are not empty.
    own: BTreeMap<String, String>,
    /// All variables, as `env:NAME` may name any.
    all: BTreeMap<OsString, OsString>,
}

impl Variables {
    fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Self, Error> {
        let all: BTreeMap<OsString, OsString> = variables.into_iter().collect();
        let mut own = BTreeMap::new();
        for (name, value) in &all {
            let Some(name) = name.to_str().filter(|name| name.starts_with("QUORATE_")) else {
                continue;
            };
            // Other names are the program's own, such as `QUORATE_LISTEN` of a service.
            if !Builder::variables().any(|own| own == name) {
                check_spelling(name)?;
                continue;
            }
            let value = value.to_str();
            let value = value.ok_or_else(|| Error::invalid(format!("{name} is not UTF-8")))?;
            if !value.trim().is_empty() {
                own.insert(name.to_owned(), value.to_owned());
            }
        }
        Ok(Self { own, all })
    }

    fn builder(&self) -> Result<Builder, Error> {
        let mut builder = self.with_voters(Builder::default())?;
        for (name, set) in SETTINGS {
            let Some(value) = self.get(name) else { continue };
            builder = set(builder, value.trim()).map_err(|why| wrong(name, value, why))?;
        }
        self.with_tls(self.with_credentials(builder)?)
    }

    fn with_credentials(&self, builder: Builder) -> Result<Builder, Error> {
        let [user, password, file] = LOGIN.map(|name| self.get(name).map(str::to_owned));
        let refused = |why| Err(Error::invalid(why));
        match (&user, &password, &file) {
            (_, Some(_), Some(_)) => {
                return refused(format!("{PASSWORD} and {PASSWORD_FILE} are both set"));
            }
            (Some(_), None, None) => {
                return refused(format!("{USER} is set without {PASSWORD} or {PASSWORD_FILE}"));
            }
            (None, None, None) => return Ok(builder),
            _ => {}
        }
        let reading = SingleFlight::new();
        Ok(builder.credentials(move |_| {
            // For each connection, as passwords are rotated; and on a thread of its own: a disk
            // that hangs would hold up all renewals, which run on this thread
            // (`a_password_file_that_cannot_be_read_now_holds_up_no_other_voter`).
            let file = file.clone();
            let read = file.map(|file| reading.outcome(|_| false, move || read_password(&file)));
            let (user, password) = (user.clone(), password.clone());
            async move {
                let password = match read {
                    Some(read) => read.await.map_err(|why| why.to_string())??,
                    None => password.unwrap_or_default(),
                };
                Ok::<_, String>(match user {
                    Some(user) => Credentials::new(user, password),
                    None => Credentials::password(password),
                })
            }
        }))
    }

    #[cfg(feature = "tls")]
    fn with_tls(&self, builder: Builder) -> Result<Builder, Error> {
        let authority = self.get(CA_FILE);
        let tls = authority.map_or_else(Tls::new, |file| Tls::new().ca_file(file));
        match (self.get(CERTIFICATE_FILE), self.get(KEY_FILE)) {
            (Some(certificate), Some(key)) => Ok(builder.tls(tls.client_files(certificate, key))),
            (None, None) if authority.is_some() => Ok(builder.tls(tls)),
            (None, None) => Ok(builder),
            _ => Err(Error::invalid(format!("{CERTIFICATE_FILE} and {KEY_FILE} need each other"))),
        }
    }

    #[cfg(not(feature = "tls"))]
    fn with_tls(&self, builder: Builder) -> Result<Builder, Error> {
        match TLS.iter().find(|name| self.get(name).is_some()) {
            Some(name) => {
                Err(Error::invalid(format!("{name} is set, but the feature `tls` is off")))
            }
            None => Ok(builder),
        }
    }

    fn with_voters(&self, builder: Builder) -> Result<Builder, Error> {
        if self.get(VOTERS).or(self.get(CLUSTER)).is_none() {
            return Err(Error::invalid(format!(
                "{VOTERS} is not set: it names the servers, for example \
                 {VOTERS}=\"redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3\"; the servers of a \
                 Redis Cluster go into {CLUSTER}"
            )));
        }
        let (voters, replaced) = (self.voters(SET)?.unwrap_or_default(), self.voters(REPLACED)?);
        Ok(Builder { voters, replaced, ..builder })
    }

    /// The voters on servers and in a cluster; `None` if neither is set.
    fn voters(&self, [servers, cluster, votes]: [&str; 3]) -> Result<Option<VoterSet>, Error> {
        let set = self.addresses(servers)?.map(|servers| VoterSet::new().voters(servers));
        let (seeds, number) = match (self.addresses(cluster)?, self.get(votes)) {
            (Some(seeds), number) => (seeds, number),
            (None, None) => return Ok(set),
            (None, Some(_)) => {
                return Err(Error::invalid(format!("{votes} is set without {cluster}")));
            }
        };
        let mut cluster = Cluster::new(seeds);
        if let Some(number) = number {
            let expected = |_| wrong(votes, number, "a number of voters is expected");
            cluster = cluster.voters(number.trim().parse().map_err(expected)?);
        }
        Ok(Some(set.unwrap_or_default().cluster(cluster)))
    }

    /// The addresses in a variable, and in the variables that it names.
    fn addresses(&self, name: &str) -> Result<Option<Vec<Address>>, Error> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let mut found = Vec::new();
        for word in addresses(text) {
            let Some(other) = word.strip_prefix(REFERENCE) else {
                found.push(word.into());
                continue;
            };
            let wrong = |why: String| Error::invalid(format!("{name} {why}"));
            // Not shown: what is no name may be an address with a password.
            if !is_name(other) {
                return Err(wrong(format!("has `{REFERENCE}` without the name of a variable")));
            }
            let value = match self.all.get(OsStr::new(other)).map(|value| value.to_str()) {
                Some(None) => {
                    return Err(wrong(format!("names the variable {other}, which is not UTF-8")));
                }
                Some(Some(value)) if !value.trim().is_empty() => value,
                _ => return Err(wrong(format!("names the variable {other}, which is not set"))),
            };
            found.extend(addresses(value).into_iter().map(Address::from));
        }
        Ok(Some(found))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.own.get(name).map(String::as_str)
    }
}

fn read_password(file: &str) -> Result<String, String> {
    let text = fs::read_to_string(file).map_err(|why| format!("{file}: {why}"))?;
    // Editors end a file with a newline. Blanks at the beginning may belong to the password.
    Ok(text.trim_end().to_owned())
}

fn wrong(name: &str, value: &str, expected: &str) -> Error {
    Error::invalid(format!("{name} is {value:?}: {expected}"))
}

/// Fails if the name is probably meant to be one of the library's variables.
// An error and no warning: the service would run with the default, and nobody would notice.
fn check_spelling(name: &str) -> Result<(), Error> {
    let units = ["_MS", "_MILLIS", "_S", "_SEC", "_SECS", "_SECONDS"];
    let bare = units.iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name);
    let is_close = |own: &&str| {
        // If all but two letters in one place are the same at both ends, a letter was mistyped,
        // left out, doubled or swapped. An edit distance needs a table for this one question.
        let same = |(one, other): &(u8, u8)| one == other;
        let head = bare.bytes().zip(own.bytes()).take_while(same).count();
        let tail = bare.bytes().rev().zip(own.bytes().rev()).take_while(same).count();
        let [shorter, longer] = [usize::min, usize::max].map(|of| of(bare.len(), own.len()));
        (head + tail).min(shorter) + 2 >= longer
    };
    Builder::variables().find(is_close).map_or(Ok(()), |meant| {
        Err(Error::invalid(format!("{name} is unknown; is {meant} meant?")))
    })
}

/// The addresses of a text, and the references to other variables.
fn addresses(text: &str) -> Vec<&str> {
    // A comma separates two addresses only if an address or a reference follows: other commas
    // separate the sentinels of one address.
    let mut found = Vec::new();
    for mut word in text.split_whitespace() {
        let separates = |word: &str, at: usize| {
            let rest = &word[at + 1..];
            let other = rest.strip_prefix(REFERENCE).and_then(|rest| rest.split(',').next());
            Address::begins(rest) || other.is_some_and(is_name)
        };
        while let Some((at, _)) = word.match_indices(',').find(|(at, _)| separates(word, *at)) {
            found.push(&word[..at]);
            word = &word[at + 1..];
        }
        found.push(word);
    }
    let found = found.into_iter().map(|address| address.trim_matches(','));
    found.filter(|address| !address.is_empty()).collect()
}

/// Whether a variable may be called so.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    !text.is_empty() && text.bytes().all(is_plain)
}

fn drift(text: &str) -> Result<(u32, Duration), &'static str> {
    let expected = "parts per million of the lease and a time are expected, as in `10000ppm 2ms`";
    let (ppm, fixed) = text.split_once(' ').ok_or(expected)?;
    let ppm = ppm.strip_suffix("ppm").and_then(|ppm| ppm.parse().ok()).ok_or(expected)?;
    Ok((ppm, time(fixed.trim()).map_err(|_| expected)?))
}

fn restart_guard(text: &str) -> Result<RestartGuard, &'static str> {
    match text {
        "relative" => Ok(RestartGuard::Relative),
        "strict" => Ok(RestartGuard::Strict),
        "off" => Ok(RestartGuard::Off),
        _ => Err("`relative`, `strict` or `off` is expected"),
    }
}

#[cfg(test)]
#[path = "env_tests.rs"]
mod tests;
