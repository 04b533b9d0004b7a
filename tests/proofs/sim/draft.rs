//! Draws a plan from a seed.

mod scenes;

use rand::{SeedableRng, rngs::StdRng};

use crate::sim::{
    plan::{Change, Network},
    prelude::*,
};

/// The plan of a seed.
pub(crate) fn plan(seed: u64) -> Plan {
    let chance = StdRng::seed_from_u64(seed);
    let draft = Draft { chance, forces: false, kinds: Vec::new() };
    // Every eighth is led to what chance alone rarely brings together.
    if seed % 8 == 7 { draft.scene(seed) } else { draft.plan(seed) }
}

/// A plan in which one mutex is all that is asked for.
pub(crate) fn mutex(seed: u64) -> Plan {
    let chance = StdRng::seed_from_u64(seed);
    Draft { chance, forces: false, kinds: Vec::new() }.mutex_alone(seed)
}

/// Of so many permits each semaphore is.
pub(crate) const PERMITS: u32 = 3;

/// How the voters are changed.
const CHANGES: [Change; 9] = [
    Change { only_new: 2, both: 3, only_old: 0 },
    Change { only_new: 0, both: 3, only_old: 2 },
    Change { only_new: 3, both: 0, only_old: 3 },
    Change { only_new: 1, both: 2, only_old: 1 },
    Change { only_new: 1, both: 1, only_old: 1 },
    Change { only_new: 2, both: 1, only_old: 0 },
    Change { only_new: 0, both: 1, only_old: 2 },
    Change { only_new: 1, both: 0, only_old: 1 },
    Change { only_new: 1, both: 0, only_old: 3 },
];

/// How many kinds of troubles are drawn.
const KINDS: u64 = 19;

/// Draws a plan. Each kind of fault is in only some of the plans: where everything goes wrong at
/// once little is ever acquired, and nothing rare happens to what is held.
struct Draft {
    chance: StdRng,
    /// Whether locks are ended by force, which excuses much.
    forces: bool,
    /// What each step picks one of.
    kinds: Vec<Kind>,
}

const PREFERENCES: [Preference; 3] = [Preference::Readers, Preference::Writers, Preference::Fair];

impl Draft {
    fn below(&mut self, limit: u64) -> u64 {
        self.chance.random_range(0..limit.max(1))
    }

