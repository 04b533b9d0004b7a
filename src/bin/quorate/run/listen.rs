//! What others ask over HTTP: whether this process holds the lock, and whether it works.
//!
//! Two paths, and one answer for each connection. That little of HTTP is written here, as no crate
//! that the program has anyway speaks it.

use std::{
    cell::{OnceCell, RefCell},
    convert::Infallible,
    io,
    rc::Weak,
    str,
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use quorate::{Error, Quorate};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, sink},
    net::{TcpListener, TcpStream},
    time,
};

use crate::{
    console::Failure,
    lock::{self, LockHeld, LockKind},
};

/// For so long a connection may last.
const PATIENCE: Duration = Duration::from_secs(5);
/// For so long the voters are asked who has the lock.
const LOOK: Duration = Duration::from_secs(1);
/// So many connections at once.
const MOST: usize = 16;
/// In bytes. A longer head is none of a request that is answered here.
const LONGEST: u64 = 8 * 1024;

/// Answers for the process that wants this lock.
pub(super) struct Desk<'a> {
    pub(super) kind: LockKind<'a>,
    pub(super) name: &'a str,
    /// Once it is connected.
    pub(super) quorum: OnceCell<Quorate>,
    /// The guard itself says whether the lock is held. It is gone before the lock is released.
    pub(super) lock: RefCell<Weak<LockHeld>>,
}

/// The status, and the body.
type Answer = (&'static str, String);

impl Desk<'_> {
    pub(super) async fn serve(&self, listener: TcpListener) -> Infallible {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = listener.accept(), if open.len() < MOST => match accepted {
                    Ok((stream, _)) => open.push(time::timeout(PATIENCE, self.converse(stream))),
                    // Such as too many open files.
                    Err(_) => time::sleep(LOOK).await,
                },
                // Whoever asked may have gone.
                Some(_) = open.next() => {}
            }
        }
    }

    async fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut head = Vec::new();
        let mut rest = (&mut stream).take(LONGEST);
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            if rest.read_buf(&mut head).await? == 0 {
                head.clear();
                break;
            }
        }
        let line = str::from_utf8(&head).unwrap_or_default().lines().next().unwrap_or_default();
        let (status, body) = self.answer(line).await;
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // To close it with something unread would take the answer back.
        copy(&mut stream, &mut sink()).await.map(drop)
    }

    /// To the first line of a request.
    async fn answer(&self, request: &str) -> Answer {
        let mut words = request.split(' ');
        let (method, target) = (words.next(), words.next());
        let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
            (method, target, words.next(), words.next())
        else {
            return refusal("400 Bad Request", "this is no request of HTTP/1.1");
        };
        match (method, target.split('?').next()) {
            ("GET", Some("/healthz")) => ("200 OK", "ok\n".to_owned()),
            ("GET", Some("/leader")) => self.leader().await,
            (_, Some("/healthz" | "/leader")) => {
                refusal("405 Method Not Allowed\r\nAllow: GET", "it is asked for by GET")
            }
            _ => refusal("404 Not Found", "there are /leader and /healthz"),
        }
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
            return ("200 OK", format!("{body}\n"));
        }
        let Some(quorum) = self.quorum.get() else {
            return busy(None, "no majority of the servers has answered yet");
        };
        match time::timeout(LOOK, self.other_name(quorum)).await {
            Ok(Ok(Some(name))) => busy(Some(&name), "another has it"),
            Ok(Ok(None)) => busy(None, "nobody has it"),
            Ok(Err(error)) => busy(None, &Failure::from(error).what),
            Err(_) => busy(None, &format!("no answer within {LOOK:?}")),
        }
    }

    fn own_name(&self, guard: &LockHeld) -> String {
        let hold = guard.hold();
        match self.kind {
            LockKind::Lead(value) => value.to_owned(),
            _ => hold.client_name().unwrap_or(hold.as_str()).to_owned(),
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

fn refusal(status: &'static str, why: &str) -> Answer {
    (status, format!("{}\n", json!({ "error": why })))
}

fn busy(name: Option<&str>, why: &str) -> Answer {
    ("503 Service Unavailable", format!("{}\n", json!({ "name": name, "error": why })))
}
