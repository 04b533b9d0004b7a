//! Which metrics, labels and values a text names that there are not.

use quorate::metric::{ALL, Metric, MetricKind};

/// What Prometheus adds: to all that it collects, to buckets, and to alerts.
const ADDED: [&str; 6] = ["job", "instance", "le", "alertname", "alertstate", "severity"];

/// How it begins where a histogram is named as no query can name it.
pub(crate) const NO_SERIES: &str = "no series is";

/// What is wrong with the names in a text: of metrics, of `records`, and of labels with their
/// values in braces behind either.
pub(crate) fn unknown(text: &str, records: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, prefix) in text.match_indices("quorate_") {
        let start = text[..at].rfind(|sign| !in_name(sign)).map_or(0, |before| before + 1);
        let name = first_name(&text[start..]);
        let metric = metric(name);
        if metric.is_none() && !records.contains(&name) {
            // It may be told how all names begin.
            found.extend((name != prefix).then(|| format!("there is no metric `{name}`")));
            continue;
        }
        let is_bare = metric.is_some_and(|it| it.name == name && it.kind == MetricKind::Histogram);
        found.extend(is_bare.then(|| format!("{NO_SERIES} `{name}`")));
        let braces = text[start + name.len()..].strip_prefix('{').and_then(|it| it.split_once('}'));
        let matchers = braces.into_iter().flat_map(|(inside, _)| inside.split(", "));
        found.extend(matchers.filter_map(|matcher| wrong_matcher(name, metric, matcher)));
    }
    found
}

/// The labels in lists like `by (job, kind)` and in templates like `{{kind}}` or `$labels.kind`
/// that no metric has.
pub(crate) fn unknown_labels(text: &str) -> Vec<String> {
    let lists = ["by (", "on (", "without (", "group_left ("].into_iter();
    let lists = lists.flat_map(|list| text.split(list).skip(1).filter_map(|it| it.split_once(')')));
    let named = lists.flat_map(|(list, _)| list.split(", "));
    let shown = text.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0));
    let templates = text.split("$labels.").skip(1).map(first_name);
    let all = named.chain(shown.filter(|shown| first_name(shown) == *shown)).chain(templates);
    let is_unknown = |label: &&str| !label.is_empty() && values(label, None).is_none();
    all.filter(is_unknown).map(|label| format!("there is no label `{label}`")).collect()
}

fn in_name(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || "_:".contains(sign)
}

fn first_name(text: &str) -> &str {
    text.split(|sign| !in_name(sign)).next().unwrap_or_default()
}

/// What a series of this name belongs to, or what is called so.
fn metric(name: &str) -> Option<&'static Metric> {
    let mut parts = ["_bucket", "_sum", "_count"].into_iter();
    let histogram = parts.find_map(|part| name.strip_suffix(part));
    let is_part =
        |metric: &Metric| metric.kind == MetricKind::Histogram && Some(metric.name) == histogram;
    ALL.iter().find(|metric| metric.name == name || is_part(metric))
}

/// What `kind="mutex"` says wrongly of a metric, or of a record, whose name begins with its labels.
fn wrong_matcher(name: &str, metric: Option<&Metric>, matcher: &str) -> Option<String> {
    let label = first_name(matcher);
    let is_there = match metric {
        Some(metric) => metric.labels.iter().any(|own| own.name == label),
        None => name.split(':').next()?.split('_').any(|own| own == label),
    };
    let is_added = metric.is_some() && (["job", "instance"].contains(&label));
    let bounds = metric.filter(|_| label == "le" && name.ends_with("_bucket"));
    let value = matcher.split('"').nth(1)?;
    if let Some(metric) = bounds {
        // As it is written: Prometheus compares the texts.
        let is_bound = metric.buckets.iter().any(|bound| bound.to_string() == value);
        return (!is_bound && value != "+Inf").then(|| format!("`{name}` has no bucket `{value}`"));
    }
    if !is_there && !is_added {
        return Some(format!("`{name}` has no label `{label}`"));
    }
    let known = values(label, metric).unwrap_or_default();
    let is_free = known.is_empty() || value.contains('$') || value == ".*";
    let unknown = value.split('|').find(|value| !is_free && !known.contains(value))?;
    Some(format!("no `{label}` of `{name}` is `{unknown}`"))
}

/// All values of a label, of one metric or of any; empty where they may be anything. Nothing where
/// there is no such label.
fn values(label: &str, metric: Option<&Metric>) -> Option<Vec<&'static str>> {
    let of = metric.map_or(ALL, std::slice::from_ref).iter().flat_map(|metric| metric.labels);
    let mut own = of.filter(|own| own.name == label).peekable();
    let is_there = own.peek().is_some() || ADDED.contains(&label);
    is_there.then(|| own.flat_map(|own| own.values).copied().collect())
}

#[test]
fn a_wrong_name_is_found_and_no_other() {
    let records = ["job_kind:quorate_x:mean5m"];
    for text in [
        r#"sum by (job, le) (rate(quorate_acquire_seconds_bucket{outcome="granted"}[5m]))"#,
        r#"quorate_held{kind=~"mutex|read", lock="anything", instance="a:1"} and quorate_waiting"#,
        r#"job_kind:quorate_x:mean5m{kind="read"} > 3 * job_kind:quorate_x:mean5m offset 1d"#,
        r#"quorate_renewal_validity_ratio_bucket{le="0.25"} or quorate_held{kind=~"$kind"}"#,
        "ALERTS{alertstate=\"firing\"} {{ $labels.job }} {{kind}} half {{ $value | humanize }}",
    ] {
        assert_eq!(unknown(text, &records), [""; 0], "{text}");
        assert_eq!(unknown_labels(text), [""; 0], "{text}");
    }
    for (text, complaint) in [
        ("absent(quorate_hold)", "no metric `quorate_hold`"),
        ("quorate_held_total", "no metric"),
        ("quorate_held_sum", "no metric"),
        ("quorate_hold_seconds > 1", NO_SERIES),
        ("job:quorate_x:mean5m", "no metric"),
        (r#"quorate_held{voter="a"}"#, "has no label `voter`"),
        (r#"quorate_hold_seconds_sum{le="1"}"#, "has no label `le`"),
        (r#"job_kind:quorate_x:mean5m{lock="a"}"#, "has no label `lock`"),
        (r#"quorate_held{job="a", kind="mutexes"}"#, "no `kind` of `quorate_held` is `mutexes`"),
        (r#"quorate_held{kind=~"mutex|fair"}"#, "is `fair`"),
        (r#"quorate_attempts_total{outcome!="granted"}"#, "is `granted`"),
        (r#"job_kind:quorate_x:mean5m{kind="all"}"#, "is `all`"),
        (r#"quorate_renewal_validity_ratio_bucket{le="0.24"}"#, "no bucket `0.24`"),
    ] {
        let found = unknown(text, &records).join("\n");
        assert!(found.contains(complaint), "{text}: {found}");
    }
    for text in ["sum by (job, voters) (x)", "a / on (jobs) group_left () b", "{{kinds}}"] {
        assert_eq!(unknown_labels(text).len(), 1, "{text}");
    }
    assert_eq!(unknown_labels("{{ $labels.lease }}"), ["there is no label `lease`"]);
}
