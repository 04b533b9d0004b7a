//! Waiting in the queue of a lock: one bid after the other, all from the same place.

use std::{sync::Arc, time::Duration};

use futures::future::OptionFuture;

use super::{
    Coordinator,
    claim::{Claim, Won},
    gate::Admitted,
    line::Turn,
    listener::WaiterListener,
    waiting::NotGranted,
};
use crate::{
    kinds::{Ask, LockRecord},
    proto::{
        Bid, BidNext, Defeat, Denial, Error, Grant, HoldId, Limit, Loss, Refusal, Ticket, Vote,
        Wait, WaitNext, Wake,
    },
    voter::Replies,
};

/// How many waiters of a client stand in the queue of a lock with an order. Each costs every voter
/// an entry, and a request every third of the waiter deadline.
pub(super) const PLACES: usize = 512;

/// How long programs of another library may ask first: a JVM needs some 2 ms after a release.
const YIELD: Duration = Duration::from_millis(5);

/// A place in a queue. Dropping it leaves the queue on all voters.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    coordinator: Arc<Coordinator>,
    /// The lock, as it is asked for from this place.
    record: LockRecord,
    place: HoldId,
    wait: Wait,
    ticket: Option<Ticket>,
    /// The votes of the latest bid.
    claim: Option<Claim>,
    listener: WaiterListener,
    /// Its turn in its client's line. It passes on to the line what voters said.
    turn: &'a Turn<'a>,
}

/// What a bid came to.
enum BidEnd {
    Won(Box<Won>),
    Lost(Defeat),
    /// The next bid was due before a majority had answered this one.
    CutShort,
}

impl Coordinator {
    /// A new place in the queue of a lock. A read/write lock of another library has no queue: then
    /// the waiter asks without a place.
    pub(crate) fn place<'a>(
        self: &Arc<Self>,
        record: &LockRecord,
        limit: Limit,
        turn: &'a Turn<'a>,
    ) -> Waiter<'a> {
        let refresh = record.info().refresh().unwrap_or(self.settings.poll_interval);
        let wait = Wait::new(limit, self.settings.quorum_timeout, refresh);
        // Those in the queue have been asking the same voters.
        let (known, silent_since) = turn.known();
        turn.ask();
        self.enter_queue(record, wait.resume_from(known, silent_since), turn)
    }

    /// A new place, behind all others.
    fn enter_queue<'a>(
        self: &Arc<Self>,
        record: &LockRecord,
        wait: Wait,
        turn: &'a Turn<'a>,
    ) -> Waiter<'a> {
        let info = record.info();
        let place = info.fresh_place(&self.ids);
        Waiter {
            coordinator: Arc::clone(self),
            record: record.at_place(&place),
            listener: WaiterListener::of(
                self.wakeups.listener(place.as_str(), self.panel.quorum.voters()),
            ),
            place,
            wait,
            // Where there is no queue there is none to be fixed.
            ticket: info.waiting().is_none().then_some(Ticket(0)),
            claim: None,
            turn,
        }
    }
}

