//! Which voters may have forgotten votes, and whose votes count, by what this client has seen.
//!
//! One mutex guards [`Trust`], which decides this. Changes are reported after it is free again, in
//! the order in which they came about.

// Each answer needs this mutex. When the log was written under it, a subscriber that took 15 s for
// one warning cost every lock (guarantee 5, test `no_answer_waits_for_the_log`).

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::future::OptionFuture;
use tokio::runtime::Handle;

use super::{Identity, Outcome, configuration::Configuration, lock, reporter::Reporter};
use crate::{
    clock::{Clock, Moment},
    proto::{
        Cause, Change, Comparison, Quorum, RoundTrips, Shard, ShardQuarantine, Stamp, Suspicion,
        Trust, Verdict, Vote, VoterConfiguration,
    },
    scripts::Answer,
    series::VoterSeries,
    signal::Signal,
};

/// Who the voters are.
pub(crate) struct VoterLayout {
    pub(crate) labels: Vec<Arc<str>>,
    /// A number for each voter, the same for all parts of one cluster.
    pub(crate) clusters: Vec<usize>,
    /// Whether each voter is spread over the servers of a cluster.
    pub(crate) spread: Vec<bool>,
    pub(crate) quorum: Quorum,
}

/// The standing of every voter.
#[derive(Debug)]
pub(crate) struct Standings {
    trust: Mutex<Trust>,
    pub(crate) configuration: Configuration,
    reporter: Arc<Reporter>,
    round_trips: Vec<Mutex<RoundTrips>>,
    clock: Clock,
    // Beside the mutex, as each question to a guard reads it.
    /// For how long this client has stood still, in nanoseconds.
    stood_still: AtomicU64,
    /// Changes when all holds must be renewed at once: a voter came back without some votes, less
    /// is left of the leases than it seemed, or this client has a configuration mismatch.
    renewal_signal: Arc<Signal<()>>,
    /// Changes with each new connection.
    connected: Signal<()>,
    /// Changes with the moment at which the next quarantine ends.
    alarm: Arc<Signal<()>>,
}

impl Standings {
    /// To be called on the client's runtime.
    pub(crate) fn new(
        layout: VoterLayout,
        clock: Clock,
        suspicion: Suspicion,
        configuration: VoterConfiguration,
    ) -> Arc<Self> {
        let VoterLayout { labels, clusters, spread, quorum } = layout;
        let round_trips = labels.iter().map(|_| Mutex::default()).collect();
        let reporter = Arc::new(Reporter::new(labels, quorum));
        let renewal_signal = Arc::new(Signal::new(()));
        let comparison = Comparison::new(configuration, quorum, spread);
        let this = Arc::new(Self {
            trust: Mutex::new(Trust::new(clusters, quorum, suspicion)),
            configuration: Configuration::new(comparison, &reporter, &renewal_signal),
            reporter,
            round_trips,
            clock,
            stood_still: AtomicU64::new(0),
            renewal_signal,
            connected: Signal::new(()),
            alarm: Arc::new(Signal::new(())),
        });
        this.clock.spawn(&Handle::current(), this.watch_quarantines());
        this
    }

    pub(super) fn series(&self, voter: usize) -> &VoterSeries {
        &self.reporter.series[voter]
    }

