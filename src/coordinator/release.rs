//! What a release comes to, and who of this client is next.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use super::{Coordinator, LockRecord, line::Lines};
use crate::{
    engine::Votes,
    node::{LateEar, Outcome, Replies},
    scripts::Answer,
    words::{HoldId, Verdict},
};

impl Coordinator {
    /// This client gives back what this hold has. Those of its own tasks who are next ask the
    /// voters at once: their requests leave behind those of the release. A task that listens does
    /// not, if others want the lock too: the voters tell all of them.
    pub(crate) fn pass_on(&self, record: &dyn LockRecord, hold: &HoldId) {
        let info = record.info();
        // Programs in Java are in no queue of ours: beside a client that always asks first they
        // would never get the lock.
        if info.is_shared || self.settings.keys.is_shared_with_java() {
            return;
        }
        let is_alone = || !self.lines.others_want(&info.key);
        self.wakeups.pass_on(hold.place_or_self(), || record.channel(), is_alone);
    }

    /// Counts the answers to a release until they say what came of it. Each comes by its deadline,
    /// which begins when the request leaves: the time before that is no silence of a voter's. After
    /// the lease there is nothing left to give back.
    pub(crate) async fn confirm(
        &self,
        record: &dyn LockRecord,
        mut replies: Replies,
        lease: Duration,
    ) -> Votes {
        let (mut votes, mut heard) = (Votes::new(self.panel.quorum), None);
        let mut ended = pin!(self.clock.sleep(lease));
        while !votes.settles_release() {
            tokio::select! {
                biased;
                (voter, outcome) = replies.next() => {
                    let verdict = match outcome {
                        Ok(answer) => {
                            heard = heard.max(answer.heard());
                            answer.released()
                        }
                        Err(cause) => Verdict::Unknown(cause),
                    };
                    votes.record(voter, verdict);
                }
                () = &mut ended => votes.close(lease),
            }
        }
        if let Some(heard) = heard {
            self.lines.note_listeners(&record.info().key, heard > 1);
        }
        votes
    }

    /// Nobody waits for the answers to this release. But those of this client who stand in line for
    /// the lock want to know whether others do.
    pub(crate) fn overhear(&self, record: &dyn LockRecord, replies: Replies) {
        let key = &record.info().key;
        if self.lines.has(key) {
            let (lines, key) = (Arc::clone(&self.lines), Arc::clone(key));
            replies.hand_over(|| Arc::new(ReleaseEar { lines, key, heard: AtomicU32::new(0) }));
        }
    }
}

/// Hears the answers to the release of a guard that was dropped.
struct ReleaseEar {
    lines: Arc<Lines>,
    key: Arc<str>,
    /// By how many, at most, so far.
    heard: AtomicU32,
}

impl LateEar for ReleaseEar {
    fn hear(&self, _voter: usize, outcome: &Outcome<Answer>) {
        if let Some(heard) = outcome.as_ref().ok().and_then(Answer::heard) {
            let heard = self.heard.fetch_max(heard, Relaxed).max(heard);
            self.lines.note_listeners(&self.key, heard > 1);
        }
    }
}
