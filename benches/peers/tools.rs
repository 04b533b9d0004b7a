//! Builds the programs in other languages with the tools that are installed here.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use quorate_support::ROOT;

use crate::program::Program;

/// Allows Maven and Go to download what the programs need, also in a short run.
const DOWNLOAD: &str = "QUORATE_PEERS_DOWNLOAD";
const NOT_DOWNLOADED: &str =
    "what it needs is not downloaded; `tests/run full benches` downloads it";

/// A program that is built and can be started.
#[derive(Clone, Debug)]
pub struct Tool {
    program: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
}

impl Tool {
    /// This very program, which speaks the same language where it gets this argument.
    pub fn own(argument: &str) -> Self {
        let program = env::current_exe().expect("it has a path");
        Self { program, arguments: vec![argument.to_owned()], log: output().join("own.log") }
    }

    /// Redisson, by Maven and a JDK.
    ///
    /// # Errors
    ///
    /// What is not installed, or why it could not be built.
    pub fn redisson(download: bool) -> Result<Self, String> {
        let java = has("java", "-version").ok_or("Java is not installed here")?;
        has("mvn", "-version").ok_or("Maven is not installed here")?;
        let (output, source) = (output(), Path::new(ROOT).join("benches/peers/java/pom.xml"));
        let folder = output.join("java");
        let mut maven = Command::new("mvn");
        maven.args(["-B", "-q", "-Dstyle.color=never", "-f"]).arg(source);
        maven.arg(format!("-Doutput={}", folder.display())).arg("compile");
        maven.args((!download).then_some("-o"));
        built("Maven", maven.output(), "COMPILATION ERROR", "offline mode")?;
        let classes = format!("{0}/classes:{0}/jars/*", folder.display());
        let arguments = ["-cp", &classes, "peers.Main"].map(str::to_owned).into();
        Ok(Self { program: java, arguments, log: output.join("java.log") })
    }

    /// `redsync`, or the client of `etcd`, by Go.
    ///
    /// # Errors
    ///
    /// What is not installed, or why it could not be built.
    pub fn go(library: &str, download: bool) -> Result<Self, String> {
        let program = by_go("go", ".", "peers", download)?;
        let log = output().join(format!("{library}.log"));
        Ok(Self { program, arguments: vec![library.to_owned()], log })
    }

    /// What its package for Node or Python takes from `quorate agent`: `node`, or `asyncio` or
    /// `threads` of Python.
    ///
    /// # Errors
    ///
    /// What is not installed, or that the program `quorate` could not be built.
    pub fn agent(client: &str) -> Result<Self, String> {
        let (language, script) =
            if client == "node" { ("node", "load.mjs") } else { ("python3", "load.py") };
        let interpreter = has(language, "--version");
        let interpreter = interpreter.ok_or_else(|| format!("{language} is not installed here"))?;
        let script = format!("{ROOT}/benches/peers/agent/{script}");
        let how = (client != "node").then(|| client.to_owned());
        let quorate = quorate()?.display().to_string();
        let arguments = [script].into_iter().chain(how).chain([quorate]).collect();
        Ok(Self { program: interpreter, arguments, log: output().join(format!("{client}.log")) })
    }

    /// Starts it.
    ///
    /// # Errors
    ///
    /// Why it does not run.
    pub fn start(&self) -> Result<Program, String> {
        Program::start(Command::new(&self.program).args(&self.arguments), self.log.clone())
    }
}

/// Whether a run that is as long as this may use the network.
pub fn may_download(is_long: bool) -> bool {
    is_long || env::var_os(DOWNLOAD).is_some()
}

/// The server of etcd: the one that is installed, or else one that Go builds.
///
/// # Errors
///
/// That neither is installed, or why it could not be built.
pub fn etcd(download: bool) -> Result<PathBuf, String> {
    match has("etcd", "--version") {
        Some(installed) => Ok(installed),
        None => by_go("etcd", "go.etcd.io/etcd/server/v3", "etcd", download),
    }
}

/// The program `quorate`: the one that `QUORATE_PROGRAM` names, or else one built as this is.
fn quorate() -> Result<PathBuf, String> {
    if let Some(program) = env::var_os("QUORATE_PROGRAM") {
        return Ok(program.into());
    }
    let folder = output().parent().expect("it is in the folder of a profile").to_owned();
    let profile = folder.file_name().and_then(OsStr::to_str).expect("a profile has a name");
    let profile = if profile == "debug" { "dev" } else { profile };
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--locked", "--package", "quorate", "--features", "cli"]);
    cargo.args(["--bin", "quorate", "--profile", profile]).current_dir(ROOT);
    built("Cargo", cargo.output(), "could not compile", "--offline")?;
    Ok(folder.join("quorate"))
}

/// Builds `package`, which the module in this folder of `benches/peers` has or names.
fn by_go(folder: &str, package: &str, program: &str, download: bool) -> Result<PathBuf, String> {
    let mut go = Command::new(has("go", "version").ok_or("Go is not installed here")?);
    let program = output().join(folder).join(program);
    go.current_dir(Path::new(ROOT).join("benches/peers").join(folder));
    go.args(["build", "-mod=readonly", "-buildvcs=false", "-o"]).arg(&program).arg(package);
    if !download {
        go.envs([("GOPROXY", "off"), ("GOTOOLCHAIN", "local")]);
    }
    built("Go", go.output(), "# peers", "GOPROXY=off")?;
    Ok(program)
}

/// The program, if it can be started.
fn has(program: &str, argument: &str) -> Option<PathBuf> {
    let found = Command::new(program).arg(argument).output();
    found.is_ok_and(|output| output.status.success()).then(|| program.into())
}

/// Our folder among the results of compilation.
fn output() -> PathBuf {
    let program = env::current_exe().expect("it has a path");
    let is_deps = |folder: &&Path| folder.file_name() == Some(OsStr::new("deps"));
    let deps = program.ancestors().find(is_deps).expect("Cargo has compiled it");
    let target = deps.ancestors().nth(2).expect("a profile has a folder");
    let folder = target.join("peers");
    fs::create_dir_all(&folder).expect("it can be written");
    folder
}

/// Our own code must compile. What the rest of a build needs may not be here.
fn built(
    tool: &str,
    output: std::io::Result<Output>,
    ours: &str,
    offline: &str,
) -> Result<(), String> {
    let output = output.map_err(|cause| cause.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(!said.contains(ours), "{tool} cannot compile what is here:\n{said}");
    if said.contains(offline) {
        return Err(NOT_DOWNLOADED.to_owned());
    }
    eprintln!("{said}");
    let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it does not say why");
    // It stands in a cell of a table.
    let first: String = first.replace('|', "/").chars().take(120).collect();
    Err(format!("{tool} could not build it: {first}"))
}
