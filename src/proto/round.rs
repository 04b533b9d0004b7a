//! Rounds of renewal: which voters a hold has, since when, and when it had too few of them.

use std::{mem, time::Duration};

use super::{Backoff, Cause, HoldId, KeptOut, Moment, Next, Quorum, Terms, Verdict, Votes};

/// What each voter said to one hold.
#[derive(Clone, Debug)]
pub struct Support {
    voters: Vec<Backing>,
    /// How many rounds have begun since it was acquired.
    rounds: u64,
    /// For how long its client had stood still when that was last looked at.
    stood_still: Duration,
    /// Another hold that keeps a vote for this time is no bid: a bid gives its votes back.
    patience: Duration,
}

/// One exchange with a voter.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// It is the request by which the hold was acquired.
    pub is_first: bool,
    /// A grant came with a higher number than the hold has: others may have had the vote since the
    /// hold began.
    pub is_passed: bool,
    /// When it was sent.
    pub sent: Moment,
    /// What it asked for.
    pub terms: Terms,
    /// When the answer came.
    pub heard: Moment,
    /// The voter is in quarantine.
    pub kept_out: Option<KeptOut>,
}

#[derive(Clone, Debug)]
struct Backing {
    /// It granted when it was last heard.
    granted: bool,
    /// Until when, by any clock that drifts as allowed, it keeps the vote that it last gave, if
    /// that one counted.
    keeps: Option<Moment>,
    /// The vote that it gave, whether it counted or not.
    vote: Option<GivenVote>,
    /// Since when it may have given its vote to others, until it gives it to the hold.
    lacks: Option<(Moment, Lack)>,
    /// Earlier times in which it may have.
    gaps: Vec<Gap>,
    /// Who else has its vote.
    rival: Option<Rival>,
}

#[derive(Clone, Copy, Debug)]
struct GivenVote {
    /// When it was last asked for.
    asked: Moment,
    /// Until when the voter keeps it, by any clock that drifts as allowed.
    until: Moment,
}

/// Why a voter had no vote of the hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    /// It had not given it, or its lease had ended.
    Missing,
    /// It had given it, and lost it. Nobody else can know.
    Lost,
    /// It lost it, and is in quarantine since, for everybody who can know.
    Forgotten,
}

/// A time in which a voter may have given its vote to others.
#[derive(Clone, Copy, Debug)]
struct Gap {
    from: Moment,
    to: Moment,
    why: Lack,
}

#[derive(Clone, Debug)]
struct Rival {
    hold: HoldId,
    /// The first answer in a row that named it.
    since: Moment,
    /// The last one came so much later that it is no bid.
    stays: bool,
}

impl Support {
    /// Of a hold that was asked for at that moment. `patience`: the voter deadline.
    pub fn new(voters: usize, started: Moment, stood_still: Duration, patience: Duration) -> Self {
        let backing = Backing {
            granted: false,
            keeps: None,
            vote: None,
            lacks: Some((started, Lack::Missing)),
            gaps: Vec::new(),
            rival: None,
        };
        Self { voters: vec![backing; voters], rounds: 0, stood_still, patience }
    }

