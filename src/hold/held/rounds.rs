//! Rounds of renewal, and what the answers to them count for.

use std::{sync::Arc, time::Duration};

use super::{super::keeper::attend, AfterHealing, Hold, HoldLoss, HoldState};
use crate::{
    acquire::drive,
    clock::Moment,
    kinds::Ask,
    proto::{Asked, Cause, Duty, KeptOut, Round, RoundEnd, Terms, Verdict, Vote},
    scripts::Answer,
    voter::{Call, LateListener, Outcome, Replies},
};

/// A round under way.
#[derive(Debug)]
pub(in crate::hold) struct Exchange {
    round: Round,
    sent: RoundSent,
    replies: Replies,
}

/// What a round asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundSent {
    /// It is the request by which the hold was acquired.
    pub(super) is_first: bool,
    pub(super) terms: Terms,
    pub(super) started: Moment,
    /// For how long the client had stood still by then.
    pub(super) stood_still: Duration,
    /// Voters look at all that they know of the hold.
    pub(super) in_full: bool,
}

impl RoundSent {
    /// The same as if it had been sent sooner by what the client turned out to have stood still.
    fn backdated(self, stood_still: Duration) -> Self {
        let unseen = stood_still.saturating_sub(self.stood_still);
        Self { started: self.started - unseen, stood_still, ..self }
    }

    pub(super) fn heard(self, heard: Moment, kept_out: Option<KeptOut>, is_passed: bool) -> Asked {
        let Self { is_first, terms, started: sent, .. } = self;
        Asked { is_first, is_passed, sent, terms, heard, kept_out }
    }
}

/// The answers to a round that nobody waits for.
struct LateAnswers {
    hold: Arc<Hold>,
    sent: RoundSent,
}

impl LateListener for LateAnswers {
    fn hear(&self, voter: usize, outcome: &Outcome<Answer>) {
        self.hold.hear_late(self.sent, voter, outcome);
    }
}

/// What an answer counts for.
struct RoundHeard {
    verdict: Verdict,
    /// It comes from a voter in quarantine.
    suspected: bool,
    /// Another may have held the lock.
    is_lost: bool,
    /// When it was heard.
    at: Moment,
}

impl Hold {
    /// Starts a round of renewal that also tells the count; nothing once the hold has ended. Those
    /// who enter once more ask for a lease as long as they want, and count until they
    /// [leave](Self::leave).
    ///
    /// Sends within the lock, so that every voter gets the counts in the order they came about.
    pub(in crate::hold) fn start_round(
        &self,
        request: Option<Terms>,
        entries: u32,
    ) -> Option<Exchange> {
        let mut state = self.state();
        let now = self.now();
        if state.lease.duty(now) == Duty::Lost {
            return None;
        }
        state.count += entries;
        let terms = state.lease.terms();
        let terms = request.map_or(terms, |request| terms.longer(request));
        state.longest = state.longest.max(terms.lease);
        let panel = self.coordinator.panel();
        let deadline = panel.allowed(self.rules.voter_deadline, self.rules.longest_deadline);
        let round = Round::start(panel.quorum, now, deadline);
        let in_full = state.checkup.begins(now, self.coordinator.settings().fence_memory);
        state.support().begin();
        let stood_still = state.stood_still;
        let sent = RoundSent { is_first: false, terms, started: now, stood_still, in_full };
        let replies = panel.ask_all(&self.renewal(&state, sent, false), now);
        Some(Exchange { round, sent, replies })
    }

    /// `is_anew`: to voters that have said that they have no vote of the hold.
    fn renewal(&self, state: &HoldState, sent: RoundSent, is_anew: bool) -> Call {
        let (token, slots) = (self.stored, self.slots.as_ref());
        let (count, is_known) = (state.count, !sent.in_full);
        let first = Ask::new(&self.id, sent.terms.lease);
        self.record.renew(&Ask { count, token, is_known, is_anew, slots, ..first })
    }

    /// Asks some voters of a round again, unless the hold has ended. Tells the count as it is now.
    fn ask_again(&self, replies: &mut Replies, sent: RoundSent, voters: &[usize]) {
        let state = self.state();
        let now = self.now();
        if state.lease.duty(now) == Duty::Lost {
            return;
        }
        let call = self.renewal(&state, sent, true);
        self.coordinator.panel().ask_again(replies, voters, &call, now);
    }

