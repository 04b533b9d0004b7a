//! What a voter does: the Lua scripts, the clock, and crashes.

use crate::hold_model::{
    requests::{Kind, Request},
    rules::{Broken, Rules},
    state::{Answer, Client, Hold, Record, Voter},
};

impl Voter {
    /// The first request on the client's connection arrives, and its answer leaves. Whether a vote
    /// counts is known now: only an answer to an earlier request could still prove something, and
    /// this one comes in its place.
    pub(crate) fn run_next(&mut self, client: u8, asking: Client, rules: &Rules) {
        let Some(request) = self.line_mut(client).way.queue.pop() else { return };
        let answer = self.run(client, request, false, rules);
        if request.awaited {
            self.line_mut(client).reply = match answer {
                Answer::Granted { counter, .. }
                    if !rules.counts(asking.phase, self.line(client), self.forgot) =>
                {
                    self.uncounted(counter, rules)
                }
                answer => answer,
            };
        }
    }

    /// Where it changes nothing it is never heard.
    fn uncounted(&self, counter: u8, rules: &Rules) -> Answer {
        let left = rules.quarantine.saturating_sub(self.forgot.unwrap_or_default());
        if rules.hears_what_does_not_count() {
            Answer::Uncounted { counter, left }
        } else {
            Answer::None
        }
    }

    /// The first request on the client's broken connection arrives after all.
    pub(crate) fn run_late(&mut self, client: u8, rules: &Rules) {
        if let Some(request) = self.line_mut(client).way.late.pop() {
            self.run(client, request, true, rules);
        }
    }

    fn run(&mut self, client: u8, request: Request, late: bool, rules: &Rules) -> Answer {
        let hold = Hold { client, number: request.number };
        match request.kind {
            Kind::Acquire | Kind::Renew | Kind::Keep => self.claim(hold, request, late, rules),
            Kind::Undo | Kind::Release => {
                if self.is_held_by(hold) || rules.breaks(Broken::ReleaseOfAnybody) {
                    self.record = None;
                }
                Answer::None
            }
        }
    }

    /// `vote` in `lua/lib.lua`, and the numbers of `fence` there.
    fn claim(&mut self, hold: Hold, request: Request, late: bool, rules: &Rules) -> Answer {
        let renews = request.kind.renews();
        if renews && !self.is_held_by(hold) && rules.breaks(Broken::RenewalTakesOver) {
            self.record = None;
        }
        let was_free = self.record.is_none();
        match &mut self.record {
            Some(record) if record.hold == hold => record.left = record.left.max(rules.lease),
            Some(_) if renews && rules.breaks(Broken::RaisedUnderAnother) => {
                self.counter = self.counter.max(request.token);
                return Answer::Stored;
            }
            Some(record) => return Answer::Refused(record.hold),
            None => self.record = Some(Record { hold, left: rules.lease, excused: late }),
        }
        if rules.bounds.fenced && renews {
            if request.kind == Kind::Renew || was_free {
                self.counter = self.counter.max(request.token);
            }
        } else if rules.bounds.fenced && was_free {
            let step = if rules.breaks(Broken::BlocksOverlap) { 1 } else { rules.block };
            self.counter = (self.counter + step).max(request.token);
        }
        Answer::Granted { counter: self.counter, anew: renews && was_free }
    }

    pub(crate) fn tick(&mut self, rules: &Rules) {
        self.forgot = self.forgot.map(|ago| ago + 1);
        if let Some(record) = &mut self.record {
            record.left -= 1;
        }
        self.record = self.record.filter(|record| record.left > 0);
        self.counter = self.counter.saturating_sub(rules.clock.step);
        for line in &mut self.lines {
            if rules.clock.step > 0 {
                // The clock goes on, and tokens are told from there.
                let lower = |it: Request| Request {
                    token: it.token.saturating_sub(rules.clock.step),
                    ..it
                };
                line.way.queue.each(lower);
                line.way.late.each(lower);
            }
            line.reply = line.reply.later(rules);
            line.heard = line.heard.later(rules);
            line.before = line.before.later(rules);
            line.proof = line.proof.map(|sent| sent + 1);
        }
    }

    /// The record may end now, by a clock that is ahead as far as the allowance goes.
    pub(crate) fn may_expire_early(&self, rules: &Rules) -> bool {
        self.record.is_some_and(|record| record.left <= rules.drift)
    }

    /// All connections break with the process, and nothing on them arrives; what had left it before
    /// may still.
    pub(crate) fn crash(&mut self, keeps_data: bool, rules: &Rules) {
        let repeats = !rules.breaks(Broken::UndoNotRepeated);
        self.lines.iter_mut().for_each(|line| line.way.crash(repeats));
        if !keeps_data {
            (self.record, self.counter) = (None, 0);
            self.forgot = Some(0);
        }
    }
}

impl Answer {
    fn later(self, rules: &Rules) -> Self {
        let by = rules.clock.step;
        match self {
            Self::Granted { counter, anew } => {
                Self::Granted { counter: counter.saturating_sub(by), anew }
            }
            Self::Uncounted { counter, left } => Self::Uncounted {
                counter: counter.saturating_sub(by),
                left: left.saturating_sub(1),
            },
            Self::None | Self::Refused(_) | Self::Stored => self,
        }
    }
}
