//! What this client has seen of its voters: who may have forgotten votes.

use std::{
    collections::BTreeSet,
    mem,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::future::OptionFuture;
use tokio::runtime::Handle;

use super::{Identity, Outcome, lock};
use crate::{
    clock::{Clock, Moment},
    log,
    proto::{
        Cause, Data, KeptOut, Place, Quarantined, Quorum, Register, RoundTrips, Rounded, Shown,
        Stamp, Suspicion, Verdict, Vote,
    },
    scripts::Answer,
    series::{Series, VoterSeries},
    signal::Signal,
};

/// Who the voters are.
pub(crate) struct Cast {
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
    labels: Vec<Arc<str>>,
    pub(super) series: Vec<VoterSeries>,
    round_trips: Vec<Mutex<RoundTrips>>,
    clock: Clock,
    state: Mutex<StandingsState>,
    /// For how long this client has stood still, in nanoseconds.
    stood_still: AtomicU64,
    /// Changes when holds are to be looked after at once: a voter has come back as another, and
    /// what it forgot is to be told again, less is left of their leases than it seemed, or this
    /// client is out of step.
    returned: Signal<()>,
    /// Changes with each new connection.
    connected: Signal<()>,
    alarm: Arc<Signal<Alarm>>,
}

/// When quarantines are looked at next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alarm {
    Off,
    /// The first of them ends.
    At(Moment),
    /// Never: the client is closed. Its share of what is counted of all clients has been taken back.
    Retired,
}

#[derive(Debug)]
struct StandingsState {
    register: Register,
    quorum: Quorum,
    voters: Vec<VoterState>,
    /// Whether a majority is connected, as the log was told last; nothing until it was.
    has_quorum: Option<bool>,
    /// Whether a voter counts only where its roster was compared, and what came of it.
    compares: bool,
    /// The log is to be told of quarantines later: what else is wrong with the voters is to be told
    /// first.
    is_quiet: bool,
}

/// What the log and the metrics were told of a voter, and what its clients believe.
#[derive(Debug, Default)]
struct VoterState {
    /// How many connections there have been, and how many stand.
    connections: u64,
    connected: usize,
    /// The shards that lost their connection and have no new one yet.
    lost: BTreeSet<usize>,
    /// Those that take no new votes, by what was last heard of them.
    refusing: BTreeSet<usize>,
    /// Until when its quarantine goes on, and for which reasons so far: each is told once.
    quarantined: Option<Moment>,
    reasons: BTreeSet<&'static str>,
    /// On the latest connection it was told what this client believes of the voters, and nobody
    /// believes otherwise.
    is_compared: bool,
    /// It is a part of a cluster, where what clients believe is on one of its servers: with that
    /// one down, the others would have no vote.
    is_spread: bool,
    /// What clients believe that clashes with that.
    clash: Option<Arc<str>>,
}

/// Whether a client counts a voter in a gauge to which all clients add: before, and from now on.
/// Recorders are told of it when no mutex is held.
#[derive(Clone, Copy, Debug)]
#[must_use = "the gauge is to be told of it"]
struct Shift {
    before: bool,
    after: bool,
}

impl Shift {
    fn tell(self, gauge: &Series) {
        gauge.change(f64::from(u8::from(self.after)) - f64::from(u8::from(self.before)));
    }
}

/// What recorders are told of a voter's quarantine.
struct QuarantineChange {
    voter: usize,
    shift: Shift,
    /// The reason, where it has not been told.
    begun: Option<&'static str>,
}

