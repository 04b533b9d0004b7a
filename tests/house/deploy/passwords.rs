//! `deploy/passwords` makes users that a server takes, and nothing works without it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use quorate_tests::prelude::*;

use super::{lets_in, server_with};

pub(crate) fn make_passwords(folder: &Path) -> Output {
    let script = Path::new(ROOT).join("deploy/passwords");
    Command::new(script).arg(folder).output().expect("it is a script")
}

#[test]
fn each_password_lets_its_user_in_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    // A file that an editor has ended by a line.
    fs::write(dir.path().join("operator.password"), "my.own_password-1\n").unwrap();
    assert!(make_passwords(dir.path()).status.success());
    let server = server_with(&dir.path().join("users.acl"));
    let users = ["quorate", "operator", "exporter"];
    for user in users {
        for other in users {
            let password =
                fs::read_to_string(dir.path().join(format!("{other}.password"))).unwrap();
            assert!(password.len() == 48 || other == "operator", "{password:?}");
            let is_let_in = lets_in(&server, user, password.trim_end());
            assert_eq!(is_let_in, user == other, "{user} as {other}");
        }
    }
    assert!(!lets_in(&server, "default", ""));
    for name in ["quorate.password", "users.acl"] {
        let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others can read {name}");
    }
}

// What would be another password in an address, or none.
#[test]
fn a_password_that_would_not_be_understood_everywhere_is_refused() {
    for password in ["", "a b", "a@b", "a/b", "a\nb", "a%b"] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("quorate.previous"), password).unwrap();
        let output = make_passwords(dir.path());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("quorate.previous"), "{password:?}");
        assert!(!dir.path().join("users.acl").exists(), "{password:?}");
    }
}

// Whoever forgets the passwords has nodes that do not start, not nodes with a known password.
#[test]
fn no_server_starts_with_the_users_as_they_are_in_the_repository() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("users.acl"), read_file("deploy/users.acl")).unwrap();
    let mut server = Command::new("redis-server");
    server.args(["--port", "0", "--unixsocket", "socket", "--aclfile", "users.acl"]);
    let output = server.current_dir(dir.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success(), "{said}");
    for line in ["users.acl:3", "users.acl:4", "users.acl:5"] {
        assert!(said.contains(line), "{line}: {said}");
    }
}
