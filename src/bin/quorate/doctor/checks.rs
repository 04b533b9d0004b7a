//! The checks: of all voters together, of one voter, and of one server.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use quorate::{
    Admin, Cause, ClockOffset, ConfigurationEntry, Error, LockKind, Persistence, Quarantine,
    ServerInfo, SetStatus, Survey, VoterSurvey,
};

use super::{Check, Finding, Level};
use crate::{
    console::login_to_set,
    screen::{Short, counted},
};

/// How far a voter's clock may be from the others.
// Somebody will set a clock that is further apart, and a clock that is set costs a quarantine
// (guarantee 4, `clock_moved`).
const CLOCKS_APART_MICROS: i64 = 100_000;
/// How far the clock of this machine may be from the voters.
// If voters lose data, tokens only grow while the wall clocks of clients agree (guarantee 3).
const CLIENT_APART_MICROS: i64 = 1_000_000;
/// A voter is far slower than the others if it takes this many times as long, and at least `SLOW`.
const SLOWER: u32 = 10;
const SLOW: Duration = Duration::from_millis(10);
/// How long after its last sign a client may still be there.
// Clients store their voter configuration every 15 s, and clients of both sets carry it to the
// other voters later.
const THERE: Duration = Duration::from_secs(45);
/// The oldest version of Redis with all that locks need.
// `SET` with `GET` came with 6.2.
const OLDEST: [u64; 2] = [6, 2];
/// The share of its memory, in percent, from which a server is nearly full.
const NEARLY_FULL: u64 = 80;
/// The rights that clients can do without.
const OPTIONAL: [&str; 3] = ["+ping", "+client|id", "+config|get"];

/// All checks, if a majority of the voters answers.
pub(super) fn examine(survey: &Survey) -> Vec<Finding> {
    let mut findings: Vec<_> = survey.status().sets().map(|set| number(&set)).collect();
    findings.extend(steps(survey));
    findings.extend(distinct(survey));
    findings.extend(domains(survey));
    for voter in &survey.voters {
        let found = connection(voter, survey.longest_lease).into_iter();
        findings.extend(found.map(|finding| finding.of(&voter.status.voter)));
    }
    for (server, info) in infos(survey) {
        let mut found = vec![version(info), eviction(info)];
        found.push(persistence(&info.persistence, survey.longest_lease));
        found.push(replicas(info));
        found.extend(info.needs_all_slots.map(coverage));
        found.extend(rights(info));
        findings.extend(found.into_iter().map(|finding| finding.of(server)));
    }
    findings.extend(survey.voters.iter().filter_map(wakes));
    findings.extend(clocks(survey));
    findings.extend(latency(survey));
    findings
}

/// The servers that answered, with their addresses.
fn infos(survey: &Survey) -> impl Iterator<Item = (&str, &ServerInfo)> {
    let reports = survey.voters.iter().flat_map(|voter| &voter.servers);
    reports.filter_map(|report| Some((report.server.as_str(), report.info.as_ref().ok()?)))
}

fn number(set: &SetStatus) -> Finding {
    let (voters, needed) = (set.voters, set.needed);
    let side = set.side.map_or_else(String::new, |side| format!("{side} "));
    let seen = match voters {
        1 => format!("1 {side}voter"),
        _ => format!("{voters} {side}voters, {needed} of them are a majority"),
    };
    let means = format!("{} of them may fail", voters - needed);
    match voters {
        1 | 2 => {
            let finding = Check::Number.warning(seen, "no failure is survived");
            finding.mend("use three or five servers")
        }
        even if even % 2 == 0 => Check::Number
            .warning(seen, format!("{means}, as of {}", voters - 1))
            .mend("use an odd number"),
        _ => Check::Number.ok(seen).means(means),
    }
}

/// Checks that no server has two votes.
fn distinct(survey: &Survey) -> Vec<Finding> {
    // By the run id: one server may have several addresses.
    let mut voters_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for VoterSurvey { status, servers, .. } in &survey.voters {
        for info in servers.iter().filter_map(|report| report.info.as_ref().ok()) {
            voters_of.entry(&info.run_id).or_default().insert(&status.voter);
        }
    }
    let servers = voters_of.len();
    let shared = voters_of.into_values().filter(|voters| voters.len() > 1).map(|voters| {
        let names = voters.into_iter().collect::<Vec<_>>().join(" and ");
        let means = "they fail together, and have one vote less";
        let mend = "name each server once; in a cluster, deal the hash slots out in equal parts to \
                    as many primaries as there are voters, or more";
        Check::Distinct.error(format!("{names} share a server"), means).mend(mend)
    });
    let seen = format!("{} voters are on {servers} servers", survey.voters.len());
    or_well(shared.collect(), Check::Distinct.ok(seen))
}

