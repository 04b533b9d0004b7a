//! Which voters forgot votes, how, and which clients can know.
//!
//! A voter that may have forgotten is kept out of new holds by every client that knows. Where the
//! client of a hold could not know what its rival's vote was lost by, both may be held.

use crate::sim::prelude::*;

/// How a voter came to forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It started again without its data.
    Restart,
    /// It started with a copy of the data of another voter.
    Copied { of: usize },
    /// Its data were deleted while it ran: who had met it hears of that with the next answer.
    Flush,
    /// Its clock was set forward by so much.
    ClockForward { ms: i64 },
    /// Nothing tells of it: an eviction, a clock that runs wild.
    Unseen,
}

/// One time that a voter forgot.
#[derive(Clone, Copy, Debug)]
struct Lapse {
    cause: Cause,
    at_ms: u64,
    /// Whoever connected before then had met it as it was before.
    from_ms: u64,
}

/// A vote that stood when its voter started again without its data.
struct Given {
    voter: usize,
    lock: Lock,
    hold: String,
    access: Access,
    slots: Vec<u32>,
    /// How long it would have stood.
    until_ms: u64,
    lapse: Lapse,
}

impl Given {
    fn rival(&self) -> Rival<'_> {
        Rival { hold: &self.hold, access: self.access, slots: &self.slots }
    }
}

/// All of it in one schedule.
#[derive(Default)]
pub(crate) struct Amnesia {
    /// What took each hold's vote on a voter.
    votes: BTreeMap<(String, usize), Vec<Lapse>>,
    /// Until when the votes stood that came back as they were before they were renewed.
    aged_ms: BTreeMap<(String, usize), u64>,
    /// What took a voter's fences, of one lock or of all.
    fences: Vec<(usize, Option<Lock>, Lapse)>,
    /// Since when the voters are gone that are.
    down_ms: BTreeMap<usize, u64>,
    /// When each voter started again, with its data or without, or was emptied.
    started_ms: Vec<(usize, u64)>,
    /// By how much each voter's clock was set since its last start.
    stepped_ms: BTreeMap<usize, i64>,
    /// The votes that were not given back since their voter forgot them by a start.
    given: Vec<Given>,
    /// When each client met its voters.
    connected_ms: BTreeMap<usize, u64>,
}

pub(crate) const FORGOT: &str = "a voter forgot its vote";

impl Amnesia {
    pub(crate) fn connects(&mut self, client: usize, now_ms: u64) {
        self.connected_ms.insert(client, now_ms);
    }

    /// The clients that have met the voters.
    pub(crate) fn connected(&self) -> impl Iterator<Item = usize> {
        self.connected_ms.keys().copied()
    }

    pub(crate) fn goes_down(&mut self, voter: usize, now_ms: u64) {
        self.down_ms.entry(voter).or_insert(now_ms);
    }

    /// A voter comes back, and says that it writes down all that it is told.
    pub(crate) fn comes_back(&mut self, voter: usize, now_ms: u64) {
        self.down_ms.remove(&voter);
        self.starts(voter, now_ms);
    }

    fn starts(&mut self, voter: usize, now_ms: u64) {
        self.started_ms.push((voter, now_ms));
        self.stepped_ms.insert(voter, 0);
    }

    /// A voter's clock is set.
    pub(crate) fn steps(&mut self, voter: usize, ms: i64) {
        *self.stepped_ms.entry(voter).or_default() += ms;
    }

    /// For how long a voter that has started again says that it has run: by its own clock, which
    /// may have been set since.
    pub(crate) fn claimed_uptime(&self, voter: usize, now_ms: u64) -> Option<Duration> {
        let (_, at_ms) = self.started_ms.iter().rfind(|(one, _)| *one == voter)?;
        let stepped_ms = self.stepped_ms.get(&voter).copied().unwrap_or(0);
        Some(Duration::from_millis((now_ms - at_ms).saturating_add_signed(stepped_ms)))
    }