    /// How many voters are known to have the hold.
    pub fn votes(&self) -> usize {
        self.voters.iter().filter(|backing| backing.granted).count()
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

    /// When the vote was asked for that a voter should have, and has not by this answer.
    pub fn misses(&self, voter: usize, verdict: &Verdict, heard: Moment) -> Option<Moment> {
        let backing = &self.voters[voter];
        let vote = backing.vote.filter(|vote| heard < vote.until && backing.lacks.is_none());
        vote.filter(|_| verdict.is_lacking()).map(|vote| vote.asked)
    }

    /// Takes note of what an answer counted for. Whether a round found that the voter had no vote
    /// of the hold, and it has given it.
    pub fn heard(&mut self, voter: usize, verdict: &Verdict, asked: Asked) -> bool {
        let backing = &mut self.voters[voter];
        let in_vain = matches!(verdict, Verdict::Unknown(Cause::Quarantined(_)));
        backing.granted = *verdict == Verdict::Granted
            || in_vain && crate::mutant!("grant_in_quarantine_is_proof");
        if verdict.is_lacking() {
            backing.lose(asked);
        }
        backing.leave_out_quarantine(asked);
        let healed = verdict.is_given() && backing.regain(asked);
        match verdict {
            Verdict::Refused { by, .. } => backing.meet(by, asked.heard, self.patience),
            Verdict::Unknown(_) if !verdict.is_given() => {}
            _ => backing.rival = None,
        }
        if *verdict == Verdict::Revoked {
            backing.keeps = None;
        }
        if backing.granted {
            backing.keeps = backing.keeps.max(Some(asked.terms.deadline(asked.sent)));
        }
        healed && !asked.is_first
    }

    /// Who resumes this hold has the voter's vote, and may yet give it back. So it is no gap: until
    /// then nobody else can have had the vote.
    pub fn lend(&mut self, voter: usize, to: &HoldId, heard: Moment) {
        self.voters[voter].meet(to, heard, self.patience);
    }

    /// Another hold that has kept a voter's vote for longer than an attempt can.
    pub fn rival(&self) -> Option<&HoldId> {
        self.voters.iter().find_map(Backing::rival_that_stays)
    }

    /// No gap that is found later begins before the last grant of a voter that may have its vote.
    fn drop_gaps(&mut self, now: Moment) {
        let has_vote = |backing: &Backing| Some(backing.standing(now)?.asked);
        let earliest = self.voters.iter().filter_map(has_vote).min().unwrap_or(now);
        for backing in &mut self.voters {
            backing.gaps.retain(|gap| gap.to > earliest);
        }
    }

    /// `stood_still`: of its client, in all. Votes end sooner by its clock.
    pub fn stand_still(&mut self, stood_still: Duration) {
        let unseen = stood_still.saturating_sub(self.stood_still);
        self.stood_still += unseen;
        for backing in &mut self.voters {
            backing.keeps = backing.keeps.map(|keeps| keeps - unseen);
            if let Some(vote) = &mut backing.vote {
                vote.until = vote.until - unseen;
            }
        }
    }

    /// A round begins.
    pub fn begin(&mut self) {
        self.rounds += 1;
    }

    /// Whether another may have had the lock since the hold began: at one moment a majority had no
    /// vote of it, whatever they say now. Or another hold keeps so many of its votes that those left
    /// are no majority.
    ///
    /// What is in quarantine counts for nobody else, so it is left out beside voters that never had
    /// the hold. But where a majority has lost what it had, those who connect later may take it for
    /// the first start of all.
    pub fn is_lost(&mut self, quorum: Quorum, now: Moment) -> bool {
        if self.voters.iter().all(|backing| backing.is_sound(now)) {
            return false;
        }
        let is_lost = self.lacked_majority(quorum, now) || self.is_outvoted(quorum, now);
        self.drop_gaps(now);
        is_lost
    }

    fn lacked_majority(&self, quorum: Quorum, now: Moment) -> bool {
        let lack_at = |at: Moment, but: Lack| {
            quorum.reached_in_one(|voter| self.voters[voter].lacks_at(at, but, now))
        };
        // Gaps only add up where one begins, so no other moment has to be looked at. Each time
        // without one of two reasons: forgotten and missing votes never count together.
        let mut begins = self.voters.iter().flat_map(|backing| backing.begins(now));
        begins.any(|at| lack_at(at, Lack::Missing) || lack_at(at, Lack::Forgotten))
    }

    fn is_outvoted(&self, quorum: Quorum, now: Moment) -> bool {
        let has = |backing: &Backing, hold: &HoldId| backing.rival_that_stays() == Some(hold);
        let mut rivals = self.voters.iter().filter_map(Backing::rival_that_stays);
        rivals.any(|hold| {
            !quorum.reached(|voter| {
                let backing = &self.voters[voter];
                backing.vote.is_some_and(|vote| now < vote.until) && !has(backing, hold)
            })
        })
    }
}

impl Backing {
    /// It has no vote of the hold. If the lease of the vote has ended, that is why; if it is in
    /// quarantine, it forgot, and nobody has counted it since. Otherwise it may have been without
    /// since its last grant.
    fn lose(&mut self, asked: Asked) {
        let Some(vote) = self.vote.filter(|_| self.lacks.is_none()) else { return };
        self.lacks = Some(match asked.kept_out {
            _ if vote.until <= asked.heard => (vote.until, Lack::Missing),
            Some(kept_out) => {
                // The request that found it out went to all: a loss at others after that request is
                // not one of the same time.
                self.add_gap(vote.asked, asked.sent, Lack::Forgotten);
                (asked.sent + kept_out.quarantined.left, Lack::Missing)
            }
            None => (vote.asked, Lack::Lost),
        });
    }

    /// While the voter is in quarantine it counts for nobody else.
    fn leave_out_quarantine(&mut self, asked: Asked) {
        let (Some(kept_out), Some((from, why))) = (asked.kept_out, self.lacks) else { return };
        if kept_out.forgot <= asked.heard {
            self.add_gap(from, kept_out.forgot, why);
            let ends = asked.sent + kept_out.quarantined.left;
            self.lacks = Some((from.max(ends), why));
        }
    }

    /// It has given the hold its vote. Whether it had none before.
    fn regain(&mut self, asked: Asked) -> bool {
        let Asked { sent, terms, heard, .. } = asked;
        let (asked_for, until) = (sent, terms.deadline(sent));
        self.vote = Some(match self.vote {
            Some(vote) => {
                GivenVote { asked: vote.asked.max(asked_for), until: vote.until.max(until) }
            }
            None => GivenVote { asked: asked_for, until },
        });
        let Some((from, why)) = self.lacks.take() else { return false };
        // Requests of the acquisition leave together: the voter may have had others before, but
        // nobody since the hold began.
        if !asked.is_first || asked.is_passed {
            self.add_gap(from, heard, why);
        }
        true
    }