    /// How long a voter has taken to answer so far.
    pub(super) fn round_trips(&self, voter: usize) -> MutexGuard<'_, RoundTrips> {
        lock(&self.round_trips[voter])
    }

    /// How long a voter usually takes to answer, once it has answered.
    pub(crate) fn round_trip(&self, voter: usize) -> Option<Duration> {
        self.round_trips(voter).usual()
    }

    /// How long to wait for a voter's answer to a request with this deadline.
    pub(crate) fn allowed(&self, voter: usize, deadline: Duration, longest: Duration) -> Duration {
        self.round_trips(voter).allowed(deadline).min(longest).max(deadline)
    }

    /// A server said who it is, on a new connection or on one that was noted. Returns whether its
    /// data must get another name.
    pub(crate) fn note_identity(
        &self,
        shard: Shard,
        identity: &Identity,
        stamp: Option<Stamp>,
        is_new: bool,
    ) -> bool {
        if is_new {
            // Behind this connection may be another server. Until the configuration is compared on
            // it, the voter's grants do not count for new holds (design 6).
            self.configuration.comparison().note_connection(shard.voter);
        }
        if let Some(stamp) = stamp {
            // Before the first request, which a distant voter would otherwise answer too late.
            self.round_trips(shard.voter).answered(stamp.answered.since(stamp.asked));
        }
        let needs_a_name = self.change(|trust| {
            if is_new {
                trust.note_connection(shard, identity);
            }
            trust.note_identity(shard, identity, stamp, self.clock.now())
        });
        if let Some(thousandths) = identity.memory {
            self.series(shard.voter).memory.set(f64::from(thousandths) / 1000.0);
        }
        self.show_clock(shard.voter, stamp);
        needs_a_name
    }

    /// A noted connection has ended, with the reason unless this side ended it.
    pub(crate) fn note_disconnect(&self, shard: Shard, why: Option<&str>) {
        self.change(|trust| trust.note_disconnect(shard, why));
    }

    /// A voter's data moved from one of its shards to another, or were lost on the way.
    pub(crate) fn note_move(&self, from: Shard, to: Shard, lost: bool) {
        self.change(|trust| trust.note_move(from, to, lost, self.clock.now()));
    }

    /// A server answered at that moment, mostly with its clock and the name of its data. Fails if
    /// it is the server of another voter.
    pub(crate) fn note_answer(
        &self,
        shard: Shard,
        at: Moment,
        stamp: Option<Stamp>,
        data: Option<&str>,
    ) -> Result<(), Cause> {
        self.change(|trust| trust.note_answer(shard, stamp, data, at))
            .map_err(|twin| self.duplicate(twin))?;
        self.show_clock(shard.voter, stamp);
        Ok(())
    }

    /// A voter lacks a vote that it gave at that moment and should have. Returns whether its data
    /// must get another name.
    pub(crate) fn note_missing_vote(&self, shard: Shard, given: Moment) -> bool {
        self.change(|trust| trust.note_missing_vote(shard, given, self.clock.now()))
    }

    /// Logs quarantines from now on, and those that have begun.
    pub(crate) fn log_quarantines(&self) {
        self.change(|trust| trust.log_quarantines(self.clock.now()));
    }

    /// The client is closed.
    pub(crate) fn retire(&self) {
        self.change(Trust::retire);
        self.configuration.retire();
    }

    /// Whether two voters are parts of one cluster, and in different sets.
    pub(crate) fn are_apart(&self, one: usize, other: usize) -> bool {
        self.trust().register.are_apart(one, other)
    }

    /// Why a voter has no vote now, if it is the server of another voter.
    // Counted twice, one server would be two of three votes (law 1).
    pub(crate) fn twin(&self, shard: Shard) -> Option<Cause> {
        let twin = self.trust().register.twin(shard);
        twin.map(|twin| self.duplicate(twin))
    }

    fn duplicate(&self, twin: usize) -> Cause {
        Cause::Duplicate(Arc::clone(self.reporter.label(twin)))
    }

    /// For how long this client has stood still in all, as far as its voters have shown it.
    // Leases are shortened by this, and the clock is not put forward. A clock that went ahead
    // would also end quarantines early, when only the clocks of some voters were set.
    pub(crate) fn stood_still(&self) -> Duration {
        Duration::from_nanos(self.stood_still.load(Ordering::Acquire))
    }

    /// The quarantine, if any, in which a shard is for requests that were sent at that moment.
    // Callers ask when they count an answer, not when it comes (law 1). In between, another hold
    // may find a vote missing, or another voter may show that this one is younger or that its
    // clock is apart. The other way round, after this client stood still, the first voter to answer
    // seems to have set its clock, until a majority shows the same step.
    pub(crate) fn quarantine(&self, shard: Shard, sent: Moment) -> Option<ShardQuarantine> {
        self.trust().register.quarantine(shard, sent)
    }

    /// The longest such quarantine of the voter's shards.
    pub(crate) fn longest_quarantine(&self, voter: usize, sent: Moment) -> Option<ShardQuarantine> {
        self.trust().register.longest_quarantine(voter, sent)
    }

    /// What a voter's answer counts for, for a new hold that asked at that moment or later. A grant
    /// is unknown if the voter is in quarantine, or if clients disagree about the voters.
    pub(crate) fn vote(&self, outcome: &Outcome<Answer>, sent: Moment) -> Vote {
        let mut vote = Vote::of(outcome);
        if let Ok(Answer { shard, .. }) = outcome
            && vote.verdict == Verdict::Granted
            && !crate::mutant!("quarantined_vote_counts")
        {
            let quarantine = self.quarantine(*shard, sent).map(ShardQuarantine::verdict);
            // A closure, as it takes another mutex, and a quarantine is reason enough.
            let apart = || self.configuration.apart(shard.voter);
            let apart = || Some(Verdict::Unknown(Cause::ConfigurationMismatch(apart()?)));
            vote.verdict = quarantine.or_else(apart).unwrap_or(Verdict::Granted);
        }
        vote
    }

    pub(crate) fn renewal_signal(&self) -> &Signal<()> {
        &self.renewal_signal
    }

    /// Changes with each new connection.
    pub(crate) fn connected(&self) -> &Signal<()> {
        &self.connected
    }

    fn show_clock(&self, voter: usize, stamp: Option<Stamp>) {
        if let Some(stamp) = stamp {
            let since = self.clock.now().since(stamp.answered);
            let wall = self.clock.wall().saturating_sub(since);
            self.series(voter).clock_ahead.set(stamp.ahead_secs(wall));
        }
    }

    /// Changes the trust, wakes the tasks that must look at once, and reports what has changed.
    fn change<T>(&self, change: impl FnOnce(&mut Trust) -> T) -> T {
        let mut trust = self.trust();
        let outcome = change(&mut trust);
        let (wakes, report) = (trust.take_wakes(), trust.next_change());
        if wakes.holds {
            let nanos = u64::try_from(trust.stood_still.as_nanos()).unwrap_or(u64::MAX);
            // Under the mutex, so before anybody counts the answer that showed the pause. A hold
            // that such an answer grants or renews must not be trusted for the time of it (law 2).
            self.stood_still.store(nanos, Ordering::Release);
        }
        drop(trust);
        // Wake-ups first, as a recorder of metrics may block this thread.
        let signals = [
            (wakes.holds, &*self.renewal_signal),
            (wakes.alarm, &*self.alarm),
            (wakes.comparison, &self.connected),
        ];
        for (_, signal) in signals.into_iter().filter(|(wakes, _)| *wakes) {
            signal.change(|()| ());
        }
        self.report(report);
        outcome
    }

    /// Reports one change, and those that other tasks leave to this one meanwhile.
    // Only one task reports at a time, so that the order stays. The others do not wait for it.
    fn report(&self, mut next: Option<Change>) {
        while let Some(change) = next {
            // A recorder that panics costs this change alone, and not the answer or the hold.
            let _ = catch_unwind(AssertUnwindSafe(|| self.reporter.report(&change)));
            next = self.trust().next_of_reporter();
        }
    }

    /// Reports the end of each quarantine, for as long as the client is there.
    // One timer for all voters. With a task for each quarantine, a clock that went to and fro made
    // a task, a warning and a count at each answer.
    fn watch_quarantines(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        // Weak, as this task must not keep a client that nobody has any more.
        let (standings, clock) = (Arc::downgrade(self), self.clock.clone());
        let alarm = Arc::clone(&self.alarm);
        async move {
            loop {
                // Before the look, so that no change comes between.
                let version = alarm.version();
                let Some(this) = standings.upgrade() else { return };
                let (at, is_retired) = {
                    let trust = this.trust();
                    (trust.next_end, trust.is_retired)
                };
                drop(this);
                if is_retired {
                    return;
                }
                tokio::select! {
                    biased;
                    () = alarm.changed_since(version) => continue,
                    Some(()) = OptionFuture::from(at.map(|at| clock.sleep_until(at))) => {}
                }
                let Some(standings) = standings.upgrade() else { return };
                standings.change(|trust| trust.look(clock.now()));
            }
        }
    }

    fn trust(&self) -> MutexGuard<'_, Trust> {
        lock(&self.trust)
    }
}

impl Drop for Standings {
    fn drop(&mut self) {
        self.retire();
    }
}

#[cfg(test)]
#[path = "standings_tests.rs"]
mod tests;
