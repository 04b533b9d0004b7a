//! Two clients on the voters of a schedule that is over: each voter has a way of a fixed length
//! now, and as many as can be spared are silent. What takes how long can be told exactly.

use crate::sim::{clients::settings, prelude::*, voters::Way};

/// Nothing but a wake-up is soon enough.
pub(crate) const LEASE_MS: u64 = 60_000;
pub(crate) const PATIENCE_MS: u64 = 10_000;
pub(crate) const WAITER_DEADLINE_MS: u64 = 5_000;

pub(crate) const MS: Duration = Duration::from_millis(1);

/// What stops a measurement: it has been told.
pub(crate) struct Told;

/// Somebody who asks for a lock.
pub(crate) type Waiting = JoinHandle<Result<Guard, Error>>;

pub(crate) struct Calm<'a> {
    pub(crate) world: &'a World,
    pub(crate) holders_machine: Machine,
    pub(crate) holder: Quorate,
    pub(crate) waiter: Quorate,
    /// Each voter's way.
    pub(crate) ways: Vec<Way>,
    /// The voters that answer.
    pub(crate) reachable: Vec<usize>,
    /// The round trip to the fastest majority.
    pub(crate) fastest: Duration,
    /// The longest round trip.
    pub(crate) slowest: Duration,
    pub(crate) longest_there: Duration,
}

impl<'a> Calm<'a> {
    pub(crate) async fn after(world: &'a World, ways: &Ways) -> Option<Self> {
        if world.plan.change.is_some() {
            // What is measured is told for one set.
            return None;
        }
        let (one, other) = (Machine::new("one"), Machine::new("other"));
        let (holder, waiter) =
            match (connect(world, &one, 4_000).await, connect(world, &other, 4_001).await) {
                (Ok(holder), Ok(waiter)) => (holder, waiter),
                (holder, waiter) => {
                    let what = format!("nobody can connect to measure: {holder:?} {waiter:?}");
                    world.breach(Law::NothingLeaks, None, what);
                    return None;
                }
            };
        // Voters that came back empty, or whose clocks are apart, do not count until then.
        sleep(Duration::from_millis(LEASE_MS)).await;
        let fixed = fix(world, ways);
        let is_reachable = |voter: &usize| fixed[*voter].is_some();
        let mut trips: Vec<Duration> =
            fixed.iter().flatten().map(|(there, back)| *there + *back).collect();
        trips.sort_unstable();
        Some(Self {
            world,
            holders_machine: one,
            holder,
            waiter,
            reachable: (0..fixed.len()).filter(is_reachable).collect(),
            fastest: trips[world.plan.quorum() - 1],
            slowest: trips[trips.len() - 1],
            ways: fixed.clone(),
            longest_there: fixed.iter().flatten().map(|(there, _)| *there).max()?,
        })
    }

    pub(crate) fn since(&self, started_ms: u64) -> Duration {
        Duration::from_millis(self.world.now_ms() - started_ms)
    }

    /// Until a waiter has its ticket on all voters, and hears when it is called.
    pub(crate) fn settling(&self) -> Duration {
        6 * self.slowest + 10 * MS
    }

    /// How often each voter has run this script.
    pub(crate) fn runs(&self, script: &str) -> Vec<u64> {
        self.world.voters.iter().map(|voter| voter.runs(script)).collect()
    }

    /// Since `before` no voter has run it more often than that.
    pub(crate) fn expect_runs(&self, script: &str, before: Vec<u64>, most: usize) {
        let runs = self.runs(script);
        assert!(runs.iter().any(|runs| *runs > 0), "no voter ever ran {script}");
        let mut runs = runs.into_iter().zip(before);
        if runs.any(|(now, before)| now > before + most as u64) {
            self.costs(format!("a voter ran {script} more than {most} times"));
        }
    }

    /// It takes exactly the round trip to the fastest majority.
    pub(crate) async fn in_one_trip<T>(
        &self,
        what: &str,
        asked: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Told> {
        let started_ms = self.world.now_ms();
        let outcome = asked.await;
        let (took, fastest) = (self.since(started_ms), self.fastest);
        if took != fastest {
            self.costs(format!("{what} took {took:?}, the fastest majority {fastest:?}"));
        }
        outcome.map_err(|error| self.stops(format!("{what} fails: {error}")))
    }

    /// Whoever is called has the lock soon.
    pub(crate) async fn handed(
        &self,
        who: &str,
        waiting: Waiting,
        most: Duration,
    ) -> Result<Guard, Told> {
        let started_ms = self.world.now_ms();
        match timeout(most, waiting).await {
            Ok(Ok(Ok(guard))) => Ok(guard),
            other => {
                let took = self.since(started_ms);
                Err(self.stops(format!("{who}: {other:?} after {took:?}, {most:?} are the most")))
            }
        }
    }

    pub(crate) fn costs(&self, what: String) {
        self.world.breach(Law::FewestTrips, None, what);
    }

    pub(crate) fn stops(&self, what: String) -> Told {
        self.costs(what);
        Told
    }
}

/// `part`: of the schedule; clients of one seed would be taken for one.
pub(crate) async fn connect(
    world: &World,
    machine: &Machine,
    part: usize,
) -> Result<Quorate, Error> {
    let times = Times {
        lease_ms: LEASE_MS,
        voter_deadline_ms: 1_000,
        poll_ms: 20_000,
        patience_ms: PATIENCE_MS,
        waiter_deadline_ms: Some(WAITER_DEADLINE_MS),
    };
    let seed = chance(&world.plan, part).random();
    let builder = settings(times, LEASE_MS).embedded(&world.voters).machine(machine);
    builder.seed(seed).connect().await
}

/// Gives every voter its way.
fn fix(world: &World, ways: &Ways) -> Vec<Way> {
    let mut chance = chance(&world.plan, 2_000);
    let voters = world.voters.len();
    let spare = voters - world.plan.quorum();
    let silent = chance.random_range(0..=spare);
    let first = chance.random_range(0..voters);
    let mut way = || Duration::from_millis(chance.random_range(1..40));
    let fixed: Vec<Way> = (0..voters)
        .map(|voter| {
            let is_silent = (voter + voters - first) % voters < silent;
            (!is_silent).then(|| (way(), way()))
        })
        .collect();
    world.note("calm", || format!("the ways there and back: {fixed:?}"));
    locked(&ways.cut_off).clear();
    *locked(&ways.fixed) = Some(fixed.clone());
    fixed
}
