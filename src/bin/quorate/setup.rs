//! The settings of a client: the options that subcommands share, the environment and the file.

// The library's own file: it has no public function that reads a time.
#[path = "../../client/times.rs"]
mod times;

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use quorate::{Builder, Cause, Quorate, VoterStatus};
use tokio::time;
use toml::{Table, Value};

use crate::console::{Code, Failure};

/// The place that a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SetBy {
    File(PathBuf),
    Environment,
    CommandLine,
}

/// The variable of a key, such as `QUORATE_LEASE` of `lease`.
fn variable(key: &str) -> String {
    format!("QUORATE_{}", key.to_uppercase())
}

/// Whether it is a variable of the library, or one that is misspelt.
fn is_ours(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("QUORATE_"))
}

/// Settings that belong together. A layer that sets one of them discards the others of the layers
/// below.
// `--cluster` on the command line would otherwise be joined by the `voters` of the file, and locks
// would be held on the servers of both.
const TOGETHER: [&[&str]; 3] = [
    &[
        "QUORATE_VOTERS",
        "QUORATE_CLUSTER",
        "QUORATE_CLUSTER_VOTERS",
        "QUORATE_REPLACED_VOTERS",
        "QUORATE_REPLACED_CLUSTER",
        "QUORATE_REPLACED_CLUSTER_VOTERS",
    ],
    &["QUORATE_PASSWORD", "QUORATE_PASSWORD_FILE"],
    &["QUORATE_TLS_CERTIFICATE_FILE", "QUORATE_TLS_KEY_FILE"],
];

/// The settings of a client, or of one layer (the file, the environment, the command line): by the
/// names of the library's variables.
// As text, whatever the place: so the library reads and checks every value, in one way.
#[derive(Debug, Default)]
pub(crate) struct Setup(BTreeMap<String, (SetBy, OsString)>);

impl Setup {
    /// The layer of the environment. An empty variable counts as not set.
    fn environment() -> Self {
        // With names that do not exist: the library says if one is probably misspelt.
        let is_blank = |value: &OsStr| value.to_str().is_some_and(|value| value.trim().is_empty());
        let values = env::vars_os().filter(|(name, value)| is_ours(name) && !is_blank(value));
        let set = |value| (SetBy::Environment, value);
        Self(values.map(|(name, value)| (name.to_string_lossy().into(), set(value))).collect())
    }

    /// Sets a value by its key in the file.
    pub(crate) fn set(&mut self, set_by: SetBy, key: &str, value: impl Into<OsString>) {
        self.0.insert(variable(key), (set_by, value.into()));
    }

    /// Sets a time of the command line, if there is one.
    pub(crate) fn set_time(&mut self, key: &str, time: Option<Duration>) {
        if let Some(time) = time {
            self.set(SetBy::CommandLine, key, format!("{}ms", time.as_millis()));
        }
    }

    /// Adds a layer, whose settings replace the ones from before.
    fn put_on(&mut self, Self(layer): Self) {
        for names in TOGETHER {
            if names.iter().any(|name| layer.contains_key(*name)) {
                self.0.retain(|name, _| !names.contains(&name.as_str()));
            }
        }
        self.0.extend(layer);
    }

    /// The lease of locks.
    pub(crate) fn lease(&self) -> Duration {
        self.time("QUORATE_LEASE").unwrap_or(Duration::from_secs(30))
    }

    /// The longest time for which locks may be held.
    pub(crate) fn hold_at_most(&self) -> Option<Duration> {
        self.time("QUORATE_HOLD_AT_MOST")
    }

    /// How long a quarantine lasts.
    pub(crate) fn longest_lease(&self) -> Duration {
        self.time("QUORATE_LONGEST_LEASE").unwrap_or(Duration::from_secs(30))
    }

    fn time(&self, variable: &str) -> Option<Duration> {
        let set = self.0.get(variable).and_then(|(_, value)| value.to_str());
        // The library refuses a time that cannot be read.
        set.and_then(|text| parse_time(text.trim()).ok())
    }

    pub(crate) fn builder(&self) -> Result<Builder, Failure> {
        if !["QUORATE_VOTERS", "QUORATE_CLUSTER"].iter().any(|name| self.0.contains_key(*name)) {
            let what = "no voters: they are named by --voter or --cluster, by QUORATE_VOTERS or \
                        QUORATE_CLUSTER, or by `voters` or `cluster` in the file of --config";
            return Err(Failure::new(Code::Usage, what));
        }
        let own = self.0.iter().map(|(name, (_, value))| (name.into(), value.clone()));
        // An address `env:NAME` may name any other variable.
        let others = env::vars_os().filter(|(name, _)| !is_ours(name));
        Builder::from_variables(own.chain(others)).map_err(|error| {
            let mut failure = Failure::from(error);
            failure.what = self.in_words_of_the_place(&failure.what);
            failure
        })
    }

