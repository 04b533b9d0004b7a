//! `docs/fencing/sqlite.sql` on a database in a file, and `docs/fencing/postgresql.sql` on a server.

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use quorate_support::install_line;
use quorate_tests::prelude::*;
use tempfile::TempDir;

use crate::fencing::{judged_by_the_gate, postgres::PostgresServer};

const MARK: &str = "-- that was all --";
/// The statements of a text, behind that which makes the table.
const UPDATE: usize = 1;
const UPSERT: usize = 2;
const CLAIM: usize = 3;

/// With the table of its text, and one row that no token has changed.
struct Database {
    kind: Kind,
    statements: Vec<String>,
}

enum Kind {
    Sqlite(TempDir),
    Postgres(PostgresServer),
}

impl Database {
    fn sqlite() -> Self {
        Self::new(Kind::Sqlite(tempfile::tempdir().expect("a temp dir")), "sqlite.sql")
    }

    fn postgres() -> Self {
        Self::new(Kind::Postgres(PostgresServer::start()), "postgresql.sql")
    }

    fn new(kind: Kind, text: &str) -> Self {
        let text = read_file(&format!("docs/fencing/{text}"));
        let code: Vec<_> = text.lines().filter(|line| !line.starts_with("--")).collect();
        let code = code.join("\n");
        let code = code.trim_end().strip_suffix(';').expect("the last statement ends");
        let statements: Vec<_> = code.split(';').map(|text| format!("{};", text.trim())).collect();
        assert_eq!(statements.len(), 4);
        let database = Self { kind, statements };
        let mut session = database.session();
        let insert = "INSERT INTO invoice (id, state) VALUES ('a', 'new');";
        let told = [session.run(&database.statements[0]), session.run(insert)].concat();
        assert!(!told.join(" ").to_lowercase().contains("error"), "{told:?}");
        database
    }

    fn session(&self) -> Session {
        let (command, echo) = match &self.kind {
            Kind::Sqlite(dir) => {
                let mut sqlite = Command::new("sqlite3");
                sqlite.args(["-batch", "-init", "/dev/null"]).arg(dir.path().join("data"));
                (sqlite, ".print")
            }
            Kind::Postgres(server) => (server.psql(), r"\echo"),
        };
        Session::start(&command, echo)
    }

    /// For PostgreSQL with each statement prepared.
    fn connect(&self) -> Connection<'_> {
        let mut session = self.session();
        let on_sqlite = matches!(self.kind, Kind::Sqlite(_));
        for (at, statement) in self.statements.iter().enumerate().skip(1).filter(|_| !on_sqlite) {
            assert_eq!(session.one(&format!("PREPARE p{at} AS {statement}")), "PREPARE");
        }
        Connection { session, statements: on_sqlite.then_some(&self.statements) }
    }
}

struct Connection<'a> {
    session: Session,
    /// For SQLite.
    statements: Option<&'a [String]>,
}

impl Connection<'_> {
    /// Runs a statement of the text and tells how many rows it changed, or why it did not run.
    fn change(&mut self, statement: usize, token: u64, state: &str) -> String {
        let Some(statements) = self.statements else {
            let told = self.session.one(&executed(statement, token, state));
            let rows = told.strip_prefix("UPDATE ").or(told.strip_prefix("INSERT 0 "));
            return rows.unwrap_or(&told).to_owned();
        };
        let parameters = format!(
            ".parameter set :token {token}\n.parameter set :id \"'a'\"\n\
             .parameter set :state \"'{state}'\"\n"
        );
        assert_eq!(self.session.run(&parameters), [""; 0]);
        match &self.session.run(&statements[statement])[..] {
            [] => self.session.one("SELECT changes();"),
            errors => errors.join(" "),
        }
    }

    fn row(&mut self) -> String {
        self.session.one("SELECT state, fence FROM invoice WHERE id = 'a';")
    }
}

/// How PostgreSQL runs a statement that was prepared.
fn executed(statement: usize, token: u64, state: &str) -> String {
    let state = if statement == CLAIM { String::new() } else { format!(", '{state}'") };
    format!("EXECUTE p{statement} ({token}, 'a'{state});")
}

/// A connection by the database's own command-line program.
struct Session {
    program: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The program's own command that prints a text.
    echo: &'static str,
}

