//! Scripts: sent at most once, in order, answered by their deadline.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use bytes::Bytes;
use fred::{
    error::Error,
    interfaces::ClientLike,
    types::{ClusterHash, CustomCommand, Resp3Frame as Frame, Value as Argument},
};

use super::{
    link::Link,
    order::{Naming, Order},
    replies,
};
use crate::{
    clock::Clock,
    node::{Call, Outcome},
    scripts::Value,
    words::Cause,
};

/// The connection for scripts.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) link: Arc<Link>,
    pub(super) order: Order,
}

impl Runner {
    /// fred queues a command for its router when the command's future is first polled, with no
    /// await before that (`basic_request_response` in its `utils.rs`: the one await there is ready
    /// at once unless blocked connections shall be interrupted). The router writes in that order.
    pub(super) async fn run(self: Arc<Self>, call: Call) -> Outcome<Value> {
        let left = Clock::System.now();
        let (number, naming) = self.order.leave(&call);
        let whole = matches!(naming, Naming::Source);
        let frame = self.send(&call, naming, call.deadline).await;
        let frame = self.link.noted(frame, call.deadline)?;
        if !replies::is_unknown_script(&frame) {
            if whole {
                self.order.loaded(call.script);
            }
            return replies::value(frame);
        }
        let spent = Clock::System.now().since(left);
        self.again(&call, number, call.deadline.saturating_sub(spent), frame).await
    }

    /// After NOSCRIPT, `refusal`: nothing ran.
    async fn again(
        &self,
        call: &Call,
        number: u64,
        rest: Duration,
        refusal: Frame,
    ) -> Outcome<Value> {
        self.order.unknown(call.script);
        if rest.is_zero() {
            return replies::value(refusal);
        }
        let mut request = pin!(self.send(call, Naming::Source, rest));
        let mut sent = false;
        let frame = poll_fn(|context| {
            if sent {
                return request.as_mut().poll(context).map(Some);
            }
            sent = true;
            let first = || request.as_mut().poll(context).map(Some);
            self.order.again(call, number, first).unwrap_or(Poll::Ready(None))
        });
        match frame.await {
            Some(frame) => {
                let frame = self.link.noted(frame, call.deadline)?;
                self.order.loaded(call.script);
                replies::value(frame)
            }
            None => Err(Cause::Rejected(
                "NOSCRIPT, and not sent again because later requests have overtaken it".into(),
            )),
        }
    }

    /// A custom command, because fred ignores all options of its own EVALSHA.
    fn send(
        &self,
        call: &Call,
        naming: Naming,
        within: Duration,
    ) -> impl Future<Output = Result<Frame, Error>> + use<> {
        let (name, script) = match naming {
            Naming::Hash(sha) => ("EVALSHA", sha),
            Naming::Source => ("EVAL", Bytes::from_static(call.script.source.as_bytes())),
        };
        let mut arguments = Vec::with_capacity(2 + call.keys.len() + call.args.len());
        arguments.push(Argument::Bytes(script));
        arguments.push(Argument::Integer(i64::try_from(call.keys.len()).unwrap_or(i64::MAX)));
        arguments.extend(call.keys.iter().chain(&*call.args).map(argument));
        let command = CustomCommand::new_static(name, ClusterHash::Custom(0), false);
        let client = self.link.client().with_options(&Link::options(within));
        async move { client.custom_raw(command, arguments).await }
    }
}

/// Shares the text: fred clones every argument, and bytes made by copying then allocate again.
fn argument(text: &Arc<str>) -> Argument {
    struct Text(Arc<str>);
    impl AsRef<[u8]> for Text {
        fn as_ref(&self) -> &[u8] {
            self.0.as_bytes()
        }
    }
    Argument::Bytes(Bytes::from_owner(Text(Arc::clone(text))))
}
