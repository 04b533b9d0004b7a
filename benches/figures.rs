//! Writes `benches/results`: runs benches in full, and keeps the tables that they print, a file for
//! each bench. Draws the plots of `docs/plots` from them.
//!
//! `cargo run --release -p quorate-benches --bin figures`, on a quiet machine, for twenty minutes.
//! Arguments name the benches to run instead. `languages` runs only if it is named: it takes ten
//! minutes, and tools that a machine may not have.
//! The tree must be clean, so that the commit that is named with the figures is what was measured.
//!
//! `.. --bin figures plots` measures nothing: it draws the plots once more.

use std::{
    env,
    fmt::Display,
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, ExitCode, Stdio},
    thread,
};

use quorate_benches::{
    plots,
    results::{package, page},
};
use quorate_support::{ROOT, RedisServer};

const BENCHES: [&str; 12] = [
    "uncontended",
    "handoff",
    "crowd",
    "waiters",
    "holds",
    "far",
    "rw",
    "scripts",
    "capacity",
    "observed",
    "kinds",
    "peers",
];
/// Runs only if it is named.
const NAMED: &str = "languages";
const RESULTS: &str = "benches/results";
const PLOTS: &str = "docs/plots";

fn main() -> ExitCode {
    let written = match &env::args().skip(1).collect::<Vec<_>>()[..] {
        [] => write_all(&BENCHES),
        [plots] if plots == "plots" => draw_plots(),
        named => {
            let is_bench = |name: &&String| BENCHES.contains(&&***name) || *name == NAMED;
            match named.iter().find(|name| !is_bench(name)) {
                Some(other) => Err(format!("{other}: neither `plots` nor a bench")),
                None => write_all(&named.iter().map(String::as_str).collect::<Vec<_>>()),
            }
        }
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            eprintln!("figures: {complaint}");
            ExitCode::FAILURE
        }
    }
}

fn write_all(benches: &[&str]) -> Result<(), String> {
    let commit = clean_commit()?;
    let setting = format!("at commit `{commit}`, on {} with {}", machine(), server()?);
    let pages: Result<Vec<_>, String> =
        benches.iter().map(|bench| Ok((bench, page(bench, &setting, &run(bench)?)?))).collect();
    let pages = pages?;
    if clean_commit()? != commit {
        return Err("another commit was checked out meanwhile; nothing is written".to_owned());
    }
    for (bench, page) in pages {
        fs::write(Path::new(ROOT).join(RESULTS).join(format!("{bench}.md")), page)
            .map_err(message)?;
    }
    draw_plots()?;
    println!("\nthe figures of {commit} are in {RESULTS}, their plots in {PLOTS}");
    Ok(())
}

fn draw_plots() -> Result<(), String> {
    let read = |bench: &str| {
        let path = Path::new(ROOT).join(RESULTS).join(format!("{bench}.md"));
        fs::read_to_string(path).map_err(message)
    };
    for (file, svg) in plots::draw(read)? {
        fs::write(Path::new(ROOT).join(PLOTS).join(file), svg).map_err(message)?;
    }
    Ok(())
}

fn clean_commit() -> Result<String, String> {
    let changes = git(&["status", "--porcelain"])?;
    if !changes.is_empty() {
        return Err(format!("figures are of a commit; commit or stash first:\n{changes}"));
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(arguments).current_dir(ROOT).output().map_err(message)?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

fn message(cause: impl Display) -> String {
    cause.to_string()
}

fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = named.map_or(env::consts::ARCH, |(_, model)| model.trim());
    format!("{cores} cores ({model})")
}

fn server() -> Result<String, String> {
    let server = RedisServer::start();
    let version = |name| server.info(&["INFO", "server"], name);
    let valkey = version("valkey_version").map(|version| format!("Valkey {version}"));
    valkey.or_else(|_| version("redis_version").map(|version| format!("Redis {version}")))
}

/// Runs a bench in full, and returns what it printed; the user sees it as well.
fn run(bench: &str) -> Result<String, String> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["bench", "--locked", "-p", package(bench), "--bench", bench]);
    cargo
        .env_remove("QUORATE_BENCH_ROUNDS")
        .env_remove("QUORATE_PEERS")
        .current_dir(ROOT)
        .stdout(Stdio::piped());
    let mut child = cargo.spawn().map_err(message)?;
    let mut output = String::new();
    for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
        let line = line.map_err(message)?;
        println!("{line}");
        output += &(line + "\n");
    }
    let status = child.wait().map_err(message)?;
    if status.success() { Ok(output) } else { Err(format!("{bench} failed; nothing is written")) }
}
