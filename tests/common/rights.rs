//! The rights that clients need.

/// What follows the name and the password in the `ACL SETUSER` of the page on deployments.
pub fn documented() -> Vec<&'static str> {
    let page = include_str!("../../docs/deployment.md");
    let block = page.split_once("```text\nACL SETUSER quorate on >password");
    let rights = block.and_then(|(_, block)| block.split_once("```")).expect("it has the rights").0;
    rights.split_whitespace().collect()
}