/// The findings; or that all is well, if there are none.
fn or_well(wrong: Vec<Finding>, well: Finding) -> Vec<Finding> {
    if wrong.is_empty() { vec![well] } else { wrong }
}

/// Checks that voters do not share a host, with which they would fail together.
fn domains(survey: &Survey) -> Vec<Finding> {
    let mut servers_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for report in survey.voters.iter().flat_map(|voter| &voter.servers) {
        servers_of.entry(host(&report.server)).or_default().insert(&report.server);
    }
    let seen = format!("{} hosts", servers_of.len());
    let means = "whether they share a zone, a disk or a power supply cannot be seen from here";
    let shared =
        servers_of.iter().filter(|(_, servers)| servers.len() > 1).map(|(host, servers)| {
            let seen = format!("{} servers are on the host {host}", servers.len());
            let mend = "put each voter on a host, a disk and a power supply of its own";
            Check::Domains.warning(seen, "they fail together").mend(mend)
        });
    or_well(shared.collect(), Check::Domains.ok(seen).means(means))
}

/// The host of `host:port`. The path of a socket stands for itself.
fn host(address: &str) -> &str {
    let port = |(_, port): &(&str, &str)| port.bytes().all(|sign| sign.is_ascii_digit());
    address.rsplit_once(':').filter(port).map_or(address, |(host, _)| host)
}

fn wakes(voter: &VoterSurvey) -> Option<Finding> {
    voter.status.connection.as_ref().ok()?;
    let finding = match &voter.wakes {
        Ok(()) => Check::Wakeups.ok("it delivers what is published"),
        Err(cause) => Check::Wakeups
            .warning(
                cause.to_string(),
                "who waits for a lock hears of a release up to two seconds late",
            )
            .mend("give the user +subscribe, +unsubscribe and its channels"),
    };
    Some(finding.of(&voter.status.voter))
}

fn clocks(survey: &Survey) -> Vec<Finding> {
    let clocks: Vec<_> = infos(survey).map(|(server, info)| (server, info.clock)).collect();
    let mut known: Vec<i64> =
        clocks.iter().filter_map(|(_, clock)| Some(clock.as_ref()?.ahead_micros)).collect();
    // From the middle, not the mean: one clock that is an hour ahead must not make the others
    // wrong.
    known.sort_unstable();
    let Some(middle) = known.get(known.len().saturating_sub(1) / 2).copied() else {
        return Vec::new();
    };
    let of_server = |(server, clock)| {
        let Some(ClockOffset { ahead_micros, uncertain, .. }) = clock else {
            let finding = Check::Clock
                .warning("it does not tell its time", "a clock that jumps is noticed late");
            return finding.mend("ACL SETUSER <user> +time").of(server);
        };
        let apart = ahead_micros.saturating_sub(middle);
        let uncertain = i64::try_from(uncertain.as_micros()).unwrap_or(i64::MAX);
        let seen = format!("{} from the middle of the voters", signed(apart));
        // Only what the round trip cannot explain.
        let is_apart = apart.saturating_abs().saturating_sub(uncertain) > CLOCKS_APART_MICROS;
        let finding = if is_apart {
            Check::Clock
                .warning(seen, "somebody will set it, and a clock that jumps costs a quarantine")
                .mend("run chrony or ntpd there, and let it adjust the clock slowly")
        } else {
            Check::Clock.ok(seen)
        };
        finding.of(server)
    };
    let mut findings: Vec<_> = clocks.into_iter().map(of_server).collect();
    let seen = format!("{} from this machine", signed(middle));
    findings.push(if middle.saturating_abs() > CLIENT_APART_MICROS {
        Check::Clock
            .warning(seen, "tokens may not grow after voters have lost data")
            .mend("synchronize the clock of this machine, or those of the voters")
    } else {
        Check::Clock.ok(seen)
    });
    findings
}

fn signed(micros: i64) -> String {
    let sign = if micros < 0 { '-' } else { '+' };
    format!("{sign}{}", Short(Duration::from_micros(micros.unsigned_abs())))
}

