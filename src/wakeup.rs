//! Wake-ups: which voters have called on which channel since somebody last looked.
//!
//! A wake-up is a hint, never a grant: whoever hears one asks the voters again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    node::{Ear, Reply, Voter},
    signal::Signal,
};

/// Every channel that somebody in this client listens to.
#[derive(Debug, Default)]
pub(crate) struct Wakeups {
    channels: Mutex<BTreeMap<Arc<str>, Channel>>,
}

#[derive(Debug)]
struct Channel {
    listeners: usize,
    heard: Arc<Signal<Heard>>,
}

/// How often each voter called, and how often calls may have been lost.
#[derive(Clone, Debug)]
struct Heard {
    calls: Vec<u64>,
    missed: u64,
}

impl Wakeups {
    fn with_channels<T>(&self, act: impl FnOnce(&mut BTreeMap<Arc<str>, Channel>) -> T) -> T {
        act(&mut self.channels.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One voter's way into [`Wakeups`].
pub(crate) struct VoterEar {
    pub(crate) voter: usize,
    pub(crate) wakeups: Arc<Wakeups>,
}

impl Ear for VoterEar {
    fn called(&self, channel: &str) {
        self.wakeups.with_channels(|channels| {
            if let Some(channel) = channels.get(channel) {
                channel.heard.change(|heard| heard.calls[self.voter] += 1);
            }
        });
    }

    fn missed(&self) {
        self.wakeups.with_channels(|channels| {
            for channel in channels.values() {
                channel.heard.change(|heard| heard.missed += 1);
            }
        });
    }
}

/// Listens to one channel on all voters until dropped.
#[derive(Debug)]
pub(crate) struct Listening {
    wakeups: Arc<Wakeups>,
    voters: Arc<[Voter]>,
    channel: Arc<str>,
    heard: Arc<Signal<Heard>>,
    mark: Heard,
}

impl Listening {
    /// Starts to listen; each reply tells when its voter's channel is known to be heard.
    pub(crate) fn start(
        wakeups: &Arc<Wakeups>,
        voters: &Arc<[Voter]>,
        channel: &Arc<str>,
    ) -> (Self, Vec<Reply<()>>) {
        let silence = Heard { calls: vec![0; voters.len()], missed: 0 };
        // Within the lock, so that no other listener's last goodbye comes behind this.
        let (heard, replies) = wakeups.with_channels(|channels| {
            let entry = channels
                .entry(Arc::clone(channel))
                .or_insert_with(|| Channel { listeners: 0, heard: Arc::new(Signal::new(silence)) });
            entry.listeners += 1;
            let subscribe = |voter: &Voter| voter.subscribe(Arc::clone(channel));
            (Arc::clone(&entry.heard), voters.iter().map(subscribe).collect())
        });
        let mark = heard.read(Heard::clone);
        let listening = Self {
            wakeups: Arc::clone(wakeups),
            voters: Arc::clone(voters),
            channel: Arc::clone(channel),
            heard,
            mark,
        };
        (listening, replies)
    }

    /// From here on only new calls count.
    pub(crate) fn forget(&mut self) {
        self.mark = self.heard.read(Heard::clone);
    }

    /// Completes when `needed` of `voters` have called since [`forget`](Self::forget).
    pub(crate) async fn called(&self, voters: &[usize], needed: usize) {
        let mark = &self.mark;
        let called = |heard: &Heard| {
            let called = voters.iter().filter(|voter| heard.calls[**voter] > mark.calls[**voter]);
            called.count() >= needed
        };
        self.heard.until(called).await;
    }

    /// Completes when calls may have been lost since [`forget`](Self::forget).
    pub(crate) async fn missed(&self) {
        self.heard.until(|heard| heard.missed > self.mark.missed).await;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.wakeups.with_channels(|channels| {
            let Some(entry) = channels.get_mut(&self.channel) else { return };
            entry.listeners -= 1;
            if entry.listeners == 0 {
                channels.remove(&self.channel);
                for voter in self.voters.iter() {
                    voter.unsubscribe(Arc::clone(&self.channel));
                }
            }
        });
    }
}
