//! Checks of all voters together.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use quorate::{SetStatus, Survey, VoterSurvey};

use super::{
    finding::{Check, Finding, Findings, Level},
    infos,
};
use crate::frame::Short;

/// Clocks that are further apart will be set some day, and a clock that is set costs a quarantine.
const CLOCKS_APART_MICROS: i64 = 100_000;
/// Tokens after a loss of data rely on clients whose clocks agree.
const CLIENT_APART_MICROS: i64 = 1_000_000;
/// One voter is far slower than the others if it takes so many times as long, and at least that.
const SLOWER: u32 = 10;
const SLOW: Duration = Duration::from_millis(10);

pub(super) fn number(survey: &Survey, findings: &mut Findings) {
    for set in survey.status().sets() {
        number_of(&set, findings);
    }
}

fn number_of(set: &SetStatus, findings: &mut Findings) {
    let (voters, needed) = (set.voters, set.needed);
    let side = set.side.map_or_else(String::new, |side| format!("{side} "));
    let seen = match voters {
        1 => format!("1 {side}voter"),
        _ => format!("{voters} {side}voters, {needed} of them are a majority"),
    };
    let survives = voters - needed;
    let finding = |level| Finding::new(Check::Number, level, seen.as_str());
    let means = format!("{survives} of them may fail");
    findings.push(match voters {
        1 | 2 => finding(Level::Warning)
            .means("no failure is survived")
            .mend("use three or five servers"),
        even if even % 2 == 0 => finding(Level::Warning)
            .means(format!("{survives} of them may fail, as of {}", voters - 1))
            .mend("use an odd number"),
        _ => finding(Level::Ok).means(means),
    });
}

/// No server has two votes.
pub(super) fn distinct(survey: &Survey, findings: &mut Findings) {
    let mut voters_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for VoterSurvey { status, servers, .. } in &survey.voters {
        for info in servers.iter().filter_map(|report| report.info.as_ref().ok()) {
            voters_of.entry(&info.run_id).or_default().insert(&status.voter);
        }
    }
    let servers = voters_of.len();
    let shared: Vec<_> = voters_of.into_values().filter(|voters| voters.len() > 1).collect();
    for voters in &shared {
        let names = voters.iter().copied().collect::<Vec<_>>().join(" and ");
        let finding =
            Finding::new(Check::Distinct, Level::Error, format!("{names} share a server"));
        let means = "they fail together, and have one vote less";
        let mend = "name each server once; in a cluster, deal the hash slots out in equal parts to \
                    as many primaries as there are voters, or more";
        findings.push(finding.means(means).mend(mend));
    }
    if shared.is_empty() {
        let seen = format!("{} voters are on {servers} servers", survey.voters.len());
        findings.push(Finding::new(Check::Distinct, Level::Ok, seen));
    }
}

/// Voters on one host fail together.
pub(super) fn domains(survey: &Survey, findings: &mut Findings) {
    let mut servers_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for report in survey.voters.iter().flat_map(|voter| &voter.servers) {
        servers_of.entry(host(&report.server)).or_default().insert(&report.server);
    }
    let shared: Vec<_> = servers_of.iter().filter(|(_, servers)| servers.len() > 1).collect();
    for (host, servers) in &shared {
        let seen = format!("{} servers are on the host {host}", servers.len());
        let means = "they fail together";
        let mend = "put each voter on a host, a disk and a power supply of its own";
        findings.push(Finding::new(Check::Domains, Level::Warning, seen).means(means).mend(mend));
    }
    if shared.is_empty() {
        let seen = format!("{} hosts", servers_of.len());
        let means = "whether they share a zone, a disk or a power supply cannot be seen from here";
        findings.push(Finding::new(Check::Domains, Level::Ok, seen).means(means));
    }
}

/// Of `host:port`; the path of a socket is one itself.
fn host(address: &str) -> &str {
    let port = |(_, port): &(&str, &str)| port.bytes().all(|sign| sign.is_ascii_digit());
    address.rsplit_once(':').filter(port).map_or(address, |(host, _)| host)
}