    /// A client that takes no locks.
    pub(crate) async fn connect(&self) -> Result<Quorate, Failure> {
        Ok(self.builder()?.only_looks(true).connect().await?)
    }

    /// Replaces the variable at the beginning of an error by the place of the setting.
    fn in_words_of_the_place(&self, what: &str) -> String {
        // The library only knows variables. A user who gave an option would look for a variable
        // that is not set.
        let name = what.split(' ').next().unwrap_or_default();
        let Some((set_by, _)) = self.0.get(name) else { return what.to_owned() };
        let (key, rest) = (key_of(name), &what[name.len()..]);
        // The option is for one address, and the key for all.
        let option = match &*key {
            "voters" | "replaced_voters" => key.trim_end_matches('s'),
            option => option,
        };
        match set_by {
            SetBy::File(path) => format!("{}: `{key}`{rest}", path.display()),
            SetBy::Environment => what.to_owned(),
            SetBy::CommandLine => format!("--{}{rest}", option.replace('_', "-")),
        }
    }
}

/// What each subcommand that talks to voters takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Voters")]
pub(crate) struct VoterOptions {
    /// The address of a server, such as redis://10.0.0.1; once for each
    ///
    /// Addresses with a password do not belong here, where others see them in the list of
    /// processes. env:NAME stands for those that a variable of the environment has.
    #[arg(long, value_name = "ADDRESS")]
    voter: Vec<String>,

    /// The address of a server of a Redis Cluster; several where one may be down
    #[arg(long, value_name = "ADDRESS")]
    cluster: Vec<String>,

    /// How many voters the cluster has
    #[arg(long, value_name = "N", requires = "cluster")]
    cluster_voters: Option<u16>,

    /// An old server, while --voter names the new ones; once for each
    #[arg(long, value_name = "ADDRESS")]
    replaced_voter: Vec<String>,

    /// The user that logs in to the servers
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// The file that has the password
    #[arg(long, value_name = "FILE", conflicts_with = "ask_password")]
    password_file: Option<PathBuf>,

    /// Ask for the password on the terminal
    #[arg(long)]
    ask_password: bool,

    /// The file that has the settings [default: QUORATE_CONFIG, or quorate/config.toml in the XDG
    /// folders]
    ///
    /// Its keys are the variables of the environment without QUORATE_, in small letters: voters,
    /// cluster, user, password_file, lease and so on. The command line goes before the
    /// environment, and the environment before the file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl VoterOptions {
    /// All settings of the file, the environment, and these options.
    pub(crate) fn setup(&self) -> Result<Setup, Failure> {
        let mut setup = Setup::default();
        if let Some(path) = self.config.clone().or_else(usual_file) {
            setup.put_on(read_file(&path)?);
        }
        setup.put_on(Setup::environment());
        setup.put_on(self.layer()?);
        Ok(setup)
    }

    fn layer(&self) -> Result<Setup, Failure> {
        // Refused, and not only discouraged: everybody on the machine can read command lines
        // (`a_password_is_not_seen_anywhere`). The message does not repeat the address.
        let mut addresses = self.voter.iter().chain(&self.cluster).chain(&self.replaced_voter);
        if let Some(place) = addresses.position(|at| has_secret(at)) {
            let what = format!(
                "address {} of the command line has a password, which others can see in the list \
                 of processes: use --password-file, --ask-password, QUORATE_VOTERS or the file",
                place + 1
            );
            return Err(Failure::new(Code::Usage, what));
        }
        let mut layer = Setup::default();
        for (name, addresses) in [
            ("voters", &self.voter),
            ("cluster", &self.cluster),
            ("replaced_voters", &self.replaced_voter),
        ] {
            if !addresses.is_empty() {
                layer.set(SetBy::CommandLine, name, addresses.join(" "));
            }
        }
        let password = self.ask_password.then(|| rpassword::prompt_password("Password: "));
        let refused = Failure::system("the password cannot be asked for");
        for (name, value) in [
            ("cluster_voters", self.cluster_voters.map(|voters| voters.to_string().into())),
            ("user", self.user.clone().map(OsString::from)),
            ("password_file", self.password_file.clone().map(OsString::from)),
            ("password", password.transpose().map_err(refused)?.map(OsString::from)),
        ] {
            if let Some(value) = value {
                layer.set(SetBy::CommandLine, name, value);
            }
        }
        Ok(layer)
    }
}

