//! A lock node as `deploy/` has it.

use super::{read_file, settings::Settings};

/// The password of all users of [`lock_node`] but for those that have none.
pub const NODE_PASSWORD: &str = "password";

/// A server by `deploy/redis.conf` with the users of `deploy/users.acl`; where it is, and where its
/// files are, is up to the test.
pub fn lock_node() -> Settings {
    let users: Vec<_> = read_file("deploy/users.acl").lines().map(with_passwords).collect();
    let users: Vec<_> = users.iter().filter_map(|line| line.strip_prefix("user ")).collect();
    // The server goes to this folder as soon as it reads the line.
    let configuration = read_file("deploy/redis.conf");
    let configuration = configuration.lines().filter(|line| !line.starts_with("dir "));
    let configuration = configuration.collect::<Vec<_>>().join("\n");
    // The tests' own servers keep nothing on disk, and are told so where flags win.
    let settings = Settings::new().config(&configuration).flags(&["--appendonly", "yes"]);
    settings.users(&users)
}

/// A line of the users' file in which each `#..-password` is one.
fn with_passwords(line: &str) -> String {
    let word = |word: &str| match word.strip_prefix('#') {
        Some(_) => format!(">{NODE_PASSWORD}"),
        None => word.to_owned(),
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
