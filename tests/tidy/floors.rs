//! Who may import whom: the folders of `src/` stand on floors, and name only what is not above.

use crate::rules::{Finding, Rule};
use crate::tokens::{Token, is_word, reads, tokens};

/// From low to high.
const FLOORS: [&[&str]; 12] = [
    &["words"],
    &["clock", "signal", "fence"],
    &["engine"],
    &["settings", "keys"],
    &["scripts"],
    &["node"],
    &["wakeup"],
    &["coordinator"],
    &["hold"],
    &["lock"],
    &["client"],
    &["lib", "main", "bin", "program"],
];
const TOP: usize = FLOORS.len() - 1;

/// The harness under `tests/`, which unit tests reach by `#[path]`: no floor of its own.
const HARNESS: &str = "support";

pub(crate) const NO_IMPORT_FROM_ABOVE: Rule = |path, text| {
    let Some(module) = module_of(path) else { return Vec::new() };
    let Some(own) = floor_of(&module[0]) else {
        let complaint = format!("`{}` stands on no floor: give it one in tests/tidy", module[0]);
        return vec![Finding { line: 1, complaint }];
    };
    let above = |token: &Token| {
        let name = &token.text;
        // What is no module is one of the names that lib.rs shows to users.
        let floor = if name == HARNESS { 0 } else { floor_of(name).unwrap_or(TOP) };
        let complaint = format!("`{name}` is above `{}`", module[0]);
        (floor > own).then_some(Finding { line: token.line, complaint })
    };
    imports(&tokens(text), module.len()).iter().filter_map(above).collect()
};

/// `src/node/single/mod.rs` is `node::single`.
fn module_of(path: &str) -> Option<Vec<String>> {
    let path = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    Some(path.split('/').map(str::to_owned).collect())
}

fn floor_of(name: &str) -> Option<usize> {
    FLOORS.iter().position(|names| names.contains(&name))
}

/// The names directly under the crate's root that the code names; `depth` is how many `super` lead
/// from the file to the root.
fn imports(tokens: &[Token], depth: usize) -> Vec<Token> {
    let mut found = Vec::new();
    let mut blocks = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let path_follows = reads(tokens, at + 1, &["::"]);
        match token.text.as_str() {
            "{" => blocks.push(at >= 2 && tokens[at - 2].text == "mod"),
            "}" => drop(blocks.pop()),
            "crate" if path_follows => heads(tokens, at + 2, 0, &mut found),
            "super" if path_follows => {
                let inline = blocks.iter().filter(|&&is_module| is_module).count();
                let continues = at >= 2 && reads(tokens, at - 2, &["super", "::"]);
                if !continues {
                    heads(tokens, at, depth + inline, &mut found);
                }
            }
            // The library by its own name, which its unit tests could use.
            "quorate" if path_follows => heads(tokens, at, 0, &mut found),
            _ => {}
        }
    }
    found
}

/// Follows a path from a module `up` levels below the root, through groups, to names in the root.
fn heads(tokens: &[Token], at: usize, up: usize, found: &mut Vec<Token>) {
    let Some(token) = tokens.get(at) else { return };
    match token.text.as_str() {
        "{" => {
            for item in items(tokens, at) {
                heads(tokens, item, up, found);
            }
        }
        "super" if up > 0 && reads(tokens, at + 1, &["::"]) => heads(tokens, at + 2, up - 1, found),
        "super" => {}
        text if up == 0 && (is_word(text) || text == "*") => {
            found.push(Token { line: token.line, text: token.text.clone() });
        }
        _ => {}
    }
}

/// Where the items of the group that opens at `open` start.
fn items(tokens: &[Token], open: usize) -> Vec<usize> {
    let (mut depth, mut starts) = (0, Vec::new());
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && (at == open || token.text == ",") {
            starts.push(at + 1);
        }
    }
    starts
}
