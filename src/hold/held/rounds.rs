//! Rounds of renewal, and what their answers mean for a hold.

use std::{sync::Arc, time::Duration};

use super::{super::keeper::schedule, Hold, HoldLoss, HoldState};
use crate::{
    acquire::drive,
    clock::Moment,
    kinds::Ask,
    proto::{Asked, Cause, Duty, Round, RoundEnd, ShardQuarantine, Terms, Verdict, Vote},
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
    /// The request by which the hold was acquired.
    pub(super) is_first: bool,
    pub(super) terms: Terms,
    pub(super) started: Moment,
    /// For how long the client had stood still by then.
    pub(super) stood_still: Duration,
    /// Voters also look whether the hold was revoked, and store its token.
    pub(super) in_full: bool,
}

impl RoundSent {
    /// The same, sent sooner by the time for which the client turned out to have stood still.
    fn backdated(self, stood_still: Duration) -> Self {
        let unseen = stood_still.saturating_sub(self.stood_still);
        Self { started: self.started - unseen, stood_still, ..self }
    }

    pub(super) fn heard(
        self,
        heard: Moment,
        quarantine: Option<ShardQuarantine>,
        is_passed: bool,
    ) -> Asked {
        let Self { is_first, terms, started: sent, .. } = self;
        Asked { is_first, is_passed, sent, terms, heard, quarantine }
    }
}

/// Hears the answers to a round that nobody waits for.
struct LateAnswers {
    hold: Arc<Hold>,
    sent: RoundSent,
}

impl LateListener for LateAnswers {
    fn hear(&self, voter: usize, outcome: &Outcome<Answer>) {
        self.hold.note_late(self.sent, voter, outcome);
    }
}

/// What an answer means for the hold.
struct NotedAnswer {
    verdict: Verdict,
    /// The voter is in quarantine.
    suspected: bool,
    /// Another hold may have had the lock.
    is_lost: bool,
}

impl Hold {
    /// Starts a round of renewal, which also tells voters the count of entries. `None`: the hold
    /// has ended. `request`: the terms of a further entry. `entries`: how many are added until they
    /// [leave](Self::leave).
    // It sends with the state locked, so that every voter gets the counts in the order in which
    // they came about. They are absolute (law 5): of two tasks that enter at one moment, 3 before 2
    // would leave 2 on the voters.
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
        // Not yet the terms of the hold: the voters have promised nothing so far. A guard that
        // trusts a longer lease which is only under way may be trusted beside another holder (law
        // 1).
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

    /// `is_anew`: for voters that have said that they have no vote of the hold.
    fn renewal(&self, state: &HoldState, sent: RoundSent, is_anew: bool) -> Call {
        let (token, slots) = (self.stored, self.slots.as_ref());
        let (count, is_known) = (state.count, !sent.in_full);
        let first = Ask::new(&self.id, sent.terms.lease);
        self.record.renew(&Ask { count, token, is_known, is_anew, slots, ..first })
    }

    /// Asks some voters of a round again, unless the hold has ended.
    fn ask_again(&self, replies: &mut Replies, sent: RoundSent, voters: &[usize]) {
        let state = self.state();
        let now = self.now();
        if state.lease.duty(now) == Duty::Lost {
            return;
        }
        let call = self.renewal(&state, sent, true);
        self.coordinator.panel().ask_again(replies, voters, &call, now);
    }

