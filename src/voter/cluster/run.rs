//! Scripts: to the server that has the slot, and after it where it goes.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::{
    Branch, ClusterVoter,
    redirect::{Endpoint, Redirect},
};
use crate::{
    clock::Clock,
    proto::Cause,
    voter::{Answers, Call, Outcome},
};

/// Between two attempts while a slot is on its way.
const PAUSE: Duration = Duration::from_millis(5);

impl ClusterVoter {
    /// Sends a call of one slot when first polled.
    pub(super) async fn run(self: Arc<Self>, call: Call) -> Answers {
        let slot = self.seat.slot(call.key());
        let started = Clock::System.now();
        let placed = self.seat.place(&call);
        let departed = self.order.leave(&call);
        let mut way = match self.route(slot) {
            Ok(branch) => (branch, false),
            Err(cause) => return call.all_failed(&cause),
        };
        // Of the requests that are open still, and of all.
        let mut open: Vec<usize> = (0..call.requests.len()).collect();
        let mut answers = call.all_failed(&Cause::Unheard);
        let rest = || call.deadline.saturating_sub(Clock::System.now().since(started));
        let mut deadline = call.deadline;
        loop {
            if let Some(twin) = self.twin(slot).filter(|_| call.script.votes) {
                let twin = Cause::Duplicate(Arc::clone(twin));
                for request in open {
                    answers[request] = Err(twin.clone());
                }
                return answers;
            }
            let seen = self.topology.answers();
            let (branch, asking) = &way;
            let sent = Call { deadline, ..placed.pick(&open) };
            let heard = Arc::clone(&branch.node.runner).run(sent, *asking).await;
            if heard
                .iter()
                .any(|answer| matches!(answer, Err(Cause::Unreachable(_) | Cause::Broken(_))))
            {
                self.topology.doubt(None);
            }
            let mut redirected = None;
            let mut again = Vec::new();
            for (request, answer) in open.iter().zip(heard) {
                if let Some(redirect) = Redirect::read(&answer, &branch.at.0) {
                    redirected.get_or_insert(redirect);
                    again.push(*request);
                }
                answers[*request] = answer;
            }
            let Some(redirect) = redirected else { return answers };
            tracing::debug!(voter = %self.label(), slot, at = ?branch.at, ?redirect, "redirected");
            let next = time::timeout(rest(), self.after(redirect, slot, &branch.at, seen)).await;
            let (Ok(Ok(next)), false) = (next, rest().is_zero()) else { return answers };
            let latest = departed.still_latest();
            let overtaken: Vec<usize>;
            (open, overtaken) = again.into_iter().partition(|request| latest.contains(request));
            for request in overtaken {
                if let Err(cause) = &answers[request] {
                    let why = "and not sent again because later requests have overtaken it";
                    answers[request] = Err(Cause::Rejected(format!("{cause}, {why}").into()));
                }
            }
            if open.is_empty() {
                return answers;
            }
            (way, deadline) = (next, rest());
        }
    }

    /// Where to send what was redirected, and whether the server there is to be asked to take it
    /// although the slot is not its own yet.
    async fn after(
        &self,
        redirect: Redirect,
        slot: u16,
        from: &Endpoint,
        mut seen: u64,
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
        branch.node.runner.tried().await;
        Ok((branch, asking))
    }
}
