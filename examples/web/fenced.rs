//! A holder is paused past its lease, wakes, and sends the write that it was about to send. The
//! lock cannot call it back; the server that takes it refuses it, by its fencing token.
//!
//! `cargo run --package web --bin fenced`
//!
//! A real server and real requests over TCP; the voters are embedded, and the pause is that of a
//! machine that stands still. Every step is checked.

use std::{
    collections::HashMap,
    error::Error,
    fmt::Display,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::put,
};
use quorate::{
    FenceGate, Quorate, Token,
    embedded::{self, Simulated as _},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Short, so that the example is. Renewed from a third of it on.
const LEASE: Duration = Duration::from_millis(500);
const HEADER: &str = "Fencing-Token";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let server = Arc::new(Server::with_invoice("42", "new"));
    let address = Arc::clone(&server).start().await?;
    let voters = embedded::voters(3);
    let machine = embedded::Machine::new("ada");
    let settings = || {
        let settings = Quorate::builder().embedded(&voters).lease(LEASE);
        settings.voter_deadline(Duration::from_millis(50))
    };
    let ada = settings().machine(&machine).connect().await?;
    let ben = settings().connect().await?;

    let (looked, has_looked) = oneshot::channel();
    let (go_on, may_go_on) = oneshot::channel();
    let paused = tokio::spawn(machine.run(async move {
        let guard = ada.mutex("invoice:42").lock().await?;
        let token = guard.token();
        let answer = send(address, &header(token), "written by ada").await?;
        println!("ada holds the lock with token {token} and writes: {}", answer.status);
        check(answer.status == 204, "the holder may write")?;
        check(guard.is_held(), "she holds the lock, and is about to write again")?;
        looked.send(()).map_err(|()| "the story goes on")?;
        may_go_on.await?;
        let answer = send(address, &header(token), "written too late").await?;
        println!("ada wakes and writes what she was about to: {}", answer.status);
        check(!guard.is_held(), "by then the lock is lost")?;
        Ok::<_, Box<dyn Error + Send + Sync>>((token, answer))
    }));
    has_looked.await?;
    machine.stall();
    go_on.send(()).map_err(|()| "she waits for it")?;
    println!("ada looks, and still holds the lock; her machine stands still");

    let guard = ben.mutex("invoice:42").lock().await?;
    let theirs = guard.token();
    let answer = send(address, &header(theirs), "written by ben").await?;
    println!(
        "her lease ends; ben holds the lock with token {theirs} and writes: {}",
        answer.status
    );
    check(answer.status == 204, "the next holder may write")?;

    machine.resume();
    let (hers, answer) = paused.await??;
    println!("the server: {}", answer.body);
    check(hers < theirs, "tokens grow from one hold to the next")?;
    check(answer.status == 412 && answer.highest == Some(theirs), "it is refused, by ben's token")?;
    let twice = [header(hers), header(theirs)].concat();
    for (headers, status) in [(String::new(), 428), (header("soon"), 400), (twice, 400)] {
        let answer = send(address, &headers, "by nobody").await?;
        check(answer.status == status, "a write without one token is told why it is refused")?;
    }
    check(server.invoice("42").as_deref() == Some("written by ben"), "nothing was overwritten")?;
    guard.release().await?;
    println!("the invoice is as ben wrote it");
    Ok(())
}

/// What the lock protects.
struct Server {
    gate: FenceGate,
    invoices: Mutex<HashMap<String, String>>,
}

impl Server {
    fn with_invoice(id: &str, text: &str) -> Self {
        let invoices = HashMap::from([(id.to_owned(), text.to_owned())]);
        Self { gate: FenceGate::new(), invoices: Mutex::new(invoices) }
    }

    /// Serves on a free port as long as the program runs.
    async fn start(self: Arc<Self>) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let routes = Router::new().route("/invoices/{id}", put(write)).with_state(self);
        tokio::spawn(async { axum::serve(listener, routes).await });
        Ok(address)
    }

    fn invoice(&self, id: &str) -> Option<String> {
        self.invoices.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }
}

async fn write(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    text: String,
) -> Response {
    let token = match token_of(&headers) {
        Ok(token) => token,
        Err(refusal) => return refusal.into_response(),
    };
    // The gate remembers each name that it lets pass.
    if server.invoice(&id).is_none() {
        return StatusCode::NOT_FOUND.into_response();
    }
    let write = || {
        let mut invoices = server.invoices.lock().unwrap_or_else(PoisonError::into_inner);
        invoices.insert(id.clone(), text);
    };
    // The check and the write are one step.
    match server.gate.guarded(&id, token, write) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(stale) => {
            let highest = [(HEADER, stale.highest.to_string())];
            (StatusCode::PRECONDITION_FAILED, highest, stale.to_string()).into_response()
        }
    }
}

fn token_of(headers: &HeaderMap) -> Result<Token, (StatusCode, String)> {
    let mut values = headers.get_all(HEADER).iter();
    let missing = || (StatusCode::PRECONDITION_REQUIRED, format!("{HEADER} is missing"));
    let unreadable = |why: &str| (StatusCode::BAD_REQUEST, format!("{HEADER}: {why}"));
    let value = values.next().ok_or_else(missing)?;
    if values.next().is_some() {
        return Err(unreadable("more than one"));
    }
    let text = value.to_str().map_err(|error| unreadable(&error.to_string()))?;
    text.parse().map_err(|error: quorate::Error| unreadable(&error.to_string()))
}

struct Answer {
    status: u16,
    /// The token in the answer.
    highest: Option<Token>,
    body: String,
}

fn header(token: impl Display) -> String {
    format!("{HEADER}: {token}\r\n")
}

/// One request, on a connection of its own.
async fn send(server: SocketAddr, headers: &str, text: &str) -> Outcome<Answer> {
    let length = text.len();
    let request = format!(
        "PUT /invoices/42 HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\
         {headers}Content-Length: {length}\r\n\r\n{text}"
    );
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no HTTP")?;
    let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    let mut tokens = headers.filter(|(name, _)| name.eq_ignore_ascii_case(HEADER));
    let highest = tokens.next().map(|(_, token)| token.parse()).transpose()?;
    Ok(Answer { status, highest, body: body.to_owned() })
}

fn check(holds: bool, claim: &str) -> Outcome {
    if holds { Ok(()) } else { Err(format!("not as told: {claim}").into()) }
}
