//! Many locks that one client keeps, ours beside Redisson's watchdog.

use std::time::Duration;

use quorate_benches::{
    common,
    report::{Length, Report},
};
use quorate_peers::{
    holds::{self, Kept, Plan},
    tools::Tool,
    usage::used_by,
};
use quorate_support::RedisServer;

use crate::side::{SERVE, may_download};

const SERVERS: f64 = 3.0;

/// What a side came to.
#[derive(Debug)]
struct Cost {
    kept: Kept,
    /// Processor time, in percent of a core each.
    servers: f64,
}

/// Returns how many of ours failed or were lost.
pub(crate) fn compare(report: &mut Report, length: Length) -> u32 {
    report.table([
        "locks kept over three servers",
        "client, % of a core: quorate",
        "Redisson",
        "servers, % of a core each",
        "KiB each in the client",
        "lost",
        "seconds to take all",
    ]);
    let mut failures = 0;
    for &count in length.pick(&[1_000, 10_000, 50_000][..], &[50]) {
        let plan = Plan {
            count,
            settle: Duration::from_millis(length.pick(11_000, 100)),
            window: Duration::from_millis(length.pick(20_000, 100)),
        };
        let (ours, theirs) = in_turns(length, plan);
        let Cost { kept, servers } = ours.as_ref().expect("ours runs");
        failures += kept.failed + kept.lost;
        report.bar(&format!("lost_{count}"), f64::from(kept.lost), 0.0);
        if let Ok(theirs) = &theirs {
            let mut bar = |what: &str, ours: f64, theirs: f64| {
                report.bar(&format!("{what}_redisson_{count}"), ours / theirs, 1.0);
            };
            // So short a window may show none at all.
            if length == Length::Long {
                bar("client", kept.percent, theirs.kept.percent);
                bar("servers", *servers, theirs.servers);
                bar("memory", kept.bytes_each, theirs.kept.bytes_each);
            }
        }
        let both = [&ours, &theirs];
        report.row([
            count.to_string(),
            format!("{:.2}", kept.percent),
            theirs.as_ref().map_or_else(Clone::clone, |cost| format!("{:.2}", cost.kept.percent)),
            each(both, |cost| cost.servers, 2),
            each(both, |cost| cost.kept.bytes_each / 1024.0, 2),
            each(both, |cost| f64::from(cost.kept.lost), 0),
            each(both, |cost| cost.kept.seconds_to_take, 1),
        ]);
    }
    failures
}

/// Each alone on the machine: beside the other, what it does costs up to twice as much.
fn in_turns(length: Length, plan: Plan) -> (Result<Cost, String>, Result<Cost, String>) {
    let ours = on_own_servers(plan, |urls, at_window| {
        holds::keep(&mut Tool::own(SERVE).start()?, urls, plan, at_window)
    });
    let theirs = on_own_servers(plan, |urls, at_window| {
        holds::redisson(urls, plan, may_download(length), at_window)
    });
    (ours, theirs)
}

fn on_own_servers(
    plan: Plan,
    keep: impl FnOnce(&[String], &mut dyn FnMut()) -> Result<Kept, String>,
) -> Result<Cost, String> {
    let servers = common::servers(3);
    let urls: Vec<String> = servers.iter().map(RedisServer::url).collect();
    let mut used = Vec::new();
    let kept = keep(&urls, &mut || used.push(used_by(&servers)))?;
    let [before, after] = used[..] else { panic!("a window begins and ends: {used:?}") };
    let used = after.saturating_sub(before).as_secs_f64() / plan.window.as_secs_f64();
    Ok(Cost { kept, servers: used / SERVERS * 100.0 })
}

fn each(both: [&Result<Cost, String>; 2], of: impl Fn(&Cost) -> f64, decimals: usize) -> String {
    let text = |cost: &Result<Cost, String>| match cost {
        Ok(cost) => format!("{:.decimals$}", of(cost)),
        Err(_) => "-".to_owned(),
    };
    both.map(text).join(" / ")
}
