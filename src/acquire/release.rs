//! What a release comes to, and who of this client is next.

use std::{collections::BTreeMap, pin::pin, time::Duration};

use futures::future::OptionFuture;

use super::Coordinator;
use crate::{
    clock::Moment,
    kinds::LockRecord,
    proto::{Cause, HoldId, Verdict, Votes},
    voter::{Call, Replies},
};

/// Before a voter is asked again whose connection is broken.
const PAUSE: Duration = Duration::from_millis(20);

impl Coordinator {
    /// Gives back what this hold has, on all voters. Those of its own tasks who are next ask the
    /// voters at once: their requests leave behind those of the release.
    pub(crate) fn give_back(
        &self,
        record: &LockRecord,
        hold: &HoldId,
        lease: Duration,
        now: Moment,
    ) -> Replies {
        let mut release = record.release(hold, 0);
        // Nobody but the releaser waits for the answer, and a late one is better than none.
        release.deadline = release.longest;
        if crate::mutant!("releases_once") {
            return self.panel.ask_all(&release, now);
        }
        let replies = self.panel.insist_all(&release, now + lease, now);
        self.pass_on(record, hold);
        replies
    }

    fn pass_on(&self, record: &LockRecord, hold: &HoldId) {
        // Programs of another library are in no queue of ours: beside a client that always asks
        // first they would never get the lock.
        if record.kind().is_shared || record.kind().is_foreign {
            return;
        }
        self.wakeups.pass_on(hold.place_or_self());
    }

    /// Counts the answers to a release until they say what came of it. Each comes by its deadline,
    /// which begins when the request leaves: the time before that is no silence of a voter's. After
    /// the lease there is nothing left to give back. `again`: what a voter whose connection is
    /// broken is asked once more, as long as it could have been silent; mostly there is a new one
    /// soon. That such a voter has no vote of the hold proves no loss: it may have run what was
    /// sent before.
    pub(crate) async fn confirm(
        &self,
        mut replies: Replies,
        lease: Duration,
        again: Option<impl Fn() -> Call>,
    ) -> Votes {
        let mut votes = Votes::new(self.panel.quorum);
        let (now, mut is_patient) = (self.clock.now(), true);
        let (ends, patience) = (now + lease, self.voter_deadline().min(lease));
        // For both, one after the other: a timer costs as much as a question.
        let mut alarm = pin!(self.clock.sleep_until(now + patience));
        // Why those have not answered that are asked once more, and who is to be.
        let (mut causes, mut broken) = (BTreeMap::new(), Vec::new());
        while !votes.settles_release() {
            let pause = OptionFuture::from((!broken.is_empty()).then(|| self.clock.sleep(PAUSE)));
            tokio::select! {
                biased;
                (voter, outcome) = replies.next() => {
                    let verdict = match outcome {
                        Ok(answer) => {
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
                            if again.is_some() && is_patient =>
                        {
                            causes.insert(voter, cause);
                            broken.push(voter);
                            continue;
                        }
                        Err(cause) => Verdict::Unknown(cause),
                    };
                    votes.record(voter, verdict);
                }
                () = &mut alarm => {
                    if !is_patient {
                        votes.close(lease);
                        continue;
                    }
                    is_patient = false;
                    broken.clear();
                    for (voter, cause) in &causes {
                        votes.close_one(*voter, cause);
                    }
                    if !crate::mutant!("ended_sleep_is_awaited") {
                        alarm.set(self.clock.sleep_until(ends));
                    }
                }
                Some(()) = pause => {
                    let call = again.as_ref().expect("else nobody is asked once more")();
                    self.panel.ask_again(&mut replies, &broken, &call, self.clock.now());
                    broken.clear();
                }
            }
        }
        votes
    }
}
