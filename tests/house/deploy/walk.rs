//! The steps of `deploy/README.md`, run word by word as far as one machine can.
//!
//! Hosts are folders here: `scp` and `ssh` go to them, `redis-cli` to a node that was started by
//! the files that the steps put there. What installs packages and starts services is left out.

use std::{
    error::Error,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use quorate::Quorate;
use tempfile::TempDir;

use super::{containers::program, files::Tree};
use quorate_support::{RedisServer, Settings};

const HOSTS: [&str; 3] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];

const SCP: &str = r#"[ "$1" != -r ] || shift
for to; do :; done
for file; do
    [ "$file" = "$to" ] || cp -r "$file" "HOSTS/${to%:}"
done"#;

const SSH: &str = r#"there=HOSTS/$1
shift
cd "$there"
moved=$(echo "$*" | sed "s,sudo ,,; s,-g redis ,,; s, /etc/, $there/etc/,g")
sh -euc "$moved""#;

/// The blocks of a language, in their order.
fn blocks(language: &str) -> Vec<String> {
    let readme = Tree::default().text("deploy/README.md");
    let fenced = readme.split("```").skip(1).step_by(2).map(str::to_owned);
    let of_it = fenced
        .filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n').map(str::to_owned));
    of_it.collect()
}

/// It changes the machine, or asks for one that is not there.
fn is_left_out(block: &str) -> bool {
    ["apt-get ", "systemctl ", "kubectl ", "docker "].iter().any(|word| block.contains(word))
}

/// The folder of the one who goes the steps, with a folder for each host in it.
struct Walk {
    nodes: Vec<RedisServer>,
    dir: TempDir,
}

