//! What a lock costs beside libraries of other languages: Redisson in Java, redsync in Go, and the
//! lock of etcd by its client in Go. And what it costs from other languages, by `quorate agent`.
//!
//! `cargo bench -p quorate-peers --bench languages`, about ten minutes, on Linux. It starts its
//! own servers. Each side, ours too, is a program of its own that does what it is asked for, with
//! the default settings of its library; `program.rs` has the requests. All have the same servers,
//! in turns. What is not installed here, or cannot be built, has rows that say so. Maven and Go
//! download what the programs need, if they have not done so before. Where etcd is not installed,
//! Go builds it.
//!
//! `QUORATE_BENCH_ROUNDS` sets how often each has its turn (default 3; half as often where all want
//! one lock), `QUORATE_LANGUAGES=cells,holds` restricts it to these tables: `cells`, `agent`,
//! `etcd`, `handoff`, `crowd`, `holds`.
//!
//! The tables have medians. A bar is the ratio of ours to theirs; of rates it is how many times as
//! slow. Redisson has its lock on one server, and its RedLock on several.

mod agent;
mod etcd;
mod load;
mod one_lock;
mod own_locks;
mod serve;
mod side;
mod watchdog;

use std::{
    env,
    path::Path,
    process::{Command, ExitCode},
    rc::Rc,
};

use quorate_benches::{
    common,
    report::{self, Length, Promised, Report},
};
use quorate_peers::tools;
use quorate_support::{RedisServer, Settings};

use etcd::Members;
use side::{SERVE, Servers, Side, may_download};

/// The others are there where the tools are.
const BARS: Promised = Promised::always(&["failures"]);
/// Every write is on disk before the answer.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

fn main() -> ExitCode {
    if env::args().nth(1).as_deref() == Some(SERVE) {
        serve::serve();
        return ExitCode::SUCCESS;
    }
    report::run(BARS, measure)
}

fn measure(length: Length) -> Report {
    let mut report = Report::default();
    let only = env::var("QUORATE_LANGUAGES").unwrap_or_default();
    let wants = |table: &str| only.is_empty() || only.split(',').any(|one| one == table);
    let mut failures = 0;
    if ["cells", "handoff", "crowd"].into_iter().any(wants) {
        failures += beside_redis_libraries(&mut report, length, wants);
    }
    if wants("agent") {
        failures += agent::compare(&mut report, length);
    }
    if wants("etcd") {
        let (etcd, mut sides) = with_etcd(length);
        failures += own_locks::beside_etcd(&mut report, length, &etcd, &mut sides);
    }
    if wants("holds") {
        failures += watchdog::compare(&mut report, length);
    }
    report.bar("failures", f64::from(failures), 0.0);
    report
}

fn beside_redis_libraries(
    report: &mut Report,
    length: Length,
    wants: impl Fn(&str) -> bool,
) -> u32 {
    let mut failures = 0;
    let mut sides = [Side::ours(length), Side::redisson(length), Side::go("redsync", length)];
    warm_up(&mut sides, length);
    if wants("cells") {
        failures += own_locks::compare(report, length, &mut sides);
    }
    connect(&mut sides, &Servers::Redis(common::servers(3).into()));
    if wants("handoff") {
        failures += one_lock::handoff(report, length, &mut sides);
    }
    if wants("crowd") {
        failures += one_lock::crowd(report, length, &mut sides);
    }
    failures
}

/// A virtual machine compiles what it runs often.
fn warm_up(sides: &mut [Side], length: Length) {
    let servers = Servers::Redis(common::servers(3).into());
    connect(sides, &servers);
    for side in sides {
        let _ = side.turn(&format!("cycles 64 {}", length.pick(4000, 100)));
    }
}

fn connect(sides: &mut [Side], servers: &Servers) {
    for side in sides {
        side.connect(servers);
    }
}

/// Ours and etcd, each over three servers of its own that write to disk, and what etcd's are.
fn with_etcd(length: Length) -> (String, [Side; 2]) {
    let servers = RedisServer::start_many(&Settings::new().flags(&DURABLE), 3);
    let mut ours = Side::ours(length);
    ours.connect(&Servers::Redis(servers.into()));
    match tools::etcd(may_download(length)) {
        Ok(program) => {
            let mut theirs = Side::go("etcd", length);
            theirs.connect(&Servers::Etcd(Rc::new(Members::start(&program, 3))));
            (version(&program), [ours, theirs])
        }
        Err(why) => ("etcd".to_owned(), [ours, Side::missing("etcd", length, why)]),
    }
}

fn version(etcd: &Path) -> String {
    let output = Command::new(etcd).arg("--version").output().expect("it was found");
    let said = String::from_utf8_lossy(&output.stdout);
    let first = said.lines().next().and_then(|line| line.split(": ").nth(1));
    format!("etcd {}", first.expect("it says its version"))
}
