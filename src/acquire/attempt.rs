//! One attempt on the voters, and what is left to do for a hold when a majority has granted:
//! `proto` decides, this sends and listens.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

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
    /// Asks all voters once for a fresh hold. Where it is lost, its undo is queued to every voter
    /// by then.
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
                claim.narrow(votes.may_have_granted());
                // Law 9: nobody has it, and nobody can.
                let kept_out = |voter| self.panel.standings.kept_out_longest(voter, started);
                let is_silence = loss == Loss::Split && votes.discount(kept_out);
                Err((if is_silence { Loss::NoQuorum } else { loss }, None))
            }
        };
        let (granted, votes) = self.end_attempt(record, settled, votes, started)?;
        Ok(Won::new(claim, started, rules, granted, votes, replies))
    }

    /// Counts what an attempt has come to. `votes`: what its hold has, or it was lost by, unless
    /// others say so.
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

/// What a majority's votes have come to: a hold, or by what it was lost, and the votes where these
/// are not those that were granted.
pub(super) type Settled = Result<Granted, (Loss, Option<Votes>)>;

/// For how many semaphores it is remembered that the client has warned.
const MOST: usize = 1024;

/// The semaphores that others use with fewer permits, as the log has it.
#[derive(Debug, Default)]
pub(super) struct FewerTold(Mutex<BTreeSet<Arc<str>>>);

impl Coordinator {
    /// The least that the next token of a lock may be; `None` where it gives none.
    pub(super) fn floor(&self, record: &LockRecord) -> Option<Token> {
        let wall_micros = || u64::try_from(self.clock.wall().as_micros()).unwrap_or(u64::MAX);
        record.kind().is_fenced.then(|| self.floors().floor(&record.info().key, wall_micros()))
    }

    /// Where a majority does not store the token yet, it is sent to all. Where voters gave other
    /// slots than others did, those behind are asked to go on, and `heard` has what they say.
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
                    // A voter that refused may grant now.
                    claim.owe_all();
                    let ask = Ask { token: Some(token), ..claim.ask() };
                    storing = Some(panel.ask(&voters, &claim.record().store_token(&ask), now));
                }
                GrantNext::AskForSlots { floors, voters } => {
                    claim.owe_all();
                    let ask = Ask { ticket, slots: Some(&floors), ..claim.ask() };
                    panel.ask_again(replies, &voters, &claim.record().acquire(&ask), now);
                }
                GrantNext::Done(granted) => break Ok(granted),
                GrantNext::Lost(loss, votes) => break Err((loss, votes)),
            }
        };
        if storing.is_some() {
            let outcome = if settled.is_ok() { "stored" } else { "failed" };
            self.series(claim.record()).token_repairs.of(outcome).count(1);
        }
        if let Ok(Granted { token: Some(token), .. }) = settled {
            self.floors().seen(&claim.record().info().key, token);
        }
        if let (Ok(_), Some(fewer)) = (&settled, grant.fewer()) {
            self.warn_of_fewer(claim.record(), fewer);
        }
        settled
    }

    /// Says once of each semaphore that others use it with fewer permits: these count from now on.
    fn warn_of_fewer(&self, record: &LockRecord, fewer: u16) {
        let key = Arc::clone(&record.info().key);
        let mut told = lock(&self.fewer_told.0);
        if told.len() >= MOST {
            told.clear();
        }
        let is_first = told.insert(key);
        drop(told);
        if is_first {
            let (lock, permits) = (record.info().name.as_str().to_owned(), record.info().permits);
            log::tell_here(move || {
                tracing::warn!(lock, permits, fewer, "others use the semaphore with fewer permits");
            });
        }
    }
}

impl Panel {
    /// A voter's vote as it counts when a new hold has asked since then; takes note of what came
    /// with it.
    pub(super) fn hear(&self, grant: &mut Grant, voter: usize, outcome: &Outcome<Answer>) -> Vote {
        let mut vote = self.standings.vote(outcome, grant.started());
        if grant.has_slots() && crate::mutant!("quarantined_slot_counts") {
            vote = Vote::of(outcome);
        }
        grant.heard(voter, &mut vote);
        vote
    }
}
