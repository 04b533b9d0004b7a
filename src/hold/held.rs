//! The hold itself: the truth about how long it may be trusted, and how often it was entered.

mod rounds;

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rounds::RoundSent;

use super::{Holds, agenda::AgendaPlace};
use crate::{
    acquire::{Claim, Coordinator, Succession, Won},
    clock::Moment,
    hold::agenda::Listing,
    kinds::LockRecord,
    proto::{
        Cause, Checkup, Duty, Error, HoldId, HoldLimit, Kind, Lease, Listed, Owner, RoundId,
        Rounded, Rules, Slots, Support, Tenure, Terms, Token, Verdict, Votes,
    },
    series::LockSeries,
    signal::Signal,
    voter::Replies,
};

pub(super) use rounds::Exchange;

/// One hold. It ends once: by its last release, or by loss.
#[derive(Debug)]
pub(crate) struct Hold {
    id: HoldId,
    owner: Option<Owner>,
    record: LockRecord,
    token: Option<Token>,
    /// The last number of its block, which voters store.
    stored: Option<Token>,
    /// Of a semaphore.
    slots: Option<Slots>,
    rules: Rules,
    /// When the votes were asked for, and for how long its client had stood still by then.
    started: Moment,
    stood_still: Duration,
    coordinator: Arc<Coordinator>,
    holds: Arc<Holds>,
    acquired: Moment,
    /// Its number on the agenda.
    number: u64,
    state: Mutex<HoldState>,
    /// Changes when the duty may have, and to true when the hold ends.
    over: Signal<bool>,
}

#[derive(Debug)]
struct HoldState {
    lease: Lease,
    /// For how long the client had stood still when the deadline was last looked at.
    stood_still: Duration,
    /// The longest lease that any voter was asked for.
    longest: Duration,
    count: u32,
    /// Which voters have it.
    support: Support,
    checkup: Checkup,
    end: Option<End>,
    /// Where it is on the agenda.
    place: Option<AgendaPlace>,
    /// A round of renewal waits for its turn or is under way.
    in_round: bool,
    /// It was said that a task of its own client waits for the lock.
    warned: bool,
    /// The last round failed.
    failing: bool,
    /// What the voters said in the last round that failed.
    failed: Vec<Verdict>,
    /// Where its owner may hand it on.
    succession: Option<(Tenure, Succession)>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Released,
    /// As that, and a majority turned out to have had no vote of it any more.
    Vanished,
    Closed,
    Lost(HoldLoss),
}

/// What leaving came to.
pub(super) enum Left {
    /// The hold had been lost before.
    Lost(Error),
    /// Other entries are left.
    Inner(Replies),
    /// The next task in line has the hold.
    HandedOn,
    Last {
        replies: Replies,
        frees_at: Moment,
    },
}

impl Hold {
    /// Who notices a deadline this late had not looked at the clock. Timers look twice a second.
    const UNATTENDED: Duration = Duration::from_secs(1);

    /// Takes over what was won, and the answers that are still to come.
    pub(super) fn start(
        coordinator: &Arc<Coordinator>,
        holds: &Arc<Holds>,
        (won, succession): (Won, Option<Succession>),
        owner: Option<Owner>,
        renewed: bool,
        limit: Option<HoldLimit>,
    ) -> (Arc<Self>, Exchange) {
        let stood_still = won.stood_still();
        let (token, stored, is_handed_on) = (won.own_token(), won.token, won.is_handed_on());
        let Won { claim, started, rules, votes, late, slots, elsewhere, tenure, .. } = won;
        let (id, record) = claim.take_over();
        let acquired = if is_handed_on { coordinator.clock().now() } else { started };
        let voters = coordinator.panel().quorum.voters();
        let mut support = Support::of(voters);
        let (round, terms) = (RoundId::FIRST, rules.terms);
        let sent = RoundSent { round, terms, started, stood_still, in_full: false };
        let asked = sent.heard(coordinator.clock().now());
        for voter in votes.granting() {
            support.heard(voter, &Verdict::Granted, asked);
        }
        coordinator.series(&record).held.change(1.0);
        let state = HoldState {
            lease: Lease::new(rules.terms, started, renewed, limit),
            stood_still,
            longest: rules.terms.lease,
            count: 1,
            support,
            checkup: Checkup::of(voters),
            end: None,
            place: None,
            in_round: false,
            warned: false,
            failing: false,
            failed: Vec::new(),
            succession: tenure.zip(succession),
        };
        let hold = Arc::new(Self {
            id,
            owner,
            record,
            token,
            stored,
            slots,
            rules,
            started,
            stood_still,
            coordinator: Arc::clone(coordinator),
            holds: Arc::clone(holds),
            acquired,
            number: holds.agenda().number(),
            state: Mutex::new(state),
            over: Signal::new(false),
        });
        holds.add(&hold);
        hold.put_right(sent, &elsewhere);
        (hold, Exchange { sent, replies: late })
    }

