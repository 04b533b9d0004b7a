//! The watchdog: one task per hold, which renews it and tells its loss.

use std::sync::Arc;

use super::held::Hold;
use crate::{
    engine::{Duty, RoundEnd},
    words::metric,
};

/// Keeps a hold until it ends. Trust does not depend on this task: guards look at the clock
/// themselves.
pub(super) async fn keep(hold: Arc<Hold>) {
    let over = hold.over();
    let clock = hold.coordinator().clock.clone();
    loop {
        let seen = over.version();
        if over.read(|over| *over) {
            return;
        }
        match hold.duty() {
            Duty::Sleep(until) => tokio::select! {
                biased;
                () = over.changed_since(seen) => {}
                () = clock.sleep_until(until) => {}
            },
            Duty::Renew => tokio::select! {
                biased;
                () = over.changed_since(seen) => {}
                () = clock.sleep_until(hold.deadline()) => {}
                () = renew(&hold) => {}
            },
            Duty::Lost => hold.until_lost().await,
        }
    }
}

async fn renew(hold: &Hold) {
    let Some((round, replies)) = hold.renew() else { return };
    let outcome = match hold.conclude(round, replies).await {
        RoundEnd::Renewed => "renewed",
        RoundEnd::Failed => "failed",
        RoundEnd::Superseded => "superseded",
    };
    let kind = hold.record().kind();
    tracing::debug!(lock = hold.name(), hold = %hold.id(), outcome, "renewal");
    metrics::counter!(metric::RENEWALS, "kind" => kind, "outcome" => outcome).increment(1);
}
