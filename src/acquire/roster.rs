//! Whether the clients of the same voters agree about who these are.
//!
//! The first comparison only asks. A client says what it believes once a majority of each set of
//! voters was heard of late and nobody believes otherwise: so one that is refused leaves nothing
//! behind, and one of both sets that does not reach the new voters says nothing to the old ones.

use std::{sync::Arc, time::Duration};

use futures::future::OptionFuture;

use super::{Coordinator, Panel};
use crate::{
    clock::{Clock, Moment},
    keys::Word,
    proto::{Belief, Cause, Error, Kind, RestartGuard, RosterEntry, Rounded, Verdict},
    scripts::{Answer, voter},
    voter::{Call, Outcome, Replies, Request, Standings},
};

/// Between two comparisons with a voter.
const INTERVAL: Duration = Duration::from_secs(15);
/// And where it did not answer.
const AGAIN: Duration = Duration::from_millis(500);
/// How long a client that connects waits for a voter beside a majority, if that one stands ready
/// and is silent.
const PATIENCE: Duration = Duration::from_secs(1);
/// How much later a client may hear that another one was there: it may be there for as long again
/// after it said so, and what it said is carried to other voters with two more comparisons.
const LATE: Duration = INTERVAL.saturating_mul(3);
/// For how long voters keep what clients believe.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);

/// What goes on with all voters.
struct Comparing {
    clock: Clock,
    standings: Arc<Standings>,
    replies: Replies,
    voters: Vec<Comparison>,
    /// A majority was heard before anything was said: who is refused leaves nothing behind.
    has_looked: bool,
}

/// What goes on with one voter.
struct Comparison {
    /// When it is asked next.
    due: Moment,
    /// How many connections to it there had been when it was last asked.
    connections: u64,
    is_asked: bool,
    /// The last question said what this client believes.
    is_told: bool,
    /// What it had when it was last heard.
    heard: Option<(Moment, Vec<RosterEntry>)>,
    /// Why it was not heard since.
    silent: Option<Cause>,
}

impl Comparing {
    fn new(clock: &Clock, panel: &Panel) -> Self {
        let due = clock.now();
        let one = |_| Comparison {
            due,
            connections: 0,
            is_asked: false,
            is_told: false,
            heard: None,
            silent: None,
        };
        let voters: Vec<_> = (0..panel.voters.len()).map(one).collect();
        let (replies, standings) = (Replies::new(voters.len(), 1), Arc::clone(&panel.standings));
        Self { clock: clock.clone(), standings, replies, voters, has_looked: false }
    }

    /// The next answer; `None` where something else is to be done. `asks`: wakes up also when it is
    /// a voter's turn to be asked.
    async fn next(
        &mut self,
        seen: u64,
        asks: bool,
        limit: Option<Moment>,
    ) -> Option<(usize, Outcome<Answer>)> {
        let Self { clock, standings, replies, voters, .. } = self;
        let waiting = voters.iter().filter(|voter| asks && !voter.is_asked);
        let due = waiting.map(|voter| voter.due).chain(limit).min();
        tokio::select! {
            biased;
            heard = replies.next() => Some(heard),
            () = standings.connected().changed_since(seen) => None,
            Some(()) = OptionFuture::from(due.map(|due| clock.sleep_until(due))) => None,
        }
    }

    fn is_idle(&self) -> bool {
        self.voters.iter().all(|voter| !voter.is_asked)
    }

    /// Whether a connected voter did not answer: perhaps its roster clashes.
    fn is_unclear(&self) -> bool {
        self.voters.iter().any(|voter| {
            let is_silent = matches!(voter.silent, Some(Cause::TimedOut(_) | Cause::Broken(_)));
            is_silent && voter.connections > 0
        })
    }

    /// What the other voters said, for one that may have other clients.
    fn carried(&self, to: usize, now: Moment) -> String {
        let others = self.voters.iter().enumerate().filter(|(voter, _)| *voter != to);
        let heard = others.filter_map(|(_, voter)| voter.heard.as_ref());
        heard
            .flat_map(|(at, entries)| entries.iter().map(|entry| entry.told(now.since(*at))))
            .collect()
    }
}