    /// A voter starts again without its data, of which these were votes for the lock.
    pub(crate) fn loses_votes(
        &mut self,
        plan: &Plan,
        voter: usize,
        lock: Lock,
        votes: &[Vote<'_>],
        now_ms: u64,
    ) {
        // Whoever was given a vote soon after a start did not count it.
        let settled_ms = now_ms.saturating_sub(2 * plan.longest_lease_ms() + 20);
        if self.started_ms.iter().any(|(one, at_ms)| *one == voter && *at_ms > settled_ms) {
            return;
        }
        let lapse = self.lapse(voter, Cause::Restart, now_ms);
        self.given.extend(votes.iter().map(|vote| {
            let left_ms = vote.left_ms.and_then(|ms| u64::try_from(ms - 3).ok()).unwrap_or(0);
            let (hold, access, slots) = (vote.hold.to_owned(), vote.access, vote.slots.clone());
            Given { voter, lock, hold, access, slots, until_ms: now_ms + left_ms, lapse }
        }));
    }

    /// A hold gives its vote back, or somebody else does for it.
    pub(crate) fn gives_back(&mut self, voter: usize, hold: &str) {
        self.given.retain(|given| given.voter != voter || given.hold != hold);
    }

    /// Whether a voter had given its vote to another hold before it forgot, the lease of that vote
    /// is not over, and this client knows that the voter forgot. Then no trust may rest on a vote
    /// that the voter gave since.
    pub(crate) fn gave_to_another(
        &self,
        plan: &Plan,
        voter: usize,
        (lock, asked): (Lock, Rival<'_>),
        client: Option<usize>,
        now_ms: u64,
    ) -> bool {
        // A voter whose clock is apart, or wrong for long, is counted by nobody for a while.
        plan.clocks_are_true()
            && plan.clocks_are_together()
            && self.given.iter().any(|given| {
                given.voter == voter
                    && given.lock == lock
                    && now_ms < given.until_ms
                    && excludes(given.rival(), asked)
                    && self.can_know(plan, client, voter, given.lapse)
            })
    }

    /// A voter forgets its votes, which these holds had; where its data `is_gone`, also its fences.
    pub(crate) fn loses_all<'a>(
        &mut self,
        voter: usize,
        (cause, is_gone): (Cause, bool),
        holds: impl Iterator<Item = &'a str>,
        now_ms: u64,
    ) {
        // A clock is never as wrong as fences are old.
        if is_gone {
            let lapse = self.lapse(voter, cause, now_ms);
            self.fences.push((voter, None, lapse));
        }
        for hold in holds {
            self.loses(voter, cause, hold, now_ms);
        }
        if matches!(cause, Cause::Restart | Cause::Copied { .. }) {
            self.down_ms.remove(&voter);
        }
        if matches!(cause, Cause::Restart | Cause::Copied { .. } | Cause::Flush) {
            self.starts(voter, now_ms);
        }
    }

    /// A voter loses one lock's fence, unseen.
    pub(crate) fn loses_fence(&mut self, voter: usize, lock: Lock, now_ms: u64) {
        let lapse = self.lapse(voter, Cause::Unseen, now_ms);
        self.fences.push((voter, Some(lock), lapse));
    }

    /// A voter will not remember this vote for as long as it should.
    pub(crate) fn loses(&mut self, voter: usize, cause: Cause, hold: &str, now_ms: u64) {
        let lapse = self.lapse(voter, cause, now_ms);
        self.votes.entry((hold.to_owned(), voter)).or_default().push(lapse);
    }

    fn lapse(&self, voter: usize, cause: Cause, now_ms: u64) -> Lapse {
        let from_ms = self.down_ms.get(&voter).copied().unwrap_or(now_ms);
        Lapse { cause, at_ms: now_ms, from_ms }
    }

    pub(crate) fn has_lost(&self, hold: &str, voter: usize) -> bool {
        self.votes.contains_key(&(hold.to_owned(), voter))
    }

    /// A voter has this vote again as it was, to end at that time.
    pub(crate) fn ages(&mut self, voter: usize, hold: &str, until_ms: u64) {
        self.aged_ms.insert((hold.to_owned(), voter), until_ms);
    }

    /// Whether a vote that ends at that time was not renewed since it came back as it was.
    pub(crate) fn is_aged(&self, hold: &str, voter: usize, until_ms: u64) -> bool {
        let aged_ms = self.aged_ms.get(&(hold.to_owned(), voter));
        // The voter's clock drifts meanwhile.
        aged_ms.is_some_and(|aged_ms| until_ms <= aged_ms + 3)
    }

    /// What some voter forgot of this hold.
    fn lapses<'a>(&'a self, hold: &'a str) -> impl Iterator<Item = (usize, &'a Lapse)> {
        let (from, until) = ((hold.to_owned(), 0), (hold.to_owned(), usize::MAX));
        let of_voters = self.votes.range(from..=until);
        of_voters.flat_map(|((_, voter), lapses)| lapses.iter().map(|lapse| (*voter, lapse)))
    }

