//! What one seed decides: who is there, what they do, and what goes wrong, and when.
//!
//! A plan is plain data, so that it can be printed.

mod step;
mod trouble;

use std::ops::Range;

use crate::sim::{laws::tickets::LOCK, prelude::*};

pub(crate) use step::{Cancel, End, Further, Meanwhile, Step};
pub(crate) use trouble::{Part, Trouble, What};

pub(crate) use crate::change::{Change, Sets};

/// Everything that happens in one schedule but for the chance within it, which the seed gives too.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) mood: Mood,
    /// Where the voters are changed meanwhile.
    pub(crate) change: Option<Change>,
    pub(crate) voters: Vec<VoterPlan>,
    pub(crate) clients: Vec<ClientPlan>,
    pub(crate) network: Network,
    pub(crate) times: Times,
    pub(crate) troubles: Vec<Trouble>,
    /// When the faults end.
    pub(crate) heals_at_ms: u64,
}

/// How much goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Nothing: then nothing may fail.
    Calm,
    /// Whatever may, but only at a minority of the voters: then nothing may fail either.
    Minority,
    /// Whatever may, anywhere.
    Chaos,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct VoterPlan {
    pub(crate) clock_ppm: i32,
    pub(crate) clock_ahead_ms: i64,
    /// Whether things may go wrong here.
    pub(crate) troubled: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ClientPlan {
    pub(crate) starts_at_ms: u64,
    pub(crate) clock_ppm: i32,
    /// What its wall clock shows too much, by which nothing but tokens goes.
    pub(crate) wall_ahead_ms: i64,
    pub(crate) sets: Sets,
    pub(crate) tasks: Vec<Vec<Step>>,
    /// Whether it is closed in the end; otherwise it is dropped.
    pub(crate) closes: bool,
}

/// The settings of all clients.
#[expect(clippy::struct_field_names, reason = "the unit belongs to the name")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) lease_ms: u64,
    pub(crate) voter_deadline_ms: u64,
    pub(crate) poll_ms: u64,
    pub(crate) patience_ms: u64,
    /// How long a place in a queue counts; `None`: as long as it does by itself.
    pub(crate) waiter_deadline_ms: Option<u64>,
}

/// What befalls each request by chance, in millionths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Network {
    /// The most that a request takes one way, most of the time.
    pub(crate) usual_ms: u64,
    pub(crate) tail_ppm: u32,
    pub(crate) tail_ms: u64,
    pub(crate) lost_request_ppm: u32,
    pub(crate) lost_reply_ppm: u32,
    pub(crate) cut_before_ppm: u32,
    pub(crate) cut_after_ppm: u32,
    pub(crate) twice_ppm: u32,
}

impl Network {
    /// Whether each request arrives, once and soon, and so does its answer.
    pub(crate) fn is_sure(self) -> bool {
        let Self { tail_ppm, lost_request_ppm, lost_reply_ppm, .. } = self;
        let Self { cut_before_ppm, cut_after_ppm, twice_ppm, .. } = self;
        let all = [tail_ppm, lost_request_ppm, lost_reply_ppm, cut_before_ppm, cut_after_ppm];
        all.iter().all(|ppm| *ppm == 0) && twice_ppm == 0
    }
}

impl Plan {
    /// Nobody is there yet, and nothing goes wrong.
    pub(crate) fn new(
        seed: u64,
        mood: Mood,
        voters: Vec<VoterPlan>,
        times: Times,
        heals_at_ms: u64,
    ) -> Self {
        let (clients, network, troubles) = (Vec::new(), Network::default(), Vec::new());
        Self { seed, mood, change: None, voters, clients, network, times, troubles, heals_at_ms }
    }

    /// How many voters are a majority; of the smaller of two sets.
    pub(crate) fn quorum(&self) -> usize {
        let sets = self.sets(Sets::Joint).into_iter();
        sets.map(|set| set.len() / 2 + 1).min().unwrap_or(1)
    }

    /// How many voters can be spared; of the smaller of two sets.
    pub(crate) fn spare(&self) -> usize {
        let sets = self.sets(Sets::Joint).into_iter();
        sets.map(|set| (set.len() - 1) / 2).min().unwrap_or(0)
    }

