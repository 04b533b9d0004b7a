//! Beside programs of another library that lock by the same records.

use super::Coordinator;
use crate::{kinds::LockRecord, proto::Error, scripts::Answer, voter::Outcome};

impl Coordinator {
    /// An error where somebody waits in a queue of the other library's: neither side wakes the
    /// other, nor keeps the other's order. As far as a majority says so in time.
    pub(super) async fn check_foreign_queue(&self, record: &LockRecord) -> Result<(), Error> {
        let Some((what, look)) = record.look_for_foreign_queue() else { return Ok(()) };
        let has_queue = |answer: &Outcome<Answer>| matches!(answer, Ok(it) if it.is_done());
        let quorum = self.panel.quorum;
        // A user who may not look at these keys uses no such lock.
        let are_enough = |answers: &[_]| {
            answers.iter().any(has_queue) || quorum.reached(|voter| answers[voter].is_ok())
        };
        let answers = self.gather(&look, record.rules(), are_enough).await;
        answers.iter().position(has_queue).map_or(Ok(()), |voter| {
            let voter = self.panel.voters[voter].label();
            let lock = record.info().name.as_str();
            Err(Error::invalid(format!(
                "`{lock}` is {what}, which is no lock of ours: {voter} has its queue, `{}`",
                look.key(),
            )))
        })
    }
}
