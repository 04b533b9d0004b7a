//! The watchdog: one task per hold, which renews it and tells its loss.

use std::sync::Arc;

use tracing::field::Empty;

use super::held::{Exchange, Hold};
use crate::{
    coordinator::Coordinator,
    engine::{Duty, RoundEnd},
    words::{Listed, metric},
};

/// Keeps a hold until it ends. Trust does not depend on this task: guards look at the clock
/// themselves. `exchange`: the answers to the latest round that are still to come.
pub(super) fn keep(hold: Arc<Hold>, exchange: Exchange) -> impl Future<Output = ()> {
    // Now: a voter may come back before the task first runs.
    let seen_return = hold.coordinator().panel.standings.returned().version();
    let kept = Kept(Arc::clone(&hold));
    async move {
        watch(hold, exchange, seen_return).await;
        drop(kept);
    }
}

/// Where the watchdog ends before its hold, nobody renews that any more.
struct Kept(Arc<Hold>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

async fn watch(hold: Arc<Hold>, mut exchange: Exchange, mut seen_return: u64) {
    let over = hold.over();
    let Coordinator { clock, panel, .. } = &**hold.coordinator();
    let returned = panel.standings.returned();
    let mut failing = false;
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
                // A voter has come back: before others forget, it is told what it had. Or less is
                // left of the lease than it seemed.
                () = returned.changed_since(seen_return) => {
                    seen_return = returned.version();
                    hold.renew_now();
                }
                () = hold.hear_the_rest(&mut exchange) => {}
            },
            Duty::Renew => tokio::select! {
                biased;
                () = over.changed_since(seen) => {}
                () = clock.sleep_until(hold.deadline()) => {}
                () = renew(&hold, &mut exchange, &mut failing) => {}
            },
            Duty::Lost => hold.until_lost().await,
        }
    }
}

async fn renew(hold: &Arc<Hold>, exchange: &mut Exchange, failing: &mut bool) {
    let Some((round, asked)) = hold.renew() else { return };
    hold.hear_on(std::mem::replace(exchange, asked));
    let (kind, lock, id) = (hold.record().kind(), hold.name(), hold.id());
    let span = tracing::debug_span!("renew", kind, lock, hold = %id, outcome = Empty);
    let (deadline, validity) = (hold.deadline(), hold.terms().validity());
    let end = hold.conclude(round, exchange).await;
    let left = deadline.since(hold.coordinator().clock.now());
    let outcome = match end {
        RoundEnd::Renewed => {
            *failing = false;
            let share = left.div_duration_f64(validity);
            metrics::histogram!(metric::RENEWAL_VALIDITY, hold.metrics().labels()).record(share);
            "renewed"
        }
        RoundEnd::Failed => {
            let voters = hold.coordinator().panel.report(hold.failed());
            let voters = Listed(&voters);
            // Once for all rounds that fail one after the other.
            if std::mem::replace(failing, true) {
                tracing::debug!(parent: &span, lock, hold = %id, ?left, %voters, "renewal failed");
            } else {
                tracing::warn!(parent: &span, lock, hold = %id, ?left, %voters, "renewal failed");
            }
            "failed"
        }
        RoundEnd::Superseded => "superseded",
        RoundEnd::Vanished => "vanished",
    };
    span.record("outcome", outcome);
    metrics::counter!(metric::RENEWALS, hold.metrics().and("outcome", outcome)).increment(1);
}
