//! Entering a lock: again where the owner holds it already, else by the line and a majority.

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
    /// Whether the hold may go from task to task of this client.
    pub(crate) hands_on: bool,
    /// For how long it may be held.
    pub(crate) hold_at_most: Option<Duration>,
    pub(crate) owner: Option<Owner>,
}

impl LockRequest {
    /// Enters the lock. `None`: it is another's, and the limit came.
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

    /// Enters the lock, or is told what voters said to the last attempt before the limit.
    pub(crate) async fn enter_unless_refused(&self, limit: Limit) -> Result<Entry, NotGranted> {
        let mut seen = AcquireSpan::start(&self.coordinator, &self.record, limit);
        let sought = async { Ok(self.seek(&seen).await) };
        let entered = self.coordinator.gate().within(sought).await;
        let entered = entered.unwrap_or_else(|closed| Err(closed.into()));
        seen.outcome = match &entered {
            Ok(_) => "granted",
            Err(NotGranted::Held(_)) => "held",
            Err(NotGranted::Failed(error)) if error.is_no_quorum() => "no_quorum",
            Err(NotGranted::Failed(_)) => "error",
        };
        entered
    }

    async fn seek(&self, seen: &AcquireSpan<'_>) -> Result<Entry, NotGranted> {
        let (clock, standings) = (self.coordinator.clock(), &self.coordinator.panel().standings);
        loop {
            let stood_still = standings.stood_still();
            let own_hold = self.owner.map(|owner| self.own_hold(owner));
            let own_hold = OptionFuture::from(own_hold);
            let own = tokio::select! {
                biased;
                Some(own) = own_hold => own?,
                asked = self.ask_in_line(seen.limit) => match asked {
                    // The voters that showed first that this client stood still did not count yet.
                    Err(NotGranted::Failed(error))
                        if error.is_no_quorum() && stood_still != standings.stood_still() =>
                    {
                        continue;
                    }
                    Err(why) => return Err(why),
                    Ok(SeekOutcome::Own(own)) => own,
                    Ok(SeekOutcome::Won(won, succession)) => {
                        let now = clock.now();
                        // It stood still while it asked: the votes may be as old as that, and too
                        // old.
                        if !won.is_in_time(standings.stood_still(), now) {
                            continue;
                        }
                        seen.won(&won, now);
                        return Ok(self.first(*won, succession, now));
                    }
                }
            };
            let (hold, rules) = (&own.hold, self.record.rules());
            let entry = if own.is_under {
                Entry::under(hold, rules, self.renewed, self.limit(clock.now())).await?
            } else {
                Entry::again(hold, Some((rules.terms, self.renewed)), REENTRY).await?
            };
            if let Some(entry) = entry {
                return Ok(entry);
            }
            // Its last guard has left since it was found: then it is to be acquired like any other.
        }
    }

    pub(super) fn first(&self, won: Won, succession: Option<Succession>, now: Moment) -> Entry {
        let Self { coordinator, holds, .. } = self;
        // A pause before now is taken off the lease, and would be off the limit, too.
        let stood_still = coordinator.panel().standings.stood_still();
        let limit = self.limit(now + stood_still.saturating_sub(won.seen().stood_still));
        let won = (won, succession);
        let hold = Hold::start(coordinator, holds, won, self.owner, self.renewed, limit, now);
        Entry::of(hold, now)
    }

    /// Of a hold that is granted at this moment, later by what it has still to hear of a pause. Who
    /// enters again leaves it as it is: its end is not put off, and nobody else's work is cut
    /// short.
    fn limit(&self, granted: Moment) -> Option<HoldLimit> {
        self.hold_at_most.map(|most| HoldLimit::new(most, granted))
    }

