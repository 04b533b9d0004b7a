//! The hold itself: until when it may be trusted, and how often it was entered.

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

/// For how many voter deadlines an attempt may have votes that it cannot use.
// It asks for two and has a token stored in one more; its undo and our question take one each.
// After fewer, a parked hold would be given up for an attempt to resume it that is about to fail.
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
    /// When the votes were asked for.
    started: Moment,
    seen_before: SeenBefore,
    pub(super) coordinator: Arc<Coordinator>,
    pub(super) holds: Arc<Holds>,
    pub(super) acquired: Moment,
    /// Its number on the agenda.
    number: u64,
    state: Mutex<HoldState>,
    /// True once the hold has ended.
    pub(super) ended: Signal<bool>,
}

#[derive(Debug)]
struct HoldState {
    lease: Lease,
    /// For how long the client had stood still when the deadline was last looked at.
    stood_still: Duration,
    /// The longest lease that any voter was asked for.
    longest: Duration,
    count: u32,
    /// What voters said of their votes, and when.
    // Shared with the next owner of a hold that is handed on: what one of them has heard counts
    // together with what the next one hears
    // (`whoever_has_a_hold_from_another_task_is_told_as_well`).
    support: Arc<Mutex<Support>>,
    /// When a voter has given its vote again that it had lost, until a renewal follows.
    healed: Option<Moment>,
    /// The earliest moment of such a renewal.
    heals_not_before: Moment,
    checkup: Checkup,
    end: Option<End>,
    /// Where it is on the agenda.
    place: Option<AgendaPlace>,
    /// A round of renewal waits for its turn or is under way.
    in_round: bool,
    /// The log has it that a task of its own client waits for the lock.
    warned: bool,
    /// The last round failed.
    is_failing: bool,
    /// What the voters said in the last round that failed.
    failure: Vec<Verdict>,
    /// The right of its owner to hand it on.
    succession: Option<(Tenure, Succession)>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Released,
    /// Also if its votes turned out to be gone when they were given back.
    Lost(HoldLoss),
}

impl Hold {
    /// A deadline that is noticed so late went by while nothing ran. Timers look twice a second.
    const UNATTENDED: Duration = Duration::from_secs(1);

    /// Takes over what was won, and the answers that are still to come.
    pub(super) fn start(
        coordinator: &Arc<Coordinator>,
        holds: &Arc<Holds>,
        (mut won, succession): (Won, Option<Succession>),
        owner: Option<Owner>,
        renewed: bool,
        limit: Option<HoldLimit>,
        now: Moment,
    ) -> Arc<Self> {
        let (seen_before, token, stored) = (won.claim.seen_before, won.own_token(), won.token);
        let (terms, started, stood_still) = (won.rules.terms, won.started, seen_before.stood_still);
        let sent = RoundSent { is_first: true, terms, started, stood_still, in_full: false };
        // The lease counts from before the first request, whoever got the hold first (law 2).
        let lease = Lease::new(terms, started, renewed, limit);
        let voters = coordinator.panel().quorum.voters();
        let state = HoldState::new(&mut won, voters, lease, sent, succession, now);
        // A task that is handed a hold has it from now on, and may have it for its own limit.
        let acquired = if won.is_handed_on() { now } else { started };
        let Won { claim, rules, late, slots, elsewhere, .. } = won;
        let (id, record) = claim.take_over();
        coordinator.series(&record).held.change(1.0);
        let hold = Arc::new(Self {
            id,
            owner,
            record,
            token,
            stored,
            slots,
            rules,
            started,
            seen_before,
            coordinator: Arc::clone(coordinator),
            holds: Arc::clone(holds),
            acquired,
            number: holds.agenda.number(),
            state: Mutex::new(state),
            ended: Signal::new(false),
        });
        holds.add(&hold);
        hold.ask_for_votes(sent, &elsewhere);
        hold.hear_late_answers(sent, late);
        hold
    }

