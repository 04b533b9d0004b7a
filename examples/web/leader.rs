//! Three replicas of a service of which one works: the leader. Each tells at `/leader` who it is.
//!
//! ```text
//! export QUORATE_VOTERS="redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3"
//! for port in 8081 8082 8083; do
//!     QUORATE_LISTEN=127.0.0.1:$port cargo run --package web --bin leader &
//! done
//! curl localhost:8082/leader    # {"leader":"127.0.0.1:8081","token":..,"is_me":false}
//! kill -9 %1                    # within a lease of 5 s another one leads
//! curl localhost:8082/leader
//! ```
//!
//! `/leader` answers 200 if it is known who leads, or that nobody does (`"leader":null`), and 503
//! if that cannot be known. A replica that is told to end resigns: another one leads at once.
//! Without `QUORATE_VOTERS` three replicas run in this process, and one of them is killed.

use std::{
    env,
    error::Error,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use quorate::{
    Builder, Election, Leadership, Observed, Quorate,
    embedded::{self, Machine},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::sleep,
};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// For so long nobody leads after a leader has died.
const LEASE: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Outcome {
    if env::var_os("QUORATE_VOTERS").is_none_or(|voters| voters.is_empty()) {
        return show().await;
    }
    let quorum = Builder::from_env()?.connect().await?;
    let listen = env::var("QUORATE_LISTEN").unwrap_or_else(|_| "127.0.0.1:8080".to_owned());
    let listener = TcpListener::bind(&listen).await?;
    println!("listening at {}", listener.local_addr()?);
    tokio::select! {
        ended = replica(quorum.clone(), listener) => ended?,
        told = tokio::signal::ctrl_c() => told?,
    }
    // Resigns, if it leads.
    quorum.close().await?;
    Ok(())
}

/// What a replica knows of who leads.
#[derive(Clone)]
struct Known {
    address: SocketAddr,
    observed: Arc<Mutex<Option<Observed>>>,
}

/// One replica: it wants to lead, watches who does, and tells it.
async fn replica(quorum: Quorate, listener: TcpListener) -> Outcome {
    let election = quorum.election("worker").lease(LEASE);
    let known = Known { address: listener.local_addr()?, observed: Arc::default() };
    let serving = serve(listener, known.clone());
    tokio::select! {
        ended = campaign(&election, known.address) => ended,
        () = watch(&election, &known) => Ok(()),
        served = serving => served,
    }
}

/// The HTTP side of a replica.
async fn serve(listener: TcpListener, known: Known) -> Outcome {
    let routes = Router::new().route("/leader", get(leader)).with_state(known);
    Ok(axum::serve(listener, routes).await?)
}

/// Leads whenever its turn comes, and works for as long as it leads.
async fn campaign(election: &Election, address: SocketAddr) -> Outcome {
    loop {
        let leadership = election.campaign(address.to_string()).await?;
        println!("{address} leads");
        if let Err(lost) = leadership.while_leader(work(&leadership)).await {
            println!("{address} leads no more: {lost}");
        }
    }
}

/// What only the leader does. What it changes should be told its token, and refuse a lower one.
async fn work(leadership: &Leadership) {
    let _token = leadership.token();
    std::future::pending::<()>().await;
}

/// Ends when the client is closed.
async fn watch(election: &Election, known: &Known) {
    let mut observer = election.observe();
    while let Some(observed) = observer.next().await {
        *known.observed.lock().expect("nobody panics with it") = Some(observed);
    }
}

async fn leader(State(known): State<Known>) -> Response {
    let observed = known.observed.lock().expect("nobody panics with it").clone();
    let (status, body) = match observed {
        Some(Observed::Leader(leader)) => {
            let is_me = leader.text() == Some(&known.address.to_string());
            let token = u64::from(leader.token());
            let body = json!({ "leader": leader.text(), "token": token, "is_me": is_me });
            (StatusCode::OK, body)
        }
        Some(Observed::NoLeader) => (StatusCode::OK, json!({ "leader": null })),
        Some(other) => {
            let error = format!("it cannot be known who leads: {other:?}");
            (StatusCode::SERVICE_UNAVAILABLE, json!({ "error": error }))
        }
        None => (StatusCode::SERVICE_UNAVAILABLE, json!({ "error": "not asked yet" })),
    };
    (status, [(CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}

/// Three replicas on voters inside the process, each on a machine of its own; the machine of the
/// leader dies.
async fn show() -> Outcome {
    let voters = embedded::voters(3);
    let mut replicas = Vec::new();
    for name in ["one", "two", "three"] {
        let machine = Machine::new(name);
        let builder = Quorate::builder().embedded(&voters).machine(&machine);
        let quorum = builder.connect().await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let running = machine.run(async move {
            if let Err(error) = replica(quorum, listener).await {
                println!("{address} has ended: {error}");
            }
        });
        tokio::spawn(running);
        replicas.push((address, machine));
    }
    let first = until_led(replicas[2].0, None).await?;
    println!("GET /leader: {first}");
    let leads = |(address, _): &(SocketAddr, Machine)| first["leader"] == address.to_string();
    let leader = replicas.iter().position(leads).ok_or("no replica leads")?;
    let (_, dead) = replicas.swap_remove(leader);
    dead.kill();
    println!("the leader is dead; its lease of {LEASE:?} ends");
    let next = until_led(replicas[0].0, Some(&first["leader"])).await?;
    println!("GET /leader: {next}");
    Ok(())
}

/// Asks a replica until one leads that is not this one.
async fn until_led(replica: SocketAddr, before: Option<&Value>) -> Outcome<Value> {
    loop {
        if let Ok(seen) = get_leader(replica).await
            && seen["leader"].is_string()
            && Some(&seen["leader"]) != before
        {
            return Ok(seen);
        }
        sleep(Duration::from_millis(50)).await;
    }
}

async fn get_leader(replica: SocketAddr) -> Outcome<Value> {
    let request = format!("GET /leader HTTP/1.1\r\nHost: {replica}\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(replica).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("no HTTP")?;
    Ok(serde_json::from_str(body)?)
}
