//! One entry of a hold. Every guard is made of one.

use std::{mem, slice::from_ref, sync::Arc, time::Duration};

use tracing::field::Empty;

use super::{
    Hold, HoldView, Lost,
    held::HoldLoss,
    keeper,
    lost::{try_while_held, while_held},
};
use crate::{
    clock::Moment,
    kinds::AnnouncedValue,
    proto::{Error, HoldId, HoldLimit, Lease, RoundEnd, Rules, Slots, Terms, Token},
};

/// What a failed entry is called in the error.
pub(super) const REENTRY: &str = "re-entry";

/// The longest time that work has to end before its hold is lost. `quorate run` gives the same.
const GRACE: Duration = Duration::from_secs(10);

/// Leaves the hold on drop.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(super) hold: Arc<Hold>,
    pub(super) has_left: bool,
}

impl Entry {
    /// The first entry of a fresh hold.
    pub(super) fn of(hold: Arc<Hold>, now: Moment) -> Self {
        keeper::begin(&hold, now);
        Self { hold, has_left: false }
    }

    /// One more entry of a hold. `None`: it was released before.
    // By a round of renewal, so that an entry never shortens the lease, and is only there once a
    // majority has confirmed that the hold still has its votes.
    pub(super) async fn again(
        hold: &Arc<Hold>,
        request: Option<(Terms, bool)>,
        what: &'static str,
    ) -> Result<Option<Self>, Error> {
        let terms = request.map(|(terms, _)| terms);
        let Some(exchange) = hold.start_round(terms, 1) else { return hold.not_held() };
        // From here on the count includes this entry, and dropping the future takes it away again.
        let entry = Self { hold: Arc::clone(hold), has_left: false };
        entry.check_round(hold.conclude(exchange).await, what)?;
        if let Some((terms, renewed)) = request {
            // Only now: voters that did not answer may have promised the old lease alone (law 1).
            hold.widen(terms, renewed);
            keeper::schedule(hold);
        }
        Ok(Some(entry))
    }

    /// Fails if the round did not confirm `what`.
    fn check_round(&self, end: Option<RoundEnd>, what: &'static str) -> Result<(), Error> {
        keeper::schedule(&self.hold);
        match end {
            Some(RoundEnd::Renewed) if self.hold.is_held() => Ok(()),
            Some(RoundEnd::Failed) if self.hold.is_held() => {
                Err(self.hold.not_entered(what, self.hold.failure()))
            }
            _ => Err(self.hold.lost()),
        }
    }

    /// The first entry of a read under a write of the same owner. `None`: the write was released
    /// before.
    pub(super) async fn under(
        hold: &Arc<Hold>,
        rules: Rules,
        renewed: bool,
        limit: Option<HoldLimit>,
    ) -> Result<Option<Self>, Error> {
        if !hold.is_held() {
            return hold.not_held();
        }
        let Hold { coordinator, holds, owner, .. } = &**hold;
        let record = hold.record.under(&hold.id).expect("it grants another");
        match coordinator.ask_once(&record, rules).await {
            // The answers came while the write was held, so nobody wrote in between
            // (`a_read_that_comes_after_the_write_has_ended_is_none`).
            Ok(won) if hold.is_held() => {
                let (won, now) = ((won, None), hold.now());
                let hold = Hold::start(coordinator, holds, won, *owner, renewed, limit, now);
                Ok(Some(Self::of(hold, now)))
            }
            Err(defeat) if hold.is_held() => {
                // Voters that are silent would be waited for once more: the call took 1.6 s then.
                if !defeat.votes.lacks_quorum()
                    && let Some(marks) = hold.ask_if_revoked().await
                {
                    return Err(hold.end_as_gone(HoldLoss::Revoked, marks));
                }
                let verdicts = defeat.votes.into_verdicts();
                Err(hold.not_entered("a read under the own write", verdicts))
            }
            _ => hold.not_held(),
        }
    }

    /// A read under this write, with the same lease and the same limit.
    pub(crate) async fn granted(&self) -> Result<Self, Error> {
        let coordinator = &self.hold.coordinator;
        let granted = async {
            let (lease, renewed, limit) =
                self.hold.lease(|lease| (lease.terms().lease, !lease.is_fixed(), lease.limit()));
            let rules = coordinator.settings().rules(lease)?;
            Self::under(&self.hold, rules, renewed, limit).await
        };
        // Never `None`: this entry has not left.
        coordinator.gate().within(granted).await?.ok_or_else(|| self.hold.lost())
    }

    pub(crate) async fn reenter(&self) -> Result<Self, Error> {
        let again = self.hold.unforked(Self::again(&self.hold, None, REENTRY)).await?;
        // Never `None`: this entry has not left.
        again.ok_or_else(|| self.hold.lost())
    }

    /// Renews the hold, with this lease at least.
    pub(crate) async fn extend(&self, lease: Option<Duration>) -> Result<(), Error> {
        let what = if lease.is_some() { "extension" } else { "renewal" };
        self.hold.unforked(self.enter_for(lease, what)).await
    }

