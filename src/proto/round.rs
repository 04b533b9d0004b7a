//! Rounds of renewal: which votes a hold has, since when, and when it had too few.

use std::{mem, time::Duration};

use super::{Backoff, Cause, HoldId, Moment, Next, Quorum, ShardQuarantine, Terms, Verdict, Votes};

/// The votes that one hold has, by the answers of its voters.
// Ada holds by voters 1 and 2. Voter 2 loses the record unnoticed, Ben gets the votes of 2 and 3,
// releases, and Ada's renewal is granted everywhere. Only the times without a vote show her that
// another had the lock, so they are kept after a voter has given its vote again.
#[derive(Clone, Debug)]
pub struct Support {
    voters: Vec<VoterSupport>,
    /// How many rounds have begun since it was acquired.
    rounds: u64,
    /// For how long its client has stood still, as far as it is taken off these times.
    stood_still: Duration,
    /// A hold that keeps a voter's vote for this long is no bid, as a bid gives its votes back.
    patience: Duration,
}

/// One request to a voter, with the time of its answer.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// It is the request by which the hold was acquired.
    pub is_first: bool,
    /// The grant has a higher number than the hold: others may have had the vote since the hold
    /// began.
    pub is_passed: bool,
    /// When it was sent.
    pub sent: Moment,
    /// What it asked for.
    pub terms: Terms,
    /// When the answer came.
    pub heard: Moment,
    /// The quarantine of the voter, if it is in one.
    pub quarantine: Option<ShardQuarantine>,
}

/// The vote that one voter gave the hold, and the times without it.
#[derive(Clone, Debug, Default)]
struct VoterSupport {
    /// Its last answer was a grant.
    granted: bool,
    /// Until when it keeps its last vote that counted, by any clock that drifts as allowed.
    keeps: Option<Moment>,
    /// Its last vote, whether it counted or not.
    vote: Option<GivenVote>,
    /// Since when it may have given its vote to others, until it gives it to the hold.
    lacks: Option<(Moment, Lack)>,
    /// Earlier times in which it may have given its vote to others.
    gaps: Vec<Gap>,
    /// The other hold that has its vote.
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
    /// It had not given its vote, or the lease had ended.
    Missing,
    /// It lost the vote. No other client can know.
    Lost,
    /// It lost the vote, and is in quarantine since then for everybody who can know.
    Forgotten,
}

/// A time in which a voter may have given its vote to others.
#[derive(Clone, Copy, Debug)]
struct Gap {
    from: Moment,
    to: Moment,
    why: Lack,
}

/// Another hold that has a voter's vote.
#[derive(Clone, Debug)]
struct Rival {
    hold: HoldId,
    /// When the first answer in a row named it.
    since: Moment,
    /// The last answer came so much later that it is no bid.
    stays: bool,
}

impl Support {
    /// Of a hold that was asked for at `started`. `patience`: the voter deadline.
    pub fn new(voters: usize, started: Moment, stood_still: Duration, patience: Duration) -> Self {
        // Until its answer comes, a voter may have voted for others: also a voter that never
        // answers belongs to the majority that can have passed the hold by (mutant
        // `missing_votes_do_not_count`).
        let lacks = Some((started, Lack::Missing));
        let voter = VoterSupport { lacks, ..VoterSupport::default() };
        Self { voters: vec![voter; voters], rounds: 0, stood_still, patience }
    }

    /// How many voters granted when they last answered.
    pub fn votes(&self) -> usize {
        self.voters.iter().filter(|voter| voter.granted).count()
    }

    /// Whether no round has begun since it was acquired.
    pub fn is_as_granted(&self) -> bool {
        self.rounds == 0
    }

    /// What a voter's answer counts for when the hold is renewed.
    pub fn verdict_that_counts(
        &self,
        voter: usize,
        verdict: Verdict,
        quarantine: Option<ShardQuarantine>,
    ) -> Verdict {
        let Some(quarantine) = quarantine else { return verdict };
        // A voter that had given this hold its vote before it forgot can have forgotten no vote of
        // another. Ada has 1 and 2; 3 votes for Ben and forgets; 2 and 3 renew Ada's hold. If that
        // counted, Ben would get the lock by 3 and by 1, once her vote at 1 ends (design 5).
        let had = self.voters[voter].keeps.is_some_and(|keeps| quarantine.forgot < keeps);
        match verdict {
            Verdict::Granted if !had => quarantine.verdict(),
            verdict => verdict,
        }
    }

