//! What others ask over HTTP of this process.
//!
//! A few paths, and one answer for each connection. That little of HTTP is written here, as no crate
//! that the program has anyway speaks it.

use std::{
    cell::Cell, convert::Infallible, future::poll_fn, io, net::SocketAddr, rc::Rc, str, task::Poll,
    time::Duration,
};

use futures::{
    FutureExt,
    future::{LocalBoxFuture, OptionFuture},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, sink},
    net::{TcpListener, TcpStream},
    time,
};

use crate::{clock, console::Failure};

/// How long a request may take to arrive, and its answer to be read.
const PATIENCE: Duration = Duration::from_secs(1);
/// So many connections at once.
const MOST: usize = 16;
/// A connection younger than this is not closed to make room. On a busy machine its first byte may
/// come that late.
const GRACE: Duration = Duration::from_millis(200);
/// In bytes. A longer head is none of a request that is answered here.
const LONGEST: u64 = 8 * 1024;
/// Before the next connection is accepted, where the system refuses one.
const PAUSE: Duration = Duration::from_secs(1);

/// What there is to be asked for.
pub(crate) trait Pages {
    /// Their paths, which are asked for by GET.
    const PATHS: &'static [&'static str];

    /// To one of the paths.
    async fn page(&self, path: &str) -> Answer;
}

#[derive(Clone)]
pub(crate) struct Answer {
    status: &'static str,
    content: &'static str,
    body: String,
}

impl Answer {
    pub(crate) fn fine(body: impl Into<String>) -> Self {
        Self { status: "200 OK", content: "application/json", body: body.into() }
    }

    pub(crate) fn text(body: String) -> Self {
        Self { content: "text/plain; version=0.0.4", ..Self::fine(body) }
    }

    /// With a body of JSON.
    pub(crate) fn failed(status: &'static str, body: &serde_json::Value) -> Self {
        Self { status, ..Self::fine(format!("{body}\n")) }
    }

    fn refused(status: &'static str, why: &str) -> Self {
        Self::failed(status, &json!({ "error": why }))
    }
}

/// One that was accepted.
struct Connection<'a> {
    conversation: LocalBoxFuture<'a, io::Result<()>>,
    /// All of the request is there, and its answer is not.
    is_asking: Rc<Cell<bool>>,
    /// By the clock of this program.
    since: Duration,
}

/// `option`: which names the address.
pub(crate) async fn listen(option: &str, address: SocketAddr) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(Failure::system(format!("{option} {address}")))
}

/// Whoever sends nothing, or keeps the connection for nothing, makes room for those that ask.
pub(crate) async fn serve(pages: &impl Pages, listener: TcpListener) -> Infallible {
    // The oldest first.
    let mut open: Vec<Connection<'_>> = Vec::new();
    loop {
        let oldest = open.iter().position(|connection| !connection.is_asking.get());
        let has_room = open.len() < MOST || oldest.is_some();
        let leaves = oldest.filter(|_| open.len() >= MOST);
        let grace = leaves.map(|it| (open[it].since + GRACE).saturating_sub(clock::now()));
        let accept = async {
            OptionFuture::from(grace.map(time::sleep)).await;
            listener.accept().await
        };
        tokio::select! {
            biased;
            () = progress(&mut open) => {}
            accepted = accept, if has_room => match accepted {
                Ok((stream, _)) => {
                    if let Some(oldest) = oldest.filter(|_| open.len() >= MOST) {
                        open.remove(oldest);
                    }
                    open.push(connection(pages, stream));
                }
                // Such as too many open files.
                Err(_) => time::sleep(PAUSE).await,
            },
        }
    }
}

fn connection(pages: &impl Pages, stream: TcpStream) -> Connection<'_> {
    let is_asking = Rc::new(Cell::new(false));
    let conversation = converse(pages, stream, Rc::clone(&is_asking)).boxed_local();
    Connection { conversation, is_asking, since: clock::now() }
}

async fn converse(
    pages: &impl Pages,
    mut stream: TcpStream,
    is_asking: Rc<Cell<bool>>,
) -> io::Result<()> {
    let head = time::timeout(PATIENCE, read_head(&mut stream)).await??;
    is_asking.set(true);
    let line = str::from_utf8(&head).unwrap_or_default().lines().next().unwrap_or_default();
    let Answer { status, content, body } = answer(pages, line).await;
    is_asking.set(false);
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {}\r\n\
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
async fn answer<P: Pages>(pages: &P, request: &str) -> Answer {
    let mut words = request.split(' ');
    let (method, target) = (words.next(), words.next());
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (method, target, words.next(), words.next())
    else {
        return Answer::refused("400 Bad Request", "this is no request of HTTP/1.1");
    };
    let path = target.split('?').next().unwrap_or_default();
    if !P::PATHS.contains(&path) {
        let why = format!("there are {}", P::PATHS.join(" and "));
        return Answer::refused("404 Not Found", &why);
    }
    match method {
        "GET" => pages.page(path).await,
        _ => Answer::refused("405 Method Not Allowed\r\nAllow: GET", "it is asked for by GET"),
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
