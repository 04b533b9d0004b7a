//! A TCP proxy before one server that can delay, hold, swallow and cut what passes.

use std::convert::Infallible;
use std::future::pending;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Sleep;

use super::ports::free_port;
use super::wait::eventually_async;

/// A proxy in front of `127.0.0.1:target`; all its connections close when it is dropped.
///
/// What it counts as a request is a *chunk*: what one read brought, so usually one command, or
/// several that a client sent together. Must be used inside a tokio runtime.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    acceptor: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    target: u16,
    mode: watch::Sender<Mode>,
    plan: Mutex<Option<CutPlan>>,
    /// Replies are held from the next request on that has this in it.
    held_from: Mutex<Option<Vec<u8>>>,
    cuts: AtomicUsize,
    sessions: Mutex<JoinSet<()>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Pass,
    Delay { there: Duration, back: Duration, jitter: Duration },
    HoldReplies,
    BlackHole,
}

/// The connection to cut: the one that carries the last of `left` requests with `naming` in them.
#[derive(Debug)]
struct CutPlan {
    left: usize,
    naming: Vec<u8>,
}

impl Proxy {
    /// Starts a proxy that passes everything to `127.0.0.1:target_port`.
    #[expect(clippy::unused_async, reason = "says that it belongs into a runtime")]
    pub async fn start(target_port: u16) -> Self {
        let shared = Arc::new(Shared {
            target: target_port,
            mode: watch::Sender::new(Mode::Pass),
            plan: Mutex::default(),
            held_from: Mutex::default(),
            cuts: AtomicUsize::new(0),
            sessions: Mutex::default(),
        });
        let (port, listener) = (0..50)
            .map(|_| free_port())
            .find_map(|port| Some((port, listen(port).ok()?)))
            .expect("one of fifty free ports is still free");
        let acceptor = tokio::spawn(accept_all(listener, Arc::clone(&shared)));
        Self { port, shared, acceptor: Mutex::new(Some(acceptor)) }
    }

    /// The port that clients connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `redis://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Passes everything again, held replies first, and forgets what was planned.
    ///
    /// A connection that a black hole took bytes from closes now: no stream has holes.
    pub fn pass(&self) {
        *lock(&self.shared.plan) = None;
        *lock(&self.shared.held_from) = None;
        self.set(Mode::Pass);
    }

    /// From now on requests arrive `there` later, and replies `back` later.
    pub fn delay(&self, there: Duration, back: Duration) {
        self.set(Mode::Delay { there, back, jitter: Duration::ZERO });
    }

    /// From now on each chunk arrives `there` later, and a drawn part of `jitter` after that; a
    /// reply likewise. None overtakes another.
    pub fn delay_unevenly(&self, there: Duration, back: Duration, jitter: Duration) {
        self.set(Mode::Delay { there, back, jitter });
    }

    /// Requests pass, replies wait here until [`pass`](Self::pass).
    pub fn hold_replies(&self) {
        self.set(Mode::HoldReplies);
    }

    /// Passes everything up to the next request with `text` in it; from then on as
    /// [`hold_replies`](Self::hold_replies).
    pub fn hold_replies_from(&self, text: &str) {
        *lock(&self.shared.held_from) = Some(text.into());
    }

    /// Whether replies are held.
    pub fn holds_replies(&self) -> bool {
        self.shared.mode() == Mode::HoldReplies
    }

    /// Accepts and reads, and forwards nothing either way, not even that an end closed.
    pub fn black_hole(&self) {
        self.set(Mode::BlackHole);
    }

    /// Closes all connections; when this returns they are closed. New ones are accepted.
    pub async fn cut(&self) {
        let mut sessions = std::mem::take(&mut *lock(&self.shared.sessions));
        sessions.shutdown().await;
    }

    /// New connections are refused once this returns; standing ones go on.
    pub async fn refuse(&self) {
        let acceptor = lock(&self.acceptor).take();
        if let Some(acceptor) = acceptor {
            acceptor.abort();
            let _ = acceptor.await;
        }
        // A server that is being started elsewhere in this process has what was open here for a
        // moment, until it runs as a program of its own.
        eventually_async("nobody listens any more", async || {
            let connecting = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port())).await;
            connecting.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        })
        .await;
    }

    /// Accepts connections again, on the same port.
    pub fn accept(&self) {
        lock(&self.acceptor).get_or_insert_with(|| {
            let listener = listen(self.port).expect("the proxy's port is free again");
            tokio::spawn(accept_all(listener, Arc::clone(&self.shared)))
        });
    }

    /// Cuts one connection between execution and reply: the `n`-th request from now on (1 is the
    /// next) with `text` in it, a key or a command, over all connections, reaches the server and
    /// runs, and then its connection closes without the reply.
    pub fn cut_after_request_naming(&self, text: &str, n: usize) {
        assert!(n > 0, "requests are counted from 1");
        *lock(&self.shared.plan) = Some(CutPlan { left: n, naming: text.into() });
    }

    /// How many planned cuts have been carried out: the request ran and the connection is closed.
    pub fn cuts(&self) -> usize {
        self.shared.cuts.load(Ordering::SeqCst)
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        let mut sessions = lock(&self.shared.sessions);
        while sessions.try_join_next().is_some() {}
        sessions.len()
    }

    fn set(&self, mode: Mode) {
        self.shared.mode.send_replace(mode);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(acceptor) = lock(&self.acceptor).take() {
            acceptor.abort();
        }
        lock(&self.shared.sessions).abort_all();
    }
}

