//! The table of the specification has every step of its modules, and names code that exists.

use super::names;
use crate::tree::files;

const FOLDER: &str = "tests/proofs/spec";

/// The code of each row: a step or a condition, a file, and the function that does that.
fn rows(page: &str) -> Vec<[&str; 3]> {
    let cells = |line| {
        let mut code = str::split(line, '`').skip(1).step_by(2);
        Some([code.next()?, code.next()?, code.next()?])
    };
    page.lines().filter_map(cells).filter(|[step, ..]| step.contains('!')).collect()
}

/// Whether a file has a function: in Rust one of a type, in Lua a comment that begins with its
/// name.
fn has(code: &str, function: &str) -> bool {
    match function.split_once("::") {
        Some((of, name)) => {
            names(code, of) && ["(", "<"].iter().any(|it| code.contains(&format!("fn {name}{it}")))
        }
        None => code.lines().any(|line| line.starts_with(&format!("-- {function}:"))),
    }
}

/// The steps that a module can take.
fn steps(module: &str) -> Vec<&str> {
    let (_, next) = module.split_once("\nNext ==\n").expect("each module has a next step");
    let (next, _) = next.split_once("\n\n").expect("it ends");
    let calls = next.lines().filter_map(|line| line.rsplit(" : ").next()?.split('(').next());
    calls.map(|call| call.trim_start_matches([' ', '\\', '/'])).collect()
}

/// What the table names and the tree does not have, and the steps that it does not name.
fn missing(page: &str, files: &[(String, String)]) -> Vec<String> {
    let text = |path: &str| files.iter().find(|file| file.0 == path).map(|file| &*file.1);
    let rows = rows(page);
    let gone = rows
        .iter()
        .filter(|[_, path, function]| text(path).is_none_or(|code| !has(code, function)))
        .map(|[step, path, function]| format!("{step}: no `{function}` in {path}"));
    let all = ["Lock", "Tokens", "Voters"].into_iter().flat_map(|name| {
        let module = text(&format!("{FOLDER}/{name}.tla")).expect("the module is there");
        steps(module).into_iter().map(move |step| format!("{name}!{step}"))
    });
    let unnamed = all
        .filter(|step| rows.iter().all(|row| row[0] != step))
        .map(|step| format!("the table lacks `{step}`"));
    gone.chain(unnamed).collect()
}

#[test]
fn the_table_of_the_specification_has_every_step_and_names_code_that_exists() {
    let module = "\nNext ==\n    \\/ \\E h \\in Holds : Ask(h, 1)\n    \\/ Pass(1)\n\nSpec == 1\n";
    let mut planted = ["Lock", "Tokens", "Voters"]
        .map(|name| (format!("{FOLDER}/{name}.tla"), module.to_owned()))
        .to_vec();
    planted.push(("a.rs".to_owned(), "impl Of {\n    fn ask(&self) {}\n}".to_owned()));
    planted.push(("a.lua".to_owned(), "-- pass: it ends\n".to_owned()));
    let page = "| step | file | function |\n\
        | `Lock!Ask` | `a.rs` | `Of::ask` |\n\
        | `Lock!Pass` | `a.lua` | `pass` |\n\
        | `Tokens!Ask` | `a.rs` | `Of::asks` |\n\
        | `Tokens!Pass` | `b.lua` | `pass` |\n\
        | `Voters!Ask` | `a.rs` | `Other::ask` |\n";
    assert_eq!(
        missing(page, &planted),
        [
            "Tokens!Ask: no `Of::asks` in a.rs",
            "Tokens!Pass: no `pass` in b.lua",
            "Voters!Ask: no `Other::ask` in a.rs",
            "the table lacks `Voters!Pass`",
        ]
    );
    let files = files();
    let page = format!("{FOLDER}/README.md");
    let page = &files.iter().find(|file| file.0 == page).expect("the page is there").1;
    assert!(rows(page).len() > 25, "the table is there");
    let missing = missing(page, &files);
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}