    pub(super) fn id(&self) -> &HoldId {
        &self.id
    }

    pub(super) fn owner(&self) -> Option<Owner> {
        self.owner
    }

    pub(super) fn key(&self) -> &Arc<str> {
        &self.record.info().key
    }

    pub(super) fn name(&self) -> &str {
        self.record.info().name.as_str()
    }

    pub(super) fn record(&self) -> &LockRecord {
        &self.record
    }

    pub(super) fn coordinator(&self) -> &Arc<Coordinator> {
        &self.coordinator
    }

    pub(super) fn holds(&self) -> &Arc<Holds> {
        &self.holds
    }

    pub(super) fn token(&self) -> Option<Token> {
        self.token
    }

    /// The slots of a semaphore that it has.
    pub(super) fn slots(&self) -> Option<&Slots> {
        self.slots.as_ref()
    }

    /// How many voters are known to have it.
    pub(super) fn votes(&self) -> usize {
        self.state().support.votes()
    }

    pub(super) fn terms(&self) -> Terms {
        self.state().lease.terms()
    }

    /// Whether it is not renewed.
    pub(super) fn is_fixed(&self) -> bool {
        self.state().lease.is_fixed()
    }

    pub(super) fn limit(&self) -> Option<HoldLimit> {
        self.state().lease.limit()
    }

    /// Whether its last entry has left it.
    pub(super) fn is_released(&self) -> bool {
        matches!(self.state().end, Some(End::Released | End::Vanished))
    }

    /// What is left of the validity; zero once the hold has ended.
    pub(super) fn remaining(&self) -> Duration {
        self.deadline().since(self.coordinator.clock().now())
    }

    pub(super) fn deadline(&self) -> Moment {
        self.state().lease.deadline()
    }

    /// When the votes end that it has.
    pub(super) fn votes_end(&self) -> Moment {
        self.state().lease.votes_end()
    }

    /// For how long it has been held.
    pub(super) fn age(&self, now: Moment) -> Duration {
        now.since(self.acquired)
    }

    pub(super) fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    pub(super) fn count(&self) -> u32 {
        self.state().count
    }

    pub(super) fn over(&self) -> &Signal<bool> {
        &self.over
    }

    /// Completes when the hold is lost, by the clock alone or because another has the votes.
    pub(super) async fn until_lost(&self) {
        loop {
            let seen = self.over.version();
            let deadline = self.deadline();
            if !self.is_held() {
                self.expire(&mut self.state());
                return;
            }
            tokio::select! {
                biased;
                () = self.over.changed_since(seen) => {}
                () = self.coordinator.clock().sleep_until(deadline) => {}
            }
        }
    }

    /// Ends the hold as lost, if it has not ended. What it still has on the voters is given back.
    fn lose(&self, state: &mut HoldState, loss: HoldLoss) {
        if state.end.is_none() {
            self.end(state, End::Lost(loss));
            self.tell_loss(loss, &state.failed);
        }
    }

    fn expire(&self, state: &mut HoldState) {
        let late = self.coordinator.clock().now().since(state.lease.deadline());
        let loss = match state.lease.limit_that_ends_it() {
            Some(limit) => HoldLoss::TooLong(limit.at_most),
            None if state.lease.is_fixed() => HoldLoss::Fixed,
            None if late >= Self::UNATTENDED => HoldLoss::Unattended(late),
            None => HoldLoss::Expired,
        };
        self.lose(state, loss);
    }

    fn tell_loss(&self, loss: HoldLoss, verdicts: &[Verdict]) {
        self.series().lost.of(loss.reason()).count(1);
        let voters = self.coordinator.panel().report(verdicts.to_vec());
        let (lock, why) = (self.name(), loss.text());
        tracing::warn!(lock, hold = %self.id, %why, voters = %Listed(&voters), "lock lost");
    }

    /// Ends the hold as lost, and says why it was.
    pub(super) fn lost(&self) -> Error {
        let mut state = self.state();
        self.expire(&mut state);
        let why = match state.end {
            Some(End::Lost(loss)) => loss.text(),
            Some(End::Closed) => "its client was closed".into(),
            Some(End::Vanished) => HoldLoss::Vanished.text(),
            Some(End::Released) => {
                let (lock, hold) = (self.name().into(), self.id.clone());
                return Error::new(Kind::Released { lock, hold }, Vec::new());
            }
            None => HoldLoss::Expired.text(),
        };
        self.lost_because(why, state.failed.clone())
    }

