//! Who leads an election: asked once, or watched.

use std::{fmt, sync::Arc, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, OptionFuture},
};

use super::{Coordinator, Panel};
use crate::{
    acquire::wakeup::{self, Hearing, Listening},
    clock::Moment,
    kinds::LockRecord,
    proto::{Cause, Census, Error, Incumbent, Leader, LeaderWatch, Sight, WatchNext, WhoLeads},
    scripts::Answer,
    series::ObserverSeries,
    voter::Outcome,
};

/// How long one that a majority names has at least to confirm that it leads, before the voters are
/// asked again; then twice as long each time.
const CONFIRMING: Duration = Duration::from_millis(5);

/// Who leads: somebody, nobody, or why that cannot be known.
pub(crate) type LedBy = Result<Option<Leader>, Error>;

impl Coordinator {
    /// Asks all voters once who leads.
    pub(crate) async fn ask_who_leads(&self, election: &LockRecord) -> LedBy {
        let counted = async {
            let began = self.clock.now();
            let (finding, census) = self.count(election, None).await;
            self.led_by(election, finding, &census, began)
        };
        self.gate.within(counted).await
    }

    /// Listens to the voters until a majority decides, or their time is over. Asks them again while
    /// they name a hold that has not confirmed that it leads: with `hearing`, as soon as some voter
    /// calls.
    async fn count(&self, election: &LockRecord, hearing: Option<&Hearing>) -> (WhoLeads, Census) {
        let Self { clock, panel, .. } = self;
        let rules = panel.adapt(election.rules());
        let due = clock.now() + rules.voter_deadline;
        let look = election.look_for_leader().expect("it is an election");
        let mut pause = CONFIRMING;
        loop {
            if let Some(hearing) = hearing {
                hearing.forget();
            }
            let (mut census, started) = (Census::new(panel.quorum), clock.now());
            let mut replies = panel.ask_all(&look, started);
            // The others have as long as the majority took.
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
                let news = hearing.filter(|_| again.is_some()).map(Hearing::called);
                let heard = tokio::select! {
                    biased;
                    heard = clock.in_time(until, replies.next()) => heard,
                    Some(()) = OptionFuture::from(news) => break,
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
    fn led_by(
        &self,
        election: &LockRecord,
        finding: WhoLeads,
        census: &Census,
        began: Moment,
    ) -> LedBy {
        match finding {
            WhoLeads::Led { leader, .. } => Ok(Some(leader)),
            WhoLeads::Vacant => Ok(None),
            WhoLeads::Unclear => Err(self.undecided(election, census.verdicts(), began)),
        }
    }
}

impl Panel {
    /// What a voter says of who leads. In quarantine it may have forgotten whom it voted for.
    fn sight(&self, outcome: Outcome<Answer>, started: Moment) -> Sight {
        let answer = outcome?;
        let kept_out = self.standings.kept_out(answer.shard, started);
        kept_out.map_or(Incumbent::read(&answer), |it| Err(Cause::Quarantined(it.quarantined)))
    }
}

/// Watches an election until it is dropped.
pub(crate) struct ElectionWatch {
    coordinator: Arc<Coordinator>,
    election: LockRecord,
    watch: LeaderWatch,
    hearing: Hearing,
    _listening: Listening,
    /// Until a majority is known to be heard.
    subscribing: Option<BoxFuture<'static, ()>>,
    series: ObserverSeries,
}

impl ElectionWatch {
    /// Listens to the voters from now on.
    pub(crate) fn start(coordinator: &Arc<Coordinator>, election: LockRecord) -> Self {
        let Coordinator { wakeups, panel, clock, settings, .. } = &**coordinator;
        let hearing = Hearing::new(panel.quorum.voters());
        let news = election.channel().expect("an election has one");
        let (listening, replies) = Listening::start(wakeups, &panel.voters, &news, &hearing);
        let heard = wakeup::majority(replies, panel.quorum);
        let series = ObserverSeries::begin(&settings.named, election.info().name.as_str());
        Self {
            coordinator: Arc::clone(coordinator),
            election,
            watch: LeaderWatch::start(panel.quorum, settings.poll_interval, clock.now()),
            hearing,
            _listening: listening,
            subscribing: Some(heard.boxed()),
            series,
        }
    }

    /// Who leads, when that has changed since the last answer. `None`: the client is closed.
    pub(crate) async fn next(&mut self) -> Option<LedBy> {
        let coordinator = Arc::clone(&self.coordinator);
        let news = async { Ok(self.until_new(&coordinator).await) };
        let led_by = coordinator.gate.within(news).await.ok()?;
        self.series.tell(match &led_by {
            Ok(Some(_)) => "leader",
            Ok(None) => "no_leader",
            Err(_) => "unknown",
        });
        Some(led_by)
    }

    async fn until_new(&mut self, coordinator: &Coordinator) -> LedBy {
        loop {
            let now = coordinator.clock.now();
            let Self { hearing, watch, .. } = self;
            let next = hearing.look(|heard| {
                if heard.missed {
                    watch.miss(now, coordinator.chance());
                }
                watch.next(now, &heard.called)
            });
            match next {
                WatchNext::Ask => {
                    self.watch.ask(now);
                    let hearing = Some(&self.hearing);
                    let (finding, census) = coordinator.count(&self.election, hearing).await;
                    if let Some(left) = census.longest_left() {
                        self.watch.expect_end(coordinator.clock.now() + left);
                    }
                    if let Some(finding) = self.watch.tell(finding) {
                        return coordinator.led_by(&self.election, finding, &census, now);
                    }
                }
                WatchNext::Wait(until) => self.wait(coordinator, until).await,
            }
        }
    }

    async fn wait(&mut self, coordinator: &Coordinator, until: Moment) {
        let Self { watch, hearing, subscribing, .. } = self;
        tokio::select! {
            biased;
            () = hearing.changed() => {}
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