    /// Enters once more and leaves again, which renews the hold.
    async fn enter_for(&self, lease: Option<Duration>, what: &'static str) -> Result<(), Error> {
        let rules = lease.map(|lease| self.hold.coordinator.settings().rules(lease)).transpose()?;
        let request = rules.map(|rules| (rules.terms, !self.hold.lease(Lease::is_fixed)));
        // Never `None`: this entry has not left.
        let further = Self::again(&self.hold, request, what).await?;
        drop(further.ok_or_else(|| self.hold.lost())?);
        Ok(())
    }

    /// Does a change of what the record says, and renews the hold, so that a majority stores it.
    pub(crate) async fn change_and_renew(
        &self,
        change: impl FnOnce(),
        what: &'static str,
    ) -> Result<(), Error> {
        let renewed = async {
            change();
            let round = self.hold.start_round(None, 0);
            let exchange = round.ok_or_else(|| self.hold.lost())?;
            if crate::mutant!("proclaimed_to_nobody_yet") {
                return Ok(());
            }
            self.check_round(self.hold.conclude(exchange).await, what)
        };
        self.hold.unforked(renewed).await
    }

    /// Renews the hold at once, in the background.
    pub(crate) fn renew_soon(&self) {
        self.hold.renew_now();
        keeper::schedule(&self.hold);
    }

    /// Leaves, and leaves the votes to leases of this length.
    pub(crate) async fn keep_for(mut self, time: Duration) -> Result<(), Error> {
        let hold = Arc::clone(&self.hold);
        let kept = async move {
            let extended = self.enter_for(Some(time), "keeping").await;
            self.has_left = true;
            // A time that was refused or not confirmed must not shorten the lease that there is.
            if let Some(replies) = self.hold.keep(extended.is_ok().then_some(time))? {
                // No error if too few answer: the lock stays taken for longer than asked, not
                // shorter.
                self.hold.confirm(replies, None, false).await;
            }
            extended
        };
        hold.unforked(kept).await
    }

    pub(crate) fn name(&self) -> &str {
        self.hold.name()
    }

    pub(crate) fn id(&self) -> &HoldId {
        &self.hold.id
    }

    pub(crate) fn token(&self) -> Option<Token> {
        self.hold.token
    }

    /// The value of a leader.
    pub(crate) fn announced(&self) -> &AnnouncedValue {
        self.hold.record.announced().expect("every candidate has a value")
    }

    pub(crate) fn slots(&self) -> Option<&Slots> {
        self.hold.slots.as_ref()
    }

    pub(crate) fn votes(&self) -> usize {
        self.hold.votes()
    }

    pub(crate) fn count(&self) -> u32 {
        self.hold.count()
    }

    pub(crate) fn is_held(&self) -> bool {
        let watchdog = || !self.hold.ended.read(|ended| *ended);
        self.hold.is_held() || crate::mutant!("held_until_the_watchdog_says") && watchdog()
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.hold.remaining()
    }

    pub(crate) fn lost(&self) -> Lost {
        Lost::of(vec![Arc::clone(&self.hold)])
    }

    pub(crate) fn view(&self) -> HoldView {
        HoldView(Arc::clone(&self.hold))
    }

    /// Completes a third of the lease before the hold is lost, 10 s at most, unless a renewal puts
    /// the loss off. In a forked process it completes at once.
    pub(crate) async fn until_nearly_lost(&self) {
        let hold = &self.hold;
        let nearly = async {
            let lease = hold.lease(|lease| lease.terms().lease);
            hold.until_left(GRACE.min(lease / 3)).await;
            Ok(())
        };
        // An error says that this process is forked: there nothing is held.
        let _ = hold.unforked(nearly).await;
    }

    pub(crate) async fn while_held<F: Future>(&self, work: F) -> Result<F::Output, Error> {
        while_held(from_ref(self), work).await
    }

    pub(crate) async fn try_while_held<T, E: From<Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        try_while_held(from_ref(self), work).await
    }

    pub(crate) async fn release(mut self) -> Result<(), Error> {
        let (kind, lock, hold) = (self.hold.record.kind().name, self.hold.name(), &self.hold.id);
        let span = tracing::debug_span!("release", kind, lock, %hold, outcome = Empty);
        let hold = Arc::clone(&self.hold);
        let left = async {
            self.has_left = true;
            self.hold.leave().await
        };
        let released = hold.unforked(left).await;
        span.record(
            "outcome",
            match &released {
                Ok(()) => "released",
                Err(error) if error.is_closed() => "closed",
                Err(error) if error.is_lost() => "lost",
                Err(_) => "unconfirmed",
            },
        );
        released
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.has_left || crate::mutant!("dropped_guard_stays") {
            return;
        }
        if self.hold.is_forked() {
            // Leaked: to drop it would send a release and lock what may be locked for ever.
            mem::forget(Arc::clone(&self.hold));
        } else {
            // The release is queued by now, and sent although nobody waits for the answers.
            drop(self.hold.leave());
        }
    }
}
