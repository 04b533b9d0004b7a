//! A question to everybody that is no vote.

use std::time::Duration;

use super::{Coordinator, LockRecord, Panel};
use crate::{
    engine::Rules,
    node::{Call, Outcome},
    scripts::Answer,
    words::{Cause, Error, Kind, Verdict},
};

impl Coordinator {
    /// The answers of all voters, as far as they come in time; of a majority at least.
    pub(crate) async fn ask_everybody(
        &self,
        record: &dyn LockRecord,
        call: &Call,
        rules: Rules,
    ) -> Result<Vec<Outcome<Answer>>, Error> {
        let began = self.clock.now();
        let gathered = async { Ok(self.gather(call, rules).await) };
        let answers = self.gate.within(gathered).await?;
        self.check_quorum(record, &answers, self.clock.now().since(began))?;
        Ok(answers)
    }

    async fn gather(&self, call: &Call, rules: Rules) -> Vec<Outcome<Answer>> {
        let Self { clock, panel, .. } = self;
        let rules = panel.adapt(rules);
        let mut asked = panel.ask_all(call);
        let late = || Err(Cause::TimedOut(rules.voter_deadline));
        let mut answers: Vec<_> = (0..panel.quorum.voters()).map(|_| late()).collect();
        let due = clock.now() + rules.voter_deadline;
        for _ in 0..answers.len() {
            tokio::select! {
                biased;
                (voter, answer) = asked.next() => answers[voter] = answer,
                () = clock.sleep_until(due) => break,
            }
        }
        answers
    }

    fn check_quorum(
        &self,
        record: &dyn LockRecord,
        answers: &[Outcome<Answer>],
        after: Duration,
    ) -> Result<(), Error> {
        let Panel { quorum, .. } = &self.panel;
        if quorum.reached(|voter| answers[voter].is_ok()) {
            return Ok(());
        }
        let verdicts = answers.iter().map(|answer| match answer {
            Ok(answer) => answer.whose(),
            Err(cause) => Verdict::Unknown(cause.clone()),
        });
        let lock = record.info().name.as_str().into();
        let needed = quorum.needed();
        let kind = Kind::NoQuorum { lock, needed, after };
        Err(Error::new(kind, self.report(verdicts.collect())))
    }
}
