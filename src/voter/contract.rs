//! The trait between the coordinator and a voter, and what crosses it.

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

/// The shard of a voter that is a single server.
pub(crate) const ONLY: usize = 0;

/// The result of a request to one voter.
pub(crate) type Outcome<T> = Result<T, Cause>;

/// The results of a call's requests, in the order of the requests.
pub(crate) type Answers = Vec<Outcome<Answer>>;

/// A script with its requests, one or several. Clones share the requests.
// Not copied: a call is cloned for each voter, and once more if a release has to be repeated.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) script: &'static Script,
    /// The arguments that all requests share. The node adds the command that publishes behind
    /// them, if the script takes one.
    pub(crate) shared: Arc<[Arc<str>]>,
    pub(crate) requests: Arc<[Arc<Request>]>,
    /// How long to wait for the answer.
    pub(crate) deadline: Duration,
    /// How long to wait at most if the voter's round trips have taken longer so far.
    // The deadline itself cannot grow: the voters of a client may be at different distances.
    pub(crate) longest: Duration,
}

impl Call {
    /// One call for the requests of several calls of one script with the same shared arguments.
    pub(crate) fn join<'a>(calls: impl Iterator<Item = &'a Self> + Clone) -> Option<Self> {
        let first = calls.clone().next()?;
        let mut call = first.clone();
        // A request that is alone in its call, as most are, keeps its list: nothing is allocated.
        if calls.clone().nth(1).is_some() {
            call.requests = calls.flat_map(|call| &*call.requests).cloned().collect();
        }
        Some(call)
    }

    /// The same call with only some of its requests.
    pub(crate) fn pick(&self, requests: &[usize]) -> Self {
        if requests.len() == self.requests.len() {
            return self.clone();
        }
        let requests = requests.iter().map(|request| Arc::clone(&self.requests[*request]));
        Self { requests: requests.collect(), ..self.clone() }
    }

    /// The same call of one new request, which is about so many slots of a semaphore.
    pub(crate) fn weighing(mut self, slots: u16) -> Self {
        let request = Arc::get_mut(&mut self.requests).and_then(|all| Arc::get_mut(&mut all[0]));
        if let Some(request) = request {
            // A heavier request would fit into no call: `Lanes::take_from` fills a call up to this.
            request.weight = slots.min(Slots::AT_ONCE);
        }
        self
    }

    /// The words of KEYS.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> + Clone {
        self.requests.iter().flat_map(|request| request.keys())
    }

    /// The words of ARGV behind the shared arguments.
    pub(crate) fn args(&self) -> impl Iterator<Item = &str> + Clone {
        self.requests.iter().flat_map(|request| request.args())
    }

    /// The key of the first request.
    // It stands for all requests: a lane has one part of the voter, so in a cluster all its keys
    // have one slot.
    pub(crate) fn key(&self) -> &str {
        self.requests[0].key()
    }

    /// The same cause for each request.
    pub(crate) fn all_failed(&self, cause: &Cause) -> Answers {
        vec![Err(cause.clone()); self.requests.len()]
    }
}

/// Which locks to look for among the keys of a voter.
#[derive(Clone, Debug)]
pub(crate) struct KeySearch {
    pub(crate) keys: Prefix,
    /// The kind of a lock that has a key with this end.
    pub(crate) kind_of: fn(&str) -> Option<LockKind>,
    /// A pattern for the names, as `SCAN` takes it.
    pub(crate) names: Arc<str>,
    /// Ends the search once more locks than this are found.
    pub(crate) limit: usize,
}

impl KeySearch {
    /// The lock to which this key belongs, if the key shows a holder or a waiter.
    pub(crate) fn found(&self, key: &str) -> Option<FoundLock> {
        let (name, end) = self.keys.parts(key)?;
        Some(FoundLock { name, kind: (self.kind_of)(end)? })
    }
}

/// The locks whose keys a voter has.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeysFound {
    pub(crate) locks: BTreeSet<FoundLock>,
    /// There are no more.
    pub(crate) is_complete: bool,
}

/// Receives what a node learns of its servers, and the messages of its channels.
pub(crate) trait VoterEvents: Send + Sync {
    /// A new connection to the server of this shard stands. There is no stamp if the server does
    /// not tell its time. Returns whether the data lack something, or may: then the node
    /// [renames](Node::rename) them.
    // Each node calls this for each connection before the first script leaves on it. A voter that
    // restarted without its data would otherwise grant before the client knows of the restart (law
    // 1, mutant `restart_not_noticed`).
    fn note_connection(&self, shard: usize, identity: &Identity, stamp: Option<Stamp>) -> bool;
    /// The same after the server was asked again on such a connection.
    fn note_inspection(&self, shard: usize, identity: &Identity, stamp: Option<Stamp>) -> bool;
    /// Such a connection has ended, with the reason unless this side ended it.
    fn note_disconnect(&self, shard: usize, why: Option<&str>);
    /// The data of one shard are in another now, unless they were lost on the way.
    fn note_move(&self, from: usize, to: usize, lost: bool);
    /// A message came on `channel`.
    fn deliver(&self, channel: &str, message: &str);
    /// Whether a task waits for a message.
    fn has_waiters(&self) -> bool;
    /// Messages may have been lost (a reconnection, an overflow): all waiters must ask again.
    fn note_lost_messages(&self);
}

/// A voter as its task sees it.
// Each request leaves before its method returns, in order and at most once, and stays sent if its
// future is dropped. When a caller's first poll sent the request, an undo could leave before its
// acquire, and the vote stayed until its lease ended (law 6, design 3).
pub(crate) trait Node: Send + Sync {
    /// Sends a script. Answers each request by itself, by the call's deadline.
    fn send(&self, call: Call) -> BoxFuture<'static, Answers>;

    /// The part of the voter to which a key belongs: no call may have keys of two parts.
    fn part(&self, _key: &str) -> u16 {
        0
    }

    /// The shard to which a call with this key would be sent now.
    fn shard(&self, _key: &str) -> usize {
        ONLY
    }

    /// Listens to a channel. Completes when the server delivers what is published from then on.
    /// After a reconnection a node listens again by itself, and then calls
    /// [`note_lost_messages`](VoterEvents::note_lost_messages).
    fn subscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>>;

    /// Stops listening.
    fn unsubscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>>;

    /// Who the server is, as it said on the connection that stands.
    fn identify(&self) -> BoxFuture<'static, Outcome<Identity>>;

    /// Gives the data of a shard another name.
    // By the new name all clients learn that the data lack something, also those that come later
    // (design 5). A quarantine in this client alone would leave the voter to the others.
    fn rename(&self, shard: usize) -> BoxFuture<'static, Outcome<()>>;

    /// What the voter's servers say of themselves now. `calls`: a channel as it is used for
    /// wake-ups, to find out whether the user may publish there.
    fn survey(&self, calls: Arc<str>) -> BoxFuture<'static, Outcome<Vec<ServerReport>>>;

    /// The locks whose keys the voter's servers have.
    fn search(&self, search: KeySearch) -> BoxFuture<'static, Outcome<KeysFound>>;

    /// Ends the connections.
    fn close(&self) -> BoxFuture<'static, ()>;
}

/// Polls a future once: what it sends with its first poll has left when this returns.
pub(super) fn begin<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> BoxFuture<'static, T> {
    let mut future = future.boxed();
    // No wake-up is lost by this waker: whoever awaits the future polls it again, with its own.
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