impl Coordinator {
    /// What this client believes.
    fn belief(&self) -> Belief {
        let Self { settings, panel, .. } = self;
        let mut sets = panel.quorum.each().map(|(_, set)| set.len());
        Belief {
            number: settings.roster(),
            voters: sets.next().unwrap_or(0),
            replaced: sets.next(),
            longest_lease: settings.longest_lease(),
            drift_ppm: settings.drift.ppm,
            drift_fixed: settings.drift.fixed,
            restart_guard: settings.restart_guard != RestartGuard::Off,
        }
    }

    /// Compares for the first time, by `due`; then again and again, for as long as the client
    /// lives. Fails if a voter has clients that believe otherwise, and if too few can be asked.
    pub(crate) async fn join_roster(self: &Arc<Self>, due: Moment) -> Result<(), Error> {
        if self.settings.only_looks {
            return Ok(());
        }
        let Self { panel, clock, .. } = &**self;
        let (started, standings) = (clock.now(), Arc::clone(&panel.standings));
        standings.count_compared_only();
        let mut comparing = Comparing::new(clock, panel);
        let mut is_over = false;
        loop {
            let seen = standings.connected().version();
            if !is_over {
                self.ask_rosters(&mut comparing);
            }
            if let Some(why) = standings.out_of_step() {
                return Err(Error::new(Kind::OutOfStep(why.to_string()), Vec::new()));
            }
            is_over = clock.now() >= due;
            let is_patient = !is_over && clock.now().since(started) < PATIENCE;
            if comparing.is_idle() && !(is_patient && comparing.is_unclear()) {
                // Parts of a cluster are in step before this client says anything to them.
                if !comparing.has_looked && self.reaches(&comparing) {
                    (comparing.has_looked, is_over) = (true, false);
                    continue;
                }
                if panel.quorum.reached(|voter| standings.apart(voter).is_none()) {
                    break;
                }
                if is_over {
                    return Err(self.not_compared(comparing, started));
                }
            }
            let limit = (!is_over).then_some(due);
            if let Some((voter, outcome)) = comparing.next(seen, !is_over, limit).await {
                self.hear_roster(&mut comparing, voter, &outcome);
            }
        }
        let (coordinator, closing) = (Arc::downgrade(self), Arc::clone(self.gate.closing()));
        self.spawn(async move {
            loop {
                let seen = standings.connected().version();
                let Some(this) = coordinator.upgrade() else { return };
                comparing.has_looked |= this.reaches(&comparing);
                this.ask_rosters(&mut comparing);
                drop(this);
                let heard = tokio::select! {
                    biased;
                    // Or the client is dropped. Nothing is compared any more once it is closed.
                    () = closing.until(|closing| *closing) => return,
                    heard = comparing.next(seen, true, None) => heard,
                };
                let Some((voter, outcome)) = heard else { continue };
                let Some(this) = coordinator.upgrade() else { return };
                this.hear_roster(&mut comparing, voter, &outcome);
            }
        });
        Ok(())
    }

    fn not_compared(&self, comparing: Comparing, started: Moment) -> Error {
        let verdicts = comparing.voters.into_iter().map(|voter| match voter.silent {
            Some(cause) => Verdict::Unknown(cause),
            None => Verdict::Reached,
        });
        let verdicts = verdicts.collect();
        let (needed, after) = (self.panel.quorum.needed(), self.clock.now().since(started));
        Error::new(Kind::Connect { needed, after }, self.panel.report(verdicts))
    }

    /// Whether a majority was heard of late. A client of both sets whose new voters do not answer
    /// says nothing to the old ones: it does not know what clients of the new voters believe.
    fn reaches(&self, comparing: &Comparing) -> bool {
        let now = self.clock.now();
        self.panel.quorum.reached(|voter| {
            let heard = comparing.voters[voter].heard.as_ref();
            heard.is_some_and(|(at, _)| now.since(*at) <= INTERVAL * 2)
        })
    }

    /// Asks the voters whose turn it is, and those with a new connection. Says what this client
    /// believes unless it is out of step.
    fn ask_rosters(&self, comparing: &mut Comparing) {
        let Self { panel, clock, .. } = self;
        let (now, is_joint) = (clock.now(), panel.quorum.is_joint());
        let tells = comparing.has_looked
            && panel.standings.out_of_step().is_none()
            && self.reaches(comparing);
        for voter in 0..panel.voters.len() {
            let connections = panel.standings.connections(voter);
            let it = &comparing.voters[voter];
            let is_new = it.connections != connections;
            let is_news = is_new || tells && !it.is_told && it.silent.is_none();
            if it.is_asked || now < it.due && !is_news {
                continue;
            }
            let heard = if is_joint { comparing.carried(voter, now) } else { String::new() };
            let call = self.roster_call(tells, &heard);
            panel.ask_again(&mut comparing.replies, &[voter], &call, now);
            let it = &mut comparing.voters[voter];
            (it.is_asked, it.is_told, it.connections) = (true, tells, connections);
        }
    }

