//! `quorate doctor`: checks whether locks can rely on the voters.

mod checks;

use clap::{Args, ValueEnum};
use quorate::{Error, Verdict, VoterReport};
use serde_json::{Value, json};

use self::checks::{examine, jobs, unreachable};
use crate::{
    console::{Code, Failure},
    screen::{self, Frame, Picture, Tone, counted, quoted},
    setup::{VoterOptions, settle},
};

/// The format of `--json`. Further fields do not change the number.
const VERSION: u32 = 1;

/// Check how the voters are set up
///
/// Each line says what was seen, what it means, and how to mend it; with -v also what is well.
/// Nothing is changed on the servers. Rights are found by trying commands that change nothing; a
/// right that is missing leaves an entry in the server's ACL LOG.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate doctor
  quorate doctor --ignore persistence --ignore domains
  quorate doctor --json | jq -r '.findings[] | select(.level == \"error\").mend'")]
pub(crate) struct DoctorOptions {
    /// Write JSON
    #[arg(long)]
    json: bool,

    /// Show what this check finds, and end as if it were well
    #[arg(long, value_enum, value_name = "CHECK")]
    ignore: Vec<Check>,

    #[command(flatten)]
    voters: VoterOptions,
}

pub(crate) async fn run(options: DoctorOptions, shows_all: bool) -> Result<Code, Failure> {
    // With servers that may delete keys, which other clients refuse: the doctor has to look at them
    // to name them. And without a voter configuration, as one that differs is a finding.
    let builder = options.voters.setup()?.builder()?.allow_eviction(true).only_looks(true);
    let mut findings = match builder.connect().await {
        Ok(quorum) => {
            settle(&quorum).await;
            let survey = quorum.survey().await;
            let mut findings = examine(&survey);
            if survey.status().sets().count() > 1 {
                findings.push(jobs(&quorum.admin()).await);
            }
            let _ = quorum.close().await;
            findings
        }
        Err(error) => of_error(&error),
    };
    // Shown all the same, but without an effect on the exit code.
    for finding in &mut findings {
        if finding.level > Level::Ignored && options.ignore.contains(&finding.check) {
            finding.level = Level::Ignored;
        }
    }
    let frame = || frame(&findings, shows_all);
    screen::print(&Picture::new(options.json, || json(&findings), frame))?;
    Ok(match worst(&findings) {
        Level::Ok | Level::Ignored => Code::Fine,
        Level::Warning => Code::Warnings,
        Level::Error => Code::Errors,
    })
}

/// The findings if no client could connect.
fn of_error(error: &Error) -> Vec<Finding> {
    let voters = error.voters();
    let mut findings = Vec::new();
    if voters.is_empty() {
        let means = "no client can be connected with these settings";
        let finding = Check::Settings.error(error.to_string(), means);
        findings.push(finding.mend("correct the setting that the text names"));
    } else if !error.is_invalid() {
        let answers = |report: &&VoterReport| !matches!(report.verdict, Verdict::Unknown(_));
        let (answering, all) = (voters.iter().filter(answers).count(), voters.len());
        let seen = format!("{answering} of {all} voters answer: no lock can be taken");
        let means = "no majority; what else there is was not checked";
        findings.push(Check::Number.error(seen, means));
    }
    findings.extend(voters.iter().map(|VoterReport { voter, verdict, .. }| {
        let finding = match verdict {
            Verdict::Unknown(cause) => unreachable(cause),
            _ => Check::Connection.ok("connected"),
        };
        finding.of(voter)
    }));
    findings
}

fn json(findings: &[Finding]) -> Value {
    json!({
        "version": VERSION,
        "errors": count(findings, Level::Error),
        "warnings": count(findings, Level::Warning),
        "findings": findings.iter().map(Finding::json).collect::<Vec<_>>(),
    })
}

