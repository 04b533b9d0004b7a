//! For how long a server that was promoted is known as that.
//!
//! What was a replica may know less than its primary did, and its uptime does not tell when it was
//! promoted. It tells that it was, and its replication id, another one after each promotion, is the
//! name of its tenure. So the first client to meet a server in one leaves a mark there, and those
//! that come later read from it for how long that server is known. It was promoted before that, so
//! by its own clock it counts as younger than it is, and never as older.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::{
    info::{ask, field, is_replica},
    link::Link,
    replies,
};
use crate::{
    node::{Outcome, contract::is_passing},
    scripts::{Answer, Value, voter::TENURE},
    words::Cause,
};

/// For how long a mark is kept after the last client that was connected. Where one is gone, the
/// next client takes the server for one that has just been promoted.
const KEPT: Duration = Duration::from_hours(24 * 30);
/// Between two looks at a connection that stands.
const INTERVAL: Duration = Duration::from_secs(10);
/// With how many of them its mark is kept for longer: once an hour.
const LOOKS: u32 = if cfg!(test) { 1 } else { 360 };

/// The tenure of a primary that was a replica once, by its answer to INFO. Also of one that was
/// started with the copy of a primary's data. None again after the time for which it keeps its
/// backlog without a replica, an hour unless set.
pub(super) fn of(info: &str) -> Option<String> {
    let before = field(info, "master_replid2").ok()?;
    let id = field(info, "master_replid").ok()?;
    before.bytes().any(|byte| byte != b'0').then(|| id.to_owned())
}

/// For how long at least it lasts, and leaves a mark of it; nothing where that cannot be asked.
pub(super) async fn age(link: &Link, mark: &str, tenure: &str) -> Outcome<Option<Duration>> {
    let kept = KEPT.as_millis().to_string();
    let reply = ask(link, "EVAL", &[TENURE.source, "1", mark, tenure, &kept]).await?;
    let answer = replies::value(reply);
    if replies::is_of_a_replica(&answer) {
        return Err(Cause::Rejected(link.demote()));
    }
    let server = link.place();
    match answer.and_then(Answer::only) {
        Ok(answer) => Ok(answer.age()),
        // It cannot vote in this state either. Where nobody could leave a mark, nobody has.
        Err(Cause::Rejected(why)) if is_passing(&why) => {
            tracing::debug!(%server, %why, "a server that was promoted cannot be marked now");
            Ok(Some(Duration::ZERO))
        }
        // This may be so for ever, and would keep every new client waiting.
        Err(cause) => {
            tracing::warn!(
                %server, %cause,
                "it is not known since when a server is a primary"
            );
            Ok(None)
        }
    }
}

/// Completes, with the reason, when the server is found not to have been a primary all the time
/// since it said in which tenure it is. Where nothing is asked of it, nothing else tells.
pub(super) async fn ended(link: &Link, tenure: Option<&str>, mark: Option<&str>) -> Arc<str> {
    for look in (1..=LOOKS).cycle() {
        time::sleep(INTERVAL).await;
        if let (LOOKS, Some(mark), Some(tenure)) = (look, mark, tenure) {
            // Without it, one that is promoted later would seem as old as this one to new clients.
            // Where it fails there is a next time.
            drop(age(link, mark, tenure).await);
        }
        // Whether it answers at all is looked after elsewhere.
        let answer = ask(link, "INFO", &["replication"]).await.and_then(replies::value);
        let Ok(Value::Text(info)) = answer else { continue };
        if is_replica(&info) {
            return link.demote();
        }
        // One that is forgotten by now is none that has ended.
        if let Some(now) = of(&info).filter(|now| Some(&**now) != tenure) {
            return format!("{} has been promoted again, as {now}", link.place()).into();
        }
    }
    unreachable!("it goes round")
}
