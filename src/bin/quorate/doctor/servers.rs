//! Checks of one voter or one server.

use std::time::Duration;

use quorate::{Persistence, ServerInfo, VoterSurvey};

use super::{
    finding::{Check, Finding, Findings, Level},
    unreachable,
};
use crate::frame::Short;

/// The oldest servers that know all that is asked of them.
const OLDEST: [u64; 2] = [6, 2];
/// So much of its memory, in percent, is too much.
const NEARLY_FULL: u64 = 80;
/// What clients can do without.
const OPTIONAL: [&str; 3] = ["+ping", "+client|id", "+config|get"];

pub(super) fn connection(voter: &VoterSurvey, longest_lease: Duration, findings: &mut Findings) {
    let status = &voter.status;
    let finding =
        |level, seen: String| Finding::new(Check::Connection, level, seen).of(&status.voter);
    if let Err(cause) = &status.connection {
        return findings.push(unreachable(&status.voter, cause));
    }
    if let Some(why) = &status.refuses {
        let means = "it takes no new votes; what is held is renewed and released";
        let mend = "OOM: raise maxmemory; NOREPLICAS: bring its replicas back; MISCONF: see its \
                    disk; NOPERM: give the user its rights";
        return findings.push(finding(Level::Error, why.clone()).means(means).mend(mend));
    }
    if let Some(quarantined) = &status.quarantine {
        let means = "it may have forgotten votes, and does not count for new locks until then";
        let mend = format!(
            "wait; where this comes again, see whether the server restarts, is emptied, or has its \
             clock set (each costs {})",
            Short(longest_lease)
        );
        let seen = quarantined.to_string();
        return findings.push(finding(Level::Warning, seen).means(means).mend(mend));
    }
    for report in &voter.servers {
        if let Err(cause) = &report.info {
            let seen = format!("{}: {cause}", report.server);
            let means = "it votes, and could not be examined";
            findings.push(finding(Level::Warning, seen).means(means).mend("try again"));
        }
    }
    findings.push(finding(Level::Ok, "connected, and takes new votes".into()));
}

pub(super) fn version(server: &str, info: &ServerInfo, findings: &mut Findings) {
    let ServerInfo { software, version, .. } = info;
    let seen = format!("{software} {version}");
    let finding = |level| Finding::new(Check::Version, level, seen.as_str()).of(server);
    let mut numbers = version.split('.').map_while(|number| number.parse::<u64>().ok());
    let numbers = [(); 2].map(|()| numbers.next().unwrap_or_default());
    let is_old = *software == "redis" && numbers < OLDEST;
    if is_old {
        let means = "it does not know SET with GET, which every lock needs";
        return findings.push(finding(Level::Error).means(means).mend("upgrade to Redis 7"));
    }
    findings.push(finding(Level::Ok));
}

pub(super) fn eviction(server: &str, info: &ServerInfo, findings: &mut Findings) {
    let ServerInfo { eviction_policy: policy, memory_limit, memory_used, .. } = info;
    let seen = match memory_limit {
        Some(limit) => format!("maxmemory-policy {policy}, {memory_used} of {limit} bytes used"),
        None => format!("maxmemory-policy {policy}, no maxmemory"),
    };
    let finding = |level| Finding::new(Check::Eviction, level, seen.as_str()).of(server);
    let mend = "CONFIG SET maxmemory-policy noeviction, and in its configuration file";
    let is_nearly_full = memory_limit
        .is_some_and(|limit| memory_used.saturating_mul(100) > limit.saturating_mul(NEARLY_FULL));
    findings.push(match (policy.as_str(), memory_limit) {
        ("noeviction", _) if is_nearly_full => finding(Level::Warning)
            .means("when it is full it takes no new votes")
            .mend("raise maxmemory, or lower fence_memory"),
        ("noeviction", _) => finding(Level::Ok),
        (_, Some(_)) => finding(Level::Error)
            .means(
                "when its memory is full it deletes votes, and two can hold a lock: clients refuse \
                 it unless allow_eviction is set",
            )
            .mend(mend),
        (_, None) => finding(Level::Warning)
            .means("as soon as somebody sets maxmemory it may delete votes")
            .mend(mend),
    });
}