/// Whether an address has a password, also if it cannot be used as an address.
fn has_secret(address: &str) -> bool {
    // Up to the last `@`, and without reading the address: a password with `/` or `@` makes it
    // unreadable, and must be found all the same.
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let login = rest.rsplit_once('@').map(|(login, _)| login);
    let rest = rest.to_ascii_lowercase();
    login.is_some_and(|login| login.contains(':'))
        || ["pass=", "password="].iter().any(|name| rest.contains(name))
}

/// The file that the environment names, or the first that exists in the folders of the XDG
/// specification.
fn usual_file() -> Option<PathBuf> {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = named("QUORATE_CONFIG") {
        return Some(path.into());
    }
    let own = named("XDG_CONFIG_HOME").map(PathBuf::from);
    let own = own.or_else(|| named("HOME").map(|home| Path::new(&home).join(".config")));
    let shared = named("XDG_CONFIG_DIRS").unwrap_or_else(|| "/etc/xdg".into());
    let shared: Vec<_> = env::split_paths(&shared).collect();
    // The specification says to ignore relative folders.
    let folders = own.into_iter().chain(shared).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join("quorate/config.toml")).find(|path| path.exists())
}

fn read_file(path: &Path) -> Result<Setup, Failure> {
    let wrong = |what: String| Failure::new(Code::Config, format!("{}: {what}", path.display()));
    let text = fs::read_to_string(path).map_err(|cause| wrong(cause.to_string()))?;
    parse_file(path, &text).map_err(wrong)
}

fn parse_file(path: &Path, text: &str) -> Result<Setup, String> {
    let table: Table = text.parse().map_err(|error| explain(text, &error))?;
    let mut layer = Setup::default();
    for (key, value) in table {
        let name = variable(&key);
        // An error, as for a misspelt variable: the default would apply, and nobody would notice.
        if key != key.to_lowercase() || !Builder::variables().any(|variable| variable == name) {
            let keys: Vec<_> = Builder::variables().map(key_of).collect();
            return Err(format!("unknown key `{key}`; known are {}", keys.join(", ")));
        }
        let value = text_of(&value).ok_or_else(|| {
            format!("`{key}` is to be a text, a number, true, false, or a list of texts")
        })?;
        layer.set(SetBy::File(path.to_owned()), &key, value);
    }
    Ok(layer)
}

fn key_of(variable: &str) -> String {
    variable.trim_start_matches("QUORATE_").to_lowercase()
}

/// A value of the file as the library reads it from a variable.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Boolean(is_so) => Some(is_so.to_string()),
        Value::Array(list) => {
            let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            Some(texts?.join(" "))
        }
        _ => None,
    }
}

/// The error with its line number.
// toml would show the line itself, and a password may stand there.
fn explain(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    // A list of what was expected comes in several lines.
    let message: Vec<_> = error.message().lines().map(str::trim).collect();
    format!("line {line}: {}", message.join(", "))
}

/// A time on the command line, as the library reads it from a variable.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    Ok(times::parse_time(text)?)
}

/// The time between two looks at the servers, or another time that may not be close to zero.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    // Each look of `status --watch` asks all servers for all their keys.
    const LEAST: Duration = Duration::from_millis(100);
    let interval = parse_time(text)?;
    if interval < LEAST { Err(format!("it is at least {LEAST:?}")) } else { Ok(interval) }
}

