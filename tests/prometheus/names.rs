//! What a query says of metrics, held against what there is.

use std::collections::{BTreeMap, BTreeSet};

use promql_parser::{
    label::{MatchOp, Matcher},
    parser::{
        self, AggregateExpr, BinModifier, BinaryExpr, Expr, LabelModifier, VectorMatchCardinality,
        VectorSelector, value::ValueType,
    },
};
use quorate::metric::{ALL, Metric, MetricKind};

/// What Prometheus adds to everything that it collects.
const TARGET: [&str; 2] = ["job", "instance"];
/// What Prometheus tells of alerts, with the labels of ours.
const ALERTS: (&str, [&str; 4]) = ("ALERTS", ["alertname", "alertstate", "severity", "job"]);
/// What stands in a query for a variable that may have any value.
pub(crate) const ANY: &str = ".*";

type Labels = BTreeSet<String>;

/// The names that a query may use: all metrics, and these records.
pub(crate) struct Names {
    records: BTreeMap<String, Labels>,
}

/// What a query uses and what it answers with.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) complaints: Vec<String>,
    /// The names of the metrics in it, without what histograms add to theirs.
    pub(crate) metrics: BTreeSet<String>,
    /// The labels of its answer.
    pub(crate) labels: Labels,
}

impl Names {
    /// The name of a record begins with its labels.
    pub(crate) fn new(records: impl IntoIterator<Item = String>) -> Self {
        let labelled = |name: String| {
            let labels = level(&name).map(str::to_owned).collect();
            (name, labels)
        };
        Self { records: records.into_iter().map(labelled).collect() }
    }

    pub(crate) fn read(&self, query: &str) -> Reading {
        let mut reading = Reading::default();
        match parser::parse(query) {
            Ok(expression) => reading.labels = self.labels(&expression, &mut reading),
            Err(error) => reading.complaints.push(format!("it cannot be read: {error}")),
        }
        reading
    }

    fn labels(&self, expression: &Expr, reading: &mut Reading) -> Labels {
        match expression {
            Expr::VectorSelector(selector) => self.selected(selector, reading),
            Expr::MatrixSelector(matrix) => self.selected(&matrix.vs, reading),
            Expr::Subquery(subquery) => self.labels(&subquery.expr, reading),
            Expr::Paren(paren) => self.labels(&paren.expr, reading),
            Expr::Unary(unary) => self.labels(&unary.expr, reading),
            Expr::Aggregate(aggregate) => self.aggregated(aggregate, reading),
            Expr::Binary(binary) => self.joined(binary, reading),
            Expr::Call(call) => {
                let all = call.args.args.iter().flat_map(|of| self.labels(of, reading)).collect();
                // It stands for what is not there, and so has no labels of it.
                if call.func.name == "absent" { Labels::new() } else { all }
            }
            Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::Extension(_) => Labels::new(),
        }
    }

    fn selected(&self, selector: &VectorSelector, reading: &mut Reading) -> Labels {
        let name = selector.name.as_deref().unwrap_or_default();
        let matchers = &selector.matchers.matchers;
        if let Some(labels) = self.records.get(name) {
            reading.check(name, labels, matchers, None);
            return labels.clone();
        }
        if name == ALERTS.0 {
            let labels = ALERTS.1.map(str::to_owned).into();
            reading.check(name, &labels, matchers, None);
            return labels;
        }
        let Some((metric, is_bucket)) = metric(name) else {
            reading.complaints.push(format!("there is no metric `{name}`"));
            return matchers.iter().map(|matcher| matcher.name.clone()).collect();
        };
        reading.metrics.insert(metric.name.to_owned());
        let own = metric.labels.iter().map(|label| label.name);
        let mut labels: Labels = own.chain(TARGET).map(str::to_owned).collect();
        labels.extend(is_bucket.then(|| "le".to_owned()));
        reading.check(name, &labels, matchers, Some(metric));
        labels
    }

    fn aggregated(&self, aggregate: &AggregateExpr, reading: &mut Reading) -> Labels {
        let inner = self.labels(&aggregate.expr, reading);
        let Some(modifier) = &aggregate.modifier else { return Labels::new() };
        let named: Labels = modifier.labels().labels.iter().cloned().collect();
        reading.has("it is grouped", &inner, &named);
        match modifier {
            LabelModifier::Include(_) => named,
            LabelModifier::Exclude(_) => &inner - &named,
        }
    }