impl Walk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy");
        assert!(
            Command::new("cp").args(["-r", deploy]).arg(dir.path()).status().unwrap().success()
        );
        // As in a fresh clone.
        let _ = fs::remove_dir_all(dir.path().join("deploy/secrets"));
        let walk = Self { nodes: Vec::new(), dir };
        for host in HOSTS {
            for folder in ["sysctl.d", "systemd/system"] {
                fs::create_dir_all(walk.host(host).join("etc").join(folder)).unwrap();
            }
        }
        for (name, text) in [("scp", SCP), ("ssh", SSH)] {
            let hosts = walk.host("").display().to_string();
            program(walk.dir.path(), name, &text.replace("HOSTS/", &hosts));
        }
        walk
    }

    fn host(&self, host: &str) -> PathBuf {
        self.dir.path().join("hosts").join(host)
    }

    /// On the machine of the one who goes the steps.
    fn here(&self, block: &str) -> String {
        self.run(self.dir.path(), block)
    }

    /// On each host, where the address is its own.
    fn on_each(&self, block: &str) {
        for host in HOSTS {
            let folder = self.host(host);
            let etc = format!(" {}/etc/", folder.display());
            let block = block.replace("address=10.0.0.1", &format!("address={host}"));
            let block = block.replace(" /etc/", &etc).replace("-g redis ", "");
            self.run(&folder, &block);
        }
    }

    fn run(&self, folder: &Path, block: &str) -> String {
        let path = std::env::var("PATH").expect("there is one");
        let path = format!("{}:{path}", self.dir.path().display());
        let mut shell = Command::new("sh");
        let shell = shell.args(["-euc", block]).current_dir(folder).env("PATH", path);
        let shell = shell.output().unwrap();
        let said = String::from_utf8_lossy(&shell.stderr).into_owned();
        assert!(shell.status.success(), "{block}\n{said}");
        String::from_utf8(shell.stdout).unwrap()
    }

    /// Starts a node on each host by the files that it has.
    fn start(&mut self) {
        let real = self.here("command -v redis-cli");
        let mut cases = String::new();
        for host in HOSTS {
            let etc = self.host(host).join("etc/quorate");
            let text = fs::read_to_string(etc.join("redis.conf")).unwrap();
            assert!(text.contains(&format!("\nbind 127.0.0.1 {host}\n")), "{text}");
            let text: Vec<_> = text.lines().filter(|line| !line.starts_with("dir ")).collect();
            let users = etc.join("users.acl");
            let flags = ["--appendonly", "yes", "--aclfile", users.to_str().unwrap()];
            let settings = Settings::new().config(&text.join("\n")).flags(&flags);
            let node = RedisServer::start_as(&settings);
            let port = node.port();
            writeln!(cases, "{host}) set -- \"$@\" 127.0.0.1 -p {port} ;;").unwrap();
            self.nodes.push(node);
        }
        let words = format!("case $word in\n{cases}*) set -- \"$@\" \"$word\" ;;\nesac");
        let text = format!("for word; do shift\n{words}\ndone\nexec {} \"$@\"", real.trim());
        program(self.dir.path(), "redis-cli", &text);
    }

    fn lets_in(&self, password: &str) -> bool {
        let login = ["AUTH", "quorate", password];
        self.nodes.iter().all(|node| node.anonymous(&[&login]).unwrap()[0].is_ok())
    }

    fn password(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join("secrets").join(name)).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_steps_for_three_hosts_lead_to_a_lock_and_to_another_password() {
    let mut walk = Walk::new();
    let steps: Vec<_> = blocks("sh").into_iter().filter(|block| !is_left_out(block)).collect();
    let [passwords, files, on_each, check, slow, change, bring, load, take_out, kubernetes] =
        &steps[..]
    else {
        panic!("there are other steps than before: {steps:#?}")
    };
    walk.here(passwords);
    walk.here(files);
    walk.on_each(on_each);
    walk.start();
    let shown = blocks("text").pop().expect("it says what is seen");
    assert_eq!(walk.here(check), shown.repeat(3));
    let operate = check.lines().next().expect("it says how to log in");
    walk.here(&format!("{operate}\n{slow}"));
    first_lock(&walk).await.unwrap();

    let before = walk.password("quorate.password");
    walk.here(change);
    let after = walk.password("quorate.password");
    walk.here(bring);
    assert!(walk.lets_in(&before) && !walk.lets_in(&after));
    walk.here(&format!("{operate}\n{load}"));
    assert!(walk.lets_in(&before) && walk.lets_in(&after));
    walk.here(take_out);
    walk.here(bring);
    walk.here(&format!("{operate}\n{load}"));
    assert!(!walk.lets_in(&before) && walk.lets_in(&after));

    walk.here(kubernetes);
    assert!(walk.dir.path().join("deploy/secrets/users.acl").exists());
}

/// The code of the README, with the addresses as they are here.
async fn first_lock(walk: &Walk) -> Result<(), Box<dyn Error>> {
    let password = walk.password("quorate.password");
    let ports: Vec<_> = walk.nodes.iter().map(RedisServer::port).collect();
    let hosts = [ports[0], ports[1], ports[2]].map(|port| format!("127.0.0.1:{port}"));
    let voters = hosts.map(|host| format!("redis://quorate:{password}@{host}"));
    let quorum = Quorate::connect(voters).await?;
    let guard = quorum.mutex("first").lock().await?;
    println!("held with {} of 3 votes", guard.votes());
    guard.release().await?;
    Ok(())
}

#[test]
fn the_code_of_the_readme_is_what_is_run_here() {
    let code = blocks("rust").pop().expect("there is one");
    let mut lines = code.lines();
    let password = "let password = std::fs::read_to_string(\"secrets/quorate.password\")?;";
    assert_eq!(lines.next(), Some(password));
    assert_eq!(lines.next(), Some(&*format!("let hosts = {HOSTS:?};")));
    let rest = lines.map(|line| format!("    {line}\n")).collect::<Vec<_>>().concat();
    assert!(include_str!("walk.rs").contains(&rest), "{rest}");
}
