//! A voter that is a part of a Redis Cluster: the servers that have its range of hash slots.
//!
//! It sends each script to the server that has the lock's slot, by a map that the voters of a
//! cluster share, over the connections of [`SingleNode`]. What a server redirects has not run
//! there, so it is sent again: to where the slot is by then, unless a later request of the same
//! hold has left since.

mod map;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{self, BoxFuture, join_all},
};
use tokio::{task::JoinSet, time};

pub(crate) use self::map::Topology;
use self::map::{Endpoint, Map, TopologyNews, endpoint};
use super::{
    Answers, Call, Identity, KeySearch, KeysFound, Looks, Node, ONLY, Outcome, SingleNode,
    VoterEvents, contract::begin, lock, seat::Seat, single::Order,
};
use crate::{
    clock::Clock,
    log,
    proto::{Cause, ServerError, ServerReport},
    scripts::Answer,
};

/// How long it may take to learn who the servers are.
const IDENTIFICATION: Duration = Duration::from_secs(1);

/// Between two attempts to send while a slot is on its way.
const MOVING: Duration = Duration::from_millis(5);

/// One voter of a cluster. Its tasks end with [`Node::close`] or when it is dropped.
pub(crate) struct ClusterNode {
    voter: Arc<ClusterVoter>,
    following: Mutex<JoinSet<()>>,
}

/// What the tasks of a voter share.
struct ClusterVoter {
    seat: Seat,
    /// What the voters are called.
    labels: Arc<[Arc<str>]>,
    /// Whether it may share a server with another voter.
    may_share: bool,
    /// What is asked of its servers; the key of their fingerprints but for its slot.
    looks: Looks,
    topology: Arc<Topology>,
    listener: Arc<dyn VoterEvents>,
    order: Order,
    branches: Mutex<HashMap<Endpoint, Branch>>,
    /// By the names outside, where each channel is listened to. Another connection to the same
    /// server does not know of it.
    listening: Mutex<HashMap<Arc<str>, Weak<SingleNode>>>,
}

/// The connections to a server that leads a shard.
#[derive(Clone)]
struct Branch {
    shard: usize,
    at: Endpoint,
    node: Arc<SingleNode>,
}

impl ClusterNode {
    /// Starts to connect. Must be called on a runtime.
    pub(crate) fn start(
        topology: &Arc<Topology>,
        voter: u16,
        labels: Arc<[Arc<str>]>,
        may_share: bool,
        looks: Looks,
        listener: Arc<dyn VoterEvents>,
    ) -> Arc<dyn Node> {
        topology.tell(Arc::clone(&listener));
        let seat = Seat::new(voter, u16::try_from(labels.len()).unwrap_or(u16::MAX));
        let voter = Arc::new(ClusterVoter {
            seat,
            labels,
            may_share,
            looks,
            topology: Arc::clone(topology),
            listener,
            order: Order::default(),
            branches: Mutex::default(),
            listening: Mutex::default(),
        });
        let (mut following, topology) = (JoinSet::new(), Arc::clone(topology));
        following.spawn(async move { topology.keep().await });
        following.spawn(Arc::clone(&voter).follow());
        Arc::new(Self { voter, following: Mutex::new(following) })
    }
}

impl ClusterVoter {
    /// Keeps the connections and the channels where the map says, for as long as it is polled.
    async fn follow(self: Arc<Self>) {
        let mut news = self.topology.news();
        let (mut shares, mut known) = (false, Arc::<Map>::default());
        // The topology is here, so this does not fail.
        while news.changed().await.is_ok() {
            let map = self.topology.map();
            if map != known {
                shares = self.tell_of_twins(&map, shares);
                self.connect(&map);
                known = Arc::clone(&map);
            }
            // Also where the map is the same: another one may have come and gone meanwhile.
            self.listen_where_the_slots_are(&map).await;
        }
    }

