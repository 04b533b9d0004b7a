//! `deploy/prometheus/`, as Prometheus itself reads it.

use std::{path::PathBuf, sync::OnceLock};

use serde_json::Value;

use crate::{names::Names, programs::Prometheus};

pub(crate) const RULES: &str = include_str!("../../deploy/prometheus/quorate.rules.yml");
pub(crate) const TESTS: &str = include_str!("../../deploy/prometheus/quorate.rules.test.yml");
pub(crate) const OPERATIONS: &str = include_str!("../../docs/operations.md");

/// The folder of the shipped files.
pub(crate) fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "deploy", "prometheus"].iter().collect()
}

/// One rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) query: String,
    /// Labels and annotations; nothing for a record.
    pub(crate) alert: Option<Alert>,
}

#[derive(Clone, Debug)]
pub(crate) struct Alert {
    pub(crate) severity: String,
    pub(crate) texts: Vec<(String, String)>,
}

/// All rules, in their order.
pub(crate) fn rules() -> &'static [Rule] {
    static READ: OnceLock<Vec<Rule>> = OnceLock::new();
    READ.get_or_init(|| {
        let config = "rule_files: [quorate.rules.yml]\n";
        let files = [("prometheus.yml", config), ("quorate.rules.yml", RULES)];
        let answer = Prometheus::start(&files, &[]).api("rules", &[]).expect("it has read them");
        let groups = answer["groups"].as_array().expect("a list").iter();
        groups.flat_map(|group| group["rules"].as_array().expect("a list")).map(rule).collect()
    })
}

pub(crate) fn alerts() -> impl Iterator<Item = (&'static Rule, &'static Alert)> {
    rules().iter().filter_map(|rule| Some((rule, rule.alert.as_ref()?)))
}

pub(crate) fn records() -> impl Iterator<Item = &'static Rule> {
    rules().iter().filter(|rule| rule.alert.is_none())
}

/// What queries may name.
pub(crate) fn names() -> Names {
    Names::new(records().map(|rule| rule.name.clone()))
}

fn rule(rule: &Value) -> Rule {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let alert = (rule["type"] == "alerting").then(|| Alert {
        severity: rule["labels"]["severity"].as_str().unwrap_or_default().to_owned(),
        texts: rule["annotations"]
            .as_object()
            .expect("annotations")
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect(),
    });
    Rule { name: text(&rule["name"]), query: text(&rule["query"]), alert }
}