    /// When the vote was asked for that a voter should have and, by this answer, has lost.
    pub fn misses(&self, voter: usize, verdict: &Verdict, heard: Moment) -> Option<Moment> {
        let VoterSupport { vote, lacks, .. } = &self.voters[voter];
        let vote = vote.filter(|vote| heard < vote.until && lacks.is_none());
        vote.filter(|_| verdict.is_lacking()).map(|vote| vote.asked)
    }

    /// Notes what an answer counted for. Whether a round found that the voter had no vote of the
    /// hold, and the voter has given it now.
    pub fn heard(&mut self, voter: usize, verdict: &Verdict, asked: Asked) -> bool {
        let voter = &mut self.voters[voter];
        // A vote that was given in quarantine, and did not count, is no proof for the next renewal:
        // with two renewals the hole that `verdict_that_counts` closes would be open again.
        let in_vain = matches!(verdict, Verdict::Unknown(Cause::Quarantined(_)));
        voter.granted = *verdict == Verdict::Granted
            || in_vain && crate::mutant!("grant_in_quarantine_is_proof");
        // In this order: a loss opens the gap that the other two end or shorten.
        if verdict.is_lacking() {
            voter.note_loss(asked);
        }
        voter.leave_out_quarantine(asked);
        let healed = verdict.is_given() && voter.note_vote(asked);
        match verdict {
            Verdict::Refused { by, .. } => voter.note_rival(by, asked.heard, self.patience),
            Verdict::Unknown(_) if !verdict.is_given() => {}
            _ => voter.rival = None,
        }
        if *verdict == Verdict::Revoked {
            voter.keeps = None;
        }
        if voter.granted {
            voter.keeps = voter.keeps.max(Some(asked.terms.deadline(asked.sent)));
        }
        healed && !asked.is_first
    }

    /// A hold that resumes this one has the voter's vote, and may yet give it back.
    pub fn note_resumer(&mut self, voter: usize, to: &HoldId, heard: Moment) {
        // It is no gap: until it is given back nobody else can have the vote. A failed attempt to
        // resume a ticket would end it otherwise (mutant `resumer_is_a_stranger`).
        self.voters[voter].note_rival(to, heard, self.patience);
    }

    /// Another hold that has kept a voter's vote for longer than an attempt can.
    pub fn rival(&self) -> Option<&HoldId> {
        self.voters.iter().find_map(VoterSupport::rival_that_stays)
    }

    fn drop_gaps(&mut self, now: Moment) {
        // A gap that is found later begins no sooner than the last grant of its voter, so a gap
        // that ended before all of these overlaps with none. Without this the list grows for ever.
        let asked = |voter: &VoterSupport| Some(voter.current_vote(now)?.asked);
        let earliest = self.voters.iter().filter_map(asked).min().unwrap_or(now);
        for voter in &mut self.voters {
            voter.gaps.retain(|gap| gap.to > earliest);
        }
    }

    /// `stood_still`: for how long the client has stood still in all. Its votes end sooner by that.
    pub fn stand_still(&mut self, stood_still: Duration) {
        let unseen = stood_still.saturating_sub(self.stood_still);
        self.stood_still += unseen;
        for voter in &mut self.voters {
            voter.keeps = voter.keeps.map(|keeps| keeps - unseen);
            if let Some(vote) = &mut voter.vote {
                vote.until = vote.until - unseen;
            }
        }
    }

    /// A round begins.
    pub fn begin(&mut self) {
        self.rounds += 1;
    }

    /// Whether another may have had the lock since the hold began: at one moment a majority had no
    /// vote of it, whatever the voters say now. Or another hold keeps so many of its votes that it
    /// has no majority.
    pub fn is_lost(&mut self, quorum: Quorum, now: Moment) -> bool {
        if self.voters.iter().all(|voter| voter.is_sound(now)) {
            return false;
        }
        let is_lost = self.lacked_majority(quorum, now) || self.is_outvoted(quorum, now);
        self.drop_gaps(now);
        is_lost
    }

