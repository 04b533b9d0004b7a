//! Asks, and has stored, under a hold, which firing of a job is done.

use std::time::Duration;

use super::Entry;
use crate::{
    proto::{Done, DoneAnswer, DoneSurvey, Error, Vote},
    scripts::Answer,
    voter::{Call, Outcome},
};

/// The pause between two rounds that did not reach a majority.
const PAUSE: Duration = Duration::from_millis(50);

impl Entry {
    /// Asks all voters which firing is done, under this hold, until a majority of each set has said
    /// so.
    pub(crate) async fn ask_what_is_done(&self) -> Result<DoneSurvey, Error> {
        self.survey(None, Duration::ZERO, DoneSurvey::is_decided).await
    }

    /// Stores that this firing is done, until a majority of each set has it.
    // A slow voter also stores it before the release, as the requests of one hold arrive in order.
    pub(crate) async fn note_done(&self, done: Done) -> Result<(), Error> {
        self.note_for(Duration::ZERO, done).await
    }

    /// The same after work that was done under this hold: again and again for a lease.
    // A majority that is away at first, and back before the lease ends, still stores it. Otherwise
    // the next holder would do the work again
    // (`what_is_done_is_stored_after_an_outage_that_the_lock_outlives`). Not for ever: voters may
    // refuse it although they renew the hold.
    pub(crate) async fn note_work(&self, done: Done) -> Result<(), Error> {
        self.note_for(self.hold.lease(|lease| lease.terms().lease), done).await
    }

    // Renewals do not carry it: they are a third of a lease apart, and the next waiter would have
    // to wait for one.
    async fn note_for(&self, time: Duration, done: Done) -> Result<(), Error> {
        self.survey(Some(done), time, |survey| survey.stores(done.firing)).await.map(drop)
    }

    /// Asks again and again until the answers are enough, while the lock is held, for `time` and at
    /// least as long as voters may be silent.
    async fn survey(
        &self,
        done: Option<Done>,
        time: Duration,
        are_enough: impl Fn(&DoneSurvey) -> bool,
    ) -> Result<DoneSurvey, Error> {
        let hold = &self.hold;
        let asked = async {
            let (clock, call) =
                (hold.coordinator.clock(), hold.record.note_done(Some(&hold.id), done));
            let until = hold.coordinator.patience().max(clock.now() + time);
            loop {
                let survey = self.round(&call, |survey| done.is_some() && are_enough(survey)).await;
                if are_enough(&survey) {
                    return Ok(survey);
                }
                if !hold.is_held() {
                    return Err(hold.lost());
                }
                if clock.now() >= until {
                    let what = if done.is_some() { "what is done" } else { "what was done before" };
                    return Err(hold.not_entered(what, survey.verdicts()));
                }
                clock.sleep(PAUSE).await;
            }
        };
        hold.unforked(asked).await
    }

    /// Asks all voters once.
    async fn round(&self, call: &Call, are_enough: impl Fn(&DoneSurvey) -> bool) -> DoneSurvey {
        let coordinator = &self.hold.coordinator;
        let panel = coordinator.panel();
        let sent = coordinator.clock().now();
        let read = |outcome: &Outcome<Answer>| {
            // A voter in quarantine may have forgotten a firing. Two of them would say that it is
            // not done, and the work would be done again.
            let mut verdict = panel.standings.vote(outcome, sent).verdict;
            if crate::mutant!("not_done_in_quarantine") {
                verdict = Vote::of(outcome).verdict;
            }
            let answer = outcome.as_ref().ok();
            let (done, clock) = (answer.and_then(Answer::done), answer.and_then(Answer::left));
            DoneAnswer { verdict, done, clock }
        };
        let survey = |outcomes: &[Outcome<Answer>]| {
            DoneSurvey::new(panel.quorum, outcomes.iter().map(read).collect())
        };
        let rules = self.hold.record.rules();
        survey(&coordinator.gather(call, rules, |outcomes| are_enough(&survey(outcomes))).await)
    }
}
