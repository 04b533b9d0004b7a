//! What a client does: `src/engine` and `src/coordinator/attempt.rs`, `src/hold/held.rs`.

use crate::model::{
    queue::Kind,
    rules::{Broken, RenewalCounts, Rules},
    state::{Answer, Hold, Line, Phase, QUORUM, State, VOTERS},
};

/// More refusals than this, and there is no majority.
const SPARE: usize = VOTERS - QUORUM;

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
        let hold = it.hold(client, rules);
        self.lines_mut(client).for_each(|line| line.send(Kind::Acquire, hold));
    }

    /// The attempt was a split that this client leads, counting those that did not answer as
    /// silent.
    pub(crate) fn may_ask_again(&self, client: u8, rules: &Rules) -> bool {
        let asking = self.client(client).is_asking();
        let count =
            |which: fn(Answer) -> bool| self.lines(client).filter(|line| which(line.heard)).count();
        let (granted, refused) = (count(Answer::is_grant), count(Answer::is_refusal));
        let silent = VOTERS - granted - refused;
        asking
            && self.budget.rounds > 0
            && granted > 0
            && silent <= SPARE
            && self.refusals(client).all(|(other, votes)| {
                let me = self.client(client).hold(client, rules);
                votes < QUORUM && (votes < granted || votes == granted && me < other)
            })
    }

    /// Keeps its votes and asks the others again; its age goes on.
    pub(crate) fn ask_again(&mut self, client: u8, rules: &Rules) {
        self.budget.rounds -= 1;
        let hold = self.client(client).hold(client, rules);
        for line in self.lines_mut(client).filter(|line| !line.heard.is_grant()) {
            let doubtful = line.doubtful || !line.heard.is_refusal();
            line.forget_round();
            line.doubtful = doubtful;
            line.send(Kind::Acquire, hold);
        }
    }

    /// The attempt is lost, cancelled or out of time: what was asked for is given back.
    pub(crate) fn give_up(&mut self, client: u8, rules: &Rules) {
        let only_known = rules.breaks(Broken::UndoOnlyWhereKnown);
        let hold = self.client(client).hold(client, rules);
        for line in self.lines_mut(client) {
            let may_have_granted = !line.heard.is_refusal() || line.doubtful;
            if line.heard.is_grant() || may_have_granted && !only_known {
                line.send(Kind::Undo, hold);
            }
        }
        self.end(client);
    }

    /// The caller releases, or trust has ended.
    pub(crate) fn release(&mut self, client: u8, rules: &Rules) {
        let hold = self.client(client).hold(client, rules);
        self.lines_mut(client).for_each(|line| line.send(Kind::Release, hold));
        self.end(client);
    }

    fn end(&mut self, client: u8) {
        self.client_mut(client).phase = Phase::Idle;
        self.end_round(client);
        self.lines_mut(client).for_each(|line| line.known = 0);
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
        if let Phase::Holding { round, .. } = &mut self.client_mut(client).phase {
            *round = Some(0);
        }
        let hold = self.client(client).hold(client, rules);
        self.lines_mut(client).for_each(|line| line.send(Kind::Renew, hold));
    }

    /// The client hears the voter's answer, and judges.
    pub(crate) fn hear(&mut self, client: u8, voter: usize, rules: &Rules) {
        let phase = self.client(client).phase;
        let age = match phase {
            Phase::Asking { age } | Phase::Holding { round: Some(age), .. } => age,
            Phase::Idle | Phase::Holding { round: None, .. } => return,
        };
        let in_quarantine = self.voters[voter].quarantine > 0;
        let line = self.voters[voter].line_mut(client);
        let counts = match rules.renewal_counts {
            _ if !in_quarantine => true,
            _ if matches!(phase, Phase::Asking { .. }) => false,
            RenewalCounts::Always => true,
            RenewalCounts::IfItHadTheVote | RenewalCounts::IfItHeardOfTheVote => line.known > 0,
            RenewalCounts::Never => false,
        };
        line.heard = match std::mem::take(&mut line.reply) {
            // Whether a client looks at the clock when the vote was given or when it hears of it is
            // left open: what counts by either counts here.
            Answer::Uncounted if counts => Answer::Granted,
            answer => answer,
        };
        let proves = match rules.renewal_counts {
            RenewalCounts::IfItHadTheVote => line.heard == Answer::Granted,
            RenewalCounts::IfItHeardOfTheVote => line.heard.is_grant(),
            RenewalCounts::Always | RenewalCounts::Never => false,
        };
        if proves {
            line.known = line.known.max(rules.validity() - age);
        }
        match phase {
            Phase::Idle => {}
            Phase::Asking { age } => self.judge_attempt(client, age, rules),
            Phase::Holding { left, interrupted, .. } => {
                self.judge_renewal(client, rules, (left, age, interrupted));
            }
        }
    }

    fn judge_attempt(&mut self, client: u8, age: u8, rules: &Rules) {
        let granted = self.lines(client).filter(|line| line.heard == Answer::Granted).count();
        let answered = self.lines(client).filter(|line| line.heard != Answer::None).count();
        let of_answered = rules.breaks(Broken::MajorityOfTheAnswered);
        let needed = if of_answered { answered / 2 + 1 } else { QUORUM };
        if granted < needed {
            return;
        }
        for other in rules.clients().filter(|other| *other != client) {
            if let Phase::Holding { interrupted, .. } = &mut self.client_mut(other).phase {
                *interrupted = true;
            }
        }
        let age = if rules.breaks(Broken::TrustFromTheReply) { 0 } else { age };
        let left = rules.validity() - age;
        self.client_mut(client).phase = Phase::Holding { left, round: None, interrupted: false };
        self.end_round(client);
    }

    fn judge_renewal(
        &mut self,
        client: u8,
        rules: &Rules,
        (left, age, interrupted): (u8, u8, bool),
    ) {
        let granted = self.lines(client).filter(|line| line.heard == Answer::Granted).count();
        let refused = self.lines(client).filter(|line| line.heard.is_refusal()).count();
        let uncounted = self.lines(client).filter(|line| line.heard == Answer::Uncounted).count();
        let superseded = self.refusals(client).any(|(_, votes)| votes >= QUORUM);
        let left = if granted >= QUORUM { left.max(rules.validity() - age) } else { left };
        if superseded {
            self.release(client, rules);
        } else if granted >= QUORUM || refused + uncounted > SPARE {
            self.client_mut(client).phase = Phase::Holding { left, round: None, interrupted };
            self.end_round(client);
        }
    }

    /// The holds that refusals named, each with how many.
    fn refusals(&self, client: u8) -> impl Iterator<Item = (Hold, usize)> {
        let named = move || {
            self.lines(client).filter_map(|line| match line.heard {
                Answer::Refused(by) => Some(by),
                _ => None,
            })
        };
        named().map(move |by| (by, named().filter(|other| *other == by).count()))
    }

    /// One tick of the client's own clock.
    pub(crate) fn grow_older(&mut self, client: u8, rules: &Rules) {
        let late_counts = rules.breaks(Broken::RenewalAfterTheDeadline);
        self.lines_mut(client).for_each(|line| line.known = line.known.saturating_sub(1));
        match &mut self.client_mut(client).phase {
            Phase::Idle => {}
            Phase::Asking { age } => {
                *age += 1;
                if *age >= rules.validity() {
                    self.give_up(client, rules);
                }
            }
            Phase::Holding { left, round, .. } => {
                *left = left.saturating_sub(1);
                *round = round.map(|age| (age + 1).min(rules.validity()));
                let waits = late_counts && round.is_some_and(|age| age < rules.validity());
                if *left == 0 && !waits {
                    self.release(client, rules);
                }
            }
        }
    }

    /// The client forgets everything. What it had sent may arrive.
    pub(crate) fn die(&mut self, client: u8) {
        self.budget.deaths -= 1;
        self.end(client);
        for voter in &mut self.voters {
            voter.line_mut(client).cut(false);
            if let Some(record) = voter.record.as_mut().filter(|it| it.hold.client == client) {
                record.excused = true;
            }
        }
    }
}
