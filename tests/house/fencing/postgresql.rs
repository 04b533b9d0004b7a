//! `docs/fencing/postgresql.sql`, on a server.

use crate::fencing::{
    OFFERED, judged_by_the_gate,
    postgres::PostgresServer,
    session::Session,
    texts::{POSTGRESQL, Statements},
};
use quorate_support::eventually;

struct Database {
    server: PostgresServer,
    statements: Statements,
}

impl Database {
    /// With its table, and one row that no token has changed.
    fn new() -> Self {
        let server = PostgresServer::start();
        let database = Self { server, statements: Statements::of(POSTGRESQL) };
        let mut session = database.server.connect();
        assert_eq!(session.one(&database.statements.table), "CREATE TABLE");
        let insert = "INSERT INTO invoice (id, state) VALUES ('a', 'new');";
        assert_eq!(session.one(insert), "INSERT 0 1");
        database
    }

    /// With each statement prepared by its name.
    fn connect(&self) -> Session {
        let mut session = self.server.connect();
        let Statements { update, upsert, claim, .. } = &self.statements;
        for (name, statement) in [("change", update), ("put", upsert), ("claim", claim)] {
            assert_eq!(session.one(&format!("PREPARE {name} AS {statement}")), "PREPARE");
        }
        session
    }
}

fn row(session: &mut Session) -> String {
    session.one("SELECT state, fence FROM invoice WHERE id = 'a';")
}

#[test]
fn every_changing_statement_lets_pass_what_the_gate_does() {
    let database = Database::new();
    let mut session = database.connect();
    let cases = [
        ("change", "UPDATE", true, "UPDATE invoice SET fence = 0;"),
        ("claim", "UPDATE", false, "UPDATE invoice SET fence = 0, state = 'new';"),
        ("put", "INSERT 0", true, "DELETE FROM invoice;"),
    ];
    for (name, told, sets_state, start) in cases {
        assert_eq!(session.run(start).len(), 1);
        let mut last = 0;
        for (number, passes) in OFFERED.into_iter().zip(judged_by_the_gate()) {
            let state = if sets_state { format!(", 'by {number}'") } else { String::new() };
            let rows = session.one(&format!("EXECUTE {name} ({number}, 'a'{state});"));
            assert_eq!(rows, format!("{told} {}", u8::from(passes)), "{name} {number}");
            last = if passes { number } else { last };
            let state = if sets_state { format!("by {last}") } else { "new".into() };
            assert_eq!(row(&mut session), format!("{state}|{last}"));
        }
    }
}

/// Of two connections, the first has read and is paused; the next holder writes; the first wakes.
#[test]
fn a_writer_that_read_before_the_next_holder_wrote_is_refused() {
    let database = Database::new();
    let (mut paused, mut next) = (database.connect(), database.connect());
    assert_eq!(paused.one("EXECUTE change (7, 'a', 'by 7');"), "UPDATE 1");
    assert_eq!(row(&mut paused), "by 7|7");
    assert_eq!(next.one("EXECUTE change (9, 'a', 'by 9');"), "UPDATE 1");
    assert_eq!(paused.one("EXECUTE change (7, 'a', 'late');"), "UPDATE 0");
    assert_eq!(paused.one("EXECUTE put (7, 'a', 'late');"), "INSERT 0 0");
    assert_eq!(paused.one("EXECUTE claim (7, 'a');"), "UPDATE 0");
    assert_eq!(row(&mut next), "by 9|9");
}

/// The late statement has begun before the other transaction ends, and looks at the row again
/// afterwards. A transaction of a stricter level fails instead.
#[test]
fn a_late_writer_that_waits_for_a_claimed_row_is_refused_when_its_turn_comes() {
    let database = Database::new();
    let (mut next, mut late) = (database.connect(), database.connect());
    // Inside a transaction an observer would see the same all along.
    let mut observer = database.connect();
    let late_ones = [
        ("READ COMMITTED", "EXECUTE change (7, 'a', 'late');", "UPDATE 0"),
        ("READ COMMITTED", "EXECUTE put (7, 'a', 'late');", "INSERT 0 0"),
        ("READ COMMITTED", "EXECUTE claim (7, 'a');", "UPDATE 0"),
        (
            "REPEATABLE READ",
            "EXECUTE change (7, 'a', 'late');",
            "ERROR:  could not serialize access due to concurrent update",
        ),
    ];
    for (level, statement, told) in late_ones {
        // What it begins with passes, so it waits.
        assert_eq!(next.one("UPDATE invoice SET fence = 0, state = 'new';"), "UPDATE 1");
        assert_eq!(late.one(&format!("BEGIN ISOLATION LEVEL {level};")), "BEGIN");
        assert_eq!(late.run("SELECT state FROM invoice WHERE id = 'a';").len(), 1);
        assert_eq!(next.one("BEGIN;"), "BEGIN");
        assert_eq!(next.one("EXECUTE claim (9, 'a');"), "UPDATE 1");
        late.send(statement);
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock';";
        eventually("the late one waits", || observer.one(waiting) == "1");
        let work = "UPDATE invoice SET state = 'by 9' WHERE id = 'a';";
        assert_eq!(next.one(work), "UPDATE 1");
        assert_eq!(next.one("COMMIT;"), "COMMIT");
        assert_eq!(late.answer(), [told], "{statement}");
        assert_eq!(late.one("ROLLBACK;"), "ROLLBACK");
        assert_eq!(row(&mut next), "by 9|9");
    }
}