    fn hear_roster(&self, comparing: &mut Comparing, voter: usize, outcome: &Outcome<Answer>) {
        let Self { panel, clock, .. } = self;
        let (it, now) = (&mut comparing.voters[voter], clock.now());
        it.is_asked = false;
        match entries(outcome) {
            Ok(entries) => {
                let clash = entries.iter().find(|entry| entry.clashes);
                let why = clash.map(|entry| self.told(panel.voters[voter].label(), entry).into());
                let is_told = it.is_told && why.is_none();
                panel.standings.note_step(voter, it.connections, is_told, why);
                (it.due, it.heard, it.silent) = (now + INTERVAL, Some((now, entries)), None);
            }
            Err(cause) => (it.due, it.is_told, it.silent) = (now + AGAIN, false, Some(cause)),
        }
    }

    /// What each side believes, and what to do.
    fn told(&self, voter: &str, other: &RosterEntry) -> String {
        let (mine, theirs) = (self.belief(), other.belief());
        let Belief { number, voters, replaced, .. } = theirs.unwrap_or_default();
        let advice = if theirs != Some(Belief { number, voters, replaced, ..mine }) {
            "all clients need the same longest lease, drift and restart guard, and releases with \
             the same records"
        } else if mine.number.abs_diff(number) <= 1 && mine.voters != voters {
            "all clients must have the same voters; to change them, put clients in between that \
             replace the old voters by the new"
        } else {
            "all clients must have the voters of the same step, or of the next"
        };
        let is_ahead = theirs.is_some_and(|theirs| theirs.step() > mine.step() + 1);
        let back = if is_ahead { " and with clients in between that have both sets" } else { "" };
        let left = Rounded(self.counts().max(other.counts).saturating_sub(other.seen));
        format!(
            "this client is out of step with others of voter {voter}: it has {mine}; others have \
             {other}; {advice}; this one is let in after {left} without the others{back}"
        )
    }

    /// What clients of these voters believe; the latest first.
    pub(crate) async fn roster(&self) -> Vec<RosterEntry> {
        let now = self.clock.now();
        let mut replies = self.panel.ask_all(&self.roster_call(false, ""), now);
        let due = now + self.voter_deadline();
        let mut all: Vec<RosterEntry> = Vec::new();
        while replies.are_open() {
            let Some((_, outcome)) = self.clock.in_time(due, replies.next()).await else { break };
            for entry in entries(&outcome).unwrap_or_default() {
                let Some(known) = all.iter_mut().find(|known| known.text == entry.text) else {
                    all.push(entry);
                    continue;
                };
                let clashes = known.clashes || entry.clashes;
                if entry.seen < known.seen {
                    *known = entry;
                }
                known.clashes = clashes;
            }
        }
        all.sort_by_key(|entry| entry.seen);
        all
    }

    /// For how long after this client was there others must agree with it.
    fn counts(&self) -> Duration {
        self.settings.longest_lease() + LATE
    }

    /// `tells`: the voter keeps what this client believes, if it agrees with others.
    fn roster_call(&self, tells: bool, heard: &str) -> Call {
        let who = if tells { self.client().to_string() } else { String::new() };
        let mine = self.belief().text();
        let counts = self.counts().as_millis().to_string();
        let args = [&*mine, &*counts, &*who, heard].map(Word::from);
        let request = Request::new([Word::from(&self.settings.keys.roster())], args, None);
        let deadline = self.voter_deadline();
        Call {
            script: &voter::ROSTER,
            shared: [KEPT.as_millis().to_string().into()].into(),
            requests: [request].into(),
            deadline,
            longest: deadline,
        }
    }
}

/// The beliefs in a voter's answer.
fn entries(outcome: &Outcome<Answer>) -> Outcome<Vec<RosterEntry>> {
    let answer = outcome.as_ref().map_err(Cause::clone)?;
    let entries = answer.text().and_then(|text| text.lines().map(RosterEntry::read).collect());
    entries.ok_or_else(|| answer.unexpected())
}
