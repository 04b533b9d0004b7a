//! A voter that is a part of a Redis Cluster: the servers that have its range of hash slots.
//!
//! It sends each script to the server that has the lock's slot, by a map that the voters of a
//! cluster share, over the connections of [`SingleNode`]. A request that a server redirects has not
//! run there. It is sent again to the server that has the slot now, unless a later request of the
//! same hold has left since.

// fred follows redirects only if it may attempt a command several times. Then it would also repeat
// a command that may have run.

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
use self::map::{Endpoint, LatestMap, Map, endpoint};
use super::{
    Answers, Call, Identity, InspectionSettings, KeySearch, KeysFound, Node, ONLY, Outcome,
    SingleNode, VoterEvents, contract::begin, lock, seat::Seat, single::Order,
};
use crate::{
    clock::Clock,
    log,
    proto::{Cause, ServerError, ServerReport},
    scripts::Answer,
};

/// How long the first map, and then the first connections, may take.
const IDENTIFICATION: Duration = Duration::from_secs(1);

/// The pause between two attempts to send while a slot moves.
const MOVING: Duration = Duration::from_millis(5);

/// One voter of a cluster. Its tasks end with [`Node::close`] or when it is dropped.
pub(crate) struct ClusterNode {
    voter: Arc<ClusterVoter>,
    following: Mutex<JoinSet<()>>,
}

/// The state that the tasks of a voter share.
struct ClusterVoter {
    seat: Seat,
    /// The names of the cluster's voters.
    labels: Arc<[Arc<str>]>,
    /// Whether it may share a server with another voter.
    may_share: bool,
    /// What to ask its servers. The key of the fingerprint is still without its slot.
    looks: InspectionSettings,
    topology: Arc<Topology>,
    listener: Arc<dyn VoterEvents>,
    // One order for all servers: a slot, and with it the requests of a hold, goes from one to
    // another.
    order: Order,
    branches: Mutex<HashMap<Endpoint, Branch>>,
    /// The node at which each channel is listened to, by the channel's name outside.
    // The node, not its address: a server that was connected to anew does not know the channel.
    listening: Mutex<HashMap<Arc<str>, Weak<SingleNode>>>,
}

/// The connections to a server that leads a shard.
#[derive(Clone)]
struct Branch {
    shard: usize,
    at: Endpoint,
    node: Arc<SingleNode>,
}

impl Branch {
    /// Waits for the first attempt to connect.
    // A request to a server that is still being connected to would fail at once.
    async fn connected(self) -> Self {
        self.node.runner.gate.until_tried().await;
        self
    }
}

impl ClusterNode {
    /// Starts to connect. Must be called on a runtime.
    pub(crate) fn start(
        topology: &Arc<Topology>,
        voter: u16,
        labels: Arc<[Arc<str>]>,
        may_share: bool,
        looks: InspectionSettings,
        listener: Arc<dyn VoterEvents>,
    ) -> Arc<dyn Node> {
        topology.add_listener(Arc::clone(&listener));
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
        let mut latest = self.topology.watch();
        let (mut shares, mut previous) = (false, Arc::<Map>::default());
        // The topology is here, so this does not fail.
        while latest.changed().await.is_ok() {
            let map = self.topology.map();
            if map != previous {
                shares = self.warn_of_sharing(&map, shares);
                self.connect(&map);
                previous = Arc::clone(&map);
            }
            // Also if the map is the same: another one may have come and gone meanwhile, and a
            // channel may then be listened to by a connection that is gone.
            self.listen_where_the_slots_are(&map).await;
        }
    }

    /// Warns if another voter has the same server. Returns whether one has; `did_share`: whether
    /// one had before.
    // Two voters on one server fail together, so the cluster survives fewer failures than it seems.
    fn warn_of_sharing(&self, map: &Map, did_share: bool) -> bool {
        let voter = Arc::clone(self.label());
        let Some((other, slot)) = map.shared(self.seat) else {
            if did_share {
                log::report(move || tracing::warn!(%voter, "the voter shares no server any more"));
            }
            return false;
        };
        let other = Arc::clone(&self.labels[usize::from(other)]);
        let server = map.route(slot).map(|(_, at)| at.clone());
        if self.may_share {
            log::report(move || {
                tracing::warn!(%voter, %other, ?server, "two voters share a server");
            });
        } else {
            log::report(move || {
                tracing::error!(
                    %voter, %other, ?server, "two voters share a server: one vote less"
                );
            });
        }
        true
    }