    /// The votes turned out to be gone when they were given back; counted once, though several
    /// releases may find it at the same time.
    pub(super) fn vanished(&self, verdicts: Vec<Verdict>) -> Error {
        let mut state = self.state();
        match state.end {
            Some(End::Released) => {
                state.end = Some(End::Vanished);
                self.tell_loss(HoldLoss::Vanished, &verdicts);
            }
            Some(End::Vanished | End::Lost(_) | End::Closed) => {}
            None => self.lose(&mut state, HoldLoss::Vanished),
        }
        self.lost_because(HoldLoss::Vanished.text(), verdicts)
    }

    fn lost_because(&self, why: Cow<'static, str>, verdicts: Vec<Verdict>) -> Error {
        let (lock, hold) = (self.name().into(), self.id.clone());
        Error::new(Kind::Lost { lock, hold, why }, self.coordinator.panel().report(verdicts))
    }

    /// What is written of it.
    pub(super) fn series(&self) -> &LockSeries {
        self.coordinator.series(&self.record)
    }

    /// What the voters said in the last round that failed.
    pub(super) fn failed(&self) -> Vec<Verdict> {
        self.state().failed.clone()
    }

    /// Takes one entry away; the last one ends the hold and gives its votes back.
    pub(super) fn leave(&self) -> Left {
        self.leave_in(self.state())
    }

    fn leave_in(&self, mut state: MutexGuard<'_, HoldState>) -> Left {
        state.count -= 1;
        if state.count == 0 {
            self.holds.remove(self);
        }
        if state.lease.duty(self.coordinator.clock().now()) == Duty::Lost {
            drop(state);
            return Left::Lost(self.lost());
        }
        if state.count > 0 {
            let left = u32::from(!crate::mutant!("inner_release_gives_back")) * state.count;
            let release = self.record.release(&self.id, left);
            return Left::Inner(self.coordinator.panel().ask_all(&release));
        }
        if self.hand_on(&mut state) {
            return Left::HandedOn;
        }
        let frees_at = self.coordinator.clock().now() + state.longest;
        Left::Last { replies: self.end(&mut state, End::Released), frees_at }
    }

    /// Ends the hold because its client does; `None` where it had ended before.
    pub(crate) fn close(&self) -> Option<Replies> {
        let mut state = self.state();
        let open = state.end.is_none();
        open.then(|| self.end(&mut state, End::Closed))
    }

    /// Counts the answers to a release. `is_last`: it gives the votes back, which may be asked for
    /// again.
    pub(crate) async fn confirm(&self, replies: Replies, is_last: bool) -> Votes {
        let lease = self.state().longest;
        let again = || self.record.release(&self.id, 0);
        self.coordinator.confirm(replies, lease, is_last.then_some(again)).await
    }

    /// Takes one entry away as [`leave`](Self::leave) does, but gives no vote back: those of the
    /// last entry end with their leases, or after this time. Answers come where voters have to be
    /// told.
    pub(super) fn keep(&self, time: Option<Duration>) -> Result<Option<Replies>, Error> {
        let mut state = self.state();
        if state.count > 1 {
            drop(self.leave_in(state));
            return Ok(None);
        }
        state.count = 0;
        self.holds.remove(self);
        let now = self.coordinator.clock().now();
        if state.lease.duty(now) == Duty::Lost {
            drop(state);
            return Err(self.lost());
        }
        self.forget(&mut state, End::Released);
        state.succession = None;
        let longest = state.longest;
        let time = time.filter(|time| *time < longest);
        let shorter = time.and_then(|time| self.record.shorten(&self.id, time));
        Ok(shorter.map(|call| self.coordinator.panel().insist_all(&call, now + longest)))
    }

    fn end(&self, state: &mut HoldState, end: End) -> Replies {
        self.forget(state, end);
        let until = self.coordinator.clock().now() + state.longest;
        let replies = self.coordinator.give_back(&self.record, &self.id, until);
        // Whoever is next in line asks behind the release.
        state.succession = None;
        replies
    }

