//! What `deploy/` has for Prometheus and Grafana names what there is, and does what it says.

#[cfg(feature = "full")]
mod live;

use quorate::metric::{ALL, MetricKind};
use quorate_tests::prelude::*;

const RULES: &str = "deploy/prometheus/quorate.rules.yml";
const TESTS: &str = "deploy/prometheus/quorate.rules.test.yml";
const DASHBOARD: &str = "deploy/grafana/dashboards/quorate.json";

/// The names of the rules of a kind.
fn rules<'rules>(text: &'rules str, kind: &str) -> Vec<&'rules str> {
    let rules = text.lines().filter_map(|line| line.trim_start().strip_prefix("- "));
    rules.filter_map(|rule| rule.strip_prefix(kind)?.strip_prefix(": ")).collect()
}

/// Labels with the values that they may have: none where they may be anything.
type Labels = BTreeMap<String, Vec<String>>;
/// All series that there are, with their labels.
type Series = BTreeMap<String, Labels>;

fn all_series(records: &[&str]) -> Series {
    let (mut series, mut all) = (Series::new(), Labels::new());
    for metric in ALL {
        let mut labels: Labels = ["job", "instance"].map(|name| (name.to_owned(), vec![])).into();
        for label in metric.labels {
            let values: Vec<_> = label.values.iter().map(ToString::to_string).collect();
            all.entry(label.name.to_owned()).or_default().extend(values.clone());
            labels.insert(label.name.to_owned(), values);
        }
        if metric.kind == MetricKind::Histogram {
            series.insert(format!("{}_sum", metric.name), labels.clone());
            series.insert(format!("{}_count", metric.name), labels.clone());
            // As they are written: Prometheus compares the texts.
            let bounds = metric.buckets.iter().map(ToString::to_string).collect();
            labels.insert("le".to_owned(), bounds);
            series.insert(format!("{}_bucket", metric.name), labels);
        } else {
            series.insert(metric.name.to_owned(), labels);
        }
    }
    for record in records {
        // Its name begins with its labels.
        let labels = record.split(':').next().unwrap_or_default().split('_');
        let values = |label: &str| all.get(label).cloned().unwrap_or_default();
        let labels = labels.map(|label| (label.to_owned(), values(label)));
        series.insert((*record).to_owned(), labels.collect());
    }
    series
}

/// What a text names that there is not: series, and labels with their values in braces behind
/// them. A page may also say how names begin.
fn unknown(text: &str, series: &Series, is_page: bool) -> Vec<String> {
    let in_name = |sign: char| sign.is_ascii_alphanumeric() || "_:".contains(sign);
    let mut found = Vec::new();
    for (at, _) in text.match_indices("quorate_") {
        let start = text[..at].rfind(|sign| !in_name(sign)).map_or(0, |before| before + 1);
        let name = text[start..].split(|sign| !in_name(sign)).next().unwrap_or_default();
        let Some(labels) = series.get(name) else {
            let begins = is_page && series.keys().any(|known| known.starts_with(name));
            found.extend((!begins).then(|| name.to_owned()));
            continue;
        };
        let braces = text[start + name.len()..].strip_prefix('{').and_then(|it| it.split_once('}'));
        let matchers = braces.into_iter().flat_map(|(inside, _)| inside.split(", "));
        let wrong = matchers.filter(|matcher| {
            let label = matcher.split(['=', '!']).next().unwrap_or_default();
            let Some(value) = matcher.split('"').nth(1) else { return false };
            labels.get(label).is_none_or(|known| {
                let is_free = known.is_empty() || value.contains('$') || value == ".*";
                !is_free && value.split('|').any(|value| !known.iter().any(|it| it == value))
            })
        });
        found.extend(wrong.map(|matcher| format!("{name}{{{matcher}}}")));
    }
    // What it is summed up by.
    let lists = text.split("by (").skip(1).filter_map(|rest| rest.split_once(')'));
    let labels = lists.flat_map(|(list, _)| list.split(", "));
    let has = |label: &str| series.values().any(|labels| labels.contains_key(label));
    let of_alerts = ["alertname", "severity"];
    let unknown = labels.filter(|label| !has(label) && !of_alerts.contains(label));
    found.extend(unknown.map(str::to_owned));
    found
}

#[test]
fn a_wrong_name_is_found_and_no_other() {
    let series = all_series(&["job_kind:quorate_x:mean5m"]);
    for text in [
        r#"sum by (job, le) (rate(quorate_acquire_seconds_bucket{outcome="granted"}[5m]))"#,
        r#"quorate_held{kind=~"mutex|read", lock="a", instance="a:1"} and quorate_held{kind=~"$k"}"#,
        r#"job_kind:quorate_x:mean5m{kind="read"} / quorate_renewal_validity_ratio_bucket{le="0.25"}"#,
    ] {
        assert_eq!(unknown(text, &series, false), [""; 0], "{text}");
    }
    assert_eq!(unknown("`quorate_`: `quorate_hold_seconds`", &series, true), [""; 0]);
    let wrong = r#"quorate_hold & quorate_held_sum & quorate_hold_seconds & job:quorate_x:mean5m &
        quorate_held{voter="a"} & job_kind:quorate_x:mean5m{lock="a"} & sum by (job, voters) (x) &
        quorate_held{job="a", kind="mutexes"} & quorate_attempts_total{outcome!="granted"} &
        job_kind:quorate_x:mean5m{kind="all"} & quorate_renewal_validity_ratio_bucket{le="0.24"}"#;
    for text in wrong.split('&').map(str::trim) {
        assert_eq!(unknown(text, &series, false).len(), 1, "{text}");
    }
}

// The series in the tests of the rules too: `promtool` takes whatever they say for what there is.
#[test]
fn rules_their_tests_the_dashboard_and_the_book_name_what_there_is() {
    let (rules_file, dashboard) = (read_file(RULES), read_file(DASHBOARD).replace("\\\"", "\""));
    let records = rules(&rules_file, "record");
    assert!(records.len() > 10, "{records:?}");
    let series = all_series(&records);
    for text in [&rules_file, &read_file(TESTS), &dashboard] {
        assert_eq!(unknown(text, &series, false), [""; 0]);
    }
    for page in ["docs/operations.md", "docs/failures.md"] {
        assert_eq!(unknown(&read_file(page), &series, true), [""; 0]);
    }
    // What is shown is that of the chosen service. Records have no instances.
    for query in dashboard.lines().filter(|line| line.trim().starts_with("\"expr\": ")) {
        assert_eq!(query.matches("\"$job").count(), query.matches('{').count(), "{query}");
        let raw = query.matches("quorate_").count() == query.matches("instance=~").count();
        assert!(raw || query.contains(":quorate_") || query.contains("ALERTS"), "{query}");
    }
}

#[test]
fn every_alert_has_a_test_that_it_fires_and_one_that_it_does_not() {
    let (rules_file, tests) = (read_file(RULES), read_file(TESTS));
    let alerts = rules(&rules_file, "alert");
    assert!(alerts.len() > 10, "{alerts:?}");
    for name in alerts {
        for alerts in ["exp_alerts:\n", "exp_alerts: []\n"] {
            assert!(tests.contains(&format!("alertname: {name}\n        {alerts}")), "{name}");
        }
    }
}