    /// Two voters on one server fail together, which is what there are several for. Whether this
    /// one shares its server; `did` it before?
    fn tell_of_twins(&self, map: &Map, did: bool) -> bool {
        let voter = Arc::clone(self.label());
        let Some((other, slot)) = map.shared(self.seat) else {
            if did {
                log::tell(move || tracing::warn!(%voter, "the voter shares no server any more"));
            }
            return false;
        };
        let other = Arc::clone(&self.labels[usize::from(other)]);
        let server = map.route(slot).map(|(_, at)| at.clone());
        if self.may_share {
            log::tell(move || {
                tracing::warn!(%voter, %other, ?server, "two voters share a server");
            });
        } else {
            log::tell(move || {
                tracing::error!(
                    %voter, %other, ?server, "two voters share a server: one vote less"
                );
            });
        }
        true
    }

    /// Connects to the servers of this voter, and leaves those that lead nothing any more.
    fn connect(&self, map: &Map) {
        lock(&self.branches).retain(|at, branch| map.led_by(at) == Some(branch.shard));
        for (shard, at) in map.servers(self.seat) {
            self.branch(shard, at);
        }
    }

    /// The connections to the server that has a slot. A slot that nobody has may have been given to
    /// somebody since the map was drawn. No vote is asked for where another voter, which is asked
    /// before this one, is on the same server.
    fn route(&self, slot: u16, votes: bool) -> Outcome<Branch> {
        let map = self.topology.map();
        if let Some(other) = map.twin(self.seat, slot, 0..self.seat.voter)
            && votes
            && !self.may_share
        {
            return Err(Cause::Duplicate(Arc::clone(&self.labels[usize::from(other)])));
        }
        let Some((shard, at)) = map.route(slot) else {
            self.topology.doubt(None);
            return Err(self.unknown(slot));
        };
        Ok(self.branch(shard, at))
    }

    /// The connections to a server that leads this shard.
    fn branch(&self, shard: usize, at: &Endpoint) -> Branch {
        let mut branches = lock(&self.branches);
        if let Some(branch) = branches.get(at).filter(|branch| branch.shard == shard) {
            return branch.clone();
        }
        let key = self.looks.fingerprint.as_ref();
        let fingerprint = key.and_then(|key| self.topology.map().fingerprint(shard, key));
        let looks = Looks { fingerprint, shard, seat: Some(self.seat), ..self.looks.clone() };
        let node = SingleNode::start(&self.topology.access(at), Arc::clone(&self.listener), looks);
        let branch = Branch { shard, at: at.clone(), node };
        branches.insert(at.clone(), branch.clone());
        branch
    }

    /// Why there is no way to a slot.
    fn unknown(&self, slot: u16) -> Cause {
        let TopologyNews { answers, trouble, .. } = self.topology.news().borrow().clone();
        match trouble {
            Some(cause) => cause,
            None if answers == 0 => Cause::Unreachable("not connected yet".into()),
            None => Cause::Unreachable(format!("no server has the hash slot {slot}").into()),
        }
    }

    fn label(&self) -> &Arc<str> {
        &self.labels[usize::from(self.seat.voter)]
    }

    /// Sends a call of one slot when first polled.
    async fn run(self: Arc<Self>, call: Call) -> Answers {
        let (slot, started) = (self.seat.slot(call.key()), Clock::System.now());
        let (placed, departed) = (self.seat.place(&call), self.order.leave(&call));
        let mut way = match self.route(slot, call.script.votes) {
            Ok(branch) => (branch, false),
            Err(cause) => return call.all_failed(&cause),
        };
        // Of the requests that are open still, and of all.
        let mut open: Vec<usize> = (0..call.requests.len()).collect();
        let mut answers = call.all_failed(&Cause::Unheard);
        let rest = || call.deadline.saturating_sub(Clock::System.now().since(started));
        let mut deadline = call.deadline;
        loop {
            let seen = self.topology.news().borrow().answers;
            let (branch, asking) = &way;
            let sent = Call { deadline, ..placed.pick(&open) };
            let heard = Arc::clone(&branch.node.runner).run(sent, *asking).await;
            let is_lost = |it: &_| matches!(it, Err(Cause::Unreachable(_) | Cause::Broken(_)));
            if heard.iter().any(is_lost) {
                self.topology.doubt(None);
            }
            let (mut redirected, mut again) = (None, Vec::new());
            for (request, answer) in open.into_iter().zip(heard) {
                if let Some(redirect) = Redirect::read(&answer, &branch.at.0) {
                    redirected.get_or_insert(redirect);
                    again.push(request);
                }
                answers[request] = answer;
            }
            let Some(redirect) = redirected else { return answers };
            self.log_redirect(slot, &branch.at, &redirect);
            let next = self.after(redirect, slot, call.script.votes, &branch.at, seen);
            let next = time::timeout(rest(), next).await;
            let (Ok(Ok(next)), false) = (next, rest().is_zero()) else { return answers };
            open = departed.still_latest(again, &mut answers);
            if open.is_empty() {
                return answers;
            }
            (way, deadline) = (next, rest());
        }
    }

