//! Grants that count only once replicas have them.
//!
//! `WAIT` tells how many replicas have what was written before it on its own connection, and the
//! server does nothing else for that connection meanwhile. So it leaves with the script, right
//! behind it, but only where none is under way: one at a time holds up whatever else there is to
//! do, and as few do as possible. Scripts that leave meanwhile run together as soon as it is
//! answered, and one more, for all of them, follows their answers.

use std::{
    pin::pin,
    sync::{Arc, Mutex, Weak},
    task::{Context, Poll},
    time::Duration,
};

use fred::{
    error::{Error, ErrorKind},
    interfaces::ClientLike,
    types::{ClusterHash, CustomCommand, Resp3Frame as Frame, Value as Argument},
};
use futures::future::{self, BoxFuture, FutureExt};
use tokio::{sync::watch, time};

use super::{link::Link, lock, replies};
use crate::{
    clock::Clock,
    proto::Cause,
    scripts::Value,
    settings::ReplicaAcks,
    voter::{Call, Outcome},
};

/// What a request came to at the connection.
pub(super) type Raw = Result<Frame, Error>;

/// Asks for replicas, on one connection after another.
#[derive(Debug)]
pub(super) struct Acks {
    settings: ReplicaAcks,
    /// Of the connection that was last used.
    line: Mutex<(Weak<Link>, Arc<AckLine>)>,
}

impl Acks {
    pub(super) fn new(settings: ReplicaAcks) -> Self {
        Self { settings, line: Mutex::new((Weak::new(), Arc::default())) }
    }

    /// What a grant of this call needs, if it has so much time; `None` where it counts by itself.
    pub(super) fn needed(&self, link: &Arc<Link>, call: &Call, left: Duration) -> Option<Needed> {
        let ReplicaAcks { replicas, .. } = self.settings;
        (replicas > 0 && call.script.votes).then(|| Needed {
            replicas,
            within: self.settings.within(left),
            left,
            deadline: call.deadline,
            width: call.script.width,
            link: Arc::clone(link),
            line: self.line(link),
        })
    }

    fn line(&self, link: &Arc<Link>) -> Arc<AckLine> {
        let mut line = lock(&self.line);
        if Weak::as_ptr(&line.0) != Arc::as_ptr(link) {
            *line = (Arc::downgrade(link), Arc::default());
        }
        Arc::clone(&line.1)
    }
}

/// What a grant needs in order to count, and where to ask for it.
pub(super) struct Needed {
    replicas: u32,
    within: Duration,
    left: Duration,
    deadline: Duration,
    /// How many entries of the reply a request has.
    width: usize,
    link: Arc<Link>,
    line: Arc<AckLine>,
}

impl Needed {
    /// The script's answer, and whether it counts where it is a grant. Leaves with the first poll,
    /// the script first.
    pub(super) async fn by(self, script: impl Future<Output = Raw>) -> (Raw, Outcome<()>) {
        let sent = Clock::System.now();
        let mut script = pin!(script);
        let first = future::poll_fn(|context| {
            let first = script.as_mut().poll(context);
            let number = self.line.leave();
            self.ask(context);
            Poll::Ready((first, number))
        });
        let answer = match first.await {
            (Poll::Ready(answer), number) => (answer, number),
            (Poll::Pending, number) => (script.await, number),
        };
        let (Ok(frame), number) = answer else { return (answer.0, Ok(())) };
        if !replies::grants(&frame, self.width) {
            return (Ok(frame), Ok(()));
        }
        let rest = self.left.saturating_sub(Clock::System.now().since(sent));
        let counted = time::timeout(rest, self.counted(number)).await;
        let counts = counted.unwrap_or(Err(Cause::TimedOut(self.deadline)));
        (Ok(frame), counts)
    }

