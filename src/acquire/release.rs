//! What a release comes to, and who of this client is next.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use futures::{
    FutureExt,
    future::{FusedFuture, OptionFuture},
};

use super::{Coordinator, LockRecord, line::Lines};
use crate::{
    proto::{Cause, HoldId, Verdict, Votes},
    scripts::Answer,
    voter::{Call, LateEar, Outcome, Replies},
};

/// Before a voter is asked again whose connection is broken.
const PAUSE: Duration = Duration::from_millis(20);

impl Coordinator {
    /// This client gives back what this hold has. Those of its own tasks who are next ask the
    /// voters at once: their requests leave behind those of the release. A task that listens does
    /// not, if others want the lock too: the voters tell all of them.
    pub(crate) fn pass_on(&self, record: &dyn LockRecord, hold: &HoldId) {
        let info = record.info();
        // Programs of another library are in no queue of ours: beside a client that always asks
        // first they would never get the lock.
        if info.is_shared || record.is_foreign() {
            return;
        }
        let is_alone = || !self.lines.others_want(&info.key);
        self.wakeups.pass_on(hold.place_or_self(), || record.channel(), is_alone);
    }

    /// Counts the answers to a release until they say what came of it. Each comes by its deadline,
    /// which begins when the request leaves: the time before that is no silence of a voter's. After
    /// the lease there is nothing left to give back. `again`: what a voter whose connection is
    /// broken is asked once more, as long as it could have been silent; mostly there is a new one
    /// soon. That such a voter has no vote of the hold proves no loss: it may have run what was
    /// sent before.
    pub(crate) async fn confirm(
        &self,
        record: &dyn LockRecord,
        mut replies: Replies,
        lease: Duration,
        again: Option<impl Fn() -> Call>,
    ) -> Votes {
        let (mut votes, mut heard) = (Votes::new(self.panel.quorum), None);
        let mut ended = pin!(self.clock.sleep(lease));
        let mut impatient = pin!(self.clock.sleep(self.voter_deadline()).fuse());
        // Why those have not answered that are asked once more, and who is to be.
        let (mut causes, mut broken) = (BTreeMap::new(), Vec::new());
        while !votes.settles_release() {
            let pause = OptionFuture::from((!broken.is_empty()).then(|| self.clock.sleep(PAUSE)));
            tokio::select! {
                biased;
                (voter, outcome) = replies.next() => {
                    let verdict = match outcome {
                        Ok(answer) => {
                            heard = heard.max(answer.heard());
                            match answer.released() {
                                Verdict::Absent | Verdict::Refused { .. }
                                    if causes.contains_key(&voter) =>
                                {
                                    Verdict::Granted
                                }
                                verdict => verdict,
                            }
                        }
                        Err(cause @ (Cause::Unreachable(_) | Cause::Broken(_)))
                            if again.is_some() && !impatient.is_terminated() =>
                        {
                            causes.insert(voter, cause);
                            broken.push(voter);
                            continue;
                        }
                        Err(cause) => Verdict::Unknown(cause),
                    };
                    votes.record(voter, verdict);
                }
                () = &mut impatient => {
                    broken.clear();
                    for (voter, cause) in &causes {
                        votes.close_one(*voter, cause);
                    }
                }
                Some(()) = pause => {
                    let call = again.as_ref().expect("else nobody is asked once more")();
                    self.panel.ask_again(&mut replies, &broken, &call);
                    broken.clear();
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
