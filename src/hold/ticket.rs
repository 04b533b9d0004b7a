//! Parks a hold, and resumes it for whoever has its ticket.
//!
//! In both steps voters pass the vote of one hold on to another, by an attempt like any other. The
//! first passes the votes of a guard's hold to a *parked* one, which the client renews and nobody
//! trusts. The second passes them on to the hold that resumes it; if it fails, it gives the votes
//! back to the parked hold.

use std::{sync::Arc, time::Duration};

use super::{Entry, Hold, LockRequest, enter::AcquireSpan, held::RESUMING, keeper};
use crate::{
    acquire::Won,
    clock::Moment,
    proto::{
        Backoff, Defeat, Error, HoldId, HoldLimit, HoldTicket, HoldTimeLeft, Kind, Limit, LockName,
        Loss, Quorum, Verdict, Votes,
    },
};

impl Entry {
    /// Parks the hold for this time, and returns its ticket.
    pub(crate) async fn park(mut self, time: Duration) -> Result<HoldTicket, Error> {
        let hold = Arc::clone(&self.hold);
        let parked = async move {
            let name = self.hold.record.info().name.clone();
            self.hold.refuse_to_park(&name, time)?;
            self.has_left = true;
            self.hold.park(name, time).await
        };
        hold.unforked(parked).await
    }
}

impl Hold {
    fn refuse_to_park(&self, name: &LockName, time: Duration) -> Result<(), Error> {
        let lock = name.as_str();
        let why = if self.record.kind().is_foreign {
            format!("lock `{lock}` is one of Redisson, which knows no parked holds")
        } else if time.as_millis() == 0 {
            format!(
                "lock `{lock}` cannot be detached for {time:?}: it takes a millisecond at least"
            )
        } else {
            return Ok(());
        };
        Err(Error::invalid(why))
    }

    async fn park(self: &Arc<Self>, name: LockName, time: Duration) -> Result<HoldTicket, Error> {
        let Self { coordinator, holds, id, .. } = &**self;
        let (secret, clock) = (coordinator.secret(), coordinator.clock());
        let record = self.record.passed_on(id, &secret);
        let (rules, is_fair) = (record.rules(), record.kind().is_fair);
        // From here on nobody trusts the hold. If this future is dropped, `detached` gives back the
        // votes that are not passed on.
        let detached = self.detach()?;
        let left = detached.left.map(|left| HoldTimeLeft { left, detached: clock.wall() });
        let won = match coordinator.ask_once(&record, rules).await {
            Ok(won) => won,
            Err(defeat) => return Err(detached.error(defeat.votes).await),
        };
        let (hold, now) = (won.claim.hold.clone(), clock.now());
        let limit = HoldLimit::new(detached.left.map_or(time, |left| left.min(time)), now);
        let parked = Self::start(coordinator, holds, (won, None), None, true, Some(limit), now);
        keeper::begin(&parked, now);
        coordinator.spawn(parked.renew_when_woken());
        Ok(HoldTicket::new(name, hold, secret, (rules.terms.lease, is_fair), left))
    }

    /// Renews the parked hold whenever a voter says that somebody resumes it.
    // So it ends five voter deadlines after it was resumed (`RESUMING`), and not as long after the
    // next renewal that is due.
    fn renew_when_woken(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        let (hold, listener) = (Arc::clone(self), self.coordinator.listen_for_ticket(&self.id));
        async move {
            loop {
                tokio::select! {
                    biased;
                    () = hold.ended.until(|ended| *ended) => return,
                    () = listener.receiver.woken() => {}
                }
                // Before the renewal: a wake-up that comes during it makes another one.
                listener.receiver.forget();
                hold.renew_now();
                keeper::schedule(&hold);
            }
        }
    }
}

// Whoever resumes the hold.

/// Another hold that a majority named when it was asked for a parked one, and since when.
type Resumer = Option<(HoldId, Moment)>;

impl LockRequest {
    /// Takes a parked hold over. While others try the same, or too few voters answer, it tries
    /// again for as long as voters may be silent.
    pub(crate) async fn resume(mut self, ticket: &HoldTicket) -> Result<Entry, Error> {
        self.record = self.record.passed_on(ticket.hold(), ticket.secret());
        if let Some(left) = ticket.left() {
            let left = left.at(self.coordinator.clock().wall());
            if left.is_zero() {
                return Err(self.ended(ticket.hold(), "its hold_at_most is over", Vec::new()));
            }
            self.hold_at_most = Some(left);
        }
        let limit = Limit::Once(self.coordinator.patience());
        let mut span = AcquireSpan::start(&self.coordinator, &self.record, limit);
        let entered = self.coordinator.gate().within(self.take_over(ticket.hold(), &span)).await;
        span.outcome = match &entered {
            Ok(_) => "granted",
            Err(error) if error.is_no_quorum() => "no_quorum",
            Err(error) if error.is_busy() => "held",
            Err(_) => "error",
        };
        entered
    }

