//! A question to everybody that is no vote.

use std::time::Duration;

use super::Coordinator;
use crate::{
    clock::Moment,
    kinds::LockRecord,
    proto::{Cause, Error, Kind, Rules, Verdict},
    scripts::Answer,
    voter::{Call, Outcome},
};

/// Voters that have more to do than others have so long at least.
const LINGER: Duration = Duration::from_millis(100);

impl Coordinator {
    /// The answers of a majority at least, and of the others as far as they come in time. It ends
    /// when they are enough, and waits for no voter that is much later than the majority and than
    /// it usually is.
    pub(crate) async fn ask_until(
        &self,
        record: &LockRecord,
        call: &Call,
        rules: Rules,
        are_enough: impl Fn(&[Outcome<Answer>]) -> bool,
    ) -> Result<Vec<Outcome<Answer>>, Error> {
        let began = self.clock.now();
        let gathered = async { Ok(self.gather(call, rules, are_enough).await) };
        let answers = self.gate.within(gathered).await?;
        if self.panel.quorum.reached(|voter| answers[voter].is_ok()) {
            return Ok(answers);
        }
        Err(self.unanswered(record, &answers, began))
    }

    /// The answers of all voters until they are enough, or those that are missing are late.
    pub(super) async fn gather(
        &self,
        call: &Call,
        rules: Rules,
        are_enough: impl Fn(&[Outcome<Answer>]) -> bool,
    ) -> Vec<Outcome<Answer>> {
        let Self { clock, panel, .. } = self;
        let rules = panel.adapt(rules);
        let mut asked = panel.ask_all(call);
        let mut answers: Vec<_> = vec![Err(Cause::Unheard); panel.quorum.voters()];
        let started = clock.now();
        let (mut due, mut is_heard) = (started + rules.voter_deadline, false);
        for _ in 0..answers.len() {
            let Some((voter, answer)) = clock.in_time(due, asked.next()).await else {
                let late = Cause::TimedOut(clock.now().since(started));
                let unheard = answers.iter_mut().filter(|it| **it == Err(Cause::Unheard));
                unheard.for_each(|answer| *answer = Err(late.clone()));
                break;
            };
            answers[voter] = answer;
            if are_enough(&answers) {
                break;
            }
            if !is_heard && panel.quorum.reached(|voter| answers[voter].is_ok()) {
                is_heard = true;
                let usual = (0..answers.len()).filter_map(|it| panel.standings.round_trip(it));
                let usual = usual.max().unwrap_or_default().max(clock.now().since(started));
                due = due.min(started + LINGER.max(usual * 2));
            }
        }
        answers
    }

    /// The error where too few voters have said what they were asked at that moment.
    pub(crate) fn unanswered(
        &self,
        record: &LockRecord,
        answers: &[Outcome<Answer>],
        asked: Moment,
    ) -> Error {
        let verdicts = answers.iter().map(|answer| match answer {
            Ok(answer) => answer.whose(),
            Err(cause) => Verdict::Unknown(cause.clone()),
        });
        self.undecided(record, verdicts.collect(), asked)
    }

    /// The same by what it comes to, voter by voter.
    pub(super) fn undecided(
        &self,
        record: &LockRecord,
        verdicts: Vec<Verdict>,
        asked: Moment,
    ) -> Error {
        let lock = record.info().name.as_str().into();
        let (needed, after) = (self.panel.quorum.needed(), self.clock.now().since(asked));
        let kind = Kind::NoQuorum { lock, needed, after, too_late: None };
        Error::new(kind, self.panel.report(verdicts))
    }
}
