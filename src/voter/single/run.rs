//! Scripts: sent at most once, in order, answered by their deadline.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use fred::{
    interfaces::ClientLike,
    types::{ClusterHash, CustomCommand, Resp3Frame as Frame, Value as Argument},
};
use futures::{FutureExt, future};

use super::{
    IDENTIFICATION, Looks,
    acks::{AcksNeeded, Raw},
    arguments,
    gate::Gate,
    link::Link,
    mark,
    order::Order,
    replies,
};
use crate::{
    clock::Clock,
    proto::Cause,
    scripts::{Answer, Mark},
    voter::{Answers, Call, Identity, Outcome},
};

/// Why a request that the server did not run is not sent again.
const OVERTAKEN: &str = "NOSCRIPT, and not sent again because later requests have overtaken it";

/// Sends scripts where the gate lets them pass.
#[derive(Debug, Default)]
pub(in crate::voter) struct Runner {
    pub(super) gate: Gate,
    pub(super) order: Order,
    pub(super) looks: Looks,
    /// The mark could be read when the server was last looked at.
    pub(super) is_named: AtomicBool,
    /// The mark could not be read then, on whichever connection.
    pub(super) is_unmarked: AtomicBool,
}

/// A reply; and whether it counts, where it is a grant.
type RawReply = (Frame, Outcome<()>);

impl Runner {
    /// fred queues a command for its router when the command's future is first polled, with no
    /// await before that (`basic_request_response` in its `utils.rs`: the one await there is ready
    /// at once unless blocked connections shall be interrupted). The router writes in that order.
    ///
    /// `asking`: the call is for a hash slot that is on its way to this server.
    pub(in crate::voter) async fn run(self: Arc<Self>, call: Call, asking: bool) -> Answers {
        let answers = self.answers(&call, asking).await;
        answers.unwrap_or_else(|cause| call.all_failed(&cause))
    }

    /// Completes when the first attempt to connect has come to something.
    pub(in crate::voter) async fn tried(&self) {
        self.gate.tried().await;
    }

    async fn answers(&self, call: &Call, asking: bool) -> Outcome<Answers> {
        let (link, left) = (self.gate.pass()?, Clock::System.now());
        let departed = self.order.leave(call);
        let sha = link.sha_of(call.script);
        let whole = sha.is_none();
        let request = self.send(&link, call, sha, asking, call.deadline);
        let (frame, counts) = self.answered(&link, request, call.deadline).await?;
        if !replies::is_unknown_script(&frame) {
            if whole {
                link.has_script(call.script);
            }
            return Ok(self.read(&link, (frame, counts), call));
        }
        // Nothing ran: as a whole it may go again.
        link.lacks_script(call.script);
        let rest = call.deadline.saturating_sub(Clock::System.now().since(left));
        if rest.is_zero() {
            return Err(replies::value(frame).err().unwrap_or(Cause::Unheard));
        }
        let mut answers = call.all_failed(&Cause::Rejected(OVERTAKEN.into()));
        let open = departed.still_latest();
        if open.is_empty() {
            return Ok(answers);
        }
        let again = call.pick(&open);
        let request = self.send(&link, &again, None, asking, rest);
        let reply = self.answered(&link, request, call.deadline).await?;
        link.has_script(call.script);
        for (request, answer) in open.into_iter().zip(self.read(&link, reply, &again)) {
            answers[request] = answer;
        }
        Ok(answers)
    }

    /// Who answers on the connection that stands: what was said there, if it still stands; and
    /// whether it takes new votes now. It is asked to write its mark, by the way on which scripts
    /// leave for locks: what ends that would end them.
    pub(super) async fn identity(self: Arc<Self>) -> Outcome<Identity> {
        let Some(key) = self.looks.mark.clone() else {
            // It has no votes to give.
            self.reply("PING", &[]).await?;
            return Ok(self.gate.known()?.identity);
        };
        let call = mark::call(&key, &self.gate.known()?.life, IDENTIFICATION);
        let answer = Arc::clone(&self).run(call, false).await.pop();
        let refuses = match answer.unwrap_or(Err(Cause::Unheard)) {
            Ok(answer) => Mark::read(&answer).and_then(|mark| mark.refusal),
            Err(Cause::Rejected(why)) => (!mark::is_elsewhere(&why)).then_some(why),
            Err(cause) => return Err(cause),
        };
        Ok(Identity { refuses, ..self.gate.known()?.identity })
    }

