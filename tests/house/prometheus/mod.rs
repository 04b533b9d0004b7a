//! What `deploy/` has for Prometheus and Grafana names what there is, and does what it says.

#[cfg(feature = "full")]
mod live;
mod names;
#[cfg(feature = "full")]
mod programs;
#[cfg(feature = "full")]
mod promtool;

use crate::address::repository;
use names::{NO_SERIES, unknown, unknown_labels};
use quorate::metric::ALL;

const RULES: &str = include_str!("../../../deploy/prometheus/quorate.rules.yml");
const TESTS: &str = include_str!("../../../deploy/prometheus/quorate.rules.test.yml");
const DASHBOARD: &str = include_str!("../../../deploy/grafana/dashboards/quorate.json");
const OPERATIONS: &str = include_str!("../../../docs/operations.md");
const FAILURES: &str = include_str!("../../../docs/failures.md");

/// The rules of a kind, each with its name and what it says.
fn rules<'rules>(text: &'rules str, kind: &str) -> Vec<(&'rules str, &'rules str)> {
    let rules = text.split("\n      - ").skip(1);
    rules.filter_map(|rule| rule.strip_prefix(kind)?.strip_prefix(": ")?.split_once('\n')).collect()
}

fn records() -> Vec<&'static str> {
    rules(RULES, "record").into_iter().map(|(name, _)| name).collect()
}

// The series in the tests of the rules too: `promtool` takes whatever they say for what there is.
#[test]
fn rules_their_tests_the_dashboard_and_the_book_name_what_there_is() {
    let (records, dashboard) = (records(), DASHBOARD.replace("\\\"", "\""));
    assert!(records.len() > 10, "{records:?}");
    for text in [RULES, TESTS, &dashboard] {
        assert_eq!(unknown(text, &records), [""; 0]);
    }
    for page in [OPERATIONS, FAILURES] {
        let found = unknown(page, &records).into_iter();
        let found: Vec<_> = found.filter(|found| !found.starts_with(NO_SERIES)).collect();
        assert_eq!(found, [""; 0]);
    }
    for text in [RULES, &dashboard] {
        assert_eq!(unknown_labels(text), [""; 0]);
    }
}

#[test]
fn the_dashboard_shows_every_metric_of_the_chosen_service() {
    let missing = ALL.iter().map(|metric| metric.name).filter(|name| !DASHBOARD.contains(name));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
    for query in DASHBOARD.lines().filter(|line| line.trim().starts_with("\"expr\": ")) {
        assert_eq!(query.matches("\\\"$job").count(), query.matches('{').count(), "{query}");
        // Records have no instances.
        let raw = query.matches("quorate_").count() == query.matches("instance=~").count();
        assert!(raw || query.contains(":quorate_") || query.contains("ALERTS"), "{query}");
    }
}

/// What an alert lacks: where to read on, and a test.
fn lacking(rules: &str, book: &str, tests: &str) -> Vec<String> {
    let (_, book) = book.split_once("\n## Alerts\n").expect("it speaks of alerts");
    let mut lacking = Vec::new();
    for (name, alert) in self::rules(rules, "alert") {
        let section =
            book.split("\n### ").find(|section| section.starts_with(&format!("{name}\n")));
        let is_told = |section: &str| section.contains("**Means:**") && section.contains("**Do:**");
        let page = format!("{}/blob/main/docs/operations.md", repository());
        let runbook = format!("runbook_url: {page}#{}\n", name.to_lowercase());
        let fires = format!("alertname: {name}\n        exp_alerts:\n");
        let stays_quiet = format!("alertname: {name}\n        exp_alerts: []\n");
        for (what, is_there) in [
            ("a section of the book", section.is_some_and(is_told)),
            (
                "a severity",
                ["page", "ticket"].iter().any(|it| alert.contains(&format!(": {it}\n"))),
            ),
            (
                "a summary and a description",
                ["summary: ", "description: "].iter().all(|it| alert.contains(it)),
            ),
            ("a runbook", alert.contains(&runbook)),
            ("a test that it fires", tests.contains(&fires)),
            ("a test that it does not", tests.contains(&stays_quiet)),
        ] {
            lacking.extend((!is_there).then(|| format!("{name}: {what}")));
        }
    }
    for (name, _) in self::rules(rules, "record") {
        let is_tried = tests.lines().any(|line| line.contains("expr: ") && line.contains(name));
        lacking.extend((!is_tried).then(|| format!("{name}: a test")));
    }
    let sections = book.split("\n### ").filter(|section| section.starts_with("Quorate"));
    let titles = sections.filter_map(|section| section.lines().next());
    let gone = titles.filter(|title| !rules.contains(&format!("- alert: {title}\n")));
    lacking.extend(gone.map(|title| format!("{title}: an alert")));
    lacking
}

#[test]
fn every_alert_has_a_test_and_a_section_of_the_book_and_every_section_an_alert() {
    assert_eq!(lacking(RULES, OPERATIONS, TESTS), [""; 0]);
    let renamed = RULES.replace("- alert: QuorateSplits\n", "- alert: QuorateSplit\n");
    assert_eq!(lacking(&renamed, OPERATIONS, TESTS).len(), 5);
    let elsewhere = RULES.replace("#quoratesplits\n", "#quoratesplit\n");
    assert_eq!(lacking(&elsewhere, OPERATIONS, TESTS), ["QuorateSplits: a runbook"]);
    let untested = TESTS.replace("alertname: QuorateSplits\n        exp_alerts: []", "");
    assert_eq!(lacking(RULES, OPERATIONS, &untested), ["QuorateSplits: a test that it does not"]);
}
