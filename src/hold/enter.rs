//! Entering a lock: again where the owner holds it already, else by the line and a majority.

use std::sync::Arc;

use super::{Entry, Holds, held::Hold};
use crate::{
    clock::{Clock, Moment},
    coordinator::{Coordinator, Limit, Place, Record, Won},
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
    let mut seen = Seen::start(wish.record.kind(), &coordinator.clock, limit);
    let entered = coordinator.gate.within(seek(coordinator, holds, wish, limit)).await;
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
    loop {
        let hold = tokio::select! {
            biased;
            hold = own_hold(holds, wish) => hold,
            asked = ask(coordinator, holds, wish, limit, &place) => match asked? {
                Asked::Own(hold) => hold,
                Asked::Won(None) => return Ok(None),
                Asked::Won(Some(won)) => {
                    let entry = Entry::first(coordinator, holds, won, wish.owner, wish.renewed);
                    return Ok(Some(entry));
                }
            }
        };
        let again = Entry::again(&hold, Some((wish.rules.terms, wish.renewed)), limit.moment());
        if let Some(entry) = again.await? {
            return Ok(Some(entry));
        }
        // Its last guard has left since it was found: then it is to be acquired like any other.
    }
}

/// What asking came to.
enum Asked {
    Own(Arc<Hold>),
    Won(Option<Won>),
}

/// From a place in the lock's queue, if it has one and there is time to wait; else when the line of
/// this client has come to `place`.
async fn ask(
    coordinator: &Arc<Coordinator>,
    holds: &Arc<Holds>,
    wish: &Wish,
    limit: Limit,
    place: &Place,
) -> Result<Asked, Error> {
    if limit != Limit::Now
        && let Some(waiter) = coordinator.place(&wish.record, wish.rules)
    {
        // Waiting has time for that, and whoever does not wait has the smaller future.
        return Box::pin(waiter.wait(limit)).await.map(Asked::Won);
    }
    let Some(turn) = coordinator.come_first(place, limit).await? else {
        return Ok(Asked::Won(None));
    };
    // Another task of the same owner may have entered while this one came first.
    if let Some(hold) = held_by_owner(holds, wish) {
        return Ok(Asked::Own(hold));
    }
    coordinator.acquire(&wish.record, wish.rules, limit, (place, &turn)).await.map(Asked::Won)
}

fn held_by_owner(holds: &Holds, wish: &Wish) -> Option<Arc<Hold>> {
    holds.of(wish.record.key(), wish.owner?)
}

/// Completes as soon as the wish's owner has the lock.
async fn own_hold(holds: &Holds, wish: &Wish) -> Arc<Hold> {
    if wish.owner.is_none() {
        return std::future::pending().await;
    }
    loop {
        let seen = holds.entered().version();
        if let Some(hold) = held_by_owner(holds, wish) {
            return hold;
        }
        holds.entered().changed_since(seen).await;
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
