//! The hold itself: the truth about how long it may be trusted, and how often it was entered.

mod release;
mod rounds;

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use rounds::RoundSent;

use super::{AgendaPlace, Holds};
use crate::{
    acquire::{Coordinator, Panel, SeenBefore, Succession, Won},
    clock::Moment,
    kinds::LockRecord,
    log,
    proto::{
        Cause, Checkup, Duty, Error, HoldId, HoldLimit, Kind, Lease, Listed, Owner, Rounded, Rules,
        Slots, Support, Tenure, Token, Verdict,
    },
    series::LockSeries,
    signal::Signal,
    sync::lock,
};

/// For so many voter deadlines an attempt may have votes that it cannot use: it asks for two, has a
/// token stored in one more, and its undo and our question take theirs.
pub(super) const RESUMING: u32 = 5;

/// One hold. It ends once: by its last release, or by loss.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(super) id: HoldId,
    pub(super) owner: Option<Owner>,
    pub(super) record: LockRecord,
    pub(super) token: Option<Token>,
    /// The last number of its block, which voters store.
    stored: Option<Token>,
    /// Of a semaphore.
    pub(super) slots: Option<Slots>,
    rules: Rules,
    /// When the votes were asked for, and what its client had seen by then.
    started: Moment,
    seen: SeenBefore,
    pub(super) coordinator: Arc<Coordinator>,
    pub(super) holds: Arc<Holds>,
    pub(super) acquired: Moment,
    /// Its number on the agenda.
    number: u64,
    state: Mutex<HoldState>,
    /// Changes when the duty may have, and to true when the hold ends.
    pub(super) over: Signal<bool>,
}

