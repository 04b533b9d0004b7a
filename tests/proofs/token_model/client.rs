//! What a client does: ask, store its token, hold, renew, and give back.

use crate::token_model::{
    requests::Kind,
    rules::{Broken, Rules},
    state::{Answer, Line, Phase, QUORUM, State},
};

impl State {
    pub(crate) fn may_ask(&self, client: u8, rules: &Rules) -> bool {
        let it = self.client(client);
        it.phase == Phase::Idle && it.attempts < rules.bounds.attempts[usize::from(client)]
    }

    /// A new attempt: a fresh number, and the same request to all.
    pub(crate) fn ask(&mut self, client: u8, rules: &Rules) {
        let it = self.client_mut(client);
        it.attempts += 1;
        it.phase = Phase::Asking { age: 0 };
        self.send(client, Kind::Acquire, rules.floor(client), |_| true);
    }

    pub(crate) fn may_ask_again(&self, client: u8) -> bool {
        self.budget.rounds > 0 && matches!(self.client(client).phase, Phase::Asking { .. })
    }

    /// Keeps its votes and asks the others again; its age goes on.
    pub(crate) fn ask_again(&mut self, client: u8, rules: &Rules) {
        self.budget.rounds -= 1;
        let others = |line: &Line| line.heard == Answer::None;
        self.send(client, Kind::Acquire, rules.floor(client), others);
    }

    fn send(&mut self, client: u8, kind: Kind, token: u8, to: impl Fn(&Line) -> bool) {
        let hold = self.client(client).hold(client);
        let lines = self.lines_mut(client).filter(|line| to(line));
        lines.for_each(|line| line.send(kind, hold, token));
    }

    /// The caller releases or gives up, or the time has run out: all that was asked for is given
    /// back.
    pub(crate) fn give_back(&mut self, client: u8) {
        self.end_round(client);
        self.send(client, Kind::Release, 0, |_| true);
        self.client_mut(client).phase = Phase::Idle;
        self.lines_mut(client).for_each(|line| line.proof = None);
    }

    fn end_round(&mut self, client: u8) {
        self.lines_mut(client).for_each(Line::forget_round);
    }

    pub(crate) fn may_renew(&self, client: u8) -> bool {
        self.budget.renewals > 0 && self.client(client).holds()
    }

    /// A round of renewal; one that is under way has failed.
    pub(crate) fn renew(&mut self, client: u8) {
        self.budget.renewals -= 1;
        self.end_round(client);
        if let Phase::Holding { round, token, .. } = &mut self.client_mut(client).phase {
            *round = Some(0);
            let token = *token;
            self.send(client, Kind::Renew, token, |_| true);
        }
    }

    /// The client hears the voter's answer, and judges.
    pub(crate) fn hear(&mut self, client: u8, voter: usize, rules: &Rules) {
        let phase = self.client(client).phase;
        let (Phase::Asking { age }
        | Phase::Storing { age, .. }
        | Phase::Holding { round: Some(age), .. }) = phase
        else {
            return;
        };
        let line = self.voters[voter].line_mut(client);
        line.heard = std::mem::take(&mut line.reply);
        let proves = match line.heard {
            Answer::Granted(_) => true,
            Answer::Uncounted { .. } => rules.breaks(Broken::AnyVoteIsProof),
            Answer::None | Answer::Stored => false,
        };
        if proves {
            line.proof = Some(line.proof.map_or(age, |sent| sent.min(age)));
        }
        match phase {
            Phase::Asking { age } => self.judge_votes(client, age, rules),
            Phase::Storing { age, token } => {
                if self.is_stored(client, token, rules) {
                    self.hand_out(client, age, token, rules);
                }
            }
            Phase::Holding { left, token, .. } => {
                if self.answers(client).count() >= QUORUM {
                    let left = left.max(rules.lease - age);
                    let renewed = Phase::Holding { left, token, round: None };
                    self.client_mut(client).phase = renewed;
                    self.end_round(client);
                }
            }
            Phase::Idle => {}
        }
    }

    /// The counters of the voters whose votes count.
    fn answers(&self, client: u8) -> impl Iterator<Item = u8> {
        self.lines(client).filter_map(|line| line.heard.counter())
    }

    fn judge_votes(&mut self, client: u8, age: u8, rules: &Rules) {
        if self.answers(client).count() < QUORUM {
            return;
        }
        let lowest = rules.breaks(Broken::LowestAnswer);
        let answered = (self.answers(client).min(), self.answers(client).max());
        let token = if lowest { answered.0 } else { answered.1 }.unwrap_or_default();
        let at_once = self.is_stored(client, token, rules) || rules.breaks(Broken::NoWriteBack);
        if !at_once {
            let elsewhere = rules.breaks(Broken::RaisedElsewhere);
            let to = |line: &Line| !elsewhere || line.heard == Answer::None;
            self.send(client, Kind::Renew, token, to);
        }
        if at_once || rules.breaks(Broken::WriteBackNotAwaited) {
            self.hand_out(client, age, token, rules);
        } else {
            self.client_mut(client).phase = Phase::Storing { age, token };
        }
    }

    /// By a majority, as far as the client has heard.
    fn is_stored(&self, client: u8, token: u8, rules: &Rules) -> bool {
        let stores = |line: &&Line| match line.heard {
            Answer::Granted(counter) => counter >= token,
            Answer::Stored => true,
            Answer::None | Answer::Uncounted { .. } => false,
        };
        !rules.bounds.fenced || self.lines(client).filter(stores).count() >= QUORUM
    }

    fn hand_out(&mut self, client: u8, age: u8, token: u8, rules: &Rules) {
        self.fell |= rules.bounds.fenced && token <= self.highest;
        self.highest = self.highest.max(token);
        let left = rules.lease - age;
        self.client_mut(client).phase = Phase::Holding { left, token, round: None };
        self.end_round(client);
    }

    /// One tick of the client's own clock.
    pub(crate) fn grow_older(&mut self, client: u8, rules: &Rules) {
        let is_over = match &mut self.client_mut(client).phase {
            Phase::Idle => false,
            Phase::Asking { age } => {
                *age += 1;
                *age >= rules.lease
            }
            Phase::Storing { age, token } => {
                *age += 1;
                *token = token.saturating_sub(rules.clock.step);
                *age >= rules.lease
            }
            Phase::Holding { left, token, round } => {
                *left -= 1;
                *token = token.saturating_sub(rules.clock.step);
                *round = round.map(|age| (age + 1).min(rules.lease));
                *left == 0
            }
        };
        if is_over {
            self.give_back(client);
        }
    }
}

impl Rules {
    fn floor(&self, client: u8) -> u8 {
        if self.bounds.fenced { self.clock.floors[usize::from(client)] } else { 0 }
    }
}