    fn lacked_majority(&self, quorum: Quorum, now: Moment) -> bool {
        // A majority of one set: a client of that set alone can have had the lock.
        let lack_at = |at: Moment, but: Lack| {
            quorum.reached_in_one(|voter| self.voters[voter].lacks_at(at, but, now))
        };
        // The most gaps overlap at a moment where one begins, so no other has to be looked at.
        // Forgotten and missing votes never count together: a voter in quarantine counts for nobody
        // else. Lost and forgotten ones do: if a majority lost its votes, clients that connect
        // later can take that for the first start of all voters, and count them.
        let mut gaps = self.voters.iter().flat_map(|voter| voter.all_gaps(now));
        gaps.any(|gap| lack_at(gap.from, Lack::Missing) || lack_at(gap.from, Lack::Forgotten))
    }

    fn is_outvoted(&self, quorum: Quorum, now: Moment) -> bool {
        let mut rivals = self.voters.iter().filter_map(VoterSupport::rival_that_stays);
        rivals.any(|hold| {
            !quorum.reached(|voter| {
                let voter = &self.voters[voter];
                let has_vote = voter.vote.is_some_and(|vote| now < vote.until);
                has_vote && voter.rival_that_stays() != Some(hold)
            })
        })
    }
}

impl VoterSupport {
    /// The voter has no vote of the hold.
    fn note_loss(&mut self, asked: Asked) {
        let Some(vote) = self.vote.filter(|_| self.lacks.is_none()) else { return };
        self.lacks = Some(match asked.quarantine {
            // The lease had ended, so nothing was lost.
            _ if vote.until <= asked.heard => (vote.until, Lack::Missing),
            Some(quarantine) => {
                // It forgot, and nobody has counted it since. The gap ends with the request that
                // found it out, which went to all voters: a loss at another voter after that is not
                // one of the same time. So rolling restarts lose no lock.
                self.add_gap(vote.asked, asked.sent, Lack::Forgotten);
                (asked.sent + quarantine.quarantined.left, Lack::Missing)
            }
            // Nothing explains it: it may have been lost right after it was given.
            None => (vote.asked, Lack::Lost),
        });
    }

    /// While the voter is in quarantine it counts for nobody else, so that time is no gap.
    fn leave_out_quarantine(&mut self, asked: Asked) {
        let (Some(quarantine), Some((from, why))) = (asked.quarantine, self.lacks) else { return };
        if quarantine.forgot <= asked.heard {
            self.add_gap(from, quarantine.forgot, why);
            let ends = asked.sent + quarantine.quarantined.left;
            self.lacks = Some((from.max(ends), why));
        }
    }

