//! What a lock costs beside libraries of other languages: Redisson in Java, redsync in Go, and the
//! lock of etcd by its client in Go.
//!
//! `cargo bench -p quorate-peers --bench languages`, about ten minutes, on Linux. It starts its
//! own servers. Each side, ours too, is a program of its own that does what it is asked for, with
//! the default settings of its library; `program.rs` has the requests. All have the same servers,
//! in turns. What is not installed here, or cannot be built, has rows that say so. Maven and Go
//! download what the programs need, if they have not done so before.
//!
//! `QUORATE_BENCH_ROUNDS` sets how often each has its turn (default 3; half as often where all want
//! one lock), `QUORATE_LANGUAGES=cells,holds` restricts it to these tables: `cells`, `etcd`,
//! `handoff`, `crowd`, `holds`.
//!
//! The tables have medians. A bar is the ratio of ours to theirs; of rates it is how many times as
//! slow. Redisson has its lock on one server, and its RedLock on several.

mod etcd;
mod load;
mod one_lock;
mod own_locks;
mod serve;
mod side;
mod watchdog;

use std::{
    env,
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
use side::{SERVE, Servers, Side};

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
    let mut sides = [Side::ours(length), Side::redisson(length), Side::go("redsync", length)];
    let mut failures = 0;
    warm_up(&mut sides, length);
    if wants("cells") {
        failures += own_locks::compare(&mut report, length, &mut sides);
    }
    if wants("etcd") {
        failures += own_locks::beside_etcd(&mut report, length, &mut with_etcd(length));
    }
    connect(&mut sides, &Servers::Redis(common::servers(3).into()));
    if wants("handoff") {
        failures += one_lock::handoff(&mut report, length, &mut sides);
    }
    if wants("crowd") {
        failures += one_lock::crowd(&mut report, length, &mut sides);
    }
    if wants("holds") {
        failures += watchdog::compare(&mut report, length);
    }
    report.bar("failures", f64::from(failures), 0.0);
    report
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

/// Ours and etcd, each over three servers of its own that write to disk.
fn with_etcd(length: Length) -> [Side; 2] {
    let servers = RedisServer::start_many(&Settings::new().flags(&DURABLE), 3);
    let mut ours = Side::ours(length);
    ours.connect(&Servers::Redis(servers.into()));
    let theirs = match tools::etcd() {
        Ok(program) => {
            let mut theirs = Side::go("etcd", length);
            theirs.connect(&Servers::Etcd(Rc::new(Members::start(&program, 3))));
            theirs
        }
        Err(why) => Side::missing("etcd", length, why),
    };
    [ours, theirs]
}

/// The version of the servers of etcd, where they are.
fn etcd_version() -> String {
    let output =
        tools::etcd().ok().and_then(|etcd| Command::new(etcd).arg("--version").output().ok());
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let first = said.as_deref().and_then(|said| said.lines().next()?.split(": ").nth(1));
    first.map_or("etcd".to_owned(), |version| format!("etcd {version}"))
}