fn latency(survey: &Survey) -> Vec<Finding> {
    let (deadline, lease) = (survey.voter_deadline, survey.lease);
    let mut sorted: Vec<Duration> =
        survey.voters.iter().filter_map(|voter| voter.round_trip).collect();
    sorted.sort_unstable();
    let middle = sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or_default();
    let of_voter = |voter: &VoterSurvey| {
        let trip = voter.round_trip?;
        let seen = format!(
            "{} for a round trip, with a voter deadline of {} and a lease of {}",
            Short(trip),
            Short(deadline),
            Short(lease)
        );
        let finding = if 2 * trip > deadline {
            Check::Latency
                .error(seen, "slow answers come too late and do not count")
                .mend("set a longer voter_deadline, or none; put the voter nearer")
        } else if trip > lease / 50 {
            Check::Latency
                .warning(seen, "a renewal has few attempts before the lease ends")
                .mend("set a longer lease; put the voter nearer")
        } else if trip > SLOW && trip > SLOWER * middle {
            Check::Latency
                .warning(seen, format!("far slower than the others ({})", Short(middle)))
                .mend("see SLOWLOG GET and LATENCY DOCTOR there, and the way to it")
        } else {
            Check::Latency.ok(seen)
        };
        Some(finding.of(&voter.status.voter))
    };
    survey.voters.iter().filter_map(of_voter).collect()
}

/// Checks that the clients agree about who the voters are, and says in which step of a change they
/// are.
fn steps(survey: &Survey) -> Vec<Finding> {
    // Clients of two steps that are further apart than one can hold a lock at the same time (design
    // 6), so each clash is an error, although clients refuse to connect.
    let clashes = survey.configuration.iter().filter(|entry| entry.clashes).map(|entry| {
        let left =
            (entry.longest_lease.max(survey.longest_lease) + THERE).saturating_sub(entry.seen);
        let ends = if left.is_zero() {
            "until clients in between that have both sets have been here without it".to_owned()
        } else {
            format!("for {} more if no such client comes back", Short(left))
        };
        let means = format!(
            "a client with these settings has a configuration mismatch with it and does not connect, \
             {ends}"
        );
        let mend =
            "give all clients the voters of one step, or of the next, and the same other settings";
        Check::Configuration.error(entry.to_string(), means).mend(mend)
    });
    let well: Vec<_> = survey.configuration.iter().filter(|entry| !entry.clashes).collect();
    let there: Vec<_> = well.iter().filter(|entry| entry.seen <= THERE).collect();
    let agreed = match there.as_slice() {
        [] if well.is_empty() => {
            vec![Check::Configuration.ok("no client has been here within 30 days")]
        }
        [] => vec![Check::Configuration.ok(well[0].to_string()).means("no client is here now")],
        [one] if one.replaced.is_none() => {
            let means = "all clients that are here agree about the voters";
            vec![Check::Configuration.ok(one.to_string()).means(means)]
        }
        [one] => {
            let means =
                "the voters are being changed, and all clients are in the step of both sets";
            vec![Check::Configuration.warning(one.to_string(), means).mend(gone(&well, one))]
        }
        several => {
            let means = "the voters are being changed: clients are in two steps";
            let mend = "go on until all clients are in one step";
            several
                .iter()
                .map(|entry| Check::Configuration.warning(entry.to_string(), means).mend(mend))
                .collect()
        }
    };
    clashes.chain(agreed).collect()
}

/// Checks that both sets of voters know which firings are done.
// Otherwise clients that leave the old voters do a firing again
// (`in_a_change_of_the_voters_the_doctor_names_what_would_be_forgotten_until_it_is_copied`).
pub(super) async fn jobs(admin: &Admin) -> Finding {
    let forgotten = async {
        let mut forgotten = Vec::new();
        for name in admin.jobs().await? {
            if !admin.look(LockKind::Once, &name).await?.is_done_stored() {
                forgotten.push(name);
            }
        }
        Ok::<_, Error>(forgotten)
    };
    let means = "clients with the new voters alone may do a firing again";
    match forgotten.await {
        Ok(names) if names.is_empty() => Check::Jobs.ok("both sets know which firings are done"),
        Ok(names) => {
            let (jobs, few) = (counted(names.len(), "job"), names[..names.len().min(3)].join(", "));
            let seen = format!("one set does not know which firing is done of {jobs}: {few}");
            let mend = "run quorate copy-once before clients get the new voters alone";
            Check::Jobs.error(seen, means).mend(mend)
        }
        Err(error) => {
            let seen = format!("which firings are done cannot be seen: {error}");
            let mend = "if a client uses `once`, give the user +scan, and look again";
            Check::Jobs.warning(seen, means).mend(mend)
        }
    }
}

