//! From the first attempt to the lock, or to a clear answer.

use std::{sync::Arc, time::Duration};

use super::{
    Coordinator, Record, Won,
    attempt::Defeat,
    line::{Front, Place, Turn},
    silence::Silence,
};
use crate::{
    clock::Moment,
    engine::{Backoff, Loss, Rules, Votes},
    wakeup::{self, Listening},
    words::Error,
};

/// How long to wait for a lock that another hold has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Not at all.
    Now,
    Until(Moment),
    Never,
}

impl Limit {
    pub(crate) fn moment(self) -> Option<Moment> {
        match self {
            Self::Until(moment) => Some(moment),
            Self::Now | Self::Never => None,
        }
    }
}

impl Coordinator {
    /// Joins the line for a lock; where nobody stands in line, one of its own.
    pub(crate) fn stand_in_line(&self, record: &dyn Record, rules: Rules) -> Place {
        let own = record.is_shared().then(|| self.ids.fresh().as_str().into());
        let key = own.as_ref().unwrap_or_else(|| record.key());
        self.lines.enter(key, self.clock.now(), rules.voter_deadline)
    }

    /// Waits for the first place. `None`: the limit came first, and the lock is another's.
    pub(crate) async fn come_first<'a>(
        &self,
        place: &'a Place,
        record: &dyn Record,
        limit: Limit,
    ) -> Result<Option<Turn<'a>>, Error> {
        if let Some(turn) = place.try_turn() {
            return Ok(Some(turn));
        }
        let Self { clock, settings, .. } = self;
        let outlasts = |since| clock.now().since(since) >= settings.patience;
        match limit {
            Limit::Never => tokio::select! {
                biased;
                error = place.silence(outlasts) => return Err(error),
                turn = place.turn() => return Ok(Some(turn)),
            },
            Limit::Until(moment) if clock.now() < moment => {
                tokio::select! {
                    biased;
                    error = place.silence(outlasts) => return Err(error),
                    turn = place.turn() => return Ok(Some(turn)),
                    () = clock.sleep_until(moment) => {}
                }
                if place.known().is_none() {
                    place.first_verdict(clock).await;
                }
            }
            Limit::Now | Limit::Until(_) => tokio::select! {
                biased;
                () = place.verdict() => {}
                turn = place.turn() => return Ok(Some(turn)),
            },
        }
        match place.known() {
            Some(Front::Denied) => Ok(None),
            Some(Front::NoQuorum { error, .. }) => Err(error),
            None => Err(self.no_quorum(record, place.came(), Votes::new(self.panel.quorum))),
        }
    }

    /// Asks until a majority grants. `None`: the lock is another's, and the limit came.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        record: &Arc<dyn Record>,
        rules: Rules,
        limit: Limit,
        (place, turn): (&Place, &Turn<'_>),
    ) -> Result<Option<Won>, Error> {
        let mut search = Search {
            coordinator: self,
            record,
            rules,
            limit,
            turn,
            // Whoever stood here before has been asking the same voters.
            silence: Silence::new(place.silent_since()),
            known: place.known(),
            attempts: 0,
            listening: None,
            contended: Backoff::new(Duration::from_millis(1), Duration::from_millis(500)),
            deaf: Backoff::new(Duration::from_millis(1), Duration::from_millis(500)),
        };
        turn.ask();
        search.run().await
    }
}

struct Search<'a> {
    coordinator: &'a Arc<Coordinator>,
    record: &'a Arc<dyn Record>,
    rules: Rules,
    limit: Limit,
    turn: &'a Turn<'a>,
    /// What was last heard from the voters.
    known: Option<Front>,
    silence: Silence,
    attempts: u32,
    listening: Option<Listening>,
    contended: Backoff,
    /// While calls may have been lost: a voter whose connections break again and again must not
    /// make its waiters ask as often.
    deaf: Backoff,
}

