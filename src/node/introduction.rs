//! The name of the client, which each voter keeps for a while: it is said again and again.

use std::time::Duration;

use super::{Call, Replies, lanes::Queued};
use crate::{clock::Moment, words::Cause};

/// Between two times.
const INTERVAL: Duration = Duration::from_secs(240);
/// And where the voter could not be reached.
const AGAIN: Duration = Duration::from_secs(5);

/// What is to be said to one voter, and when.
#[derive(Debug, Default)]
pub(super) struct Introduction {
    call: Option<Call>,
    due: Option<Moment>,
    /// When it was said last, and what comes of it.
    said: Option<(Moment, Replies)>,
}

impl Introduction {
    /// Says it from now on.
    pub(super) fn begin(&mut self, call: Call, now: Moment) {
        *self = Self { call: Some(call), due: Some(now), said: None };
    }

    /// When there is something to do.
    pub(super) fn due(&self) -> Option<Moment> {
        self.due
    }

    /// What is to be sent now. One that was not heard is repeated soon; one that was refused is
    /// not: the user may lack a right, and the name matters to people alone.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<Queued> {
        self.due.filter(|due| *due <= now)?;
        let call = self.call.clone()?;
        if let Some((at, mut answer)) = self.said.take()
            && matches!(answer.try_next(), Some((_, Ok(_) | Err(Cause::Rejected(_)))))
        {
            self.due = Some(at + INTERVAL);
            return None;
        }
        let mut answer = Replies::new(1, 1);
        let (asker, others) = (Some(answer.expect(0)), Vec::new());
        (self.said, self.due) = (Some((now, answer)), Some(now + AGAIN));
        Some(Queued { call, owed_until: None, asker, others, shard: None, asked: now })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        clock::Clock,
        node::Outcome,
        scripts::{Answer, voter},
    };

    fn unreachable() -> Outcome<Answer> {
        Err(Cause::Unreachable("down".into()))
    }

    #[test]
    fn a_name_is_said_every_four_minutes_and_sooner_to_a_voter_that_did_not_hear_it() {
        let start = Clock::System.now();
        let mut introduction = Introduction::default();
        assert!(introduction.take_due(start).is_none(), "there is no name");
        introduction.begin(Call::of(&voter::INTRODUCE, &["c"], &["9", "web-1"]), start);
        let mut said = Vec::new();
        for second in 0..760 {
            let now = start + Duration::from_secs(second);
            let Some(mut request) = introduction.take_due(now) else { continue };
            said.push(second);
            let asker = request.asker.take().expect("the answer matters");
            let refused = || Err(Cause::Rejected(Arc::from("NOPERM")));
            // At first there is no connection, and later a right is missing.
            let answer = match second {
                0 | 5 => unreachable(),
                250 => refused(),
                _ => Ok(Answer::of(
                    1,
                    0,
                    "",
                    [crate::scripts::Value::Nil, crate::scripts::Value::Nil],
                )),
            };
            asker.send(answer);
        }
        assert_eq!(said, [0, 5, 10, 250, 490, 730]);
    }
}