pub(super) fn wakes(survey: &Survey, findings: &mut Findings) {
    let voters = survey.voters.iter().filter(|voter| voter.status.connection.is_ok());
    for VoterSurvey { status, wakes, .. } in voters {
        let finding =
            |level, seen: String| Finding::new(Check::Wakeups, level, seen).of(&status.voter);
        findings.push(match wakes {
            Ok(()) => finding(Level::Ok, "it delivers what is published".into()),
            Err(cause) => finding(Level::Warning, cause.to_string())
                .means("who waits for a lock hears of a release up to two seconds late")
                .mend("give the user +subscribe, +unsubscribe and its channels"),
        });
    }
}

pub(super) fn clocks(survey: &Survey, findings: &mut Findings) {
    let clocks: Vec<_> = infos(survey).map(|(server, info)| (server, info.clock)).collect();
    let mut known: Vec<i64> =
        clocks.iter().filter_map(|(_, clock)| Some(clock.as_ref()?.ahead_micros)).collect();
    known.sort_unstable();
    let Some(middle) = known.get(known.len().saturating_sub(1) / 2).copied() else { return };
    for (server, clock) in clocks {
        let finding = |level, seen: String| Finding::new(Check::Clock, level, seen).of(server);
        let Some(clock) = clock else {
            findings.push(
                finding(Level::Warning, "it does not tell its time".into())
                    .means("a clock that jumps is noticed late")
                    .mend("ACL SETUSER <user> +time"),
            );
            continue;
        };
        let apart = clock.ahead_micros.saturating_sub(middle);
        let uncertain = i64::try_from(clock.uncertain.as_micros()).unwrap_or(i64::MAX);
        let seen = format!("{} from the middle of the voters", signed(apart));
        let is_apart = apart.saturating_abs().saturating_sub(uncertain) > CLOCKS_APART_MICROS;
        findings.push(if is_apart {
            finding(Level::Warning, seen)
                .means("somebody will set it, and a clock that jumps costs a quarantine")
                .mend("run chrony or ntpd there, and let it adjust the clock slowly")
        } else {
            finding(Level::Ok, seen)
        });
    }
    let finding =
        |level| Finding::new(Check::Clock, level, format!("{} from this machine", signed(middle)));
    findings.push(if middle.saturating_abs() > CLIENT_APART_MICROS {
        finding(Level::Warning)
            .means("tokens may not grow after voters have lost data")
            .mend("synchronize the clock of this machine, or those of the voters")
    } else {
        finding(Level::Ok)
    });
}

fn signed(micros: i64) -> String {
    let sign = if micros < 0 { '-' } else { '+' };
    format!("{sign}{}", Short(Duration::from_micros(micros.unsigned_abs())))
}

pub(super) fn latency(survey: &Survey, findings: &mut Findings) {
    let trip = |voter: &VoterSurvey| Some((voter.status.voter.clone(), voter.round_trip?));
    let trips: Vec<_> = survey.voters.iter().filter_map(trip).collect();
    let mut sorted: Vec<Duration> = trips.iter().map(|(_, trip)| *trip).collect();
    sorted.sort_unstable();
    let middle = sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or_default();
    for (voter, trip) in &trips {
        let (deadline, lease) = (survey.voter_deadline, survey.lease);
        let seen = format!(
            "{} for a round trip, with a voter deadline of {} and a lease of {}",
            Short(*trip),
            Short(deadline),
            Short(lease)
        );
        let finding = |level| Finding::new(Check::Latency, level, seen.as_str()).of(voter);
        findings.push(if 2 * *trip > deadline {
            finding(Level::Error)
                .means("slow answers come too late and do not count")
                .mend("set a longer voter_deadline, or none; put the voter nearer")
        } else if *trip > lease / 50 {
            finding(Level::Warning)
                .means("a renewal has few attempts before the lease ends")
                .mend("set a longer lease; put the voter nearer")
        } else if *trip > SLOW && *trip > SLOWER * middle {
            finding(Level::Warning)
                .means(format!("far slower than the others ({})", Short(middle)))
                .mend("see SLOWLOG GET and LATENCY DOCTOR there, and the way to it")
        } else {
            finding(Level::Ok)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_what_stands_before_the_port_and_an_offset_has_a_sign() {
        for (address, expected) in [
            ("10.0.0.1:6379", "10.0.0.1"),
            ("[::1]:6379", "[::1]"),
            ("/run/redis.socket", "/run/redis.socket"),
        ] {
            assert_eq!(host(address), expected);
        }
        assert_eq!([signed(-1_500), signed(0)], ["-1.5ms", "+0ns"]);
    }
}
