//! What a waiter in a queue hears.

use std::sync::Arc;

use futures::{
    FutureExt,
    future::{BoxFuture, OptionFuture},
};
use tokio::join;

use super::Coordinator;
use crate::{
    acquire::wakeup::{self, Callee, Heard, Listening},
    kinds::LockRecord,
    proto::{Error, Votes},
};

/// What a waiter hears: the calls for its place and, of a lock of another library, the messages on
/// the lock's channel.
#[derive(Debug)]
pub(super) struct Ears {
    callee: Callee,
    channel: Option<ChannelEar>,
}

/// Hears on a lock's channel who gives the lock back.
struct ChannelEar {
    _listening: Listening,
    /// Until the channel is known to be heard by a majority.
    subscribing: Option<BoxFuture<'static, Result<(), Error>>>,
}

impl Ears {
    pub(super) fn of(callee: Callee) -> Self {
        Self { callee, channel: None }
    }

    /// If the hold or place in the way is of the same client, its end is heard at once from now on.
    /// Listens to the lock's channel too, where programs of another library use the lock.
    pub(super) fn listen(
        &mut self,
        coordinator: &Arc<Coordinator>,
        record: &LockRecord,
        refused: &Votes,
    ) {
        self.callee.follow(refused.obstacle());
        if self.channel.is_some() || !record.kind().is_foreign {
            return;
        }
        let Some(channel) = &record.channel() else { return };
        let Coordinator { wakeups, panel, .. } = &**coordinator;
        let (listening, replies) =
            Listening::start(wakeups, &panel.voters, channel, &self.callee.hearing);
        let (coordinator, record) = (Arc::clone(coordinator), record.clone());
        let subscribing = async move {
            let heard = wakeup::majority(replies, coordinator.panel.quorum);
            let check = coordinator.check_foreign_queue(&record);
            join!(heard, check).1
        };
        self.channel =
            Some(ChannelEar { _listening: listening, subscribing: Some(subscribing.boxed()) });
    }

    /// From here on only new calls count.
    pub(super) fn forget(&self) {
        self.callee.hearing.forget();
    }

    pub(super) fn look<R>(&mut self, look: impl FnOnce(&Heard) -> R) -> R {
        self.callee.hearing.look(look)
    }

    /// Completes when there is more than at the last look. True once, when the subscription is
    /// confirmed: earlier messages were not heard.
    pub(super) async fn changed(&mut self) -> Result<bool, Error> {
        let Self { callee, channel } = self;
        let subscribing = channel.as_mut().map(|channel| &mut channel.subscribing);
        let Some(subscribing @ Some(_)) = subscribing else {
            callee.hearing.changed().await;
            return Ok(false);
        };
        tokio::select! {
            biased;
            Some(heard) = OptionFuture::from(subscribing.as_mut()) => {
                *subscribing = None;
                heard.map(|()| true)
            }
            () = callee.hearing.changed() => Ok(false),
        }
    }
}

impl std::fmt::Debug for ChannelEar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelEar").finish_non_exhaustive()
    }
}
