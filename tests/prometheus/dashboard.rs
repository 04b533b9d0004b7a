//! `deploy/grafana/dashboards/quorate.json`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::names::{ANY, Names, Reading};

pub(crate) const TEXT: &str = include_str!("../../deploy/grafana/dashboards/quorate.json");

/// What Grafana puts in for its own variables, or something like it.
const BUILT_IN: [(&str, &str); 2] = [("$__rate_interval", "1m"), ("$__range", "1h")];

pub(crate) struct Dashboard(Value);

impl Dashboard {
    pub(crate) fn read(text: &str) -> Self {
        Self(serde_json::from_str(text).expect("it is JSON"))
    }

    pub(crate) fn value(&self) -> &Value {
        &self.0
    }

    /// Those that show something: not the headings.
    pub(crate) fn panels(&self) -> impl Iterator<Item = &Value> {
        list(&self.0["panels"]).filter(|panel| panel["type"] != "row")
    }

    /// The names of what the viewer can choose.
    pub(crate) fn variables(&self) -> Vec<&str> {
        list(&self.0["templating"]["list"]).map(|variable| text(&variable["name"])).collect()
    }

    /// All queries of panels, with their places, and the variables put in: this service, and
    /// everything of it.
    pub(crate) fn queries(&self, job: &str) -> Vec<(String, String)> {
        let mut queries = Vec::new();
        for panel in self.panels() {
            for target in list(&panel["targets"]) {
                let query = self.filled_in(&text(&target["expr"]).replace("$job", job));
                queries.push((text(&panel["title"]).to_owned(), query));
            }
        }
        queries
    }

    /// What is wrong with the queries, and with the legends and the lists of values that come from
    /// them; and which metrics they name.
    pub(crate) fn judged(&self, names: &Names) -> (Vec<String>, BTreeSet<String>) {
        let (mut complaints, mut metrics) = (Vec::new(), BTreeSet::new());
        let mut judge = |place: &str, query: &str, labels: Vec<&str>| {
            let Reading { complaints: mut wrong, metrics: named, labels: has } = names.read(query);
            let missing = labels.into_iter().filter(|&label| !has.contains(label));
            wrong.extend(missing.map(|label| format!("its answer has no label `{label}`")));
            complaints.extend(wrong.into_iter().map(|wrong| format!("{place}: {wrong}: {query}")));
            metrics.extend(named);
        };
        for panel in self.panels() {
            for target in list(&panel["targets"]) {
                let query = self.filled_in(text(&target["expr"]));
                let legend = text(&target["legendFormat"]);
                let shown = legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
                judge(text(&panel["title"]), &query, shown.collect());
            }
        }
        for variable in list(&self.0["templating"]["list"]) {
            let Some(query) = variable["query"]["query"].as_str() else { continue };
            let place = format!("variable {}", text(&variable["name"]));
            let inner = query.strip_prefix("label_values(").and_then(|it| it.strip_suffix(')'));
            let parts = inner.and_then(|inner| inner.rsplit_once(", "));
            let (selector, label) = parts.unwrap_or_else(|| panic!("{place}: {query}"));
            judge(&place, &self.filled_in(selector), vec![label]);
        }
        (complaints, metrics)
    }

    /// Longer names first: one may begin with another.
    fn filled_in(&self, query: &str) -> String {
        let mut query = query.to_owned();
        for (name, value) in BUILT_IN {
            query = query.replace(name, value);
        }
        let mut variables = self.variables();
        variables.sort_by_key(|name| std::cmp::Reverse(name.len()));
        for name in variables {
            query = query.replace(&format!("${name}"), ANY);
        }
        query
    }
}

pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
