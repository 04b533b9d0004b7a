//! Grants that count only once replicas have them.
//!
//! `WAIT` tells how many replicas have what was written before it on its own connection, and the
//! server does nothing else for that connection meanwhile. So it leaves with the script, right
//! behind it, but only where none is under way: one at a time holds up whatever else there is to
//! do, and as few do as possible. Scripts that leave meanwhile run together as soon as it is
//! answered, and one more, for all of them, follows their answers.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use fred::{
    error::{Error, ErrorKind},
    interfaces::ClientLike,
    types::{ClusterHash, CustomCommand, Resp3Frame as Frame, Value as Argument},
};
use tokio::{sync::OwnedMutexGuard, time};

use super::{
    link::{AckHeard, Link},
    replies,
};
use crate::{
    clock::Clock,
    proto::Cause,
    scripts::Value,
    settings::ReplicaAcks,
    voter::{Call, Outcome, contract::begin},
};

/// What a request came to at the connection.
pub(super) type Raw = Result<Frame, Error>;

/// What a grant needs in order to count, and where to ask for it.
pub(super) struct AcksNeeded {
    replicas: u32,
    within: Duration,
    left: Duration,
    deadline: Duration,
    /// How many entries of the reply a request has.
    width: usize,
    link: Arc<Link>,
}

impl AcksNeeded {
    /// What a grant of this call needs, if it has so much time; `None` where it counts by itself.
    pub(super) fn of(
        settings: ReplicaAcks,
        link: &Arc<Link>,
        call: &Call,
        left: Duration,
    ) -> Option<Self> {
        let (replicas, within) = (settings.replicas, settings.within(left));
        let (deadline, width, link) = (call.deadline, call.script.width, Arc::clone(link));
        (replicas > 0 && call.script.votes).then_some(Self {
            replicas,
            within,
            left,
            deadline,
            width,
            link,
        })
    }

    /// The script's answer, and whether it counts where it is a grant. Leaves with the first poll,
    /// the script first.
    pub(super) async fn by(
        self,
        script: impl Future<Output = Raw> + Send + 'static,
    ) -> (Raw, Outcome<()>) {
        let (sent, script) = (Clock::System.now(), begin(script));
        let number = 1 + self.link.acks.left.fetch_add(1, Ordering::AcqRel);
        if let Ok(line) = Arc::clone(&self.link.acks.heard).try_lock_owned() {
            self.ask(line);
        }
        let frame = match script.await {
            Ok(frame) if replies::grants(&frame, self.width) => frame,
            other => return (other, Ok(())),
        };
        let rest = self.left.saturating_sub(Clock::System.now().since(sent));
        let counted = time::timeout(rest, self.counted(number)).await;
        (Ok(frame), counted.unwrap_or(Err(Cause::TimedOut(self.deadline))))
    }

    /// Whether enough replicas have what the script of this number wrote.
    async fn counted(&self, number: u64) -> Outcome<()> {
        loop {
            let line = Arc::clone(&self.link.acks.heard).lock_owned().await;
            if number > line.about {
                self.ask(line);
                continue;
            }
            let (count, needed) = (line.count.clone()?, self.replicas);
            if count >= i64::from(needed) {
                return Ok(());
            }
            let acknowledged = u32::try_from(count).unwrap_or(0);
            return Err(Cause::Unacknowledged { acknowledged, needed, within: line.within });
        }
    }

    /// Asks for replicas of all that has left so far. Leaves at once.
    fn ask(&self, mut line: OwnedMutexGuard<AckHeard>) {
        let about = self.link.acks.left.load(Ordering::Acquire);
        let command = CustomCommand::new_static("WAIT", ClusterHash::Custom(0), false);
        let within_ms = i64::try_from(self.within.as_millis()).unwrap_or(i64::MAX);
        let arguments = [i64::from(self.replicas), within_ms].map(Argument::Integer).to_vec();
        let client = self.link.client.with_options(&Link::options(self.left));
        let wait = begin(async move { client.custom_raw(command, arguments).await });
        let (within, deadline) = (self.within, self.deadline);
        // Whoever asked may go before it is answered, and others wait for the answer.
        tokio::spawn(async move {
            *line = AckHeard { about, within, count: count(wait.await, deadline) };
        });
    }
}

/// How many replicas there were.
fn count(reply: Raw, deadline: Duration) -> Outcome<i64> {
    let frame = reply.map_err(|error| match error.kind() {
        ErrorKind::Timeout => Cause::TimedOut(deadline),
        // Whether it was sent or not: the script was.
        _ => Cause::Broken(replies::readable(&error).into()),
    })?;
    match replies::value(frame)? {
        Value::Int(count) => Ok(count),
        other => Err(Cause::Rejected(format!("unexpected answer to WAIT: {other:?}").into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_question_without_a_count_may_have_been_sent() {
        let of = |kind, text| count(Err(Error::new(kind, text)), MS(200)).unwrap_err();
        assert_eq!(of(ErrorKind::Timeout, "late"), Cause::TimedOut(MS(200)));
        let unsent = of(ErrorKind::Canceled, "Connection closed unexpectedly.");
        assert_eq!(unsent, Cause::Broken("Connection closed unexpectedly".into()));
        let other = count(Ok(Frame::Null), MS(200)).unwrap_err();
        assert!(matches!(other, Cause::Rejected(_)), "{other}");
    }
}