fn frame(findings: &[Finding], shows_all: bool) -> Frame {
    let mut frame = Frame::default();
    let findings = folded(findings);
    for finding in findings.iter().filter(|finding| shows_all || finding.level > Level::Ok) {
        finding.show(&mut frame, screen::width());
    }
    let [errors, warnings] = [Level::Error, Level::Warning].map(|level| count(&findings, level));
    let summary = format!("{}, {}", counted(errors, "error"), counted(warnings, "warning"));
    frame.line(worst(&findings).tone(), summary);
    frame
}

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
    Configuration,
    /// Whether a change of the voters takes along which firings are done
    Jobs,
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
    fn found(self, level: Level, seen: impl Into<String>, means: impl Into<String>) -> Finding {
        let (seen, means) = (seen.into(), means.into());
        Finding { check: self, level, of: Vec::new(), seen, means, mend: String::new() }
    }

    fn ok(self, seen: impl Into<String>) -> Finding {
        self.found(Level::Ok, seen, "")
    }

    fn warning(self, seen: impl Into<String>, means: impl Into<String>) -> Finding {
        self.found(Level::Warning, seen, means)
    }

    fn error(self, seen: impl Into<String>, means: impl Into<String>) -> Finding {
        self.found(Level::Error, seen, means)
    }
}

// In this order: the worst level gives the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Level {
    Ok,
    Ignored,
    Warning,
    Error,
}

impl Level {
    fn tone(self) -> Tone {
        match self {
            Self::Ok => Tone::Good,
            Self::Ignored => Tone::Plain,
            Self::Warning => Tone::Doubtful,
            Self::Error => Tone::Bad,
        }
    }
}

/// What one check found out about a voter, a server, or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    check: Check,
    level: Level,
    /// The voter or the server; several with the same finding; none if it is about all.
    of: Vec<String>,
    seen: String,
    means: String,
    /// How to mend it; empty if nothing is wrong.
    mend: String,
}

impl Finding {
    /// The voter or the server.
    fn of(self, of: &str) -> Self {
        Self { of: vec![of.to_owned()], ..self }
    }

    fn means(self, means: impl Into<String>) -> Self {
        Self { means: means.into(), ..self }
    }

    fn mend(self, mend: impl Into<String>) -> Self {
        Self { mend: mend.into(), ..self }
    }

    fn json(&self) -> Value {
        json!({
            "check": name(&self.check),
            "level": name(&self.level),
            "server": self.of.first(),
            "seen": self.seen,
            "means": self.means,
            "mend": (!self.mend.is_empty()).then_some(&self.mend),
        })
    }

    /// One line, or several of this width.
    fn show(&self, frame: &mut Frame, width: Option<usize>) {
        let (level, check) = (name(&self.level), name(&self.check));
        let of = if self.of.is_empty() { String::new() } else { self.of.join(", ") + ": " };
        let mut text = of + &self.seen;
        for more in [&self.means, &self.mend].into_iter().filter(|text| !text.is_empty()) {
            text.push_str("; ");
            text.push_str(more);
        }
        let head = format!("{level:8} {check:12} ");
        frame.wrapped(self.level.tone(), &head, &quoted(&text), width);
    }

    /// Whether it is the same finding about another server.
    fn is_as(&self, other: &Self) -> bool {
        *self == Self { of: self.of.clone(), ..other.clone() }
    }
}

/// The name of a check or a level on the command line and in JSON.
fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn worst(findings: &[Finding]) -> Level {
    findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)
}

fn count(findings: &[Finding], level: Level) -> usize {
    findings.iter().filter(|finding| finding.level == level).count()
}

/// The findings, with one in place of the same findings about several servers.
fn folded(findings: &[Finding]) -> Vec<Finding> {
    // Only for people: JSON keeps a finding for each server, so that a script can look for one.
    let mut folded: Vec<Finding> = Vec::new();
    for finding in findings {
        match folded.iter_mut().find(|other| other.is_as(finding)) {
            Some(other) => other.of.extend(finding.of.iter().cloned()),
            None => folded.push(finding.clone()),
        }
    }
    folded
}