    fn add_gap(&mut self, from: Moment, to: Moment, why: Lack) {
        if from < to && !crate::mutant!("healed_losses_are_dropped") {
            self.gaps.push(Gap { from, to, why });
        }
    }

    fn meet(&mut self, by: &HoldId, heard: Moment, patience: Duration) {
        match &mut self.rival {
            Some(rival) if rival.hold == *by => {
                rival.stays = heard.since(rival.since) >= patience;
            }
            rival => *rival = Some(Rival { hold: by.clone(), since: heard, stays: false }),
        }
    }

    fn rival_that_stays(&self) -> Option<&HoldId> {
        self.rival.as_ref().filter(|rival| rival.stays).map(|rival| &rival.hold)
    }

    /// The vote that it has, by all that is known.
    fn standing(&self, now: Moment) -> Option<GivenVote> {
        self.vote.filter(|vote| self.lacks.is_none() && now < vote.until)
    }

    fn is_sound(&self, now: Moment) -> bool {
        self.gaps.is_empty() && self.rival.is_none() && self.standing(now).is_some()
    }

    /// Since when it is without a vote of the hold. One that is silent for as long as its vote
    /// stood may have given it to others.
    fn lacks_now(&self, now: Moment) -> Option<Gap> {
        let lapsed = || Some((self.vote.filter(|vote| vote.until <= now)?.until, Lack::Missing));
        let (from, why) = self.lacks.or_else(lapsed)?;
        Some(Gap { from, to: now + Duration::from_nanos(1), why })
    }

    fn all_gaps(&self, now: Moment) -> impl Iterator<Item = Gap> {
        self.gaps.iter().copied().chain(self.lacks_now(now))
    }

    fn begins(&self, now: Moment) -> impl Iterator<Item = Moment> {
        self.all_gaps(now).map(|gap| gap.from)
    }

    /// Whether it was without a vote of the hold at that moment, and not for this reason.
    fn lacks_at(&self, at: Moment, but: Lack, now: Moment) -> bool {
        let counts = |gap: &Gap| {
            gap.why != but
                && !(gap.why == Lack::Missing && crate::mutant!("missing_votes_do_not_count"))
        };
        self.all_gaps(now).filter(counts).any(|gap| gap.from <= at && at < gap.to)
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
    /// Another may have held the lock, or has so many votes that this hold has no majority.
    Vanished,
}

/// One round of renewal: ends at the majority, or when there can be none.
///
/// Another hold without a majority will give its votes back, but where a voter is silent this one
/// may need them to go on: whoever refused is asked again until the answers are due. A voter without
/// a vote of the hold is asked for one at once: that it had none is known now.
#[derive(Debug)]
pub struct Round {
    votes: Votes,
    started: Moment,
    due: Moment,
    pause: Backoff,
    ask_again: Option<Moment>,
    /// The voters that have just said that they have no vote of the hold.
    absent: Vec<usize>,
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
            absent: Vec::new(),
            has_vanished: false,
        }
    }

    /// `suspected`: whoever has the voter's vote may not count it.
    pub fn heard(&mut self, voter: usize, verdict: Verdict, suspected: bool) {
        if suspected {
            self.votes.suspect(voter);
        }
        if verdict == Verdict::Absent {
            self.absent.push(voter);
        }
        self.votes.record(voter, verdict);
    }

    /// Another may have held the lock: what voters grant now does not make up for that.
    pub fn vanish(&mut self) {
        self.has_vanished = true;
    }

    /// `chance`: asked for only where a pause begins.
    pub fn next(&mut self, now: Moment, chance: impl FnOnce() -> u32) -> Next<RoundEnd> {
        if !self.absent.is_empty() && !self.has_vanished {
            return Next::AskAgain(mem::take(&mut self.absent));
        }
        if now >= self.due {
            self.votes.close(self.due.since(self.started));
        }
        if self.votes.is_superseded() {
            return Next::End(RoundEnd::Superseded);
        }
        if self.has_vanished {
            return Next::End(RoundEnd::Vanished);
        }
        if self.votes.is_won() {
            return Next::End(RoundEnd::Renewed);
        }
        if now >= self.due || self.votes.lacks_quorum() {
            return Next::End(RoundEnd::Failed);
        }
        if self.votes.refusing().is_empty() {
            return Next::Wait(self.due);
        }
        // As soon as the refusal has come round again, and then less and less often.
        let pause = &mut self.pause;
        let again = *self.ask_again.get_or_insert_with(|| {
            pause.at_least(now.since(self.started) / 2);
            now + pause.pause(chance())
        });
        if now < again {
            return Next::Wait(again.min(self.due));
        }
        self.ask_again = None;
        Next::AskAgain(self.votes.reopen_refused())
    }

    /// What the voters have said.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.votes.clone().into_verdicts()
    }
}

#[cfg(test)]
#[path = "round_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "round_truth_tests.rs"]
mod truth_tests;
