//! The one trait between the coordinator and a voter.

use std::{
    collections::BTreeSet,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{self, BoxFuture},
};

use super::Request;
pub(crate) use crate::proto::{Birth, Identity, Stamp};
use crate::{
    keys::Prefix,
    proto::{Cause, FoundLock, LockKind, ServerReport, Slots},
    scripts::{Answer, Script},
};

/// The shard of a voter that has one.
pub(crate) const ONLY: usize = 0;

/// What came of a request to one voter.
pub(crate) type Outcome<T> = Result<T, Cause>;

/// What came of each request of a call, in their order.
pub(crate) type Answers = Vec<Outcome<Answer>>;

/// A script with its requests, one or several. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) script: &'static Script,
    /// The arguments that all requests share. Behind them the node adds the command that
    /// publishes, where the script takes it.
    pub(crate) shared: Arc<[Arc<str>]>,
    pub(crate) requests: Arc<[Arc<Request>]>,
    /// How long an answer is worth waiting for.
    pub(crate) deadline: Duration,
    /// And how long at most, where its voter was seen to need longer.
    pub(crate) longest: Duration,
}

impl Call {
    /// One call for the requests of several, all of one script and with the same shared arguments.
    pub(crate) fn join<'a>(calls: impl Iterator<Item = &'a Self> + Clone) -> Option<Self> {
        let first = calls.clone().next()?;
        let mut call = first.clone();
        if calls.clone().nth(1).is_some() {
            call.requests = calls.flat_map(|call| &*call.requests).cloned().collect();
        }
        Some(call)
    }

    /// The same for some of its requests.
    pub(crate) fn pick(&self, requests: &[usize]) -> Self {
        if requests.len() == self.requests.len() {
            return self.clone();
        }
        let requests = requests.iter().map(|request| Arc::clone(&self.requests[*request]));
        Self { requests: requests.collect(), ..self.clone() }
    }

    /// The same for a request, just made, that is about so many slots.
    pub(crate) fn weighing(mut self, slots: u16) -> Self {
        let request = Arc::get_mut(&mut self.requests).and_then(|all| Arc::get_mut(&mut all[0]));
        if let Some(request) = request {
            request.weight = slots.min(Slots::AT_ONCE);
        }
        self
    }

    /// What goes into KEYS.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> + Clone {
        self.requests.iter().flat_map(|request| request.keys())
    }

    /// What goes into ARGV behind the shared arguments.
    pub(crate) fn args(&self) -> impl Iterator<Item = &str> + Clone {
        self.requests.iter().flat_map(|request| request.args())
    }

    /// The key of the first request: where a call goes, all its requests go.
    pub(crate) fn key(&self) -> &str {
        self.requests[0].key()
    }

    /// The same cause for each request.
    pub(crate) fn all_failed(&self, cause: &Cause) -> Answers {
        vec![Err(cause.clone()); self.requests.len()]
    }
}

/// Which locks are looked for among the keys of a voter.
#[derive(Clone, Debug)]
pub(crate) struct KeySearch {
    pub(crate) keys: Prefix,
    /// Of which kind of lock a key shows something that ends so.
    pub(crate) kind_of: fn(&str) -> Option<LockKind>,
    /// A pattern that their names fit, as `SCAN` takes it.
    pub(crate) names: Arc<str>,
    /// So many are enough.
    pub(crate) limit: usize,
}

impl KeySearch {
    /// The lock of which this key shows who has it or who waits.
    pub(crate) fn found(&self, key: &str) -> Option<FoundLock> {
        let (name, end) = self.keys.parts(key)?;
        Some(FoundLock { name, kind: (self.kind_of)(end)? })
    }
}

/// The locks of which a voter has keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeysFound {
    pub(crate) locks: BTreeSet<FoundLock>,
    /// There are no more.
    pub(crate) is_complete: bool,
}

