//! The page of the book quotes the texts that are tested here.

use crate::fencing::texts::{LUA, POSTGRESQL, SQLITE};

const PAGE: &str = include_str!("../../../docs/fencing.md");

#[test]
fn the_page_quotes_each_text_as_it_is_tested() {
    let quotes: Vec<_> = PAGE
        .split("\n```")
        .filter_map(|part| part.strip_prefix("lua\n").or_else(|| part.strip_prefix("sql\n")))
        .map(|quote| format!("{quote}\n"))
        .collect();
    assert_eq!(quotes, [LUA, POSTGRESQL, SQLITE]);
}
