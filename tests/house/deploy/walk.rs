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

use quorate::{Address, Credentials};
use quorate_tests::prelude::*;
use tempfile::TempDir;

use super::{lets_in, program, run};

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

/// The blocks of a language, in their order; without those that change the machine, or ask for one
/// that is not there.
fn blocks(language: &str) -> Vec<String> {
    let readme = read_file("deploy/README.md");
    let blocks = readme.split("```").skip(1).step_by(2);
    let blocks = blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    let left_out = ["apt-get ", "systemctl ", "kubectl ", "docker "];
    let blocks = blocks.filter(|block| !left_out.iter().any(|word| block.contains(word)));
    blocks.map(str::to_owned).collect()
}

/// The folder of the one who goes the steps, with a folder for each host in it.
struct Walk {
    nodes: Vec<RedisServer>,
    dir: TempDir,
}

impl Walk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let deploy = Path::new(ROOT).join("deploy");
        let copied = Command::new("cp").arg("-r").arg(deploy).arg(dir.path()).status().unwrap();
        assert!(copied.success());
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
        run(block, self.dir.path(), self.dir.path())
    }

    /// On each host, where the address is its own.
    fn on_each(&self, block: &str) {
        for host in HOSTS {
            let folder = self.host(host);
            let etc = format!(" {}/etc/", folder.display());
            let block = block.replace("address=10.0.0.1", &format!("address={host}"));
            let block = block.replace(" /etc/", &etc).replace("-g redis ", "");
            run(&block, &folder, self.dir.path());
        }
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
        self.nodes.iter().all(|node| lets_in(node, "quorate", password))
    }

    fn password(&self) -> String {
        fs::read_to_string(self.dir.path().join("secrets/quorate.password")).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_steps_for_three_hosts_lead_to_a_lock_and_to_another_password() {
    let mut walk = Walk::new();
    let steps = blocks("sh");
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

    let before = walk.password();
    walk.here(change);
    let after = walk.password();
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
    let password = walk.password();
    let ports: Vec<_> = walk.nodes.iter().map(RedisServer::port).collect();
    let hosts = [ports[0], ports[1], ports[2]].map(|port| format!("127.0.0.1:{port}"));
    let login = Credentials::new("quorate", password);
    let voters = hosts.map(|host| Address::new(host).credentials(login.clone()));
    let quorum = Quorate::connect(voters).await?;
    let guard = quorum.mutex("first").lock().await?;
    println!("held with {} of 3 votes", guard.votes());
    guard.release().await?;
    Ok(())
}

#[test]
fn the_code_of_the_readme_is_what_is_run_here() {
    let code = blocks("rust").pop().expect("there is one");
    // The first lines are for the password and the addresses.
    let code: Vec<_> = code.lines().skip(2).map(|line| format!("    {line}\n")).collect();
    let code = code.concat();
    assert!(read_file("tests/house/deploy/walk.rs").contains(&code), "{code}");
}
