//! A network of its own for a test, with name servers that the test is.

use std::{env, io::Write as _, process::Command};

use rustix::process::geteuid;

/// Runs a test of this binary once more, on a network of its own, where names are resolved by this
/// file. True in that process.
pub fn is_in_a_network_of_its_own(test: &str, resolver: &str) -> bool {
    const CHILD: &str = "QUORATE_NETWORK_CHILD";
    if env::var_os(CHILD).is_some() {
        return true;
    }
    let mut file = tempfile::NamedTempFile::new().expect("there is room");
    file.write_all(resolver.as_bytes()).expect("there is room");
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--net"]);
    if !geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    let script = "mount --bind \"$1\" /etc/resolv.conf; ip link set lo up; shift; exec \"$@\"";
    unshare.args(["--", "sh", "-euc", script, "sh"]).arg(file.path());
    unshare.arg(env::current_exe().expect("this binary"));
    unshare.args(["--exact", test, "--nocapture"]);
    let ended = unshare.env(CHILD, "yes").status().expect("unshare starts");
    assert!(ended.success(), "{ended}");
    false
}

/// The answer of a name server: 127.0.0.1, and no address of IPv6.
pub fn answer(question: &[u8]) -> Vec<u8> {
    let name = question[12..].iter().position(|byte| *byte == 0).expect("a name ends") + 13;
    let is_v4 = question[name..name + 2] == [0, 1];
    // An answer without an error, with the one question and the addresses behind it.
    let head = [0x81, 0x80, 0, 1, 0, u8::from(is_v4), 0, 0, 0, 0];
    let mut answer = [&question[..2], &head, &question[12..name + 4]].concat();
    if is_v4 {
        // The name of the question, its type and class, for a minute, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    answer
}
