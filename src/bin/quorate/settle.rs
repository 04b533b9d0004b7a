//! A client is connected when a majority answers: the others may need a moment more.

use std::time::Duration;

use quorate::{Cause, Quorate};
use tokio::time;

/// For so long at most they are waited for.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until it is known of each voter whether it answers.
pub(crate) async fn settle(quorum: &Quorate) {
    let known = async {
        while !is_known(quorum).await {
            time::sleep(PAUSE).await;
        }
    };
    // What is not known by then is shown as it is.
    let _ = time::timeout(PATIENCE, known).await;
}

async fn is_known(quorum: &Quorate) -> bool {
    let status = quorum.status().await;
    status.voters.iter().all(|voter| !matches!(voter.connection, Err(Cause::TimedOut(_))))
}
