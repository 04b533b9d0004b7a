//! Scripts: to the server that has the slot, and after it where it goes.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::{
    Branch, Cluster,
    redirect::{Endpoint, Redirect},
};
use crate::{
    clock::Clock,
    node::{Call, Outcome},
    scripts::Value,
    words::Cause,
};

/// Between two attempts while a slot is on its way.
const PAUSE: Duration = Duration::from_millis(5);

impl Cluster {
    /// Leaves with its first poll, as [`Node::run`](crate::node::Node::run) says.
    pub(super) async fn run(self: Arc<Self>, call: Call) -> Outcome<Value> {
        let slot = self.seat.slot(&call.keys[0]);
        let started = Clock::System.now();
        let mut placed = self.seat.place(&call).into_owned();
        let (mut number, _) = self.order.leave(&call);
        let mut way = (self.route(slot)?, false);
        loop {
            if let Some(twin) = self.twin(slot).filter(|_| call.script.votes) {
                return Err(Cause::Duplicate(Arc::clone(twin)));
            }
            let seen = self.topology.answers();
            let (branch, asking) = &way;
            let outcome = branch.node.run_here(placed.clone(), *asking).await;
            let Some(redirect) = Redirect::read(&outcome, &branch.at.0) else {
                if matches!(outcome, Err(Cause::Unreachable(_) | Cause::Broken(_))) {
                    self.topology.doubt(None);
                }
                return outcome;
            };
            tracing::debug!(voter = %self.label(), slot, at = ?branch.at, ?redirect, "redirected");
            let rest = || call.deadline.saturating_sub(Clock::System.now().since(started));
            let next = time::timeout(rest(), self.after(redirect, slot, (&branch.at, seen))).await;
            let (Ok(Ok(next)), false) = (next, rest().is_zero()) else { return outcome };
            if !self.order.is_last(&call, number) {
                let Err(cause) = &outcome else { return outcome };
                return Err(Cause::Rejected(
                    format!("{cause}, and not sent again because later requests have overtaken it")
                        .into(),
                ));
            }
            (number, _) = self.order.leave(&call);
            (way, placed.deadline) = (next, rest());
        }
    }

    /// Where to send what was redirected, and whether the server there is to be asked to take it
    /// although the slot is not its own yet.
    async fn after(
        &self,
        redirect: Redirect,
        slot: u16,
        (from, mut seen): (&Endpoint, u64),
    ) -> Outcome<(Branch, bool)> {
        let (branch, asking) = match redirect {
            Redirect::Moved(to) => {
                let mut news = self.topology.news();
                // Who has it may go by another name than the one that was given.
                while self.topology.map().route(slot).is_none_or(|(_, at)| at == from) {
                    self.topology.doubt(Some(to.clone()));
                    let newer = news.wait_for(|news| news.answers > seen).await;
                    let Ok(answers) = newer.map(|news| news.answers) else {
                        return Err(self.unknown(slot));
                    };
                    seen = answers;
                }
                (self.route(slot)?, false)
            }
            Redirect::Ask(to) => {
                let Some(shard) = self.topology.map().led_by(&to) else {
                    self.topology.doubt(Some(to));
                    time::sleep(PAUSE).await;
                    return Ok((self.route(slot)?, false));
                };
                (self.branch(shard, &to), true)
            }
            Redirect::TryAgain => {
                time::sleep(PAUSE).await;
                (self.route(slot)?, false)
            }
            Redirect::Nowhere => {
                self.topology.doubt(None);
                return Err(self.unknown(slot));
            }
        };
        branch.node.tried().await;
        Ok((branch, asking))
    }
}