    /// Asks whether a hold whose votes are gone was ended by force: then what each voter says.
    // The mark is on a majority before anybody hears of the forced end, so a majority without the
    // mark is an answer, too.
    pub(in crate::hold) async fn ask_if_revoked(&self) -> Option<Vec<Verdict>> {
        let (panel, lease) = (self.coordinator.panel(), self.rules.terms.lease);
        // In full, as a brief renewal looks at no marks. Not anew: a vote that this question got
        // would be nobody's until its lease ended (law 6).
        let (count, token, slots) = (self.count().max(1), self.stored, self.slots.as_ref());
        let ask = Ask { count, token, slots, is_anew: false, ..Ask::new(&self.id, lease) };
        let verdict = |answer: &Outcome<Answer>| Vote::of(answer).verdict;
        let is_marked = |answers: &[_]| answers.iter().any(|it| verdict(it) == Verdict::Revoked);
        let has_said = |answer: &Outcome<Answer>| !matches!(verdict(answer), Verdict::Unknown(_));
        let are_enough = |answers: &[Outcome<Answer>]| {
            is_marked(answers) || panel.quorum.reached(|voter| has_said(&answers[voter]))
        };
        let call = self.record.renew(&ask);
        let answers = self.coordinator.gather(&call, self.rules, are_enough).await;
        is_marked(&answers).then(|| answers.iter().map(verdict).collect())
    }

    /// Notes what a voter has answered.
    fn note_answer(&self, sent: RoundSent, voter: usize, outcome: &Outcome<Answer>) -> NotedAnswer {
        let panel = self.coordinator.panel();
        let shard = outcome.as_ref().ok().map(|answer| answer.shard);
        let Vote { mut verdict, slots, token, .. } = Vote::of(outcome);
        // A vote for other slots is none. With any slots, three holds could have two permits
        // (design 9).
        if slots.is_some() && slots != self.slots && !crate::mutant!("any_slot_is_a_vote") {
            verdict = Verdict::Absent;
        }
        // An attempt to resume a parked hold may fail, and then gives the votes back to it. Taken
        // for another holder, it would end the hold, and with it a ticket that is still good.
        let resumer = match &verdict {
            Verdict::Refused { by, .. } if by.resumes(&self.id) => Some(by.clone()),
            _ => None,
        };
        if resumer.is_some() && !crate::mutant!("resumer_is_a_stranger") {
            verdict = Verdict::Unknown(Cause::Unheard);
        }
        let missed = verdict.is_lacking().then(|| {
            let state = self.state();
            state.support().misses(voter, &verdict, self.now())
        });
        // A vote from before the voter came back is gone: it has lost data that it says it kept.
        // All clients learn of it by the new name of the data (guarantee 4).
        if let (Some(shard), Some(given)) = (shard, missed.flatten())
            && panel.standings.note_missing_vote(shard, given)
        {
            panel.voters[voter].rename(shard.number);
        }
        // Only now: the voter may be in quarantine for the vote that it lacks.
        let quarantine = shard.and_then(|shard| panel.standings.quarantine(shard, sent.started));
        let mut state = self.state();
        let (at, sent) = (self.now(), sent.backdated(state.stood_still));
        let mut support = state.support();
        let verdict = support.verdict_that_counts(voter, verdict, quarantine);
        let asked = sent.heard(at, quarantine, token > self.stored);
        let healed = support.heard(voter, &verdict, asked);
        if let Some(resumer) = resumer {
            support.note_resumer(voter, &resumer, at);
        }
        let is_lost = support.is_lost(panel.quorum, at);
        drop(support);
        if healed {
            state.healed = Some(at);
        }
        let is_sound = verdict == Verdict::Granted && quarantine.is_none();
        state.checkup.heard(voter, is_sound, sent.in_full);
        NotedAnswer { verdict, suspected: quarantine.is_some(), is_lost }
    }

    /// Has the answers noted that nobody waits for any more.
    // A voter that has lost the vote says so once: when it is asked anew, it gives the vote again.
    // If that answer were dropped, nobody would learn that another may have had the lock
    // (`a_late_answer_can_show_that_a_majority_has_lost_a_hold`).
    pub(super) fn hear_late_answers(self: &Arc<Self>, sent: RoundSent, replies: Replies) {
        replies.hand_over(|| Arc::new(LateAnswers { hold: Arc::clone(self), sent }));
    }

