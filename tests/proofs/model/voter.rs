//! What a voter does: the Lua scripts, the clock, and crashes.

use crate::model::{
    queue::{Kind, Queue, Request},
    rules::{Broken, Rules},
    state::{Answer, Hold, Record, Voter},
};

impl Voter {
    /// The first request on the client's connection arrives, and its answer leaves.
    pub(crate) fn run_next(&mut self, client: u8, rules: &Rules) {
        let Some(request) = self.line_mut(client).queue.pop() else { return };
        let answer = self.run(client, request, false, rules);
        if request.awaited {
            self.line_mut(client).reply = answer;
        }
    }

    /// The first request on the client's broken connection arrives after all.
    pub(crate) fn run_late(&mut self, client: u8, rules: &Rules) {
        if let Some(request) = self.line_mut(client).late.pop() {
            self.run(client, request, true, rules);
        }
    }

    fn run(&mut self, client: u8, request: Request, late: bool, rules: &Rules) -> Answer {
        let hold = Hold { client, number: request.number };
        match request.kind {
            Kind::Renew if rules.breaks(Broken::RenewalTakesOver) => {
                self.record = None;
                self.claim(hold, late, rules)
            }
            Kind::Acquire | Kind::Renew => self.claim(hold, late, rules),
            Kind::Undo | Kind::Release => {
                if self.is_held_by(hold) || rules.breaks(Broken::ReleaseOfAnybody) {
                    self.record = None;
                }
                Answer::None
            }
        }
    }

    /// `lua/lib/claim.lua`.
    fn claim(&mut self, hold: Hold, late: bool, rules: &Rules) -> Answer {
        match &mut self.record {
            Some(record) if record.hold == hold => record.left = record.left.max(rules.lease),
            Some(record) => return Answer::Refused(record.hold),
            None => self.record = Some(Record { hold, left: rules.lease, excused: late }),
        }
        if self.quarantine > 0 { Answer::Uncounted } else { Answer::Granted }
    }

    pub(crate) fn tick(&mut self) {
        self.quarantine = self.quarantine.saturating_sub(1);
        if let Some(record) = &mut self.record {
            record.left -= 1;
        }
        self.record = self.record.filter(|record| record.left > 0);
    }

    /// The record may end now, by a clock that is ahead as far as the allowance goes.
    pub(crate) fn may_expire_early(&self, rules: &Rules) -> bool {
        self.record.is_some_and(|record| record.left <= rules.drift)
    }

    /// All connections break with the process, and nothing on them arrives; what had left it before
    /// may still.
    pub(crate) fn crash(&mut self, keeps_data: bool, rules: &Rules) {
        for line in &mut self.lines {
            line.queue = line.queue.unawaited();
            line.late = Queue::default();
            line.keep_debts(!rules.breaks(Broken::UndoNotRepeated));
        }
        if !keeps_data {
            self.record = None;
            self.quarantine = rules.quarantine;
        }
    }
}
