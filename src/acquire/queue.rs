//! Waiting in the queue that the voters keep for a lock: one bid after the other, from one place.

use std::{sync::Arc, time::Duration};

use futures::future::OptionFuture;

use super::{
    Coordinator,
    claim::{Claim, Won},
    gate::Admitted,
    local_queue::Turn,
    waiting::NotGranted,
    wakeup::WaiterListener,
};
use crate::{
    clock::Moment,
    kinds::{Ask, LockRecord},
    proto::{
        Bid, BidNext, Defeat, Denial, Error, Grant, HoldId, Limit, Loss, Refusal, Ticket, Vote,
        Wait, WaitNext, Wake,
    },
    voter::Replies,
};

/// How many tasks of a client have a place in the queue of a lock with an order.
// Each place is an entry on every voter, and a request every third of the waiter deadline. Without
// a bound, 10,000 tasks of one client sent each voter 6,000 requests a second.
pub(super) const MAX_PLACES: usize = 512;

/// How long programs of another library may ask first.
// A JVM needs some 2 ms from a release to its request.
const YIELD: Duration = Duration::from_millis(5);

/// A waiter with a place in the queue of a lock. Dropping it leaves the queue on all voters.
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
    /// Its turn in the local queue, to which it reports what voters said.
    turn: &'a Turn<'a>,
}

/// How a bid ended.
enum BidEnd {
    Won(Box<Won>),
    Lost(Defeat),
    /// The next bid was due before a majority had answered this one.
    CutShort,
}

impl Coordinator {
    /// A waiter in the queue of a lock. A read/write lock of another library has no queue: then the
    /// waiter asks without a place.
    pub(crate) fn place<'a>(
        self: &Arc<Self>,
        record: &LockRecord,
        limit: Limit,
        turn: &'a Turn<'a>,
    ) -> Waiter<'a> {
        let refresh = record.info().refresh().unwrap_or(self.settings.poll_interval);
        let wait = Wait::new(limit, self.settings.quorum_timeout, refresh);
        // The tasks before asked the same voters. So an outage began when they saw it, and not anew
        // with each task (`patience_does_not_begin_anew_when_one_before_gives_up`).
        let (denial, silent_since) = turn.last_report();
        turn.ask();
        self.enter_queue(record, wait.resume_from(denial, silent_since), turn)
    }

    /// A waiter with a new place, behind all others.
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
            // Without a queue no ticket is to be fixed, so every bid is as one with a fixed ticket.
            ticket: info.waiting().is_none().then_some(Ticket(0)),
            claim: None,
            turn,
        }
    }
}