#[derive(Debug)]
struct HoldState {
    lease: Lease,
    /// For how long the client had stood still when the deadline was last looked at.
    stood_still: Duration,
    /// The longest lease that any voter was asked for.
    longest: Duration,
    count: u32,
    /// Which voters have it. Whoever has it next goes on with that.
    support: Arc<Mutex<Support>>,
    after_healing: AfterHealing,
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

/// The renewal that follows one in which a voter had no vote of it, and gave it.
#[derive(Clone, Copy, Debug)]
struct AfterHealing {
    is_due: bool,
    not_before: Moment,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Released,
    Closed,
    /// Also where its votes turned out to have been gone when they were given back.
    Lost(HoldLoss),
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
        now: Moment,
    ) -> Arc<Self> {
        let seen = won.seen();
        let stood_still = seen.stood_still;
        let (token, stored, is_handed_on) = (won.own_token(), won.token, won.is_handed_on());
        let Won { claim, started, rules, votes, late, slots, elsewhere, tenure, .. } = won;
        let (id, record) = claim.take_over();
        // Who resumes a parked hold may keep the votes of an attempt for a while, until they are
        // the ticket's again.
        let patience = rules.voter_deadline * if id.is_parked() { RESUMING } else { 1 };
        let acquired = if is_handed_on { now } else { started };
        let voters = coordinator.panel().quorum.voters();
        let terms = rules.terms;
        let sent = RoundSent { is_first: true, terms, started, stood_still, in_full: false };
        let support = won.support.unwrap_or_else(|| {
            let mut support = Support::new(voters, started, stood_still, patience);
            for (voter, verdict) in votes.heard().filter(|(_, verdict)| verdict.is_given()) {
                support.heard(voter, verdict, sent.heard(now, None, false));
            }
            Arc::new(Mutex::new(support))
        });
        coordinator.series(&record).held.change(1.0);
        let state = HoldState {
            lease: Lease::new(rules.terms, started, renewed, limit),
            stood_still,
            longest: rules.terms.lease,
            count: 1,
            support,
            after_healing: AfterHealing { is_due: false, not_before: now },
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
            seen,
            coordinator: Arc::clone(coordinator),
            holds: Arc::clone(holds),
            acquired,
            number: holds.agenda.number(),
            state: Mutex::new(state),
            over: Signal::new(false),
        });
        holds.add(&hold);
        hold.put_right(sent, &elsewhere);
        hold.hear_on(sent, late);
        hold
    }

    pub(super) fn now(&self) -> Moment {
        self.coordinator.clock().now()
    }

    pub(super) fn name(&self) -> &str {
        self.record.info().name.as_str()
    }

    /// Whether this process is forked from that of its client. There it has ended, and its state
    /// must not be looked at: another thread of the parent may have had it locked.
    pub(super) fn is_forked(&self) -> bool {
        self.coordinator.gate().is_forked()
    }

    /// Does work of a guard, and fails in a forked process.
    pub(super) fn unforked<'a, T>(
        &'a self,
        work: impl Future<Output = Result<T, Error>> + 'a,
    ) -> impl Future<Output = Result<T, Error>> {
        self.coordinator.gate().unforked(work)
    }

    /// How many voters are known to have it.
    pub(super) fn votes(&self) -> usize {
        if self.is_forked() { 0 } else { self.state().support().votes() }
    }

    pub(super) fn lease<T>(&self, read: impl FnOnce(&Lease) -> T) -> T {
        read(&self.state().lease)
    }

    /// Why it cannot be entered, unless its last entry has left: then it is to be acquired.
    pub(super) fn gone<T>(&self) -> Result<Option<T>, Error> {
        if self.count() == 0 { Ok(None) } else { Err(self.lost()) }
    }

    /// What is left of the validity; zero once the hold has ended.
    pub(super) fn remaining(&self) -> Duration {
        if self.is_forked() {
            return Duration::ZERO;
        }
        self.lease(Lease::deadline).since(self.now())
    }

    pub(super) fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    pub(super) fn count(&self) -> u32 {
        if self.is_forked() { 0 } else { self.state().count }
    }

    /// Completes when the hold is lost, by the clock alone or because another has the votes.
    pub(super) async fn until_lost(&self) {
        self.until_left(Duration::ZERO).await;
        self.expire(self.state());
    }

    /// Completes when no more than this is left of the validity.
    pub(super) async fn until_left(&self, left: Duration) {
        loop {
            let seen = self.over.version();
            let deadline = self.lease(Lease::deadline);
            if self.remaining() <= left {
                return;
            }
            tokio::select! {
                biased;
                () = self.over.changed_since(seen) => {}
                () = self.coordinator.clock().sleep_until(deadline - left) => {}
            }
        }
    }

    /// Ends the hold as lost, if it has not ended. What it still has on the voters is given back.
    fn lose(&self, state: MutexGuard<'_, HoldState>, loss: HoldLoss) {
        if state.end.is_none() {
            let failed = state.failed.clone();
            drop(self.end_and_release(state, End::Lost(loss), self.now()));
            self.tell_loss(loss, failed);
        }
    }

    fn expire(&self, state: MutexGuard<'_, HoldState>) {
        let late = self.now().since(state.lease.deadline());
        let loss = match state.lease.limit_that_ends_it() {
            Some(limit) if self.id.is_parked() => HoldLoss::NotResumed(limit.at_most),
            Some(limit) => HoldLoss::TooLong(limit.at_most),
            None if state.lease.is_fixed() => HoldLoss::Fixed,
            None if late >= Self::UNATTENDED => HoldLoss::Unattended(late),
            None => HoldLoss::Expired,
        };
        self.lose(state, loss);
    }

    /// To be told when no mutex is held.
    fn tell_loss(&self, loss: HoldLoss, verdicts: Vec<Verdict>) {
        let (lock, hold, (reason, why)) = (self.name().to_owned(), self.id.clone(), loss.told());
        if self.id.is_parked() {
            // Nobody worked under it.
            return log::tell(move || tracing::info!(lock, %hold, %why, "ticket ended"));
        }
        self.series().lost.of(reason).count(1);
        let voters = self.coordinator.panel().report(verdicts);
        log::tell(move || {
            let (voters, note) = (Listed(&voters), hold.note());
            tracing::warn!(lock, %hold, note, %why, %voters, "lock lost");
        });
    }

    /// Ends the hold as lost, and says why it was.
    pub(super) fn lost(&self) -> Error {
        if self.is_forked() {
            return Error::closed();
        }
        self.expire(self.state());
        let state = self.state();
        let loss = match state.end {
            Some(End::Released) => {
                return self.error(|lock, hold| Kind::Released { lock, hold }, Vec::new());
            }
            Some(End::Closed) => {
                return self.lost_because("its client was closed".into(), state.failed.clone());
            }
            // Voters have no more to say about that.
            Some(End::Lost(loss @ HoldLoss::Resumed)) => {
                return self.lost_because(loss.told().1, Vec::new());
            }
            Some(End::Lost(loss)) => loss,
            None => HoldLoss::Expired,
        };
        self.lost_because(loss.told().1, state.failed.clone())
    }

    /// The votes turned out to be gone, when they were given back or relied on; counted once,
    /// though several calls may find it at the same time.
    pub(super) fn found_lost(&self, loss: HoldLoss, verdicts: Vec<Verdict>) -> Error {
        let mut state = self.state();
        match state.end {
            Some(End::Released) => {
                state.end = Some(End::Lost(loss));
                drop(state);
                self.tell_loss(loss, verdicts.clone());
            }
            Some(End::Lost(_) | End::Closed) => {}
            None => self.lose(state, loss),
        }
        self.lost_because(loss.told().1, verdicts)
    }

    fn lost_because(&self, why: Cow<'static, str>, verdicts: Vec<Verdict>) -> Error {
        self.error(|lock, hold| Kind::Lost { lock, hold, why }, verdicts)
    }

    pub(super) fn unconfirmed(&self, frees_at: Moment, verdicts: Vec<Verdict>) -> Error {
        let needed = self.coordinator.panel().quorum.needed();
        let frees_in = frees_at.since(self.now());
        self.error(|lock, hold| Kind::Unconfirmed { lock, hold, needed, frees_in }, verdicts)
    }

    pub(super) fn not_entered(&self, what: &'static str, verdicts: Vec<Verdict>) -> Error {
        let needed = self.coordinator.panel().quorum.needed();
        self.error(|lock, hold| Kind::NotEntered { lock, hold, what, needed }, verdicts)
    }

    fn error(&self, kind: impl FnOnce(String, HoldId) -> Kind, verdicts: Vec<Verdict>) -> Error {
        let kind = kind(self.name().into(), self.id.clone());
        Error::new(kind, self.coordinator.panel().report(verdicts))
    }

    /// What is written of it.
    pub(super) fn series(&self) -> &LockSeries {
        self.coordinator.series(&self.record)
    }

    /// What the voters said in the last round that failed.
    pub(super) fn failed(&self) -> Vec<Verdict> {
        self.state().failed.clone()
    }

    /// Everybody who reads the deadline comes through here: so trust ends in time whoever asks,
    /// and nobody has to be told of a pause (law 2).
    fn state(&self) -> MutexGuard<'_, HoldState> {
        let mut state = lock(&self.state);
        let stood_still = self.coordinator.panel().standings.stood_still();
        let unseen = stood_still.saturating_sub(state.stood_still);
        if !unseen.is_zero() {
            state.stood_still = stood_still;
            state.lease.shorten(unseen);
            state.support().stand_still(stood_still);
        }
        state
    }
}