    /// Asks whether it was ended by force, where its votes are gone: then what each voter says. The
    /// mark stands on a majority by the time that anybody is told of the end, so a majority without
    /// one is the answer.
    pub(in crate::hold) async fn marks_of_force(&self) -> Option<Vec<Verdict>> {
        let (panel, lease) = (self.coordinator.panel(), self.rules.terms.lease);
        // In full, and not anew: it gives no vote, whatever it finds (law 6).
        let (count, token, slots) = (self.count().max(1), self.stored, self.slots.as_ref());
        let ask = Ask { count, token, slots, is_anew: false, ..Ask::new(&self.id, lease) };
        let verdict = |answer: &Outcome<Answer>| Vote::of(answer).verdict;
        let is_marked = |answers: &[_]| answers.iter().any(|it| verdict(it) == Verdict::Revoked);
        let is_told = |answer: &Outcome<Answer>| !matches!(verdict(answer), Verdict::Unknown(_));
        let are_enough = |answers: &[Outcome<Answer>]| {
            is_marked(answers) || panel.quorum.reached(|voter| is_told(&answers[voter]))
        };
        let call = self.record.renew(&ask);
        let answers = self.coordinator.gather(&call, self.rules, are_enough).await;
        is_marked(&answers).then(|| answers.iter().map(verdict).collect())
    }

    fn heard(&self, sent: RoundSent, voter: usize, outcome: &Outcome<Answer>) -> RoundHeard {
        let panel = self.coordinator.panel();
        let shard = outcome.as_ref().ok().map(|answer| answer.shard);
        let Vote { mut verdict, slots, token, .. } = Vote::of(outcome);
        // Those that it gave are no use to the hold.
        if slots.is_some() && slots != self.slots && !crate::mutant!("any_slot_is_a_vote") {
            verdict = Verdict::Absent;
        }
        // Whoever resumes a parked hold may give the votes back: no answer yet.
        let resumer = match &verdict {
            Verdict::Refused { by, .. } if by.resumes(&self.id) => Some(by.clone()),
            _ => None,
        };
        if resumer.is_some() && !crate::mutant!("resumer_is_a_stranger") {
            verdict = Verdict::Unknown(Cause::Unheard);
        }
        let misses = verdict.is_lacking().then(|| self.misses(voter, &verdict)).flatten();
        if let (Some(shard), Some(given)) = (shard, misses)
            && panel.standings.note_missing_vote(shard, given)
        {
            panel.voters[voter].rename(shard.number);
        }
        // Now that this voter may be in quarantine for what it misses.
        let kept_out = shard.and_then(|shard| panel.standings.kept_out(shard, sent.started));
        let mut state = self.state();
        let (at, sent) = (self.now(), sent.backdated(state.stood_still));
        let mut support = state.support();
        let verdict = support.counted(voter, verdict, kept_out);
        let asked = sent.heard(at, kept_out, token > self.stored);
        let healed = support.heard(voter, &verdict, asked);
        if let Some(resumer) = resumer {
            support.lend(voter, &resumer, at);
        }
        let is_lost = support.is_lost(panel.quorum, at);
        drop(support);
        state.after_healing.is_due |= healed;
        let is_sound = verdict == Verdict::Granted && kept_out.is_none();
        state.checkup.heard(voter, is_sound, sent.in_full);
        RoundHeard { verdict, suspected: kept_out.is_some(), is_lost, at }
    }

    fn misses(&self, voter: usize, verdict: &Verdict) -> Option<Moment> {
        let state = self.state();
        state.support().misses(voter, verdict, self.now())
    }

    /// Has the answers heard that nobody waits for any more: a voter that has forgotten the hold
    /// says so once.
    pub(super) fn hear_on(self: &Arc<Self>, sent: RoundSent, replies: Replies) {
        replies.hand_over(|| Arc::new(LateAnswers { hold: Arc::clone(self), sent }));
    }

    fn hear_late(self: &Arc<Self>, sent: RoundSent, voter: usize, outcome: &Outcome<Answer>) {
        let heard = self.heard(sent, voter, outcome);
        match heard.verdict {
            Verdict::Revoked => self.lose(self.state(), HoldLoss::Revoked),
            _ if heard.is_lost => {
                let state = self.state();
                let loss = self.vanished(&state);
                self.lose(state, loss);
            }
            Verdict::Absent => self.put_right(sent, &[voter]),
            _ => {
                if self.state().confirm_healed(heard.at) {
                    attend(self);
                }
            }
        }
    }

