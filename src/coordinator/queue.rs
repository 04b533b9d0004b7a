//! Waiting in the queue of a fair lock: one bid after the other, all from the same place.

use std::{sync::Arc, time::Duration};

use super::{
    Ask, Coordinator, Limit, Panel, Record, Replies,
    attempt::{Defeat, outcome_of},
    claim::{Claim, Won},
    line::Front,
    silence::Silence,
};
use crate::{
    clock::Moment,
    engine::{Backoff, Bid, BidNext, Loss, Rules, Ticket, Tokens, Until, Votes},
    node::Call,
    wakeup::Callee,
    words::{Error, HoldId},
};

/// A place in a queue. Dropping it leaves the queue on all voters.
#[derive(Debug)]
pub(crate) struct Waiter {
    coordinator: Arc<Coordinator>,
    /// The lock, as it is asked for from this place.
    record: Arc<dyn Record>,
    rules: Rules,
    place: HoldId,
    /// How long the place counts without a bid.
    waiting: Duration,
    bids: u32,
    /// When the latest bid began.
    bid_at: Moment,
    ticket: Option<Ticket>,
    /// The votes of the latest bid.
    claim: Option<Claim>,
    callee: Callee,
    /// What was last heard from the voters.
    known: Option<Front>,
    silence: Silence,
    /// While rivals keep a token from being stored, as where a mutex is waited for.
    contended: Backoff,
    /// While calls may have been lost, as where a mutex is waited for.
    deaf: Backoff,
}

/// What a bid came to.
enum End {
    Won(Won),
    /// It is another's turn, or was.
    Refused,
    /// A majority granted, but others had too many of the votes for its token to be stored.
    Contended,
    NoQuorum {
        started: Moment,
        votes: Votes,
    },
}

impl Coordinator {
    /// A new place in the queue of a lock, if it has one.
    pub(crate) fn place(
        self: &Arc<Self>,
        record: &Arc<dyn Record>,
        rules: Rules,
    ) -> Option<Waiter> {
        let place = self.ids.fresh();
        let (record, waiting) = record.in_queue(&place)?;
        Some(Waiter {
            coordinator: Arc::clone(self),
            record,
            rules,
            callee: self.wakeups.callee(place.as_str(), self.panel.quorum.voters()),
            place,
            waiting,
            bids: 0,
            bid_at: self.clock.now(),
            ticket: None,
            claim: None,
            known: None,
            silence: Silence::new(None),
            contended: Backoff::new(Duration::from_millis(1), Duration::from_millis(500)),
            deaf: Backoff::new(Duration::from_millis(1), Duration::from_millis(500)),
        })
    }
}

impl Coordinator {
    /// Completes when a majority is known to call this client when one of its waiters is the first.
    async fn hear_calls(&self) {
        let channel = format!("{}{}", self.settings.keys.calls(), self.ids.client()).into();
        let Panel { voters, quorum, .. } = &self.panel;
        self.wakeups.hear_calls(voters, &channel, quorum.needed()).await;
    }
}

impl Waiter {
    /// Bids until a majority grants. `None`: the lock is another's, and the limit came.
    pub(crate) async fn wait(mut self, limit: Limit) -> Result<Option<Won>, Error> {
        let coordinator = Arc::clone(&self.coordinator);
        let Coordinator { clock, settings, .. } = &*coordinator;
        let patience = settings.patience;
        loop {
            let ahead = limit.moment().filter(|limit| *limit > clock.now());
            let cut_short = || ahead.is_some_and(|limit| clock.now() >= limit);
            let (mut silent, mut contended) = (false, false);
            let skips = clock.skips().count;
            match self.bid(limit.moment()).await {
                End::Won(won) => return Ok(Some(won)),
                End::Refused => {
                    self.silence.end();
                    self.known = Some(Front::Denied);
                    self.contended.reset();
                }
                End::Contended => {
                    self.silence.end();
                    self.known = Some(Front::Denied);
                    contended = true;
                }
                // The clock was put forward, which ended the time for the answers.
                End::NoQuorum { .. } if !cut_short() && clock.skips().count != skips => continue,
                // What a bid without its full time does not hear says nothing new.
                End::NoQuorum { .. } if cut_short() && self.known.is_some() => silent = true,
                End::NoQuorum { started, votes } => {
                    let since = self.silence.goes_on(started);
                    let error = coordinator.no_quorum(&*self.record, since, votes);
                    self.known = Some(Front::NoQuorum { since, error });
                    silent = true;
                }
            }
            let is_over = || limit.moment().is_some_and(|limit| clock.now() >= limit);
            let mut over = is_over() || self.silence.outlasts(patience, clock.now());
            if (silent || contended) && !over {
                let again = self.ask_again(silent);
                clock.sleep_until(limit.moment().map_or(again, |limit| limit.min(again))).await;
                over = is_over();
            }
            if over {
                return match self.known.take() {
                    Some(Front::NoQuorum { error, .. }) => Err(error),
                    _ => Ok(None),
                };
            }
        }
    }