/// When clients may get the new voters alone.
fn gone(all: &[&ConfigurationEntry], joint: &ConfigurationEntry) -> String {
    // A longest lease after the last client of the old voters: until then a hold of that client may
    // last, which no new voter knows of.
    let is_before = |entry: &&&ConfigurationEntry| entry.number < joint.number;
    let last = all.iter().filter(is_before).map(|entry| entry.seen).min();
    let wait = last.map(|seen| (joint.longest_lease + THERE).saturating_sub(seen));
    match wait.filter(|wait| !wait.is_zero()) {
        Some(wait) => format!("wait {} more before clients get the new voters alone", Short(wait)),
        None => "clients may get the new voters alone now".into(),
    }
}

fn connection(voter: &VoterSurvey, longest_lease: Duration) -> Vec<Finding> {
    let status = &voter.status;
    if let Err(cause) = &status.connection {
        return vec![unreachable(cause)];
    }
    if let Some(why) = &status.refuses {
        let means = "it takes no new votes; what is held is renewed and released";
        let mend = "OOM: raise maxmemory; NOREPLICAS: bring its replicas back; MISCONF: see its \
                    disk; NOPERM: give the user its rights";
        return vec![Check::Connection.error(why, means).mend(mend)];
    }
    if let Some(quarantined) = &status.quarantine {
        let means = "it may have forgotten votes, and does not count for new locks until then";
        let mend = if quarantined.why == Quarantine::Copied {
            "wait; start each voter with a folder of its own, never with a copy of another's".into()
        } else {
            format!(
                "wait; where this comes again, see whether the server restarts, is emptied, or has \
                 its clock set (each costs {})",
                Short(longest_lease)
            )
        };
        return vec![Check::Connection.warning(quarantined.to_string(), means).mend(mend)];
    }
    let silent = voter.servers.iter().filter_map(|report| {
        let seen = format!("{}: {}", report.server, report.info.as_ref().err()?);
        let means = "it votes, and could not be examined";
        Some(Check::Connection.warning(seen, means).mend("try again"))
    });
    silent.chain([Check::Connection.ok("connected, and takes new votes")]).collect()
}

/// The finding about a voter that does not answer.
pub(super) fn unreachable(cause: &Cause) -> Finding {
    let (check, mend) = match cause {
        Cause::Duplicate(_) => (Check::Distinct, "name each server once"),
        _ => (
            Check::Connection,
            "start the server, or open the way to it; see whether address, port, user and password \
             are right",
        ),
    };
    let mend = login_to_set(cause).unwrap_or(mend);
    check.error(cause.to_string(), "it has no vote").mend(mend)
}

fn version(info: &ServerInfo) -> Finding {
    let ServerInfo { software, version, .. } = info;
    let seen = format!("{software} {version}");
    let mut numbers = version.split('.').map_while(|number| number.parse::<u64>().ok());
    let numbers = [(); 2].map(|()| numbers.next().unwrap_or_default());
    if *software == "redis" && numbers < OLDEST {
        let means = "it does not know SET with GET, which every lock needs";
        return Check::Version.error(seen, means).mend("upgrade to Redis 7");
    }
    Check::Version.ok(seen)
}

fn eviction(info: &ServerInfo) -> Finding {
    let ServerInfo { eviction_policy: policy, memory_limit, memory_used, .. } = info;
    let seen = match memory_limit {
        Some(limit) => format!("maxmemory-policy {policy}, {memory_used} of {limit} bytes used"),
        None => format!("maxmemory-policy {policy}, no maxmemory"),
    };
    let mend = "CONFIG SET maxmemory-policy noeviction, and in its configuration file";
    let is_nearly_full = memory_limit
        .is_some_and(|limit| memory_used.saturating_mul(100) > limit.saturating_mul(NEARLY_FULL));
    match (policy.as_str(), memory_limit) {
        ("noeviction", _) if is_nearly_full => Check::Eviction
            .warning(seen, "when it is full it takes no new votes")
            .mend("raise maxmemory, or lower fence_memory"),
        ("noeviction", _) => Check::Eviction.ok(seen),
        (_, Some(_)) => {
            let means = "when its memory is full it deletes votes, and two can hold a lock: \
                         clients refuse it unless allow_eviction is set";
            Check::Eviction.error(seen, means).mend(mend)
        }
        (_, None) => {
            let means = "as soon as somebody sets maxmemory it may delete votes";
            Check::Eviction.warning(seen, means).mend(mend)
        }
    }
}

