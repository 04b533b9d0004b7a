//! From the first attempt to the lock, or to a clear answer.

use std::sync::Arc;

use super::{
    Coordinator, Won,
    gate::overloaded,
    line::{LinePlace, Turn},
};
use crate::{
    kinds::LockRecord,
    proto::{Denial, Error, HoldId, HolderKind, Kind, Limit, Outage, Refusal, Rules, Taker, Votes},
};

/// Why a caller does not get the lock.
#[derive(Debug)]
pub(crate) enum NotGranted {
    /// It is another's, by what voters said to the last attempt before the limit.
    Held(Refusal),
    Failed(Error),
}

impl From<Error> for NotGranted {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Coordinator {
    /// Joins the line for a lock. A caller that shares the lock has a line of its own, unless it
    /// waits in the order of asking. `waits`: whether it may wait.
    pub(crate) fn stand_in_line(&self, record: &LockRecord, waits: bool) -> LinePlace {
        let (kind, key) = (record.kind(), &record.info().key);
        let has_order = waits && kind.is_fair;
        let own = (kind.is_shared && !has_order).then(|| self.ids.fresh().as_str().into());
        let (lines, which) =
            if has_order { (&self.queues, record.line()) } else { (&self.lines, "") };
        let key = own.as_ref().unwrap_or(key);
        lines.enter(key, which, self.clock.now(), record.rules().voter_deadline)
    }

    /// Asks the voters once, and passes the outcome on to the line.
    pub(crate) async fn ask_in_turn(
        self: &Arc<Self>,
        record: &LockRecord,
        turn: &Turn<'_>,
    ) -> Result<Box<Won>, NotGranted> {
        turn.ask();
        match self.ask_once(record, record.rules()).await {
            Ok(won) => {
                turn.tell(won.denial());
                Ok(Box::new(won))
            }
            Err(defeat) => {
                let denial = Denial::of(defeat, turn.known().1, self.clock.now());
                turn.tell(denial.clone());
                Err(self.report_denial(record, denial))
            }
        }
    }

    /// Waits for the first place, unless the limit comes first and the lock is another's. What few
    /// need is boxed: many stand in line, and each future has room for all of it. (That of an
    /// `async fn` would have room for its arguments twice.)
    pub(crate) fn come_first<'a>(
        &'a self,
        place: &'a LinePlace,
        record: &'a LockRecord,
        limit: Limit,
    ) -> impl Future<Output = Result<Turn<'a>, NotGranted>> {
        let patience = self.settings.quorum_timeout;
        async move {
            if limit == Limit::Never {
                let outlasts = |since| self.clock.now().since(since) >= patience;
                let outage = tokio::select! {
                    biased;
                    outage = place.silence(outlasts) => outage,
                    turn = place.turn() => return Ok(turn),
                };
                return Err(self.no_quorum(record, outage).into());
            }
            let in_time = self.turn_in_time(place, record.rules(), limit);
            in_time.await.ok_or_else(|| self.no_turn_in_time(place, record))
        }
    }

    /// The answer to a caller who has waited for its turn in vain until its limit.
    fn no_turn_in_time(&self, place: &LinePlace, record: &LockRecord) -> NotGranted {
        let (since, until) = (place.came(), self.clock.now());
        if place.is_held_up() {
            return overloaded(record.info().name.as_str(), until.since(since)).into();
        }
        if let Some(denial) = place.known() {
            return self.report_denial(record, denial);
        }
        let votes = Votes::new(self.panel.quorum);
        self.no_quorum(record, Outage { since, asked: until, until, votes }).into()
    }

    /// Waits for the first place until the limit. A caller that asks once waits until the first in
    /// line has an answer. The outcome of an attempt under way is awaited in any case.
    async fn turn_in_time<'a>(
        &self,
        place: &'a LinePlace,
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
        if place.known().is_some() || place.is_held_up() {
            return None;
        }
        let deadline = self.panel.adapt(rules).voter_deadline;
        place.first_verdict(clock, deadline).await
    }

    /// For a caller that gave up: who has the lock, or an error if no majority answered.
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
            // Slots that no majority agrees on may come with enough votes.
            too_late: (outage.votes.is_won() && record.info().permits.is_none())
                .then(|| record.rules().minimum_validity),
        };
        let verdicts = outage.votes.into_verdicts();
        Error::new(kind, self.panel.report(verdicts))
    }
}