    fn index(&mut self, limit: usize) -> usize {
        self.chance.random_range(0..limit.max(1))
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        self.chance.random_range(least..=most)
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.chance.random_ratio(1, count)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    fn plan(mut self, seed: u64) -> Plan {
        use Mood::{Calm, Chaos, Minority};
        // In every eighth the voters are changed.
        let changes = seed % 8 == 3;
        let mood = if changes {
            self.pick(&[Calm, Chaos, Chaos])
        } else {
            self.pick(&[Calm, Minority, Minority, Chaos, Chaos, Chaos, Chaos])
        };
        self.forces = self.one_in(if changes { 8 } else { 5 });
        self.kinds = self.kinds();
        if !changes {
            self.add_kinds(seed);
        }
        let times = self.times();
        let change = changes.then(|| self.pick(&CHANGES));
        let voters = match change {
            Some(change) => self.voters_of(mood, change.voters()),
            None => self.voters(mood),
        };
        let locks = self.pick(&[1, 1, 1, Lock::MOST]);
        let heals_at_ms = self.between(3, 6) * times.lease_ms;
        let heals_at_ms = if changes { heals_at_ms + times.lease_ms } else { heals_at_ms };
        let clients = if changes {
            self.clients_of_sets(mood, times, locks, heals_at_ms)
        } else {
            self.clients(mood, times, locks, heals_at_ms)
        };
        let network = self.network(mood, times);
        let mut plan =
            Plan { change, clients, network, ..Plan::new(seed, mood, voters, times, heals_at_ms) };
        plan.troubles = self.troubles(&plan);
        plan
    }

    /// Beside what is drawn, so that the other schedules stay what they are.
    fn add_kinds(&mut self, seed: u64) {
        if matches!(seed % 8, 2 | 5 | 6) {
            self.add_permits();
        }
        match seed % 22 {
            4 => self.kinds = vec![Kind::Election],
            15 => self.kinds.extend([Kind::Election; 2]),
            9 => self.kinds = vec![Kind::All, Kind::All, Kind::Plain, Kind::Fair, Kind::Write],
            20 => self.kinds.extend([Kind::All; 2]),
            _ => {}
        }
    }

    /// Clients of the old voters, of both, and of the new ones. All of the old ones come to their
    /// end before the first of the new ones begins: those wait for that.
    fn clients_of_sets(
        &mut self,
        mood: Mood,
        times: Times,
        locks: usize,
        heals_at_ms: u64,
    ) -> Vec<ClientPlan> {
        let mut clients = Vec::new();
        while clients.len() < 3 {
            // The old ones are to end before the faults do, and the new ones to begin.
            clients.extend(self.clients(mood, times, locks, heals_at_ms / 2));
        }
        clients.truncate(5);
        let first = [Sets::Old, Sets::Joint, Sets::New];
        for (number, client) in clients.iter_mut().enumerate() {
            client.sets = match first.get(number) {
                Some(sets) => *sets,
                None => self.pick(&[Sets::Old, Sets::Joint, Sets::Joint, Sets::New]),
            };
        }
        clients
    }

    /// Of ten plans two have mutexes, two fair ones, one both on the same locks, four read/write
    /// locks, and one everything.
    fn kinds(&mut self) -> Vec<Kind> {
        let sort = self.below(10);
        let mut kinds = match sort {
            0 | 1 => return vec![Kind::Plain],
            2 | 3 => return vec![Kind::Fair],
            4 => return vec![Kind::Plain, Kind::Fair],
            5 => vec![Kind::Plain, Kind::Fair],
            _ => Vec::new(),
        };
        // All readers name the same preference, or each its own.
        let preferences = match self.below(4) {
            3 => PREFERENCES.to_vec(),
            _ => vec![self.pick(&PREFERENCES); 3],
        };
        kinds.extend(preferences.into_iter().map(Kind::Read));
        kinds.extend(vec![Kind::Write; self.pick(&[1, 2, 3, 6])]);
        kinds
    }

    /// More than one of three plans has semaphores: alone, or beside all else.
    fn add_permits(&mut self) {
        if self.one_in(2) {
            self.kinds.clear();
        }
        let most = self.pick(&[1, 1, 2, PERMITS]);
        for wanted in [1, 1, 1, 2, PERMITS] {
            self.kinds.push(Kind::Permits { wanted: wanted.min(most), of: PERMITS });
        }
    }

    fn times(&mut self) -> Times {
        let lease_ms = self.pick(&[400, 600, 1_000, 2_000]);
        let poll_ms = self.pick(&[lease_ms / 4, 500, 2_000, 10_000]);
        let patience_ms = self.pick(&[lease_ms, 3 * lease_ms, 10_000]);
        let voter_deadline_ms = lease_ms / self.pick(&[10, 20]);
        let waiter_deadline_ms = self.pick(&[None, Some(4 * voter_deadline_ms), Some(lease_ms)]);
        Times { lease_ms, voter_deadline_ms, poll_ms, patience_ms, waiter_deadline_ms }
    }

    fn voters(&mut self, mood: Mood) -> Vec<VoterPlan> {
        let count = self.pick(&[1, 2, 3, 3, 3, 4, 5, 5, 7]);
        self.voters_of(mood, count)
    }

    fn voters_of(&mut self, mood: Mood, count: usize) -> Vec<VoterPlan> {
        let wrong_clocks = self.one_in(3);
        let together = !wrong_clocks && self.one_in(2);
        let troubled = match mood {
            Mood::Calm => 0,
            Mood::Minority => count - (count / 2 + 1),
            Mood::Chaos => count,
        };
        let voter = |number| VoterPlan {
            clock_ppm: if wrong_clocks { self.ppm(mood) } else { 0 },
            clock_ahead_ms: match mood {
                Mood::Chaos => self.pick(&[0, 0, 1, 86_400_000, -3_600_000]),
                // A voter apart from a majority does not count at first, nor does any where no
                // majority is together: then it cannot be spared.
                _ if together => self.pick(&[0, 0, 1]),
                _ => 3_600_000,
            },
            troubled: number < troubled,
        };
        (0..count).map(voter).collect()
    }

    /// A clock's error, of which a client's and a voter's together stay within the allowance of a
    /// hundredth, with room for a nudge. Where nothing may fail they also stay within what a clock
    /// that is being set right does over longer times: beyond that it is taken for one that moved.
    fn ppm(&mut self, mood: Mood) -> i32 {
        let most = if mood == Mood::Chaos { 3_000 } else { 250 };
        self.chance.random_range(-most..=most)
    }

    fn clients(
        &mut self,
        mood: Mood,
        times: Times,
        locks: usize,
        heals_at_ms: u64,
    ) -> Vec<ClientPlan> {
        let count = self.pick(&[1, 2, 2, 3, 3, 4]);
        let wrong_clocks = self.one_in(4);
        let wrong_walls = self.one_in(2);
        let client = |_| {
            let tasks = self.pick(&[1, 1, 2, 2, 3]);
            let late = self.one_in(6);
            ClientPlan {
                starts_at_ms: if late { self.below(heals_at_ms) } else { 0 },
                clock_ppm: if wrong_clocks { self.ppm(mood) } else { 0 },
                wall_ahead_ms: if wrong_walls { self.wall_ms(times) } else { 0 },
                tasks: (0..tasks).map(|_| self.task(mood, times, locks, heals_at_ms)).collect(),
                sets: Sets::All,
                closes: self.one_in(2),
            }
        };
        (0..count).map(client).collect()
    }

    /// How far a wall clock is ahead or behind: two of them by half a lease, so that they agree
    /// within the time for which those who forgot a token are kept out.
    fn wall_ms(&mut self, times: Times) -> i64 {
        let most_ms = i64::try_from(times.lease_ms / 4).unwrap_or(0);
        self.chance.random_range(-most_ms..=most_ms)
    }

    /// Steps until the faults end.
    fn task(&mut self, mood: Mood, times: Times, locks: usize, until_ms: u64) -> Vec<Step> {
        let owner = if self.one_in(3) { Some(self.index(2)) } else { None };
        let mut steps = Vec::new();
        let mut about_ms = 0;
        while about_ms < until_ms && steps.len() < 12 {
            let step = self.step(mood, times, locks, owner);
            about_ms += step.pause_ms
                + match step.meanwhile {
                    Meanwhile::Sleep(ms) | Meanwhile::Work(ms) | Meanwhile::Lost(ms) => ms,
                    Meanwhile::Inspect | Meanwhile::Force => 10,
                };
            steps.push(step);
        }
        steps
    }

    fn step(&mut self, mood: Mood, times: Times, locks: usize, owner: Option<usize>) -> Step {
        let lease_ms = times.lease_ms;
        let cancel = match self.below(8) {
            0 if mood == Mood::Chaos => Cancel::AfterPolls(self.between(1, 8)),
            1 if mood == Mood::Chaos => Cancel::AfterMs(self.below(times.voter_deadline_ms)),
            _ => Cancel::Never,
        };
        let lease = match self.below(6) {
            0 => Lease::Fixed(self.between(lease_ms / 2, 2 * lease_ms).max(400)),
            1 => Lease::Renewed(self.between(lease_ms / 2, 2 * lease_ms).max(400)),
            _ => Lease::Default,
        };
        let how = match self.below(6) {
            0 => How::Try,
            1 | 2 => How::Within(self.below(2 * lease_ms)),
            _ => How::Wait,
        };
        let kinds = self.kinds.clone();
        let kind = self.pick(&kinds);
        // Who leads has no owner, and is renewed.
        let (owner, lease) = match (kind, lease) {
            (Kind::Election, Lease::Fixed(ms)) => (None, Lease::Renewed(ms)),
            (Kind::Election, lease) => (None, lease),
            (Kind::All, _) => (None, Lease::Default),
            (_, lease) => (owner, lease),
        };
        // Several are named in another order each time, however many locks the others have.
        let locks = if kind == Kind::All { Lock::MOST } else { locks };
        Step {
            pause_ms: if self.one_in(2) { 0 } else { self.below(lease_ms) },
            number: self.index(locks),
            kind,
            owner,
            lease,
            how,
            cancel,
            further: self.further(kind, lease_ms),
            meanwhile: self.meanwhile(lease_ms),
            end: self.end(kind, mood, lease_ms),
        }
    }

    fn further(&mut self, kind: Kind, lease_ms: u64) -> Further {
        match self.below(8) {
            0 | 1 => Further::Again,
            2 if kind == Kind::Write => Further::Reads,
            3 if kind == Kind::Write => Further::ReadsOn(self.below(lease_ms)),
            _ => Further::Nothing,
        }
    }

    fn end(&mut self, kind: Kind, mood: Mood, lease_ms: u64) -> End {
        match self.below(6) {
            0 | 1 => End::Drop,
            2 if mood == Mood::Chaos => End::Release(Cancel::AfterPolls(self.below(4))),
            3 if kind == Kind::Write => End::Downgrade(self.below(lease_ms), Cancel::Never),
            4 if kind == Kind::Write && mood == Mood::Chaos => {
                End::Downgrade(0, Cancel::AfterPolls(self.below(8)))
            }
            _ => End::Release(Cancel::Never),
        }
    }

    fn meanwhile(&mut self, lease_ms: u64) -> Meanwhile {
        match self.below(12) {
            0 => Meanwhile::Inspect,
            1 if self.forces => Meanwhile::Force,
            2 | 3 => Meanwhile::Lost(self.below(3 * lease_ms)),
            4..=6 => Meanwhile::Work(self.below(2 * lease_ms)),
            7 => Meanwhile::Sleep(0),
            _ => Meanwhile::Sleep(self.below(lease_ms)),
        }
    }

    fn network(&mut self, mood: Mood, times: Times) -> Network {
        // Two ways and a little more within the voters' deadline for the shortest lease.
        let shortest_ms = (times.lease_ms / 2).max(400);
        let usual_ms = self.below(times.voter_deadline_ms.min(shortest_ms / 10) / 3);
        let calm = Network { usual_ms, ..Network::default() };
        if mood == Mood::Calm || self.one_in(5) {
            return calm;
        }
        let mut sometimes = |most: u32| {
            let there = self.one_in(2);
            if there { self.chance.random_range(1_000..most) } else { 0 }
        };
        Network {
            tail_ppm: sometimes(200_000),
            lost_request_ppm: sometimes(150_000),
            lost_reply_ppm: sometimes(150_000),
            cut_before_ppm: sometimes(60_000),
            cut_after_ppm: sometimes(60_000),
            twice_ppm: sometimes(100_000),
            tail_ms: self.between(1, 2 * times.lease_ms),
            ..calm
        }
    }

    fn troubles(&mut self, plan: &Plan) -> Vec<Trouble> {
        if plan.mood == Mood::Calm {
            return Vec::new();
        }
        let kinds: Vec<u64> = (0..KINDS).filter(|_| self.one_in(3)).collect();
        if kinds.is_empty() {
            return Vec::new();
        }
        let count = self.between(1, 10);
        let mut troubles: Vec<Trouble> = (0..count)
            .filter_map(|_| {
                let kind = self.pick(&kinds);
                let what = self.what(kind, plan)?;
                Some(Trouble {
                    at_ms: self.below(plan.heals_at_ms),
                    lasts_ms: self.between(1, 2 * plan.times.lease_ms),
                    what,
                })
            })
            .collect();
        // Any start takes what was lost by then.
        let alone = |trouble: &Trouble, all: &[Trouble]| match trouble.what {
            What::VoterLoses(voter) => {
                let starts = all.iter().filter(|other| other.what.restarts() == Some(voter));
                starts.count() == 1
            }
            _ => true,
        };
        let all = troubles.clone();
        troubles.retain(|trouble| alone(trouble, &all));
        self.set_clocks_right(plan, &mut troubles);
        // Where no voter forgets what it counted to, the counts alone keep tokens growing.
        // New voters know none of them.
        let counts_are_known = !troubles.iter().any(|trouble| trouble.what.takes_fences());
        if counts_are_known && plan.change.is_none() {
            for trouble in &mut troubles {
                if let What::WallClockSet { ahead_ms, .. } = &mut trouble.what {
                    *ahead_ms = self.chance.random_range(-3_600_000..=3_600_000);
                }
            }
        }
        troubles.sort_by_key(|trouble| trouble.at_ms);
        troubles
    }

    /// Most clocks that a reboot has put wrong are set right later.
    fn set_clocks_right(&mut self, plan: &Plan, troubles: &mut Vec<Trouble>) {
        let rebooted = |trouble: &Trouble| match trouble.what {
            What::VoterReboots { voter, ms, .. } => {
                Some((trouble.at_ms + trouble.lasts_ms, voter, ms))
            }
            _ => None,
        };
        for (up_ms, voter, ms) in troubles.iter().filter_map(rebooted).collect::<Vec<_>>() {
            let at_ms = up_ms + self.between(1, plan.times.lease_ms);
            if at_ms < plan.heals_at_ms && !self.one_in(4) {
                let what = What::ClockJumps { voter, ms: -ms };
                troubles.push(Trouble { at_ms, lasts_ms: 1, what });
            }
        }
    }

    /// `None` where this kind cannot happen.
    fn what(&mut self, kind: u64, plan: &Plan) -> Option<What> {
        let troubled: Vec<usize> =
            (0..plan.voters.len()).filter(|voter| plan.voters[*voter].troubled).collect();
        if troubled.is_empty() {
            return None;
        }
        let voter = self.pick(&troubled);
        let client = self.index(plan.clients.len());
        let lease_ms = i64::try_from(plan.times.lease_ms).unwrap_or(i64::MAX);
        let what = match kind {
            0 => What::VoterStops(voter),
            1 => What::VoterDies(voter),
            // Beside what is drawn, so that the other schedules stay what they are.
            2 if plan.seed.is_multiple_of(3) => What::VoterLoses(voter),
            2 => What::VoterForgets(voter),
            3 if plan.seed.is_multiple_of(4) => What::FingerprintLost(voter),
            3 => What::VoterFlushed(voter),
            4 => {
                let locks: Vec<Lock> = plan.locks().into_iter().collect();
                let lock = self.pick(&locks);
                let all = [Part::Record, Part::Queue, Part::Alive, Part::Fence];
                let parts = [&all[..], &[Part::Readers, Part::Writers]].concat();
                let count = if matches!(lock, Lock::Rw(_)) { 6 } else { 4 };
                What::KeyEvicted { voter, lock, part: self.pick(&parts[..count]) }
            }
            5 => What::ClockNudged(voter),
            6 => What::ClockJumps { voter, ms: self.chance.random_range(-lease_ms..=2 * lease_ms) },
            7 => What::ClockRuns { voter, ppm: self.chance.random_range(-500_000..=1_000_000) },
            8 => What::CutAll { voter, arrives: self.one_in(2) },
            9 => What::CutOne { voter, client, arrives: self.one_in(2) },
            10 => What::Partition { voter, client },
            11 => What::ClientStalls(client),
            12 => What::ClientSuspended(client),
            13 => What::ClientDies(client),
            14 => What::ClientCloses(client),
            15 => What::WallClockSet { client, ahead_ms: self.wall_ms(plan.times) },
            16 => What::VoterFull(voter),
            17 => What::VoterReboots {
                voter,
                ms: self.chance.random_range(-lease_ms..=2 * lease_ms),
                keeps: self.one_in(2),
            },
            _ => What::ClientPaused(client),
        };
        (plan.mood == Mood::Chaos || !what.takes_a_client()).then_some(what)
    }
}
