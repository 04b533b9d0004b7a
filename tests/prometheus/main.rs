//! What `deploy/` has for Prometheus and Grafana says nothing that is not so.

mod dashboard;
mod live;
mod mutations;
mod names;
mod picture;
mod programs;
mod rules;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;

use dashboard::{Dashboard, list, text};
use names::{ANY, Names, level};
use programs::{Prometheus, promtool};
use quorate::metric::ALL;
use rules::{OPERATIONS, alerts, folder, names, records, rules};

#[test]
fn the_configuration_and_the_rules_are_valid() {
    let told = promtool(&["check", "config", "prometheus.yml"], &folder());
    assert!(told.expect("it is valid").contains("1 rule files found"));
    let told =
        promtool(&["check", "rules", "--lint=all", "--lint-fatal", "quorate.rules.yml"], &folder());
    told.expect("they are valid");
}

#[test]
fn every_rule_does_what_its_test_says() {
    promtool(&["test", "rules", "quorate.rules.test.yml"], &folder()).expect("they pass");
}

/// The reader of queries finds what is wrong, and only that.
#[test]
fn a_query_is_held_against_the_metrics_that_there_are() {
    let names = Names::new(["job_kind:quorate_x:mean5m".to_owned()]);
    let wrong = |query: &str| names.read(query).complaints;
    let permitted = [
        r#"sum by (job, le, kind) (rate(quorate_acquire_seconds_bucket{outcome="granted"}[5m]))"#,
        r#"quorate_held{kind=~"mutex|read", lock="anything", instance="a:1"}"#,
        r#"job_kind:quorate_x:mean5m{kind="read"} > 3 * job_kind:quorate_x:mean5m offset 1d"#,
        r"sum by (job) (quorate_held) / on (job) group_left () sum by (job) (quorate_waiting)",
        r#"quorate_renewal_validity_ratio_bucket{le="0.25"} or quorate_held"#,
        r#"sum by (kind) (quorate_held{kind=~".*"})"#,
        r#"ALERTS{alertstate="firing"}"#,
    ];
    for query in permitted {
        assert_eq!(wrong(query), Vec::<String>::new(), "{query}");
    }
    let refused = [
        ("sum(quorate_held", "it cannot be read"),
        ("quorate_hold", "there is no metric `quorate_hold`"),
        ("quorate_held_total", "there is no metric"),
        ("quorate_held_sum", "there is no metric"),
        ("quorate_lost_total_count", "there is no metric"),
        ("quorate_hold_seconds", "there is no metric"),
        ("job:quorate_x:mean5m", "there is no metric"),
        ("up", "there is no metric"),
        (r#"quorate_held{voter="a"}"#, "has no label `voter`"),
        (r#"quorate_hold_seconds_sum{le="1"}"#, "has no label `le`"),
        (r#"job_kind:quorate_x:mean5m{lock="a"}"#, "has no label `lock`"),
        (r#"quorate_held{kind="mutexes"}"#, "no `kind` of `quorate_held` is `mutexes`"),
        (r#"quorate_held{kind=~"mutex|fair"}"#, "is `fair`"),
        (r#"quorate_attempts_total{outcome!="granted"}"#, "is `granted`"),
        (r#"job_kind:quorate_x:mean5m{kind="all"}"#, "is `all`"),
        (r#"quorate_renewal_validity_ratio_bucket{le="0.24"}"#, "is `0.24`"),
        (r#"ALERTS{alertstate="quiet"}"#, "is `quiet`"),
        ("sum by (job, voter) (quorate_held)", "grouped by `voter`"),
        ("sum by (kind) (sum by (job) (quorate_held))", "grouped by `kind`"),
        ("sum without (voter) (quorate_held)", "grouped by `voter`"),
        ("quorate_held / quorate_connections", "side is matched by `kind`"),
        ("quorate_held and on (job, voter) quorate_connections", "left side is matched by `voter`"),
        ("quorate_held unless on (kind) quorate_connections", "right side is matched by `kind`"),
        ("absent(quorate_hold)", "there is no metric"),
        ("max_over_time(quorate_hold[1h:1m])", "there is no metric"),
    ];
    for (query, complaint) in refused {
        let wrong = wrong(query).join("\n");
        assert!(wrong.contains(complaint), "{query}: {wrong}");
    }
}

#[test]
fn every_rule_names_what_there_is() {
    let names = names();
    let complaints = rules().iter().flat_map(|rule| {
        let wrong = names.read(&rule.query).complaints;
        wrong.into_iter().map(|wrong| format!("{}: {wrong}", rule.name))
    });
    let complaints: Vec<_> = complaints.collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn the_name_of_a_record_says_what_labels_it_has() {
    let names = names();
    for record in records() {
        let named: BTreeSet<String> = level(&record.name).map(str::to_owned).collect();
        assert_eq!(named, names.read(&record.query).labels, "{}", record.name);
        let parts: Vec<_> = record.name.split(':').collect();
        assert!(parts.len() == 3 && parts[1].starts_with("quorate_"), "{}", record.name);
    }
}

#[test]
fn every_alert_says_what_it_is_about_and_where_to_read_on() {
    let names = names();
    for (rule, alert) in alerts() {
        let name = &rule.name;
        assert!(["page", "ticket"].contains(&alert.severity.as_str()), "{name}: {alert:?}");
        let said: Vec<_> = alert.texts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(said, ["description", "runbook", "summary"], "{name}");
        let anchor = format!("docs/operations.md#{}", name.to_lowercase());
        let labels = names.read(&rule.query).labels;
        for (kind, text) in &alert.texts {
            assert!(!text.is_empty() && (kind != "runbook" || *text == anchor), "{name}: {text}");
            let shown = text.split("$labels.").skip(1);
            let shown =
                shown.filter_map(|rest| rest.split(|sign: char| !sign.is_alphabetic()).next());
            let missing: Vec<_> = shown.filter(|&label| !labels.contains(label)).collect();
            assert!(missing.is_empty(), "{name}: {missing:?} in {text}: only {labels:?}");
        }
    }
}

#[test]
fn every_alert_has_a_section_of_the_book_and_every_section_an_alert() {
    let (_, part) = OPERATIONS.split_once("\n## Alerts\n").expect("it speaks of alerts");
    let part = part.split("\n## ").next().expect("it begins");
    let sections: Vec<_> = part.split("\n### ").skip(1).collect();
    let titles = sections.iter().map(|section| section.lines().next().unwrap_or_default());
    let titles: Vec<_> = titles.filter(|title| title.starts_with("Quorate")).collect();
    let names: Vec<_> = alerts().map(|(rule, _)| rule.name.as_str()).collect();
    let sorted = |mut list: Vec<&str>| {
        list.sort_unstable();
        list.join("\n")
    };
    assert_eq!(sorted(titles), sorted(names));
    for section in sections.iter().filter(|section| section.starts_with("Quorate")) {
        assert!(section.contains("**Means:**") && section.contains("**Do:**"), "{section}");
    }
}

#[test]
fn a_wrong_name_in_the_dashboard_is_found() {
    let planted = |from: &str, to: &str| {
        assert!(dashboard::TEXT.contains(from), "{from}");
        Dashboard::read(&dashboard::TEXT.replacen(from, to, 1)).judged(&names()).0.join("\n")
    };
    let name = planted("(quorate_leaked_votes_total{", "(quorate_leaks_total{");
    assert!(name.contains("there is no metric `quorate_leaks_total`"), "{name}");
    let legend = planted("{{kind}} {{cause}}", "{{kind}} {{reason}}");
    assert!(legend.contains("its answer has no label `reason`"), "{legend}");
    let variable =
        planted("label_values(quorate_connections, job)", "label_values(quorate_up, job)");
    assert!(variable.contains("variable job: there is no metric `quorate_up`"), "{variable}");
}

#[test]
fn the_dashboard_names_what_there_is_and_all_of_it() {
    let (complaints, metrics) = Dashboard::read(dashboard::TEXT).judged(&names());
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    let all: BTreeSet<String> = ALL.iter().map(|metric| metric.name.to_owned()).collect();
    assert_eq!(metrics, all, "shown, and there");
}

#[test]
fn prometheus_understands_every_query_of_the_dashboard() {
    let prometheus = Prometheus::start(&[("prometheus.yml", "")], &[]);
    let ask = |query: &str| prometheus.api("query", &[("query", query)]);
    for query in
        ["sum(rate(quorate_held))", "sum by (job (quorate_held)", "rates(quorate_held[1m])"]
    {
        ask(query).expect_err("it is none");
    }
    for (title, query) in Dashboard::read(dashboard::TEXT).queries("service") {
        let answer = ask(&query).unwrap_or_else(|told| panic!("{title}: {told}"));
        assert_eq!(answer["resultType"], "vector", "{title}: {query}");
    }
}

#[test]
fn every_panel_says_how_to_read_it() {
    let dashboard = Dashboard::read(dashboard::TEXT);
    let mut ids = BTreeSet::new();
    for panel in dashboard.panels() {
        let title = text(&panel["title"]);
        assert!(text(&panel["description"]).split(' ').count() > 2, "{title}");
        assert!(!text(&panel["fieldConfig"]["defaults"]["unit"]).is_empty(), "{title}");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        // Those that Grafana has given up are not among these.
        let current = ["stat", "timeseries", "state-timeline"];
        assert!(current.contains(&text(&panel["type"])), "{title}");
        let coloured = &panel["fieldConfig"]["defaults"]["color"]["mode"];
        assert!(panel["type"] != "state-timeline" || coloured == "thresholds", "{title}");
        assert!(list(&panel["targets"]).count() > 0, "{title}");
    }
    for panel in list(&dashboard.value()["panels"]) {
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{}", panel["title"]);
    }
    assert_eq!(dashboard.variables(), ["datasource", "job", "instance", "kind", "lock"]);
}

/// Every viewer's choice has a meaning in every query that it can have one in.
#[test]
fn every_query_asks_for_the_chosen_service_only() {
    let dashboard = Dashboard::read(dashboard::TEXT);
    for panel in dashboard.panels() {
        for target in list(&panel["targets"]) {
            let query = text(&target["expr"]);
            let selectors = query.matches('{').count();
            assert_eq!(query.matches("\"$job").count(), selectors, "{query}");
            let raw = query.matches("quorate_").count() == query.matches("instance=~").count();
            assert!(raw || query.contains(':') || query.contains("ALERTS"), "{query}");
        }
    }
    let variables = list(&dashboard.value()["templating"]["list"]);
    let all = variables.map(|variable| variable["allValue"].as_str());
    // Of the kinds all are those that were used.
    assert!(all.eq([None, None, Some(ANY), None, Some(ANY)]));
}

/// As a program would write it, so that a change shows as what it is.
#[test]
fn the_dashboard_is_written_in_one_way() {
    let written = serde_json::to_string_pretty(Dashboard::read(dashboard::TEXT).value());
    assert_eq!(written.expect("it is JSON") + "\n", dashboard::TEXT);
}
