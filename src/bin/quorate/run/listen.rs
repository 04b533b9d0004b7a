//! What others ask over HTTP: whether this process holds the lock, and whether it works.
//!
//! Two paths, and one answer for each connection. That little of HTTP is written here, as no crate
//! that the program has anyway speaks it.

use std::{
    cell::{Cell, OnceCell, RefCell},
    convert::Infallible,
    future::poll_fn,
    io,
    rc::{Rc, Weak},
    str,
    task::Poll,
    time::Duration,
};

use futures::{FutureExt, future::LocalBoxFuture};
use quorate::{Error, Quorate};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, sink},
    net::{TcpListener, TcpStream},
    sync::Mutex,
    time,
};

use crate::{
    clock,
    console::Failure,
    lock::{self, LockHeld, LockKind},
};

/// How long a request may take to arrive, and its answer to be read.
const PATIENCE: Duration = Duration::from_secs(1);
/// The voters are asked who else has the lock for this time at most, and their answer is reused
/// for as long.
const LOOK: Duration = Duration::from_secs(1);
/// So many connections at once.
const MOST: usize = 16;
/// In bytes. A longer head is none of a request that is answered here.
const LONGEST: u64 = 8 * 1024;

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

/// The status, and the body.
type Answer = (&'static str, String);

/// One that was accepted.
struct Connection<'a> {
    conversation: LocalBoxFuture<'a, io::Result<()>>,
    /// All of the request is there, and its answer is not.
    is_asking: Rc<Cell<bool>>,
}

impl<'a> Desk<'a> {
    pub(super) fn new(kind: LockKind<'a>, name: &'a str) -> Self {
        let (quorum, lock) = (OnceCell::new(), RefCell::default());
        Self { kind, name, quorum, lock, others: Mutex::new(None) }
    }

    /// Whoever sends nothing, or keeps the connection for nothing, makes room for those that ask.
    pub(super) async fn serve(&self, listener: TcpListener) -> Infallible {
        // The oldest first.
        let mut open: Vec<Connection<'_>> = Vec::new();
        loop {
            let oldest = open.iter().position(|connection| !connection.is_asking.get());
            let has_room = open.len() < MOST || oldest.is_some();
            tokio::select! {
                biased;
                () = progress(&mut open) => {}
                accepted = listener.accept(), if has_room => match accepted {
                    Ok((stream, _)) => {
                        if let Some(oldest) = oldest.filter(|_| open.len() >= MOST) {
                            open.remove(oldest);
                        }
                        open.push(self.connection(stream));
                    }
                    // Such as too many open files.
                    Err(_) => time::sleep(LOOK).await,
                },
            }
        }
    }

    fn connection(&self, stream: TcpStream) -> Connection<'_> {
        let is_asking = Rc::new(Cell::new(false));
        let conversation = self.converse(stream, Rc::clone(&is_asking)).boxed_local();
        Connection { conversation, is_asking }
    }

    async fn converse(&self, mut stream: TcpStream, is_asking: Rc<Cell<bool>>) -> io::Result<()> {
        let head = time::timeout(PATIENCE, read_head(&mut stream)).await??;
        is_asking.set(true);
        let line = str::from_utf8(&head).unwrap_or_default().lines().next().unwrap_or_default();
        let (status, body) = self.answer(line).await;
        is_asking.set(false);
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let reads = async {
            stream.write_all(answer.as_bytes()).await?;
            stream.shutdown().await?;
            // To close it with something unread would take the answer back.
            copy(&mut stream, &mut sink()).await.map(drop)
        };
        time::timeout(PATIENCE, reads).await?
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

/// Completes when a connection has ended, or one may make room that might not before.
async fn progress(open: &mut Vec<Connection<'_>>) {
    poll_fn(|context| {
        let (before, mut has_changed) = (open.len(), false);
        open.retain_mut(|connection| {
            let was_asking = connection.is_asking.get();
            let goes_on = connection.conversation.poll_unpin(context).is_pending();
            has_changed |= was_asking && !connection.is_asking.get();
            goes_on
        });
        if has_changed || open.len() < before { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// What came up to the empty line; nothing where that never came.
async fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut rest = stream.take(LONGEST);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if rest.read_buf(&mut head).await? == 0 {
            return Ok(Vec::new());
        }
    }
    Ok(head)
}

fn refusal(status: &'static str, why: &str) -> Answer {
    (status, format!("{}\n", json!({ "error": why })))
}

fn busy(name: Option<&str>, why: &str) -> Answer {
    ("503 Service Unavailable", format!("{}\n", json!({ "name": name, "error": why })))
}