    /// Why it has too few votes left.
    fn vanished(&self, state: &HoldState) -> HoldLoss {
        match state.support().rival() {
            Some(by) if by.resumes(&self.id) => HoldLoss::Resumed,
            _ => HoldLoss::Vanished,
        }
    }

    /// Asks voters for their votes that have none of the hold, or other slots than it has, unless
    /// it has ended.
    pub(super) fn put_right(self: &Arc<Self>, sent: RoundSent, voters: &[usize]) {
        if voters.is_empty() {
            return;
        }
        let state = self.state();
        let now = self.now();
        if state.lease.duty(now) == Duty::Lost {
            return;
        }
        let sent = RoundSent { started: now, stood_still: state.stood_still, ..sent };
        let call = self.renewal(&state, sent, true);
        let replies = self.coordinator.panel().ask(voters, &call, now);
        drop(state);
        self.hear_on(sent, replies);
    }

    /// Keeps the terms of an entry that was granted.
    pub(in crate::hold) fn widen(self: &Arc<Self>, terms: Terms, renewed: bool) {
        let mut state = self.state();
        if state.end.is_none() {
            state.lease.widen(terms, renewed, self.now());
        }
    }

    /// Listens to a round until it is decided, and draws the consequences. Nothing comes of it
    /// where the hold ends before.
    pub(in crate::hold) async fn conclude(
        self: &Arc<Self>,
        mut exchange: Exchange,
    ) -> Option<RoundEnd> {
        let end = tokio::select! {
            biased;
            () = self.over.until(|over| *over) => None,
            end = self.decide(&mut exchange) => Some(end),
        };
        self.hear_on(exchange.sent, exchange.replies);
        end
    }

    async fn decide(&self, exchange: &mut Exchange) -> RoundEnd {
        let (clock, sent) = (self.coordinator.clock(), exchange.sent);
        let end = drive(
            clock,
            &mut exchange.round,
            &mut exchange.replies,
            sent.started,
            |round, now| round.next(now, || self.coordinator.chance()),
            |round, (voter, outcome), _| {
                let heard = self.heard(sent, voter, &outcome);
                round.heard(voter, heard.verdict, heard.suspected);
                if heard.is_lost {
                    round.vanish();
                }
            },
            |replies, voters, _| self.ask_again(replies, sent, voters),
        );
        let end = end.await;
        match end {
            RoundEnd::Renewed => {
                let mut state = self.state();
                let late = crate::mutant!("renews_from_the_reply");
                let sent = sent.backdated(state.stood_still);
                let started = if late { clock.now() } else { sent.started };
                state.lease.renewed(sent.terms, started, clock.now());
                // What comes next has another cause.
                state.failed.clear();
            }
            RoundEnd::Failed => {
                let chance = self.coordinator.chance();
                let mut state = self.state();
                state.lease.failed(clock.now(), chance);
                if crate::mutant!("failed_round_gives_back") {
                    let release = self.record.release(&self.id, 0);
                    drop(self.coordinator.panel().ask_all(&release, clock.now()));
                }
                state.failed = exchange.round.verdicts();
            }
            RoundEnd::Superseded | RoundEnd::Vanished => {
                let mut state = self.state();
                state.failed = exchange.round.verdicts();
                let loss = match end {
                    RoundEnd::Vanished => self.vanished(&state),
                    _ if state.failed.contains(&Verdict::Revoked) => HoldLoss::Revoked,
                    _ => HoldLoss::Superseded,
                };
                self.lose(state, loss);
            }
        }
        end
    }
}

impl HoldState {
    /// Has the hold renewed once more where a voter has its vote again: another one that loses it
    /// afterwards did not lose it at the same time. Not for each of many losses.
    pub(super) fn confirm_healed(&mut self, now: Moment) -> bool {
        let AfterHealing { is_due, not_before } = self.after_healing;
        if !is_due || self.in_round || now < not_before {
            return false;
        }
        let not_before = now + self.lease.terms().lease / 4;
        self.after_healing = AfterHealing { is_due: false, not_before };
        self.lease.renew_now(now);
        true
    }
}