// What the watchdog asks of a hold.

impl Hold {
    /// Puts itself on the agenda, for when it is next to be looked after.
    /// `false` where nobody will look after it any more.
    pub(super) fn put_on_agenda(self: &Arc<Self>, now: Moment) -> bool {
        let mut state = self.state();
        if state.end.is_some() {
            return true;
        }
        let at = match state.lease.duty(now) {
            Duty::Sleep(until) if !state.in_round => until,
            Duty::Renew if !state.in_round => now,
            _ => state.lease.deadline(),
        };
        let (from, to) = (state.place, (at, self.number));
        state.place = Some(to);
        self.holds.agenda.put(Arc::clone(self), from, to, state.early())
    }

    /// Whether a round is to begin; one that has not is looked after again when that is due. Trust
    /// that has ended is told.
    pub(super) fn is_to_be_renewed(self: &Arc<Self>) -> bool {
        let mut state = self.state();
        if state.end.is_some() {
            return false;
        }
        let now = self.now();
        let duty = state.lease.duty(now);
        let Panel { standings, voters, .. } = self.coordinator.panel();
        let configuration = &standings.configuration;
        if duty != Duty::Lost && !state.lease.is_fixed() && configuration.mismatch().is_some() {
            let why = |voter| {
                configuration.apart(voter).map_or(Cause::Unheard, Cause::ConfigurationMismatch)
            };
            state.failed = (0..voters.len()).map(|voter| Verdict::Unknown(why(voter))).collect();
            self.lose(state, HoldLoss::ConfigurationMismatch);
            return false;
        }
        let due = match duty {
            Duty::Lost => {
                self.expire(state);
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
            && self.coordinator.waits_since(&self.record).is_some_and(is_long)
        {
            state.warned = true;
            let (lock, hold, waits) = (self.name().to_owned(), self.id.clone(), Rounded(lease));
            log::tell(move || {
                tracing::warn!(
                    lock, %hold, %waits,
                    "a task waits long behind a hold of its own client"
                );
            });
        }
    }

    /// When it ends, and its number.
    pub(super) fn end_place(&self) -> AgendaPlace {
        (self.state().lease.deadline(), self.number)
    }

    /// A round is over. `again`: there is a reason for another one.
    pub(super) fn end_round(self: &Arc<Self>, again: bool) {
        let mut state = self.state();
        state.in_round = false;
        let now = self.now();
        state.confirm_healed(now);
        if again {
            state.lease.renew_now(now);
        }
    }

    /// Whether holds were to be looked after at once since its votes were asked for.
    pub(super) fn was_to_be_renewed(&self) -> bool {
        self.seen.has_changed(&self.coordinator.panel().standings)
    }

    /// Makes a renewal due.
    pub(super) fn renew_now(self: &Arc<Self>) {
        self.state().lease.renew_now(self.now());
    }

    /// Whether the last round failed; and now whether this one has.
    pub(super) fn fails_again(&self, failing: bool) -> bool {
        std::mem::replace(&mut self.state().failing, failing)
    }

    /// The watchdog is gone. A lease that is not renewed needs none.
    pub(super) fn abandon(&self) {
        let state = self.state();
        if !state.lease.is_fixed() {
            self.lose(state, HoldLoss::Abandoned);
        }
    }

    /// Another hold was lost, without which this one is of no use.
    pub(super) fn forsake(&self) {
        self.lose(self.state(), HoldLoss::Forsaken);
    }

    /// This client has resumed what it parked.
    pub(super) fn was_resumed(&self) {
        self.lose(self.state(), HoldLoss::Resumed);
    }

    pub(super) fn is_forsaken(&self) -> bool {
        !self.is_forked() && matches!(self.state().end, Some(End::Lost(HoldLoss::Forsaken)))
    }
}

impl HoldState {
    fn support(&self) -> MutexGuard<'_, Support> {
        lock(&self.support)
    }

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
pub(super) enum HoldLoss {
    Expired,
    /// It was noticed so long after the deadline: nothing renewed it, nor looked at the clock.
    Unattended(Duration),
    Fixed,
    /// So long it may be held at most.
    TooLong(Duration),
    /// So long it was parked, and nobody resumed it.
    NotResumed(Duration),
    /// Somebody has resumed it.
    Resumed,
    Revoked,
    Superseded,
    Vanished,
    Abandoned,
    /// Another one was lost that was acquired together with it.
    Forsaken,
    ConfigurationMismatch,
}

impl HoldLoss {
    /// What metrics call it, and what errors and the log say.
    fn told(self) -> (&'static str, Cow<'static, str>) {
        let (reason, text) = match self {
            Self::Unattended(late) => {
                let text = format!(
                    "its validity ended {} before this was noticed: the process, its runtime or \
                     the machine stood still",
                    Rounded(late)
                );
                return ("expired", text.into());
            }
            Self::TooLong(most) => {
                let text = format!("held for longer than hold_at_most of {}", Rounded(most));
                return ("too_long", text.into());
            }
            Self::NotResumed(time) => {
                return ("not_resumed", format!("nobody resumed it in {}", Rounded(time)).into());
            }
            Self::Resumed => ("resumed", "its ticket was resumed"),
            Self::Expired => ("expired", "its validity ended without a renewal by a majority"),
            Self::Fixed => ("fixed", "its fixed lease ended"),
            Self::Revoked => ("forced", "it was ended by force"),
            Self::Superseded => ("superseded", "another hold has a majority"),
            Self::Vanished => ("vanished", "a majority of voters no longer had its vote"),
            Self::Abandoned => ("abandoned", "the runtime on which its client lived has ended"),
            Self::Forsaken => ("forsaken", "another lock of the same guard was lost"),
            Self::ConfigurationMismatch => {
                ("configuration_mismatch", "clients disagree about the voters")
            }
        };
        (reason, text.into())
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
            (HoldLoss::NotResumed(60 * Duration::from_secs(1)), "nobody resumed it in 60s"),
            (HoldLoss::Resumed, "its ticket was resumed"),
            (HoldLoss::Revoked, "it was ended by force"),
            (HoldLoss::Superseded, "another hold has a majority"),
            (HoldLoss::Vanished, "a majority of voters no longer had its vote"),
            (HoldLoss::Abandoned, "the runtime on which its client lived has ended"),
            (HoldLoss::Forsaken, "another lock of the same guard was lost"),
            (HoldLoss::ConfigurationMismatch, "clients disagree about the voters"),
        ] {
            assert_eq!(loss.told().1, told);
        }
    }
}
