//! What others ask over HTTP: whether this process holds the lock, and whether it works.

use std::{
    cell::{OnceCell, RefCell},
    rc::Weak,
    time::Duration,
};

use quorate::{Error, Quorate};
use serde_json::json;
use tokio::{sync::Mutex, time};

use crate::{
    clock,
    console::Failure,
    http::{Answer, Pages},
    lock::{self, LockHeld, LockKind},
};

/// The voters are asked who else has the lock for this time at most, and their answer is reused
/// for as long.
const LOOK: Duration = Duration::from_secs(1);

/// Answers for the process that wants this lock.
pub(super) struct Desk<'a> {
    kind: LockKind<'a>,
    name: &'a str,
    /// Once it is connected.
    pub(super) quorum: OnceCell<Quorate>,
    /// The guard itself says whether the lock is held. It is gone before the lock is released.
    pub(super) lock: RefCell<Weak<LockHeld>>,
    /// What the voters said last of who else has it, and when. Locked while they are asked.
    others: Mutex<Option<(Duration, Answer)>>,
}

impl Pages for Desk<'_> {
    const PATHS: &'static [&'static str] = &["/leader", "/healthz"];

    async fn page(&self, path: &str) -> Answer {
        if path == "/leader" { self.leader().await } else { Answer::fine("ok\n") }
    }
}

impl<'a> Desk<'a> {
    pub(super) fn new(kind: LockKind<'a>, name: &'a str) -> Self {
        let (quorum, lock) = (OnceCell::new(), RefCell::default());
        Self { kind, name, quorum, lock, others: Mutex::new(None) }
    }

    async fn leader(&self) -> Answer {
        if let Some(lock) = self.lock.borrow().upgrade() {
            let (name, token) = (self.own_name(&lock), lock.token());
            // Last, as the answer is as old as that.
            let left = lock.remaining();
            if left.is_zero() {
                return busy(None, "it was lost");
            }
            let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            let body = json!({ "name": name, "token": token, "remaining_ms": left_ms });
            return Answer::fine(format!("{body}\n"));
        }
        let Some(quorum) = self.quorum.get() else {
            return busy(None, "no majority of the servers has answered yet");
        };
        // All who ask meanwhile wait here, and are given the same answer.
        let mut others = self.others.lock().await;
        if let Some((_, answer)) = others.as_ref().filter(|(at, _)| clock::now() < *at + LOOK) {
            return answer.clone();
        }
        let answer = match time::timeout(LOOK, self.other_name(quorum)).await {
            Ok(Ok(Some(name))) => busy(Some(&name), "another has it"),
            Ok(Ok(None)) => busy(None, "nobody has it"),
            Ok(Err(error)) => busy(None, &Failure::from(error).what),
            Err(_) => busy(None, &format!("no answer within {LOOK:?}")),
        };
        *others = Some((clock::now(), answer.clone()));
        answer
    }

    fn own_name(&self, guard: &LockHeld) -> String {
        let hold = guard.hold();
        match self.kind {
            LockKind::Lead(value) => value.to_owned(),
            _ => hold.client_name().unwrap_or_else(|| hold.to_string()),
        }
    }

    /// Of who has it.
    async fn other_name(&self, quorum: &Quorate) -> Result<Option<String>, Error> {
        if let LockKind::Lead(_) = self.kind {
            let leader = quorum.election(self.name).leader().await?;
            return Ok(leader.map(|it| String::from_utf8_lossy(it.value()).into_owned()));
        }
        let holds = lock::find(quorum, self.name).await?;
        let hold = holds.into_iter().find(|hold| hold.keeps_from(self.kind));
        Ok(hold.map(|it| it.held.client_name.unwrap_or_else(|| it.held.hold.to_string())))
    }
}

fn busy(name: Option<&str>, why: &str) -> Answer {
    Answer::failed("503 Service Unavailable", &json!({ "name": name, "error": why }))
}
