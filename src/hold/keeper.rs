//! The watchdog: one task for all holds of a client, which renews them and tells their loss.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use futures::{
    FutureExt,
    future::OptionFuture,
    stream::{FuturesUnordered, StreamExt},
};
use tracing::field::Empty;

use super::{Agenda, AgendaPlace, Hold};
use crate::{
    acquire::Coordinator,
    clock::{Clock, Moment},
    log::LogSpan,
    proto::{Listed, RoundEnd},
    series::OldestHolds,
    voter::Standings,
};

/// So many rounds at once: what waits for its round costs no memory but its hold's, and what few
/// rounds need stays close to the processor.
const ROUNDS: usize = 128;
/// Where fewer than that have ended in this time while others waited, so many more: the voters are
/// far away.
const PACE: Duration = Duration::from_millis(10);
/// But no more than these.
const MOST: usize = 4096;

/// How often the gauge of the oldest hold is set.
const AGES: Duration = Duration::from_secs(5);

/// Where the watch ends before the holds, nobody renews them any more.
struct Watched(Arc<Agenda<Hold>>);

impl Drop for Watched {
    fn drop(&mut self) {
        let left = self.0.end();
        if !std::thread::panicking() {
            for hold in left {
                hold.abandon();
            }
        }
    }
}

/// Has a hold looked after when that is next due.
pub(super) fn attend(hold: &Arc<Hold>) {
    attend_from(hold, hold.now());
}

fn attend_from(hold: &Arc<Hold>, now: Moment) {
    if !hold.put_on_agenda(now) {
        hold.abandon();
    }
}

/// Has a hold looked after from now on: at once, where it missed what was told to all holds since
/// its votes were asked for. It may have been offered to a task meanwhile.
pub(super) fn begin(hold: &Arc<Hold>, now: Moment) {
    attend_from(hold, now);
    // On the agenda before the look, so that nothing comes between.
    if hold.was_to_be_renewed() {
        hold.renew_now();
        attend(hold);
    }
}

/// Looks after all holds for as long as there may be any. Trust does not depend on this task:
/// guards look at the clock themselves.
pub(super) fn watch(
    agenda: &Arc<Agenda<Hold>>,
    coordinator: &Coordinator,
) -> impl Future<Output = ()> + use<> {
    let (clock, standings) =
        (coordinator.clock().clone(), Arc::clone(&coordinator.panel().standings));
    // Both before the task first runs. It may never run: then `Watched` is dropped with it, and
    // tells the holds. And a voter may come back before it runs, which must not go unnoticed.
    let (watched, seen_return) = (Watched(Arc::clone(agenda)), standings.returned().version());
    async move { look_after(&watched.0, &clock, &standings, seen_return).await }
}

async fn look_after(
    agenda: &Agenda<Hold>,
    clock: &Clock,
    standings: &Standings,
    mut seen_return: u64,
) {
    let returned = standings.returned();
    // In this task: one of its own for each round would cost more than the round.
    let mut rounds = FuturesUnordered::new();
    // Those first that end first.
    let mut waiting: BTreeMap<AgendaPlace, Arc<Hold>> = BTreeMap::new();
    let mut room = RoundRoom::new();
    // A program that takes locks for moments only writes none of it.
    let (mut oldest, mut tell_at) = (None, None);
    loop {
        let seen = agenda.sooner.version();
        let Some((due, next)) = agenda.take_due(clock.now()) else { return };
        if due.is_empty() && next.is_none() && waiting.is_empty() && rounds.is_empty() {
            (oldest, tell_at) = (None, None);
        } else {
            tell_at.get_or_insert_with(|| clock.now() + AGES);
        }
        for hold in due {
            // Where it panics (in a recorder of metrics, say) the others are looked after.
            let begins = catch_unwind(AssertUnwindSafe(|| hold.is_to_be_renewed()));
            attend(&hold);
            if let Ok(true) = begins {
                waiting.insert(hold.end_place(), hold);
            }
        }
        room.look(!waiting.is_empty(), clock.now());
        while rounds.len() < room.most
            && let Some((_, hold)) = waiting.pop_first()
        {
            rounds.push(round(hold));
        }
        if tell_at.is_some_and(|at| clock.now() >= at) {
            tell_at = Some(clock.now() + AGES);
            tell_ages(oldest.get_or_insert_with(OldestHolds::new), agenda, clock.now());
        }
        let grows = room.grows.filter(|_| !waiting.is_empty());
        let next = [next, grows, tell_at].into_iter().flatten().min();
        tokio::select! {
            biased;
            () = agenda.sooner.changed_since(seen) => {}
            // A voter has come back: before others forget, it is told what it had. Or less is left
            // of the leases than it seemed.
            () = returned.changed_since(seen_return) => {
                seen_return = returned.version();
                for hold in agenda.all() {
                    hold.renew_now();
                    attend(&hold);
                }
            }
            Some(()) = rounds.next(), if !rounds.is_empty() => {
                room.ended += 1;
                // An answer to a call decides many rounds: those are seen to at once.
                while let Some(Some(())) = rounds.next().now_or_never() {
                    room.ended += 1;
                }
            }
            Some(()) = OptionFuture::from(next.map(|next| clock.sleep_until(next))) => {}
        }
    }
}