    fn log_redirect(&self, slot: u16, at: &Endpoint, redirect: &Redirect) {
        let (voter, at, redirect) = (Arc::clone(self.label()), at.clone(), redirect.clone());
        log::tell(move || tracing::debug!(%voter, slot, ?at, ?redirect, "redirected"));
    }

    /// Where to send what was redirected, and whether the server there is to be asked to take it
    /// although the slot is not its own yet.
    async fn after(
        &self,
        redirect: Redirect,
        slot: u16,
        votes: bool,
        from: &Endpoint,
        mut seen: u64,
    ) -> Outcome<(Branch, bool)> {
        let (branch, asking) = match redirect {
            Redirect::Moved(to) => {
                let mut news = self.topology.news();
                // Who has it may go by another name than the one that was given.
                while self.topology.map().route(slot).is_none_or(|(_, at)| at == from) {
                    self.topology.doubt(Some(to.clone()));
                    // The topology is here, so this does not fail.
                    if let Ok(newer) = news.wait_for(|news| news.answers > seen).await {
                        seen = newer.answers;
                    }
                }
                (self.route(slot, votes)?, false)
            }
            Redirect::Ask(to) => {
                let shard = self.topology.map().led_by(&to);
                if let Some(shard) = shard {
                    (self.branch(shard, &to), true)
                } else {
                    self.topology.doubt(Some(to));
                    time::sleep(MOVING).await;
                    (self.route(slot, votes)?, false)
                }
            }
            Redirect::TryAgain => {
                time::sleep(MOVING).await;
                (self.route(slot, votes)?, false)
            }
            Redirect::Nowhere => {
                self.topology.doubt(None);
                return Err(self.unknown(slot));
            }
        };
        branch.node.runner.gate.tried().await;
        Ok((branch, asking))
    }

    async fn subscribe(self: Arc<Self>, channel: Arc<str>) -> Outcome<()> {
        // Where there is no way there now, it is made up for when there is one.
        lock(&self.listening).entry(Arc::clone(&channel)).or_default();
        let listens = self.listen_at_its_slot(&channel).await;
        if listens.is_err() {
            self.topology.doubt(None);
        }
        listens
    }

    /// Listens to a channel where its slot is, if anybody wants it, and leaves the server where it
    /// was listened to.
    async fn listen_at_its_slot(&self, channel: &Arc<str>) -> Outcome<()> {
        let Branch { node, .. } = self.route(self.seat.slot(channel), false)?;
        let former = lock(&self.listening)
            .get_mut(channel)
            .and_then(|at| std::mem::replace(at, Arc::downgrade(&node)).upgrade());
        if let Some(former) = former.filter(|former| !Arc::ptr_eq(former, &node)) {
            // Where that server is gone, nothing is left to leave.
            let _ = former.unsubscribe(Arc::clone(channel)).await;
        }
        // By now nobody may want it, or the slot may have gone on.
        let is_here = |at: &Weak<SingleNode>| at.as_ptr() == Arc::as_ptr(&node);
        if !lock(&self.listening).get(channel).is_some_and(is_here) {
            return Ok(());
        }
        node.subscribe(Arc::clone(channel)).await
    }