impl Waiter<'_> {
    /// Bids until a majority grants, or the limit comes while the lock is another's. `admitted`:
    /// leave for the first bid.
    pub(crate) async fn wait(
        &mut self,
        mut admitted: Option<Admitted<'_>>,
    ) -> Result<Box<Won>, NotGranted> {
        let coordinator = Arc::clone(&self.coordinator);
        let clock = &coordinator.clock;
        loop {
            match self.wait.next(clock.now()) {
                WaitNext::Ask(wake) => {
                    if let Some(wake) = wake {
                        coordinator.count_wakeup(&self.record, wake);
                    }
                    if self.record.kind().is_foreign
                        && self.wait.attempts() > 0
                        && self.turn.yields()
                    {
                        clock.sleep(YIELD).await;
                    }
                    let leave = self.admit(&coordinator, admitted.take()).await?;
                    match self.bid(leave).await? {
                        BidEnd::Won(won) => {
                            self.turn.count_grant();
                            self.turn.tell(won.denial());
                            return Ok(won);
                        }
                        BidEnd::Lost(defeat) => {
                            let chance = coordinator.chance();
                            let denial = self.wait.lose_attempt(defeat, clock.now(), chance);
                            if let Some(denial) = denial {
                                self.turn.tell(denial.clone());
                            }
                        }
                        BidEnd::CutShort => self.wait.cut_attempt_short(clock.now()),
                    }
                }
                WaitNext::Sleep(until) => clock.sleep_until(until).await,
                WaitNext::GiveUp(denial) => {
                    return Err(coordinator.report_denial(&self.record, *denial));
                }
            }
        }
    }

    /// Leave to ask. A place that stands waits for none: it would be forgotten meanwhile, against
    /// law 4, or keep the lock from everybody.
    async fn admit<'c>(
        &mut self,
        coordinator: &'c Coordinator,
        admitted: Option<Admitted<'c>>,
    ) -> Result<Option<Admitted<'c>>, NotGranted> {
        if self.ticket.is_some() {
            return Ok(admitted);
        }
        let (lock, limit) = (&self.record.info().name, self.wait.limit());
        let leave = coordinator.admit(admitted, lock, limit, Some(self.turn)).await;
        leave.map(Some).map_err(|overloaded| match self.wait.denial() {
            Some(denial) => coordinator.report_denial(&self.record, denial.clone()),
            None => overloaded.into(),
        })
    }

    /// A majority granted a bid: with all settled, the lock is won.
    async fn win(&mut self, mut bid: Bid, mut grant: Grant, replies: Option<Replies>) -> BidEnd {
        let mut replies = replies.expect("they are kept until it is lost");
        let (rules, started) = (self.record.rules(), bid.started());
        let Self { coordinator, claim, ticket, .. } = self;
        let mine = claim.as_mut().expect("a bid makes one");
        // A majority may say another ticket than the first that granted.
        let heard = |voter, vote: Vote, at| bid.heard(voter, vote.verdict, vote.ticket, at);
        let settled = coordinator.settle(mine, &mut grant, &mut replies, *ticket, heard).await;
        *ticket = bid.ticket();
        match coordinator.end_attempt(&self.record, settled, bid.into_votes(), started) {
            Ok((granted, votes)) => {
                let claim = claim.take().expect("it is there");
                let mut won = Won::new(claim, started, rules, granted, votes, replies);
                won.attempts = self.wait.attempts();
                BidEnd::Won(Box::new(won))
            }
            Err(defeat) => {
                mine.give_back_all();
                BidEnd::Lost(defeat)
            }
        }
    }

    /// Asks all voters for a hold.
    fn ask(&mut self) -> (Bid, Grant, Replies) {
        let (panel, started) = (&self.coordinator.panel, self.coordinator.clock.now());
        let rules = panel.adapt(self.record.rules());
        // Gives back first what the bid before may still get. Not sooner: if the waiter is dropped,
        // the claim of the last bid is what leaves the queue.
        self.claim = None;
        self.listener.forget();
        let bid = Bid::start(panel.quorum, rules, self.ticket, &mut self.wait, started);
        let (hold, limit) = (self.next_hold(), self.wait.cut_off());
        let (coordinator, record) = (&self.coordinator, &self.record);
        let slot_order = record.info().slot_order(&hold);
        let grant = Grant::new(panel.quorum, slot_order, rules, started, limit);
        let claim = self.claim.insert(Claim::of_all(coordinator, record, hold, rules));
        let ticket = self.ticket.filter(|_| !crate::mutant!("ticket_is_never_fixed"));
        let ask = Ask { ticket, token: coordinator.floor(record), ..claim.ask() };
        let replies = panel.ask_all(&record.acquire(&ask), started);
        (bid, grant, replies)
    }

    /// Each attempt has an id of its own, so that a late undo takes nothing from the next.
    fn next_hold(&self) -> HoldId {
        let ids = &self.coordinator.ids;
        match self.record.info().waiting() {
            Some(_) => ids.attempt(&self.place, self.wait.attempts()),
            None => self.record.hold(ids),
        }
    }

    /// Asks all voters, and waits until the next bid makes sense. `leave`: to ask, until a majority
    /// has answered.
    async fn bid(&mut self, mut leave: Option<Admitted<'_>>) -> Result<BidEnd, Error> {
        let coordinator = Arc::clone(&self.coordinator);
        let Coordinator { clock, panel, .. } = &*coordinator;
        let (mut bid, mut grant, replies) = self.ask();
        let (mut replies, mut now) = (Some(replies), bid.started());
        loop {
            let Self { wait, claim, .. } = self;
            let claim = claim.as_mut().expect("a bid makes one");
            let next = self.listener.look(|heard| {
                if heard.missed {
                    wait.miss_calls(now, coordinator.chance());
                }
                bid.next(now, &heard.called, wait)
            });
            match next {
                BidNext::Wait(until) => {
                    // Many wait for their turn: what has been heard needs no more room.
                    replies = replies.filter(|it| !bid.is_refused() || it.are_open());
                    // None where nobody is to answer any more.
                    let answers = OptionFuture::from(replies.as_mut().map(Replies::next));
                    let heard = tokio::select! {
                        biased;
                        Some(answer) = answers => Some(answer),
                        subscribed = self.listener.changed() => {
                            if subscribed? {
                                return Ok(self.end_bid(bid, None));
                            }
                            None
                        }
                        () = clock.sleep_until(until) => None,
                    };
                    now = clock.now();
                    let Some((voter, outcome)) = heard else { continue };
                    let vote = panel.hear(&mut grant, voter, &outcome);
                    bid.heard(voter, vote.verdict, vote.ticket, now);
                    claim.owe_if(voter, bid.owes(voter));
                }
                BidNext::Won => return Ok(self.win(bid, grant, replies).await),
                BidNext::GiveBack(voters) => claim.give_back(&voters),
                BidNext::Refused => {
                    drop(leave.take());
                    self.listener.listen(&coordinator, &self.record, bid.votes());
                    // It may be long until the next bid.
                    self.turn.tell(Denial::Held(Refusal::of(bid.votes(), now)));
                }
                BidNext::End(wake) => return Ok(self.end_bid(bid, wake)),
                BidNext::Silent => {
                    // Nobody listens in the pause, and what comes then may be what a holder needs.
                    claim.give_back_all();
                    return Ok(self.end_bid(bid, None));
                }
                BidNext::Leave(voters) => return Ok(self.give_way(bid, voters)),
            }
        }
    }

    /// Leaves the queue on these voters, and enters it again with the next bid, behind all others:
    /// one that cannot have the lock is not to keep it from all who can.
    fn give_way(&mut self, bid: Bid, voters: Vec<usize>) -> BidEnd {
        self.leave(voters);
        let end = self.end_bid(bid, None);
        let Self { coordinator, record, wait, turn, .. } = self;
        *self = coordinator.enter_queue(record, wait.clone(), turn);
        end
    }

    fn leave(&mut self, voters: Vec<usize>) {
        if let Some(claim) = self.claim.take() {
            claim.leave(voters);
        }
    }

    fn end_bid(&mut self, bid: Bid, wake: Option<Wake>) -> BidEnd {
        if let Some(wake) = wake {
            self.coordinator.count_wakeup(&self.record, wake);
        }
        self.ticket = bid.ticket();
        let (loss, started) = (bid.loss(), bid.started());
        let settled = Err((loss.unwrap_or(Loss::NoQuorum), None));
        match self.coordinator.end_attempt(&self.record, settled, bid.into_votes(), started) {
            Err(defeat) if loss.is_some() => BidEnd::Lost(defeat),
            _ => BidEnd::CutShort,
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.leave((0..self.coordinator.panel.quorum.voters()).collect());
    }
}