pub(super) fn persistence(
    server: &str,
    info: &ServerInfo,
    longest_lease: Duration,
    findings: &mut Findings,
) {
    let persistence = &info.persistence;
    let Persistence { appendonly, appendfsync, no_appendfsync_on_rewrite, save, .. } = persistence;
    let unknown = || "?".to_owned();
    let fsync = appendfsync.clone().unwrap_or_else(unknown);
    let rewrite = no_appendfsync_on_rewrite.map_or("?", |no| if no { "yes" } else { "no" });
    let save = save.as_ref().map_or_else(unknown, |save| format!("\"{save}\""));
    let seen = if *appendonly {
        format!("appendonly yes, appendfsync {fsync}, no-appendfsync-on-rewrite {rewrite}")
    } else {
        format!("appendonly no, save {save}")
    };
    let finding = |level| Finding::new(Check::Persistence, level, seen.as_str()).of(server);
    if *appendonly && persistence.default_user_may_write == Some(false) {
        let seen = "the user `default` may not run all commands on all keys";
        let means = "servers before Redis 8.4.4 and Valkey 8.1.10 read their file as this user, \
                     and drop votes by a restart: two can hold a lock";
        let mend = "ACL SETUSER default ~* &* +@all (it may stay off), and in the users' file";
        let finding = Finding::new(Check::Persistence, Level::Error, seen).of(server);
        return findings.push(finding.means(means).mend(mend));
    }
    if persistence.is_durable() {
        let means = if persistence.default_user_may_write.is_some() {
            "a restart forgets no vote, and it counts again at once"
        } else {
            "a restart forgets no vote, and it counts again at once, if the user `default` may run \
             all commands (only operators can see that)"
        };
        return findings.push(finding(Level::Ok).means(means));
    }
    let lost = match appendfsync.as_deref() {
        Some("everysec") if *appendonly => "a crash may forget the votes of the last second",
        _ if *appendonly => "a crash may forget its latest votes",
        _ => "a restart forgets its votes",
    };
    let means = format!(
        "{lost}: after each restart it gives no new locks for {}, and if a majority restarts \
         within that time nobody gets one",
        Short(longest_lease)
    );
    let mend = "set appendonly yes, appendfsync always, no-appendfsync-on-rewrite no and (since \
                Redis 8.4) aof-load-corrupt-tail-max-size 0, or accept it with \
                --ignore persistence";
    findings.push(finding(Level::Warning).means(means).mend(mend));
}

pub(super) fn replicas(server: &str, info: &ServerInfo, findings: &mut Findings) {
    let ServerInfo { replicas, is_primary, .. } = info;
    let finding = |level, seen: String| Finding::new(Check::Replicas, level, seen).of(server);
    findings.push(match (is_primary, replicas) {
        (false, _) => finding(Level::Error, "it is a replica".into())
            .means("a replica cannot vote")
            .mend("name its primary, or the sentinels of its service"),
        (true, 0) => finding(Level::Ok, "primary without replicas".into()),
        (true, count) => finding(Level::Ok, format!("primary with {count} replicas")).means(
            "a replica that takes over may miss the latest votes, and is in quarantine at first",
        ),
    });
}

/// Of a server of a cluster that says how it is set up.
pub(super) fn coverage(server: &str, info: &ServerInfo, findings: &mut Findings) {
    let Some(needs_all_slots) = info.needs_all_slots else { return };
    let value = if needs_all_slots { "yes" } else { "no" };
    let seen = format!("cluster-require-full-coverage {value}");
    let finding = |level| Finding::new(Check::Coverage, level, seen.as_str()).of(server);
    findings.push(if needs_all_slots {
        finding(Level::Warning)
            .means("one primary that is down takes all voters of the cluster")
            .mend("CONFIG SET cluster-require-full-coverage no, and in its configuration file")
    } else {
        finding(Level::Ok)
    });
}

pub(super) fn rights(server: &str, info: &ServerInfo, findings: &mut Findings) {
    let missing = |is_optional: bool| -> Vec<&str> {
        let rights = info.missing_rights.iter().map(String::as_str);
        rights.filter(|right| OPTIONAL.contains(right) == is_optional).collect()
    };
    let finding = |level, seen: String| Finding::new(Check::Rights, level, seen).of(server);
    let mend = |rights: &[&str]| format!("ACL SETUSER <user> {}", rights.join(" "));
    let (needed, optional) = (missing(false), missing(true));
    if !needed.is_empty() {
        let seen = format!("the user lacks {}", needed.join(" "));
        let means = "some locks cannot be acquired, renewed or released on it";
        findings.push(finding(Level::Error, seen).means(means).mend(mend(&needed)));
    }
    if !optional.is_empty() {
        let seen = format!("the user lacks {}", optional.join(" "));
        let means = if optional.contains(&"+config|get") {
            "whether it forgets votes by a restart cannot be seen: it is taken for one that does"
        } else {
            "locks work; the server's log gets entries"
        };
        findings.push(finding(Level::Warning, seen).means(means).mend(mend(&optional)));
    }
    if needed.is_empty() && optional.is_empty() {
        findings.push(finding(Level::Ok, "the user has all rights that locks need".into()));
    }
}
