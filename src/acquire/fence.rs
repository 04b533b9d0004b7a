//! The token of a hold that a majority has granted.

use super::{Ask, Coordinator, LockRecord, claim::Claim, place};
use crate::{
    clock::Moment,
    proto::{Defeat, Loss, Rules, Token, Tokens, Votes},
    scripts::Vote,
};

impl Coordinator {
    /// The least that the next token of a lock may be; `None` where it gives none.
    pub(super) fn floor(&self, record: &dyn LockRecord) -> Option<Token> {
        let wall_micros = || u64::try_from(self.clock.wall().as_micros()).unwrap_or(u64::MAX);
        record.info().is_fenced.then(|| self.floors().floor(&record.info().key, wall_micros()))
    }

    /// The token of a hold that was granted these numbers. Where a majority does not store it yet,
    /// it is sent to all, and nobody gets the lock before a majority stores it.
    pub(super) async fn fix_token(
        &self,
        claim: &mut Claim,
        tokens: &Tokens,
        rules: &Rules,
        started: Moment,
        limit: Option<Moment>,
    ) -> Result<Option<Token>, Defeat> {
        let Some((token, stored)) = tokens.fix() else { return Ok(None) };
        if !stored.is_won() && !crate::mutant!("token_is_not_stored") {
            // A voter that refused may grant now.
            claim.owe_all();
            self.store_token(claim, token, stored, *rules, started, limit).await?;
        }
        self.floors().seen(&claim.record().info().key, token);
        Ok(Some(token))
    }

    async fn store_token(
        &self,
        claim: &Claim,
        token: Token,
        stored: Votes,
        rules: Rules,
        started: Moment,
        limit: Option<Moment>,
    ) -> Result<(), Defeat> {
        let stored = self.raise(claim, token, stored, rules, started, limit).await;
        let in_time = rules.is_in_time(started, self.clock.now());
        let is_stored = stored.is_won() && in_time;
        let outcome = if is_stored { "stored" } else { "failed" };
        self.series(claim.record()).token_repairs.of(outcome).count(1);
        if is_stored {
            return Ok(());
        }
        let contended = in_time && !stored.lacks_quorum();
        let loss = if contended { Loss::Split } else { Loss::NoQuorum };
        Err(Defeat { loss, votes: stored, started })
    }

    /// Tells a token to those that are not known to store it, by a renewal of the hold: so it is
    /// refused where another hold has the vote.
    async fn raise(
        &self,
        claim: &Claim,
        token: Token,
        mut stored: Votes,
        rules: Rules,
        started: Moment,
        limit: Option<Moment>,
    ) -> Votes {
        let Self { panel, clock, .. } = self;
        let (hold, lease) = (claim.hold(), rules.terms.lease);
        let ask = Ask { token: Some(token), ..Ask::new(hold, lease) };
        let mut replies = panel.ask(&stored.unheard(), &claim.record().renew(&ask));
        let asked = clock.now();
        let due = asked + panel.adapt(rules).voter_deadline;
        let due = limit.filter(|limit| *limit > asked).map_or(due, |limit| limit.min(due));
        while !stored.is_won() && !stored.is_hopeless() {
            tokio::select! {
                biased;
                (voter, outcome) = replies.next() => {
                    let place = place(voter, &outcome);
                    let verdict = Vote::of(&outcome).verdict;
                    stored.record(voter, panel.counted(place, verdict, started));
                }
                () = clock.sleep_until(due) => stored.close(due.since(asked)),
            }
        }
        stored
    }
}
