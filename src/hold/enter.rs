//! Entering a lock: again if the owner holds it already, and otherwise by the local queue and a
//! majority.

use std::{sync::Arc, time::Duration};

use futures::future::OptionFuture;
use tracing::{Span, field::Empty};

use super::{Entry, Hold, Holds, entry::REENTRY};
use crate::{
    acquire::{Coordinator, Inherited, NotGranted, Succession, Turn, Won},
    clock::{Clock, Moment},
    kinds::LockRecord,
    proto::{Error, HoldLimit, Kind, Limit, Note, Owner},
    series::LockSeries,
};

/// What a caller asks for.
#[derive(Clone, Debug)]
pub(crate) struct LockRequest {
    pub(crate) coordinator: Arc<Coordinator>,
    pub(crate) holds: Arc<Holds>,
    pub(crate) record: LockRecord,
    /// Whether a watchdog renews the hold.
    pub(crate) renewed: bool,
    /// Whether the hold may be handed on between tasks of this client.
    pub(crate) hands_on: bool,
    /// For how long it may be held.
    pub(crate) hold_at_most: Option<Duration>,
    pub(crate) owner: Option<Owner>,
}

impl LockRequest {
    /// Enters the lock. `None`: another hold still has it at the limit.
    pub(crate) async fn enter(&self, limit: Limit) -> Result<Option<Entry>, Error> {
        match self.enter_unless_refused(limit).await {
            Ok(entered) => Ok(Some(entered)),
            Err(NotGranted::Held(_)) => Ok(None),
            Err(NotGranted::Failed(error)) => Err(error),
        }
    }

    /// Enters the lock, or says in an error who has it when the limit comes.
    pub(crate) async fn enter_or_busy(&self, limit: Limit) -> Result<Entry, Error> {
        self.enter_unless_refused(limit).await.map_err(|why| match why {
            NotGranted::Held(refusal) => self.coordinator.busy(&self.record, refusal),
            NotGranted::Failed(error) => error,
        })
    }

    /// Enters the lock, or fails with what voters said to the last attempt before the limit.
    pub(crate) async fn enter_unless_refused(&self, limit: Limit) -> Result<Entry, NotGranted> {
        let mut span = AcquireSpan::start(&self.coordinator, &self.record, limit);
        let entered = async { Ok(self.acquire(&span).await) };
        let entered = self.coordinator.gate().within(entered).await;
        let entered = entered.unwrap_or_else(|closed| Err(closed.into()));
        span.outcome = match &entered {
            Ok(_) => "granted",
            Err(NotGranted::Held(_)) => "held",
            Err(NotGranted::Failed(error)) if error.is_no_quorum() => "no_quorum",
            Err(NotGranted::Failed(_)) => "error",
        };
        entered
    }

    async fn acquire(&self, span: &AcquireSpan<'_>) -> Result<Entry, NotGranted> {
        let (clock, standings) = (self.coordinator.clock(), &self.coordinator.panel().standings);
        loop {
            let stood_still = standings.stood_still();
            let own_hold = OptionFuture::from(self.owner.map(|owner| self.own_hold(owner)));
            let own = tokio::select! {
                biased;
                // First: what an owner holds it enters at once, past the tasks that wait for it.
                Some(own) = own_hold => own?,
                asked = self.ask_in_local_queue(span.limit) => match asked {
                    // Each voter that showed that this client stood still seemed to have moved its
                    // clock, and did not count, until a majority showed the same step.
                    Err(NotGranted::Failed(error))
                        if error.is_no_quorum() && stood_still != standings.stood_still() =>
                    {
                        continue;
                    }
                    Err(why) => return Err(why),
                    Ok(None) => continue,
                    Ok(Some((won, succession))) => {
                        let now = clock.now();
                        // If the client stood still while it asked, the votes are older than its
                        // clock says, and too little may be left of them (law 2).
                        if !won.is_in_time(standings.stood_still(), now) {
                            continue;
                        }
                        span.record_grant(&won, now);
                        return Ok(self.first_entry(*won, succession, now));
                    }
                }
            };
            let rules = self.record.rules();
            let entry = if own.record.info().key == self.record.info().key {
                Entry::again(&own, Some((rules.terms, self.renewed)), REENTRY).await?
            } else {
                Entry::under(&own, rules, self.renewed, self.limit(clock.now())).await?
            };
            if let Some(entry) = entry {
                return Ok(entry);
            }
            // Its last guard has left since the hold was found. Nothing was lost: the lock is free,
            // and acquired like any other.
        }
    }

