//! The keeper, or watchdog: one task that renews all holds of a client, and tells the log and the
//! metrics of those that are lost.

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

/// How many rounds of renewal run at once, as long as the voters are near.
// A hold that waits for its round costs no memory but its own. With voters 150 ms away, though, a
// fixed number of 512 rounds was 1,700 renewals a second, and a client lost holds beyond some
// 17,000.
const ROUNDS: usize = 128;
/// If fewer than `ROUNDS` end in this time while others wait, as many more run at once.
const PACE: Duration = Duration::from_millis(10);
/// The most rounds at once, if the voters are far away.
const MAX_ROUNDS: usize = 4096;

/// How often the gauge of the oldest hold is set.
const AGES: Duration = Duration::from_secs(5);

/// Ends the holds that are left when the keeper ends before them: nobody renews them any more.
struct EndGuard(Arc<Agenda<Hold>>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        let left = self.0.end();
        // A second panic during a panic would abort the process, and each loss calls a recorder.
        if !std::thread::panicking() {
            for hold in left {
                hold.abandon();
            }
        }
    }
}

/// Puts a hold on the agenda, for when something is next due.
pub(super) fn schedule(hold: &Arc<Hold>) {
    schedule_from(hold, hold.now());
}

fn schedule_from(hold: &Arc<Hold>, now: Moment) {
    if !hold.put_on_agenda(now) {
        hold.abandon();
    }
}

/// Begins to keep a hold.
pub(super) fn begin(hold: &Arc<Hold>, now: Moment) {
    // On the agenda before the look: a voter that comes back in between finds it there.
    schedule_from(hold, now);
    // A voter may have come back since the votes were asked for, for example while the hold was
    // offered to a task. What it forgot it gets back at once, and not after a third of the lease
    // (`a_voter_that_came_back_empty_while_a_hold_was_offered_has_its_vote_again_at_once`).
    if hold.missed_renewal_of_all() {
        hold.renew_now();
        schedule(hold);
    }
}

/// Keeps all holds of a client for as long as there may be any.
// Trust does not depend on this task: guards look at the clock themselves (law 2,
// `held_until_the_watchdog_says`).
pub(super) fn watch(
    agenda: &Arc<Agenda<Hold>>,
    coordinator: &Coordinator,
) -> impl Future<Output = ()> + use<> {
    let (clock, standings) =
        (coordinator.clock().clone(), Arc::clone(&coordinator.panel().standings));
    // Both before the task first runs. If it never runs, the guard is dropped with it and ends the
    // holds. And a voter that comes back before it runs must not go unnoticed.
    let (guard, seen_version) =
        (EndGuard(Arc::clone(agenda)), standings.renewal_signal().version());
    async move { keep(&guard.0, &clock, &standings, seen_version).await }
}

