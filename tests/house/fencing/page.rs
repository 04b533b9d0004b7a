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

#[test]
fn the_example_has_a_statement_that_is_tested_here() {
    let example = include_str!("../../../examples/fenced_write.rs");
    let (_, statement) = example.split_once("const UPDATE: &str = \"").expect("it has one");
    let (statement, _) = statement.split_once('"').expect("it ends");
    assert!(POSTGRESQL.lines().any(|line| line == statement), "{statement}");
}
