//! What a client sends, and what it does with what `proto` says.

use crate::{
    change::Sets,
    hold_model::{
        requests::Kind,
        rules::{Broken, Rules},
        state::{Answer, Line, Phase, State},
    },
};
use quorate::proto::RoundEnd;

impl State {
    pub(crate) fn may_ask(&self, client: u8, rules: &Rules) -> bool {
        let it = self.client(client);
        it.phase == Phase::Idle && it.attempts < rules.bounds.attempts[usize::from(client)]
    }

    /// A new attempt: a fresh number, and the same request to all.
    pub(crate) fn ask(&mut self, client: u8, rules: &Rules) {
        let it = self.client_mut(client);
        it.attempts += 1;
        it.phase = Phase::Asking { age: 0, again: false };
        let all = self.all_of(client, rules);
        self.send(client, (Kind::Acquire, rules.floor(client)), &all, rules);
    }

    /// The voters that it has.
    fn all_of(&self, client: u8, rules: &Rules) -> Vec<usize> {
        rules.voters_of(self.client(client).sets).collect()
    }

    fn send(&mut self, client: u8, (kind, token): (Kind, u8), to: &[usize], rules: &Rules) {
        let hold = self.client(client).hold(client, rules);
        for voter in to {
            self.voters[*voter].line_mut(client).send(kind, hold, token);
        }
    }

    /// Once an attempt.
    pub(crate) fn may_ask_again(&self, client: u8, rules: &Rules) -> bool {
        let asks = matches!(self.client(client).phase, Phase::Asking { again: false, .. });
        asks && self.budget.rounds > 0 && self.asked_again(client, rules).is_some()
    }

    /// Keeps its votes and asks the others again; its age goes on.
    pub(crate) fn ask_again(&mut self, client: u8, rules: &Rules) {
        let Some(others) = self.asked_again(client, rules) else { return };
        self.budget.rounds -= 1;
        if let Phase::Asking { again, .. } = &mut self.client_mut(client).phase {
            *again = true;
        }
        for voter in 0..self.voters.len() {
            let line = self.voters[voter].line_mut(client);
            let heard = line.heard;
            if others.contains(&voter) {
                line.forget_round();
            }
            line.before = heard;
        }
        self.send(client, (Kind::Acquire, rules.floor(client)), &others, rules);
    }

    /// The attempt is lost, cancelled or out of time: what was asked for is given back.
    pub(crate) fn give_up(&mut self, client: u8, rules: &Rules) {
        let owed = match self.client(client).phase {
            Phase::Asking { .. } => self.may_have_granted(client, rules),
            _ => self.all_of(client, rules),
        };
        self.send(client, (Kind::Undo, 0), &owed, rules);
        self.end(client);
    }

    /// The caller releases, or trust has ended.
    pub(crate) fn release(&mut self, client: u8, rules: &Rules) {
        let all = self.all_of(client, rules);
        self.send(client, (Kind::Release, 0), &all, rules);
        self.end(client);
    }

    fn end(&mut self, client: u8) {
        self.client_mut(client).phase = Phase::Idle;
        self.end_round(client);
        for line in self.lines_mut(client) {
            (line.proof, line.has_lost) = (None, false);
        }
    }

    fn end_round(&mut self, client: u8) {
        self.lines_mut(client).for_each(Line::forget_round);
    }

    pub(crate) fn may_renew(&self, client: u8, rules: &Rules) -> bool {
        client < rules.bounds.busy && self.budget.renewals > 0 && self.client(client).trusts()
    }

    /// A round of renewal; one that is under way has failed.
    pub(crate) fn renew(&mut self, client: u8, rules: &Rules) {
        self.budget.renewals -= 1;
        self.end_round(client);
        let all = self.all_of(client, rules);
        if let Phase::Holding { round, token, .. } = &mut self.client_mut(client).phase {
            *round = Some(0);
            let renewal = (Kind::Keep, *token);
            self.send(client, renewal, &all, rules);
        }
    }

    /// The client hears the voter's answer, and judges.
    pub(crate) fn hear(&mut self, client: u8, voter: usize, rules: &Rules) {
        let phase = self.client(client).phase;
        let Some(age) = phase.asked() else { return };
        let line = self.voters[voter].line_mut(client);
        line.heard = match std::mem::take(&mut line.reply) {
            Answer::None => return,
            Answer::Uncounted { counter, left: 0 } if rules.breaks(Broken::JudgedWhenHeard) => {
                Answer::Granted { counter, anew: false }
            }
            answer => answer,
        };
        rules.take_note(line, age);
        match phase {
            Phase::Idle => {}
            Phase::Asking { .. } => self.judge_attempt(client, age, rules),
            Phase::Storing { token, .. } => {
                if self.is_stored(client, token, rules) {
                    self.hand_out(client, age, token, rules);
                }
            }
            Phase::Holding { .. } => self.judge_renewal(client, age, rules),
        }
    }

