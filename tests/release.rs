//! What a release offers, made by the scripts of `deploy/release` and tried as its users try it.
//!
//! `tests/run full release` installs the tools first, and leaves out by their first words the tests
//! whose tools cannot be had. Building the program takes minutes.

#![cfg(target_os = "linux")]

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use quorate_support::{ROOT, RedisServer, Settings};
use rustix::process::geteuid;

/// What it printed. It has to end well.
#[track_caller]
fn output(command: &mut Command) -> String {
    output_in(Path::new(ROOT), command)
}

#[track_caller]
fn output_in(folder: &Path, command: &mut Command) -> String {
    let program = command.get_program().to_owned();
    let output = command.current_dir(folder).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{}: {error}; `tests/run full release` installs it", program.display())
    });
    let (said, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{said}{errors}");
    said.into_owned()
}

fn script(name: &str) -> Command {
    Command::new(Path::new(ROOT).join("deploy/release").join(name))
}

/// A shell that may mount, give files away and change its root.
fn root_shell(script: &str) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--pid", "--fork"]);
    if !geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    unshare.args(["--", "sh", "-euc", script, "sh"]);
    unshare
}

/// The folder of the packages, which are built once.
fn packages() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let own = env::current_exe().expect("a test has a path");
        let folder = own.ancestors().nth(3).expect("it is in a folder of the target").join("files");
        let _ = fs::remove_dir_all(&folder);
        let target = format!("{}-unknown-linux-musl", env::consts::ARCH);
        output(script("program").arg(target).arg(&folder));
        folder
    })
}

fn package(end: &str) -> PathBuf {
    let files = fs::read_dir(packages()).expect("it is there").map(|file| file.unwrap().path());
    let mut files = files.filter(|path| path.to_string_lossy().ends_with(end));
    let (file, other) = (files.next().expect("it was made"), files.next());
    assert_eq!(other, None);
    file
}

/// A system on which nothing is but the package.
fn bare_system() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "proc", "dev", "etc", "tmp"] {
        fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    for file in ["var/lib/dpkg/status", "dev/null"] {
        fs::write(root.path().join(file), "").unwrap();
    }
    symlink("/proc/self/fd", root.path().join("dev/fd")).unwrap();
    dpkg(root.path(), "--install", &package(".deb"));
    root
}

fn dpkg(root: &Path, what: &str, package: &Path) {
    let script = "dpkg --root=\"$1\" --log=/dev/null \"$2\" \"$3\"";
    output(root_shell(script).arg(root).arg(what).arg(package));
}

fn files(under: &Path) -> Vec<String> {
    let found =
        output(Command::new("find").arg(under).args(["!", "-type", "d", "-printf", "%P\n"]));
    found.lines().map(str::to_owned).collect()
}

#[test]
fn packages_bring_program_pages_completions_and_examples_and_leave_nothing() {
    let root = bare_system();
    let installed = files(&root.path().join("usr"));
    for wanted in [
        "bin/quorate",
        "share/man/man1/quorate.1.gz",
        "share/man/man1/quorate-run.1.gz",
        "share/bash-completion/completions/quorate",
        "share/zsh/vendor-completions/_quorate",
        "share/fish/vendor_completions.d/quorate.fish",
        "share/doc/quorate/copyright",
        "share/doc/quorate/licences.gz",
        "share/doc/quorate/examples/jobs/nightly-report.service",
        "share/doc/quorate/examples/systemd/quorate-node.service",
    ] {
        assert!(installed.iter().any(|file| file == wanted), "{wanted}: {installed:?}");
    }
    dpkg(root.path(), "--purge", Path::new("quorate"));
    assert!(!root.path().join("usr").exists());
    // The other package has the same, but for a folder that Debian calls otherwise.
    let listed = output(Command::new("tar").arg("-tzf").arg(package(".tar.gz")));
    let listed = listed.lines().filter(|path| !path.ends_with('/'));
    let listed = listed.map(|path| path.split_once('/').expect("they are in one folder").1);
    let mut listed: Vec<_> =
        listed.map(|path| path.replace("zsh/site-functions", "zsh/vendor-completions")).collect();
    let mut installed = installed;
    listed.sort();
    installed.sort();
    assert_eq!(listed, installed);
}

// No C library, no dynamic linker, no shell; the servers' names are known by a file alone.
#[test]
fn packages_are_enough_for_a_lock_on_a_system_with_nothing_else() {
    let root = bare_system();
    let servers = RedisServer::start_many(&Settings::new(), 3);
    let names = ["lock-1.test", "lock-2.test", "lock-3.test"];
    fs::write(root.path().join("etc/hosts"), format!("127.0.0.1 {}\n", names.join(" "))).unwrap();
    let urls = servers.iter().zip(names).map(|(server, name)| {
        let url = server.url();
        assert!(url.contains("127.0.0.1"), "{url}");
        url.replace("127.0.0.1", name)
    });
    let voters = urls.collect::<Vec<_>>().join(" ");
    let script = "mount -t proc proc \"$1/proc\"
        mount --bind /dev/null \"$1/dev/null\"
        exec chroot \"$1\" /usr/bin/quorate run a -- /usr/bin/quorate --version";
    let said = output(root_shell(script).arg(root.path()).env("QUORATE_VOTERS", voters));
    assert!(said.starts_with("quorate "), "{said}");
}

