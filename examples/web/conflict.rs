//! A handler that answers 409 with `Retry-After` while another request works on the same invoice.
//!
//! ```text
//! QUORATE_VOTERS="redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3" \
//!     cargo run --package web --bin conflict
//! ```
//!
//! It shows two requests for one invoice to itself, and ends. Without voters it runs on embedded
//! ones.

use std::{env, time::Duration};

use axum::{
    extract::{Path, State},
    http::{StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use quorate::{Builder, Error, Quorate, embedded};

/// How long a request waits for the invoice before it answers 409.
const PATIENCE: Duration = Duration::from_millis(100);
/// What the HTTP client is told to wait. Paying takes less than a second. `Error::lease_left` is
/// only a bound, the rest of the holder's lease: a client that waits for it waits up to 30 s.
const RETRY_AFTER_SECONDS: &str = "1";

async fn pay(State(quorum): State<Quorate>, Path(id): Path<u64>) -> Response {
    let Err(error) = paid(&quorum, id).await else {
        return format!("invoice {id} is paid\n").into_response();
    };
    // For the operator alone: the error names hosts and holds.
    eprintln!("invoice {id}: {error}");
    let (status, text) = if error.is_busy() {
        (StatusCode::CONFLICT, "another request is paying this invoice\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "invoices cannot be paid now\n")
    };
    (status, [(RETRY_AFTER, RETRY_AFTER_SECONDS)], text).into_response()
}

async fn paid(quorum: &Quorate, id: u64) -> Result<(), Error> {
    let guard = quorum.mutex(format!("invoice:{id}")).lock_or_busy(PATIENCE).await?;
    guard.while_held(tokio::time::sleep(3 * PATIENCE)).await?;
    guard.release().await
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let builder = match env::var_os("QUORATE_VOTERS") {
        Some(_) => Builder::from_env()?,
        None => Quorate::builder().embedded(&embedded::voters(3)),
    };
    let quorum = builder.connect().await?;
    // A service passes `pay` to its router.
    let request = || pay(State(quorum.clone()), Path(42));
    for response in <[_; 2]>::from(tokio::join!(request(), request())) {
        println!("{} {:?}", response.status(), response.headers().get(RETRY_AFTER));
    }
    quorum.close().await;
    Ok(())
}
