//! The settings of a client, put together from several places.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use quorate::{Builder, Quorate};

use crate::{
    durations,
    exit::{Code, Failure},
};

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SetBy {
    File(PathBuf),
    Environment,
    CommandLine,
}

/// What one place sets: by the names of the library's variables.
#[derive(Debug)]
pub(crate) struct Layer {
    set_by: SetBy,
    values: BTreeMap<String, OsString>,
}

impl Layer {
    pub(crate) fn file(path: &Path) -> Self {
        Self { set_by: SetBy::File(path.to_owned()), values: BTreeMap::new() }
    }

    pub(crate) fn command_line() -> Self {
        Self { set_by: SetBy::CommandLine, values: BTreeMap::new() }
    }

    /// All of it: the library says which names may be misspelt. A variable that is empty counts as
    /// not set.
    pub(crate) fn environment() -> Self {
        let is_ours = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with("QUORATE_"));
        let is_blank = |value: &OsStr| value.to_str().is_some_and(|value| value.trim().is_empty());
        let values = env::vars_os().filter(|(name, value)| is_ours(name) && !is_blank(value));
        let values = values.map(|(name, value)| (name.to_string_lossy().into_owned(), value));
        Self { set_by: SetBy::Environment, values: values.collect() }
    }

    /// By the key that the file has for it.
    pub(crate) fn set(&mut self, key: &str, value: impl Into<OsString>) {
        self.values.insert(variable(key), value.into());
    }

    #[cfg(test)]
    pub(crate) fn get(&self, key: &str) -> Option<&OsStr> {
        self.values.get(&variable(key)).map(OsString::as_os_str)
    }
}

/// The variable of a key.
pub(crate) fn variable(key: &str) -> String {
    format!("QUORATE_{}", key.to_uppercase())
}

/// Settings that belong together: whoever sets one of them does not want the others of below.
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

/// The settings of a client.
#[derive(Debug, Default)]
pub(crate) struct Setup(BTreeMap<String, (SetBy, OsString)>);

impl Setup {
    /// What this layer sets replaces what was set before.
    pub(crate) fn put_on(&mut self, layer: Layer) {
        for names in TOGETHER {
            if names.iter().any(|name| layer.values.contains_key(*name)) {
                self.0.retain(|name, _| !names.contains(&name.as_str()));
            }
        }
        for (name, value) in layer.values {
            self.0.insert(name, (layer.set_by.clone(), value));
        }
    }

    /// The lease of locks.
    pub(crate) fn lease(&self) -> Duration {
        self.time("QUORATE_LEASE").unwrap_or(Duration::from_secs(30))
    }

    /// For how long they may be held.
    pub(crate) fn hold_at_most(&self) -> Option<Duration> {
        self.time("QUORATE_HOLD_AT_MOST")
    }

    fn time(&self, variable: &str) -> Option<Duration> {
        let set = self.0.get(variable).and_then(|(_, value)| value.to_str());
        // One that cannot be read is refused by the library.
        set.and_then(|text| durations::parse(text.trim()).ok())
    }

    pub(crate) fn builder(&self) -> Result<Builder, Failure> {
        if !["QUORATE_VOTERS", "QUORATE_CLUSTER"].iter().any(|name| self.0.contains_key(*name)) {
            let what = "no voters: they are named by --voter or --cluster, by QUORATE_VOTERS or \
                        QUORATE_CLUSTER, or by `voters` or `cluster` in the file of --config";
            return Err(Failure::new(Code::Usage, what));
        }
        let variables = self.0.iter().map(|(name, (_, value))| (name, value));
        Builder::from_variables(variables).map_err(|error| {
            let mut failure = Failure::from(error);
            failure.what = self.in_words_of_the_place(&failure.what);
            failure
        })
    }

    /// A client that takes no locks.
    pub(crate) async fn connect(&self) -> Result<Quorate, Failure> {
        Ok(self.builder()?.only_looks(true).connect().await?)
    }

    /// The library speaks of variables: says where the setting really stands.
    fn in_words_of_the_place(&self, what: &str) -> String {
        let name = what.split(' ').next().unwrap_or_default();
        let Some((set_by, _)) = self.0.get(name) else { return what.to_owned() };
        let key = name.trim_start_matches("QUORATE_").to_lowercase();
        let rest = &what[name.len()..];
        match set_by {
            SetBy::File(path) => format!("{}: `{key}`{rest}", path.display()),
            SetBy::Environment => what.to_owned(),
            SetBy::CommandLine => format!("--{}{rest}", key.replace('_', "-")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mut layer: Layer, values: &[(&str, &str)]) -> Layer {
        for (key, value) in values {
            layer.set(key, value);
        }
        layer
    }

    #[test]
    fn the_last_layer_that_sets_something_wins() {
        let file = [("voters", "redis://a"), ("lease", "20s"), ("password", "secret")];
        let mut setup = Setup::default();
        setup.put_on(of(Layer::file(Path::new("a.toml")), &file));
        let given = [("cluster", "redis://b"), ("lease", "10s"), ("password_file", "a")];
        setup.put_on(of(Layer::command_line(), &given));
        assert_eq!(setup.lease(), Duration::from_secs(10));
        assert_eq!(setup.hold_at_most(), None);
        setup.put_on(of(Layer::command_line(), &[("hold_at_most", "5m")]));
        assert_eq!(setup.hold_at_most(), Some(Duration::from_secs(300)));
        setup.0.remove("QUORATE_HOLD_AT_MOST");
        let names: Vec<_> = setup.0.keys().map(String::as_str).collect();
        assert_eq!(names, ["QUORATE_CLUSTER", "QUORATE_LEASE", "QUORATE_PASSWORD_FILE"]);
    }

    #[test]
    fn an_error_says_where_the_setting_stands() {
        let voters = [("voters", "redis://10.0.0.1")];
        let wrong = |layer| {
            let mut setup = Setup::default();
            setup.put_on(of(Layer::command_line(), &voters));
            setup.put_on(of(layer, &[("voter_deadline", "5")]));
            setup.builder().unwrap_err().what
        };
        let expected = " is \"5\": a time is a whole number and `ms`, `s`, `m` or `h`, as in `30s`";
        for (layer, place) in [
            (Layer::file(Path::new("a.toml")), "a.toml: `voter_deadline`"),
            (Layer::command_line(), "--voter-deadline"),
        ] {
            assert_eq!(wrong(layer), format!("{place}{expected}"));
        }
    }
}