fn tell_ages(oldest: &OldestHolds, agenda: &Agenda<Hold>, now: Moment) {
    let holds = agenda.all();
    let ages = holds.iter().map(|hold| (hold.series(), now.since(hold.acquired)));
    oldest.tell(ages);
}

/// How many rounds there may be at once.
#[derive(Debug)]
struct RoundRoom {
    most: usize,
    /// How many have ended since some wait for theirs, or since it last grew or might have.
    ended: usize,
    /// When it may grow next.
    grows: Option<Moment>,
}

impl RoundRoom {
    const fn new() -> Self {
        Self { most: ROUNDS, ended: 0, grows: None }
    }

    fn look(&mut self, any_wait: bool, now: Moment) {
        if !any_wait {
            *self = Self::new();
        } else if self.grows.is_none_or(|grows| now >= grows) {
            if self.grows.is_some() && self.ended < ROUNDS {
                self.most = MOST.min(self.most + ROUNDS);
            }
            (self.ended, self.grows) = (0, Some(now + PACE));
        }
    }
}

/// A round of renewal. Where it panics the others go on, and the hold is renewed again when that
/// is due.
async fn round(hold: Arc<Hold>) {
    let returned = hold.coordinator.panel().standings.returned();
    let seen_return = returned.version();
    // Nothing is half done after a panic: the lock of the state spans each change.
    let _ = AssertUnwindSafe(renew(&hold)).catch_unwind().await;
    hold.end_round(returned.version() != seen_return);
    attend(&hold);
}

async fn renew(hold: &Arc<Hold>) {
    let Some(exchange) = hold.start_round(None, 0) else { return };
    let (kind, lock) = (hold.record.kind().name, &hold.record.info().name);
    let (name, id) = (lock.clone(), hold.id.clone());
    let span = LogSpan::begin(move || {
        let lock = name.as_str();
        tracing::debug_span!("renew", kind, lock, hold = %id, outcome = Empty)
    });
    let (name, id) = (lock.clone(), hold.id.clone());
    let (terms, deadline, votes_end) =
        hold.lease(|lease| (lease.terms(), lease.deadline(), lease.votes_end()));
    if let Some(end) = hold.conclude(exchange).await {
        let now = hold.now();
        let outcome = match end {
            RoundEnd::Renewed => {
                if hold.fails_again(false) && !hold.id.is_parked() {
                    span.tell(move |on| {
                        let lock = name.as_str();
                        tracing::warn!(parent: on, lock, hold = %id, "renewed again");
                    });
                }
                let share = votes_end.since(now).div_duration_f64(terms.validity());
                hold.series().renewal_validity.record(share);
                "renewed"
            }
            RoundEnd::Failed => {
                let voters = hold.coordinator.panel().report(hold.failed());
                // Of a parked hold, that somebody resumes it.
                let fails_again = hold.fails_again(true) || hold.id.is_parked();
                let left = deadline.since(now);
                span.tell(move |on| {
                    let (lock, voters) = (name.as_str(), Listed(&voters));
                    // Once for all rounds that fail one after the other.
                    if fails_again {
                        tracing::debug!(
                            parent: on, lock, hold = %id, ?left, %voters, "renewal failed"
                        );
                    } else {
                        tracing::warn!(
                            parent: on, lock, hold = %id, ?left, %voters, "renewal failed"
                        );
                    }
                });
                "failed"
            }
            RoundEnd::Superseded => "superseded",
            RoundEnd::Vanished => "vanished",
        };
        span.end(outcome);
        hold.series().renewals.of(outcome).count(1);
    }
}
