//! From the first attempt to the lock, or to a clear answer.

use std::{sync::Arc, time::Duration};

use super::{
    Coordinator, LockRecord, Won,
    admission::{Admitted, overloaded},
    line::{LinePlace, Turn},
    queue::Waiter,
};
use crate::{
    acquire::wakeup::{self, Listening},
    clock::Moment,
    proto::{
        Denial, Error, HoldId, HolderKind, Kind, Limit, Outage, Refusal, Rules, Taker, Votes, Wait,
        WaitNext, WhileHeld,
    },
    settings::Settings,
};

impl Coordinator {
    /// Joins the line for a lock. Who shares it and does not queue has a line of its own. `queues`:
    /// the first in line wait in the lock's queue.
    pub(crate) fn stand_in_line(&self, record: &dyn LockRecord, queues: bool) -> LinePlace {
        let is_alone = record.info().is_shared && !queues;
        let own = is_alone.then(|| self.ids.fresh().as_str().into());
        let key = own.as_ref().unwrap_or_else(|| &record.info().key);
        let (lines, which) = if queues { (&self.queues, record.line()) } else { (&self.lines, "") };
        lines.enter(key, which, self.clock.now(), record.rules().voter_deadline)
    }

    /// Waits for the first place, unless the limit comes first and the lock is another's. What few
    /// need is boxed: many stand in line, and each future has room for all of it. (That of an
    /// `async fn` would have room for its arguments twice.)
    pub(crate) fn come_first<'a>(
        &'a self,
        place: &'a LinePlace,
        record: &'a dyn LockRecord,
        limit: Limit,
    ) -> impl Future<Output = Result<Result<Turn<'a>, Refusal>, Error>> {
        let patience = self.settings.quorum_timeout;
        async move {
            if limit == Limit::Never {
                let outlasts = |since| self.clock.now().since(since) >= patience;
                let outage = tokio::select! {
                    biased;
                    outage = place.silence(outlasts) => outage,
                    turn = place.turn() => return Ok(Ok(turn)),
                };
                return Err(self.no_quorum(record, outage));
            }
            let in_time = self.turn_in_time(place, record.rules(), limit);
            match in_time.await {
                Some(turn) => Ok(Ok(turn)),
                None => self.no_turn_in_time(place, record),
            }
        }
    }

    /// The answer to a caller who has waited for its turn in vain until its limit.
    fn no_turn_in_time<T>(
        &self,
        place: &LinePlace,
        record: &dyn LockRecord,
    ) -> Result<Result<T, Refusal>, Error> {
        let (came, now) = (place.came(), self.clock.now());
        if place.is_held_up() {
            return Err(overloaded(record.info().name.as_str(), now.since(came)));
        }
        let denial = place.known().unwrap_or_else(|| {
            let votes = Votes::new(self.panel.quorum);
            Denial::NoQuorum(Box::new(Outage { since: came, until: now, votes }))
        });
        self.report_denial(record, denial)
    }

    /// Waits for the first place until the limit; one that asks once, until the first in line has
    /// heard from the voters. What an attempt under way comes to is waited for in any case.
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

    /// The result for a caller that gave up: who has the lock, or an error if no majority answered.
    pub(crate) fn report_denial<T>(
        &self,
        record: &dyn LockRecord,
        denial: Denial,
    ) -> Result<Result<T, Refusal>, Error> {
        match denial {
            Denial::Held(refusal) => Ok(Err(refusal)),
            Denial::NoQuorum(outage) => Err(self.no_quorum(record, *outage)),
        }
    }

    /// The error for a caller that wants to be told who has the lock.
    pub(crate) fn busy(&self, record: &dyn LockRecord, refusal: Refusal) -> Error {
        let Refusal { by, waits, ends, verdicts } = refusal;
        let lease_left = ends.map(|ends| ends.since(self.clock.now()));
        let kind = |hold: &HoldId| match record.kind_of(hold) {
            _ if waits => HolderKind::Waiting,
            kind => kind,
        };
        let by = by.map(|hold| Taker { kind: kind(&hold), hold });
        let kind = Kind::Busy { lock: record.info().name.as_str().into(), by, lease_left };
        Error::new(kind, self.panel.report(verdicts.to_vec()))
    }

    fn no_quorum(&self, record: &dyn LockRecord, outage: Outage) -> Error {
        let kind = Kind::NoQuorum {
            lock: record.info().name.as_str().into(),
            needed: self.panel.quorum.needed(),
            after: outage.until.since(outage.since),
            // Slots that no majority agrees on may come with enough votes.
            too_late: (outage.votes.is_won() && record.info().permits.is_none())
                .then(|| record.rules().minimum_validity),
        };
        let verdicts = outage.votes.into_verdicts();
        Error::new(kind, self.panel.report(verdicts))
    }
}

/// For so long others may ask first: a JVM takes some 2 ms from a release until it asks.
const YIELD: Duration = Duration::from_millis(5);

/// The first in line, which asks the voters until it has the lock or gives up.
pub(crate) struct Search<'a> {
    coordinator: &'a Arc<Coordinator>,
    record: &'a Arc<dyn LockRecord>,
    turn: &'a Turn<'a>,
    wait: Wait,
    listening: Option<Listening>,
    /// Leave for the first attempt.
    admitted: Option<Admitted<'a>>,
}

