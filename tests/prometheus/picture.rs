//! A picture of what the dashboard shows, for the book.

use std::fmt::Write;

use serde_json::Value;

use crate::{
    dashboard::{Dashboard, TEXT, list, text},
    programs::Prometheus,
};

/// The panels that tell the story, by their titles, and what their numbers are.
const PANELS: [(&str, &str); 8] = [
    ("Answers", "per second"),
    ("Time to a lock", "seconds"),
    ("Locks held", ""),
    ("Lost locks", "in 8 s"),
    ("Connections", ""),
    ("No usable answer", "share of the verdicts"),
    ("Quarantine", "1: it does not count"),
    ("Alerts", "1: pending, 2: firing"),
];
/// Of one panel; two are side by side.
const WIDTH: f64 = 500.0;
const HEIGHT: f64 = 190.0;
/// Of the curves within it.
const INNER: (f64, f64) = (WIDTH - 70.0, HEIGHT - 90.0);
const COLORS: [&str; 6] = ["#1b6ca8", "#d1495b", "#3a7d44", "#edae49", "#6a4c93", "#555555"];
/// From so many curves on those that are zero all the time are left out.
const MANY: usize = 9;
/// What rates are taken over: the run is short.
const WINDOW: &str = "[8s]";

/// What happened, and when, in seconds since 1970.
pub(crate) type Event = (f64, String);

/// A curve: its name, and its values by time.
type Curve = (String, Vec<(f64, f64)>);

/// Everything from the first event to the last, as SVG. `names`: what is to be called otherwise.
pub(crate) fn draw(
    prometheus: &Prometheus,
    events: &[Event],
    names: &[(String, String)],
) -> String {
    let (first, last) = (events[0].0, events[events.len() - 1].0);
    let rows = PANELS.len().div_ceil(2);
    let foot = 24.0 + 18.0 * count(events.len());
    let (width, height) = (2.0 * WIDTH, HEIGHT * count(rows) + foot);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (place, (title, unit)) in PANELS.into_iter().enumerate() {
        let (left, top) = (WIDTH * count(place % 2), HEIGHT * count(place / 2));
        writeln!(svg, "<g transform=\"translate({left} {top})\">").expect("a text");
        let curves = curves(prometheus, title, (first, last), names);
        svg += &panel((title, unit), &curves, events);
        svg += "</g>\n";
    }
    for (number, (at, what)) in events.iter().enumerate() {
        let top = HEIGHT * count(rows) + 18.0 * count(number + 1);
        let (mark, after) = (number + 1, at - first);
        let line = format!("{mark}: after {after:.0} s, {what}");
        writeln!(svg, "<text x=\"40\" y=\"{top}\">{line}</text>").expect("a text");
    }
    svg + "</svg>\n"
}

fn curves(
    prometheus: &Prometheus,
    title: &str,
    (first, last): (f64, f64),
    names: &[(String, String)],
) -> Vec<Curve> {
    let dashboard = Dashboard::read(TEXT);
    let panel = dashboard.panels().find(|panel| text(&panel["title"]) == title);
    let targets = list(&panel.expect("there is this panel")["targets"]);
    let queries = dashboard.queries("quorate-service").into_iter();
    let queries = queries.filter(|(of, _)| of == title).map(|(_, query)| query);
    let (start, end) = (first.to_string(), last.to_string());
    let mut curves = Vec::new();
    for (target, query) in targets.zip(queries) {
        let query = query.replace("[1m]", WINDOW);
        let range = [("query", &*query), ("start", &start), ("end", &end), ("step", "1")];
        let answer = prometheus.api("query_range", &range).expect("it is understood");
        for series in list(&answer["result"]) {
            let mut name = text(&target["legendFormat"]).to_owned();
            for (label, value) in series["metric"].as_object().expect("labels") {
                name = name.replace(&format!("{{{{{label}}}}}"), text(value));
            }
            for (known, better) in names {
                name = name.replace(known, better);
            }
            // A label that this series has not.
            let name = name.replace("{{lock}} ", "").replace("{{lock}}", "").trim().to_owned();
            let number = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
            let point = |pair: &Value| Some((pair[0].as_f64()? - first, number(&pair[1])?));
            let points = list(&series["values"]).filter_map(point);
            curves.push((name, points.filter(|(_, value): &(_, f64)| value.is_finite()).collect()));
        }
    }
    let moves = |(_, points): &Curve| points.iter().any(|(_, value)| *value > 0.0);
    if curves.len() > MANY {
        curves.retain(moves);
    }
    curves.sort_by(|one: &Curve, other| one.0.cmp(&other.0));
    curves
}

fn panel((title, unit): (&str, &str), curves: &[Curve], events: &[Event]) -> String {
    let (width, height) = INNER;
    let (first, last) = (events[0].0, events[events.len() - 1].0);
    let values = curves.iter().flat_map(|(_, points)| points).map(|(_, value)| *value);
    let most = values.fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { 1.0 };
    let x = |after: f64| 40.0 + width * after / (last - first);
    let y = |value: f64| 30.0 + height * (1.0 - value / most);
    let mut svg = format!(
        "<text x=\"40\" y=\"18\"><tspan font-weight=\"bold\">{title}</tspan> {unit}</text>\n\
         <path d=\"M40 30V{bottom}H{end}\" fill=\"none\" stroke=\"#999\"/>\n\
         <text x=\"36\" y=\"36\" text-anchor=\"end\">{top}</text>\n\
         <text x=\"36\" y=\"{bottom}\" text-anchor=\"end\">0</text>\n",
        bottom = 30.0 + height,
        end = 40.0 + width,
        top = short(most),
    );
    for (number, (at, _)) in events.iter().enumerate() {
        let at = x(at - first);
        let (bottom, mark) = (30.0 + height, number + 1);
        writeln!(
            svg,
            "<path d=\"M{at:.1} 30V{bottom}\" stroke=\"#bbb\" stroke-dasharray=\"2 3\"/>\
             <text x=\"{at:.1}\" y=\"28\" fill=\"#888\" text-anchor=\"middle\">{mark}</text>"
        )
        .expect("a text");
    }
    for (number, (name, points)) in curves.iter().enumerate() {
        let color = COLORS[number % COLORS.len()];
        let mut path = String::new();
        let mut before = f64::MIN;
        for (after, value) in points {
            // A gap is one.
            let step = if after - before > 1.5 { 'M' } else { 'L' };
            write!(path, "{step}{:.1} {:.1}", x(*after), y(*value)).expect("a text");
            before = *after;
        }
        let (left, top) =
            (40.0 + 150.0 * count(number % 3), 46.0 + height + 13.0 * count(number / 3));
        writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.6\"/>\
             <text x=\"{left}\" y=\"{top}\" fill=\"{color}\">{name}</text>"
        )
        .expect("a text");
    }
    svg
}

fn short(number: f64) -> String {
    let digits = if number >= 10.0 {
        0
    } else if number >= 1.0 {
        1
    } else {
        3
    };
    format!("{number:.digits$}")
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).expect("a few"))
}
