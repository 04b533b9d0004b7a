//! From the first attempt to the lock, or to a clear answer.

use std::sync::Arc;

use super::{
    Coordinator, Won,
    gate::overloaded,
    local_queue::{LocalPlace, Turn},
};
use crate::{
    kinds::LockRecord,
    proto::{Denial, Error, HoldId, HolderKind, Kind, Limit, Outage, Refusal, Rules, Taker, Votes},
};

/// Why a caller does not get the lock.
#[derive(Debug)]
pub(crate) enum NotGranted {
    /// Another hold has it, by what voters said to the last attempt before the limit.
    Held(Refusal),
    Failed(Error),
}

impl From<Error> for NotGranted {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Coordinator {
    /// Joins the local queue of a lock. `waits`: whether the caller may wait for the lock.
    pub(crate) fn join_local_queue(&self, record: &LockRecord, waits: bool) -> LocalPlace {
        let (kind, key) = (record.kind(), &record.info().key);
        let has_order = waits && kind.is_fair;
        // A caller that shares the lock and does not wait in order is alone in its queue: nobody
        // has to wait for the answer to another, as both may be granted.
        let own = (kind.is_shared && !has_order).then(|| self.ids.fresh().as_str().into());
        let (queues, which) = if has_order {
            (&self.ordered_local_queues, record.local_queue_name())
        } else {
            (&self.local_queues, "")
        };
        let key = own.as_ref().unwrap_or(key);
        queues.enter(key, which, self.clock.now(), record.rules().voter_deadline)
    }

    /// Asks the voters once, and reports the outcome to the local queue.
    pub(crate) async fn ask_once_in_turn(
        self: &Arc<Self>,
        record: &LockRecord,
        turn: &Turn<'_>,
    ) -> Result<Box<Won>, NotGranted> {
        turn.ask();
        match self.ask_once(record, record.rules()).await {
            Ok(won) => {
                turn.report(won.denial());
                Ok(Box::new(won))
            }
            Err(defeat) => {
                let denial = Denial::of(defeat, turn.last_report().1, self.clock.now());
                turn.report(denial.clone());
                Err(self.report_denial(record, denial))
            }
        }
    }

    /// Waits for the turn to ask, until the limit.
    // No `async fn`, which has room for its arguments twice: ten thousand tasks may wait here.
    pub(crate) fn await_turn<'a>(
        &'a self,
        place: &'a LocalPlace,
        record: &'a LockRecord,
        limit: Limit,
    ) -> impl Future<Output = Result<Turn<'a>, NotGranted>> {
        let patience = self.settings.quorum_timeout;
        async move {
            if limit == Limit::Never {
                let outlasts = |since| self.clock.now().since(since) >= patience;
                let outage = tokio::select! {
                    biased;
                    // Each task fails when its own patience ends. When it needed the turn for
                    // that, the hundredth task reported an outage half a minute late.
                    outage = place.outage(outlasts) => outage,
                    turn = place.turn() => return Ok(turn),
                };
                return Err(self.no_quorum(record, outage).into());
            }
            let in_time = self.turn_in_time(place, record.rules(), limit);
            in_time.await.ok_or_else(|| self.no_turn_in_time(place, record))
        }
    }

    /// The answer to a caller that had no turn before its limit.
    fn no_turn_in_time(&self, place: &LocalPlace, record: &LockRecord) -> NotGranted {
        let (since, until) = (place.came, self.clock.now());
        // Law 9: nobody has asked the voters for this caller, so it must not hear that they are
        // silent (`behind_one_that_waits_for_its_turn_nobody_is_told_of_silent_voters`).
        if place.is_kept_from_asking() {
            return overloaded(record.info().name.as_str(), until.since(since)).into();
        }
        if let Some(denial) = place.last_denial() {
            return self.report_denial(record, denial);
        }
        let votes = Votes::new(self.panel.quorum);
        self.no_quorum(record, Outage { since, asked: until, until, votes }).into()
    }

    /// Waits for the turn until the limit. A caller that asks once waits until the task with the
    /// turn has an answer.
    async fn turn_in_time<'a>(
        &self,
        place: &'a LocalPlace,
        rules: Rules,
        limit: Limit,
    ) -> Option<Turn<'a>> {
        let (clock, now) = (&self.clock, self.clock.now());
        let until = match limit {
            Limit::Once(moment) | Limit::Until(moment) => moment,
            Limit::Never => now,
        };
        let waits = limit.waits() && now < until;
        tokio::select! {
            biased;
            () = place.verdict(), if !waits => return None,
            turn = place.turn() => return Some(turn),
            () = clock.sleep_until(until) => {}
        }
        if place.last_denial().is_some() || place.is_kept_from_asking() {
            return None;
        }
        // Nothing was reported yet. A limit shorter than a round trip is no silence of the voters,
        // so the answer to the attempt under way is awaited (law 9;
        // `a_limit_that_comes_while_another_task_asks_is_no_silence_when_that_one_goes_away`).
        let deadline = self.panel.adapt(rules).voter_deadline;
        place.first_verdict(clock, deadline).await
    }

    /// The answer to a caller that gave up: who has the lock, or an error if no majority answered.
    pub(crate) fn report_denial(&self, record: &LockRecord, denial: Denial) -> NotGranted {
        match denial {
            Denial::Held(refusal) => NotGranted::Held(refusal),
            Denial::NoQuorum(outage) => self.no_quorum(record, *outage).into(),
        }
    }

    /// The error for a caller that wants to know who has the lock.
    pub(crate) fn busy(&self, record: &LockRecord, refusal: Refusal) -> Error {
        let Refusal { by, waits, ends, verdicts } = refusal;
        let lease_left = ends.map(|ends| ends.since(self.clock.now()));
        let kind = |hold: &HoldId| match (record.kind().holder)(hold) {
            _ if waits => HolderKind::Waiting,
            kind => kind,
        };
        let by = by.map(|hold| Taker { kind: kind(&hold), hold });
        let kind = Kind::Busy { lock: record.info().name.as_str().into(), by, lease_left };
        Error::new(kind, self.panel.report(verdicts.to_vec()))
    }

    fn no_quorum(&self, record: &LockRecord, outage: Outage) -> Error {
        let kind = Kind::NoQuorum {
            lock: record.info().name.as_str().into(),
            needed: self.panel.quorum.needed(),
            after: outage.until.since(outage.since),
            asked_ago: self.clock.now().since(outage.asked),
            // A semaphore may have enough votes that name different slots: then nothing was late.
            too_late: (outage.votes.is_won() && record.info().permits.is_none())
                .then(|| record.rules().minimum_validity),
        };
        let verdicts = outage.votes.into_verdicts();
        Error::new(kind, self.panel.report(verdicts))
    }
}