    async fn unsubscribe(self: Arc<Self>, channel: Arc<str>) -> Outcome<()> {
        let at = lock(&self.listening).remove(&channel);
        match at.and_then(|at| at.upgrade()) {
            Some(node) => node.unsubscribe(channel).await,
            None => Ok(()),
        }
    }

    /// Listens anew to the channels whose slots are on other servers now. Until then whatever was
    /// published there may have gone unheard. Where a server does not know yet that a slot is its
    /// own, it is asked until it does.
    async fn listen_where_the_slots_are(&self, map: &Map) {
        let has_moved = |(channel, at): &(&Arc<str>, &Weak<SingleNode>)| {
            let now = map.route(self.seat.slot(channel));
            now.is_some_and(|(shard, now)| {
                at.as_ptr() != Arc::as_ptr(&self.branch(shard, now).node)
            })
        };
        let mut moved: Vec<Arc<str>> = Vec::new();
        moved.extend(lock(&self.listening).iter().filter(has_moved).map(|(it, _)| Arc::clone(it)));
        if !moved.is_empty() {
            join_all(moved.iter().map(|channel| self.listen_at_its_slot(channel))).await;
            self.listener.missed();
        }
    }

    /// Who the server is by which this voter is told from others.
    async fn identify(self: Arc<Self>) -> Outcome<Identity> {
        let mut news = self.topology.news();
        let heard = |news: &TopologyNews| news.answers > 0 || news.trouble.is_some();
        // What is known by then is the answer.
        let _ = time::timeout(IDENTIFICATION, news.wait_for(heard)).await;
        let map = self.topology.map();
        self.connect(&map);
        let nodes: Vec<_> =
            lock(&self.branches).values().map(|branch| Arc::clone(&branch.node)).collect();
        let tried = join_all(nodes.iter().map(|node| node.runner.gate.tried()));
        let _ = time::timeout(IDENTIFICATION, tried).await;
        // In a cramped cluster two voters say that they are the same server.
        let slot = if map.is_cramped(self.seat) {
            map.shared(self.seat).map(|(_, slot)| slot)
        } else {
            map.apart(self.seat)
        };
        let mut identity = self.route(slot.unwrap_or_default(), false)?.node.identify().await?;
        if self.may_share {
            identity.run_id = format!("{}#{}", identity.run_id, self.seat.voter);
        }
        Ok(identity)
    }

    /// What each of its servers says of itself.
    async fn survey(self: Arc<Self>, calls: Arc<str>) -> Outcome<Vec<ServerReport>> {
        let asked = self.servers()?.into_iter().map(|node| node.survey(Arc::clone(&calls)));
        let reports: Outcome<Vec<_>> = join_all(asked).await.into_iter().collect();
        Ok(reports?.into_iter().flatten().collect())
    }

    /// The locks of which its servers have keys.
    async fn search(self: Arc<Self>, search: KeySearch) -> Outcome<KeysFound> {
        let asked = self.servers()?.into_iter().map(|node| node.search(search.clone()));
        let mut all = KeysFound { is_complete: true, ..KeysFound::default() };
        for found in join_all(asked).await {
            let KeysFound { locks, is_complete } = found?;
            all.locks.extend(locks);
            all.is_complete &= is_complete;
        }
        Ok(all)
    }

    /// The servers that have its slots.
    fn servers(&self) -> Outcome<Vec<Arc<SingleNode>>> {
        let map = self.topology.map();
        let servers = map.servers(self.seat);
        if servers.is_empty() {
            return Err(self.unknown(self.seat.start()));
        }
        Ok(servers.into_iter().map(|(shard, at)| self.branch(shard, at).node).collect())
    }

    async fn close(self: Arc<Self>) {
        let branches: Vec<_> = lock(&self.branches).drain().collect();
        join_all(branches.iter().map(|(_, branch)| branch.node.close())).await;
    }
}