impl Search<'_> {
    async fn run(&mut self) -> Result<Option<Won>, Error> {
        loop {
            if let Some(listening) = &mut self.listening {
                listening.forget();
            }
            let limit = self.limit_ahead();
            self.attempts += 1;
            let defeat = match self.coordinator.attempt(self.record, self.rules, limit).await {
                Ok(mut won) => {
                    self.turn.tell(Front::Denied);
                    won.attempts = self.attempts;
                    return Ok(Some(won));
                }
                Err(defeat) => defeat,
            };
            // What an attempt without its full time does not hear says nothing new, and nothing to
            // those behind, who may have more. It may be short of it for telling the token, too.
            let now = self.coordinator.clock.now();
            let cut_short = limit.is_some_and(|limit| now >= limit);
            if !(cut_short && defeat.loss == Loss::NoQuorum) {
                let front = self.front(&defeat);
                self.turn.tell(front.clone());
                self.known = Some(front);
            } else if self.known.is_none() {
                self.known = Some(self.front(&defeat));
            }
            if self.is_over() || !self.wait(defeat).await {
                return match self.known.take() {
                    Some(Front::NoQuorum { error, .. }) => Err(error),
                    _ => Ok(None),
                };
            }
        }
    }

    /// The caller's limit, unless it has passed: then the first attempt is also the last and has
    /// its full time.
    fn limit_ahead(&self) -> Option<Moment> {
        let now = self.coordinator.clock.now();
        self.limit.moment().filter(|limit| *limit > now)
    }

    fn front(&mut self, defeat: &Defeat) -> Front {
        if defeat.loss != Loss::NoQuorum {
            self.silence.end();
            return Front::Denied;
        }
        let since = self.silence.goes_on(defeat.started);
        let error = self.coordinator.no_quorum(&**self.record, since, defeat.votes.clone());
        Front::NoQuorum { since, error }
    }

    fn is_over(&self) -> bool {
        let now = self.coordinator.clock.now();
        let patience = self.coordinator.settings.patience;
        self.limit == Limit::Now
            || self.limit.moment().is_some_and(|moment| now >= moment)
            || self.silence.outlasts(patience, now)
    }

    /// Waits until another attempt makes sense; false if the limit has come by then.
    async fn wait(&mut self, defeat: Defeat) -> bool {
        let clock = self.coordinator.clock.clone();
        let now = clock.now();
        let limit = self.limit.moment();
        let until = match defeat.loss {
            Loss::NoQuorum => {
                let patience = self.coordinator.settings.patience;
                self.silence.ask_again(patience, now, self.coordinator.chance())
            }
            Loss::Split => {
                self.contended.at_least(2 * now.since(defeat.started));
                now + self.contended.pause(self.coordinator.chance())
            }
            Loss::Held if self.listening.is_none() && !crate::mutant!("listens_to_nobody") => {
                self.listen(limit).await;
                return limit.is_none_or(|limit| clock.now() < limit);
            }
            Loss::Held => {
                self.contended.reset();
                // A voter's expiry has a resolution of a millisecond.
                let free = defeat.votes.free_in().map(|time| time + Duration::from_millis(2));
                let poll = self.coordinator.settings.poll;
                now + free.map_or(poll, |free| free.min(poll))
            }
        };
        let calls = (defeat.loss == Loss::Held).then(|| defeat.votes.calls_needed());
        let Self { coordinator, listening, deaf, .. } = self;
        let heard = async {
            let (Some(listening), Some((voters, needed))) = (listening, calls) else {
                return std::future::pending().await;
            };
            let missed = async {
                listening.missed().await;
                clock.sleep(deaf.pause(coordinator.chance())).await;
            };
            tokio::select! {
                biased;
                () = listening.called(&voters, needed) => {
                    deaf.reset();
                    "called"
                }
                () = missed => "missed",
            }
        };
        let cause = tokio::select! {
            biased;
            cause = heard => cause,
            () = clock.sleep_until(limit.map_or(until, |limit| limit.min(until))) => {
                deaf.reset();
                if limit.is_some_and(|limit| until >= limit) {
                    return false;
                }
                "timer"
            }
        };
        coordinator.count_wakeup(&**self.record, cause);
        // The sleep may be a millisecond longer than was asked.
        limit.is_none_or(|limit| clock.now() < limit)
    }

    /// Listens to the lock's channel; returns when a majority of voters is known to be heard.
    async fn listen(&mut self, limit: Option<Moment>) {
        let Coordinator { wakeups, panel, clock, .. } = &**self.coordinator;
        let (listening, replies) = Listening::start(wakeups, &panel.voters, self.record.channel());
        self.listening = Some(listening);
        let until = clock.now() + self.rules.voter_deadline;
        let until = limit.map_or(until, |limit| limit.min(until));
        tokio::select! {
            biased;
            () = wakeup::majority(replies, panel.quorum.needed()) => {}
            () = clock.sleep_until(until) => {}
        }
    }
}
