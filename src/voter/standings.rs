//! What this client has seen of its voters: who may have forgotten votes, and whose votes count.
//!
//! One mutex spans what [`Trust`] knows, and nothing else: nothing is logged, counted or called
//! back under it. What has changed is told behind it, in the order in which it did.

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

use super::{Identity, Outcome, configuration::Configuration, lock, telling::Telling};
use crate::{
    clock::{Clock, Moment},
    proto::{
        Cause, Change, Comparison, KeptOut, Quorum, RoundTrips, Shard, Stamp, Suspicion, Trust,
        Verdict, Vote, VoterConfiguration,
    },
    scripts::Answer,
    series::VoterSeries,
    signal::Signal,
};

/// Who the voters are.
pub(crate) struct VoterLayout {
    pub(crate) labels: Vec<Arc<str>>,
    /// A number for each voter, the same for all that are parts of one cluster.
    pub(crate) clusters: Vec<usize>,
    /// Which of them are spread over the servers of a cluster.
    pub(crate) spread: Vec<bool>,
    pub(crate) quorum: Quorum,
}

/// The standing of every voter.
#[derive(Debug)]
pub(crate) struct Standings {
    trust: Mutex<Trust>,
    pub(crate) configuration: Configuration,
    telling: Arc<Telling>,
    round_trips: Vec<Mutex<RoundTrips>>,
    clock: Clock,
    /// For how long this client has stood still, in nanoseconds.
    stood_still: AtomicU64,
    /// Changes when holds are to be looked after at once: a voter has come back as another, and
    /// what it forgot is to be told again, less is left of their leases than it seemed, or this
    /// client has a configuration mismatch.
    returned: Arc<Signal<()>>,
    /// Changes with each new connection.
    connected: Signal<()>,
    /// Changes with the moment when quarantines are looked at next.
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
        let (telling, returned) =
            (Arc::new(Telling::new(labels, quorum)), Arc::new(Signal::new(())));
        let comparison = Comparison::new(configuration, quorum, spread);
        let this = Arc::new(Self {
            trust: Mutex::new(Trust::new(clusters, quorum, suspicion)),
            configuration: Configuration::new(comparison, &telling, &returned),
            telling,
            round_trips,
            clock,
            stood_still: AtomicU64::new(0),
            returned,
            connected: Signal::new(()),
            alarm: Arc::new(Signal::new(())),
        });
        this.clock.spawn(&Handle::current(), this.look_again());
        this
    }

    pub(super) fn series(&self, voter: usize) -> &VoterSeries {
        &self.telling.series[voter]
    }

    /// How long a voter took to answer so far.
    pub(super) fn round_trips(&self, voter: usize) -> MutexGuard<'_, RoundTrips> {
        lock(&self.round_trips[voter])
    }

    /// How long a voter takes to answer, once it has.
    pub(crate) fn round_trip(&self, voter: usize) -> Option<Duration> {
        self.round_trips(voter).usual()
    }

    /// How long a request to a voter may take that has this deadline, and at most the `longest`.
    pub(crate) fn allowed(&self, voter: usize, deadline: Duration, longest: Duration) -> Duration {
        self.round_trips(voter).allowed(deadline).min(longest).max(deadline)
    }

    /// A server says who it is, on a connection that `is_new` or was noted. Whether its data are to
    /// get another name.
    pub(crate) fn note_identity(
        &self,
        shard: Shard,
        identity: &Identity,
        stamp: Option<Stamp>,
        is_new: bool,
    ) -> bool {
        if is_new {
            self.configuration.comparison().note_connection(shard.voter);
        }
        if let Some(stamp) = stamp {
            // The first request is sent when this is known.
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

    /// A connection that was noted has ended; with the reason, unless this side ended it.
    pub(crate) fn note_disconnect(&self, shard: Shard, why: Option<&str>) {
        self.change(|trust| trust.note_disconnect(shard, why));
    }

    /// A voter's data moved from one of its shards to another, or was lost on the way.
    pub(crate) fn note_move(&self, from: Shard, to: Shard, lost: bool) {
        self.change(|trust| trust.note_move(from, to, lost, self.clock.now()));
    }

    /// A server answered, and mostly showed its clock, and which data it has. Fails if it is that
    /// of another voter.
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

    /// A voter has not got a vote that it gave at this time and should have. Whether it is to tell
    /// all clients.
    pub(crate) fn note_missing_vote(&self, shard: Shard, given: Moment) -> bool {
        self.change(|trust| trust.note_missing_vote(shard, given, self.clock.now()))
    }

    /// Lets the log hear of quarantines.
    pub(crate) fn speak(&self) {
        self.change(|trust| trust.speak(self.clock.now()));
    }

    /// The client is closed.
    pub(crate) fn retire(&self) {
        self.change(Trust::retire);
        self.configuration.retire();
    }

    /// Whether two voters are parts of one cluster in different sets.
    pub(crate) fn are_apart(&self, one: usize, other: usize) -> bool {
        self.trust().register.are_apart(one, other)
    }

    /// Why a voter has no vote where it is now, if that is the server of another.
    pub(crate) fn twin(&self, shard: Shard) -> Option<Cause> {
        let twin = self.trust().register.twin(shard);
        twin.map(|twin| self.duplicate(twin))
    }

    fn duplicate(&self, twin: usize) -> Cause {
        Cause::Duplicate(Arc::clone(self.telling.label(twin)))
    }

    /// For how long this client has stood still in all, as far as its voters have shown it. By so
    /// much less can be left of a lease than its clock says.
    pub(crate) fn stood_still(&self) -> Duration {
        Duration::from_nanos(self.stood_still.load(Ordering::Acquire))
    }

    /// Whether, and why, a voter's grants to requests of that moment do not count for new holds, by
    /// all that is known now.
    ///
    /// To be asked when an answer is counted, and not when it comes (law 1): what is known of a
    /// voter may change in between, by what it says to another hold (it lacks a vote that it gave)
    /// and by what other voters say: it is younger than they are, its clock is apart from theirs.
    /// It works the other way, too: where this client stood still, the first voter to answer seems
    /// to have moved its clock, until a majority shows the same step.
    pub(crate) fn kept_out(&self, shard: Shard, sent: Moment) -> Option<KeptOut> {
        self.trust().register.kept_out(shard, sent)
    }

    /// The same of that part of a voter which is kept out for longest.
    pub(crate) fn kept_out_longest(&self, voter: usize, sent: Moment) -> Option<KeptOut> {
        self.trust().register.kept_out_longest(voter, sent)
    }

    /// A voter's vote, as it counts for a new hold that asked at that moment or later: a grant
    /// counts for nothing where the voter may have forgotten whose its vote was. Nor does it where
    /// clients disagree about the voters: a client whose configuration differs with those of one
    /// voter may be with those of others that it does not share a voter with.
    pub(crate) fn vote(&self, outcome: &Outcome<Answer>, sent: Moment) -> Vote {
        let mut vote = Vote::of(outcome);
        if let Ok(Answer { shard, .. }) = outcome
            && vote.verdict == Verdict::Granted
            && !crate::mutant!("quarantined_vote_counts")
        {
            let kept_out = self.kept_out(*shard, sent).map(KeptOut::verdict);
            let apart = || self.configuration.apart(shard.voter);
            let apart = || Some(Verdict::Unknown(Cause::ConfigurationMismatch(apart()?)));
            vote.verdict = kept_out.or_else(apart).unwrap_or(Verdict::Granted);
        }
        vote
    }

    pub(crate) fn returned(&self) -> &Signal<()> {
        &self.returned
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

    /// Changes what is known, wakes who is to look at once, and tells what has changed.
    fn change<T>(&self, change: impl FnOnce(&mut Trust) -> T) -> T {
        let mut trust = self.trust();
        let outcome = change(&mut trust);
        let (wakes, news) = (trust.take_wakes(), trust.tell());
        if wakes.holds {
            let nanos = u64::try_from(trust.stood_still.as_nanos()).unwrap_or(u64::MAX);
            // Before any answer counts that shows it (law 2).
            self.stood_still.store(nanos, Ordering::Release);
        }
        drop(trust);
        let signals = [
            (wakes.holds, &*self.returned),
            (wakes.alarm, &*self.alarm),
            (wakes.comparison, &self.connected),
        ];
        for (_, signal) in signals.into_iter().filter(|(wakes, _)| *wakes) {
            signal.change(|()| ());
        }
        if let Some(news) = news {
            self.tell(news);
        }
        outcome
    }

    /// Tells one change, and what others leave to this meanwhile.
    fn tell(&self, first: Change) {
        let mut next = Some(first);
        while let Some(change) = next {
            // A recorder that panics ends nothing else.
            let _ = catch_unwind(AssertUnwindSafe(|| self.telling.tell(&change)));
            next = self.trust().tell_more();
        }
    }

    /// Looks at the quarantines whenever one of them ends, for as long as the client is there.
    fn look_again(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        let (standings, clock) = (Arc::downgrade(self), self.clock.clone());
        let alarm = Arc::clone(&self.alarm);
        async move {
            loop {
                let seen = alarm.version();
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
                    () = alarm.changed_since(seen) => continue,
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