    pub(super) fn now(&self) -> Moment {
        self.coordinator.clock().now()
    }

    pub(super) fn name(&self) -> &str {
        self.record.info().name.as_str()
    }

    /// Whether this process is forked from that of its client. In a forked process the hold has
    /// ended, and its state must not be looked at: a thread of the parent may have locked it.
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

    /// How many voters have given it their votes, as of the last answers.
    pub(super) fn votes(&self) -> usize {
        if self.is_forked() { 0 } else { self.state().support().votes() }
    }

    pub(super) fn lease<T>(&self, read: impl FnOnce(&Lease) -> T) -> T {
        read(&self.state().lease)
    }

    /// The answer to a caller that could not enter: `None` if the last entry has left, so that the
    /// lock is acquired afresh; otherwise the hold is lost.
    pub(super) fn not_held<T>(&self) -> Result<Option<T>, Error> {
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
            let version = self.ended.version();
            let deadline = self.lease(Lease::deadline);
            if self.remaining() <= left {
                return;
            }
            tokio::select! {
                biased;
                () = self.ended.changed_since(version) => {}
                () = self.coordinator.clock().sleep_until(deadline - left) => {}
            }
        }
    }

    /// Ends the hold as lost, if it has not ended. Gives back the votes that it may still have.
    fn lose(&self, state: MutexGuard<'_, HoldState>, loss: HoldLoss) {
        if state.end.is_none() {
            let verdicts = state.failure.clone();
            drop(self.end_and_release(state, End::Lost(loss), self.now()));
            self.report_loss(loss, verdicts);
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

    /// Tells the log and the metrics. Call it when no mutex is held.
    // A recorder of metrics is the user's code: it may take its time, and may ask for this hold.
    fn report_loss(&self, loss: HoldLoss, verdicts: Vec<Verdict>) {
        let (lock, hold, (reason, why)) =
            (self.name().to_owned(), self.id.clone(), loss.reason_and_text());
        if self.id.is_parked() {
            // Nobody worked under it, so it is no loss that somebody must look at.
            return log::report(move || tracing::info!(lock, %hold, %why, "ticket ended"));
        }
        self.series().lost.of(reason).count(1);
        let voters = self.coordinator.panel().report(verdicts);
        log::report(move || {
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
            Some(End::Lost(loss)) => loss,
            None => HoldLoss::Expired,
        };
        // What voters said in a round that failed has nothing to do with a ticket that was resumed.
        let is_resumed = matches!(loss, HoldLoss::Resumed);
        self.lost_because(loss, if is_resumed { Vec::new() } else { state.failure.clone() })
    }

    /// Ends the hold as lost because its votes turned out to be gone, when they were given back or
    /// relied on.
    // It may be released already. It counts as lost once, although several calls may find it at the
    // same time (`a_hold_that_is_gone_at_two_releases_is_lost_once`).
    pub(super) fn end_as_gone(&self, loss: HoldLoss, verdicts: Vec<Verdict>) -> Error {
        let mut state = self.state();
        match state.end {
            Some(End::Released) => {
                state.end = Some(End::Lost(loss));
                drop(state);
                self.report_loss(loss, verdicts.clone());
            }
            Some(End::Lost(_)) => {}
            None => self.lose(state, loss),
        }
        self.lost_because(loss, verdicts)
    }

    fn lost_because(&self, loss: HoldLoss, verdicts: Vec<Verdict>) -> Error {
        let (_, why) = loss.reason_and_text();
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

    pub(super) fn series(&self) -> &LockSeries {
        self.coordinator.series(&self.record)
    }

    /// What the voters said in the last round that failed.
    pub(super) fn failure(&self) -> Vec<Verdict> {
        self.state().failure.clone()
    }

    /// The state, with what this client has stood still taken off the lease.
    // Every question about the deadline comes through here. So trust ends in time whoever asks, and
    // nobody has to tell the holds of a pause (law 2).
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

// What the keeper asks of a hold.

impl Hold {
    /// Puts itself on the agenda, for the moment at which something is due. `false`: the keeper has
    /// ended.
    pub(super) fn put_on_agenda(self: &Arc<Self>, now: Moment) -> bool {
        let mut state = self.state();
        if state.end.is_some() {
            return true;
        }
        let at = match state.lease.duty(now) {
            Duty::Sleep(until) if !state.in_round => until,
            Duty::Renew if !state.in_round => now,
            // During a round only the deadline is due: the end of the round comes back here.
            _ => state.lease.deadline(),
        };
        let (from, to) = (state.place, (at, self.number));
        state.place = Some(to);
        self.holds.agenda.put(Arc::clone(self), from, to, state.early())
    }

    /// Whether a round is to begin now. A hold whose deadline has passed ends here.
    pub(super) fn begins_round(self: &Arc<Self>) -> bool {
        let mut state = self.state();
        if state.end.is_some() {
            return false;
        }
        let now = self.now();
        let duty = state.lease.duty(now);
        let Panel { standings, voters, .. } = self.coordinator.panel();
        let configuration = &standings.configuration;
        // In a mismatch, clients of other voters may have the lock beside this one (design 6). A
        // fixed lease asks for nothing more, and ends by itself.
        if duty != Duty::Lost && !state.lease.is_fixed() && configuration.mismatch().is_some() {
            let why = |voter| {
                configuration.apart(voter).map_or(Cause::Unheard, Cause::ConfigurationMismatch)
            };
            state.failure = (0..voters.len()).map(|voter| Verdict::Unknown(why(voter))).collect();
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

    /// Says once that a task of the same client waits behind this hold for long.
    // Mostly it wants to enter again and has no owner: then it waits for itself, for ever.
    fn warn_of_waiters(&self, state: &mut HoldState, now: Moment) {
        let lease = state.lease.terms().lease;
        let is_long = |since: Moment| now.since(since) >= lease;
        if !state.warned
            && is_long(self.acquired)
            && self.coordinator.waits_since(&self.record).is_some_and(is_long)
        {
            state.warned = true;
            let (lock, hold, waits) = (self.name().to_owned(), self.id.clone(), Rounded(lease));
            log::report(move || {
                tracing::warn!(
                    lock, %hold, %waits,
                    "a task waits long behind a hold of its own client"
                );
            });
        }
    }

    /// Its deadline, and its number.
    pub(super) fn end_place(&self) -> AgendaPlace {
        (self.state().lease.deadline(), self.number)
    }

    /// Ends a round. `again`: there is a reason for another one.
    pub(super) fn end_round(self: &Arc<Self>, again: bool) {
        let mut state = self.state();
        state.in_round = false;
        let now = self.now();
        state.renew_if_healed(now);
        if again {
            state.lease.renew_now(now);
        }
    }

    /// Whether all holds were to be renewed at once since its votes were asked for.
    pub(super) fn missed_renewal_of_all(&self) -> bool {
        self.seen_before.has_changed(&self.coordinator.panel().standings)
    }

    /// Makes a renewal due now.
    pub(super) fn renew_now(self: &Arc<Self>) {
        self.state().lease.renew_now(self.now());
    }

    /// Notes whether a round has failed. Returns whether the round before had.
    pub(super) fn note_failure(&self, is_failing: bool) -> bool {
        std::mem::replace(&mut self.state().is_failing, is_failing)
    }

    /// Ends the hold because its keeper has ended. A fixed lease needs no keeper.
    pub(super) fn abandon(&self) {
        let state = self.state();
        if !state.lease.is_fixed() {
            self.lose(state, HoldLoss::Abandoned);
        }
    }

    /// Ends the hold because another one is lost that was acquired together with it.
    pub(super) fn forsake(&self) {
        self.lose(self.state(), HoldLoss::Forsaken);
    }

    /// Ends a parked hold that this client itself has resumed.
    pub(super) fn end_as_resumed(&self) {
        self.lose(self.state(), HoldLoss::Resumed);
    }

    pub(super) fn is_forsaken(&self) -> bool {
        !self.is_forked() && matches!(self.state().end, Some(End::Lost(HoldLoss::Forsaken)))
    }
}

impl HoldState {
    /// The state of a hold that voters have just granted, or that a task takes over.
    fn new(
        won: &mut Won,
        voters: usize,
        lease: Lease,
        sent: RoundSent,
        succession: Option<Succession>,
        now: Moment,
    ) -> Self {
        let support = won.support.take();
        Self {
            lease,
            stood_still: sent.stood_still,
            longest: sent.terms.lease,
            count: 1,
            support: support.unwrap_or_else(|| Self::first_support(won, voters, sent, now)),
            healed: None,
            heals_not_before: now,
            checkup: Checkup::of(voters),
            end: None,
            place: None,
            in_round: false,
            warned: false,
            is_failing: false,
            failure: Vec::new(),
            succession: won.tenure.zip(succession),
        }
    }

    /// The support of a hold that voters have just granted.
    fn first_support(
        won: &Won,
        voters: usize,
        sent: RoundSent,
        now: Moment,
    ) -> Arc<Mutex<Support>> {
        // An attempt to resume a parked hold may have its votes for a while, until it gives them
        // back to the ticket: no gap before that.
        let patience = if won.claim.hold.is_parked() { RESUMING } else { 1 };
        let patience = won.rules.voter_deadline * patience;
        let mut support = Support::new(voters, won.started, sent.stood_still, patience);
        for (voter, verdict) in won.votes.heard().filter(|(_, verdict)| verdict.is_given()) {
            support.heard(voter, verdict, sent.heard(now, None, false));
        }
        Arc::new(Mutex::new(support))
    }

    fn support(&self) -> MutexGuard<'_, Support> {
        lock(&self.support)
    }

    /// How long before it is due a renewal may leave together with others.
    // Renewals that leave together cost voters less. After a failure the pause is kept. The end of
    // a hold is no renewal: taken for one, a hold near its end was renewed again and again, each
    // time at once (`the_end_of_one_hold_has_no_other_renewed_that_ends_soon_after`).
    fn early(&self) -> Duration {
        let alone = self.in_round || self.is_failing || !self.lease.renews_before_it_ends();
        if alone { Duration::ZERO } else { self.lease.terms().lease / 128 }
    }
}

// Why a hold ended without being released.

/// Why a hold is lost.
#[derive(Clone, Copy, Debug)]
pub(super) enum HoldLoss {
    Expired,
    /// Its client was closed, which is no loss for the log and the metrics.
    Closed,
    /// The deadline was noticed so long after it had passed.
    Unattended(Duration),
    Fixed,
    /// It was held for the longest time allowed.
    TooLong(Duration),
    /// It was parked for so long, and nobody resumed it.
    NotResumed(Duration),
    /// Somebody has resumed it.
    Resumed,
    Revoked,
    Superseded,
    Vanished,
    Abandoned,
    /// Another hold is lost that was acquired together with it.
    Forsaken,
    ConfigurationMismatch,
}

impl HoldLoss {
    /// Its name in metrics, and its text in errors and the log.
    fn reason_and_text(self) -> (&'static str, Cow<'static, str>) {
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
            Self::Closed => ("closed", "its client was closed"),
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
        for (loss, text) in [
            (HoldLoss::Expired, "its validity ended without a renewal by a majority"),
            (
                HoldLoss::Unattended(late),
                "its validity ended 40.4s before this was noticed: the process, its runtime or the \
                 machine stood still",
            ),
            (HoldLoss::Closed, "its client was closed"),
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
            assert_eq!(loss.reason_and_text().1, text);
        }
    }
}