    async fn take_over(&self, parked: &HoldId, span: &AcquireSpan<'_>) -> Result<Entry, Error> {
        let Self { coordinator, record, .. } = self;
        let (clock, standings) = (coordinator.clock(), &coordinator.panel().standings);
        let patience = coordinator.patience();
        let mut pause = Backoff::new(Duration::from_millis(10), Duration::from_millis(500));
        let mut resumer = None;
        loop {
            match coordinator.ask_once(record, record.rules()).await {
                Ok(won) if won.is_in_time(standings.stood_still(), clock.now()) => {
                    span.record_grant(&won, clock.now());
                    return Ok(self.enter_resumed(won, parked));
                }
                // The client stood still meanwhile. By the drop, the votes go back to the ticket.
                Ok(_) => {}
                Err(defeat) => {
                    let error = self.not_resumed(parked, defeat, &mut resumer);
                    if error.is_ticket_ended() {
                        // An attempt may have passed a vote back to the ticket after that had
                        // ended: its voter would keep it for a lease (law 6,
                        // `a_vote_that_comes_back_after_its_ticket_has_ended_is_given_up`).
                        let lease = record.rules().terms.lease;
                        drop(coordinator.give_back(record, parked, lease, clock.now()));
                    }
                    let passes = error.is_no_quorum() || error.is_busy();
                    if !passes || error.is_permanent() || clock.now() >= patience {
                        return Err(error);
                    }
                }
            }
            clock.sleep(pause.pause(coordinator.chance())).await;
        }
    }

    fn enter_resumed(&self, won: Won, parked: &HoldId) -> Entry {
        let Self { coordinator, holds, record, .. } = self;
        let (lease, now) = (record.rules().terms.lease, coordinator.clock().now());
        let entry = self.first_entry(won, None, now);
        if let Some(parked) = holds.parked(parked) {
            parked.end_as_resumed();
        } else {
            // A minority of the voters may still have the parked hold. Freed of it, they give their
            // votes to this hold at its next renewal.
            drop(coordinator.give_back(record, parked, lease, now));
        }
        entry
    }

    /// Why an attempt did not get the votes.
    // The ticket has ended only if a majority says that nobody has the votes, or if a hold that
    // resumes it has had a majority for longer than an attempt can have one: such an attempt may
    // still fail, and then the ticket is good (law 9).
    fn not_resumed(&self, parked: &HoldId, defeat: Defeat, resumer: &mut Resumer) -> Error {
        let Self { coordinator, record, .. } = self;
        let (now, quorum) = (coordinator.clock().now(), coordinator.panel().quorum);
        let Defeat { loss, votes, started } = defeat;
        let named = named_by_majority(quorum, &votes).cloned();
        let verdicts = votes.into_verdicts();
        if loss == Loss::NoQuorum {
            return coordinator.undecided(record, verdicts, started);
        }
        if named.as_ref() == Some(parked) {
            let lock = record.info().name.as_str();
            let why = format!("the ticket of lock `{lock}` has not the secret of hold {parked}");
            return Error::invalid(why);
        }
        let is_gone = |voter: usize| match &verdicts[voter] {
            Verdict::Refused { by, .. } => by != parked && !by.resumes(parked),
            verdict => matches!(verdict, Verdict::Absent | Verdict::Revoked),
        };
        if quorum.missed(is_gone) {
            return self.ended(parked, "no majority has the hold", verdicts);
        }
        let since = resumer.take().filter(|(by, _)| named.as_ref() == Some(by));
        *resumer = named.map(|by| since.unwrap_or((by, now)));
        let patience = coordinator.panel().adapt(record.rules()).voter_deadline * RESUMING;
        if resumer.as_ref().is_some_and(|(_, since)| now.since(*since) >= patience) {
            return self.ended(parked, "it was resumed", verdicts);
        }
        let kind =
            Kind::Busy { lock: record.info().name.as_str().into(), by: None, lease_left: None };
        Error::new(kind, coordinator.panel().report(verdicts))
    }

    fn ended(&self, hold: &HoldId, why: &'static str, verdicts: Vec<Verdict>) -> Error {
        let (lock, hold) = (self.record.info().name.as_str().into(), hold.clone());
        let kind = Kind::TicketEnded { lock, hold, why: why.into() };
        Error::new(kind, self.coordinator.panel().report(verdicts))
    }
}

/// The hold that has the votes of a majority.
fn named_by_majority(quorum: Quorum, votes: &Votes) -> Option<&HoldId> {
    let named = |voter: usize| votes.heard().find(|(at, _)| *at == voter);
    let by = |voter: usize| match named(voter) {
        Some((_, Verdict::Refused { by, .. })) => Some(by),
        _ => None,
    };
    let most = votes.obstacle()?;
    quorum.reached(|voter| by(voter) == Some(most)).then_some(most)
}