    pub(super) fn first_entry(
        &self,
        won: Won,
        succession: Option<Succession>,
        now: Moment,
    ) -> Entry {
        let Self { coordinator, holds, .. } = self;
        // The hold takes the pauses since its request off its lease, and off this limit with it.
        // But the time for which it may be held begins now.
        let stood_still = coordinator.panel().standings.stood_still();
        let limit = self.limit(now + stood_still.saturating_sub(won.claim.seen_before.stood_still));
        let won = (won, succession);
        let hold = Hold::start(coordinator, holds, won, self.owner, self.renewed, limit, now);
        Entry::of(hold, now)
    }

    /// The limit of a hold that is granted at this moment.
    // A further entry leaves the limit as it is. Otherwise an owner that enters again and again
    // would put off the end, and another one could cut the work of its other tasks short.
    fn limit(&self, granted: Moment) -> Option<HoldLimit> {
        self.hold_at_most.map(|most| HoldLimit::new(most, granted))
    }

    /// Waits for the turn in the local queue, and asks the voters then; if the caller may wait,
    /// from a place in their queue. `None`: meanwhile the owner has a hold that lets it in.
    async fn ask_in_local_queue(&self, limit: Limit) -> Result<Option<WonVotes>, NotGranted> {
        let Self { coordinator, record, .. } = self;
        let waits = limit.waits();
        // A caller that shares the lock mostly has the turn at once. So it waits for leave first,
        // and takes a place when it may ask: each of a crowd of readers that wait for leave would
        // cost 336 bytes and a name more.
        let mut admitted = None;
        if record.kind().is_shared {
            admitted = Some(coordinator.admit(None, &record.info().name, limit, None).await?);
        }
        // Only a task that asks for its turn takes a place, as a place keeps the queue and what was
        // reported there (`what_was_heard_long_ago_is_no_answer_to_a_hurried_caller`).
        let place = coordinator.join_local_queue(record, waits);
        let turn = if let Some(turn) = place.try_turn() {
            turn
        } else {
            // Others may ask meanwhile.
            admitted = None;
            coordinator.await_turn(&place, record, limit).await?
        };
        // What voters said before, to a caller that asks them no more.
        let denied = |denial| coordinator.report_denial(record, denial);
        match self.inherit(&turn, limit).await {
            Inherited::Hold(won, succession) => return Ok(Some((won, Some(succession)))),
            Inherited::TimeIsUp => {
                if let Some(denial) = place.last_denial() {
                    return Err(denied(denial));
                }
            }
            Inherited::Nothing => {}
        }
        // Another task of the same owner may have entered while this one waited. To ask would be to
        // wait for itself.
        if self.owner.is_some_and(|owner| self.held_by(owner).is_some()) {
            return Ok(None);
        }
        let leave = coordinator.admit(admitted, &record.info().name, limit, Some(&turn));
        let admitted = leave
            .await
            .map_err(|overloaded| place.new_denial().map_or(overloaded.into(), denied))?;
        let mut won = if waits {
            coordinator.place(record, limit, &turn).wait(Some(admitted)).await?
        } else {
            let _admitted = admitted;
            coordinator.ask_once_in_turn(record, &turn).await?
        };
        let succession = self.hands_on.then(|| turn.begin_tenure(coordinator, &mut won));
        Ok(Some((won, succession.flatten())))
    }

    /// The hold that a task of this client hands on in time, if it may be taken.
    async fn inherit(&self, turn: &Turn<'_>, limit: Limit) -> Inherited {
        if !self.hands_on {
            // Otherwise the holder would offer the hold to this task, which never takes it, and it
            // would be released only at the end of the tenure.
            turn.refuse_hold();
            return Inherited::Nothing;
        }
        let (clock, standings) = (self.coordinator.clock(), &self.coordinator.panel().standings);
        match turn.inherit(clock, limit).await {
            // It is released by its drop, and this task asks the voters, with the turn that it has.
            // In a mismatch, no vote counts any more for this client
            // (`nobody_takes_what_was_offered_when_clients_turned_out_to_disagree`).
            Inherited::Hold(won, _)
                if !won.fits(&self.record)
                    || !won.is_in_time(standings.stood_still(), clock.now())
                    || standings.configuration.mismatch().is_some() =>
            {
                Inherited::Nothing
            }
            inherited => inherited,
        }
    }

