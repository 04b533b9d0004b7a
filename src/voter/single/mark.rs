//! The mark of a server: what its data say of themselves.
//!
//! What a server says of its own age goes by a clock that may be set, and what it says of its disk
//! is true until somebody deletes the data. So the first client to meet them leaves a mark among
//! them: a random name. Data with another name, or with none, are others than before.
//!
//! Every look of a client makes the mark older by the time since the last one, where nothing can
//! have been forgotten since: the server is in the same life, or wrote every change to disk then
//! and does now. So the data count as younger than they are, and never as older by more than one
//! look can add.
//!
//! A client that knows better, because the mark is younger than it was or a vote is missing, gives
//! the data another name: then all clients know.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use super::{
    info::{ask, field},
    link::Link,
    replies,
};
use crate::{
    keys::Word,
    proto::{Cause, HoldId},
    scripts::{Answer, Mark, Value, voter::LOOK},
    voter::{Birth, Call, Identity, Outcome, Request, Requests, contract::is_passing},
};

/// For how long a mark is kept after the last client that was connected. Where one is gone, the
/// data count as new.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Reads the mark at `key`, and writes it.
pub(super) fn call(key: &str, life: &str, deadline: Duration) -> Call {
    let birth = birth();
    // Each look stands for itself: no later one makes it needless where a server forgot the script.
    let itself = HoldId::parse(&birth);
    let args = [Word::from(&birth), life.into(), keeps(None).into(), "".into()];
    let keys = [Word::from(key)];
    let requests = Requests::One(Request::new(keys, args, Some(&itself)));
    Call { script: &LOOK, shared: [kept().into()].into(), requests, deadline, longest: deadline }
}

/// A name for data that have none.
fn birth() -> String {
    format!("{:016x}", rand::random::<u64>())
}

/// Whether the server forgets nothing by a restart; what was known of it in this life stays, where
/// it was not asked.
fn keeps(durable: Option<bool>) -> &'static str {
    match durable {
        Some(true) => "1",
        Some(false) => "0",
        None => "",
    }
}

fn kept() -> String {
    KEPT.as_millis().to_string()
}

/// The tenure of a primary that was a replica once, by its answer to INFO: another one after each
/// promotion. Also of one that was started with the copy of a primary's data. None again after the
/// time for which it keeps its backlog without a replica, an hour unless set.
pub(super) fn tenure(info: &str) -> Option<String> {
    let before = field(info, "master_replid2").ok()?;
    let id = field(info, "master_replid").ok()?;
    before.bytes().any(|byte| byte != b'0').then(|| id.to_owned())
}

/// Whether another server of the cluster has the mark's hash slot by now: this one may take votes.
pub(super) fn is_elsewhere(why: &str) -> bool {
    ["MOVED", "ASK", "TRYAGAIN"].iter().any(|word| why.starts_with(word))
}

/// Gives the data that were met another name, if they still have that one.
pub(super) async fn rename(link: &Link, met: &Identity, life: &str) -> Outcome<()> {
    let Some(Birth { mark, name, .. }) = &met.birth else { return Ok(()) };
    let name = name.split('/').next().unwrap_or_default();
    run(link, mark, life, None, name).await.map(drop)
}

/// What the script says that looks at the mark. Data that are called `lost` get another name.
async fn run(
    link: &Link,
    key: &str,
    life: &str,
    durable: Option<bool>,
    lost: &str,
) -> Outcome<Outcome<Value>> {
    let words = [LOOK.source, "1", key, &kept(), &birth(), life, keeps(durable), lost];
    let answer = replies::unpacked(ask(link, "EVAL", &words).await?);
    if replies::is_of_a_replica(&answer) {
        return Err(Cause::Rejected(link.demote()));
    }
    Ok(answer)
}

/// Reads the mark at `key`, and writes it; nothing where that cannot be done. `is_unmarked`: that
/// it could not be done when the server was last looked at, on whichever connection.
pub(super) async fn look(
    link: &Link,
    key: &str,
    life: &str,
    durable: Option<bool>,
    is_unmarked: &AtomicBool,
) -> Outcome<Option<Mark>> {
    let (server, answer) = (&link.place, run(link, key, life, durable, "").await?);
    match answer.and_then(|value| Answer::each(value, 1, LOOK.width).remove(0)) {
        Ok(answer) => {
            if is_unmarked.swap(false, Relaxed) {
                tracing::warn!(%server, "the mark of a server can be read again");
            }
            Ok(Mark::read(&answer))
        }
        // It cannot vote in this state either. Where nobody can say how old it is, it is new.
        Err(Cause::Rejected(why)) if is_passing(&why) => {
            tracing::debug!(%server, %why, "the mark of a server cannot be read now");
            let refusal = (!is_elsewhere(&why)).then_some(why);
            let (age, began) = (Duration::ZERO, Duration::ZERO);
            Ok(Some(Mark { birth: None, age, refusal, began, clock: None }))
        }
        Err(Cause::Rejected(why)) if has_no_scripts(&why) => {
            let why = format!(
                "it runs no Lua scripts, which all locks need ({why}): Valkey 9.1 takes them from \
                 the package `valkey-lua`, and Garnet with `--lua`"
            );
            Err(Cause::Rejected(why.into()))
        }
        // This may be so for ever, and would keep every new client waiting.
        Err(cause) => {
            if !is_unmarked.swap(true, Relaxed) {
                tracing::warn!(
                    %server, %cause,
                    "the mark of a server cannot be read: deleted data go unnoticed"
                );
            }
            Ok(None)
        }
    }
}

/// What is said to a script where there is nothing that runs it.
fn has_no_scripts(why: &str) -> bool {
    why.starts_with("ERR unknown command") || why.contains("Could not find scripting engine")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_look_overtakes_another() {
        let look = || call("mark", "life/", Duration::from_secs(1)).requests[0].party;
        assert_ne!(look(), look());
    }
}
