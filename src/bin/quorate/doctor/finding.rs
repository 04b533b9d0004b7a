//! What a check has found.

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::frame::{Frame, Tone, quoted};

/// What is looked at. Programs know the checks by these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Check {
    /// Whether a client can be made of the settings
    Settings,
    /// Whether the voter answers and takes new votes
    Connection,
    /// How many voters there are
    Number,
    /// Whether the clients agree about the voters
    Roster,
    /// Whether each voter is a server of its own
    Distinct,
    /// Whether voters share a host
    Domains,
    /// The version of the server
    Version,
    /// What the server does when its memory is full
    Eviction,
    /// What the server has on its disk when it answers
    Persistence,
    /// Whether another server may take over
    Replicas,
    /// Whether one dead primary takes the whole cluster
    Coverage,
    /// What the user of the client may do
    Rights,
    /// Whether waiters are woken
    Wakeups,
    /// Whether the clocks agree
    Clock,
    /// How long answers take
    Latency,
}

impl Check {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// From good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Ok,
    Ignored,
    Warning,
    Error,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Ignored => "ignored",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    pub(crate) fn tone(self) -> Tone {
        match self {
            Self::Ok => Tone::Good,
            Self::Ignored => Tone::Plain,
            Self::Warning => Tone::Doubtful,
            Self::Error => Tone::Bad,
        }
    }
}

/// What one check saw, of one voter or server or of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    check: Check,
    level: Level,
    /// The voter or the server; several where the same was seen of them, none where it is of all.
    of: Vec<String>,
    seen: String,
    means: String,
    /// Empty where nothing is to be mended.
    mend: String,
}

impl Finding {
    pub(crate) fn new(check: Check, level: Level, seen: impl Into<String>) -> Self {
        let (of, means, mend) = (Vec::new(), String::new(), String::new());
        Self { check, level, of, seen: seen.into(), means, mend }
    }

    /// The voter or the server.
    pub(crate) fn of(self, of: &str) -> Self {
        Self { of: vec![of.to_owned()], ..self }
    }

    pub(crate) fn means(self, means: impl Into<String>) -> Self {
        Self { means: means.into(), ..self }
    }

    pub(crate) fn mend(self, mend: impl Into<String>) -> Self {
        Self { mend: mend.into(), ..self }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "check": self.check.name(),
            "level": self.level.name(),
            "server": self.of.first(),
            "seen": self.seen,
            "means": self.means,
            "mend": (!self.mend.is_empty()).then_some(&self.mend),
        })
    }

    /// One line, or several of this width.
    pub(crate) fn show(&self, frame: &mut Frame, width: Option<usize>) {
        let (level, check) = (self.level.name(), self.check.name());
        let of = if self.of.is_empty() { String::new() } else { self.of.join(", ") + ": " };
        let mut text = of + &self.seen;
        for more in [&self.means, &self.mend].into_iter().filter(|text| !text.is_empty()) {
            text.push_str("; ");
            text.push_str(more);
        }
        let head = format!("{level:8} {check:12} ");
        frame.wrapped(self.level.tone(), &head, &quoted(&text), width);
    }

    /// Whether there is nothing to mend.
    pub(crate) fn is_ok(&self) -> bool {
        self.level == Level::Ok
    }

    /// Whether the same was seen of another server.
    fn is_as(&self, other: &Self) -> bool {
        *self == Self { of: self.of.clone(), ..other.clone() }
    }
}

/// All findings, in the order of the checks.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    pub(crate) fn push(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    /// What these checks found does not count.
    pub(crate) fn ignore(&mut self, checks: &[Check]) {
        for finding in &mut self.0 {
            if finding.level > Level::Ignored && checks.contains(&finding.check) {
                finding.level = Level::Ignored;
            }
        }
    }

    pub(crate) fn worst(&self) -> Level {
        self.0.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)
    }

    pub(crate) fn count(&self, level: Level) -> usize {
        self.0.iter().filter(|finding| finding.level == level).count()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    /// What is the same of several servers, once for all of them.
    pub(crate) fn folded(&self) -> Self {
        let mut folded: Vec<Finding> = Vec::new();
        for finding in self.iter() {
            match folded.iter_mut().find(|other| other.is_as(finding)) {
                Some(other) => other.of.extend(finding.of.iter().cloned()),
                None => folded.push(finding.clone()),
            }
        }
        Self(folded)
    }
}
