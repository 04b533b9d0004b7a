//! A small HTTP server: a few paths, and one answer for each connection.

// Written by hand, as no crate that the program already has speaks HTTP, and this is little of it.

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
/// The most connections at the same time.
const MOST: usize = 16;
/// The age before which a connection is not closed to make room.
// On a busy machine the first byte of a probe may come that late.
const GRACE: Duration = Duration::from_millis(200);
/// The longest head of a request, in bytes.
const LONGEST: u64 = 8 * 1024;
/// The pause after the system refused to accept a connection.
const PAUSE: Duration = Duration::from_secs(1);

/// The pages of a server.
pub(crate) trait Pages {
    const PATHS: &'static [&'static str];

    /// The answer to GET of one of the paths.
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

struct Connection<'a> {
    conversation: LocalBoxFuture<'a, io::Result<()>>,
    /// Whether its request has arrived, and is not answered yet.
    is_asking: Rc<Cell<bool>>,
    since: Duration,
}

/// Listens on the address of this option.
pub(crate) async fn listen(option: &str, address: SocketAddr) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(Failure::system(format!("{option} {address}")))
}

/// Answers for ever.
// The oldest connection without a request makes room for a new one. When idle connections kept
// their places, every probe failed, and a kubelet ended each leader in turn
// (`whoever_takes_all_places_and_does_not_go_on_keeps_no_probe_out`).
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
            // Requests that are here go before connections that may never send one.
            biased;
            () = progress(&mut open) => {}
            accepted = accept, if has_room => match accepted {
                Ok((stream, _)) => {
                    if let Some(oldest) = oldest.filter(|_| open.len() >= MOST) {
                        open.remove(oldest);
                    }
                    open.push(connection(pages, stream));
                }
                // Such as too many open files: without a pause this would fill a core.
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
        // Until the client closes: a socket that is closed with unread bytes sends a reset, and the
        // client loses the answer.
        copy(&mut stream, &mut sink()).await.map(drop)
    };
    time::timeout(PATIENCE, reads).await?
}

/// The answer to the first line of a request.
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

/// Completes when a connection has ended, or was answered and may make room from now on.
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

/// The head of a request; empty if it did not arrive completely.
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
