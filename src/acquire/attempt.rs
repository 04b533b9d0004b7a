//! One attempt to get a majority of the votes, and what is left to do for a hold once a majority
//! has granted. `proto` decides; this file sends and listens.

use std::sync::Arc;

use super::{
    Coordinator, Panel,
    claim::{Claim, Won},
    panel::drive,
};
use crate::{
    clock::Moment,
    kinds::{Ask, LockRecord},
    log,
    proto::{Attempt, Defeat, Grant, GrantNext, Granted, Loss, Rules, Ticket, Token, Vote, Votes},
    scripts::Answer,
    sync::lock,
    voter::{Outcome, Replies},
};

impl Coordinator {
    /// Asks all voters once for a fresh hold. If the attempt is lost, its undo has been queued to
    /// the voters when this returns.
    pub(crate) async fn ask_once(
        self: &Arc<Self>,
        record: &LockRecord,
        rules: Rules,
    ) -> Result<Won, Defeat> {
        let rules = self.panel.adapt(rules);
        let (hold, token) = (record.hold(&self.ids), self.floor(record));
        let call = record.acquire(&Ask { token, ..Ask::new(&hold, rules.terms.lease) });
        let started = self.clock.now();
        let mut attempt = Attempt::start(hold.clone(), self.panel.quorum, rules, started);
        let slot_order = record.info().slot_order(&hold);
        // Before the request leaves: a panic or a drop in between would leave its votes behind.
        let mut claim = Claim::of_all(self, record, hold, rules);
        let mut grant = Grant::new(self.panel.quorum, slot_order, rules, started, None);
        let mut replies = self.panel.ask_all(&call, started);
        let end = drive(
            &self.clock,
            &mut attempt,
            &mut replies,
            started,
            Attempt::next,
            |attempt, (voter, outcome), now| {
                let vote = self.panel.hear(&mut grant, voter, &outcome);
                attempt.heard(voter, vote.verdict, now);
            },
            |replies, voters, now| self.panel.ask_again(replies, voters, &call, now),
        );
        let end = end.await;
        let mut votes = attempt.into_votes();
        let settled = match end {
            Ok(_) => self.settle(&mut claim, &mut grant, &mut replies, None, |_, _, _| ()).await,
            Err(loss) => {
                // Otherwise a caller that is refused everywhere has each voter run an undo for
                // nothing.
                claim.owed = votes.may_have_granted();
                // Law 9: if the voters in quarantine leave too few for a majority, the lock is not
                // another's. On each of several machines `run --try` would take it for taken, and a
                // nightly job would run nowhere. The test is
                // `who_meets_others_that_cannot_have_the_lock_either_is_not_told_that_it_is_taken`.
                let quarantine = |voter| self.panel.standings.longest_quarantine(voter, started);
                let is_silence = loss == Loss::Split && votes.discount(quarantine);
                Err((if is_silence { Loss::NoQuorum } else { loss }, None))
            }
        };
        let (granted, votes) = self.end_attempt(record, settled, votes, started)?;
        Ok(Won::new(claim, started, rules, granted, votes, replies))
    }

    /// Counts how an attempt ended. `votes`: those that its hold has, or by which it was lost,
    /// unless `settled` has others.
    pub(super) fn end_attempt(
        &self,
        record: &LockRecord,
        settled: Settled,
        votes: Votes,
        started: Moment,
    ) -> Result<(Granted, Votes), Defeat> {
        let outcome = match &settled {
            Ok(_) => "won",
            Err((Loss::Held, _)) => "held",
            Err((Loss::Split, _)) => "split",
            Err((Loss::NoQuorum, _)) => "no_quorum",
        };
        self.series(record).attempts.of(outcome).count(1);
        match settled {
            Ok(granted) => Ok((granted, votes)),
            Err((loss, stored)) => Err(Defeat { loss, votes: stored.unwrap_or(votes), started }),
        }
    }
}

// When a majority has granted.

/// A hold, or why it was lost although a majority granted; with other votes than the granted ones,
/// if these say why.
pub(super) type Settled = Result<Granted, (Loss, Option<Votes>)>;

/// For how many semaphores the client remembers that it has warned.
// Names may be made from data, without end. Past this number a warning may come a second time,
// which is better than a set that grows for as long as the client lives.
const MAX_WARNED: usize = 1024;