    /// Gives the hold to the next task in line, as it was granted: nothing was asked for since
    /// then, so its lease and its count are what they were, and enough of the lease is left for a
    /// grant. Says whether it did.
    fn hand_on(&self, state: &mut HoldState) -> bool {
        let Self { coordinator, record, id, rules, started, stood_still, .. } = self;
        let (support, now) = (&state.support, coordinator.clock().now());
        // Where it stays, what it would have gone by is dropped behind the release.
        let Some((tenure, succession)) = &mut state.succession else { return false };
        let is_as_granted = support.is_as_granted() && rules.is_in_time(*started, now);
        let Some(next) = tenure.next(now).filter(|_| is_as_granted) else { return false };
        let handed_on = succession.hand_on(|| {
            let votes = support.granted(coordinator.panel().quorum);
            let claim = Claim::of_held(coordinator, record, id, rules.terms.lease, *stood_still);
            Won::handed_on(claim, (*started, *rules), self.stored, votes, next)
        });
        if handed_on {
            // The line ends when nobody stands there any more.
            state.succession = None;
            self.forget(state, End::Released);
        }
        handed_on
    }

    /// From now on nobody here has it, and nobody renews it.
    fn forget(&self, state: &mut HoldState, end: End) {
        state.end = Some(end);
        state.lease.end();
        if let Some(place) = state.place.take() {
            self.holds.agenda().remove(place);
        }
        self.over.change(|over| *over = true);
        let (now, series) = (self.coordinator.clock().now(), self.series());
        series.held.change(-1.0);
        series.hold_seconds.record(now.since(self.acquired).as_secs_f64());
    }

    /// Everybody who reads the deadline comes through here: so trust ends in time whoever asks,
    /// and nobody has to be told of a pause (law 2).
    fn state(&self) -> MutexGuard<'_, HoldState> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let stood_still = self.coordinator.panel().standings.stood_still();
        let unseen = stood_still.saturating_sub(state.stood_still);
        if !unseen.is_zero() {
            state.stood_still = stood_still;
            state.lease.shorten(unseen);
            state.support.shorten(unseen);
        }
        state
    }
}

// What the watchdog asks of a hold.

impl Hold {
    /// Puts itself on the agenda, for when it is next to be looked after.
    pub(super) fn put_on_agenda(self: &Arc<Self>) -> Listing {
        let mut state = self.state();
        if state.end.is_some() {
            return Listing::Done;
        }
        let now = self.coordinator.clock().now();
        let at = match state.lease.duty(now) {
            Duty::Sleep(until) if !state.in_round => until,
            Duty::Renew if !state.in_round => now,
            _ => state.lease.deadline(),
        };
        let (from, to) = (state.place, (at, self.number));
        state.place = Some(to);
        self.holds.agenda().put(Arc::clone(self), from, to, state.early())
    }

    /// Whether a round is to begin; one that has not is looked after again when that is due. Trust
    /// that has ended is told.
    pub(super) fn is_to_be_renewed(self: &Arc<Self>) -> bool {
        let mut state = self.state();
        if state.end.is_some() {
            return false;
        }
        let now = self.coordinator.clock().now();
        let duty = state.lease.duty(now);
        let standings = &self.coordinator.panel().standings;
        if duty != Duty::Lost && !state.lease.is_fixed() && standings.out_of_step().is_some() {
            let why = |voter| standings.apart(voter).map_or(Cause::Unheard, Cause::OutOfStep);
            let voters = 0..self.coordinator.panel().voters.len();
            state.failed = voters.map(|voter| Verdict::Unknown(why(voter))).collect();
            self.lose(&mut state, HoldLoss::OutOfStep);
            return false;
        }
        let due = match duty {
            Duty::Lost => {
                self.expire(&mut state);
                return false;
            }
            Duty::Renew => true,
            Duty::Sleep(until) => until.since(now) <= state.early(),
        };
        let begins = due && !state.in_round;
        state.in_round |= due;
        if begins {
            self.warn_of_waiters(&mut state, now);
        }
        begins
    }

    /// Says once that a task of the same client waits for what may never come: mostly it wants to
    /// enter again, and has no owner.
    fn warn_of_waiters(&self, state: &mut HoldState, now: Moment) {
        let lease = state.lease.terms().lease;
        let is_long = |since: Moment| now.since(since) >= lease;
        if !state.warned
            && is_long(self.acquired)
            && self.coordinator.waits_since(self.record()).is_some_and(is_long)
        {
            state.warned = true;
            let (lock, waits) = (self.name(), Rounded(lease));
            tracing::warn!(
                lock, hold = %self.id, %waits,
                "a task waits long behind a hold of its own client"
            );
        }
    }

    /// When it ends, and its number.
    pub(super) fn end_place(&self) -> AgendaPlace {
        (self.state().lease.deadline(), self.number)
    }