impl Node for ClusterNode {
    fn send(&self, call: Call) -> BoxFuture<'static, Answers> {
        begin(Arc::clone(&self.voter).run(call))
    }

    /// A script runs in one hash slot.
    fn part(&self, key: &str) -> u16 {
        self.voter.seat.slot(key)
    }

    fn shard(&self, key: &str) -> usize {
        self.voter.topology.map().shard(self.voter.seat.slot(key)).unwrap_or(ONLY)
    }

    fn subscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>> {
        begin(Arc::clone(&self.voter).subscribe(channel))
    }

    fn unsubscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>> {
        begin(Arc::clone(&self.voter).unsubscribe(channel))
    }

    fn identify(&self) -> BoxFuture<'static, Outcome<Identity>> {
        begin(Arc::clone(&self.voter).identify())
    }

    fn rename(&self, shard: usize) -> BoxFuture<'static, Outcome<()>> {
        let branches = lock(&self.voter.branches);
        // The voter may have left that server by now.
        let branch = branches.values().find(|branch| branch.shard == shard);
        branch.map_or_else(|| future::ready(Ok(())).boxed(), |branch| branch.node.rename(ONLY))
    }

    fn survey(&self, calls: Arc<str>) -> BoxFuture<'static, Outcome<Vec<ServerReport>>> {
        Arc::clone(&self.voter).survey(calls).boxed()
    }

    fn search(&self, search: KeySearch) -> BoxFuture<'static, Outcome<KeysFound>> {
        Arc::clone(&self.voter).search(search).boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        lock(&self.following).abort_all();
        Arc::clone(&self.voter).close().boxed()
    }
}

/// Why nothing ran, or not all.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Redirect {
    /// The slot is elsewhere, for good.
    Moved(Endpoint),
    /// This time it is to be tried elsewhere.
    Ask(Endpoint),
    /// The slot is on its way, and some of the keys are here and some there.
    TryAgain,
    /// The server does not serve the slot, and does not know who does.
    Nowhere,
}

impl Redirect {
    /// `asked`: the host of the server that answered, for answers that do not name one.
    fn read(answer: &Outcome<Answer>, asked: &str) -> Option<Self> {
        let Err(Cause::Rejected(why)) = answer else { return None };
        let endpoint = || endpoint(why.points_to()?, asked);
        match why.server_error()? {
            ServerError::Moved => Some(endpoint().map_or(Self::Nowhere, Self::Moved)),
            ServerError::Ask => Some(endpoint().map_or(Self::TryAgain, Self::Ask)),
            // The last of the keys that are here was deleted before this request ran. A script can
            // run again: all scripts come to the same when they run twice.
            ServerError::TryAgain | ServerError::NotLocal => Some(Self::TryAgain),
            ServerError::ClusterDown | ServerError::ReadOnly | ServerError::PrimaryDown => {
                Some(Self::Nowhere)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::Reason;

    fn read(answer: &str) -> Option<Redirect> {
        Redirect::read(&Err(Cause::Rejected(Reason::of_server(answer))), "10.0.0.1")
    }

    #[test]
    fn answers_are_read_with_where_they_point_to() {
        let at = |host: &str, port| (host.to_owned(), port);
        assert_eq!(read("MOVED 3999 10.0.0.2:6381"), Some(Redirect::Moved(at("10.0.0.2", 6381))));
        assert_eq!(read("ASK 3999 ::1:6381"), Some(Redirect::Ask(at("::1", 6381))));
        assert_eq!(read("MOVED 3999 :6381"), Some(Redirect::Moved(at("10.0.0.1", 6381))));
        assert_eq!(read("MOVED 3999 ?:6381"), Some(Redirect::Nowhere));
        assert_eq!(read("TRYAGAIN Multiple keys request"), Some(Redirect::TryAgain));
        assert_eq!(read("CLUSTERDOWN Hash slot not served"), Some(Redirect::Nowhere));
        assert_eq!(read("ERR MOVED"), None);
        assert_eq!(Redirect::read(&Err(Cause::Broken("MOVED 1 a:2".into())), ""), None);
        let half_way = "ERR Script attempted to access a non local key in a cluster node script";
        assert_eq!((read(half_way), read("WRONGTYPE")), (Some(Redirect::TryAgain), None));
    }
}