impl Session {
    fn start(command: &Command, echo: &'static str) -> Self {
        // So that errors come in line with answers.
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"exec "$0" "$@" 2>&1"#]).arg(command.get_program());
        shell.args(command.get_args()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = shell.spawn().expect("sh can be started");
        let input = program.stdin.take().expect("a pipe");
        let output = BufReader::new(program.stdout.take().expect("a pipe"));
        Self { program, input, output, echo }
    }

    /// Runs statements, and returns what the program printed, line by line.
    fn run(&mut self, text: &str) -> Vec<String> {
        self.send(text);
        self.answer()
    }

    /// Sends statements without waiting for their end.
    fn send(&mut self, text: &str) {
        let mut lines = text.to_owned();
        write!(lines, "\n{} '{MARK}'\n", self.echo).expect("a text takes it");
        self.input.write_all(lines.as_bytes()).expect("the program reads");
        self.input.flush().expect("a pipe takes it");
    }

    fn answer(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        loop {
            let mut line = String::new();
            let length = self.output.read_line(&mut line).expect("the program prints text");
            let install = || install_line(["sqlite3", "sqlite", "sqlite", "sqlite", "sqlite"]);
            assert!(length > 0, "the program has ended: {told:?}; sqlite3: {}", install());
            match line.trim_end() {
                MARK => return told,
                line => told.push(line.to_owned()),
            }
        }
    }

    /// As [`run`](Self::run), for what prints one line.
    #[track_caller]
    fn one(&mut self, text: &str) -> String {
        let told = self.run(text);
        let [line] = &told[..] else { panic!("{text}: {told:?}") };
        line.clone()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn every_changing_statement_lets_pass_what_the_gate_does() {
    for database in [Database::sqlite(), Database::postgres()] {
        for (statement, start) in [
            (UPDATE, "UPDATE invoice SET fence = 0;"),
            (CLAIM, "UPDATE invoice SET fence = 0, state = 'new';"),
            (UPSERT, "DELETE FROM invoice;"),
        ] {
            let mut connection = database.connect();
            connection.session.run(start);
            for (number, passes, last) in judged_by_the_gate() {
                let rows = connection.change(statement, number, &format!("by {number}"));
                assert_eq!(rows, u8::from(passes).to_string(), "{number}: {statement}");
                let state = if statement == CLAIM { "new".into() } else { format!("by {last}") };
                assert_eq!(connection.row(), format!("{state}|{last}"));
            }
        }
    }
}

#[test]
fn a_claim_keeps_others_out_of_sqlite_until_its_transaction_ends() {
    let database = Database::sqlite();
    let (mut earlier, mut later) = (database.connect(), database.connect());
    assert_eq!(earlier.session.run("BEGIN IMMEDIATE;"), [""; 0]);
    assert_eq!(earlier.change(CLAIM, 7, ""), "1");
    let kept_out = later.change(UPDATE, 9, "by 9");
    assert!(kept_out.contains("database is locked"), "{kept_out}");
    let work = "INSERT INTO invoice (id, state) VALUES ('b', 'by 7'); COMMIT;";
    assert_eq!(earlier.session.run(work), [""; 0]);
    assert_eq!(later.change(UPDATE, 9, "by 9"), "1");
    assert_eq!(earlier.session.run("BEGIN IMMEDIATE;"), [""; 0]);
    assert_eq!(earlier.change(CLAIM, 7, ""), "0");
    assert_eq!(earlier.session.run("ROLLBACK;"), [""; 0]);
    assert_eq!(later.row(), "by 9|9");
}

/// A driver may bind the token as the text that came in a header.
#[test]
fn sqlite_compares_a_token_that_is_bound_as_text_as_a_number() {
    let database = Database::sqlite();
    let mut connection = database.connect();
    assert_eq!(connection.change(UPDATE, 10, "by 10"), "1");
    let session = &mut connection.session;
    assert_eq!(session.run(".parameter set :token \"'9'\""), [""; 0]);
    assert_eq!(session.run(&database.statements[UPDATE]), [""; 0]);
    assert_eq!(session.one("SELECT changes();"), "0");
}

/// The late statement has begun before the other transaction ends, and looks at the row again
/// afterwards. A transaction of a stricter level fails instead.
#[test]
fn a_late_writer_that_waits_for_a_claimed_row_is_refused_when_its_turn_comes() {
    let database = Database::postgres();
    let [mut next, mut late, mut observer] = [(); 3].map(|()| database.connect());
    let conflict = "ERROR:  could not serialize access due to concurrent update";
    for (level, statement, told) in [
        ("READ COMMITTED", UPDATE, "UPDATE 0"),
        ("READ COMMITTED", UPSERT, "INSERT 0 0"),
        ("READ COMMITTED", CLAIM, "UPDATE 0"),
        ("REPEATABLE READ", UPDATE, conflict),
    ] {
        let (next, late) = (&mut next.session, &mut late.session);
        // What it begins with passes, so it waits.
        assert_eq!(next.one("UPDATE invoice SET fence = 0, state = 'new';"), "UPDATE 1");
        assert_eq!(late.one(&format!("BEGIN ISOLATION LEVEL {level};")), "BEGIN");
        assert_eq!(late.run("SELECT state FROM invoice WHERE id = 'a';").len(), 1);
        assert_eq!(next.run("BEGIN; EXECUTE p3 (9, 'a');"), ["BEGIN", "UPDATE 1"]);
        late.send(&executed(statement, 7, "late"));
        // Inside a transaction an observer would see the same all along.
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock';";
        eventually("the late one waits", || observer.session.one(waiting) == "1");
        let work = "UPDATE invoice SET state = 'by 9' WHERE id = 'a'; COMMIT;";
        assert_eq!(next.run(work), ["UPDATE 1", "COMMIT"]);
        assert_eq!(late.answer(), [told], "{statement}");
        assert_eq!(late.one("ROLLBACK;"), "ROLLBACK");
        assert_eq!(observer.row(), "by 9|9");
    }
}