    fn note_late(self: &Arc<Self>, sent: RoundSent, voter: usize, outcome: &Outcome<Answer>) {
        let heard = self.note_answer(sent, voter, outcome);
        match heard.verdict {
            Verdict::Revoked => self.lose(self.state(), HoldLoss::Revoked),
            _ if heard.is_lost => {
                let state = self.state();
                let loss = self.loss_of_votes(&state);
                self.lose(state, loss);
            }
            Verdict::Absent => self.ask_for_votes(sent, &[voter]),
            _ => {
                if self.state().renew_if_healed(self.now()) {
                    schedule(self);
                }
            }
        }
    }

    /// Why it has too few votes left.
    fn loss_of_votes(&self, state: &HoldState) -> HoldLoss {
        match state.support().rival() {
            Some(by) if by.resumes(&self.id) => HoldLoss::Resumed,
            _ => HoldLoss::Vanished,
        }
    }

    /// Asks voters for their votes that have none of the hold, or other slots than it has.
    pub(super) fn ask_for_votes(self: &Arc<Self>, sent: RoundSent, voters: &[usize]) {
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
        self.hear_late_answers(sent, replies);
    }

    /// Takes over the terms of an entry that a majority has granted.
    pub(in crate::hold) fn widen(self: &Arc<Self>, terms: Terms, renewed: bool) {
        let mut state = self.state();
        if state.end.is_none() {
            state.lease.widen(terms, renewed, self.now());
        }
    }

    /// Waits until a round is decided, and draws the consequences. `None`: the hold has ended
    /// before.
    pub(in crate::hold) async fn conclude(
        self: &Arc<Self>,
        mut exchange: Exchange,
    ) -> Option<RoundEnd> {
        let end = tokio::select! {
            biased;
            () = self.ended.until(|ended| *ended) => None,
            end = self.decide(&mut exchange) => Some(end),
        };
        self.hear_late_answers(exchange.sent, exchange.replies);
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
                let heard = self.note_answer(sent, voter, &outcome);
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
                // From before the first request: the voters' leases began at some moment since then
                // (law 2, `renews_from_the_reply`).
                let started = if late { clock.now() } else { sent.started };
                state.lease.renewed(sent.terms, started, clock.now());
                // A later loss has another cause
                // (`a_loss_is_not_explained_by_what_failed_before_the_last_renewal`).
                state.failure.clear();
            }
            RoundEnd::Failed => {
                let chance = self.coordinator.chance();
                let mut state = self.state();
                // The votes stay: they may be what the next round needs (law 7).
                state.lease.failed(clock.now(), chance);
                if crate::mutant!("failed_round_gives_back") {
                    let release = self.record.release(&self.id, 0);
                    drop(self.coordinator.panel().ask_all(&release, clock.now()));
                }
                state.failure = exchange.round.verdicts();
            }
            RoundEnd::Superseded | RoundEnd::Vanished => {
                let mut state = self.state();
                state.failure = exchange.round.verdicts();
                let loss = match end {
                    RoundEnd::Vanished => self.loss_of_votes(&state),
                    _ if state.failure.contains(&Verdict::Revoked) => HoldLoss::Revoked,
                    _ => HoldLoss::Superseded,
                };
                self.lose(state, loss);
            }
        }
        end
    }
}

impl HoldState {
    /// Makes a renewal due if a voter has given its vote again.
    // The renewal shows that all others still have theirs at this moment. So what another voter
    // loses later is not taken for a loss at the same time, which would end the hold
    // (`losses_at_one_voter_after_the_other_lose_no_hold`). Not more often than each quarter of a
    // lease: a voter that loses its data again and again must not make a hold renew as often.
    pub(super) fn renew_if_healed(&mut self, now: Moment) -> bool {
        if self.healed.is_none() || self.in_round || now < self.heals_not_before {
            return false;
        }
        (self.healed, self.heals_not_before) = (None, now + self.lease.terms().lease / 4);
        self.lease.renew_now(now);
        true
    }
}