    /// Connects to the servers of this voter, and drops connections to servers that lead another
    /// shard now, or none.
    fn connect(&self, map: &Map) {
        // A server at the same address may lead another shard now, with other data. Only a new
        // connection says for which shard it votes.
        lock(&self.branches).retain(|at, branch| map.led_by(at) == Some(branch.shard));
        for (shard, at) in map.servers(self.seat) {
            self.branch(shard, at);
        }
    }

    /// The connections to the server that has a slot. `votes`: whether a vote is to be asked for.
    fn route(&self, slot: u16, votes: bool) -> Outcome<Branch> {
        let map = self.topology.map();
        // The first of two voters on one server has the vote. Counted twice, the server could be a
        // majority alone: if it forgets, two clients hold the lock (law 1).
        if let Some(other) = map.twin(self.seat, slot, 0..self.seat.voter)
            && votes
            && !self.may_share
        {
            return Err(Cause::Duplicate(Arc::clone(&self.labels[usize::from(other)])));
        }
        let Some((shard, at)) = map.route(slot) else {
            // A server may have been given the slot since the map was asked for.
            self.topology.refresh(None);
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
        let looks =
            InspectionSettings { fingerprint, shard, seat: Some(self.seat), ..self.looks.clone() };
        let node = SingleNode::start(&self.topology.access(at), Arc::clone(&self.listener), looks);
        let branch = Branch { shard, at: at.clone(), node };
        branches.insert(at.clone(), branch.clone());
        branch
    }

    /// Why no server of a slot can be named.
    fn unknown(&self, slot: u16) -> Cause {
        let LatestMap { answers, trouble, .. } = self.topology.watch().borrow().clone();
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
        let (placed, departed) = (self.seat.rename(&call), self.order.leave(&call));
        let mut way = match self.route(slot, call.script.votes) {
            Ok(branch) => (branch, false),
            Err(cause) => return call.all_failed(&cause),
        };
        // The requests that are still open, and the answers to all.
        let mut open: Vec<usize> = (0..call.requests.len()).collect();
        let mut answers = call.all_failed(&Cause::Unheard);
        let rest = || call.deadline.saturating_sub(Clock::System.now().since(started));
        let mut deadline = call.deadline;
        loop {
            let version = self.topology.watch().borrow().answers;
            let (branch, asking) = &way;
            let sent = Call { deadline, ..placed.pick(&open) };
            let received = Arc::clone(&branch.node.runner).run(sent, *asking).await;
            // In a failover this finds the successor sooner than the map of every ten seconds. The
            // requests are not sent again: they may have run.
            let is_lost = |it: &_| matches!(it, Err(Cause::Unreachable(_) | Cause::Broken(_)));
            if received.iter().any(is_lost) {
                self.topology.refresh(None);
            }
            let (mut redirected, mut again) = (None, Vec::new());
            for (request, answer) in open.into_iter().zip(received) {
                if let Some(redirect) = Redirect::read(&answer, &branch.at.0) {
                    redirected.get_or_insert(redirect);
                    again.push(request);
                }
                answers[request] = answer;
            }
            let Some(redirect) = redirected else { return answers };
            self.log_redirect(slot, &branch.at, &redirect);
            let next = self.after(redirect, slot, call.script.votes, &branch.at, version);
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
        log::report(move || tracing::debug!(%voter, slot, ?at, ?redirect, "redirected"));
    }

    /// Where to send redirected requests, and whether to send `ASKING` before them. `version`: how
    /// many answers the map had when they were sent.
    async fn after(
        &self,
        redirect: Redirect,
        slot: u16,
        votes: bool,
        from: &Endpoint,
        mut version: u64,
    ) -> Outcome<(Branch, bool)> {
        if let Redirect::Ask(to) = &redirect
            && let Some(shard) = self.topology.map().led_by(to)
        {
            return Ok((self.branch(shard, to).connected().await, true));
        }
        match redirect {
            Redirect::Moved(to) => {
                let mut latest = self.topology.watch();
                // By the map, not straight to the named server: it may have another name in the
                // map, and the map says whether the data came along. Until the map shows the move,
                // it is asked for again, as the first server to answer may not know of it yet.
                while self.topology.map().route(slot).is_none_or(|(_, at)| at == from) {
                    self.topology.refresh(Some(to.clone()));
                    // The topology is here, so this does not fail.
                    if let Ok(newer) = latest.wait_for(|latest| latest.answers > version).await {
                        version = newer.answers;
                    }
                }
            }
            Redirect::Ask(to) => {
                self.topology.refresh(Some(to));
                time::sleep(MOVING).await;
            }
            Redirect::TryAgain => time::sleep(MOVING).await,
            Redirect::Nowhere => {
                self.topology.refresh(None);
                return Err(self.unknown(slot));
            }
        }
        Ok((self.route(slot, votes)?.connected().await, false))
    }

    async fn subscribe(self: Arc<Self>, channel: Arc<str>) -> Outcome<()> {
        // Noted first: if no server can be reached now, the next map makes up for it.
        lock(&self.listening).entry(Arc::clone(&channel)).or_default();
        let listens = self.listen_at_its_slot(&channel).await;
        if listens.is_err() {
            self.topology.refresh(None);
        }
        listens
    }

    /// Listens to a channel at the server of its slot, and leaves it at the server before.
    async fn listen_at_its_slot(&self, channel: &Arc<str>) -> Outcome<()> {
        let Branch { node, .. } = self.route(self.seat.slot(channel), false)?;
        let former = lock(&self.listening)
            .get_mut(channel)
            .and_then(|at| std::mem::replace(at, Arc::downgrade(&node)).upgrade());
        if let Some(former) = former.filter(|former| !Arc::ptr_eq(former, &node)) {
            // A server that is gone sends no messages either.
            let _ = former.unsubscribe(Arc::clone(channel)).await;
        }
        // Meanwhile the caller may have left the channel, or the slot may have moved on. To listen
        // here all the same would leave a subscription that nobody ends.
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

    /// Listens anew to the channels whose slots are at other servers now.
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
            // A server may not know yet that a slot is its own. Then its node asks again and again.
            join_all(moved.iter().map(|channel| self.listen_at_its_slot(channel))).await;
            // Messages of the time between the move and now are lost.
            self.listener.note_lost_messages();
        }
    }

    /// The identity of a server of this voter, by which two voters on one server are found.
    async fn identify(self: Arc<Self>) -> Outcome<Identity> {
        let mut latest = self.topology.watch();
        let is_answered = |latest: &LatestMap| latest.answers > 0 || latest.trouble.is_some();
        // If the time is over, the map of that moment is used.
        let _ = time::timeout(IDENTIFICATION, latest.wait_for(is_answered)).await;
        let map = self.topology.map();
        self.connect(&map);
        let nodes: Vec<_> =
            lock(&self.branches).values().map(|branch| Arc::clone(&branch.node)).collect();
        let tried = join_all(nodes.iter().map(|node| node.runner.gate.until_tried()));
        let _ = time::timeout(IDENTIFICATION, tried).await;
        // In a cramped cluster, two voters name the same server, so that connecting fails with
        // that reason. Otherwise each names one of its own, though some locks may share one.
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

    async fn survey(self: Arc<Self>, calls: Arc<str>) -> Outcome<Vec<ServerReport>> {
        let asked = self.servers()?.into_iter().map(|node| node.survey(Arc::clone(&calls)));
        let reports: Outcome<Vec<_>> = join_all(asked).await.into_iter().collect();
        Ok(reports?.into_iter().flatten().collect())
    }

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
        // None if the voter has left that server since.
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
        let branches: Vec<_> = lock(&self.voter.branches).drain().collect();
        join_all(branches.iter().map(|(_, branch)| branch.node.close())).map(drop).boxed()
    }
}

/// Why a server did not run a request, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Redirect {
    /// The slot is at that server now.
    Moved(Endpoint),
    /// The slot is moving, and that server takes this request.
    Ask(Endpoint),
    /// The slot is moving, and some of the keys are at either server.
    TryAgain,
    /// The server does not serve the slot, and names no server that does.
    Nowhere,
}

impl Redirect {
    /// `asked`: the host of the server that answered, which is meant if the answer names none.
    fn read(answer: &Outcome<Answer>, asked: &str) -> Option<Self> {
        let Err(Cause::Rejected(why)) = answer else { return None };
        let endpoint = || endpoint(why.points_to()?, asked);
        match why.server_error()? {
            ServerError::Moved => Some(endpoint().map_or(Self::Nowhere, Self::Moved)),
            ServerError::Ask => Some(endpoint().map_or(Self::TryAgain, Self::Ask)),
            // `NotLocal`: while the slot moves, an earlier request of the call has deleted the last
            // of the keys that are still here, and the next one asks for it. The script may run
            // again: all scripts have the effect of one run (law 5).
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
