//! What a voter's task is asked for.

use std::sync::Arc;

use tokio::{
    sync::{mpsc, oneshot},
    task::yield_now,
};

use super::{Identity, KeySearch, KeysFound, Outcome, lanes::Queued};
use crate::words::ServerReport;

/// So many requests are taken from the queue before some of them leave.
pub(super) const TOGETHER: usize = 256;

pub(super) enum VoterAsk {
    Run(Queued),
    Subscribe(Arc<str>, oneshot::Sender<Outcome<()>>),
    Unsubscribe(Arc<str>),
    Identify(oneshot::Sender<Outcome<Identity>>),
    Survey(Arc<str>, oneshot::Sender<Outcome<Vec<ServerReport>>>),
    Rename(usize),
    Search(KeySearch, oneshot::Sender<Outcome<KeysFound>>),
    Close(oneshot::Sender<Outcome<()>>),
}

/// Lets the tasks that are ready now ask first. Without this the runtime runs the voter's task
/// right behind the first of them, and a call carries half as many requests.
pub(super) async fn gather(
    asked: &mut mpsc::UnboundedReceiver<VoterAsk>,
    asks: &mut Vec<VoterAsk>,
) {
    yield_now().await;
    while asks.len() < TOGETHER
        && let Ok(ask) = asked.try_recv()
    {
        asks.push(ask);
    }
}
