//! Grants that count only once replicas have them.
//!
//! `WAIT` tells how many replicas have what was written before it on its own connection. So it
//! leaves right behind the script, before anybody knows what that comes to. The server answers
//! nothing else on the connection meanwhile.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use fred::{
    error::{Error, ErrorKind},
    interfaces::ClientLike,
    types::{ClusterHash, CustomCommand, Resp3Frame as Frame, Value as Argument},
};

use super::{link::Link, replies};
use crate::{
    node::{Call, Outcome},
    scripts::Value,
    settings::ReplicaAcks,
    words::Cause,
};

/// What a request came to at the connection.
pub(super) type Raw = Result<Frame, Error>;

/// What a grant needs in order to count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needed {
    replicas: u32,
    within: Duration,
}

impl Needed {
    /// Of a call that has so much time left; `None` where its answer counts by itself.
    pub(super) fn by(call: &Call, acks: ReplicaAcks, left: Duration) -> Option<Self> {
        let counts = acks.replicas == 0 || !call.script.votes;
        (!counts).then(|| Self { replicas: acks.replicas, within: acks.within(left) })
    }

    /// Asks on this link how many have what was written before.
    pub(super) fn wait(self, link: &Link, left: Duration) -> impl Future<Output = Raw> + use<> {
        let command = CustomCommand::new_static("WAIT", ClusterHash::Custom(0), false);
        let within_ms = i64::try_from(self.within.as_millis()).unwrap_or(i64::MAX);
        let arguments = [i64::from(self.replicas), within_ms].map(Argument::Integer).to_vec();
        let client = link.client().with_options(&Link::options(left));
        async move { client.custom_raw(command, arguments).await }
    }

    /// Whether a grant counts, by the answer to [`wait`](Self::wait).
    pub(super) fn met(self, count: Raw, deadline: Duration) -> Outcome<()> {
        let frame = count.map_err(|error| match error.kind() {
            ErrorKind::Timeout => Cause::TimedOut(deadline),
            // Whether it was sent or not: the script was.
            _ => Cause::Broken(replies::readable(&error).into()),
        })?;
        let Self { replicas: needed, within } = self;
        match replies::value(frame)? {
            Value::Int(count) if count >= i64::from(needed) => Ok(()),
            Value::Int(count) => {
                let acknowledged = u32::try_from(count).unwrap_or(0);
                Err(Cause::Unacknowledged { acknowledged, needed, within })
            }
            other => Err(Cause::Rejected(format!("unexpected answer to WAIT: {other:?}").into())),
        }
    }
}

/// The script's answer, and that of the wait where the script granted: nobody waits for it
/// otherwise. Both leave with the first poll, the script first.
pub(super) async fn together(
    script: impl Future<Output = Raw>,
    wait: impl Future<Output = Raw>,
) -> (Raw, Option<Raw>) {
    let (mut script, mut wait) = (pin!(script), pin!(wait));
    let (mut answer, mut count) = (None, None);
    poll_fn(|context| {
        if answer.is_none()
            && let Poll::Ready(frame) = script.as_mut().poll(context)
        {
            answer = Some(frame);
        }
        if count.is_none()
            && let Poll::Ready(frame) = wait.as_mut().poll(context)
        {
            count = Some(frame);
        }
        let granted = matches!(&answer, Some(Ok(frame)) if replies::grants(frame));
        match answer.take() {
            Some(frame) if !granted => Poll::Ready((frame, None)),
            Some(frame) if count.is_some() => Poll::Ready((frame, count.take())),
            open => {
                answer = open;
                Poll::Pending
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures::FutureExt;

    use super::*;

    const NEEDED: Needed = Needed { replicas: 2, within: Duration::from_millis(50) };
    const DEADLINE: Duration = Duration::from_millis(200);

    fn number(data: i64) -> Frame {
        Frame::Number { data, attributes: None }
    }

    fn answer(code: i64) -> Raw {
        let entries = vec![number(code), number(5), number(0)];
        Ok(Frame::Array { data: entries, attributes: None })
    }

    #[test]
    fn a_refusal_is_told_without_waiting_for_replicas() {
        let told = together(ready(answer(0)), pending()).now_or_never();
        assert!(matches!(told, Some((Ok(_), None))));
        assert!(together(ready(answer(1)), pending()).now_or_never().is_none());
        let told = together(ready(answer(1)), ready(Ok(number(2)))).now_or_never();
        assert!(matches!(told, Some((Ok(_), Some(Ok(_))))));
    }

    #[test]
    fn a_grant_counts_from_the_replicas_needed_on_and_tells_how_many_there_were() {
        assert_eq!(NEEDED.met(Ok(number(2)), DEADLINE), Ok(()));
        assert_eq!(NEEDED.met(Ok(number(3)), DEADLINE), Ok(()));
        let short = NEEDED.met(Ok(number(1)), DEADLINE).unwrap_err();
        assert_eq!(short.to_string(), "1 of 2 replicas acknowledged within 50ms");
    }

    #[test]
    fn a_grant_without_an_answer_to_the_wait_may_have_run_and_does_not_count() {
        let of = |kind, text| NEEDED.met(Err(Error::new(kind, text)), DEADLINE).unwrap_err();
        assert_eq!(of(ErrorKind::Timeout, "late"), Cause::TimedOut(DEADLINE));
        let unsent = of(ErrorKind::Canceled, "Connection closed unexpectedly.");
        assert_eq!(unsent, Cause::Broken("Connection closed unexpectedly".into()));
    }
}