    /// Why a hold may have been lost although its votes were a majority.
    pub(crate) fn excuse(&self, hold: &str) -> Option<&'static str> {
        self.lapses(hold).next().map(|_| FORGOT)
    }

    /// Why this hold may be held beside one of that client.
    pub(crate) fn excuse_beside(
        &self,
        plan: &Plan,
        hold: &str,
        client: Option<usize>,
    ) -> Option<&'static str> {
        let unseen = |(voter, lapse): (usize, &Lapse)| !self.can_know(plan, client, voter, *lapse);
        self.lapses(hold).any(unseen).then_some(FORGOT)
    }

    /// Why a hold of that client may have a lower token than one before it.
    pub(crate) fn excuse_of_token(
        &self,
        plan: &Plan,
        lock: Lock,
        client: Option<usize>,
    ) -> Option<&'static str> {
        let of_lock =
            |(_, one, _): &&(usize, Option<Lock>, Lapse)| one.is_none_or(|one| one == lock);
        let mut lapses = self.fences.iter().filter(of_lock);
        let unseen =
            |(voter, _, lapse): &(usize, _, Lapse)| !self.can_know(plan, client, *voter, *lapse);
        lapses.any(unseen).then_some("a voter forgot its token")
    }

    /// Whether a voter has lost this lock's fence since then.
    pub(crate) fn lost_fence(&self, voter: usize, lock: Lock, since_ms: u64) -> bool {
        self.fences.iter().any(|(one, of, lapse)| {
            *one == voter && of.is_none_or(|of| of == lock) && lapse.at_ms >= since_ms
        })
    }

    fn can_know(&self, plan: &Plan, client: Option<usize>, voter: usize, lapse: Lapse) -> bool {
        let Some(client) = client else { return false };
        let Some(connected_ms) = self.connected_ms.get(&client).copied() else { return false };
        let met_before = connected_ms < lapse.from_ms;
        match lapse.cause {
            Cause::Unseen => false,
            Cause::Restart | Cause::Copied { .. } if met_before => true,
            Cause::Flush if connected_ms < lapse.at_ms => true,
            // Both have one name until they are renamed, and are younger than a third after that.
            // Where the other one is away there is nothing to see.
            Cause::Copied { of } => {
                let mut troubles = plan.troubles.iter().map(|trouble| trouble.what);
                plan.voters.len() > 2
                    && emptied(plan) == 2
                    && troubles
                        .all(|what| what.restarts() != Some(of) && what.moves_clock().is_none())
            }
            // It is younger than the others, where these are not as young.
            Cause::Restart | Cause::Flush => {
                // By a clock that was set forward since, it seems to have started sooner.
                let aged = |trouble: &Trouble| {
                    trouble.at_ms >= lapse.at_ms && moves(trouble, voter) && is_forward(trouble)
                };
                emptied(plan) <= plan.spare() && !plan.troubles.iter().any(aged)
            }
            Cause::ClockForward { ms } => {
                let hidden_ms = hidden_ms(plan, client);
                let troubles = |voter| plan.troubles.iter().filter(move |one| moves(one, voter));
                let voters = 0..plan.voters.len();
                let moved = voters.filter(|voter| troubles(*voter).next().is_some()).count();
                // Who met it after that finds it apart from the others, where these are together;
                // or younger than them, where it is right again.
                let knows = met_before || plan.clocks_are_together() && moved <= plan.spare();
                // What one movement gives another may take back before anybody has seen it.
                ms > hidden_ms
                    && knows
                    && (troubles(voter).all(is_forward) || self.is_seen_ahead(plan, voter, ms))
            }
        }
    }

    /// Whether some client is sure to have looked at the voter when its clock was ahead by so much,
    /// and to look again when it is right. Of the two it sees that the clock was set back, and
    /// tells all others.
    fn is_seen_ahead(&self, plan: &Plan, voter: usize, ms: i64) -> bool {
        let (jumps, others): (Vec<&Trouble>, Vec<_>) =
            plan.troubles.iter().partition(|trouble| moves(trouble, voter));
        let of = |trouble: &Trouble| Some((trouble.at_ms, trouble.what.moves_clock()?.1?));
        let jumps: Option<Vec<_>> = jumps.into_iter().map(of).collect();
        let Some([(ahead_ms, by), (right_ms, back)]) = jumps.as_deref() else { return false };
        let is_elsewhere = |trouble: &&Trouble| match trouble.what {
            What::Partition { voter: other, .. } => other != voter,
            _ => false,
        };
        let is_undisturbed = others.iter().all(is_elsewhere) && plan.network.is_sure();
        // A look, with its way, and the next one.
        let looks_ms = plan.longest_lease_ms() / 3 + plan.times.voter_deadline_ms;
        let looks =
            |connected_ms: &u64| right_ms.saturating_sub(*connected_ms.max(ahead_ms)) > looks_ms;
        let is_long =
            ms > i64::try_from(2 * looks_ms + plan.longest_lease_ms()).unwrap_or(i64::MAX);
        let is_right = *by == ms && *back == -ms;
        is_right && is_long && is_undisturbed && self.connected_ms.values().any(looks)
    }
}