// Neither npm nor pip asks a registry.
#[test]
fn packages_for_node_and_python_bring_the_program_with_them() {
    let folder = tempfile::tempdir().unwrap();
    output(Command::new("cp").arg(package(".tar.gz")).arg(folder.path()));
    output(script("clients").arg(folder.path()));
    let made = |begin: &str, end: &str| {
        let mut made = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        let is_it = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(begin) && name.ends_with(end)
        };
        made.find(is_it).unwrap_or_else(|| panic!("{begin}..{end} was not made"))
    };
    let there = folder.path().join("installed");
    let mut npm = Command::new("npm");
    npm.args(["install", "--offline", "--no-audit", "--no-fund", "--prefix"]).arg(&there);
    output(npm.arg(made("quorate-linux-", ".tgz")).arg(made("quorate-0", ".tgz")));
    output(Command::new("python3").args(["-m", "venv"]).arg(&there));
    let mut pip = Command::new(there.join("bin/pip"));
    output(pip.args(["install", "--quiet", "--no-index"]).arg(made("quorate-", ".whl")));

    let node = "import('quorate').then(async ({ connect }) => {
        const quorum = await connect();
        await (await quorum.lock('a')).release();
        await quorum.close();
    })";
    let python = "import quorate
with quorate.connect() as quorum, quorum.lock('a'):
    pass";
    let node = format!("cd {}; exec \"$(command -v node)\" -e \"{node}\"", there.display());
    let python = format!("exec {}/bin/python -c \"{python}\"", there.display());
    let servers = RedisServer::start_many(&Settings::new(), 3);
    let voters = servers.iter().map(RedisServer::url).collect::<Vec<_>>().join(" ");
    for program in [node, python] {
        let mut run = Command::new("sh");
        run.args(["-euc", &program]).env("QUORATE_VOTERS", &voters);
        output(run.env_remove("QUORATE_PROGRAM"));
    }
}

// Nor does this, as the package needs nothing to be built.
#[test]
fn frontends_of_python_build_the_package() {
    let folder = tempfile::tempdir().unwrap();
    let client = folder.path().join("python");
    output(Command::new("cp").args(["-R", "deploy/clients/python"]).arg(&client));
    output(Command::new("pyproject-build").arg("--outdir").arg(folder.path()).arg(&client));
    let wheel = folder.path().join("quorate-0.0.0-py3-none-any.whl");
    let listed = output(Command::new("python3").args(["-m", "zipfile", "-l"]).arg(wheel));
    for file in ["__init__.py", "aio.py", "py.typed"] {
        assert!(listed.contains(&format!("quorate/{file} ")), "{file}: {listed}");
    }
}

#[test]
fn types_of_the_package_for_python_are_those_of_its_page() {
    let mut mypy = Command::new("mypy");
    let folder = tempfile::tempdir().unwrap();
    mypy.args(["--strict", "--cache-dir"]).arg(folder.path()).arg("typed.py");
    output_in(&Path::new(ROOT).join("deploy/clients/python"), &mut mypy);
}

// A program may be without the types of Node itself.
#[test]
fn types_of_the_package_for_node_are_those_of_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("node_modules/quorate");
    fs::create_dir_all(package.parent().unwrap()).unwrap();
    output(Command::new("cp").args(["-R", "deploy/clients/node"]).arg(&package));
    let program = folder.path().join("types.ts");
    fs::rename(package.join("types.ts"), &program).unwrap();
    let mut tsc = Command::new("tsc");
    tsc.args(["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022"]);
    output(tsc.arg(program));
}

#[test]
fn cargo_would_publish_the_package() {
    output(script("crate").args(["publish", "--dry-run", "--all-features"]));
}

#[test]
fn licences_of_dependencies_let_them_be_linked_and_all_come_from_the_registry() {
    output(Command::new("cargo-deny").args(["check", "licenses", "bans", "sources"]));
}

#[test]
fn workflows_are_well_formed() {
    output(&mut Command::new("actionlint"));
}

// By the schemas of the oldest Kubernetes that the files name, and of the newest that the validator
// has.
#[test]
fn kubernetes_knows_every_field_of_the_files() {
    let folder = tempfile::tempdir().unwrap();
    output(Command::new("cp").args(["-R", "deploy"]).arg(folder.path()));
    let deploy = folder.path().join("deploy");
    output(Command::new(deploy.join("passwords")).arg(deploy.join("secrets")));
    let kubectl = Command::new("kubectl").args(["version", "--client"]).output().is_ok();
    let (program, first) = if kubectl { ("kubectl", "kustomize") } else { ("kustomize", "build") };
    let nodes = folder.path().join("nodes.yaml");
    fs::write(&nodes, output(Command::new(program).arg(first).arg(&deploy))).unwrap();
    let jobs = ["cronjob", "leader", "agent"].map(|name| deploy.join(format!("jobs/{name}.yaml")));
    let files = [&[nodes], &jobs[..]].concat();
    for version in [&["--kubernetes-version", "1.31.0"][..], &[]] {
        let mut validate = Command::new("kubernetes-validate");
        output(validate.arg("--strict").args(version).args(&files));
    }
    fs::write(&files[0], "apiVersion: v1\nkind: Service\nspec: {pots: []}\n").unwrap();
    let planted = Command::new("kubernetes-validate").arg("--strict").arg(&files[0]).output();
    assert!(!planted.unwrap().status.success(), "a field that there is not was not found");
}