    /// The voters of which a client needs a majority each. One that is no client of the schedule
    /// has all there are.
    pub(crate) fn sets_of(&self, client: Option<usize>) -> Vec<Range<usize>> {
        self.sets(client.map_or(Sets::Joint, |client| self.clients[client].sets))
    }

    fn sets(&self, sets: Sets) -> Vec<Range<usize>> {
        let all = 0..self.voters.len();
        let Some(change) = self.change else { return vec![all] };
        match sets {
            Sets::All | Sets::Joint => vec![change.new_ones(), change.old_ones()],
            Sets::Old => vec![change.old_ones()],
            Sets::New => vec![change.new_ones()],
        }
    }

    /// Whether these voters decide for a client.
    pub(crate) fn decide(&self, client: Option<usize>, which: impl Fn(usize) -> bool) -> bool {
        self.sets_of(client).into_iter().all(|set| {
            let all = set.len();
            2 * set.filter(|voter| which(*voter)).count() > all
        })
    }

    /// Whether all clients also start a job. Beside what is drawn, so that the other schedules stay
    /// what they are.
    pub(crate) fn has_job(&self) -> bool {
        if self.change.is_some() { self.seed / 8 % 2 == 1 } else { Self::draws_job(self.seed) }
    }

    /// The same where the voters are not changed.
    pub(crate) fn draws_job(seed: u64) -> bool {
        seed % 22 == 13
    }

    /// Whether all clients also hand holds over by tickets. Beside what is drawn, too.
    pub(crate) fn has_tickets(&self) -> bool {
        self.change.is_none() && self.seed % 11 == 6
    }

    /// The longest pause of who starts the job. In a scene all come when the voter has forgotten.
    pub(crate) fn job_pause_ms(&self) -> u64 {
        let lease_ms = self.times.lease_ms;
        if self.seed % 8 == 7 { lease_ms / 8 } else { lease_ms }
    }

    /// The locks that anybody asks for.
    pub(crate) fn locks(&self) -> BTreeSet<Lock> {
        let steps = self.clients.iter().flat_map(|client| client.tasks.iter().flatten());
        let handed_over = self.has_tickets().then_some(LOCK);
        steps.flat_map(Step::locks).chain(handed_over).collect()
    }

    /// The longest lease that anybody asks for.
    pub(crate) fn longest_lease_ms(&self) -> u64 {
        let steps = self.clients.iter().flat_map(|client| client.tasks.iter().flatten());
        let asked = steps.map(|step| step.lease_ms(self.times.lease_ms));
        asked.max().unwrap_or(0).max(self.times.lease_ms)
    }

    /// Whether all voters' clocks show the same time at first.
    pub(crate) fn clocks_are_together(&self) -> bool {
        self.voters.iter().all(|voter| (0..=1).contains(&voter.clock_ahead_ms))
    }

    /// Whether all clocks run at the true rate throughout.
    pub(crate) fn clocks_are_true(&self) -> bool {
        let moved = |trouble: &Trouble| {
            matches!(trouble.what, What::ClockNudged(_)) || trouble.what.moves_clock().is_some()
        };
        self.voters.iter().all(|voter| voter.clock_ppm == 0)
            && self.clients.iter().all(|client| client.clock_ppm == 0)
            && !self.troubles.iter().any(moved)
    }

    /// Whether the clocks of a majority are set or run wild: then a client takes them for right,
    /// and ends its leases sooner.
    pub(crate) fn clocks_of_a_majority_move(&self) -> bool {
        let moved = |trouble: &Trouble| match trouble.what {
            What::ClockJumps { voter, .. } | What::ClockRuns { voter, .. } => Some(voter),
            What::VoterReboots { voter, ms, .. } if ms != 0 => Some(voter),
            _ => None,
        };
        let moved: BTreeSet<usize> = self.troubles.iter().filter_map(moved).collect();
        moved.len() >= self.quorum()
    }

    /// Whether the machine of a client stands still with its clocks: its leases end
    /// sooner when it hears its voters again.
    pub(crate) fn pauses(&self, client: usize) -> bool {
        self.troubles.iter().any(|trouble| trouble.what == What::ClientPaused(client))
    }
}