/// How many voters lose their data, or the name of these, at some time.
fn emptied(plan: &Plan) -> usize {
    let loses = |voter: &usize, what: What| match what {
        What::VoterFlushed(one) | What::FingerprintLost(one) => one == *voter,
        What::VoterCopied { of, .. } if of == *voter => true,
        what => what.forgets() == Some(*voter),
    };
    let is_emptied = |voter: &usize| plan.troubles.iter().any(|trouble| loses(voter, trouble.what));
    (0..plan.voters.len()).filter(is_emptied).count()
}

/// Whether the voter's clock is moved, or runs beyond the allowance.
fn moves(trouble: &Trouble, voter: usize) -> bool {
    trouble.what.moves_clock().is_some_and(|(moved, _)| moved == voter)
}

fn is_forward(trouble: &Trouble) -> bool {
    matches!(trouble.what.moves_clock(), Some((_, Some(ms))) if ms > 0)
}

/// How far a clock may be set forward unseen: an answer may have been on its way for so long, and
/// the clocks may have drifted meanwhile.
fn hidden_ms(plan: &Plan, client: usize) -> i64 {
    let stands_still = |trouble: &Trouble| {
        trouble.what == What::ClientStalls(client) || trouble.what == What::ClientSuspended(client)
    };
    let way_ms = if plan.troubles.iter().any(stands_still) {
        // It does not know how long its answers have been there.
        plan.longest_lease_ms()
    } else {
        plan.times.voter_deadline_ms
    };
    let drift_ms = plan.longest_lease_ms() / 100 + plan.heals_at_ms / 100 + 20;
    i64::try_from(way_ms + drift_ms).unwrap_or(i64::MAX)
}