    /// When to bid again after a pause: in time to keep the place alive, however short it lives.
    fn ask_again(&mut self, silent: bool) -> Moment {
        let Coordinator { clock, settings, .. } = &*self.coordinator;
        let (now, chance) = (clock.now(), self.coordinator.chance());
        let again = if silent {
            self.silence.ask_again(settings.patience, now, chance)
        } else {
            self.contended.at_least(2 * now.since(self.bid_at));
            now + self.contended.pause(chance)
        };
        again.min(self.bid_at + self.refresh())
    }

    /// How long after a bid the place is to be told to the voters again.
    fn refresh(&self) -> Duration {
        self.waiting / 3
    }

    /// A majority granted a bid: with its token stored, the lock is won.
    async fn win(
        &mut self,
        bid: Bid,
        tokens: &Tokens,
        replies: Replies,
        limit: Option<Moment>,
    ) -> End {
        let claim = self.claim.as_mut().expect("a bid makes one");
        let terms = (self.rules, bid.started());
        match self.coordinator.fix_token(claim, tokens, terms, limit).await {
            Ok(token) => {
                self.coordinator.count_attempt(&*self.record, "won");
                let claim = self.claim.take().expect("it is there");
                let started = (bid.started(), self.rules);
                let mut won = Won::new(claim, started, token, (bid.into_votes(), replies));
                won.attempts = self.bids;
                End::Won(won)
            }
            Err(Defeat { loss, votes, started }) => {
                claim.give_back_all();
                self.coordinator.count_attempt(&*self.record, outcome_of(&loss));
                self.ticket = bid.ticket();
                match loss {
                    Loss::NoQuorum => End::NoQuorum { started, votes },
                    Loss::Held | Loss::Split => End::Contended,
                }
            }
        }
    }

    /// Its hold, and what to ask.
    fn next_bid(&mut self) -> (HoldId, Call) {
        self.bids += 1;
        self.bid_at = self.coordinator.clock.now();
        let hold = self.coordinator.ids.attempt(&self.place, self.bids);
        let lease = self.rules.terms.lease;
        let token = self.coordinator.floor(&*self.record);
        let ticket = self.ticket.filter(|_| !crate::mutant!("ticket_is_never_fixed"));
        let ask = Ask { hold: &hold, count: 1, lease, ticket, token };
        let call = self.record.acquire(&ask);
        (hold, call)
    }

    /// Asks all voters, and waits until the next bid makes sense. Once the limit has passed, a
    /// first bid is also the last: it has its full time, and nothing is waited for after it.
    async fn bid(&mut self, limit: Option<Moment>) -> End {
        let coordinator = Arc::clone(&self.coordinator);
        let Coordinator { clock, panel, .. } = &*coordinator;
        let (hold, call) = self.next_bid();
        self.callee.forget();
        let unheard = !coordinator.wakeups.hears_calls();
        let ahead = limit.filter(|limit| *limit > clock.now());
        let until = Until { refresh: self.refresh(), limit: ahead };
        let mut bid = Bid::start(panel.quorum, self.rules, self.ticket, until, self.bid_at);
        // Gives back first what the one before may still get.
        self.claim = None;
        let claim = Claim::of_all(&coordinator, &self.record, hold, self.rules);
        let claim = self.claim.insert(claim);
        let mut tokens = Tokens::new(panel.quorum);
        let mut replies = panel.ask_all(&call);
        let mut missed = None;
        let woken = loop {
            let now = clock.now();
            let heard = self.callee.look();
            if heard.missed {
                missed.get_or_insert_with(|| now + self.deaf.pause(coordinator.chance()));
            }
            match bid.next(now, &heard.called) {
                BidNext::Won => return self.win(bid, &tokens, replies, ahead).await,
                BidNext::GiveBack(voters) => claim.give_back(&voters),
                BidNext::Again => {
                    self.deaf.reset();
                    break Some(if heard.called.contains(&true) { "called" } else { "timer" });
                }
                BidNext::Silent => {
                    // Nobody listens in the pause, and what comes then may be what a holder needs.
                    claim.give_back_all();
                    coordinator.count_attempt(&*self.record, "no_quorum");
                    self.ticket = bid.ticket();
                    return End::NoQuorum { started: bid.started(), votes: bid.into_votes() };
                }
                BidNext::Wait(until) => {
                    let other = [limit, missed].into_iter().flatten().min();
                    let until = match other.filter(|_| bid.is_refused()) {
                        Some(other) if now >= other => {
                            break missed.filter(|missed| now >= *missed).map(|_| "missed");
                        }
                        Some(other) => other.min(until),
                        None => until,
                    };
                    tokio::select! {
                        biased;
                        (voter, mut outcome) = replies.next() => {
                            let ticket = self.record.ticket(&mut outcome);
                            let (heard, started) = ((voter, outcome), bid.started());
                            let verdict = panel.hear(&*self.record, &mut tokens, heard, started);
                            bid.heard(voter, verdict, ticket, clock.now());
                            if !bid.owes(voter) {
                                claim.owe_nothing(voter);
                            }
                        }
                        () = self.callee.changed() => {}
                        () = coordinator.hear_calls(), if unheard && bid.is_refused() => break None,
                        () = clock.sleep_until(until) => {}
                    }
                }
            }
        };
        coordinator.count_attempt(&*self.record, "held");
        if let Some(cause) = woken {
            coordinator.count_wakeup(&*self.record, cause);
        }
        self.ticket = bid.ticket();
        End::Refused
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            claim.leave();
        }
    }
}
