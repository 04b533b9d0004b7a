//! The tests of the rules fail where a rule is wrong: each that is spoilt here is missed by them.

use std::{collections::BTreeSet, fs};

use crate::{
    programs::promtool,
    rules::{RULES, TESTS, alerts, records},
};

/// The rules, with each one changed.
fn spoilt(change: impl Fn(&Block) -> Option<String>) -> String {
    let (head, blocks) = blocks();
    let spoilt = blocks.iter().map(|block| change(block).unwrap_or_else(|| block.text.to_owned()));
    head.to_owned() + &spoilt.collect::<String>()
}

/// A rule as it is written, up to the next one.
struct Block {
    text: &'static str,
    is_alert: bool,
    name: &'static str,
}

impl Block {
    /// With another query.
    fn asks(&self, query: &str) -> String {
        let (head, (_, tail)) = self.split();
        format!("{head}        expr: {query}\n{tail}")
    }

    /// With its query changed, where that changes anything.
    fn changed(&self, change: impl Fn(&str) -> String) -> Option<String> {
        let (head, (query, tail)) = self.split();
        let changed = change(query);
        (changed != query).then(|| format!("{head}        expr: |\n{changed}{tail}"))
    }

    /// Before the query, the query, and what is behind it.
    fn split(&self) -> (&str, (&str, &str)) {
        let (head, rest) = self.text.split_once("        expr: |\n").expect("it has a query");
        let deep = rest.lines().take_while(|line| line.starts_with("          "));
        let length = deep.map(|line| line.len() + 1).sum();
        (head, rest.split_at(length))
    }
}

/// Without the time for which it has to hold.
fn at_once(rule: &str) -> String {
    let kept = rule.split_inclusive('\n').filter(|line| !line.starts_with("        for: "));
    kept.collect()
}

fn blocks() -> (&'static str, Vec<Block>) {
    let mut starts: Vec<usize> = ["      - alert: ", "      - record: "]
        .iter()
        .flat_map(|start| RULES.match_indices(*start).map(|(at, _)| at))
        .collect();
    starts.sort_unstable();
    let ends = starts.iter().skip(1).copied().chain([RULES.len()]);
    let blocks = starts.iter().zip(ends).map(|(&start, end)| {
        let text = &RULES[start..end];
        let line = text.lines().next().expect("it has one").trim_start();
        let (kind, name) = line.split_once(": ").expect("a kind and a name");
        Block { text, is_alert: kind == "- alert", name }
    });
    (&RULES[..starts[0]], blocks.collect())
}

/// What the tests say of such rules; but not the long one, in which no alert is looked at alone.
fn failures(rules: &str) -> String {
    let (tests, _) = TESTS.split_once("\n  # Ordinary life").expect("it is the last one");
    assert_ne!(rules, RULES, "something is spoilt");
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("quorate.rules.yml"), rules).expect("it can be written");
    fs::write(dir.path().join("test.yml"), tests).expect("it can be written");
    promtool(&["check", "rules", "quorate.rules.yml"], dir.path()).expect("they are still rules");
    promtool(&["test", "rules", "test.yml"], dir.path()).expect_err("the tests notice")
}

/// The alerts that were expected and did not fire, or the other way round.
fn failed(told: &str, unexpected: bool) -> BTreeSet<&str> {
    let parts = told.split("alertname: ").skip(1);
    let parts = parts.filter(|part| part.contains("exp:[],") == unexpected);
    parts.filter_map(|part| part.split(',').next()).collect()
}

fn named<'names>(names: impl Iterator<Item = &'names str>) -> BTreeSet<&'names str> {
    names.collect()
}

#[test]
fn an_alert_that_never_fires_and_a_record_that_is_wrong_are_noticed() {
    let change =
        |rule: &Block| rule.asks(if rule.is_alert { "vector(1) > 2" } else { "vector(7)" });
    let told = failures(&spoilt(|rule| Some(change(rule))));
    assert_eq!(failed(&told, false), named(alerts().map(|(rule, _)| rule.name.as_str())));
    let expressions: Vec<_> = told.split("expr: ").skip(1).collect();
    for record in records() {
        let tested = |expression: &&str| expression.contains(&record.name);
        assert!(expressions.iter().any(tested), "no test of {}: {told}", record.name);
    }
}

#[test]
fn an_alert_that_always_fires_is_noticed() {
    let always = |rule: &Block| rule.is_alert.then(|| at_once(&rule.asks("vector(1)")));
    let told = failures(&spoilt(always));
    assert_eq!(failed(&told, true), named(alerts().map(|(rule, _)| rule.name.as_str())));
}

#[test]
fn an_alert_that_does_not_wait_is_noticed() {
    let (_, blocks) = blocks();
    let waiting = blocks.iter().filter(|rule| at_once(rule.text) != rule.text);
    let waiting = waiting.map(|rule| rule.name);
    let told = failures(&spoilt(|rule| Some(at_once(rule.text))));
    assert_eq!(failed(&told, true), named(waiting));
}

#[test]
fn a_limit_that_is_a_tenth_too_high_is_noticed() {
    notices_limits(1.1, 1.0);
}

#[test]
fn a_limit_that_is_a_tenth_too_low_is_noticed() {
    notices_limits(0.9, -1.0);
}

/// Every alert with a limit is missed, be it that it fires or that it does not.
fn notices_limits(factor: f64, step: f64) {
    let (_, blocks) = blocks();
    let move_all = |rule: &Block| {
        let change = |query: &str| moved(query, factor, step);
        if rule.is_alert { rule.changed(change) } else { None }
    };
    let limited =
        named(blocks.iter().filter(|rule| move_all(rule).is_some()).map(|rule| rule.name));
    assert!(limited.len() > 10, "{limited:?}");
    let told = failures(&spoilt(move_all));
    let noticed = &failed(&told, false) | &failed(&told, true);
    assert_eq!(noticed, limited);
}

/// Shares and factors by a factor; counts by a step. Zero is no limit of that kind.
fn moved(query: &str, factor: f64, step: f64) -> String {
    let mut words: Vec<String> = query.split(' ').map(str::to_owned).collect();
    for at in 1..words.len() {
        let (word, rest) = match words[at].split_once('\n') {
            Some((word, rest)) => (word, format!("\n{rest}")),
            None => (words[at].as_str(), String::new()),
        };
        let is_factor = words.get(at + 1).is_some_and(|next| next == "*");
        let is_limit = [">", ">=", "<", "=="].contains(&words[at - 1].as_str()) || is_factor;
        let Some(number) = word.parse::<f64>().ok().filter(|&number| is_limit && number != 0.0)
        else {
            continue;
        };
        let is_count = number.fract() == 0.0 && !is_factor;
        let number = if is_count { number + step } else { number * factor };
        words[at] = format!("{number}{rest}");
    }
    words.join(" ")
}
