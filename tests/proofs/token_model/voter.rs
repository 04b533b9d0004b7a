//! What a voter does: the Lua scripts, the clock, and crashes.

use crate::token_model::{
    requests::{Kind, Request},
    rules::{Broken, Rules},
    state::{Answer, Client, Hold, Phase, Record, Voter},
};

impl Voter {
    /// The first request on the client's connection arrives, and its answer leaves.
    pub(crate) fn run_next(&mut self, client: u8, asking: Client, rules: &Rules) {
        let Some(request) = self.line_mut(client).requests.pop() else { return };
        let hold = Hold { client, number: request.number };
        if request.kind == Kind::Release {
            self.record = self.record.filter(|record| record.hold != hold);
            return;
        }
        let granted = self.claim(hold, request, rules);
        if request.awaited {
            let answer = if granted { self.answer_to(client, asking, rules) } else { Answer::None };
            let stored =
                !granted && request.kind == Kind::Renew && rules.breaks(Broken::RaisedUnderAnother);
            self.line_mut(client).reply = if stored { Answer::Stored } else { answer };
        }
    }

    /// Whether it has the vote now.
    fn claim(&mut self, hold: Hold, request: Request, rules: &Rules) -> bool {
        let was_free = self.record.is_none();
        let granted = was_free || self.is_held_by(hold);
        if granted {
            self.record = Some(Record { hold, left: rules.lease });
        }
        match request.kind {
            _ if !rules.bounds.fenced => {}
            Kind::Acquire if was_free => self.counter = (self.counter + 1).max(request.token),
            Kind::Renew if granted || rules.breaks(Broken::RaisedUnderAnother) => {
                self.counter = self.counter.max(request.token);
            }
            _ => {}
        }
        granted
    }

    /// The client has learned that the voter forgot before it hears this answer. Whether the vote
    /// counts is known now: only an answer to an earlier request could still prove something, and
    /// this one comes in its place.
    fn answer_to(&self, client: u8, asking: Client, rules: &Rules) -> Answer {
        let since = self.since_it_forgot(rules);
        let proven = self.line(client).proof.is_some_and(|sent| rules.proves(sent, since));
        let renews = matches!(asking.phase, Phase::Holding { .. });
        let counts = proven || rules.breaks(Broken::EveryRenewalCounts);
        if self.quarantine == 0 || renews && counts {
            Answer::Granted(self.counter)
        } else if rules.breaks(Broken::JudgedWhenHeard) || rules.breaks(Broken::AnyVoteIsProof) {
            Answer::Uncounted { counter: self.counter, left: self.quarantine }
        } else {
            Answer::None
        }
    }

    pub(crate) fn tick(&mut self, rules: &Rules) {
        self.quarantine = self.quarantine.saturating_sub(1);
        if let Some(record) = &mut self.record {
            record.left -= 1;
        }
        self.record = self.record.filter(|record| record.left > 0);
        self.counter = self.counter.saturating_sub(rules.clock.step);
        for line in &mut self.lines {
            line.requests.lower(rules.clock.step);
            line.reply = line.reply.later(rules, true);
            line.heard = line.heard.later(rules, false);
            line.proof = line.proof.map(|sent| sent + 1);
        }
    }

    /// All connections break with the process, and what was asked on them is lost; answers that
    /// had left it may still be heard.
    pub(crate) fn forget(&mut self, rules: &Rules) {
        self.lines.iter_mut().for_each(|line| line.requests = line.requests.debts());
        (self.record, self.counter) = (None, 0);
        self.quarantine = rules.quarantine;
    }
}

impl Answer {
    fn later(self, rules: &Rules, under_way: bool) -> Self {
        let by = rules.clock.step;
        match self {
            Self::Granted(counter) => Self::Granted(counter.saturating_sub(by)),
            Self::Uncounted { counter, left: 1 }
                if under_way && rules.breaks(Broken::JudgedWhenHeard) =>
            {
                Self::Granted(counter.saturating_sub(by))
            }
            Self::Uncounted { counter, left } => Self::Uncounted {
                counter: counter.saturating_sub(by),
                left: left.saturating_sub(1),
            },
            Self::None | Self::Stored => self,
        }
    }
}