impl<'a> Search<'a> {
    /// Begins to ask. Only the first in line may: `turn` proves it.
    pub(crate) fn start(
        coordinator: &'a Arc<Coordinator>,
        record: &'a Arc<dyn LockRecord>,
        limit: Limit,
        turn: &'a Turn<'a>,
        admitted: Admitted<'a>,
    ) -> Self {
        let Settings { quorum_timeout, poll_interval, .. } = coordinator.settings;
        let setup = coordinator.panel.adapt(record.rules()).voter_deadline;
        let (poll, refresh) = (poll_interval, record.info().refresh());
        let while_held = WhileHeld::Listen { setup, poll, refresh };
        // Whoever stood here before has been asking the same voters.
        let (known, silent_since) = turn.known();
        let wait = Wait::new(limit, quorum_timeout, while_held).resume_from(known, silent_since);
        turn.ask();
        Self { coordinator, record, turn, wait, listening: None, admitted: Some(admitted) }
    }

    /// Asks until a majority grants, or the limit comes while the lock is another's.
    pub(crate) async fn until_granted(&mut self) -> Result<Result<Box<Won>, Refusal>, Error> {
        let coordinator = self.coordinator;
        loop {
            match self.next() {
                WaitNext::Ask(wake) => {
                    if let Some(wake) = wake {
                        coordinator.count_wakeup(&**self.record, wake);
                        self.let_others_ask().await;
                    }
                    match self.attempt().await {
                        Ok(None) => {}
                        Ok(Some(won)) => return Ok(Ok(won)),
                        Err(overloaded) => {
                            let denial = self.wait.denial().cloned().ok_or(overloaded)?;
                            return self.give_up(denial);
                        }
                    }
                }
                WaitNext::Subscribe(until) => self.subscribe(until).await?,
                WaitNext::Queue { refresh } => return self.queue(refresh).wait(None).await,
                WaitNext::Sleep(until) => self.sleep(until).await,
                WaitNext::GiveUp(denial) => return self.give_up(*denial),
            }
        }
    }

    fn next(&mut self) -> WaitNext {
        let now = self.coordinator.clock.now();
        let called = self.hear_calls(now);
        self.wait.next(now, &called)
    }

    fn give_up(&self, denial: Denial) -> Result<Result<Box<Won>, Refusal>, Error> {
        self.coordinator.report_denial(&**self.record, denial)
    }

    /// Leaves the channel for a place in the lock's queue, and stays the first in line.
    fn queue(&mut self, refresh: Duration) -> Waiter<'a> {
        self.listening = None;
        let Self { coordinator, record, turn, wait, .. } = self;
        coordinator.enter_queue(record, wait.clone().in_queue(refresh), refresh, turn)
    }

    /// Where there is no queue, whoever asks first has the lock: this client would each time, as it
    /// has those of its own line ready. Free where nobody else listens.
    async fn let_others_ask(&self) {
        let has_queue = self.record.info().waiting.is_some();
        if !has_queue && self.turn.yields() {
            self.coordinator.clock.sleep(YIELD).await;
        }
    }

    fn note_holder(&self, denial: &Denial) {
        let Denial::Held(Refusal { by, .. }) = denial else { return };
        let own = self.coordinator.client().to_string();
        if by.as_ref().and_then(HoldId::client) != Some(&*own) {
            self.turn.see_another();
        }
    }

    /// Makes one attempt, and tells those behind in line what it came to.
    async fn attempt(&mut self) -> Result<Option<Box<Won>>, Error> {
        let Self { coordinator, record, turn, wait, listening, admitted } = self;
        let (lock, limit) = (&record.info().name, wait.limit());
        let _admitted = coordinator.admit(admitted.take(), lock, limit, turn).await?;
        if let Some(listening) = listening {
            listening.calls.forget();
        }
        let clock = &coordinator.clock;
        let window = wait.start_attempt(clock.now());
        match coordinator.gather_votes(record, &record.rules(), window).await {
            Ok(mut won) => {
                turn.tell(won.denial());
                turn.count_grant();
                won.attempts = wait.attempts();
                Ok(Some(Box::new(won)))
            }
            Err(defeat) => {
                let (now, chance) = (clock.now(), coordinator.chance());
                if let Some(denial) = wait.lose_attempt(&defeat, now, chance) {
                    turn.tell(denial.clone());
                    let denial = denial.clone();
                    self.note_holder(&denial);
                }
                Ok(None)
            }
        }
    }

    /// Which voters have called since the last attempt started.
    fn hear_calls(&mut self, now: Moment) -> Vec<bool> {
        let Some(listening) = &mut self.listening else { return Vec::new() };
        let calls = listening.calls.look();
        if calls.missed {
            self.wait.miss_calls(now, self.coordinator.chance());
        }
        calls.called
    }

    async fn sleep(&self, until: Moment) {
        let called = async {
            match &self.listening {
                Some(listening) => listening.calls.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = called => {}
            () = self.coordinator.clock.sleep_until(until) => {}
        }
    }

    /// Subscribes to the lock's channel; returns when a majority of voters is known to be heard.
    async fn subscribe(&mut self, until: Moment) -> Result<(), Error> {
        let Coordinator { wakeups, panel, clock, .. } = &**self.coordinator;
        let mut checked = Ok(());
        // Who waits for a lock without a channel does so in its queue, and not here.
        if let Some(channel) = &self.record.channel() {
            let (listening, replies) = Listening::start(wakeups, &panel.voters, channel);
            self.listening = Some(listening);
            let subscribed = async {
                tokio::select! {
                    biased;
                    () = wakeup::majority(replies, panel.quorum) => {}
                    () = clock.sleep_until(until) => {}
                }
            };
            let check = self.coordinator.check_foreign_queue(&**self.record, until);
            ((), checked) = tokio::join!(subscribed, check);
        }
        self.wait.finish_subscribing();
        checked
    }
}
