//! The answer to a request that a voter's task has.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::sync::oneshot;

use super::Outcome;
use crate::words::{CLOSED, Cause};

/// A request's outcome. Dropping it drops the answer, never the request.
#[derive(Debug)]
pub(crate) struct VoterReply<T>(oneshot::Receiver<Outcome<T>>);

impl<T> VoterReply<T> {
    pub(super) fn of(answer: oneshot::Receiver<Outcome<T>>) -> Self {
        Self(answer)
    }
}

impl<T> Future for VoterReply<T> {
    type Output = Outcome<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let received = ready!(Pin::new(&mut self.0).poll(context));
        let closed = || Err(Cause::Unreachable(CLOSED.into()));
        Poll::Ready(received.unwrap_or_else(|_| closed()))
    }
}