    /// A round is over. `again`: there is a reason for another one.
    pub(super) fn end_round(self: &Arc<Self>, again: bool) {
        {
            let mut state = self.state();
            state.in_round = false;
            if again {
                state.lease.renew_now(self.coordinator.clock().now());
            }
        }
    }

    /// Makes a renewal due.
    pub(super) fn renew_now(self: &Arc<Self>) {
        self.state().lease.renew_now(self.coordinator.clock().now());
    }

    /// Whether the last round failed; and now whether this one has.
    pub(super) fn fails_again(&self, failing: bool) -> bool {
        std::mem::replace(&mut self.state().failing, failing)
    }

    /// The watchdog is gone. A lease that is not renewed needs none.
    pub(super) fn abandon(&self) {
        let mut state = self.state();
        if !state.lease.is_fixed() {
            self.lose(&mut state, HoldLoss::Abandoned);
        }
    }

    /// Another hold was lost, without which this one is of no use.
    pub(super) fn forsake(&self) {
        self.lose(&mut self.state(), HoldLoss::Forsaken);
    }

    pub(super) fn is_forsaken(&self) -> bool {
        matches!(self.state().end, Some(End::Lost(HoldLoss::Forsaken)))
    }
}

impl HoldState {
    /// How long before it is due a renewal makes sense: where others leave, it may go along. One
    /// that follows a failure keeps its pause, and the end of a hold is not brought forward.
    fn early(&self) -> Duration {
        let alone = self.in_round || self.failing || !self.lease.renews_before_it_ends();
        if alone { Duration::ZERO } else { self.lease.terms().lease / 128 }
    }
}

// Why a hold ended without being released.

/// Why a hold is lost.
#[derive(Clone, Copy, Debug)]
enum HoldLoss {
    Expired,
    /// It was noticed so long after the deadline: nothing renewed it, nor looked at the clock.
    Unattended(Duration),
    Fixed,
    /// So long it may be held at most.
    TooLong(Duration),
    Revoked,
    Superseded,
    Vanished,
    Abandoned,
    /// Another one was lost that was acquired together with it.
    Forsaken,
    OutOfStep,
}

impl HoldLoss {
    /// What errors and the log say.
    fn text(self) -> Cow<'static, str> {
        let text = match self {
            Self::Unattended(late) => {
                return format!(
                    "its validity ended {} before this was noticed: the process, its runtime or \
                     the machine stood still",
                    Rounded(late)
                )
                .into();
            }
            Self::TooLong(most) => {
                return format!("held for longer than hold_at_most of {}", Rounded(most)).into();
            }
            Self::Expired => "its validity ended without a renewal by a majority",
            Self::Fixed => "its fixed lease ended",
            Self::Revoked => "it was ended by force",
            Self::Superseded => "another hold has a majority",
            Self::Vanished => "a majority of voters no longer had its vote",
            Self::Abandoned => "the runtime on which its client lived has ended",
            Self::Forsaken => "another lock of the same guard was lost",
            Self::OutOfStep => "clients disagree about the voters",
        };
        text.into()
    }

    /// What metrics call it.
    fn reason(self) -> &'static str {
        match self {
            Self::Expired | Self::Unattended(_) => "expired",
            Self::Fixed => "fixed",
            Self::TooLong(_) => "too_long",
            Self::Revoked => "forced",
            Self::Superseded => "superseded",
            Self::Vanished => "vanished",
            Self::Abandoned => "abandoned",
            Self::Forsaken => "forsaken",
            Self::OutOfStep => "out_of_step",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_says_why() {
        let late = Duration::from_millis(40_400);
        for (loss, told) in [
            (HoldLoss::Expired, "its validity ended without a renewal by a majority"),
            (
                HoldLoss::Unattended(late),
                "its validity ended 40.4s before this was noticed: the process, its runtime or the \
                 machine stood still",
            ),
            (HoldLoss::Fixed, "its fixed lease ended"),
            (
                HoldLoss::TooLong(60 * Duration::from_secs(1)),
                "held for longer than hold_at_most of 60s",
            ),
            (HoldLoss::Revoked, "it was ended by force"),
            (HoldLoss::Superseded, "another hold has a majority"),
            (HoldLoss::Vanished, "a majority of voters no longer had its vote"),
            (HoldLoss::Abandoned, "the runtime on which its client lived has ended"),
            (HoldLoss::Forsaken, "another lock of the same guard was lost"),
            (HoldLoss::OutOfStep, "clients disagree about the voters"),
        ] {
            assert_eq!(loss.text(), told);
        }
    }
}