    fn joined(&self, binary: &BinaryExpr, reading: &mut Reading) -> Labels {
        let sides = [&binary.lhs, &binary.rhs];
        let scalar = |side: &Expr| side.value_type() == ValueType::Scalar;
        let labels = sides.map(|side| self.labels(side, reading));
        if sides.iter().any(|side| scalar(side)) {
            return &labels[0] | &labels[1];
        }
        let [left, right] = labels;
        let modifier = binary.modifier.as_ref();
        let matched = match modifier.and_then(|modifier| modifier.matching.as_ref()) {
            Some(LabelModifier::Include(on)) => on.labels.iter().cloned().collect(),
            Some(LabelModifier::Exclude(but)) => {
                &left - &but.labels.iter().cloned().collect::<Labels>()
            }
            // Series with other labels never meet.
            None if binary.op.to_string() == "or" => Labels::new(),
            None => &left | &right,
        };
        reading.has("the left side is matched", &left, &matched);
        reading.has("the right side is matched", &right, &matched);
        let many = |it: &BinModifier| matches!(it.card, VectorMatchCardinality::ManyToOne(_));
        match binary.op.to_string().as_str() {
            "or" => &left | &right,
            "and" | "unless" => left,
            _ if modifier.is_some_and(many) => left,
            _ => matched,
        }
    }
}

impl Reading {
    fn has(&mut self, what: &str, there: &Labels, named: &Labels) {
        for label in named - there {
            self.complaints.push(format!("{what} by `{label}`, and has only {there:?}"));
        }
    }

    fn check(
        &mut self,
        name: &str,
        labels: &Labels,
        matchers: &[Matcher],
        metric: Option<&Metric>,
    ) {
        for matcher in matchers {
            if labels.contains(&matcher.name) {
                self.complaints.extend(unknown_values(name, matcher, metric));
            } else {
                self.complaints.push(format!("`{name}` has no label `{}`", matcher.name));
            }
        }
    }
}

/// What a label cannot be.
fn unknown_values(name: &str, matcher: &Matcher, metric: Option<&Metric>) -> Vec<String> {
    let Matcher { name: label, value, op } = matcher;
    let is_pattern = matches!(op, MatchOp::Re(_) | MatchOp::NotRe(_));
    let found = values(label, metric);
    let known = |value: &str| {
        let is_bucket = metric.is_some_and(|metric| is_bound(metric, value));
        found.is_empty() || found.contains(&value) || (label == "le" && is_bucket)
    };
    let offered: Vec<&str> = if is_pattern { value.split('|').collect() } else { vec![value] };
    let unknown = offered.into_iter().filter(|&value| value != ANY && !known(value));
    unknown.map(|value| format!("no `{label}` of `{name}` is `{value}`")).collect()
}

/// The labels in the name of a record.
pub(crate) fn level(record: &str) -> impl Iterator<Item = &str> {
    record.split(':').next().unwrap_or_default().split('_')
}

/// What a series of this name belongs to, and whether it counts the values of a bucket.
fn metric(name: &str) -> Option<(&'static Metric, bool)> {
    let find = |name: &str, histogram: bool| {
        let fits = |metric: &&Metric| (metric.kind == MetricKind::Histogram) == histogram;
        ALL.iter().filter(fits).find(|metric| metric.name == name)
    };
    let parts = ["_bucket", "_sum", "_count"];
    let part = parts.iter().find_map(|part| Some((find(name.strip_suffix(part)?, true)?, *part)));
    let part = part.map(|(metric, part)| (metric, part == "_bucket"));
    part.or_else(|| Some((find(name, false)?, false)))
}

/// All values that a label may have; none where they are not known.
fn values(label: &str, metric: Option<&Metric>) -> Vec<&'static str> {
    match (label, metric) {
        // No bound is a word.
        ("le", Some(_)) => vec!["+Inf"],
        ("alertstate", _) => vec!["pending", "firing"],
        (_, Some(metric)) => {
            let own = metric.labels.iter().filter(|own| own.name == label);
            own.flat_map(|own| own.values).copied().collect()
        }
        // A record's label is that of the metrics that it is made of.
        (_, None) => {
            let own = ALL.iter().flat_map(|metric| metric.labels).filter(|own| own.name == label);
            own.flat_map(|own| own.values).copied().collect()
        }
    }
}

fn is_bound(metric: &Metric, value: &str) -> bool {
    // As it is written: Prometheus compares the texts.
    metric.buckets.iter().any(|bound| bound.to_string() == value)
}
