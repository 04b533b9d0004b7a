//! `quorate doctor`: whether the voters are set up so that locks can rely on them.

mod finding;
mod roster;
mod servers;
mod set;

use std::process::ExitCode;

use clap::Args;
use quorate::{Cause, Error, Survey, Verdict, VoterReport};
use serde_json::{Value, json};

use self::finding::{Check, Finding, Findings, Level};
use crate::{
    connection::VoterOptions,
    exit::{Code, Failure, login_to_set},
    frame::{Frame, counted},
    settle::settle,
    watch::{self, Picture},
};

/// The shape of what `--json` writes. A later one may have further fields under the same number.
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

pub(crate) async fn run(options: DoctorOptions, shows_all: bool) -> Result<ExitCode, Failure> {
    // A server that may delete keys is to be looked at too.
    let builder = options.voters.setup()?.builder()?.allow_eviction(true).only_looks(true);
    let mut findings = Findings::default();
    match builder.connect().await {
        Ok(quorum) => {
            settle(&quorum).await;
            let survey = quorum.survey().await;
            quorum.close().await;
            examine(&survey, &mut findings);
        }
        Err(error) => of_error(&error, &mut findings),
    }
    findings.ignore(&options.ignore);
    let shown = if options.json {
        Picture::Json(json(&findings))
    } else {
        Picture::Frame(frame(&findings, shows_all))
    };
    watch::print(&shown)?;
    Ok(match findings.worst() {
        Level::Ok | Level::Ignored => Code::Fine,
        Level::Warning => Code::Warnings,
        Level::Error => Code::Errors,
    }
    .into())
}

/// All checks, of a set of voters of which a majority answers.
fn examine(survey: &Survey, findings: &mut Findings) {
    set::number(survey, findings);
    roster::steps(survey, findings);
    set::distinct(survey, findings);
    set::domains(survey, findings);
    for voter in &survey.voters {
        servers::connection(voter, survey.longest_lease, findings);
    }
    for (report, info) in infos(survey) {
        servers::version(report, info, findings);
        servers::eviction(report, info, findings);
        servers::persistence(report, info, survey.longest_lease, findings);
        servers::replicas(report, info, findings);
        servers::coverage(report, info, findings);
        servers::rights(report, info, findings);
    }
    set::wakes(survey, findings);
    set::clocks(survey, findings);
    set::latency(survey, findings);
}

/// Each server that said something, with its address.
fn infos(survey: &Survey) -> impl Iterator<Item = (&str, &quorate::ServerInfo)> {
    let reports = survey.voters.iter().flat_map(|voter| &voter.servers);
    reports.filter_map(|report| Some((report.server.as_str(), report.info.as_ref().ok()?)))
}

/// Why there is no client.
fn of_error(error: &Error, findings: &mut Findings) {
    if error.voters().is_empty() {
        let finding = Finding::new(Check::Settings, Level::Error, error.to_string());
        let means = "no client can be connected with these settings";
        findings.push(finding.means(means).mend("correct the setting that the text names"));
    }
    if !error.is_invalid() && !error.voters().is_empty() {
        let voters = error.voters().len();
        let is_met = |report: &&VoterReport| !matches!(report.verdict, Verdict::Unknown(_));
        let met = error.voters().iter().filter(is_met).count();
        let seen = format!("{met} of {voters} voters answer: no lock can be taken");
        let finding = Finding::new(Check::Number, Level::Error, seen);
        findings.push(finding.means("no majority; what else there is was not checked"));
    }
    for report in error.voters() {
        match &report.verdict {
            Verdict::Unknown(cause) => findings.push(unreachable(&report.voter, cause)),
            _ => findings
                .push(Finding::new(Check::Connection, Level::Ok, "connected").of(&report.voter)),
        }
    }
}

/// Of a voter that does not answer.
fn unreachable(voter: &str, cause: &Cause) -> Finding {
    let (check, mend) = match cause {
        Cause::Duplicate(_) => (Check::Distinct, "name each server once"),
        _ => (
            Check::Connection,
            "start the server, or open the way to it; see whether address, port, user and password \
             are right",
        ),
    };
    let mend = login_to_set(&cause.to_string()).unwrap_or(mend);
    let means = "it has no vote";
    Finding::new(check, Level::Error, cause.to_string()).of(voter).means(means).mend(mend)
}

fn json(findings: &Findings) -> Value {
    json!({
        "version": VERSION,
        "errors": findings.count(Level::Error),
        "warnings": findings.count(Level::Warning),
        "findings": findings.iter().map(Finding::json).collect::<Vec<_>>(),
    })
}

fn frame(findings: &Findings, shows_all: bool) -> Frame {
    let mut frame = Frame::default();
    let findings = findings.folded();
    for finding in findings.iter().filter(|finding| shows_all || !finding.is_ok()) {
        finding.show(&mut frame, watch::width());
    }
    let [errors, warnings] = [Level::Error, Level::Warning].map(|level| findings.count(level));
    let summary = format!("{}, {}", counted(errors, "error"), counted(warnings, "warning"));
    frame.line(findings.worst().tone(), summary);
    frame
}
