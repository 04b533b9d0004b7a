//! Who leads an election: asks once, or watches.

use std::{fmt, sync::Arc, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, OptionFuture},
};

use super::{Coordinator, Panel};
use crate::{
    acquire::wakeup::{ChannelListener, WakeupReceiver, majority_confirms},
    clock::Moment,
    kinds::LockRecord,
    proto::{Cause, Census, Error, Incumbent, Leader, LeaderWatch, Sight, WatchNext, WhoLeads},
    scripts::Answer,
    series::ObserverSeries,
    voter::Outcome,
};

/// How long a candidate that a majority names has to confirm that it leads, before the voters are
/// asked again; then twice as long each time.
// The winner confirms by a message to each voter, right after its grant. So the confirmation is
// mostly under way, and to ask at once would only meet the same answers.
const CONFIRMING: Duration = Duration::from_millis(5);

/// Who leads: somebody, nobody, or why nobody can say.
pub(crate) type LeaderAnswer = Result<Option<Leader>, Error>;

impl Coordinator {
    /// Asks all voters once who leads.
    pub(crate) async fn ask_who_leads(&self, election: &LockRecord) -> LeaderAnswer {
        let counted = async {
            let began = self.clock.now();
            let (finding, census) = self.take_census(election, None).await;
            self.answer(election, finding, &census, began)
        };
        self.gate.within(counted).await
    }

    /// Asks the voters until a majority decides, or their time is over. Asks again while they name
    /// a hold that has not confirmed that it leads; with `receiver`, as soon as some voter wakes
    /// it.
    async fn take_census(
        &self,
        election: &LockRecord,
        receiver: Option<&WakeupReceiver>,
    ) -> (WhoLeads, Census) {
        let Self { clock, panel, .. } = self;
        let rules = panel.adapt(election.rules());
        let due = clock.now() + rules.voter_deadline;
        let look = election.look_for_leader().expect("it is an election");
        let mut pause = CONFIRMING;
        loop {
            // Before the question, so that a confirmation which comes during it is not forgotten.
            if let Some(receiver) = receiver {
                receiver.forget();
            }
            let (mut census, started) = (Census::new(panel.quorum), clock.now());
            let mut replies = panel.ask_all(&look, started);
            // When to ask again: the other voters have as long as the majority took.
            let mut again = None;
            loop {
                let now = clock.now();
                if census.awaits_winner() {
                    again.get_or_insert_with(|| now + pause.max(now.since(started)));
                }
                let is_over = again.is_none_or(|again| again >= due);
                match census.decide() {
                    Some(finding) if is_over || finding != WhoLeads::Unclear => {
                        return (finding, census);
                    }
                    _ => {}
                }
                let until = again.unwrap_or(due).min(due);
                let woken = receiver.filter(|_| again.is_some()).map(WakeupReceiver::woken);
                let heard = tokio::select! {
                    biased;
                    heard = clock.in_time(until, replies.next()) => heard,
                    Some(()) = OptionFuture::from(woken) => break,
                };
                match heard {
                    Some((voter, outcome)) => census.hear(voter, panel.sight(outcome, started)),
                    None if until < due => break,
                    None => census.close(rules.voter_deadline),
                }
            }
            pause *= 2;
        }
    }

    /// `began`: when the voters were asked.
    fn answer(
        &self,
        election: &LockRecord,
        finding: WhoLeads,
        census: &Census,
        began: Moment,
    ) -> LeaderAnswer {
        match finding {
            WhoLeads::Led { leader, .. } => Ok(Some(leader)),
            WhoLeads::Vacant => Ok(None),
            WhoLeads::Unclear => Err(self.undecided(election, census.verdicts(), began)),
        }
    }
}

impl Panel {
    /// What a voter says of who leads.
    fn sight(&self, outcome: Outcome<Answer>, started: Moment) -> Sight {
        let answer = outcome?;
        // A voter in quarantine may have forgotten whom it voted for: two of them would say that
        // nobody leads
        // (`voters_that_may_have_forgotten_whom_they_voted_for_do_not_say_that_nobody_leads`).
        let quarantine = self.standings.quarantine(answer.shard, started);
        quarantine.map_or(Incumbent::read(&answer), |it| Err(Cause::Quarantined(it.quarantined)))
    }
}

/// Watches an election until it is dropped.
pub(crate) struct ElectionWatch {
    coordinator: Arc<Coordinator>,
    election: LockRecord,
    watch: LeaderWatch,
    receiver: WakeupReceiver,
    _listener: ChannelListener,
    /// Until a majority has confirmed the subscription.
    subscribing: Option<BoxFuture<'static, ()>>,
    series: ObserverSeries,
}

impl ElectionWatch {
    /// Listens to the voters from now on.
    pub(crate) fn start(coordinator: &Arc<Coordinator>, election: LockRecord) -> Self {
        let Coordinator { wakeups, panel, clock, settings, .. } = &**coordinator;
        let receiver = WakeupReceiver::new(panel.quorum.voters());
        let channel = election.channel().expect("an election has one");
        let (listener, replies) =
            ChannelListener::start(wakeups, &panel.voters, &channel, &receiver);
        let subscribed = majority_confirms(replies, panel.quorum);
        let series = ObserverSeries::begin(&settings.named, election.info().name.as_str());
        Self {
            coordinator: Arc::clone(coordinator),
            election,
            watch: LeaderWatch::start(panel.quorum, settings.poll_interval, clock.now()),
            receiver,
            _listener: listener,
            subscribing: Some(subscribed.boxed()),
            series,
        }
    }

    /// Who leads, once that has changed since the last answer. `None`: the client is closed.
    pub(crate) async fn next(&mut self) -> Option<LeaderAnswer> {
        let coordinator = Arc::clone(&self.coordinator);
        let changed = async { Ok(self.next_change(&coordinator).await) };
        let answer = coordinator.gate.within(changed).await.ok()?;
        self.series.count(match &answer {
            Ok(Some(_)) => "leader",
            Ok(None) => "no_leader",
            Err(_) => "unknown",
        });
        Some(answer)
    }

    async fn next_change(&mut self, coordinator: &Coordinator) -> LeaderAnswer {
        loop {
            let now = coordinator.clock.now();
            let Self { receiver, watch, .. } = self;
            let next = receiver.look(|received| {
                if received.may_have_missed {
                    watch.miss(now, coordinator.chance());
                }
                watch.next(now, &received.from)
            });
            match next {
                WatchNext::Ask => {
                    self.watch.ask(now);
                    let receiver = Some(&self.receiver);
                    let (finding, census) = coordinator.take_census(&self.election, receiver).await;
                    // No voter sends anything when a lease ends: without this moment, the end of a
                    // dead leader would show only by the poll interval.
                    if let Some(left) = census.longest_left() {
                        self.watch.expect_end(coordinator.clock.now() + left);
                    }
                    if let Some(finding) = self.watch.note_result(finding) {
                        return coordinator.answer(&self.election, finding, &census, now);
                    }
                }
                WatchNext::Wait(until) => self.wait(coordinator, until).await,
            }
        }
    }

    async fn wait(&mut self, coordinator: &Coordinator, until: Moment) {
        let Self { watch, receiver, subscribing, .. } = self;
        tokio::select! {
            biased;
            () = receiver.changed() => {}
            Some(()) = OptionFuture::from(subscribing.as_mut()) => {
                watch.hears(coordinator.clock.now());
                *subscribing = None;
            }
            () = coordinator.clock.sleep_until(until) => {}
        }
    }
}

impl fmt::Debug for ElectionWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElectionWatch").field("election", &self.election).finish_non_exhaustive()
    }
}