    /// The voter has given the hold its vote. Whether it had none before.
    fn note_vote(&mut self, asked: Asked) -> bool {
        let Asked { sent, terms, heard, .. } = asked;
        let until = terms.deadline(sent);
        let vote = self.vote.get_or_insert(GivenVote { asked: sent, until });
        // Answers may come in another order than their requests left.
        (vote.asked, vote.until) = (vote.asked.max(sent), vote.until.max(until));
        let Some((from, why)) = self.lacks.take() else { return false };
        // The requests of the acquisition left together. A voter that grants one late may have
        // voted for others before, but not since the hold began: its number would be higher.
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

    fn note_rival(&mut self, by: &HoldId, heard: Moment, patience: Duration) {
        match &mut self.rival {
            // Twice the same, a voter deadline apart: each bid is a hold of its own, and gives its
            // votes back within that time.
            Some(rival) if rival.hold == *by => {
                rival.stays = heard.since(rival.since) >= patience;
            }
            rival => *rival = Some(Rival { hold: by.clone(), since: heard, stays: false }),
        }
    }

    fn rival_that_stays(&self) -> Option<&HoldId> {
        self.rival.as_ref().filter(|rival| rival.stays).map(|rival| &rival.hold)
    }

    /// The vote that the voter still has, as far as the answers show.
    fn current_vote(&self, now: Moment) -> Option<GivenVote> {
        self.vote.filter(|vote| self.lacks.is_none() && now < vote.until)
    }

    /// Whether this voter is no reason to look at the gaps.
    fn is_sound(&self, now: Moment) -> bool {
        self.gaps.is_empty() && self.rival.is_none() && self.current_vote(now).is_some()
    }

    /// The gap that has no end yet.
    fn open_gap(&self, now: Moment) -> Option<Gap> {
        // A voter that is silent until its vote has ended may have given it to others since.
        let lapsed = || Some((self.vote.filter(|vote| vote.until <= now)?.until, Lack::Missing));
        let (from, why) = self.lacks.or_else(lapsed)?;
        Some(Gap { from, to: now + Duration::from_nanos(1), why })
    }

    fn all_gaps(&self, now: Moment) -> impl Iterator<Item = Gap> {
        self.gaps.iter().copied().chain(self.open_gap(now))
    }

    /// Whether it had no vote of the hold at that moment, for another reason than `but`.
    fn lacks_at(&self, at: Moment, but: Lack, now: Moment) -> bool {
        let counts = |gap: &Gap| {
            gap.why != but
                && !(gap.why == Lack::Missing && crate::mutant!("missing_votes_do_not_count"))
        };
        self.all_gaps(now).filter(counts).any(|gap| gap.from <= at && at < gap.to)
    }
}

/// When a round of renewal must be in full, and may not be brief.
// A brief renewal looks at one key, a full one also at forced ends and the token. With 100,000
// locks each server needs 6.9 % of a core instead of 9.0 % (commit `22c546cc`).
#[derive(Clone, Copy, Debug)]
pub struct Checkup {
    voters: usize,
    /// A bit for each voter that granted a full round and all rounds since, outside of quarantine.
    /// Voters after the first 64 have no bit: with more of them every round is full.
    settled: u64,
    due: Moment,
}

impl Checkup {
    /// The longest time from one full round to the next.
    const EVERY: Duration = Duration::from_secs(150);

    pub fn of(voters: usize) -> Self {
        Self { voters, settled: 0, due: Moment::BEGINNING }
    }

    /// A round begins. Whether it is in full.
    pub fn begins(&mut self, now: Moment, fence_memory: Duration) -> bool {
        let are_settled = (0..self.voters).all(|voter| self.settled & bit(voter) > 0);
        let in_full = !are_settled || now >= self.due;
        if in_full {
            // Only full rounds keep the token. Voters forget it after `fence_memory`, and some of
            // the rounds until then may fail (law 3).
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

/// The bit of a voter; 0 for a voter without one.
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

/// One round of renewal. It ends at the majority, or when there can be none.
#[derive(Debug)]
pub struct Round {
    votes: Votes,
    started: Moment,
    due: Moment,
    pause: Backoff,
    ask_again: Option<Moment>,
    // A voter does not give the vote anew by itself: if that answer were lost, its client would
    // never learn that the vote was gone (mutant `vote_is_given_anew_unasked`).
    /// The voters that have no vote of the hold and have not been asked for a new one.
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

    /// `suspected`: the hold that has the voter's vote may be unable to count it.
    pub fn heard(&mut self, voter: usize, verdict: Verdict, suspected: bool) {
        if suspected {
            self.votes.suspect(voter);
        }
        if verdict == Verdict::Absent {
            self.absent.push(voter);
        }
        self.votes.record(voter, verdict);
    }

    /// Another may have held the lock. No later grant makes up for that.
    pub fn vanish(&mut self) {
        self.has_vanished = true;
    }

    /// `chance`: called only when a pause begins.
    pub fn next(&mut self, now: Moment, chance: impl FnOnce() -> u32) -> Next<RoundEnd> {
        // First, as it is asked for also in a round that has its majority: a lock survives if its
        // voters restart one after the other (mutant `renew_never_grants_again`).
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
        // A hold without a majority gives its votes back. With another voter down, this hold needs
        // them, so the voters that refused are asked until the answers are due (law 7): first after
        // half the time that the refusal took, then less and less often.
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

    /// The verdict of each voter so far.
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