    fn judge_attempt(&mut self, client: u8, age: u8, rules: &Rules) {
        if !self.is_won(client, rules) {
            return;
        }
        let Some((token, others)) = self.fix_token(client, rules) else { return };
        let awaits = rules.bounds.fenced && !rules.breaks(Broken::NoWriteBack);
        let others = others.filter(|_| awaits);
        let at_once = others.is_none();
        if let Some(others) = others {
            self.store(client, token, others, rules);
        }
        if at_once || rules.breaks(Broken::WriteBackNotAwaited) {
            self.hand_out(client, age, token, rules);
        } else {
            self.client_mut(client).phase = Phase::Storing { age, token };
        }
    }

    /// Tells the token to those that are not known to store it.
    fn store(&mut self, client: u8, token: u8, mut to: Vec<usize>, rules: &Rules) {
        if rules.breaks(Broken::RaisedElsewhere) {
            to.retain(|voter| !self.voters[*voter].line(client).heard.is_grant());
        }
        for voter in 0..self.voters.len() {
            let line = self.voters[voter].line_mut(client);
            if line.heard.counter() != Some(token) {
                line.forget_round();
            }
        }
        self.send(client, (Kind::Renew, token), &to, rules);
    }

    fn hand_out(&mut self, client: u8, age: u8, token: u8, rules: &Rules) {
        // All of the block may have been given to somebody when the hold ends.
        let first = (token + 1).saturating_sub(rules.block);
        self.fell |= rules.bounds.fenced && first <= self.highest;
        self.highest = self.highest.max(token);
        for other in rules.clients().filter(|other| *other != client) {
            if let Phase::Holding { interrupted, .. } = &mut self.client_mut(other).phase {
                *interrupted = true;
            }
        }
        let left = rules.left_of(if rules.breaks(Broken::TrustFromTheReply) { 0 } else { age });
        self.client_mut(client).phase =
            Phase::Holding { left, token, round: None, interrupted: false };
        self.end_round(client);
    }

    fn judge_renewal(&mut self, client: u8, age: u8, rules: &Rules) {
        let Some(end) = self.round_end(client, rules) else { return };
        if let Phase::Holding { left, round, .. } = &mut self.client_mut(client).phase {
            *round = None;
            if end == RoundEnd::Renewed {
                *left = rules.renewed(*left, age);
            }
        }
        self.end_round(client);
        match end {
            // Each voter renews once more before others forget.
            RoundEnd::Renewed => self.lines_mut(client).for_each(|line| line.has_lost = false),
            RoundEnd::Failed => {}
            RoundEnd::Superseded | RoundEnd::Vanished => self.release(client, rules),
        }
    }

    /// One tick of the client's own clock.
    pub(crate) fn grow_older(&mut self, client: u8, rules: &Rules) {
        let step = rules.clock.step;
        match &mut self.client_mut(client).phase {
            Phase::Idle => {}
            Phase::Asking { age, .. } => {
                *age += 1;
                if !rules.is_in_time(*age) {
                    self.give_up(client, rules);
                }
            }
            Phase::Storing { age, token } => {
                *age += 1;
                *token = token.saturating_sub(step);
                if !rules.is_in_time(*age) {
                    self.give_up(client, rules);
                }
            }
            Phase::Holding { left, token, round, .. } => {
                *left = left.saturating_sub(1);
                *token = token.saturating_sub(step);
                *round = round.map(|age| (age + 1).min(rules.validity()));
                let late_counts = rules.breaks(Broken::RenewalAfterTheDeadline);
                let waits = late_counts && round.is_some_and(|age| age < rules.validity());
                if rules.is_lost(*left) && !waits {
                    self.release(client, rules);
                }
            }
        }
    }

    /// The sets that the client goes on to when it is started again, if the rule allows it: nobody
    /// has the new voters alone while somebody has the old ones alone.
    pub(crate) fn next_sets(&self, client: u8, rules: &Rules) -> Option<Sets> {
        let it = self.client(client);
        if it.phase != Phase::Idle || it.sets == rules.bounds.steps.1 {
            return None;
        }
        if rules.breaks(Broken::StepSkipped) && it.sets == Sets::Old {
            return Some(Sets::New);
        }
        let next = it.sets.next()?;
        let is_old = |other: u8| self.client(other).sets == Sets::Old;
        (next != Sets::New || !rules.clients().any(is_old)).then_some(next)
    }

    /// The client forgets everything. What it had sent may arrive.
    pub(crate) fn die(&mut self, client: u8) {
        self.budget.deaths -= 1;
        self.end(client);
        for voter in &mut self.voters {
            voter.line_mut(client).way.cut(false);
            if let Some(record) = voter.record.as_mut().filter(|it| it.hold.client == client) {
                record.excused = true;
            }
        }
    }
}