    /// The hold of the owner that lets it in: one of this lock, or of the write under which it
    /// reads.
    fn held_by(&self, owner: Owner) -> Option<Arc<Hold>> {
        let info = self.record.info();
        let writes = info.other_side.as_ref().filter(|_| info.kind.is_shared);
        let of = |key: &Arc<str>| self.holds.of(key, owner);
        let mut own: Vec<_> = writes.into_iter().chain([&info.key]).flat_map(of).collect();
        // A lost one only if no other is held: it lets nobody in, but the caller must hear of it
        // (`a_lost_read_does_not_hide_the_write_of_its_owner`).
        let held = own.iter().rposition(|hold| hold.is_held());
        held.map(|held| own.swap_remove(held)).or_else(|| own.pop())
    }

    /// Fails if the owner reads the lock and asks to write: it would wait for itself for ever.
    fn refuse_deadlock(&self, owner: Owner) -> Result<(), Error> {
        let info = self.record.info();
        let reads = info.other_side.as_ref().filter(|_| !info.kind.is_shared);
        let Some(reads) = reads else { return Ok(()) };
        let bars = self.holds.of(reads, owner).into_iter().find(|hold| hold.is_held());
        bars.map_or(Ok(()), |hold| {
            let kind = Kind::Reads { lock: info.name.as_str().into(), hold: hold.id.clone() };
            Err(Error::new(kind, Vec::new()))
        })
    }

    /// Completes as soon as the owner has a hold that lets it in. Fails if it has one that never
    /// will.
    async fn own_hold(&self, owner: Owner) -> Result<Arc<Hold>, Error> {
        let entered = &self.holds.entered;
        loop {
            // The version before the look, so that no entry comes between.
            let version = entered.version();
            if let Some(own) = self.held_by(owner) {
                return Ok(own);
            }
            if !crate::mutant!("deadlock_is_waited_for") {
                self.refuse_deadlock(owner)?;
            }
            entered.changed_since(version).await;
        }
    }
}

/// The votes of a majority, and the right to hand the hold on.
type WonVotes = (Box<Won>, Option<Succession>);

/// Records the time to the answer, by its drop also for a caller that gave up.
pub(super) struct AcquireSpan<'a> {
    series: &'a LockSeries,
    clock: &'a Clock,
    started: Moment,
    limit: Limit,
    pub(super) outcome: &'static str,
    span: Span,
}

impl<'a> AcquireSpan<'a> {
    pub(super) fn start(coordinator: &'a Coordinator, record: &LockRecord, limit: Limit) -> Self {
        let (series, clock) = (coordinator.series(record), coordinator.clock());
        if limit.waits() {
            series.waiting.change(1.0);
        }
        let (kind, lock) = (record.kind().name, record.info().name.as_str());
        let span = tracing::debug_span!(
            "acquire",
            kind,
            lock,
            note = record.info().note.as_ref().map(Note::text),
            outcome = Empty,
            hold = Empty,
            token = Empty,
            attempts = Empty
        );
        Self { series, clock, started: clock.now(), limit, outcome: "cancelled", span }
    }

    pub(super) fn record_grant(&self, won: &Won, now: Moment) {
        let left = won.rules.terms.share_left(won.started, now);
        // The attempt that won is no waiting: its time says how far away the voters are.
        let won_by = if won.is_handed_on() { now } else { won.started };
        self.series.wait_seconds.record(won_by.since(self.started).as_secs_f64());
        if won.is_handed_on() {
            self.series.handovers.count(1);
        } else {
            self.series.grant_attempts.record(f64::from(won.attempts));
        }
        self.series.grant_validity.record(left);
        self.span.record("hold", won.claim.hold.as_str()).record("attempts", won.attempts);
        if let Some(token) = won.own_token() {
            self.span.record("token", u64::from(token));
        }
    }
}

impl Drop for AcquireSpan<'_> {
    fn drop(&mut self) {
        let took = self.clock.now().since(self.started);
        self.series.acquire_seconds.of(self.outcome).record(took.as_secs_f64());
        self.span.record("outcome", self.outcome);
        if self.limit.waits() {
            self.series.waiting.change(-1.0);
        }
    }
}