    /// Gives the data that it had when it was met another name.
    pub(super) async fn rename(self: Arc<Self>) -> Outcome<()> {
        let (link, known) = (self.gate.pass()?, self.gate.known()?);
        mark::rename(&link, &known.identity, &known.life).await
    }

    /// Polls the request at once. What is under way when its connection is over may have run: fred
    /// says so itself, but not of what came to it as its task was about to end.
    async fn answered(
        &self,
        link: &Arc<Link>,
        request: impl Future<Output = (Raw, Outcome<()>)>,
        deadline: Duration,
    ) -> Outcome<RawReply> {
        let (mut request, mut closed) = (pin!(request), pin!(self.gate.closed(link)));
        // Not by tokio's `select!`: that polls nothing where the task's budget is spent, and then
        // the request would not leave with its first poll.
        let outcome = poll_fn(|context| match request.as_mut().poll(context) {
            Poll::Ready((frame, counts)) => {
                Poll::Ready(link.noted(frame, deadline).map(|frame| (frame, counts)))
            }
            Poll::Pending => {
                closed.as_mut().poll(context).map(|()| Err(Cause::Broken(link.trouble())))
            }
        });
        let outcome = outcome.await;
        if let Err(Cause::Broken(why) | Cause::Unreachable(why))
        | Ok((_, Err(Cause::Broken(why)))) = &outcome
        {
            // There is no other connection of this link. Whoever hears of this asks the next one.
            self.gate.over(link, why);
        }
        outcome
    }

    /// The answers of a reply to a call. A server that has become a replica is left, so
    /// that the next connection finds its successor.
    fn read(&self, link: &Arc<Link>, (frame, counts): RawReply, call: &Call) -> Answers {
        if matches!(frame, Frame::BlobString { .. }) {
            link.may_pack();
        }
        let value = replies::unpacked(frame);
        if replies::is_of_a_replica(&value) {
            self.gate.over(link, &link.demote());
        }
        let mut answers = match value {
            Ok(value) => Answer::each(value, call.requests.len(), call.script.width),
            Err(cause) => call.all_failed(&cause),
        };
        if let Err(cause) = counts {
            let granted =
                |answer: &&mut Outcome<Answer>| answer.as_ref().is_ok_and(Answer::is_done);
            answers.iter_mut().filter(granted).for_each(|answer| *answer = Err(cause.clone()));
        }
        answers
    }

    /// The command that publishes on the channel of a lock.
    pub(super) fn publish(&self) -> &'static str {
        if self.looks.is_sharded { "SPUBLISH" } else { "PUBLISH" }
    }

    /// The script, and right behind it the question for replicas where its grant needs them. It is
    /// sent by its hash; as a whole where the server is not known to have it.
    fn send(
        &self,
        link: &Arc<Link>,
        call: &Call,
        sha: Option<Bytes>,
        asking: bool,
        left: Duration,
    ) -> impl Future<Output = (Raw, Outcome<()>)> + use<> {
        let source = || ("EVAL", Bytes::from_static(call.script.source.as_bytes()));
        let (name, script) = sha.map_or_else(source, |sha| ("EVALSHA", sha));
        let is_told = call.script.votes && self.is_named.load(Relaxed);
        let mark = self.looks.mark.as_deref().filter(|_| is_told);
        let arguments = arguments::of(call, script, self.publish(), link.packs(), mark);
        let script = send(link, name, arguments, asking, left);
        let Some(needed) = AcksNeeded::of(self.looks.acks, link, call, left) else {
            return script.map(|frame| (frame, Ok(()))).left_future();
        };
        // Boxed, so that requests which ask no replicas stay as small as they are.
        Box::pin(needed.by(script)).right_future()
    }
}

/// A custom command, because fred ignores all options of its own EVALSHA.
fn send(
    link: &Link,
    name: &'static str,
    arguments: Vec<Argument>,
    asking: bool,
    within: Duration,
) -> impl Future<Output = Raw> + use<> {
    let command = CustomCommand::new_static(name, ClusterHash::Custom(0), false);
    let client = link.client.with_options(&Link::options(within));
    async move {
        // fred's future has 5 KB. In a box of its own it is not a part of each future that awaits
        // it, which would have it several times.
        let run = Box::pin(client.custom_raw(command, arguments));
        if !asking {
            return run.await;
        }
        let ask = CustomCommand::new_static("ASKING", ClusterHash::Custom(0), false);
        let ask = client.custom_raw(ask, Vec::<Argument>::new());
        // Both leave with the first poll, in this order. Where something came between them, the
        // server answers as if it had not been asked to.
        future::join(Box::pin(ask), run).await.1
    }
}
