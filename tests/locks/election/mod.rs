//! What users of elections rely on. Each test's name is the claim; each claim is written once and
//! holds on voters inside the process and on real servers.

mod basics;
mod ends;
mod inputs;
mod observed;
mod seen;
mod unknown;

use std::time::Duration;

use quorate::{Leader, Observed, Observer};
use tokio::time::timeout;

use quorate_tests::fixture::secs;

/// What the leader is called that the voters name.
fn led_by(observed: &Observed) -> Option<&str> {
    match observed {
        Observed::Leader(leader) => leader.text(),
        other => panic!("no leader: {other:?}"),
    }
}

/// The next that is observed; a busy machine may take its time.
async fn observed(observer: &mut Observer) -> Observed {
    let next = timeout(Duration::from_mins(1), observer.next()).await;
    next.expect("something is observed").expect("the client is open")
}

/// Waits until this is observed. What is so for a moment only may be seen on the way.
async fn until_led(observer: &mut Observer, value: &str) -> Leader {
    loop {
        match observed(observer).await {
            Observed::Leader(leader) if leader.text() == Some(value) => return leader,
            _ => {}
        }
    }
}

async fn until_vacant(observer: &mut Observer) {
    while !matches!(observed(observer).await, Observed::NoLeader) {}
}

/// A minute passes in no time on embedded voters.
const PATIENCE: Duration = secs(60);
