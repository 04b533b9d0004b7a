//! Who stands where: waiters in a queue; voters that a client does not count, and why; and servers
//! that nobody takes for young.

use std::time::Duration;

use quorate::{Error, LockKind, Quarantine, Quarantined, Quorate};

use quorate_support::{RedisServer, eventually_async, succeeds_async};

use crate::until;

/// Waits until so many stand in the queue of this lock on a majority.
pub async fn until_waiting(client: &Quorate, kind: LockKind, name: &str, count: usize) {
    let admin = client.admin();
    until!(
        &format!("{count} wait for the {kind} {name}"),
        admin.look(kind, name).await.is_ok_and(|seen| seen.waiting.len() == count)
    );
}

/// Waits until a client is given this mutex.
pub async fn until_given(client: &Quorate, name: &str) {
    let is_given = async || matches!(client.mutex(name).try_lock().await, Ok(Some(_)));
    eventually_async(&format!("{name} is given"), is_given).await;
}

/// Why a voter is kept out of the lock `a`, and for how long, if it is.
pub async fn kept_out(client: &Quorate, voter: usize) -> Option<Quarantined> {
    let inspect = async || client.mutex("a").inspect().await.map_err(|error| error.to_string());
    succeeds_async("a majority answers", inspect).await.voters[voter].quarantine
}

/// Waits until a voter is kept out for this reason; the client never gets the lock `a` meanwhile.
pub async fn until_kept_out(client: &Quorate, voter: usize, why: Quarantine) {
    until!("the voter is kept out", {
        let tried = client.mutex("a").try_lock().await;
        assert!(!matches!(tried, Ok(Some(_))), "a second holder");
        kept_out(client, voter).await.is_some_and(|quarantined| quarantined.why == why)
    });
}

/// Waits until the client has noticed that a voter came back as another, without asking for a lock.
pub async fn until_noticed(client: &Quorate, voter: usize) {
    until!("it has come back as another", {
        let quarantined = kept_out(client, voter).await;
        quarantined.is_some_and(|quarantined| quarantined.why == Quarantine::Restarted)
    });
}

/// What a client that came late is told, which wants the lock `a`: not that it has it, and that
/// this voter may have forgotten.
pub async fn refused(late: &Quorate, voter: usize) -> Option<Error> {
    let tried = late.mutex("a").try_lock().await;
    assert!(!matches!(tried, Ok(Some(_))), "a second holder");
    let quarantined = kept_out(late, voter).await.expect("it is kept out");
    assert_eq!(quarantined.why, Quarantine::Young);
    tried.err()
}

/// Has clients that come from now on take these servers for old.
pub fn make_old<'a>(servers: impl IntoIterator<Item = &'a RedisServer>) {
    servers.into_iter().for_each(|server| server.set_age(Duration::from_hours(1)));
}
