//! The rights that clients need.

use std::sync::LazyLock;

use quorate_support::read_file;

static PAGE: LazyLock<String> = LazyLock::new(|| read_file("docs/deployment.md"));

/// What follows the name and the password in the `ACL SETUSER` of the page on deployments.
pub fn documented() -> Vec<&'static str> {
    let block = PAGE.split_once("```text\nACL SETUSER quorate on >password");
    let rights = block.and_then(|(_, block)| block.split_once("```")).expect("it has the rights").0;
    rights.split_whitespace().collect()
}

/// A user with all of them, as `ACL SETUSER` takes it.
pub fn user() -> String {
    format!("quorate on >password {}", documented().join(" "))
}

/// A user without one of them, and its name. None is called so that it would need quotes.
pub fn user_without(at: usize) -> (String, String) {
    let mut rights = documented();
    rights.remove(at);
    let name = format!("without-{at}");
    (format!("{name} on >password {}", rights.join(" ")), name)
}

/// Those of them that the page says are for read/write locks and semaphores only.
pub fn of_shared_locks() -> Vec<String> {
    let row = PAGE
        .lines()
        .find_map(|line| line.strip_suffix(": for read/write locks and semaphores only"));
    let names = row.expect("the page says so").split('`').skip(1).step_by(2);
    names.map(|name| format!("+{name}")).collect()
}
