//! The watchdog: one task for all holds of a client, which renews them and tells their loss. Each
//! round of renewal has a task of its own, for as long as answers to it are to come.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::field::Empty;

use super::held::Hold;
use crate::{
    clock::{Clock, Moment},
    coordinator::Coordinator,
    engine::RoundEnd,
    node::Standings,
    signal::Signal,
    words::{Listed, metric},
};

/// So many rounds at once: what waits for its round costs no memory but its hold's.
const ROUNDS: usize = 512;

/// When each hold of a client is to be looked after. Its lock is taken under that of a hold, so
/// nothing here asks a hold under it.
#[derive(Debug)]
pub(super) struct Agenda {
    list: Mutex<List>,
    /// Changes when something comes before all else.
    sooner: Signal<()>,
}

#[derive(Debug, Default)]
struct List {
    by_time: BTreeMap<AgendaPlace, AgendaEntry>,
    /// How many holds there were.
    counted: u64,
    watch: Watch,
}

#[derive(Debug)]
struct AgendaEntry {
    hold: Arc<Hold>,
    early: Duration,
}

/// When a hold is to be looked after, and its number.
pub(super) type AgendaPlace = (Moment, u64);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Watch {
    /// Nobody looks.
    #[default]
    None,
    Going,
    /// The runtime has ended: nobody will look any more.
    Over,
}

/// What is to be done for those that were put on the list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Listing {
    Done,
    /// A watch is to be started.
    Unwatched,
    /// There is no watch any more.
    Over,
}

impl Agenda {
    pub(super) fn new() -> Self {
        Self { list: Mutex::default(), sooner: Signal::new(()) }
    }

    /// A number for another hold.
    pub(super) fn number(&self) -> u64 {
        let mut list = self.list();
        list.counted += 1;
        list.counted
    }

    /// Puts a hold from one place to another. `early`: how long before it is due it may be looked
    /// after where others are.
    pub(super) fn put(
        &self,
        hold: Arc<Hold>,
        (from, to): (Option<AgendaPlace>, AgendaPlace),
        early: Duration,
    ) -> Listing {
        let mut list = self.list();
        if let Some(from) = from {
            list.by_time.remove(&from);
        }
        if list.watch == Watch::Over {
            return Listing::Over;
        }
        list.by_time.insert(to, AgendaEntry { hold, early });
        let first = list.by_time.first_key_value().is_some_and(|(first, _)| *first == to);
        let unwatched = list.watch == Watch::None;
        list.watch = Watch::Going;
        drop(list);
        if unwatched {
            return Listing::Unwatched;
        }
        if first {
            self.sooner.change(|()| ());
        }
        Listing::Done
    }

    pub(super) fn remove(&self, place: AgendaPlace) {
        self.list().by_time.remove(&place);
    }

    /// Ends the watch: no hold will come any more.
    pub(super) fn close(&self) {
        self.list().by_time.clear();
        self.sooner.change(|()| ());
    }

    /// Those that are to be looked after, in their order; and when the next ones are. `None`: there
    /// are no others, and the watch is over.
    fn take_due(&self, now: Moment, busy: bool) -> (Vec<Arc<Hold>>, Option<Moment>) {
        let mut list = self.list();
        let mut due = Vec::new();
        while let Some(first) = list.by_time.first_entry() {
            let (at, _) = *first.key();
            // What is due soon goes along: renewals that leave together cost less.
            if at > now + first.get().early {
                break;
            }
            due.push(first.remove().hold);
        }
        let next = list.by_time.first_key_value().map(|((at, _), _)| *at);
        if due.is_empty() && next.is_none() && !busy {
            list.watch = Watch::None;
        }
        (due, next)
    }