async fn keep(agenda: &Agenda<Hold>, clock: &Clock, standings: &Standings, mut seen_version: u64) {
    let renewal_signal = standings.renewal_signal();
    // In this task: a task for each round would cost more than the round.
    let mut rounds = FuturesUnordered::new();
    // By deadline: if the voters are too slow for all, the holds that end first go first.
    let mut waiting: BTreeMap<AgendaPlace, Arc<Hold>> = BTreeMap::new();
    let mut room = RoundRoom::new();
    // The gauge of the oldest hold. A program that holds locks only for moments never sets it.
    let (mut oldest, mut record_at) = (None, None);
    loop {
        let version = agenda.sooner.version();
        let Some((due, next)) = agenda.take_due(clock.now()) else { return };
        if due.is_empty() && next.is_none() && waiting.is_empty() && rounds.is_empty() {
            (oldest, record_at) = (None, None);
        } else {
            record_at.get_or_insert_with(|| clock.now() + AGES);
        }
        waiting.extend(due.into_iter().filter_map(take_up));
        room.look(!waiting.is_empty(), clock.now());
        while rounds.len() < room.most
            && let Some((_, hold)) = waiting.pop_first()
        {
            rounds.push(round(hold));
        }
        if record_at.is_some_and(|at| clock.now() >= at) {
            record_at = Some(clock.now() + AGES);
            record_ages(oldest.get_or_insert_with(OldestHolds::new), agenda, clock.now());
        }
        let grows = room.grows.filter(|_| !waiting.is_empty());
        let next = [next, grows, record_at].into_iter().flatten().min();
        tokio::select! {
            biased;
            () = agenda.sooner.changed_since(version) => {}
            // A voter has come back, and gets back what it forgot before another voter forgets too.
            // Or less is left of the leases than it seemed.
            () = renewal_signal.changed_since(seen_version) => {
                seen_version = renewal_signal.version();
                renew_all(agenda);
            }
            Some(()) = rounds.next(), if !rounds.is_empty() => {
                room.ended += 1;
                // One call answers many rounds. They end together here: with a look at the agenda
                // after each, 100,000 holds took up to a tenth more of the processor.
                while let Some(Some(())) = rounds.next().now_or_never() {
                    room.ended += 1;
                }
            }
            Some(()) = OptionFuture::from(next.map(|next| clock.sleep_until(next))) => {}
        }
    }
}

/// The hold with its place in the order of deadlines, if its round is to begin now.
fn take_up(hold: Arc<Hold>) -> Option<(AgendaPlace, Arc<Hold>)> {
    // A loss calls a recorder of metrics, which is the user's code. If it panics, the other holds
    // must be kept all the same (`a_recorder_that_panics_at_a_loss_ends_no_other_lock`).
    let begins = catch_unwind(AssertUnwindSafe(|| hold.begins_round()));
    schedule(&hold);
    begins.is_ok_and(|begins| begins).then(|| (hold.end_place(), hold))
}

fn renew_all(agenda: &Agenda<Hold>) {
    for hold in agenda.all() {
        hold.renew_now();
        schedule(&hold);
    }
}

fn record_ages(oldest: &OldestHolds, agenda: &Agenda<Hold>, now: Moment) {
    let holds = agenda.all();
    let ages = holds.iter().map(|hold| (hold.series(), now.since(hold.acquired)));
    oldest.record(ages);
}

/// How many rounds there may be at once.
#[derive(Debug)]
struct RoundRoom {
    most: usize,
    /// How many have ended since holds began to wait for their rounds, or since it last might grow.
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
                self.most = MAX_ROUNDS.min(self.most + ROUNDS);
            }
            (self.ended, self.grows) = (0, Some(now + PACE));
        }
    }
}

/// A round of renewal, after which the hold is back on the agenda.
async fn round(hold: Arc<Hold>) {
    let renewal_signal = hold.coordinator.panel().standings.renewal_signal();
    let seen_version = renewal_signal.version();
    // If it panics, the others go on. Nothing is half done then: the lock of the state spans each
    // change.
    let _ = AssertUnwindSafe(renew(&hold)).catch_unwind().await;
    // A voter that came back during the round may have answered it before it forgot.
    hold.end_round(renewal_signal.version() != seen_version);
    schedule(&hold);
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
                if hold.note_failure(false) && !hold.id.is_parked() {
                    span.report(move |on| {
                        let lock = name.as_str();
                        tracing::warn!(parent: on, lock, hold = %id, "renewed again");
                    });
                }
                let share = votes_end.since(now).div_duration_f64(terms.validity());
                hold.series().renewal_validity.record(share);
                "renewed"
            }
            RoundEnd::Failed => {
                let voters = hold.coordinator.panel().report(hold.failure());
                // For a parked hold it mostly means that somebody resumes it.
                let fails_again = hold.note_failure(true) || hold.id.is_parked();
                let left = deadline.since(now);
                span.report(move |on| {
                    let (lock, voters) = (name.as_str(), Listed(&voters));
                    // One warning for all rounds that fail one after the other: an outage would
                    // fill the log.
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
