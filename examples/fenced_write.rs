//! How does PostgreSQL refuse a write from a process that has lost its lock?
//!
//! Each row keeps the highest token that changed it. The statement changes the row only if its own
//! token is at least as high. "0 rows changed" means refused: stop the work.
//!
//! `cargo run --example fenced_write` needs no PostgreSQL: a row in memory does what the statement
//! does. A test runs the statement on a PostgreSQL server.

use std::time::Duration;

use quorate::{Quorate, Token, embedded};

/// With tokio-postgres: `client.execute(UPDATE, &[&i64::from(token), &id, &state])`.
const UPDATE: &str = "UPDATE invoice SET state = $3, fence = $1 WHERE id = $2 AND fence <= $1;";

/// One row of the table `invoice`, with its column `fence`.
#[derive(Default)]
struct Row {
    state: &'static str,
    fence: u64,
}

impl Row {
    /// Returns how many rows the statement changes.
    fn update(&mut self, token: Token, state: &'static str) -> u64 {
        let token = u64::from(token);
        if self.fence > token {
            return 0;
        }
        (self.state, self.fence) = (state, token);
        1
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{UPDATE}");
    let voters = embedded::voters(3);
    let connect = || Quorate::builder().embedded(&voters).connect();
    let (slow, next) = tokio::try_join!(connect(), connect())?;
    let mut invoice = Row::default();

    // The first holder's lease is fixed. It pauses for longer than that, before it writes.
    let late = slow.mutex("invoice:42").lease_fixed(Duration::from_secs(5)).lock().await?;
    let guard = next.mutex("invoice:42").lock().await?; // waits until that lease has ended
    println!("{} row changed with token {}", invoice.update(guard.token(), "sent"), guard.token());
    guard.release().await?;

    let changed = invoice.update(late.token(), "open");
    println!("{changed} rows changed with the late token {}: refused", late.token());
    if changed == 0 && invoice.state == "sent" { Ok(()) } else { Err("it was not refused".into()) }
}
