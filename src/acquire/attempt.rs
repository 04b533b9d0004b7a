//! One attempt on the voters: `proto` decides, this sends and listens.

use std::sync::Arc;

use super::{
    Coordinator,
    claim::{Claim, Won},
};
use crate::{
    kinds::{Ask, LockRecord},
    proto::{Attempt, Defeat, Grant, HoldId, Loss, Next, Rules, Verdict, Window},
    voter::Call,
};

impl Coordinator {
    /// Asks all voters once. Where it is lost, it is what each of them said.
    pub(crate) async fn ask_once(
        self: &Arc<Self>,
        record: &LockRecord,
        rules: Rules,
    ) -> Result<Won, Vec<Verdict>> {
        let window = Window::start(None, false, self.clock.now());
        let won = self.gather_votes(record, &rules, window).await;
        won.map_err(|defeat| defeat.votes.into_verdicts())
    }

    /// Asks all voters for a fresh hold. Where it is lost, its undo is queued to every voter by
    /// then.
    pub(super) async fn gather_votes(
        self: &Arc<Self>,
        record: &LockRecord,
        rules: &Rules,
        window: Window,
    ) -> Result<Won, Defeat> {
        let rules = self.panel.adapt(*rules);
        let hold = record.hold(&self.ids);
        let call = self.first_call(record, &hold, rules);
        let started = self.clock.now();
        let mut attempt =
            Attempt::start(hold.clone(), self.panel.quorum, rules, started).within(window);
        let mut claim = Claim::of_all(self, record, hold, rules);
        let circle = record.info().circle(claim.hold());
        let mut grant = Grant::new(self.panel.quorum, circle, rules, started, window.answers);
        let mut replies = self.panel.ask_all(&call);
        let mut now = started;
        let lost = loop {
            match attempt.next(now) {
                Next::Wait(until) => {
                    let heard = self.clock.in_time(until, replies.next()).await;
                    now = self.clock.now();
                    if let Some((voter, outcome)) = heard {
                        let vote = self.panel.hear(&mut grant, voter, &outcome);
                        attempt.heard(voter, vote.verdict, now);
                    }
                }
                Next::AskAgain(voters) => self.panel.ask_again(&mut replies, &voters, &call),
                Next::Won(_) => break None,
                Next::Lost(loss) => break Some(loss),
            }
        };
        let settled = match lost {
            Some(loss) => Err((loss, None)),
            None => self.settle(&mut claim, &mut grant, &mut replies, None, |_, _| ()).await,
        };
        let votes = attempt.into_votes();
        match settled {
            Ok(granted) => {
                self.count_attempt(record, "won");
                Ok(Won::new(claim, started, rules, granted, votes, replies))
            }
            Err((loss, stored)) => {
                if lost.is_some() {
                    claim.narrow(votes.may_have_granted());
                }
                self.count_attempt(record, outcome_of(loss));
                Err(Defeat { loss, votes: stored.unwrap_or(votes), started })
            }
        }
    }

    fn first_call(&self, record: &LockRecord, hold: &HoldId, rules: Rules) -> Call {
        let (lease, token) = (rules.terms.lease, self.floor(record));
        record.acquire(&Ask { token, ..Ask::new(hold, lease) })
    }
}

/// What a lost attempt is counted as.
pub(super) fn outcome_of(loss: Loss) -> &'static str {
    match loss {
        Loss::Held => "held",
        Loss::Split => "split",
        Loss::NoQuorum => "no_quorum",
    }
}
