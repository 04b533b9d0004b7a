//! A complete HTTP service that works under locks: copy this file, and put your work into
//! `work_alone`. It answers 409 with `Retry-After` while another request has the lock, has metrics
//! and a readiness probe, and ends well at SIGTERM. It needs `quorate` with the
//! feature `embedded`, `tokio` with `full`, and `axum`, `metrics-exporter-prometheus`, `serde_json`,
//! `tracing` and `tracing-subscriber`.
//!
//! ```text
//! export QUORATE_VOTERS="redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3"
//! cargo run --package web --bin service &
//! curl -X POST localhost:8080/jobs/report          # works for a moment, with the lock `report`
//! curl -X POST -d 60000 localhost:8080/jobs/report # for so many milliseconds
//! curl localhost:8080/health                    # 200 with a quorum of voters, else 503
//! curl localhost:8080/metrics                   # for Prometheus: see deploy/
//! ```
//!
//! It listens at `QUORATE_LISTEN` (127.0.0.1:8080), takes further settings from the variables that
//! `Builder::from_env` reads, logs to standard error as `RUST_LOG` says (`info,fred=off`), and ends
//! at ctrl-c and SIGTERM: when it has answered, or ten seconds later, and has given its locks back.
//! Without voters it runs on embedded ones, shows some requests to itself, and ends: `show` and all
//! below it are only for that.
//!
//! Here the request names the lock. A real service knows its own, and lets nobody else name one.

use std::{env, error::Error, future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, State},
    http::{
        StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
    routing::{get, post},
};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use quorate::{Builder, Quorate, Token, embedded, metric};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    time::{interval, sleep},
};
use tracing_subscriber::EnvFilter;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// For so long a request waits for a lock that another has.
const PATIENCE: Duration = Duration::from_secs(1);
/// What an HTTP client is told to wait, in seconds: a little longer than most work takes.
/// `Error::lease_left` is only a bound, the rest of the holder's lease, up to 30 s.
const WAIT: &str = "1";
/// How long work takes, unless the request says it.
const WORK: Duration = Duration::from_millis(50);
/// And at most.
const LONGEST: Duration = Duration::from_mins(10);
/// For how long requests go on once the service is told to end.
const GRACE: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Outcome {
    // fred, the Redis client underneath, has lines of its own for what quorate says in its events.
    let filter = || EnvFilter::new("info,fred=off");
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| filter());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
    // Before connecting: the recorder is told then what there will be.
    let metrics = record()?;
    if env::var_os("QUORATE_VOTERS").is_none_or(|voters| voters.is_empty()) {
        return show(metrics).await;
    }
    let quorum = Builder::from_env()?.connect().await?;
    let listen = env::var("QUORATE_LISTEN").unwrap_or_else(|_| "127.0.0.1:8080".to_owned());
    let listener = TcpListener::bind(&listen).await?;
    println!("listening at {}", listener.local_addr()?);
    serve(listener, Service { quorum, metrics }, told_to_end()).await
}

#[derive(Clone)]
struct Service {
    quorum: Quorate,
    metrics: PrometheusHandle,
}

/// Until `end` completes.
async fn serve(
    listener: TcpListener,
    service: Service,
    end: impl Future<Output = ()> + Send + 'static,
) -> Outcome {
    let quorum = service.quorum.clone();
    let routes = Router::new()
        .route("/jobs/{name}", post(work))
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .with_state(service);
    let (told, ending) = oneshot::channel();
    let end = async {
        end.await;
        // Whoever serves is there to hear it.
        let _ = told.send(());
    };
    let serving = axum::serve(listener, routes).with_graceful_shutdown(end).into_future();
    let out_of_grace = async {
        // An error: it serves no more, and the other branch says so.
        let _ = ending.await;
        sleep(GRACE).await;
    };
    tokio::select! {
        served = serving => served?,
        () = out_of_grace => tracing::warn!("requests are given up"),
    }
    // Returns when the voters know of every release, or says which lock stays taken for a while.
    if let Err(error) = quorum.close().await {
        tracing::warn!(%error, "not released yet");
    }
    Ok(())
}

/// Without the buckets the exporter would write summaries, which the dashboard cannot read.
fn record() -> Result<PrometheusHandle, BuildError> {
    let mut prometheus = PrometheusBuilder::new();
    for (name, buckets) in metric::buckets() {
        prometheus = prometheus.set_buckets_for_metric(Matcher::Full(name.into()), buckets)?;
    }
    let handle = prometheus.install_recorder()?;
    // What was measured is put into the buckets when somebody asks; or here, if nobody does.
    let kept = handle.clone();
    tokio::spawn(async move {
        let mut often = interval(Duration::from_secs(5));
        loop {
            often.tick().await;
            kept.run_upkeep();
        }
    });
    Ok(handle)
}

