//! How long a bench runs, and what it prints at its end: tables for the documentation, and bars.

use std::{env, process::ExitCode};

/// How long a bench runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// A few seconds, to see that the bench works: `cargo test` runs it so.
    Short,
    /// `cargo bench` runs it so: it passes `--bench`.
    Long,
}

/// A value, and the most that it may be. It is judged as it is printed, with two decimals.
#[derive(Debug)]
struct Bar {
    name: String,
    value: f64,
    limit: f64,
}

/// What a bench has found.
#[derive(Debug, Default)]
pub struct Report {
    /// Rows of cells; the first of each table is its header.
    tables: Vec<Vec<Vec<String>>>,
    bars: Vec<Bar>,
}

/// The names of the bars that a bench prints.
#[derive(Clone, Copy, Debug)]
pub struct Promised {
    pub long: &'static [&'static str],
    pub short: &'static [&'static str],
}

/// Runs a bench and prints its report. The exit code is a failure if one of the promised bars is
/// missing, or if one has no finite value. A bar that is missed is no failure: values depend on the
/// machine.
pub fn run(promised: Promised, bench: impl FnOnce(Length) -> Report) -> ExitCode {
    let length = Length::of(env::args());
    if length == Length::Short {
        println!("short mode: this run shows that the bench works, and its figures mean nothing");
    }
    let report = bench(length);
    print!("{}", report.text(length));
    match report.check(length.pick(promised.long, promised.short)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            eprintln!("the bench failed: {complaint}");
            ExitCode::FAILURE
        }
    }
}

impl Promised {
    /// The same in both modes.
    pub const fn always(bars: &'static [&'static str]) -> Self {
        Self { long: bars, short: bars }
    }
}

impl Length {
    fn of(mut arguments: impl Iterator<Item = String>) -> Self {
        if arguments.any(|argument| argument == "--bench") { Self::Long } else { Self::Short }
    }

    pub fn pick<T>(self, long: T, short: T) -> T {
        match self {
            Self::Long => long,
            Self::Short => short,
        }
    }

    /// How many rounds: `QUORATE_BENCH_ROUNDS` sets it for a long run.
    pub fn rounds(self, long: usize, short: usize) -> usize {
        let set = env::var("QUORATE_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
        self.pick(set.unwrap_or(long), short)
    }
}

impl Bar {
    fn is_missed(&self) -> bool {
        self.value > self.limit
    }
}

impl Report {
    /// The value must not be more than the limit. Returns the cell that shows it: bold if it is.
    pub fn bar(&mut self, name: &str, value: f64, limit: f64) -> String {
        let value = (value * 100.0).round() / 100.0;
        let bar = Bar { name: name.to_owned(), value, limit };
        let cell = if bar.is_missed() { format!("**{value:.2}**") } else { format!("{value:.2}") };
        self.bars.push(bar);
        cell
    }

    /// Begins a table, which the next rows belong to.
    pub fn table<const COLUMNS: usize>(&mut self, header: [&str; COLUMNS]) {
        self.tables.push(Vec::new());
        self.row(header.map(str::to_owned));
    }

    pub fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        let table = self.tables.last_mut().expect("a table has begun");
        assert!(table.first().is_none_or(|header| header.len() == COLUMNS), "cells: {cells:?}");
        table.push(cells.into());
    }

    /// The tables as Markdown, a line for each bar, and which bars are missed.
    fn text(&self, length: Length) -> String {
        let mut lines = Vec::new();
        for table in &self.tables {
            lines.push(String::new());
            for (at, row) in table.iter().enumerate() {
                lines.push(format!("| {} |", row.join(" | ")));
                if at == 0 {
                    lines.push(format!("|{}", "---|".repeat(row.len())));
                }
            }
        }
        lines.push(String::new());
        for Bar { name, value, limit } in &self.bars {
            lines.push(format!("BAR {name} {value:.2} {limit:.2}"));
        }
        let missed = self.bars.iter().filter(|bar| bar.is_missed());
        let missed: Vec<&str> = missed.map(|bar| bar.name.as_str()).collect();
        lines.push(match (length, &missed[..]) {
            (Length::Short, _) => "short mode: no bar is judged".to_owned(),
            (Length::Long, []) => "all bars hold".to_owned(),
            (Length::Long, missed) => format!("missed: {}", missed.join(", ")),
        });
        lines.join("\n") + "\n"
    }

    /// Every bar that is promised has a value.
    fn check(&self, promised: &[&str]) -> Result<(), String> {
        if self.bars.is_empty() {
            return Err("it printed no BAR line".to_owned());
        }
        let has = |name: &str| self.bars.iter().any(|bar| bar.name == name);
        if let Some(missing) = promised.iter().find(|name| !has(name)) {
            return Err(format!("it printed no line `BAR {missing}`"));
        }
        match self.bars.iter().find(|bar| !bar.value.is_finite()) {
            Some(Bar { name, value, .. }) => Err(format!("the value of BAR {name} is {value}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_bar(value: f64) -> Report {
        let mut report = Report::default();
        report.bar("growth", value, 1.5);
        report
    }

    #[test]
    fn a_bench_is_long_only_where_cargo_bench_runs_it() {
        let of = |line: &str| Length::of(line.split(' ').map(str::to_owned));
        assert_eq!(of("handoff --bench"), Length::Long);
        assert_eq!(of("handoff"), Length::Short);
        assert_eq!(of("handoff --nocapture"), Length::Short);
    }

    #[test]
    fn a_bar_that_is_missing_or_has_no_value_fails_the_bench() {
        let none = Report::default().check(&[]);
        assert_eq!(none, Err("it printed no BAR line".to_owned()));
        let other = with_bar(1.0).check(&["growth", "cost"]);
        assert_eq!(other, Err("it printed no line `BAR cost`".to_owned()));
        let empty = with_bar(f64::NAN).check(&["growth"]);
        assert_eq!(empty, Err("the value of BAR growth is NaN".to_owned()));
        assert!(with_bar(1.0 / 0.0).check(&["growth"]).is_err());
    }

    #[test]
    fn a_bar_that_is_missed_is_said_and_fails_nothing() {
        let report = with_bar(1.51);
        assert_eq!(report.text(Length::Long), "\nBAR growth 1.51 1.50\nmissed: growth\n");
        assert_eq!(report.check(&["growth"]), Ok(()));
        // As it is printed it is not above the limit.
        assert!(with_bar(1.504).text(Length::Long).ends_with("all bars hold\n"));
        assert!(!report.text(Length::Short).contains("missed"));
    }

    #[test]
    fn a_table_shows_a_missed_bar_in_bold() {
        let mut report = Report::default();
        report.table(["waiters", "cost"]);
        let cell = report.bar("cost", 1.234, 1.2);
        report.row(["2".to_owned(), cell]);
        let text = report.text(Length::Long);
        assert!(text.starts_with("\n| waiters | cost |\n|---|---|\n| 2 | **1.23** |\n"), "{text}");
    }
}