impl CutPlan {
    /// Counts a request; true where it is the one.
    fn is_met_by(&mut self, chunk: &[u8]) -> bool {
        let named = names(chunk, &self.naming);
        self.left -= usize::from(named);
        self.left == 0
    }
}

fn names(chunk: &[u8], text: &[u8]) -> bool {
    chunk.windows(text.len()).any(|window| window == text)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(port: u16) -> io::Result<TcpListener> {
    // The standard listener sets SO_REUSEADDR, so connections that linger do not keep the port.
    let listener = StdListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

async fn accept_all(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        if let Ok((client, _)) = listener.accept().await {
            let mut sessions = lock(&shared.sessions);
            while sessions.try_join_next().is_some() {}
            sessions.spawn(serve(client, Arc::clone(&shared)));
        }
    }
}

async fn serve(mut client: TcpStream, shared: Arc<Shared>) {
    let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.target)).await else {
        // The server's absence is news that a black hole keeps to itself.
        shared.leave_black_hole().await;
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    if let Some(request) = carry(&mut client, &mut server, &shared).await {
        // The server reads the request before the end of the stream, and closes after that: the
        // end of its own stream tells that the request ran.
        let _ = server.write_all(&request).await;
        let _ = server.shutdown().await;
        let _ = tokio::io::copy(&mut server, &mut tokio::io::sink()).await;
        drop(client);
        shared.cuts.fetch_add(1, Ordering::SeqCst);
    }
}

/// Carries both directions until either ends, or until the request to cut at is next: its bytes,
/// which have not been forwarded.
async fn carry(client: &mut TcpStream, server: &mut TcpStream, shared: &Shared) -> Option<Vec<u8>> {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let (requests_in, requests) = mpsc::unbounded_channel();
    let (replies_in, replies) = mpsc::unbounded_channel();
    tokio::select! {
        // A reader ends by closing its queue, and then goes on for ever: what it read is still to
        // be written.
        never = read_all(from_client, requests_in, Mode::there, shared) => match never {},
        never = read_all(from_server, replies_in, Mode::back, shared) => match never {},
        cut_at = write_requests(requests, to_server, shared) => cut_at,
        () = write_replies(replies, to_client, shared) => None,
    }
}

/// Bytes, and when they have travelled far enough.
type Chunk = (Pin<Box<Sleep>>, Vec<u8>);

async fn read_all(
    mut from: impl AsyncRead + Unpin,
    queue: mpsc::UnboundedSender<Chunk>,
    travel: impl Fn(Mode) -> Duration,
    shared: &Shared,
) -> Infallible {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let arrival = Box::pin(tokio::time::sleep(travel(shared.mode())));
        let _ = queue.send((arrival, buffer[..length].to_vec()));
    }
    drop(queue);
    pending().await
}

/// Ends with the request to cut at, or with nothing when the stream is over.
async fn write_requests(
    mut queue: mpsc::UnboundedReceiver<Chunk>,
    mut to: impl AsyncWrite + Unpin,
    shared: &Shared,
) -> Option<Vec<u8>> {
    while let Some(chunk) = next(&mut queue).await {
        if shared.mode() == Mode::BlackHole {
            break;
        }
        if shared.plan_is_met_by(&chunk) {
            return Some(chunk);
        }
        shared.hold_replies_from(&chunk);
        to.write_all(&chunk).await.ok()?;
    }
    shared.leave_black_hole().await;
    None
}

async fn write_replies(
    mut queue: mpsc::UnboundedReceiver<Chunk>,
    mut to: impl AsyncWrite + Unpin,
    shared: &Shared,
) {
    loop {
        let chunk = next(&mut queue).await;
        shared.wait_until(|mode| mode != Mode::HoldReplies).await;
        match chunk {
            Some(chunk) if shared.mode() != Mode::BlackHole => {
                if to.write_all(&chunk).await.is_err() {
                    return;
                }
            }
            _ => return shared.leave_black_hole().await,
        }
    }
}

async fn next(queue: &mut mpsc::UnboundedReceiver<Chunk>) -> Option<Vec<u8>> {
    let (arrival, chunk) = queue.recv().await?;
    arrival.await;
    Some(chunk)
}

const ZERO: Duration = Duration::ZERO;

/// A part of it.
fn drawn(whole: Duration) -> Duration {
    if whole.is_zero() { whole } else { whole.mul_f64(rand::random()) }
}

impl Mode {
    fn there(self) -> Duration {
        if let Self::Delay { there, jitter, .. } = self { there + drawn(jitter) } else { ZERO }
    }

    fn back(self) -> Duration {
        if let Self::Delay { back, jitter, .. } = self { back + drawn(jitter) } else { ZERO }
    }
}

impl Shared {
    fn mode(&self) -> Mode {
        *self.mode.borrow()
    }

    async fn wait_until(&self, holds: impl Fn(Mode) -> bool) {
        let mut changes = self.mode.subscribe();
        let _ = changes.wait_for(|&mode| holds(mode)).await;
    }

    /// Returns at once where there is no black hole.
    async fn leave_black_hole(&self) {
        self.wait_until(|mode| mode != Mode::BlackHole).await;
    }

    fn hold_replies_from(&self, request: &[u8]) {
        let mut held_from = lock(&self.held_from);
        if held_from.as_ref().is_some_and(|text| names(request, text)) {
            *held_from = None;
            self.mode.send_replace(Mode::HoldReplies);
        }
    }

    fn plan_is_met_by(&self, request: &[u8]) -> bool {
        let mut plan = lock(&self.plan);
        let met = plan.as_mut().is_some_and(|plan| plan.is_met_by(request));
        if met {
            *plan = None;
        }
        met
    }
}
