//! `docs/fencing/sqlite.sql`, on a database in a file.

use std::process::Command;

use tempfile::TempDir;

use crate::fencing::{
    OFFERED, judged_by_the_gate,
    session::Session,
    texts::{SQLITE, Statements},
};
use quorate_support::install_line;

struct Database {
    dir: TempDir,
    statements: Statements,
}

impl Database {
    /// With its table, and one row that no token has changed.
    fn new() -> Self {
        let (dir, statements) = (tempfile::tempdir().expect("a temp dir"), Statements::of(SQLITE));
        let database = Self { dir, statements };
        let mut session = database.connect();
        assert!(session.0.run(&database.statements.table).is_empty());
        assert!(session.0.run("INSERT INTO invoice (id, state) VALUES ('a', 'new');").is_empty());
        database
    }

    fn connect(&self) -> Connection {
        let mut command = Command::new("sqlite3");
        command.args(["-batch", "-init", "/dev/null"]).arg(self.dir.path().join("data"));
        let missing = install_line(["sqlite3", "sqlite", "sqlite", "sqlite", "sqlite"]);
        Connection(Session::start(&command, ".print", &missing))
    }
}

struct Connection(Session);

impl Connection {
    /// Runs a statement of the text and tells how many rows it changed, or why it did not run.
    fn change(&mut self, statement: &str, token: u64, state: &str) -> String {
        let parameters = format!(
            ".parameter set :token {token}\n.parameter set :id \"'a'\"\n\
             .parameter set :state \"'{state}'\"\n"
        );
        assert!(self.0.run(&parameters).is_empty());
        match &self.0.run(statement)[..] {
            [] => self.0.one("SELECT changes();"),
            errors => errors.join(" "),
        }
    }

    fn row(&mut self) -> String {
        self.0.one("SELECT state, fence FROM invoice WHERE id = 'a';")
    }
}

#[test]
fn every_changing_statement_lets_pass_what_the_gate_does() {
    let database = Database::new();
    let statements = &database.statements;
    let cases = [
        (&statements.update, true, "UPDATE invoice SET fence = 0;"),
        (&statements.claim, false, "UPDATE invoice SET fence = 0, state = 'new';"),
        (&statements.upsert, true, "DELETE FROM invoice;"),
    ];
    for (statement, sets_state, start) in cases {
        let mut session = database.connect();
        assert!(session.0.run(start).is_empty());
        let mut last = 0;
        for (number, passes) in OFFERED.into_iter().zip(judged_by_the_gate()) {
            let rows = session.change(statement, number, &format!("by {number}"));
            assert_eq!(rows, if passes { "1" } else { "0" }, "{number}: {statement}");
            last = if passes { number } else { last };
            let state = if sets_state { format!("by {last}") } else { "new".into() };
            assert_eq!(session.row(), format!("{state}|{last}"));
        }
    }
}

/// Of two connections, the first has read and is paused; the next holder writes; the first wakes.
#[test]
fn a_writer_that_read_before_the_next_holder_wrote_is_refused() {
    let database = Database::new();
    let statements = &database.statements;
    let (mut paused, mut next) = (database.connect(), database.connect());
    assert_eq!(paused.change(&statements.update, 7, "by 7"), "1");
    assert_eq!(paused.row(), "by 7|7");
    assert_eq!(next.change(&statements.update, 9, "by 9"), "1");
    for late in [&statements.update, &statements.upsert, &statements.claim] {
        assert_eq!(paused.change(late, 7, "late"), "0");
    }
    assert_eq!(next.row(), "by 9|9");
}

#[test]
fn a_claim_keeps_others_out_until_its_transaction_ends() {
    let database = Database::new();
    let statements = &database.statements;
    let (mut earlier, mut later) = (database.connect(), database.connect());
    assert!(earlier.0.run("BEGIN IMMEDIATE;").is_empty());
    assert_eq!(earlier.change(&statements.claim, 7, ""), "1");
    let kept_out = later.change(&statements.update, 9, "by 9");
    assert!(kept_out.contains("database is locked"), "{kept_out}");
    let work = "INSERT INTO invoice (id, state) VALUES ('b', 'by 7'); COMMIT;";
    assert!(earlier.0.run(work).is_empty());
    assert_eq!(later.change(&statements.update, 9, "by 9"), "1");
    assert!(earlier.0.run("BEGIN IMMEDIATE;").is_empty());
    assert_eq!(earlier.change(&statements.claim, 7, ""), "0");
    assert!(earlier.0.run("ROLLBACK;").is_empty());
    assert_eq!(later.row(), "by 9|9");
}

/// A driver may bind the token as the text that came in a header.
#[test]
fn a_token_bound_as_text_is_compared_as_a_number() {
    let database = Database::new();
    let mut session = database.connect();
    assert_eq!(session.change(&database.statements.update, 10, "by 10"), "1");
    let text = ".parameter set :token \"'9'\"";
    assert!(session.0.run(text).is_empty());
    assert!(session.0.run(&database.statements.update).is_empty());
    assert_eq!(session.0.one("SELECT changes();"), "0");
}
