//! Rounds of renewal: which voters a hold has, and which it had when they forgot.

use std::time::Duration;

use super::{Backoff, Cause, KeptOut, Moment, Quorum, Terms, Verdict, Votes};

/// What each voter last said to one hold.
#[derive(Clone, Debug)]
pub struct Support {
    voters: Vec<Backing>,
    /// How many rounds have begun; acquiring was the first.
    rounds: u64,
    /// The latest that a majority granted.
    confirmed: u64,
}

/// One exchange with a voter.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub round: RoundId,
    /// When the round was sent.
    pub sent: Moment,
    /// What it asked for.
    pub terms: Terms,
    /// When the answer came.
    pub heard: Moment,
}

/// Which round it is.
#[derive(Clone, Copy, Debug)]
pub struct RoundId {
    number: u64,
    /// The latest before it that a majority granted.
    confirmed: u64,
}

impl RoundId {
    /// That in which the hold was acquired.
    pub const FIRST: Self = Self { number: 0, confirmed: 0 };
}

#[derive(Clone, Debug, Default)]
struct Backing {
    /// It granted when it was last heard.
    granted: bool,
    /// Until when, by any clock that drifts as allowed, it keeps the vote that it last gave, if
    /// that one counted.
    keeps: Option<Moment>,
    /// When that vote was asked for.
    given: Moment,
    /// It has said that it has no vote of the hold, and given it none since that was heard of.
    is_gone: bool,
    /// The latest round that found a vote gone which it should have kept.
    forgot: Option<u64>,
}

impl Support {
    pub fn of(voters: usize) -> Self {
        Self { voters: vec![Backing::default(); voters], rounds: 0, confirmed: 0 }
    }

    /// How many voters are known to have the hold.
    pub fn votes(&self) -> usize {
        self.voters.iter().filter(|backing| backing.granted).count()
    }

    /// Those votes.
    pub fn granted(&self, quorum: Quorum) -> Votes {
        Votes::granted_by(quorum, |voter| self.voters[voter].granted)
    }

    /// Whether no round has begun since it was acquired.
    pub fn is_as_granted(&self) -> bool {
        self.rounds == 0
    }

    /// What a voter's answer counts for when the hold is renewed.
    ///
    /// In quarantine a voter counts only where it had given this hold its vote before it forgot, by
    /// an answer that counted: then it cannot have given it to another that still builds on it. One
    /// that was given in quarantine and did not count proves nothing.
    pub fn counted(&self, voter: usize, verdict: Verdict, kept_out: Option<KeptOut>) -> Verdict {
        let Some(kept_out) = kept_out else { return verdict };
        let had = self.voters[voter].keeps.is_some_and(|keeps| kept_out.forgot < keeps);
        match verdict {
            Verdict::Granted if !had => kept_out.verdict(),
            verdict => verdict,
        }
    }

    /// Takes note of what an answer counted for. A voter that has no vote of the hold, although the
    /// one that it gave should have stood, has forgotten the hold. So has one that has a vote again
    /// after that: it may have given it at any time since. One that never gave its vote, or whose
    /// vote may have ended in time, has forgotten nothing. Says when the vote was given that it has
    /// not got.
    pub fn heard(&mut self, voter: usize, verdict: &Verdict, asked: Asked) -> Option<Moment> {
        let Asked { round, sent, terms, heard } = asked;
        let backing = &mut self.voters[voter];
        let in_vain = matches!(verdict, Verdict::Unknown(Cause::Quarantined(_)));
        backing.granted = *verdict == Verdict::Granted
            || in_vain && crate::mutant!("grant_in_quarantine_is_proof");
        let lacks = *verdict == Verdict::Absent || verdict.obstacle().is_some();
        let is_broken = lacks || backing.granted && backing.is_gone;
        let has_forgotten = is_broken && backing.keeps.is_some_and(|keeps| heard < keeps);
        let lost = (has_forgotten && lacks).then_some(backing.given);
        if has_forgotten {
            backing.forgot = backing.forgot.max(Some(round.number));
        }
        backing.is_gone = lacks || backing.is_gone && !backing.granted;
        if *verdict == Verdict::Revoked {
            backing.keeps = None;
        }
        if backing.granted {
            backing.keeps = backing.keeps.max(Some(terms.deadline(sent)));
            backing.given = backing.given.max(sent);
        }
        lost
    }

    /// So much time passed while the client stood still: votes end sooner by its clock.
    pub fn shorten(&mut self, by: Duration) {
        for backing in &mut self.voters {
            backing.keeps = backing.keeps.map(|keeps| keeps - by);
        }
    }

    /// A round begins.
    pub fn begin(&mut self) -> RoundId {
        self.rounds += 1;
        RoundId { number: self.rounds, confirmed: self.confirmed }
    }

    /// A majority granted this round.
    pub fn confirm(&mut self, round: RoundId) {
        self.confirmed = self.confirmed.max(round.number);
    }

