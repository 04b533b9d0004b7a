//! Writes the figures of README and docs: runs every bench once, in full, and puts the tables that
//! they print between the markers `<!-- figures: BENCH -->` and `<!-- end -->`.
//!
//! `cargo run --release -p quorate-benches --bin figures`, on a quiet machine, for twenty minutes.
//! Arguments name the benches to run instead. `languages` runs only if it is named: it takes ten
//! minutes, and tools that a machine may not have.
//! The tree must be clean, so that the commit that is named with the figures is what was measured.
//!
//! It also draws the plots of the page on performance, in `docs/plots`.
//!
//! `.. --bin figures digest` measures nothing: it draws the plots and writes the figures of the
//! README once more, from the tables of the page on performance.

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
    page::{DIGEST, begin, block, digest, package, with_block},
    plots,
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
const PAGES: [&str; 2] = ["docs/operations.md", PERFORMANCE];
const PERFORMANCE: &str = "docs/performance.md";
const PLOTS: &str = "docs/plots";
const README: &str = "README.md";

fn main() -> ExitCode {
    let written = match &env::args().skip(1).collect::<Vec<_>>()[..] {
        [] => write_all(&BENCHES),
        [digest] if digest == "digest" => write_digest()
            .map(|()| format!("the figures of {PERFORMANCE} are in {README} and {PLOTS}")),
        named => {
            let is_bench = |name: &&String| BENCHES.contains(&&***name) || *name == NAMED;
            match named.iter().find(|name| !is_bench(name)) {
                Some(other) => Err(format!("{other}: neither `digest` nor a bench")),
                None => write_all(&named.iter().map(String::as_str).collect::<Vec<_>>()),
            }
        }
    };
    match written {
        Ok(written) => {
            println!("{written}");
            ExitCode::SUCCESS
        }
        Err(complaint) => {
            eprintln!("figures: {complaint}");
            ExitCode::FAILURE
        }
    }
}

fn write_all(benches: &[&str]) -> Result<String, String> {
    let commit = write_figures(benches)?;
    write_digest()?;
    Ok(format!("\nthe figures of {commit} are in {README}, {PLOTS}, {}", PAGES.join(", ")))
}

/// Returns the commit that was measured.
fn write_figures(benches: &[&str]) -> Result<String, String> {
    let commit = clean_commit()?;
    let mut pages = Vec::new();
    for name in PAGES {
        let path = Path::new(ROOT).join(name);
        pages.push((fs::read_to_string(&path).map_err(message)?, path));
    }
    // Before the benches run: they take minutes.
    for &bench in benches {
        let marked = pages.iter().filter(|(page, _)| with_block(page, bench, "").is_some());
        if marked.count() != 1 {
            return Err(format!("`{}` is not on exactly one of {PAGES:?}", begin(bench)));
        }
    }
    let setting = format!("at commit `{commit}`, on {} with {}", machine(), server()?);
    for &bench in benches {
        let block = block(bench, &setting, &run(bench)?)?;
        for (page, _) in &mut pages {
            *page = with_block(page, bench, &block).unwrap_or_else(|| page.clone());
        }
    }
    if clean_commit()? != commit {
        return Err("another commit was checked out meanwhile; nothing is written".to_owned());
    }
    for (page, path) in pages {
        fs::write(path, page).map_err(message)?;
    }
    Ok(commit)
}

/// Writes what the README shows of the figures, and the plots of them.
fn write_digest() -> Result<(), String> {
    let read = |name| fs::read_to_string(Path::new(ROOT).join(name)).map_err(message);
    let page = read(PERFORMANCE)?;
    for (file, svg) in plots::draw(&page)? {
        fs::write(Path::new(ROOT).join(PLOTS).join(file), svg).map_err(message)?;
    }
    let digest = digest(&page).ok_or("the figures of `peers` lack a row")?;
    let readme = with_block(&read(README)?, DIGEST, &digest);
    let readme = readme.ok_or_else(|| format!("`{}` is not in {README}", begin(DIGEST)))?;
    fs::write(Path::new(ROOT).join(README), readme).map_err(message)
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
