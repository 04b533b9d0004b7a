//! Entering a lock: again where the owner holds it already, else by the line and a majority.

use std::sync::Arc;

use tracing::{Span, field::Empty};

use super::{Entry, Holds, held::Hold};
use crate::{
    clock::{Clock, Moment},
    coordinator::{Coordinator, LockRecord, Won},
    engine::{Limit, Rules},
    words::{Error, Kind, Owner, metric},
};

/// What a caller asks for.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) record: Arc<dyn LockRecord>,
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
    let mut seen = AcquireSpan::start(coordinator, &*wish.record, limit);
    // In a box: callers put several of these futures into their own.
    let sought = Box::pin(seek(coordinator, holds, wish, (limit, &seen)));
    let entered = coordinator.gate.within(sought).await;
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
    (limit, seen): (Limit, &AcquireSpan<'_>),
) -> Result<Option<Entry>, Error> {
    loop {
        let own = tokio::select! {
            biased;
            own = own_hold(holds, wish) => own?,
            asked = ask(coordinator, holds, wish, limit) => match asked? {
                SeekOutcome::Own(own) => own,
                SeekOutcome::Won(None) => return Ok(None),
                SeekOutcome::Won(Some(won)) => {
                    seen.won(&won);
                    let entry = Entry::first(coordinator, holds, *won, wish.owner, wish.renewed);
                    return Ok(Some(entry));
                }
            }
        };
        let entry = match own {
            Own::Same(hold) => {
                let terms = Some((wish.rules.terms, wish.renewed));
                Entry::again(&hold, terms, limit.moment()).await?
            }
            Own::Under(hold) => {
                Entry::under(&hold, wish.rules, wish.renewed, limit.moment()).await?
            }
        };
        if entry.is_some() {
            return Ok(entry);
        }
        // Its last guard has left since it was found: then it is to be acquired like any other.
    }
}

/// What lets an owner in at once.
enum Own {
    /// A hold of the same lock, to be entered again.
    Same(Arc<Hold>),
    /// A hold under which this one is for the asking.
    Under(Arc<Hold>),
}

impl Own {
    fn is_held(&self) -> bool {
        let (Self::Same(hold) | Self::Under(hold)) = self;
        hold.is_held()
    }
}

/// What asking came to.
enum SeekOutcome {
    Own(Own),
    Won(Option<Box<Won>>),
}

impl SeekOutcome {
    fn won(won: Option<Won>) -> Self {
        Self::Won(won.map(Box::new))
    }
}

/// From a place in the lock's queue, if it has one and there is time to wait; else when the line of
/// this client has come to it.
async fn ask(
    coordinator: &Arc<Coordinator>,
    holds: &Arc<Holds>,
    wish: &Wish,
    limit: Limit,
) -> Result<SeekOutcome, Error> {
    if limit != Limit::Now
        && let Some(waiter) = coordinator.place(&wish.record, wish.rules, limit)
    {
        // Waiting has time for that, and whoever does not wait has the smaller future.
        return Box::pin(waiter.wait()).await.map(SeekOutcome::won);
    }
    // Only whoever asks for its turn keeps what is known there from being forgotten.
    let place = coordinator.stand_in_line(&*wish.record, wish.rules);
    let Some(turn) = coordinator.come_first(&place, &*wish.record, limit).await? else {
        return Ok(SeekOutcome::Won(None));
    };
    // Another task of the same owner may have entered while this one came first.
    if let Some(own) = held_by_owner(holds, wish) {
        return Ok(SeekOutcome::Own(own));
    }
    coordinator
        .acquire(&wish.record, wish.rules, limit, (&place, &turn))
        .await
        .map(SeekOutcome::won)
}

/// What the wish's owner has that lets it in; of what it has lost only where nothing else does.
fn held_by_owner(holds: &Holds, wish: &Wish) -> Option<Own> {
    let owner = wish.owner?;
    let of = |key: Option<&Arc<str>>| key.map_or(Vec::new(), |key| holds.of(key, owner));
    let same = of(Some(&wish.record.info().key)).into_iter().map(Own::Same);
    let under = of(wish.record.info().granted_under.as_ref()).into_iter().map(Own::Under);
    let mut own: Vec<Own> = under.chain(same).collect();
    let live = own.iter().rposition(Own::is_held);
    live.map(|live| own.swap_remove(live)).or_else(|| own.pop())
}

/// Waiting for what one holds oneself would never end.
fn refuse_deadlock(holds: &Holds, wish: &Wish) -> Result<(), Error> {
    let Some((owner, bar)) = wish.owner.zip(wish.record.info().barred_by.as_ref()) else {
        return Ok(());
    };
    let bars = holds.of(bar, owner).into_iter().find(|hold| hold.is_held());
    bars.map_or(Ok(()), |hold| {
        let kind =
            Kind::Reads { lock: wish.record.info().name.as_str().into(), hold: hold.id().clone() };
        Err(Error::new(kind, Vec::new()))
    })
}

/// Completes as soon as the wish's owner has the lock, one that lets it in, or one that never will.
async fn own_hold(holds: &Holds, wish: &Wish) -> Result<Own, Error> {
    if wish.owner.is_none() {
        return std::future::pending().await;
    }
    loop {
        let seen = holds.entered().version();
        if let Some(own) = held_by_owner(holds, wish) {
            return Ok(own);
        }
        if !crate::mutant!("deadlock_is_waited_for") {
            refuse_deadlock(holds, wish)?;
        }
        holds.entered().changed_since(seen).await;
    }
}

/// Records the time to the answer, also where the caller gave up.
struct AcquireSpan<'a> {
    of: metric::Of,
    clock: &'a Clock,
    started: Moment,
    waits: bool,
    outcome: &'static str,
    span: Span,
}

impl<'a> AcquireSpan<'a> {
    fn start(coordinator: &'a Coordinator, record: &dyn LockRecord, limit: Limit) -> Self {
        let (of, clock) = (coordinator.metrics_of(record), &coordinator.clock);
        let waits = limit != Limit::Now;
        if waits {
            metrics::gauge!(metric::WAITING, of.labels()).increment(1.0);
        }
        let (kind, lock) = (record.info().kind, record.info().name.as_str());
        let span = tracing::debug_span!(
            "acquire",
            kind,
            lock,
            outcome = Empty,
            hold = Empty,
            token = Empty,
            attempts = Empty
        );
        Self { of, clock, started: clock.now(), waits, outcome: "cancelled", span }
    }

    fn won(&self, won: &Won) {
        let terms = won.rules.terms;
        let left = terms.share_left(won.started, self.clock.now());
        let values = [
            (metric::WAIT_SECONDS, won.started.since(self.started).as_secs_f64()),
            (metric::GRANT_ATTEMPTS, f64::from(won.attempts)),
            (metric::GRANT_VALIDITY, left),
        ];
        for (name, value) in values {
            metrics::histogram!(name, self.of.labels()).record(value);
        }
        self.span.record("hold", won.hold().as_str()).record("attempts", won.attempts);
        if let Some(token) = won.token {
            self.span.record("token", u64::from(token));
        }
    }
}

impl Drop for AcquireSpan<'_> {
    fn drop(&mut self) {
        let took = self.clock.now().since(self.started);
        let labels = self.of.and("outcome", self.outcome);
        metrics::histogram!(metric::ACQUIRE_SECONDS, labels).record(took);
        self.span.record("outcome", self.outcome);
        if self.waits {
            metrics::gauge!(metric::WAITING, self.of.labels()).decrement(1.0);
        }
    }
}
