//! The files that the claims are about, as they are or with one of them spoilt.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Files by their path from the root of the repository.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree(BTreeMap<String, String>);

impl Tree {
    pub(crate) fn text(&self, path: &str) -> String {
        let read = || fs::read_to_string(Path::new(ROOT).join(path));
        let spoilt = self.0.get(path).cloned();
        spoilt.unwrap_or_else(|| read().unwrap_or_else(|error| panic!("{path}: {error}")))
    }

    pub(crate) fn has(path: &str) -> bool {
        Path::new(ROOT).join(path).exists()
    }

    /// The only document of a YAML file.
    pub(crate) fn yaml(&self, path: &str) -> Value {
        serde_saphyr::from_str(&self.text(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// The value of a line of `deploy/redis.conf`, by its name.
    pub(crate) fn conf(&self, name: &str) -> String {
        let text = self.text("deploy/redis.conf");
        let mut lines = directives(&text);
        let found = lines.find(|(there, _)| *there == name);
        found.unwrap_or_else(|| panic!("redis.conf has no {name}")).1.to_owned()
    }

    /// What a user of `deploy/users.acl` may do, word by word; nothing where there is none.
    pub(crate) fn user(&self, name: &str) -> Option<Vec<String>> {
        let text = self.text("deploy/users.acl");
        let mut users = text.lines().map(|line| line.split(' ').map(str::to_owned));
        users.find_map(|mut words| {
            let is_it = words.nth(1).is_some_and(|there| there == name);
            is_it.then(|| words.collect())
        })
    }

    /// The longest lease, in seconds, that clients take where nobody says anything.
    pub(crate) fn longest_lease(&self) -> u64 {
        let readme = self.text("README.md");
        let (_, rest) = readme.split_once("| `longest_lease` | ").expect("the README has it");
        rest.split_once(" s").expect("in seconds").0.parse().expect("a number")
    }

    fn spoilt(&self, path: &str, from: &str, to: &str) -> Self {
        let text = self.text(path);
        assert!(text.contains(from), "{path} has no `{from}` to spoil");
        let mut spoilt = self.clone();
        spoilt.0.insert(path.to_owned(), text.replacen(from, to, 1));
        spoilt
    }
}

/// Name and value of each line of a `redis.conf`.
pub(crate) fn directives(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').expect("a name and a value"))
}

/// What a claim finds: `Err` says where the files do not agree.
pub(crate) type Finding = Result<(), String>;

/// The claim holds for the files as they are, and for none of those that are spoilt: path, what
/// stands there, and what would be wrong instead.
pub(crate) fn holds(claim: impl Fn(&Tree) -> Finding, plants: &[(&str, &str, &str)]) {
    let tree = Tree::default();
    claim(&tree).unwrap();
    for (path, from, to) in plants {
        let noticed = claim(&tree.spoilt(path, from, to)).is_err();
        assert!(noticed, "{path}: `{to}` for `{from}` is not noticed");
    }
}

#[expect(clippy::needless_pass_by_value, reason = "most are made for the comparison")]
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, one: T, other: T) -> Finding {
    if one == other { Ok(()) } else { Err(format!("{what}: {one:?} is not {other:?}")) }
}

pub(crate) fn ensure(holds: bool, what: impl Into<String>) -> Finding {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// What a pointer like `/spec/replicas` leads to; `Null` where it leads nowhere.
pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// The same as text; empty where there is none.
pub(crate) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    at(value, pointer).as_str().unwrap_or_default()
}

pub(crate) fn number_at(value: &Value, pointer: &str) -> u64 {
    at(value, pointer).as_u64().unwrap_or_default()
}

/// The texts of a list; those of a mapping are its keys.
pub(crate) fn list_at(value: &Value, pointer: &str) -> Vec<String> {
    match at(value, pointer) {
        Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::Object(fields) => fields.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

/// A size as Redis, Docker, Kubernetes and systemd write it, in bytes.
pub(crate) fn bytes(size: &str) -> u64 {
    let (digits, unit) = size.split_at(size.trim_end_matches(char::is_alphabetic).len());
    let factor = match unit.to_lowercase().as_str() {
        "" => 1,
        "k" | "kb" | "ki" => 1 << 10,
        "m" | "mb" | "mi" => 1 << 20,
        "g" | "gb" | "gi" => 1 << 30,
        other => panic!("what is {other}?"),
    };
    digits.parse::<u64>().expect("a number") * factor
}