impl Standings {
    /// To be called on the client's runtime.
    pub(crate) fn new(cast: Cast, clock: Clock, suspicion: Suspicion) -> Arc<Self> {
        let Cast { labels, clusters, spread, quorum } = cast;
        let register = Register::new(clusters, quorum, suspicion);
        let series: Vec<_> = labels.iter().map(VoterSeries::new).collect();
        series.iter().for_each(VoterSeries::begin);
        let round_trips = labels.iter().map(|_| Mutex::default()).collect();
        let voter = |is_spread| VoterState { is_spread, ..VoterState::default() };
        let voters = spread.into_iter().map(voter).collect();
        let (has_quorum, compares, is_quiet) = (None, false, true);
        let state = StandingsState { register, quorum, voters, has_quorum, compares, is_quiet };
        let this = Arc::new(Self {
            labels,
            series,
            round_trips,
            clock,
            state: Mutex::new(state),
            stood_still: AtomicU64::new(0),
            returned: Signal::new(()),
            connected: Signal::new(()),
            alarm: Arc::new(Signal::new(Alarm::Off)),
        });
        this.clock.spawn(&Handle::current(), this.look_again());
        this
    }

    fn label(&self, voter: usize) -> Arc<str> {
        Arc::clone(&self.labels[voter])
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

    /// A server says who it is, on a new connection. Whether its data are to get another name.
    pub(crate) fn met(&self, place: Place, identity: &Identity, stamp: Option<Stamp>) -> bool {
        self.series[place.voter].connections.change(1.0);
        let (label, shard) = (self.label(place.voter), place.shard);
        let (run_id, age) = (identity.run_id.clone(), identity.age);
        {
            let mut state = self.state();
            // The end of what was a warning is one too: `connect` has warned of voters that it did
            // not reach before it let the log speak.
            let is_late = !state.is_quiet && state.voters[place.voter].connections == 0;
            let voter = &mut state.voters[place.voter];
            if voter.lost.remove(&shard) || is_late {
                log::tell(move || {
                    tracing::warn!(voter = %label, shard, run_id, ?age, "connected");
                });
            } else {
                log::tell(move || {
                    tracing::info!(voter = %label, shard, run_id, ?age, "connected");
                });
            }
            voter.connections += 1;
            voter.connected += 1;
            // Perhaps others have come meanwhile, or it is another server.
            voter.is_compared = false;
            if state.is_connected() && state.has_quorum.replace(true) == Some(false) {
                self.log_quorum(&state, true);
            }
        }
        let has_lost = self.seen(place, identity, stamp);
        self.connected.change(|()| ());
        has_lost
    }

    /// A server says who it is, on a new connection or again. Whether its data are to get another
    /// name.
    pub(crate) fn seen(&self, place: Place, identity: &Identity, stamp: Option<Stamp>) -> bool {
        let voter = place.voter;
        let Identity { run_id, birth, age, durable, overlap, memory, .. } = identity;
        let mut state = self.state();
        let now = self.clock.now();
        let before = state.register.twin(place);
        state.register.follows(place, *overlap);
        let returned = state.register.met(place, run_id, *age, *durable, now);
        let data = birth
            .as_ref()
            .map_or(Data::Kept, |birth| state.register.named(place, birth, returned, now));
        let twin = state.register.twin(place);
        let was_twin = before.is_some() && twin.is_none();
        let twin = twin.filter(|twin| before != Some(*twin));
        if let Some(stamp) = stamp {
            // The first request is sent when this is known.
            self.round_trips(voter).answered(stamp.answered.since(stamp.asked));
            self.compare(&mut state, place, stamp);
        }
        let refusing = self.note_refusal(&mut state, place, identity.refuses.as_ref(), false);
        let changes = self.note_quarantines(&mut state);
        let is_another = returned || data != Data::Kept;
        if is_another {
            let (voter, durable) = (self.label(voter), *durable);
            log::tell(move || {
                tracing::info!(%voter, durable, ?data, "a voter came back as another");
            });
        }
        self.log_twin(voter, twin, was_twin);
        drop(state);
        if is_another {
            self.returned.change(|()| ());
        }
        let series = &self.series[voter];
        refusing.tell(&series.refusing);
        self.count(&changes);
        if let Some(thousandths) = memory {
            series.memory.set(f64::from(*thousandths) / 1000.0);
        }
        if let Some(stamp) = stamp {
            self.show_clock(voter, stamp);
        }
        data.need_a_name()
    }

    /// Says that a voter is the server of another, or is so no more.
    fn log_twin(&self, voter: usize, twin: Option<usize>, was_twin: bool) {
        let (voter, twin) = (self.label(voter), twin.map(|twin| self.label(twin)));
        if let Some(twin) = twin {
            log::tell(move || {
                tracing::error!(%voter, %twin, "two voters are one server: one vote less");
            });
        } else if was_twin {
            log::tell(move || tracing::warn!(%voter, "the voter is a server of its own again"));
        }
    }

    /// A voter has not got a vote that it gave at this time and should have. Whether it is to tell
    /// all clients.
    pub(crate) fn lacks_vote(&self, place: Place, given: Moment) -> bool {
        let mut state = self.state();
        let news = state.register.lacks_vote(place, given, self.clock.now());
        self.tell(state);
        news
    }

    /// Whether a part of a voter takes new votes, as it says itself; it does not matter where it
    /// `parted`.
    fn note_refusal(
        &self,
        state: &mut StandingsState,
        place: Place,
        why: Option<&Arc<str>>,
        parted: bool,
    ) -> Shift {
        let (voter, shard) = (self.label(place.voter), place.shard);
        let shards = &mut state.voters[place.voter].refusing;
        let before = !shards.is_empty();
        if self.is_retired() {
            return Shift { before, after: before };
        }
        match why.cloned() {
            Some(why) if shards.insert(shard) => {
                log::tell(move || {
                    tracing::warn!(%voter, shard, %why, "the voter takes no new votes");
                });
            }
            None if shards.remove(&shard) && !parted => {
                log::tell(move || {
                    tracing::warn!(%voter, shard, "the voter takes new votes again");
                });
            }
            _ => {}
        }
        Shift { before, after: !shards.is_empty() }
    }

    /// Says how many voters are connected, and which are not.
    fn log_quorum(&self, StandingsState { quorum, voters, .. }: &StandingsState, has_one: bool) {
        let missing = self.labels.iter().zip(voters).filter(|(_, voter)| voter.connected == 0);
        let missing: Vec<&str> = missing.map(|(label, _)| &**label).collect();
        let (answering, missing) = (voters.len() - missing.len(), missing.join(", "));
        let (voters, needed) = (quorum.voters(), quorum.needed());
        let has_none = "no quorum: no lock is given or renewed";
        let told = if has_one { "the quorum is back" } else { has_none };
        log::tell(move || tracing::warn!(answering, %needed, voters, %missing, "{told}"));
    }

    /// Whether two voters are parts of one cluster in different sets.
    pub(crate) fn are_apart(&self, one: usize, other: usize) -> bool {
        self.state().register.are_apart(one, other)
    }

    /// Why a voter has no vote where it is now, if that is the server of another.
    pub(crate) fn twin(&self, place: Place) -> Option<Cause> {
        self.duplicate(&self.state(), place)
    }

    fn duplicate(&self, state: &StandingsState, place: Place) -> Option<Cause> {
        let twin = state.register.twin(place)?;
        Some(Cause::Duplicate(Arc::clone(&self.labels[twin])))
    }

    /// A connection of which was told has ended.
    pub(crate) fn parted(&self, place: Place, why: Option<&str>) {
        let mut state = self.state();
        state.register.parted(place);
        // It is asked again before it is a voter again.
        let refusing = self.note_refusal(&mut state, place, None, true);
        let (voter, shard) = (self.label(place.voter), place.shard);
        if let Some(why) = why.map(str::to_owned) {
            state.voters[place.voter].lost.insert(shard);
            log::tell(move || tracing::warn!(%voter, shard, why, "connection lost"));
        } else {
            log::tell(move || tracing::info!(%voter, shard, "connection closed"));
        }
        let connected = &mut state.voters[place.voter].connected;
        *connected = connected.saturating_sub(1);
        // Where this side ends the connections, nothing is missing.
        if why.is_some() && state.has_quorum == Some(true) && !state.is_connected() {
            state.has_quorum = Some(false);
            self.log_quorum(&state, false);
        }
        drop(state);
        let series = &self.series[place.voter];
        refusing.tell(&series.refusing);
        series.connections.change(-1.0);
    }

    /// A voter's data moved from one of its shards to another, or was lost on the way.
    pub(crate) fn moved(&self, from: Place, to: Place, lost: bool) {
        let mut state = self.state();
        state.register.moved(from, to, lost, self.clock.now());
        self.tell(state);
        let (voter, from, to) = (self.label(to.voter), from.shard, to.shard);
        log::tell(move || tracing::debug!(%voter, from, to, lost, "hash slots have moved"));
        if lost {
            self.returned.change(|()| ());
        }
    }

    /// A server answered, and mostly showed its clock, and which data it has. Fails if it is that
    /// of another voter.
    pub(crate) fn answered(
        &self,
        place: Place,
        at: Moment,
        stamp: Option<Stamp>,
        data: Option<&str>,
    ) -> Result<(), Cause> {
        let mut state = self.state();
        if let Some(twin) = self.duplicate(&state, place) {
            return Err(twin);
        }
        let emptied = data.is_some_and(|data| state.register.has_others(place, data, at));
        let moved = stamp.is_some_and(|stamp| self.compare(&mut state, place, stamp));
        if emptied || moved {
            self.tell(state);
        } else {
            drop(state);
        }
        if emptied {
            // Who had its vote is to have it again.
            self.returned.change(|()| ());
        }
        if let Some(stamp) = stamp {
            self.show_clock(place.voter, stamp);
        }
        Ok(())
    }

    /// Compares a voter's clock with this client's; whether that changes who is in quarantine.
    fn compare(&self, state: &mut StandingsState, place: Place, stamp: Stamp) -> bool {
        let shown = state.register.stamped(place, stamp);
        if let Shown::StoodStill(by) = shown {
            log::tell(move || tracing::warn!(?by, "this machine stood still: leases end sooner"));
            let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
            // Before any answer counts that shows it (law 2).
            self.stood_still.fetch_add(nanos, Ordering::AcqRel);
            // Every deadline has come nearer: holders renew, or learn that theirs has passed.
            self.returned.change(|()| ());
        }
        shown != Shown::Expected
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
    pub(crate) fn kept_out(&self, place: Place, sent: Moment) -> Option<KeptOut> {
        self.state().register.kept_out(place, sent)
    }

    /// The same of that part of a voter which is kept out for longest.
    pub(crate) fn kept_out_longest(&self, voter: usize, sent: Moment) -> Option<KeptOut> {
        self.state().register.kept_out_longest(voter, sent)
    }

    pub(crate) fn returned(&self) -> &Signal<()> {
        &self.returned
    }

    fn show_clock(&self, voter: usize, stamp: Stamp) {
        let since = self.clock.now().since(stamp.answered);
        let wall = self.clock.wall().saturating_sub(since);
        self.series[voter].clock_ahead.set(stamp.ahead_secs(wall));
    }

    /// Tells the log and the metrics which quarantines have begun or ended.
    fn tell(&self, mut state: MutexGuard<'_, StandingsState>) {
        let changes = self.note_quarantines(&mut state);
        drop(state);
        self.count(&changes);
    }

    /// Tells the log which quarantines have begun or ended, and sees to it that the next end is
    /// noticed. Returns what recorders are to be told.
    fn note_quarantines(&self, state: &mut StandingsState) -> Vec<QuarantineChange> {
        let (mut changes, now) = (Vec::new(), self.clock.now());
        let StandingsState { register, voters, is_quiet, .. } = state;
        if self.is_retired() {
            return changes;
        }
        for (voter, VoterState { quarantined, reasons, .. }) in voters.iter_mut().enumerate() {
            let kept_out = register.kept_out_longest(voter, now).map(|it| it.quarantined);
            let until = kept_out.map(|kept_out| now + kept_out.left);
            if until == *quarantined {
                continue;
            }
            let before = mem::replace(quarantined, until).is_some();
            let mut begun = None;
            if let Some(kept_out) = kept_out {
                // Once each, also where a pause of the client hid it for a moment.
                begun = Some(kept_out.why.reason()).filter(|reason| reasons.insert(*reason));
                if begun.is_some() && !*is_quiet {
                    self.log_quarantine(voter, kept_out);
                }
            } else {
                reasons.clear();
                if !*is_quiet {
                    self.log_end_of_quarantine(voter);
                }
            }
            let shift = Shift { before, after: until.is_some() };
            changes.push(QuarantineChange { voter, shift, begun });
        }
        let next = voters.iter().filter_map(|voter| voter.quarantined).min();
        let next = next.map_or(Alarm::Off, Alarm::At);
        if self.alarm.read(|alarm| *alarm != next) {
            self.alarm.change(|alarm| *alarm = next);
        }
        changes
    }

    fn count(&self, changes: &[QuarantineChange]) {
        for QuarantineChange { voter, shift, begun } in changes {
            let series = &self.series[*voter];
            shift.tell(&series.quarantined);
            if let Some(reason) = begun {
                series.quarantines.of(reason).count(1);
            }
        }
    }

    fn log_quarantine(&self, voter: usize, Quarantined { why, left }: Quarantined) {
        let (voter, ends_in) = (self.label(voter), Rounded(left));
        log::tell(move || {
            tracing::warn!(
                %voter, %why, %ends_in,
                "voter in quarantine: its votes count for no new lock"
            );
        });
    }

    fn log_end_of_quarantine(&self, voter: usize) {
        let voter = self.label(voter);
        log::tell(move || {
            tracing::warn!(%voter, "quarantine over: the voter's votes count for new locks");
        });
    }

    /// Lets the log hear of quarantines: of those that have begun, and from now on of each. It does
    /// not before, because a client that is given one server twice has another trouble.
    pub(crate) fn speak(&self) {
        let (mut state, now) = (self.state(), self.clock.now());
        state.is_quiet = false;
        for voter in 0..self.labels.len() {
            if let Some(kept_out) = state.register.kept_out_longest(voter, now) {
                self.log_quarantine(voter, kept_out.quarantined);
            }
        }
    }

    /// Looks at the quarantines whenever one of them ends, for as long as the client is there.
    fn look_again(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        let (standings, clock) = (Arc::downgrade(self), self.clock.clone());
        let alarm = Arc::clone(&self.alarm);
        async move {
            loop {
                let seen = alarm.version();
                let at = match alarm.read(|alarm| *alarm) {
                    Alarm::Off => None,
                    Alarm::At(at) => Some(at),
                    Alarm::Retired => return,
                };
                tokio::select! {
                    biased;
                    () = alarm.changed_since(seen) => continue,
                    Some(()) = OptionFuture::from(at.map(|at| clock.sleep_until(at))) => {}
                }
                let Some(standings) = standings.upgrade() else { return };
                standings.tell(standings.state());
            }
        }
    }

    fn is_retired(&self) -> bool {
        self.alarm.read(|alarm| *alarm == Alarm::Retired)
    }

    /// The client is closed.
    pub(crate) fn retire(&self) {
        let mut state = self.state();
        if self.is_retired() {
            return;
        }
        self.alarm.change(|alarm| *alarm = Alarm::Retired);
        let counted = |voter: &mut VoterState| {
            let is_refusing = !mem::take(&mut voter.refusing).is_empty();
            [voter.quarantined.take().is_some(), is_refusing, voter.clash.take().is_some()]
        };
        let counted: Vec<_> = state.voters.iter_mut().map(counted).collect();
        drop(state);
        for (series, before) in self.series.iter().zip(counted) {
            series.clients.change(-1.0);
            let gauges = [&series.quarantined, &series.refusing, &series.out_of_step];
            for (gauge, before) in gauges.into_iter().zip(before) {
                Shift { before, after: false }.tell(gauge);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, StandingsState> {
        lock(&self.state)
    }
}

impl Drop for Standings {
    fn drop(&mut self) {
        self.retire();
    }
}

// Voters whose clients believe otherwise of the voters than this one, or have not been asked.

impl Standings {
    /// A voter's vote, as it counts for a new hold that asked at that moment or later: a grant
    /// counts for nothing where the voter may have forgotten whose its vote was. Nor does it where
    /// clients disagree about the voters: a client that is out of step with those of one voter may
    /// be with those of others that it does not share a voter with.
    pub(crate) fn vote(&self, outcome: &Outcome<Answer>, sent: Moment) -> Vote {
        let mut vote = Vote::of(outcome);
        if let Ok(Answer { place, .. }) = outcome
            && vote.verdict == Verdict::Granted
            && !crate::mutant!("quarantined_vote_counts")
        {
            let state = self.state();
            let kept_out = state.register.kept_out(*place, sent).map(KeptOut::verdict);
            let apart = || Some(Verdict::Unknown(Cause::OutOfStep(state.apart(place.voter)?)));
            vote.verdict = kept_out.or_else(apart).unwrap_or(Verdict::Granted);
        }
        vote
    }

    /// From now on only voters count whose roster was compared.
    pub(crate) fn count_compared_only(&self) {
        self.state().compares = true;
    }

    /// Changes with each new connection.
    pub(crate) fn connected(&self) -> &Signal<()> {
        &self.connected
    }

    /// How many connections to a voter there have been.
    pub(crate) fn connections(&self, voter: usize) -> u64 {
        self.state().voters[voter].connections
    }

    /// What came of a comparison that began when there had been so many connections. `is_told`: the
    /// voter keeps what this client believes. `why`: what its clients believe otherwise.
    pub(crate) fn note_step(
        &self,
        voter: usize,
        connections: u64,
        is_told: bool,
        why: Option<Arc<str>>,
    ) {
        let mut state = self.state();
        if self.is_retired() {
            return;
        }
        let step = &mut state.voters[voter];
        step.is_compared = is_told && step.connections == connections;
        let before = mem::replace(&mut step.clash, why.clone());
        drop(state);
        let shift = Shift { before: before.is_some(), after: why.is_some() };
        shift.tell(&self.series[voter].out_of_step);
        let voter = self.label(voter);
        match (before, why) {
            (None, Some(why)) => {
                log::tell(move || {
                    tracing::error!(%voter, %why, "clients disagree about the voters: no locks");
                });
                self.returned.change(|()| ());
            }
            (Some(_), None) => {
                log::tell(move || tracing::warn!(%voter, "clients agree about the voters again"));
            }
            _ => {}
        }
    }

    /// Why a voter does not count, if it is because of what clients believe of the voters.
    pub(crate) fn apart(&self, voter: usize) -> Option<Arc<str>> {
        self.state().apart(voter)
    }

    /// What clients of any voter believe of the voters that clashes with what this one does.
    pub(crate) fn out_of_step(&self) -> Option<Arc<str>> {
        self.state().out_of_step()
    }
}

impl StandingsState {
    /// Whether the connected voters are a majority.
    fn is_connected(&self) -> bool {
        self.quorum.reached(|voter| self.voters[voter].connected > 0)
    }

    fn out_of_step(&self) -> Option<Arc<str>> {
        self.voters.iter().find_map(|voter| voter.clash.clone())
    }

    fn apart(&self, voter: usize) -> Option<Arc<str>> {
        let VoterState { is_compared, is_spread, .. } = self.voters[voter];
        let unknown = self.compares && !is_compared && !is_spread;
        let unknown = unknown.then(|| "not yet compared with its other clients".into());
        self.out_of_step().or(unknown)
    }
}

#[cfg(test)]
#[path = "standings_tests.rs"]
mod tests;
