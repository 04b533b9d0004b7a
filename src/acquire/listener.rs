//! What a waiter in a queue hears.

use std::sync::Arc;

use futures::{
    FutureExt,
    future::{BoxFuture, OptionFuture},
};
use tokio::join;

use super::Coordinator;
use crate::{
    acquire::wakeup::{self, Heard, Listening, PlaceListener},
    kinds::LockRecord,
    proto::{Error, Votes},
    scripts::Answer,
    voter::Outcome,
};

/// What a waiter hears: the calls for its place and, of a lock of another library, the messages on
/// the lock's channel.
#[derive(Debug)]
pub(super) struct WaiterListener {
    listener: PlaceListener,
    channel: Option<ChannelListener>,
}

/// Hears on a lock's channel who gives the lock back.
struct ChannelListener {
    _listening: Listening,
    /// Until the channel is known to be heard by a majority.
    subscribing: Option<BoxFuture<'static, Result<(), Error>>>,
}

impl WaiterListener {
    pub(super) fn of(listener: PlaceListener) -> Self {
        Self { listener, channel: None }
    }

    /// If the hold or place in the way is of the same client, its end is heard at once from now on.
    /// Listens to the lock's channel too, where programs of another library use the lock.
    pub(super) fn listen(
        &mut self,
        coordinator: &Arc<Coordinator>,
        record: &LockRecord,
        refused: &Votes,
    ) {
        self.listener.follow(refused.obstacle());
        if self.channel.is_some() || !record.kind().is_foreign {
            return;
        }
        let Some(channel) = &record.channel() else { return };
        let Coordinator { wakeups, panel, .. } = &**coordinator;
        let (listening, replies) =
            Listening::start(wakeups, &panel.voters, channel, &self.listener.hearing);
        let (coordinator, record) = (Arc::clone(coordinator), record.clone());
        let subscribing = async move {
            let heard = wakeup::majority(replies, coordinator.panel.quorum);
            let check = coordinator.check_foreign_queue(&record);
            join!(heard, check).1
        };
        self.channel =
            Some(ChannelListener { _listening: listening, subscribing: Some(subscribing.boxed()) });
    }

    /// From here on only new calls count.
    pub(super) fn forget(&self) {
        self.listener.hearing.forget();
    }

    pub(super) fn look<R>(&mut self, look: impl FnOnce(&Heard) -> R) -> R {
        self.listener.hearing.look(look)
    }

    /// Completes when there is more than at the last look. True once, when the subscription is
    /// confirmed: earlier messages were not heard.
    pub(super) async fn changed(&mut self) -> Result<bool, Error> {
        let Self { listener, channel } = self;
        let subscribing = channel.as_mut().map(|channel| &mut channel.subscribing);
        let Some(subscribing @ Some(_)) = subscribing else {
            listener.hearing.changed().await;
            return Ok(false);
        };
        tokio::select! {
            biased;
            Some(heard) = OptionFuture::from(subscribing.as_mut()) => {
                *subscribing = None;
                heard.map(|()| true)
            }
            () = listener.hearing.changed() => Ok(false),
        }
    }
}

impl std::fmt::Debug for ChannelListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelListener").finish_non_exhaustive()
    }
}

// Beside programs of another library that lock by the same records.

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