/// Hears who a voter is, what its channels say, and when they may have gone unheard.
pub(crate) trait VoterEvents: Send + Sync {
    /// A new connection stands, and this is who answers on it. No script runs on a connection
    /// before this was called for it; called for each, the first included. Without a stamp the
    /// server does not tell its time. The server has one shard of the voter, mostly the only one.
    /// Says whether its data lack something, or may, and so are to be [renamed](Node::rename).
    fn met(&self, shard: usize, identity: &Identity, stamp: Option<Stamp>) -> bool;
    /// The server was asked again on a connection of which was told; the same.
    fn seen(&self, shard: usize, identity: &Identity, stamp: Option<Stamp>) -> bool;
    /// A connection of which was told has ended; with the reason, unless this side ended it.
    fn parted(&self, shard: usize, why: Option<&str>);
    /// What was in one shard is in another now, unless it was lost on the way.
    fn moved(&self, from: usize, to: usize, lost: bool);
    /// A message came on `channel`.
    fn called(&self, channel: &str, message: &str);
    /// Somebody waits for a message.
    fn is_waited_for(&self) -> bool;
    /// Messages may have been lost (a reconnection, an overflow): whoever waits must look again.
    fn missed(&self);
}

/// A voter as seen by its task. Each request leaves before the method returns, in order and at most
/// once; the futures own all they need, and dropping one does not call its request back.
pub(crate) trait Node: Send + Sync {
    /// Sends a script. Answers by the call's deadline, for each request by itself.
    fn send(&self, call: Call) -> BoxFuture<'static, Answers>;

    /// Which part of the voter a key belongs to: no call may have keys of two.
    fn part(&self, _key: &str) -> u16 {
        0
    }

    /// The shard that a call with this key would be sent to now.
    fn shard(&self, _key: &str) -> usize {
        ONLY
    }

    /// Listens to a channel; completes when the server is known to deliver what is published from
    /// then on. A node listens again by itself after a reconnection, and tells the listener.
    fn subscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>>;

    /// Stops listening.
    fn unsubscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>>;

    /// Who the server is, as it said on the connection that stands.
    fn identify(&self) -> BoxFuture<'static, Outcome<Identity>>;

    /// Gives the data of a shard another name, by which all clients know that they lack something.
    fn rename(&self, shard: usize) -> BoxFuture<'static, Outcome<()>>;

    /// What its servers say of themselves when they are asked now. `calls`: a channel on which a
    /// client could be called.
    fn survey(&self, calls: Arc<str>) -> BoxFuture<'static, Outcome<Vec<ServerReport>>>;

    /// The locks of which its servers have keys.
    fn search(&self, search: KeySearch) -> BoxFuture<'static, Outcome<KeysFound>>;

    /// Ends the connections.
    fn close(&self) -> BoxFuture<'static, ()>;
}

/// What the future sends when it is first polled has left when this returns.
pub(super) fn begin<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> BoxFuture<'static, T> {
    let mut future = future.boxed();
    // Whoever awaits it polls it again, with a waker of its own.
    match future.poll_unpin(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => future::ready(done).boxed(),
        Poll::Pending => future,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Call {
        /// From the texts in KEYS and ARGV. Leave out the command that publishes.
        pub(crate) fn of(script: &'static Script, keys: &[&str], args: &[&str]) -> Self {
            let shared = script.shared.len() - usize::from(script.publishes());
            let (shared, args) = args.split_at(shared);
            let each = script.args.len();
            let requests = keys.chunks(script.keys.len()).enumerate().map(|(request, keys)| {
                let args = &args[request * each..(request + 1) * each];
                let hold = args.first().map(|hold| crate::proto::HoldId::parse(hold));
                let [keys, args] = [keys, args].map(|texts| texts.iter().map(|&text| text.into()));
                Request::new(keys, args, hold.as_ref())
            });
            let (shared, requests) =
                (shared.iter().map(|&text| text.into()).collect(), requests.collect());
            let deadline = Duration::from_millis(200);
            Self { script, shared, requests, deadline, longest: deadline }
        }
    }

    impl dyn Node {
        /// Sends a call of one request.
        pub(crate) fn run(&self, call: Call) -> BoxFuture<'static, Outcome<Answer>> {
            let answers = self.send(call);
            async move {
                let mut answer = answers.await.remove(0);
                if let Ok(answer) = &mut answer {
                    answer.data = None;
                }
                answer
            }
            .boxed()
        }
    }
}
