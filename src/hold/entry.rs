//! One entry of a hold: what every guard is made of.

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

/// What was not confirmed where an owner or a guard enters again.
pub(super) const REENTRY: &str = "re-entry";

/// The longest time that work has to end before its hold is lost. `quorate run` gives as much.
const GRACE: Duration = Duration::from_secs(10);

/// Leaves the hold on drop.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(super) hold: Arc<Hold>,
    pub(super) left: bool,
}

impl Entry {
    /// The first entry of a fresh hold.
    pub(super) fn of(hold: Arc<Hold>, now: Moment) -> Self {
        keeper::begin(&hold, now);
        Self { hold, left: false }
    }

    /// One more entry of a hold that is held. Never shortens its lease. `None`: it was released
    /// before.
    pub(super) async fn again(
        hold: &Arc<Hold>,
        request: Option<(Terms, bool)>,
        what: &'static str,
    ) -> Result<Option<Self>, Error> {
        let terms = request.map(|(terms, _)| terms);
        let Some(exchange) = hold.start_round(terms, 1) else { return hold.gone() };
        // From here on dropping this future leaves again.
        let entry = Self { hold: Arc::clone(hold), left: false };
        entry.renewed_by(hold.conclude(exchange).await, what)?;
        if let Some((terms, renewed)) = request {
            hold.widen(terms, renewed);
            keeper::attend(hold);
        }
        Ok(Some(entry))
    }

    /// What a round came to that was to confirm `what`.
    fn renewed_by(&self, end: Option<RoundEnd>, what: &'static str) -> Result<(), Error> {
        keeper::attend(&self.hold);
        match end {
            Some(RoundEnd::Renewed) if self.hold.is_held() => Ok(()),
            Some(RoundEnd::Failed) if self.hold.is_held() => {
                Err(self.hold.not_entered(what, self.hold.failed()))
            }
            _ => Err(self.hold.lost()),
        }
    }

    /// The first entry of a hold that another hold of the same owner grants. `None`: that one was
    /// released before.
    pub(super) async fn under(
        hold: &Arc<Hold>,
        rules: Rules,
        renewed: bool,
        limit: Option<HoldLimit>,
    ) -> Result<Option<Self>, Error> {
        if !hold.is_held() {
            return hold.gone();
        }
        let Hold { coordinator, holds, owner, .. } = &**hold;
        let record = hold.record.under(&hold.id).expect("it grants another");
        match coordinator.ask_once(&record, rules).await {
            // Heard while the other was held: nobody came in between.
            Ok(won) if hold.is_held() => {
                let (won, now) = ((won, None), hold.now());
                let hold = Hold::start(coordinator, holds, won, *owner, renewed, limit, now);
                Ok(Some(Self::of(hold, now)))
            }
            Err(defeat) if hold.is_held() => {
                // Silence is no reason to ask more.
                if !defeat.votes.lacks_quorum()
                    && let Some(marks) = hold.marks_of_force().await
                {
                    return Err(hold.found_lost(HoldLoss::Revoked, marks));
                }
                let verdicts = defeat.votes.into_verdicts();
                Err(hold.not_entered("a read under the own write", verdicts))
            }
            _ => hold.gone(),
        }
    }

    /// A hold that this one grants, with the same lease, that ends when this one would have had to.
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

    /// Renews, with this lease at least.
    pub(crate) async fn extend(&self, lease: Option<Duration>) -> Result<(), Error> {
        let what = if lease.is_some() { "extension" } else { "renewal" };
        self.hold.unforked(self.enter_for(lease, what)).await
    }

    /// Renews as a further entry would, and keeps no entry of it.
    async fn enter_for(&self, lease: Option<Duration>, what: &'static str) -> Result<(), Error> {
        let rules = lease.map(|lease| self.hold.coordinator.settings().rules(lease)).transpose()?;
        let request = rules.map(|rules| (rules.terms, !self.hold.lease(Lease::is_fixed)));
        // Never `None`: this entry has not left.
        let further = Self::again(&self.hold, request, what).await?;
        drop(further.ok_or_else(|| self.hold.lost())?);
        Ok(())
    }

    /// Renews now: a majority stores what its record has to say once it is changed, `what`.
    pub(crate) async fn tell(
        &self,
        change: impl FnOnce(),
        what: &'static str,
    ) -> Result<(), Error> {
        let told = async {
            change();
            let round = self.hold.start_round(None, 0);
            let exchange = round.ok_or_else(|| self.hold.lost())?;
            if crate::mutant!("proclaimed_to_nobody_yet") {
                return Ok(());
            }
            self.renewed_by(self.hold.conclude(exchange).await, what)
        };
        self.hold.unforked(told).await
    }

    /// Renews in the background, now: a majority is to store what its record has to say.
    pub(crate) fn tell_soon(&self) {
        self.hold.renew_now();
        keeper::attend(&self.hold);
    }

    /// Leaves the votes to leases of this length.
    pub(crate) async fn keep_for(mut self, time: Duration) -> Result<(), Error> {
        let hold = Arc::clone(&self.hold);
        let kept = async move {
            let extended = self.enter_for(Some(time), "keeping").await;
            self.left = true;
            // What was refused or not confirmed changes nothing.
            if let Some(replies) = self.hold.keep(extended.is_ok().then_some(time))? {
                // Where too few answer, the lock stays taken for longer.
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

    /// What a leader says of itself.
    pub(crate) fn announced(&self) -> Option<&AnnouncedValue> {
        self.hold.record.announced()
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
        let watchdog = || !self.hold.over.read(|over| *over);
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

    /// Completes a grace before the hold is lost, unless a renewal puts that off: a third of the
    /// lease, 10 s at most. At once in a forked process.
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
            self.left = true;
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
        if self.left || crate::mutant!("dropped_guard_stays") {
            return;
        }
        if self.hold.is_forked() {
            // Leaked: to drop it would send a release and lock what may be locked for ever.
            mem::forget(Arc::clone(&self.hold));
        } else {
            // What is queued is sent whether or not anybody hears the answers.
            drop(self.hold.leave());
        }
    }
}
