//! Whether the clients of the same voters agree about who these are.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::Coordinator;
use crate::{
    clock::Moment,
    keys::Word,
    node::{Call, Outcome, Request, Requests},
    scripts::{Answer, voter},
    words::{Belief, Error, Kind, RosterEntry, Rounded, roster_of},
};

/// Between two comparisons.
const INTERVAL: Duration = Duration::from_secs(15);
/// And where a voter did not answer.
const AGAIN: Duration = Duration::from_secs(5);
/// How much later a client may hear that another one was there: it may be there for as long again
/// after it said so, and what it said is carried to other voters with two more comparisons.
const LATE: Duration = INTERVAL.saturating_mul(3);
/// For how long voters keep what clients believe, at least.
const KEPT: Duration = Duration::from_secs(3_600);

/// What this client believes, and what it has heard of others.
#[derive(Debug, Default)]
pub(super) struct Rosters {
    heard: Mutex<BTreeMap<String, Hearsay>>,
}

#[derive(Clone, Debug)]
struct Hearsay {
    entry: RosterEntry,
    at: Moment,
}

impl Coordinator {
    /// What this client believes.
    fn belief(&self) -> Belief {
        let Self { settings, panel, .. } = self;
        let number = settings.roster();
        let mut sets = panel.quorum.each().map(|(_, set)| set.len());
        let (voters, replaced) = (sets.next().unwrap_or(0), sets.next());
        Belief { number, voters, replaced, longest_lease: settings.longest_lease() }
    }

    /// Compares for the first time; then again and again, for as long as the client lives. Fails if
    /// a voter has clients that believe otherwise.
    pub(crate) async fn join_roster(self: &Arc<Self>) -> Result<(), Error> {
        if self.settings.only_looks {
            return Ok(());
        }
        let (mut clash, all_answered) = self.compare_rosters().await;
        // A client that is there for a moment alone carries what it hears across, too.
        if clash.is_none() && self.panel.quorum.is_joint() {
            clash = self.compare_rosters().await.0;
        }
        if let Some((voter, entry)) = clash {
            let voter = self.panel.voters[voter].label();
            return Err(Error::new(Kind::OutOfStep(self.told(voter, &entry)), Vec::new()));
        }
        let (coordinator, clock) = (Arc::downgrade(self), self.clock.clone());
        let closing = Arc::clone(self.gate.closing());
        self.spawn(async move {
            let mut pause = if all_answered { INTERVAL } else { AGAIN };
            loop {
                tokio::select! {
                    biased;
                    // Or the client is dropped.
                    () = closing.until(|closing| *closing) => return,
                    () = clock.sleep(pause) => {}
                }
                let Some(coordinator) = coordinator.upgrade() else { return };
                let compared = async { Ok(coordinator.compare_rosters().await) };
                // Nothing is compared any more once it is closed.
                let Ok((_, all_answered)) = coordinator.gate.within(compared).await else { return };
                pause = if all_answered { INTERVAL } else { AGAIN };
            }
        });
        Ok(())
    }

    /// What each side believes, and what to do.
    fn told(&self, voter: &str, other: &RosterEntry) -> String {
        let (mine, theirs) = (self.belief(), other.belief());
        let longest = mine.longest_lease.max(theirs.longest_lease);
        let left = Rounded((longest + LATE).saturating_sub(other.seen));
        let mut text = format!(
            "this client is out of step with others of voter {voter}: it has {mine}; others have \
             {other}"
        );
        let advice = if mine.longest_lease != theirs.longest_lease {
            "all clients need the same longest lease"
        } else if mine.number.abs_diff(theirs.number) <= 1 && mine.voters != theirs.voters {
            "all clients must have the same voters; to change them, put clients in between that \
             replace the old voters by the new"
        } else {
            "all clients must have the voters of the same step, or of the next"
        };
        let _ = write!(text, "; {advice}; this one is let in after {left} without the others");
        text
    }

    /// Says to all voters what this client believes, and hears what others do. The first clash, and
    /// whether every voter answered.
    async fn compare_rosters(&self) -> (Option<(usize, RosterEntry)>, bool) {
        let Self { clock, panel, .. } = self;
        let deadline = self.voter_deadline();
        let mut asked = panel.ask_all(&self.roster_call(deadline));
        let due = clock.now() + deadline;
        let (mut first, mut answers) = (None, 0);
        for _ in 0..panel.voters.len() {
            let (voter, outcome) = tokio::select! {
                biased;
                heard = asked.next() => heard,
                () = clock.sleep_until(due) => break,
            };
            let Some(entries) = entries(&outcome) else { continue };
            answers += 1;
            let clash = entries.iter().find(|entry| entry.clashes).cloned();
            if !self.settings.only_looks {
                let told = |entry| self.told(panel.voters[voter].label(), entry).into();
                panel.standings.note_step(voter, clash.as_ref().map(told));
            }
            if let Some(clash) = clash {
                first.get_or_insert((voter, clash));
            }
            self.remember(entries, clock.now());
        }
        (first, answers == panel.voters.len())
    }

    fn remember(&self, entries: Vec<RosterEntry>, at: Moment) {
        let mut heard = self.rosters.heard.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in entries {
            let belief = entry.belief().text();
            let age = |heard: &Hearsay| heard.entry.seen + at.since(heard.at);
            if heard.get(&belief).is_none_or(|known| entry.seen < age(known)) {
                heard.insert(belief, Hearsay { entry, at });
            }
        }
    }

    /// What clients of these voters believe, by what this client has heard of late; the latest
    /// first.
    pub(crate) async fn roster(&self) -> Vec<RosterEntry> {
        self.compare_rosters().await;
        let mut entries = self.heard();
        entries.sort_by_key(|entry| entry.seen);
        entries
    }

    /// With their ages as they are now.
    fn heard(&self) -> Vec<RosterEntry> {
        let now = self.clock.now();
        let mut heard = self.rosters.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let aged = |heard: &Hearsay| {
            let seen = heard.entry.seen + now.since(heard.at);
            RosterEntry { seen, ..heard.entry.clone() }
        };
        heard.retain(|_, heard| {
            let entry = aged(heard);
            entry.seen <= KEPT.max(entry.longest_lease + LATE)
        });
        heard.values().map(aged).collect()
    }

    fn roster_call(&self, deadline: Duration) -> Call {
        let name = self.names.own().map(|name| &**name.text());
        let mine = self.belief().text();
        let heard = self.heard().into_iter().map(|entry| {
            format!("{} {} {}", entry.belief().text(), entry.seen.as_millis(), entry.who())
        });
        let heard = heard.collect::<Vec<_>>().join("\n");
        let who = roster_of(&self.client().to_string(), name);
        let who = if self.settings.only_looks { String::new() } else { who };
        let kept = KEPT.max(self.settings.longest_lease() + LATE);
        let shared = [kept, LATE].map(|time| time.as_millis().to_string().into());
        let (roster, args) = (self.settings.keys.roster(), [&mine, &who, &heard].map(Word::from));
        let request = Request::new([Word::from(&roster)], args, None);
        Call {
            script: &voter::ROSTER,
            shared: shared.into(),
            requests: Requests::One(request),
            deadline,
            longest: deadline,
        }
    }
}

/// What the voter has, if it said so.
fn entries(outcome: &Outcome<Answer>) -> Option<Vec<RosterEntry>> {
    Some(outcome.as_ref().ok()?.text()?.lines().filter_map(RosterEntry::read).collect())
}