/// How long to wait for the slowest voter.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until each voter is connected or has failed.
// A client is there once a majority answers. Without this, `status` would show the slowest voter as
// away, although its first answer comes a moment later.
pub(crate) async fn settle(quorum: &Quorate) {
    let is_open = |voter: &VoterStatus| matches!(voter.connection, Err(Cause::TimedOut(_)));
    let settled = async {
        while quorum.status().await.voters.iter().any(is_open) {
            time::sleep(PAUSE).await;
        }
    };
    // A voter that is still open after that is shown as it is.
    let _ = time::timeout(PATIENCE, settled).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set_by: &SetBy, values: &[(&str, &str)]) -> Setup {
        let mut setup = Setup::default();
        for (key, value) in values {
            setup.set(set_by.clone(), key, value);
        }
        setup
    }

    #[test]
    fn the_last_layer_that_sets_something_wins() {
        let file = [("voters", "redis://a"), ("lease", "20s"), ("password", "secret")];
        let mut setup = Setup::default();
        setup.put_on(of(&SetBy::File("a.toml".into()), &file));
        let given = [("cluster", "redis://b"), ("lease", "10s"), ("password_file", "a")];
        setup.put_on(of(&SetBy::CommandLine, &given));
        assert_eq!(setup.lease(), Duration::from_secs(10));
        assert_eq!(setup.hold_at_most(), None);
        setup.put_on(of(&SetBy::CommandLine, &[("hold_at_most", "5m")]));
        assert_eq!(setup.hold_at_most(), Some(Duration::from_secs(300)));
        setup.0.remove("QUORATE_HOLD_AT_MOST");
        let names: Vec<_> = setup.0.keys().map(String::as_str).collect();
        assert_eq!(names, ["QUORATE_CLUSTER", "QUORATE_LEASE", "QUORATE_PASSWORD_FILE"]);
    }

    #[test]
    fn an_error_says_where_the_setting_stands() {
        let voters = [("voters", "redis://10.0.0.1")];
        let wrong = |set_by: &SetBy| {
            let mut setup = Setup::default();
            setup.put_on(of(&SetBy::CommandLine, &voters));
            setup.put_on(of(set_by, &[("voter_deadline", "5w")]));
            setup.builder().unwrap_err().what
        };
        let expected = " is \"5w\": a time is a whole number of seconds, or one with `ms`, `s`, \
                        `m`, `h` or `d`, as in `500ms`";
        for (set_by, place) in [
            (SetBy::File("a.toml".into()), "a.toml: `voter_deadline`"),
            (SetBy::CommandLine, "--voter-deadline"),
        ] {
            assert_eq!(wrong(&set_by), format!("{place}{expected}"));
        }
    }

    #[test]
    fn a_password_in_an_address_is_seen() {
        for secret in [
            "redis://user:secret@10.0.0.1",
            "redis://:secret@10.0.0.1:7000/2",
            "redis://:se/cr@et@10.0.0.1",
            "user:secret@10.0.0.1",
            "redis-sentinel://10.0.0.1/main?sentinel_password=secret",
            "redis-sentinel://10.0.0.1?sentinelServiceName=main&sentinelPassword=secret",
            "unix:///run/redis.socket?pass=secret",
        ] {
            assert!(has_secret(secret), "{secret}");
        }
        for open in [
            "redis://10.0.0.1:7000/2",
            "redis://user@10.0.0.1:7000",
            "redis-sentinel://10.0.0.1:1,10.0.0.2:2/main",
            "redis+unix:///run/redis.socket?db=1",
            "redis://[::1]:7000",
            "env:REDIS_URL",
        ] {
            assert!(!has_secret(open), "{open}");
        }
    }

    fn refused(text: &str) -> String {
        parse_file(Path::new("a.toml"), text).expect_err("it is refused")
    }

    #[test]
    fn keys_are_those_of_the_library_in_small_letters() {
        let text = "voters = ['redis://a', 'redis://b']\nlease = '20s'\nreplica_acks = 1\n\
                    allow_eviction = false";
        let layer = parse_file(Path::new("a.toml"), text).unwrap();
        let of = |key: &str| layer.0[&variable(key)].1.to_str().unwrap().to_owned();
        assert_eq!(of("voters"), "redis://a redis://b");
        assert_eq!([of("lease"), of("replica_acks")], ["20s", "1"]);
        assert_eq!(of("allow_eviction"), "false");
    }

    #[test]
    fn an_unknown_key_is_named_and_a_secret_is_not_shown() {
        assert!(refused("lease_ms = 5").starts_with("unknown key `lease_ms`; known are "));
        assert!(refused("Lease = '5s'").starts_with("unknown key `Lease`"));
        assert!(refused("[voters]\na = 1").starts_with("`voters` is to be a text"));
        let wrong = refused("lease = '5s'\npassword = secret\n");
        assert!(wrong.starts_with("line 2: ") && !wrong.contains("secret"), "{wrong}");
    }

    #[test]
    fn a_time_is_a_whole_number_of_seconds_unless_it_has_a_unit() {
        for (text, ms) in [
            ("500ms", 500),
            ("0s", 0),
            ("5", 5_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(parse_time(text), Ok(Duration::from_millis(ms)));
        }
        for wrong in ["", "s", "1.5s", "-1s", "5 s", "5w", "99999999999999999999s"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn servers_are_not_asked_without_a_pause() {
        assert_eq!(parse_interval("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_interval("99ms").unwrap_err(), "it is at least 100ms");
    }

    proptest::proptest! {
        #[test]
        fn whatever_a_file_says_is_read_or_refused(
            text in "([a-z_]{1,12} ?= ?(\"\\PC{0,8}\"|-?[0-9]{0,20}|\\[[0-9, \"a]{0,8}\\]|true)\n|\\PC{0,20}\n?){0,4}",
        ) {
            if let Err(why) = parse_file(Path::new("a.toml"), &text) {
                proptest::prop_assert!(!why.is_empty());
            }
        }
    }
}