    /// Whether so many voters have forgotten the hold, in this round and those after the latest one
    /// before it that a majority granted, that another may have had a majority in between. Whatever
    /// they say now proves nothing against that. Fewer are healed by the round that finds it out.
    pub fn is_forgotten(&self, quorum: Quorum, round: RoundId) -> bool {
        let since = |forgot: u64| forgot > round.confirmed;
        quorum.reached_in_one(|voter| self.voters[voter].forgot.is_some_and(since))
    }
}

/// Which voters have nothing to be put right with one hold. Voters behind the first 64 never count
/// as such.
#[derive(Clone, Copy, Debug)]
pub struct Checkup {
    voters: usize,
    /// A bit for each voter that granted a round in full, and every round since that it answered,
    /// and was not in quarantine.
    settled: u64,
    due: Moment,
}

impl Checkup {
    /// From one round in full to the next, at most.
    const EVERY: Duration = Duration::from_secs(150);

    pub fn of(voters: usize) -> Self {
        Self { voters, settled: 0, due: Moment::BEGINNING }
    }

    /// A round begins. Whether it is in full: where some voter is not settled, and after a while,
    /// but several times while voters remember the token.
    pub fn begins(&mut self, now: Moment, fence_memory: Duration) -> bool {
        let are_settled = (0..self.voters).all(|voter| self.settled & bit(voter) > 0);
        let in_full = !are_settled || now >= self.due;
        if in_full {
            (self.settled, self.due) = (0, now + Self::EVERY.min(fence_memory / 4));
        }
        in_full
    }

    /// A voter answered a round. `is_sound`: it granted, and was not in quarantine.
    pub fn heard(&mut self, voter: usize, is_sound: bool, in_full: bool) {
        if !is_sound {
            self.settled &= !bit(voter);
        } else if in_full {
            self.settled |= bit(voter);
        }
    }
}

/// None for those who have no bit.
fn bit(voter: usize) -> u64 {
    u32::try_from(voter).map_or(0, |voter| 1_u64.checked_shl(voter).unwrap_or(0))
}

/// How a round of renewal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundEnd {
    Renewed,
    Failed,
    /// No later round can succeed.
    Superseded,
    /// A majority of voters had forgotten the hold, so another may have held the lock.
    Vanished,
}

/// What to do next in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoundNext {
    /// Nothing before this moment, unless a verdict comes.
    Wait(Moment),
    /// Ask these voters again: the same request.
    AskAgain(Vec<usize>),
    End(RoundEnd),
}

/// One round of renewal: ends at the majority, or when there can be none.
///
/// Another hold without a majority will give its votes back, but where a voter is silent this one
/// may need them to go on: whoever refused is asked again until the answers are due.
#[derive(Debug)]
pub struct Round {
    votes: Votes,
    started: Moment,
    due: Moment,
    pause: Backoff,
    ask_again: Option<Moment>,
    has_vanished: bool,
}

impl Round {
    pub fn start(quorum: Quorum, now: Moment, voter_deadline: Duration) -> Self {
        Self {
            votes: Votes::new(quorum),
            started: now,
            due: now + voter_deadline,
            pause: Backoff::new(voter_deadline / 64, voter_deadline / 4),
            ask_again: None,
            has_vanished: false,
        }
    }

    /// `suspected`: whoever has the voter's vote may not count it.
    pub fn heard(&mut self, voter: usize, verdict: Verdict, suspected: bool) {
        if suspected {
            self.votes.suspect(voter);
        }
        self.votes.record(voter, verdict);
    }

    /// A majority has forgotten the hold: what they grant now does not make up for that.
    pub fn vanish(&mut self) {
        self.has_vanished = true;
    }

    /// `chance`: asked for only where a pause begins.
    pub fn next(&mut self, now: Moment, chance: impl FnOnce() -> u32) -> RoundNext {
        if now >= self.due {
            self.votes.close(self.due.since(self.started));
        }
        if self.votes.is_superseded() {
            return RoundNext::End(RoundEnd::Superseded);
        }
        if self.has_vanished {
            return RoundNext::End(RoundEnd::Vanished);
        }
        if self.votes.is_won() {
            return RoundNext::End(RoundEnd::Renewed);
        }
        if now >= self.due || self.votes.lacks_quorum() {
            return RoundNext::End(RoundEnd::Failed);
        }
        if self.votes.refusing().is_empty() {
            return RoundNext::Wait(self.due);
        }
        // As soon as the refusal has come round again, and then less and less often.
        let pause = &mut self.pause;
        let again = *self.ask_again.get_or_insert_with(|| {
            pause.at_least(now.since(self.started) / 2);
            now + pause.pause(chance())
        });
        if now < again {
            return RoundNext::Wait(again.min(self.due));
        }
        self.ask_again = None;
        RoundNext::AskAgain(self.votes.reopen_refused())
    }

    /// What the voters have said.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.votes.clone().into_verdicts()
    }
}

#[cfg(test)]
#[path = "round_tests.rs"]
mod tests;
