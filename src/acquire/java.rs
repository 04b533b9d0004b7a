//! Beside programs in Java that lock by the same records.

use super::{Coordinator, LockRecord};
use crate::{clock::Moment, proto::Error};

impl Coordinator {
    /// An error where Java has an `RFairLock` of this name for which somebody waits: neither side
    /// wakes the other, nor keeps the other's order. As far as a majority says so by `until`.
    pub(super) async fn check_for_fair_lock(
        &self,
        record: &dyn LockRecord,
        until: Moment,
    ) -> Result<(), Error> {
        let Some(call) = record.look_for_java() else { return Ok(()) };
        let mut replies = self.panel.ask_all(&call);
        let quorum = self.panel.quorum;
        let mut answered = vec![false; quorum.voters()];
        for _ in 0..quorum.voters() {
            let (voter, outcome) = tokio::select! {
                biased;
                heard = replies.next() => heard,
                () = self.clock.sleep_until(until) => break,
            };
            // A user who may not look at these keys uses no such lock.
            let Ok(answer) = outcome else { continue };
            if answer.is_done() {
                let voter = self.panel.voters[voter].label();
                let lock = record.info().name.as_str();
                return Err(Error::invalid(format!(
                    "`{lock}` is an RFairLock in Java, which is no lock of ours: {voter} has its \
                     queue, `{}`",
                    call.key(),
                )));
            }
            answered[voter] = true;
            if quorum.reached(|voter| answered[voter]) {
                break;
            }
        }
        Ok(())
    }
}