    /// When the line of this client has come to it: from a place in the lock's queue, if that is
    /// where everybody waits.
    async fn ask_in_line(&self, limit: Limit) -> Result<SeekOutcome, NotGranted> {
        let Self { coordinator, record, .. } = self;
        let waits = limit.waits();
        // Who shares the lock mostly finds no line before it, so it takes a place there only
        // when it may ask.
        let mut admitted = None;
        if record.kind().is_shared {
            admitted = Some(coordinator.admit(None, &record.info().name, limit, None).await?);
        }
        // A place keeps the line alive, and with it what the line has learnt. So only a task
        // that asks for its turn takes one.
        let place = coordinator.stand_in_line(record, waits);
        let turn = if let Some(turn) = place.try_turn() {
            turn
        } else {
            // Others may ask meanwhile.
            admitted = None;
            coordinator.come_first(&place, record, limit).await?
        };
        // What voters said before, to a caller that asks them no more.
        let denied = |denial| coordinator.report_denial(record, denial);
        match self.inherit(&turn, limit).await {
            Inherited::Hold(won, succession) => {
                return Ok(SeekOutcome::Won(won, Some(succession)));
            }
            Inherited::TimeIsUp => {
                if let Some(denial) = place.known() {
                    return Err(denied(denial));
                }
            }
            Inherited::Nothing => {}
        }
        // Another task of the same owner may have entered while this one came first.
        if let Some(own) = self.owner.and_then(|owner| self.held_by(owner)) {
            return Ok(SeekOutcome::Own(own));
        }
        let leave = coordinator.admit(admitted, &record.info().name, limit, Some(&turn));
        let admitted =
            leave.await.map_err(|overloaded| place.heard().map_or(overloaded.into(), denied))?;
        let mut won = if waits {
            coordinator.place(record, limit, &turn).wait(Some(admitted)).await?
        } else {
            let _admitted = admitted;
            coordinator.ask_in_turn(record, &turn).await?
        };
        let succession = self.hands_on.then(|| turn.begin_tenure(coordinator, &mut won));
        Ok(SeekOutcome::Won(won, succession.flatten()))
    }

    /// What a task of this client hands on in time, if it may be taken.
    async fn inherit(&self, turn: &Turn<'_>, limit: Limit) -> Inherited {
        if !self.hands_on {
            turn.refuse_hold();
            return Inherited::Nothing;
        }
        let (clock, standings) = (self.coordinator.clock(), &self.coordinator.panel().standings);
        match turn.inherit(clock, limit).await {
            // With another lease or another note, with too little left, or where no vote counts any
            // more, it is released. The turn stays.
            Inherited::Hold(won, _)
                if won.asked_rules() != self.record.rules()
                    || won.note() != self.record.info().note.as_ref()
                    || !won.is_in_time(standings.stood_still(), clock.now())
                    || standings.configuration.mismatch().is_some() =>
            {
                Inherited::Nothing
            }
            inherited => inherited,
        }
    }

    /// What the owner has that lets it in; of what it has lost only where nothing else does.
    fn held_by(&self, owner: Owner) -> Option<Own> {
        let info = self.record.info();
        let of = |key: Option<&Arc<str>>, is_under| {
            let holds = key.map_or(Vec::new(), |key| self.holds.of(key, owner));
            holds.into_iter().map(move |hold| Own { hold, is_under })
        };
        let writes = info.other_side.as_ref().filter(|_| info.kind.is_shared);
        let mut own: Vec<Own> = of(writes, true).chain(of(Some(&info.key), false)).collect();
        let live = own.iter().rposition(|own| own.hold.is_held());
        live.map(|live| own.swap_remove(live)).or_else(|| own.pop())
    }

    /// Waiting for what one holds oneself would never end.
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

    /// Completes as soon as the owner has the lock, one that lets it in, or one that never will.
    async fn own_hold(&self, owner: Owner) -> Result<Own, Error> {
        let entered = &self.holds.entered;
        loop {
            let seen = entered.version();
            if let Some(own) = self.held_by(owner) {
                return Ok(own);
            }
            if !crate::mutant!("deadlock_is_waited_for") {
                self.refuse_deadlock(owner)?;
            }
            entered.changed_since(seen).await;
        }
    }
}

/// What lets an owner in at once.
struct Own {
    hold: Arc<Hold>,
    /// It is the write under which the same owner reads. Otherwise it is entered again.
    is_under: bool,
}

/// What asking came to.
enum SeekOutcome {
    Own(Own),
    /// With the right to hand it on.
    Won(Box<Won>, Option<Succession>),
}

/// Records the time to the answer, also where the caller gave up.
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

    pub(super) fn won(&self, won: &Won, now: Moment) {
        let terms = won.rules.terms;
        let left = terms.share_left(won.started, now);
        let won_by = if won.is_handed_on() { now } else { won.started };
        self.series.wait_seconds.record(won_by.since(self.started).as_secs_f64());
        if won.is_handed_on() {
            self.series.handovers.count(1);
        } else {
            self.series.grant_attempts.record(f64::from(won.attempts));
        }
        self.series.grant_validity.record(left);
        self.span.record("hold", won.hold().as_str()).record("attempts", won.attempts);
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