    fn all(&self) -> Vec<Arc<Hold>> {
        self.list().by_time.values().map(|entry| Arc::clone(&entry.hold)).collect()
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the watch ends before the holds, nobody renews them any more.
struct Watched(Option<Arc<Agenda>>);

impl Drop for Watched {
    fn drop(&mut self) {
        let Some(agenda) = &self.0 else { return };
        let mut list = agenda.list();
        if std::thread::panicking() {
            // A recorder of metrics, say: with the next that is put on the list all are watched.
            list.watch = Watch::None;
            return;
        }
        list.watch = Watch::Over;
        let left = std::mem::take(&mut list.by_time);
        drop(list);
        for entry in left.into_values() {
            entry.hold.abandon();
        }
    }
}

/// Looks after all holds for as long as there are any. Trust does not depend on this task: guards
/// look at the clock themselves.
pub(super) fn watch(
    agenda: Arc<Agenda>,
    coordinator: &Coordinator,
) -> impl Future<Output = ()> + use<> {
    let (clock, standings) = (coordinator.clock.clone(), Arc::clone(&coordinator.panel.standings));
    // Now, and not when the task first runs: it may never do that, or a voter comes back before.
    let (mut watched, seen_return) = (Watched(Some(agenda)), standings.returned().version());
    async move {
        if let Some(agenda) = &watched.0 {
            look_after(agenda, &clock, &standings, seen_return).await;
        }
        drop(watched.0.take());
    }
}

async fn look_after(agenda: &Agenda, clock: &Clock, standings: &Standings, mut seen_return: u64) {
    let returned = standings.returned();
    let rounds = Arc::new(Semaphore::new(ROUNDS));
    // Those first that end first.
    let mut waiting: BTreeMap<AgendaPlace, Arc<Hold>> = BTreeMap::new();
    loop {
        let seen = agenda.sooner.version();
        let (due, next) = agenda.take_due(clock.now(), !waiting.is_empty());
        if due.is_empty() && next.is_none() && waiting.is_empty() {
            return;
        }
        for hold in due {
            if hold.is_to_be_renewed() {
                waiting.insert(hold.end_place(), hold);
            }
        }
        while let Some(place) =
            (!waiting.is_empty()).then(|| Arc::clone(&rounds).try_acquire_owned())
            && let Ok(place) = place
            && let Some((_, hold)) = waiting.pop_first()
        {
            begin(hold, place);
        }
        tokio::select! {
            biased;
            () = agenda.sooner.changed_since(seen) => {}
            // A voter has come back: before others forget, it is told what it had. Or less is left
            // of the leases than it seemed.
            () = returned.changed_since(seen_return) => {
                seen_return = returned.version();
                for hold in agenda.all() {
                    hold.renew_now();
                }
            }
            Ok(place) = Arc::clone(&rounds).acquire_owned(), if !waiting.is_empty() => {
                if let Some((_, hold)) = waiting.pop_first() {
                    begin(hold, place);
                }
            }
            () = sleep_until(clock, next) => {}
        }
    }
}

async fn sleep_until(clock: &Clock, next: Option<Moment>) {
    match next {
        Some(next) => clock.sleep_until(next).await,
        None => std::future::pending().await,
    }
}

/// Starts a round of renewal.
fn begin(hold: Arc<Hold>, place: OwnedSemaphorePermit) {
    let coordinator = Arc::clone(hold.coordinator());
    coordinator.spawn(renew(hold, place));
}

async fn renew(hold: Arc<Hold>, place: OwnedSemaphorePermit) {
    let over = hold.over();
    let seen = over.version();
    let returned = hold.coordinator().panel.standings.returned();
    let seen_return = returned.version();
    let Some((round, mut exchange)) = hold.renew() else { return hold.end_round(false) };
    let (kind, lock, id) = (hold.record().info().kind, hold.name(), hold.id());
    let span = tracing::debug_span!("renew", kind, lock, hold = %id, outcome = Empty);
    let (deadline, validity) = (hold.deadline(), hold.terms().validity());
    let end = tokio::select! {
        biased;
        () = over.changed_since(seen) => None,
        end = hold.conclude(round, &mut exchange) => Some(end),
    };
    drop(place);
    if let Some(end) = end {
        let left = deadline.since(hold.coordinator().clock.now());
        let outcome = match end {
            RoundEnd::Renewed => {
                hold.fails_again(false);
                let share = left.div_duration_f64(validity);
                metrics::histogram!(metric::RENEWAL_VALIDITY, hold.metrics().labels())
                    .record(share);
                "renewed"
            }
            RoundEnd::Failed => {
                let voters = hold.coordinator().panel.report(hold.failed());
                let (on, voters) = (&span, Listed(&voters));
                // Once for all rounds that fail one after the other.
                if hold.fails_again(true) {
                    tracing::debug!(parent: on, lock, hold = %id, ?left, %voters, "renewal failed");
                } else {
                    tracing::warn!(parent: on, lock, hold = %id, ?left, %voters, "renewal failed");
                }
                "failed"
            }
            RoundEnd::Superseded => "superseded",
            RoundEnd::Vanished => "vanished",
        };
        span.record("outcome", outcome);
        metrics::counter!(metric::RENEWALS, hold.metrics().and("outcome", outcome)).increment(1);
    }
    drop(span);
    hold.end_round(returned.version() != seen_return);
    // A voter that has forgotten the hold says so once.
    hold.hear_the_rest(exchange).await;
}
