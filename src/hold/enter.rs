//! Entering a lock: again where the owner holds it already, else by the line and a majority.

use std::sync::Arc;

use super::{Entry, Holds, hold::Hold};
use crate::{
    clock::{Clock, Moment},
    coordinator::{Coordinator, Limit, Record},
    engine::Rules,
    words::{Error, Owner, metric},
};

/// What a caller asks for.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) record: Arc<dyn Record>,
    pub(crate) rules: Rules,
    /// Whether a watchdog renews the hold.
    pub(crate) renewed: bool,
    pub(crate) owner: Option<Owner>,
}

/// Enters the lock. `None`: it is another's, and the limit came.
pub(crate) async fn enter(
    coordinator: &Arc<Coordinator>,
    holds: &Arc<Holds>,
    wish: &Wish,
    limit: Limit,
) -> Result<Option<Entry>, Error> {
    let mut visit = coordinator.visit()?;
    let mut seen = Seen::start(wish.record.kind(), &coordinator.clock, limit);
    let entered = tokio::select! {
        biased;
        error = visit.closed() => Err(error),
        entered = seek(coordinator, holds, wish, limit) => entered,
    };
    seen.outcome = match &entered {
        Ok(Some(_)) => "granted",
        Ok(None) => "held",
        Err(error) if error.is_no_quorum() => "no_quorum",
        Err(_) => "error",
    };
    entered
}

async fn seek(
    coordinator: &Arc<Coordinator>,
    holds: &Arc<Holds>,
    wish: &Wish,
    limit: Limit,
) -> Result<Option<Entry>, Error> {
    let place = coordinator.stand_in_line(&*wish.record);
    let turn = tokio::select! {
        biased;
        hold = own_hold(holds, wish) => return again(&hold, wish).await,
        turn = coordinator.come_first(&place, limit) => turn?,
    };
    let Some(turn) = turn else { return Ok(None) };
    // Another task of the same owner may have entered while this one came first.
    if let Some(hold) = held_by_owner(holds, wish) {
        drop(turn);
        return again(&hold, wish).await;
    }
    let won = coordinator.acquire(&wish.record, wish.rules, limit, (&place, &turn)).await?;
    Ok(won.map(|won| Entry::first(coordinator, holds, won, wish.owner, wish.renewed)))
}

async fn again(hold: &Arc<Hold>, wish: &Wish) -> Result<Option<Entry>, Error> {
    Entry::again(hold, Some((wish.rules.terms, wish.renewed))).await.map(Some)
}

fn held_by_owner(holds: &Holds, wish: &Wish) -> Option<Arc<Hold>> {
    holds.of(wish.record.key(), wish.owner?)
}

/// Completes as soon as the wish's owner has the lock.
async fn own_hold(holds: &Holds, wish: &Wish) -> Arc<Hold> {
    if wish.owner.is_none() {
        return std::future::pending().await;
    }
    let mut entered = holds.watch();
    loop {
        if let Some(hold) = held_by_owner(holds, wish) {
            return hold;
        }
        // The table lives as long as this borrow of it.
        let _ = entered.changed().await;
    }
}

/// Records the time to the answer, also where the caller gave up.
struct Seen<'a> {
    kind: &'static str,
    clock: &'a Clock,
    started: Moment,
    waits: bool,
    outcome: &'static str,
}

impl<'a> Seen<'a> {
    fn start(kind: &'static str, clock: &'a Clock, limit: Limit) -> Self {
        let waits = limit != Limit::Now;
        if waits {
            metrics::gauge!(metric::WAITING, "kind" => kind).increment(1.0);
        }
        Self { kind, clock, started: clock.now(), waits, outcome: "cancelled" }
    }
}

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        let took = self.clock.now().since(self.started);
        metrics::histogram!(
            metric::ACQUIRE_SECONDS, "kind" => self.kind, "outcome" => self.outcome
        )
        .record(took);
        if self.waits {
            metrics::gauge!(metric::WAITING, "kind" => self.kind).decrement(1.0);
        }
    }
}