impl Coordinator {
    /// The least number that the next token of a lock may be. `None`: the lock has no tokens.
    // From the wall clock, so that tokens grow although voters have forgotten their counts (design
    // 7).
    pub(super) fn floor(&self, record: &LockRecord) -> Option<Token> {
        let wall_micros = || u64::try_from(self.clock.wall().as_micros()).unwrap_or(u64::MAX);
        record.kind().is_fenced.then(|| lock(&self.floors).floor(&record.info().key, wall_micros()))
    }

    /// Completes a grant: has a majority store the token, and agree on the slots of a semaphore.
    /// `heard`: notes what voters answer to the latter.
    // The caller gets no guard before. Voters 1 and 2 have counted to 7, voter 3 to 9. Granted by 1
    // and 3, Ada has the token 10, but 1 stores 8. When she has left, 1 and 2 give Ben the token 9
    // (law 3, design 7, `token_is_not_stored`).
    pub(super) async fn settle(
        &self,
        claim: &mut Claim,
        grant: &mut Grant,
        replies: &mut Replies,
        ticket: Option<Ticket>,
        mut heard: impl FnMut(usize, Vote, Moment),
    ) -> Settled {
        let Self { panel, clock, .. } = self;
        let (mut now, mut storing) = (clock.now(), None);
        let settled = loop {
            match grant.next(now) {
                GrantNext::Wait(until) => {
                    let next = storing.as_mut().unwrap_or(&mut *replies).next();
                    let next = clock.in_time(until, next).await;
                    now = clock.now();
                    let Some((voter, outcome)) = next else { continue };
                    if storing.is_some() {
                        let vote = panel.standings.vote(&outcome, grant.started());
                        grant.heard_of_token(voter, vote.verdict);
                    } else {
                        heard(voter, panel.hear(grant, voter, &outcome), now);
                    }
                }
                GrantNext::Store(token, voters) => {
                    // A voter that refused may grant now, as the request stores the token with a
                    // vote.
                    claim.owe_all();
                    let ask = Ask { token: Some(token), ..claim.ask() };
                    storing = Some(panel.ask(&voters, &claim.record.store_token(&ask), now));
                }
                GrantNext::AskForSlots { floors, voters } => {
                    claim.owe_all();
                    let ask = Ask { ticket, slots: Some(&floors), ..claim.ask() };
                    panel.ask_again(replies, &voters, &claim.record.acquire(&ask), now);
                }
                GrantNext::Done(granted) => break Ok(granted),
                GrantNext::Lost(loss, votes) => break Err((loss, votes)),
            }
        };
        if storing.is_some() {
            let outcome = if settled.is_ok() { "stored" } else { "failed" };
            self.series(&claim.record).token_repairs.of(outcome).count(1);
        }
        if let Ok(Granted { token: Some(token), .. }) = settled {
            // Its next floor is above, also if the wall clock is set back meanwhile.
            lock(&self.floors).note_token(&claim.record.info().key, token);
        }
        if let (Ok(_), Some(fewer)) = (&settled, grant.fewer()) {
            self.warn_of_fewer(&claim.record, fewer);
        }
        settled
    }

    /// Says once of each semaphore that others use it with fewer permits, which apply from now on.
    fn warn_of_fewer(&self, record: &LockRecord, fewer: u16) {
        let key = Arc::clone(&record.info().key);
        let mut warned = lock(&self.warned_of_fewer);
        if warned.len() >= MAX_WARNED {
            warned.clear();
        }
        let is_first = warned.insert(key);
        // Not with the mutex: the log asks the user's subscriber for the span, which may block.
        drop(warned);
        if is_first {
            let (lock, permits) = (record.info().name.as_str().to_owned(), record.info().permits);
            log::report_here(move || {
                tracing::warn!(lock, permits, fewer, "others use the semaphore with fewer permits");
            });
        }
    }
}

impl Panel {
    /// A voter's vote as it counts for a new hold. `grant` notes the token and slots that came with
    /// it.
    pub(super) fn hear(&self, grant: &mut Grant, voter: usize, outcome: &Outcome<Answer>) -> Vote {
        let mut vote = self.standings.vote(outcome, grant.started());
        if grant.has_slots() && crate::mutant!("quarantined_slot_counts") {
            vote = Vote::of(outcome);
        }
        grant.heard(voter, &mut vote);
        vote
    }
}
