//! The rights that clients need.

/// What follows the name and the password in the README's `ACL SETUSER`.
pub fn of_the_readme() -> Vec<&'static str> {
    let readme = include_str!("../../README.md");
    let block = readme.split_once("```text\nACL SETUSER quorate on >password");
    let rights = block.and_then(|(_, block)| block.split_once("```")).expect("it has the rights").0;
    rights.split_whitespace().collect()
}
