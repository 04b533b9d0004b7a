//! `quorate agent`: holds locks for programs in any language, as their child or as a daemon.
//!
//! `docs/any-language.md` has the protocol, and what a client may trust.

mod connection;
mod holds;
mod metrics;
mod peer;
mod socket;
mod stream;
mod wire;

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use nix::{
    sys::signal::Signal,
    unistd::{getppid, setsid},
};
use quorate::Quorate;
use serde_json::Value;
use tokio::{net::UnixStream, runtime::Handle, sync::watch, task::JoinSet, time};

use self::{
    connection::{Connection, Service},
    peer::Peer,
    socket::Socket,
    stream::Stream,
    wire::Refusal,
};
use crate::{
    console::{Code, Console, Failure},
    http,
    process::{INTERRUPTS, Signals},
    setup::{Setup, VoterOptions},
};

/// How many clients may be connected at once.
const MOST: usize = 1_000;
/// The pause after the system refused to accept a client.
const PAUSE: Duration = Duration::from_millis(100);

/// Hold locks for a program in any language
///
/// Speaks with the program that starts it, over standard input and output, and ends with it. With
/// --socket, it serves all programs of this machine that may connect.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate agent                                        # as the packages for Node and Python start it
  quorate agent --socket /run/quorate/agent.sock
  quorate agent --socket /run/quorate/agent.sock --group www-data")]
pub(crate) struct AgentOptions {
    /// Listen on this Unix socket, in a folder that only this user can enter
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Let this group connect, too: its members see the names of locks
    #[arg(long, value_name = "NAME", requires = "socket")]
    group: Option<String>,

    /// Answer GET /metrics (for Prometheus) and GET /healthz over HTTP, as in 127.0.0.1:4040
    ///
    /// Whoever reaches the address may ask.
    #[arg(long, value_name = "ADDRESS", requires = "socket")]
    metrics: Option<SocketAddr>,

    #[command(flatten)]
    voters: VoterOptions,
}

pub(crate) async fn run(options: AgentOptions, console: &Console) -> Result<Code, Failure> {
    let setup = options.voters.setup();
    let Some(path) = &options.socket else { return serve_parent(setup).await };
    let serving = serve_machine(path, &options, setup?, console);
    let Some(address) = options.metrics else { return serving.await };
    // The recorder before the client, which counts from its first connection on.
    let (listener, metrics) = (http::listen("--metrics", address).await?, metrics::install()?);
    tokio::select! {
        biased;
        ended = serving => ended,
        never = http::serve(&metrics, listener) => match never {},
    }
}

/// Serves all programs of this machine that may connect.
async fn serve_machine(
    path: &Path,
    options: &AgentOptions,
    setup: Setup,
    console: &Console,
) -> Result<Code, Failure> {
    let socket = Socket::bind(path, options.group.as_deref())?;
    let quorum = setup.builder()?.runtime(Handle::current()).connect().await?;
    raise_limit_of_files();
    let mut signals = Signals::listen(&INTERRUPTS)?;
    let (close, closes) = watch::channel(false);
    let service = Arc::new(Service { quorum, lease: setup.lease(), closes });
    let mut open = JoinSet::new();
    accept(&socket, &service, &mut signals, &mut open, console).await;
    // So nobody else connects while the agent waits for the end of what is held.
    drop(socket);
    end(&close, open, &mut signals, &service.quorum).await
}

/// Accepts clients until a signal asks for the end.
async fn accept(
    socket: &Socket,
    service: &Arc<Service>,
    signals: &mut Signals,
    open: &mut JoinSet<()>,
    console: &Console,
) {
    loop {
        tokio::select! {
            biased;
            _ = signals.next() => return,
            Some(_) = open.join_next(), if !open.is_empty() => {}
            accepted = socket.listener.accept() => match accepted {
                Ok((client, _)) => {
                    if let Err(why) = greet(client, service, open) {
                        console.warn(format_args!("a client: {why}"));
                    }
                }
                // Such as too many open files. Without a pause this would fill a core.
                Err(why) => {
                    console.warn(format_args!("a client cannot be accepted: {why}"));
                    time::sleep(PAUSE).await;
                }
            },
        }
    }
}

fn greet(client: UnixStream, service: &Arc<Service>, open: &mut JoinSet<()>) -> io::Result<()> {
    let peer = Peer::of(client.peer_cred()?.pid());
    let stream = Stream::of_socket(client.into_std()?)?;
    if open.len() >= MOST {
        // Said, and not left in the backlog of the socket: the client would wait without a reason.
        let why = Refusal::new("overloaded", format!("the agent has {MOST} clients, and no more"));
        say_at_last(&stream, &wire::no_greeting(&why));
    } else {
        open.spawn(Connection::new(service, stream, peer).serve());
    }
    Ok(())
}

/// Serves the process that started this one.
async fn serve_parent(setup: Result<Setup, Failure>) -> Result<Code, Failure> {
    // First of all: if the parent dies before, this process has another one, which is watched in
    // its place.
    let peer = Peer::of(Some(getppid().as_raw()));
    // A Ctrl-C is for the parent, which then releases its locks by this process
    // (`the_agent_of_a_program_ends_with_its_input_and_not_at_ctrl_c`). The call fails if this
    // process leads a session already.
    let _ = setsid();
    let stream = Stream::of_process();
    let stream = stream.map_err(Failure::system("standard input and output: pipes are needed"))?;
    let mut signals = Signals::listen(&[&INTERRUPTS[..], &[Signal::SIGQUIT]].concat())?;
    let begun = setup.and_then(|setup| Ok((setup.lease(), setup.builder()?)));
    // To the program, which shows it to its user: nobody may read standard error.
    let (lease, builder) = begun.inspect_err(|failure| {
        say_at_last(&stream, &wire::no_greeting(&Refusal::new("invalid", &failure.what)));
    })?;
    let builder = builder.runtime(Handle::current());
    let quorum = builder.connect().await.inspect_err(|error| {
        say_at_last(&stream, &wire::no_greeting(&Refusal::from(error.clone())));
    })?;
    let (close, closes) = watch::channel(false);
    let service = Arc::new(Service { quorum, lease, closes });
    let mut open = JoinSet::new();
    open.spawn(Connection::new(&service, stream, peer).serve());
    loop {
        tokio::select! {
            biased;
            // The others may come to all processes of the parent, which decides what they mean.
            signal = signals.next() => if signal == Signal::SIGTERM { break },
            _ = open.join_next() => break,
        }
    }
    end(&close, open, &mut signals, &service.quorum).await
}

/// Waits until nothing is held any more. A further signal ends the process at once.
// At once also means without a release: clients rely on what they hold until the deadline that they
// got last (`an_agent_that_is_told_twice_ends_at_once_and_releases_nothing`).
async fn end(
    close: &watch::Sender<bool>,
    mut open: JoinSet<()>,
    signals: &mut Signals,
    quorum: &Quorate,
) -> Result<Code, Failure> {
    let _ = close.send(true);
    loop {
        tokio::select! {
            biased;
            _ = signals.next() => process::exit(128 + Signal::SIGTERM as i32),
            ended = open.join_next() => if ended.is_none() { break },
        }
    }
    let _ = quorum.close().await;
    Ok(Code::Fine)
}

fn say_at_last(stream: &Stream, what: &Value) {
    stream.write_now(format!("{what}\n").as_bytes());
}

fn raise_limit_of_files() {
    // Each client takes three: its socket twice, and its process. The usual limit is 1,024.
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        // It may be refused: then fewer come in.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