impl Waiter<'_> {
    /// Bids until a majority grants, or the limit comes while another hold has the lock.
    /// `admitted`: leave for the first bid.
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
                    let asks_again = self.wait.attempts() > 0;
                    if self.record.kind().is_foreign && asks_again && self.turn.yields() {
                        clock.sleep(YIELD).await;
                    }
                    let leave = self.admit(&coordinator, admitted.take()).await?;
                    match self.bid(leave).await? {
                        BidEnd::Won(won) => {
                            self.turn.count_grant();
                            // What the tasks behind say at their limits: who has the lock.
                            self.turn.report(won.denial());
                            return Ok(won);
                        }
                        BidEnd::Lost(defeat) => {
                            let chance = coordinator.chance();
                            let denial = self.wait.lose_attempt(defeat, clock.now(), chance);
                            if let Some(denial) = denial {
                                self.turn.report(denial.clone());
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

    /// Leave to ask, for a bid that needs it.
    // Only a first bid does. A place with a ticket that waited for leave would be forgotten by the
    // voters meanwhile, and later callers would pass it (law 4; the test
    // `a_place_stands_while_its_client_asks_for_thousands_of_other_locks`).
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

    /// A majority granted a bid. Settles what is left to do; then the lock is won.
    async fn win(&mut self, mut bid: Bid, mut grant: Grant, replies: Option<Replies>) -> BidEnd {
        let mut replies = replies.expect("they are kept until it is lost");
        let (rules, started) = (self.record.rules(), bid.started());
        let Self { coordinator, claim, ticket, .. } = self;
        let mine = claim.as_mut().expect("a bid makes one");
        // A voter that answers now may complete a majority for another ticket, which counts then
        // (law 4, `the_ticket_of_a_majority_counts_though_it_comes_after_the_grants`).
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
                // Before the pause that follows, in which another waiter may need these votes.
                mine.give_back_all();
                BidEnd::Lost(defeat)
            }
        }
    }

    /// Asks all voters for a hold.
    fn ask(&mut self) -> (Bid, Grant, Replies) {
        let (panel, started) = (&self.coordinator.panel, self.coordinator.clock.now());
        let rules = panel.adapt(self.record.rules());
        // First gives back what the bid before may still get. Not sooner: if the waiter is dropped,
        // it leaves the queue by the claim of its last bid.
        self.claim = None;
        // Before the question: a wake-up that comes while it is answered must not be forgotten.
        self.listener.place.receiver.forget();
        let bid = Bid::start(panel.quorum, rules, self.ticket, &mut self.wait, started);
        let (hold, limit) = (self.next_hold(), self.wait.cut_off());
        let (coordinator, record) = (&self.coordinator, &self.record);
        let slot_order = record.info().slot_order(&hold);
        let grant = Grant::new(panel.quorum, slot_order, rules, started, limit);
        // Before the request leaves: a panic or a drop in between would leave its votes behind.
        let claim = self.claim.insert(Claim::of_all(coordinator, record, hold, rules));
        let ticket = self.ticket.filter(|_| !crate::mutant!("ticket_is_never_fixed"));
        let ask = Ask { ticket, token: coordinator.floor(record), ..claim.ask() };
        let replies = panel.ask_all(&record.acquire(&ask), started);
        (bid, grant, replies)
    }

    /// The id of the hold for the next bid.
    // Each bid has its own. With one id for all, an undo that a slow voter runs late would take the
    // vote that it gave to the next bid (*Waiting*, 4, in the protocol).
    fn next_hold(&self) -> HoldId {
        let ids = &self.coordinator.ids;
        match self.record.info().waiting() {
            Some(_) => ids.attempt(&self.place, self.wait.attempts()),
            None => self.record.hold(ids),
        }
    }

    /// What the bid says next, by the wake-ups so far.
    fn next_step(&mut self, bid: &mut Bid, now: Moment) -> BidNext {
        let Self { coordinator, wait, listener, .. } = self;
        listener.place.receiver.look(|received| {
            if received.may_have_missed {
                wait.miss_wakeups(now, coordinator.chance());
            }
            bid.next(now, &received.from, wait)
        })
    }

    /// Asks all voters, and waits until the next bid makes sense. `leave`: to ask, until a majority
    /// has answered.
    async fn bid(&mut self, mut leave: Option<Admitted<'_>>) -> Result<BidEnd, Error> {
        let coordinator = Arc::clone(&self.coordinator);
        let Coordinator { clock, panel, .. } = &*coordinator;
        let (mut bid, mut grant, replies) = self.ask();
        let (mut replies, mut now) = (Some(replies), bid.started());
        loop {
            let next = self.next_step(&mut bid, now);
            let claim = self.claim.as_mut().expect("a bid makes one");
            match next {
                BidNext::Wait(until) => {
                    // A crowd may wait here for long: once all have answered, the room that the
                    // replies took is freed.
                    replies = replies.filter(|it| !bid.is_refused() || it.are_open());
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
                    // From here on it sends nothing until its turn. Others may ask meanwhile.
                    drop(leave.take());
                    self.listener.listen(&coordinator, &self.record, bid.votes());
                    // The next bid may be far off, and tasks behind have limits.
                    self.turn.report(Denial::Held(Refusal::of(bid.votes(), now)));
                }
                BidNext::End(wake) => return Ok(self.end_bid(bid, wake)),
                BidNext::Silent => {
                    // Nothing is heard in the pause. A vote that came then would be kept for all of
                    // it, and may be the one that a holder needs for its renewal (law 7).
                    claim.give_back_all();
                    return Ok(self.end_bid(bid, None));
                }
                BidNext::Leave(voters) => return Ok(self.give_way(bid, voters)),
            }
        }
    }

    /// Leaves the queue on these voters. The next bid enters it again, behind all others.
    // Perhaps no majority has its place, as too few voters answered. Or a majority gives it its
    // votes again and again, but they do not count, for example in a quarantine: first in the queue
    // it would keep a free lock from all who can have it
    // (`a_waiter_whose_grants_cannot_count_keeps_a_free_lock_from_nobody`).
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

    /// Ends a bid that was not won.
    fn end_bid(&mut self, bid: Bid, wake: Option<Wake>) -> BidEnd {
        if let Some(wake) = wake {
            self.coordinator.count_wakeup(&self.record, wake);
        }
        self.ticket = bid.ticket();
        let (loss, started) = (bid.loss(), bid.started());
        // Where too few voters have answered to say why, nothing was lost: the next bid is due.
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
