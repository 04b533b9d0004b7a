//! Who listens to what, and what was said.

use std::{collections::BTreeSet, mem, sync::Arc};

/// Names a connection; grows from one to the next.
pub(super) type ConnectionId = u64;

/// What was said on a channel.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) channel: Arc<str>,
    pub(super) text: Arc<str>,
}

/// The channels of one voter.
#[derive(Debug, Default)]
pub(super) struct Channels {
    listeners: BTreeSet<(Arc<str>, ConnectionId)>,
    published: Vec<Message>,
}

impl Channels {
    pub(super) fn subscribe(&mut self, connection: ConnectionId, channel: Arc<str>) {
        self.listeners.insert((channel, connection));
    }

    pub(super) fn unsubscribe(&mut self, connection: ConnectionId, channel: &Arc<str>) {
        self.listeners.remove(&(Arc::clone(channel), connection));
    }

    pub(super) fn unsubscribe_all(&mut self, connection: ConnectionId) {
        self.listeners.retain(|(_, listener)| *listener != connection);
    }

    /// Remembers that something was said on a channel, and tells how many will hear it.
    pub(super) fn publish(&mut self, channel: &str, text: &str) -> usize {
        let channel: Arc<str> = channel.into();
        let count = self.listeners_of(&channel).count();
        self.published.push(Message { channel, text: text.into() });
        count
    }

    /// What was said since the last call, in order.
    pub(super) fn take_published(&mut self) -> Vec<Message> {
        mem::take(&mut self.published)
    }

    pub(super) fn listeners_of(&self, channel: &Arc<str>) -> impl Iterator<Item = ConnectionId> {
        let all = (Arc::clone(channel), 0)..=(Arc::clone(channel), ConnectionId::MAX);
        self.listeners.range(all).map(|(_, listener)| *listener)
    }

    /// The channels listened to, one entry per connection and channel.
    pub(super) fn subscriptions(&self) -> impl Iterator<Item = &str> {
        self.listeners.iter().map(|(channel, _)| &**channel)
    }
}