fn persistence(persistence: &Persistence, longest_lease: Duration) -> Finding {
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
    // A server reads its file as the user `default` when it starts, and drops the transactions that
    // this user may not run: every vote that a script writes by two commands.
    if *appendonly && persistence.default_user_may_write == Some(false) {
        let seen = "the user `default` may not run all commands on all keys";
        let means = "servers before Redis 8.4.4 and Valkey 8.1.10 read their file as this user, \
                     and drop votes by a restart: two can hold a lock";
        let mend = "ACL SETUSER default ~* &* +@all (it may stay off), and in the users' file";
        return Check::Persistence.error(seen, means).mend(mend);
    }
    if persistence.is_durable() {
        let means = if persistence.default_user_may_write.is_some() {
            "a restart forgets no vote, and it counts again at once"
        } else {
            "a restart forgets no vote, and it counts again at once, if the user `default` may run \
             all commands (only operators can see that)"
        };
        return Check::Persistence.ok(seen).means(means);
    }
    let lost = match appendfsync.as_deref() {
        Some("everysec") if *appendonly => "a crash may forget what it stored in the last second",
        _ if *appendonly => "a crash may forget what it stored last",
        _ => "a restart forgets its votes, and which firings are done",
    };
    let means = format!(
        "{lost}: after each restart it gives no new locks for {}, and if a majority restarts \
         within that time nobody gets one",
        Short(longest_lease)
    );
    let mend = "set appendonly yes, appendfsync always, no-appendfsync-on-rewrite no and (since \
                Redis 8.4) aof-load-corrupt-tail-max-size 0, or accept it with \
                --ignore persistence";
    Check::Persistence.warning(seen, means).mend(mend)
}

fn replicas(info: &ServerInfo) -> Finding {
    match (info.is_primary, info.replicas) {
        (false, _) => Check::Replicas
            .error("it is a replica", "a replica cannot vote")
            .mend("name its primary, or the sentinels of its service"),
        (true, 0) => Check::Replicas.ok("primary without replicas"),
        (true, count) => Check::Replicas.ok(format!("primary with {count} replicas")).means(
            "a replica that takes over may miss the latest votes, and is in quarantine at first",
        ),
    }
}

/// Checks the setting of a server of a cluster.
fn coverage(needs_all_slots: bool) -> Finding {
    let setting = "cluster-require-full-coverage";
    if !needs_all_slots {
        return Check::Coverage.ok(format!("{setting} no"));
    }
    let means = "one primary that is down takes all voters of the cluster";
    let mend = format!("CONFIG SET {setting} no, and in its configuration file");
    Check::Coverage.warning(format!("{setting} yes"), means).mend(mend)
}

fn rights(info: &ServerInfo) -> Vec<Finding> {
    // Only the rights that locks need are errors. Without the others a client sees less, for
    // example not the settings of the disk.
    let rights = info.missing_rights.iter().map(String::as_str);
    let (optional, needed): (Vec<_>, Vec<_>) = rights.partition(|right| OPTIONAL.contains(right));
    let mut missing = Vec::new();
    if !needed.is_empty() {
        let means = "some locks cannot be acquired, renewed or released on it";
        missing.push((needed, Level::Error, means));
    }
    if !optional.is_empty() {
        let means = if optional.contains(&"+config|get") {
            "whether it forgets votes by a restart cannot be seen: it is taken for one that does"
        } else {
            "locks work; the server's log gets entries"
        };
        missing.push((optional, Level::Warning, means));
    }
    let missing = missing.into_iter().map(|(rights, level, means)| {
        let rights = rights.join(" ");
        let finding = Check::Rights.found(level, format!("the user lacks {rights}"), means);
        finding.mend(format!("ACL SETUSER <user> {rights}"))
    });
    let well = Check::Rights.ok("the user has all rights that locks need");
    or_well(missing.collect(), well)
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
