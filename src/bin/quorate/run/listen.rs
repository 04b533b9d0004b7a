//! The answers of `--listen`: whether this process holds the lock, and whether it works.

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

/// How long to ask the voters who else has the lock, and for how long their answer is reused.
// So many probes cost the servers one look a second
// (`who_else_has_the_lock_is_asked_once_a_second_for_all`).
const LOOK: Duration = Duration::from_secs(1);

/// Answers over HTTP for a process that wants this lock.
pub(super) struct Desk<'a> {
    pub(super) kind: LockKind<'a>,
    pub(super) name: &'a str,
    /// The client, once it is connected.
    pub(super) quorum: OnceCell<Quorate>,
    /// The guard, while the lock is held.
    // Asked itself, as only it has the deadline: a flag would still say yes when this process was
    // stopped past its lease
    // (`a_holder_that_was_stopped_past_its_lease_does_not_say_that_it_holds_the_lock`).
    pub(super) lock: RefCell<Weak<LockHeld>>,
    /// The last answer of the voters about others, and when it came. Locked while they are asked.
    others: Mutex<Option<(Duration, Answer)>>,
}

impl Pages for Desk<'_> {
    const PATHS: &'static [&'static str] = &["/leader", "/healthz"];

    async fn page(&self, path: &str) -> Answer {
        // Healthy also without servers: a restart of this process would not bring them back.
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
            // Last: what passes before it makes the rest shorter (law 2).
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
        // Further requests wait here, and get the same answer.
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

    /// The name of another that has the lock.
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
