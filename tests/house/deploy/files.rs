//! The files that the claims are about, as they are or with one of them spoilt.

use std::{collections::BTreeMap, fs, path::Path};

use quorate_support::ROOT;

pub(crate) const COMPOSE: &str = "deploy/compose/compose.yaml";
pub(crate) const DOCKERFILE: &str = "deploy/Dockerfile";
pub(crate) const NODES: &str = "deploy/kubernetes/nodes.yaml";
pub(crate) const REDIS: &str = "deploy/redis.conf";
pub(crate) const UNIT: &str = "deploy/systemd/quorate-node.service";

/// Files by their path from the root of the repository.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree(BTreeMap<String, String>);

impl Tree {
    pub(crate) fn text(&self, path: &str) -> String {
        let read = || fs::read_to_string(Path::new(ROOT).join(path));
        let spoilt = self.0.get(path).cloned();
        spoilt.unwrap_or_else(|| read().unwrap_or_else(|error| panic!("{path}: {error}")))
    }

    /// What stands in a file behind this, up to a blank, a quote or a bracket; empty where it does
    /// not stand there.
    pub(crate) fn after(&self, path: &str, before: &str) -> String {
        let text = self.text(path);
        let rest = text.split_once(before).map_or("", |(_, rest)| rest);
        rest.split([' ', '\n', '"', ']', '}', ',', '`']).next().unwrap_or_default().to_owned()
    }

    /// The value of a line of `deploy/redis.conf`, by its name.
    pub(crate) fn conf(&self, name: &str) -> String {
        self.after(REDIS, &format!("\n{name} "))
    }

    /// The value of a line of the unit for systemd.
    pub(crate) fn unit(&self, name: &str) -> String {
        let text = self.text(UNIT);
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        lines.next().unwrap_or_default().to_owned()
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

    fn spoilt(&self, path: &str, from: &str, to: &str) -> Self {
        let text = self.text(path);
        assert!(text.contains(from), "{path} has no `{from}` to spoil");
        let mut spoilt = self.clone();
        spoilt.0.insert(path.to_owned(), text.replacen(from, to, 1));
        spoilt
    }
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

pub(crate) fn ensure(holds: bool, what: impl Into<String>) -> Finding {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// A number, or a size as Redis, Docker, Kubernetes and systemd write it, in bytes.
pub(crate) fn number(size: &str) -> u64 {
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

/// The command of a line of YAML like `command: [a, "b"]`, the first behind this text.
pub(crate) fn command(text: &str, before: &str) -> Vec<String> {
    let (_, rest) = text.split_once(before).expect("it is there");
    let list = rest.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let words = list.expect("a list on one line").0.split(", ");
    words.map(|word| word.trim_matches('"').to_owned()).collect()
}
