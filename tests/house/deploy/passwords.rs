//! `deploy/passwords` makes users that a server takes, and nothing works without it.

use quorate_support::ROOT;
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

use super::files::Tree;
use quorate_support::{RedisServer, Settings};

fn run_passwords(folder: &Path) -> Output {
    let script = Path::new(ROOT).join("deploy/passwords");
    Command::new(script).arg(folder).output().expect("it is a script")
}

pub(crate) fn make_passwords(folder: &Path) {
    let output = run_passwords(folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A folder with passwords, and with the users that have them.
struct Made(TempDir);

impl Made {
    fn new() -> Self {
        let made = Self(tempfile::tempdir().unwrap());
        make_passwords(made.0.path());
        made
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    /// The users as they were made, on a server that lets the tests in too.
    fn server(&self) -> RedisServer {
        let users = self.read("users.acl");
        let users: Vec<_> = users.lines().map(|line| line.strip_prefix("user ").unwrap()).collect();
        RedisServer::start_as(&Settings::new().users(&users))
    }
}

fn lets_in(server: &RedisServer, user: &str, password: &str) -> bool {
    let replies = server.anonymous(&[&["AUTH", user, password]]).unwrap();
    replies[0].is_ok()
}

#[test]
fn each_password_lets_its_user_in_and_no_other() {
    let made = Made::new();
    let server = made.server();
    let users = ["quorate", "operator", "exporter"];
    for user in users {
        for other in users {
            let password = made.read(&format!("{other}.password"));
            assert_eq!(password.len(), 48, "{password:?}");
            assert_eq!(lets_in(&server, user, &password), user == other, "{user} as {other}");
        }
    }
    assert!(!lets_in(&server, "default", ""));
    for name in ["quorate.password", "users.acl"] {
        let mode = fs::metadata(made.0.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others can read {name}");
    }
}

#[test]
fn the_password_before_is_valid_until_it_is_taken_out() {
    let made = Made::new();
    let before = made.read("quorate.password");
    make_passwords(made.0.path());
    assert_eq!(made.read("quorate.password"), before, "a password that is there stays");
    let (password, previous) = ("quorate.password", "quorate.previous");
    fs::rename(made.0.path().join(password), made.0.path().join(previous)).unwrap();
    make_passwords(made.0.path());
    let after = made.read(password);
    assert_ne!(after, before);
    let server = made.server();
    assert!(lets_in(&server, "quorate", &before) && lets_in(&server, "quorate", &after));
    fs::remove_file(made.0.path().join(previous)).unwrap();
    make_passwords(made.0.path());
    let server = made.server();
    assert!(!lets_in(&server, "quorate", &before) && lets_in(&server, "quorate", &after));
}

// What would be another password in an address, or none.
#[test]
fn a_password_that_would_not_be_understood_everywhere_is_refused() {
    for password in ["", "a b", "a@b", "a/b", "a\nb", "a%b"] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("quorate.previous"), password).unwrap();
        let output = run_passwords(dir.path());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("quorate.previous"), "{password:?}");
        assert!(!dir.path().join("users.acl").exists(), "{password:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("quorate.password"), "my.own_password-1\n").unwrap();
    make_passwords(dir.path());
}

// Whoever forgets the passwords has nodes that do not start, not nodes with a known password.
#[test]
fn no_server_starts_with_the_users_as_they_are_in_the_repository() {
    let dir = tempfile::tempdir().unwrap();
    let users = dir.path().join("users.acl");
    fs::write(&users, Tree::default().text("deploy/users.acl")).unwrap();
    let mut server = Command::new("redis-server");
    server.args(["--port", "0", "--unixsocket", "socket", "--aclfile"]).arg(&users);
    let output = server.current_dir(dir.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success(), "{said}");
    for line in ["users.acl:3", "users.acl:4", "users.acl:5"] {
        assert!(said.contains(line), "{line}: {said}");
    }
}
