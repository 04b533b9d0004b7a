//! A handler that answers 409 with `Retry-After` while another request works on the same invoice.
//!
//! `cargo run --package web --bin conflict`, on voters inside the process: it shows two requests
//! for one invoice to itself, and ends.

use std::time::Duration;

use axum::{
    extract::{Path, State},
    http::{StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use quorate::{Error, Quorate, embedded};

/// How long a request waits for the invoice before it answers 409.
const PATIENCE: Duration = Duration::from_millis(100);

struct Failure(Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Self(error) = self;
        let status =
            if error.is_busy() { StatusCode::CONFLICT } else { StatusCode::SERVICE_UNAVAILABLE };
        let again = error.retry_after().unwrap_or(Duration::from_secs(1));
        let seconds = again.as_secs().max(1).to_string();
        (status, [(RETRY_AFTER, seconds)], error.to_string()).into_response()
    }
}

async fn pay(State(quorum): State<Quorate>, Path(id): Path<u64>) -> Result<String, Failure> {
    let guard = quorum.mutex(format!("invoice:{id}")).lock_or_busy(PATIENCE).await?;
    guard.while_held(tokio::time::sleep(3 * PATIENCE)).await?;
    guard.release().await?;
    Ok(format!("invoice {id} is paid\n"))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    // A service passes `pay` to its router, and takes the addresses of its servers from somewhere.
    let quorum = Quorate::builder().embedded(&embedded::voters(3)).connect().await?;
    let request = || pay(State(quorum.clone()), Path(42));
    for response in <[_; 2]>::from(tokio::join!(request(), request())) {
        let response = response.into_response();
        println!("{} {:?}", response.status(), response.headers().get(RETRY_AFTER));
    }
    quorum.close().await;
    Ok(())
}
