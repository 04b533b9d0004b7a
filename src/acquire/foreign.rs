//! Beside programs of another library that lock by the same records.

use super::{Coordinator, ForeignQueue, LockRecord};
use crate::{clock::Moment, proto::Error};

impl Coordinator {
    /// An error where somebody waits in a queue of the other library's: neither side wakes the
    /// other, nor keeps the other's order. As far as a majority says so by `until`.
    pub(super) async fn check_foreign_queue(
        &self,
        record: &dyn LockRecord,
        until: Moment,
    ) -> Result<(), Error> {
        let Some(ForeignQueue { what, look }) = record.foreign_queue() else { return Ok(()) };
        let mut replies = self.panel.ask_all(look);
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
                    "`{lock}` is {what}, which is no lock of ours: {voter} has its queue, `{}`",
                    look.key(),
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
