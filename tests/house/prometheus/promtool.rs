//! `deploy/prometheus/` and the dashboard, as `promtool` reads and runs them.

use std::{fs, path::Path, process::Command};

use quorate_support::ROOT;
use serde_json::{Value, json};

use super::{
    DASHBOARD, RULES, TESTS,
    programs::{list, missing},
};

/// What `promtool` says, and whether it is content.
pub(crate) fn promtool(command: &mut Command) -> Result<String, String> {
    let output = command.output().unwrap_or_else(|error| panic!("{}", missing("promtool", &error)));
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(text) } else { Err(text) }
}

fn run(arguments: &[&str], folder: &Path) -> Result<String, String> {
    promtool(Command::new("promtool").args(arguments).current_dir(folder))
}

/// With these rules and their tests in a folder of their own.
fn test(rules: &str) -> Result<String, String> {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("quorate.rules.yml"), rules).expect("it can be written");
    fs::write(dir.path().join("test.yml"), TESTS).expect("it can be written");
    run(&["test", "rules", "test.yml"], dir.path())
}

#[test]
fn the_configuration_and_the_rules_are_valid() {
    let folder = Path::new(ROOT).join("deploy/prometheus");
    let told = run(&["check", "config", "prometheus.yml"], &folder);
    assert!(told.expect("it is valid").contains("1 rule files found"));
    let lint = ["check", "rules", "--lint=all", "--lint-fatal", "quorate.rules.yml"];
    run(&lint, &folder).expect("they are valid");
}

// A limit that is moved by a tenth is noticed, and an alert that does not wait.
#[test]
fn every_rule_does_what_its_test_says_and_no_more() {
    test(RULES).expect("they pass");
    for (from, to) in [
        ("ratio_rate15m > 0.8\n", "ratio_rate15m > 0.88\n"),
        ("ratio_rate15m > 0.8\n", "ratio_rate15m > 0.72\n"),
        ("        for: 30m\n", ""),
    ] {
        assert!(RULES.contains(from), "{from}");
        let told = test(&RULES.replacen(from, to, 1));
        assert!(told.is_err_and(|told| told.contains("FAILED")), "{from:?}: {to:?}");
    }
}

#[test]
fn prometheus_understands_every_query_of_the_dashboard() {
    let check = |dashboard: &str| {
        let rules = queries(dashboard, "service").into_iter().enumerate();
        let rules =
            rules.map(|(at, (_, expr))| json!({"record": format!("query:{at}"), "expr": expr}));
        let rules: Vec<_> = rules.collect();
        assert!(rules.len() > 40, "{} queries", rules.len());
        let dir = tempfile::tempdir().expect("a folder");
        // What is JSON is YAML.
        let text = json!({"groups": [{"name": "queries", "rules": rules}]}).to_string();
        fs::write(dir.path().join("rules.yml"), text).expect("it can be written");
        run(&["check", "rules", "rules.yml"], dir.path())
    };
    check(DASHBOARD).expect("they are understood");
    for (from, to) in [("sum by (kind, lock)", "sum by (kind, lock"), ("sum(", "sums(")] {
        check(&DASHBOARD.replacen(from, to, 1)).expect_err(to);
    }
}

/// All queries of the dashboard, with their panels, about this service and everything of it.
pub(crate) fn queries(dashboard: &str, job: &str) -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(dashboard).expect("it is JSON");
    let targets = list(&dashboard["panels"])
        .flat_map(|panel| list(&panel["targets"]).map(|target| (&panel["title"], &target["expr"])));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let filled_in = |query: String| {
        let choices = [("$__rate_interval", "1m"), ("$__range", "1h"), ("$job", job)];
        let all = ["$instance", "$kind", "$lock"].map(|name| (name, ".*"));
        choices.iter().chain(&all).fold(query, |query, (name, value)| query.replace(name, value))
    };
    targets.map(|(title, query)| (text(title), filled_in(text(query)))).collect()
}
