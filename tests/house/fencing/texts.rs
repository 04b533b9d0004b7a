//! The texts of `docs/fencing/`, as they stand there.

pub(crate) const LUA: &str = include_str!("../../../docs/fencing/redis.lua");
pub(crate) const POSTGRESQL: &str = include_str!("../../../docs/fencing/postgresql.sql");
pub(crate) const SQLITE: &str = include_str!("../../../docs/fencing/sqlite.sql");

/// The statements of a file of SQL.
#[cfg(feature = "full")]
pub(crate) struct Statements {
    pub(crate) table: String,
    pub(crate) update: String,
    pub(crate) upsert: String,
    pub(crate) claim: String,
}

#[cfg(feature = "full")]
impl Statements {
    pub(crate) fn of(file: &str) -> Self {
        let code = file.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>();
        let code = code.join("\n");
        let (code, rest) = code.rsplit_once(';').expect("a statement");
        assert_eq!(rest.trim(), "");
        let statements: Vec<_> = code.split(';').map(|text| format!("{};", text.trim())).collect();
        let [table, update, upsert, claim] = statements.try_into().expect("four statements");
        Self { table, update, upsert, claim }
    }
}