    /// Whether enough replicas have what the script of this number wrote.
    async fn counted(&self, number: u64) -> Outcome<()> {
        let mut news = self.line.0.subscribe();
        loop {
            if let Some(heard) = news.borrow_and_update().about(number) {
                return self.met(heard);
            }
            future::poll_fn(|context| {
                self.ask(context);
                Poll::Ready(())
            })
            .await;
            // The sender is here, so this cannot fail.
            let _ = news.changed().await;
        }
    }

    fn met(&self, heard: &AckHeard) -> Outcome<()> {
        let (count, needed) = (heard.count.clone()?, self.replicas);
        if count >= i64::from(needed) {
            return Ok(());
        }
        let acknowledged = u32::try_from(count).unwrap_or(0);
        Err(Cause::Unacknowledged { acknowledged, needed, within: heard.within })
    }

    /// Asks for replicas of all that has left so far, unless that is under way. Leaves at once.
    fn ask(&self, context: &mut Context<'_>) {
        let Some(about) = self.line.begin() else { return };
        let mut wait = self.wait();
        let wait = match wait.poll_unpin(context) {
            Poll::Ready(reply) => future::ready(reply).boxed(),
            Poll::Pending => wait,
        };
        let (line, within, deadline) = (Arc::clone(&self.line), self.within, self.deadline);
        // Whoever asked may go before it is answered, and others wait for the answer.
        tokio::spawn(async move {
            let count = count(wait.await, deadline);
            line.end(AckHeard { about, within, count });
        });
    }

    fn wait(&self) -> BoxFuture<'static, Raw> {
        let command = CustomCommand::new_static("WAIT", ClusterHash::Custom(0), false);
        let within_ms = i64::try_from(self.within.as_millis()).unwrap_or(i64::MAX);
        let arguments = [i64::from(self.replicas), within_ms].map(Argument::Integer).to_vec();
        let client = self.link.client().with_options(&Link::options(self.left));
        async move { client.custom_raw(command, arguments).await }.boxed()
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

/// What was asked and heard on one connection.
#[derive(Debug, Default)]
struct AckLine(watch::Sender<AckNews>);

#[derive(Debug, Default)]
struct AckNews {
    /// How many scripts have left that need replicas.
    left: u64,
    asked: bool,
    heard: Option<AckHeard>,
}

/// What the latest question came to.
#[derive(Debug)]
struct AckHeard {
    /// The number of the last script that left before it.
    about: u64,
    within: Duration,
    count: Outcome<i64>,
}

impl AckNews {
    /// What is heard of a later script is true of those before it.
    fn about(&self, number: u64) -> Option<&AckHeard> {
        self.heard.as_ref().filter(|heard| number <= heard.about)
    }
}

impl AckLine {
    /// A script has left: its number.
    fn leave(&self) -> u64 {
        let mut number = 0;
        self.0.send_if_modified(|news| {
            news.left += 1;
            number = news.left;
            false
        });
        number
    }

    /// A question is about to leave: behind which script. `None` where one is under way.
    fn begin(&self) -> Option<u64> {
        let mut about = None;
        self.0.send_if_modified(|news| {
            about = (!news.asked).then_some(news.left);
            news.asked = true;
            false
        });
        about
    }

    fn end(&self, heard: AckHeard) {
        self.0.send_modify(|news| {
            news.asked = false;
            news.heard = Some(heard);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn heard(about: u64, count: i64) -> AckHeard {
        AckHeard { about, within: MS(50), count: Ok(count) }
    }

    #[test]
    fn one_question_is_under_way_and_is_about_what_left_before_it() {
        let line = AckLine::default();
        assert_eq!((line.leave(), line.begin()), (1, Some(1)));
        assert_eq!((line.leave(), line.begin()), (2, None));
        line.end(heard(1, 2));
        assert!(line.0.borrow().about(1).is_some());
        assert!(line.0.borrow().about(2).is_none(), "it left behind the question");
        assert_eq!((line.leave(), line.begin()), (3, Some(3)));
        line.end(heard(3, 2));
        assert!((1..=3).all(|number| line.0.borrow().about(number).is_some()));
    }

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