async fn work(
    State(service): State<Service>,
    Path(name): Path<String>,
    milliseconds: String,
) -> Response {
    let time = match milliseconds.trim() {
        "" => Ok(WORK),
        text => text.parse().map(Duration::from_millis),
    };
    let Some(time) = time.ok().filter(|time| *time <= LONGEST) else {
        let error = format!("how many milliseconds, up to {}?", LONGEST.as_millis());
        return answer(StatusCode::BAD_REQUEST, &json!({ "error": error }));
    };
    let error = match work_alone(&service.quorum, &name, time).await {
        Ok(token) => return answer(StatusCode::OK, &json!({ "token": u64::from(token) })),
        Err(error) => error,
    };
    // For the operator alone: the error names hosts and holds.
    tracing::warn!(lock = name, %error, "no work");
    let later = |status, text| {
        ([(RETRY_AFTER, WAIT)], answer(status, &json!({ "error": text }))).into_response()
    };
    match &error {
        error if error.is_busy() => later(StatusCode::CONFLICT, "another request has the lock"),
        error if error.is_no_quorum() || error.is_closed() => {
            later(StatusCode::SERVICE_UNAVAILABLE, "no lock can be had now")
        }
        error if error.is_invalid() => {
            answer(StatusCode::BAD_REQUEST, &json!({ "error": error.to_string() }))
        }
        // It was lost: the work was not finished, or may not have been alone.
        _ => answer(
            StatusCode::INTERNAL_SERVER_ERROR,
            &json!({ "error": "the work may not be done" }),
        ),
    }
}

async fn work_alone(quorum: &Quorate, name: &str, time: Duration) -> Result<Token, quorate::Error> {
    let guard = quorum.mutex(name).lock_or_busy(PATIENCE).await?;
    // What the work changes should be told this token, and refuse a lower one.
    let token = guard.token();
    // Dropped between two of its steps where the lock is lost.
    guard.while_held(sleep(time)).await?;
    match guard.release().await {
        // It was held all along. Who is next may have to wait until its lease ends.
        Err(error) if error.is_unconfirmed() => tracing::warn!(lock = name, %error, "not released"),
        released => released?,
    }
    Ok(token)
}

/// Whether locks can be given; why not, by voter.
async fn health(State(service): State<Service>) -> Response {
    let status = service.quorum.status().await;
    let code = if status.has_quorum() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let voters: Vec<Value> = status.voters.iter().map(|voter| json!(voter.to_string())).collect();
    let (counting, needed) = (status.counting(), status.needed());
    answer(code, &json!({ "counting": counting, "needed": needed, "voters": voters }))
}

async fn metrics(State(service): State<Service>) -> Response {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], service.metrics.render()).into_response()
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}

/// ctrl-c, or SIGTERM.
async fn told_to_end() {
    let interrupted = tokio::signal::ctrl_c();
    match signal(SignalKind::terminate()) {
        Ok(mut terminated) => tokio::select! {
            _ = interrupted => {}
            _ = terminated.recv() => {}
        },
        Err(_) => drop(interrupted.await),
    }
}

/// Requests to itself, on voters inside the process.
async fn show(metrics: PrometheusHandle) -> Outcome {
    let voters = embedded::voters(3);
    let quorum = Quorate::builder().embedded(&voters).connect().await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let ended = Arc::new(tokio::sync::Notify::new());
    let end = Arc::clone(&ended);
    let service = Service { quorum, metrics };
    let serving = tokio::spawn(serve(listener, service, async move { end.notified().await }));

    tell(address, "POST", "jobs/report", "").await?;
    let long = tokio::spawn(async move { send(address, "POST", "jobs/report", "2000").await });
    while held(address).await? == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    tell(address, "POST", "jobs/report", "").await?;
    println!("that for two seconds: {}", long.await??);
    tell(address, "GET", "health", "").await?;
    voters[0].kill();
    voters[1].kill();
    println!("two of three voters are dead");
    tell(address, "POST", "jobs/report", "").await?;
    tell(address, "GET", "health", "").await?;
    let page = send(address, "GET", "metrics", "").await?;
    let counted = |line: &&str| line.starts_with("quorate_acquire_seconds_count");
    page.lines().filter(counted).for_each(|line| println!("{line}"));

    ended.notify_one();
    serving.await?
}

/// How many locks its metrics say that it holds.
async fn held(service: SocketAddr) -> Outcome<u64> {
    let page = send(service, "GET", "metrics", "").await?;
    let mut lines = page.lines();
    let held = lines.find_map(|line| line.strip_prefix(r#"quorate_held{kind="mutex"} "#));
    Ok(held.ok_or("no such metric")?.parse()?)
}

async fn tell(service: SocketAddr, method: &str, path: &str, body: &str) -> Outcome {
    println!("{method} /{path}: {}", send(service, method, path, body).await?);
    Ok(())
}

/// One request, on a connection of its own: the status and the body of the answer.
async fn send(service: SocketAddr, method: &str, path: &str, body: &str) -> Outcome<String> {
    let length = body.len();
    let request = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {service}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(service).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no HTTP")?;
    let status = head.split(' ').nth(1).ok_or("no status")?;
    Ok(format!("{status} {}", body.trim_end()))
}
