//! Which server has which slot, and where the data went when that changes.
//!
//! The slots of one server form a *shard*: what the server forgets, it forgets for all of them. A
//! shard continues if a server that was no primary before takes over: a replica, which may know
//! less. If slots go from one primary to another, they are in another shard. If the first primary
//! lives, this is a migration, which takes the data along; otherwise the data are lost.
//!
//! A server that is cut off from the others may name itself as the primary of slots that it lost.
//! Each primary has a config epoch, and a primary that takes a slot over has a higher one than the
//! primary before. So the map takes a slot only from a primary whose epoch is not lower.

use std::{
    collections::HashSet,
    ops::RangeInclusive,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{StreamExt, stream};
use tokio::{
    sync::{Notify, watch},
    time,
};

use crate::{
    log,
    proto::Cause,
    scripts::Value,
    voter::{
        Access, Outcome, VoterEvents, lock,
        pauses::Pauses,
        seat::{SLOTS, Seat, name_in},
        single::Inquirer,
    },
};

/// How often the map is asked for without a reason.
const INTERVAL: Duration = Duration::from_secs(10);
/// The pause between two questions for the map; it doubles while nothing has changed.
// Each request that is answered `MOVED` is a reason to ask. After a move there are many at once.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest such pause, also if no server answers.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// How many servers are asked at once.
// With one, a server that hangs would hold up the map for a second.
const AT_ONCE: usize = 2;

/// A host and a port.
pub(super) type Endpoint = (String, u16);

/// The slots of a cluster, by their shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Map {
    /// The shard of each slot. Empty before the first answer.
    shards: Vec<Option<usize>>,
    /// For each slot the config epoch of its primary.
    epochs: Vec<u64>,
    /// The server of each shard. A blank one if the shard has no slots and no primary any more.
    leaders: Vec<ClusterLeader>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ClusterLeader {
    /// The server's id in the cluster, which stays when it restarts.
    id: String,
    endpoint: Endpoint,
    /// Another name of its host.
    // The host may be a name or a number: `MOVED` and `CLUSTER NODES` need not use the same one.
    alias: Option<String>,
}

impl ClusterLeader {
    fn is_at(&self, (host, port): &Endpoint) -> bool {
        let names = [Some(&self.endpoint.0), self.alias.as_ref()];
        self.endpoint.1 == *port && names.contains(&Some(host))
    }
}

/// A server as an answer to `CLUSTER NODES` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClusterServer {
    pub(super) id: String,
    pub(super) endpoint: Endpoint,
    pub(super) alias: Option<String>,
    /// It is a primary and has not failed.
    pub(super) is_primary: bool,
    /// The server that answered does not reach it.
    pub(super) is_doubted: bool,
    /// Its config epoch.
    pub(super) epoch: u64,
    pub(super) slots: Vec<RangeInclusive<u16>>,
}

impl ClusterServer {
    pub(super) fn has_slots(&self) -> bool {
        !self.slots.is_empty()
    }

    fn all_slots(&self) -> impl Iterator<Item = u16> {
        self.slots.iter().flat_map(Clone::clone)
    }
}

/// Slots went from one shard to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Move {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Whether their data were lost.
    pub(super) lost: bool,
}

impl Map {
    /// The shard and the server of this slot.
    pub(super) fn route(&self, slot: u16) -> Option<(usize, &Endpoint)> {
        let shard = self.shard(slot)?;
        Some((shard, &self.leaders[shard].endpoint))
    }

    pub(super) fn shard(&self, slot: u16) -> Option<usize> {
        self.shards.get(usize::from(slot)).copied().flatten()
    }

    /// The key of the fingerprint of the server that leads this shard. None if it has no slots, and
    /// so nothing to forget.
    // In a slot of its own: only then is the fingerprint lost with the server's data.
    pub(super) fn fingerprint(&self, shard: usize, key: &str) -> Option<Arc<str>> {
        name_in(choose((0..SLOTS).filter(|slot| self.shard(*slot) == Some(shard)))?, key)
    }

    /// The shard that this server leads.
    pub(super) fn led_by(&self, at: &Endpoint) -> Option<usize> {
        // The last one, as an address may have gone to another server.
        self.leaders.iter().rposition(|leader| leader.is_at(at))
    }

    /// The shards of a voter, each with its server.
    pub(super) fn servers(&self, seat: Seat) -> Vec<(usize, &Endpoint)> {
        let mut shards: Vec<_> = seat.slots().filter_map(|slot| self.shard(slot)).collect();
        shards.sort_unstable();
        shards.dedup();
        shards.into_iter().map(|shard| (shard, &self.leaders[shard].endpoint)).collect()
    }

    /// Another voter that shares a server with this one for some lock, and this one's slot of it.
    pub(super) fn shared(&self, seat: Seat) -> Option<(u16, u16)> {
        let shared = |slot| self.twin(seat, slot, 0..seat.voters).map(|other| (other, slot));
        seat.slots().find_map(shared)
    }

    /// Whether two voters share a server for at least half of all locks.
    // Then it stays so until somebody deals the slots out anew.
    pub(super) fn is_cramped(&self, seat: Seat) -> bool {
        let together = seat.slots().filter(|slot| self.is_shared(seat, *slot));
        2 * together.count() >= seat.slots().count()
    }

    /// A slot of a lock for which no two voters share a server; the same lock for all voters.
    pub(super) fn apart(&self, seat: Seat) -> Option<u16> {
        seat.slots().find(|slot| !self.is_shared(seat, *slot))
    }

    /// Whether two voters share a server for the lock that has this slot.
    fn is_shared(&self, seat: Seat, slot: u16) -> bool {
        (1..seat.voters).any(|voter| {
            let at = seat.sibling(slot, voter);
            self.twin(Seat::new(voter, seat.voters), at, 0..voter).is_some()
        })
    }

    /// Which of these other voters has the same server for the lock.
    pub(super) fn twin(
        &self,
        seat: Seat,
        slot: u16,
        mut others: std::ops::Range<u16>,
    ) -> Option<u16> {
        let shard = self.shard(slot)?;
        let same = |other: u16| self.shard(seat.sibling(slot, other)) == Some(shard);
        others.find(|other| *other != seat.voter && same(*other))
    }

    /// Whether to believe an answer without asking another server.
    pub(super) fn believes(&self, servers: &[ClusterServer]) -> bool {
        let mut leaders = servers.iter().filter(|server| server.has_slots()).peekable();
        // A server that names no slots may have forgotten its cluster. One that does not reach
        // another with slots may itself be cut off from the rest.
        leaders.peek().is_some()
            && leaders.all(|server| !server.is_doubted)
            && !self.is_newer_than(servers)
    }

    /// Whether some part of an answer is older than this map.
    pub(super) fn is_newer_than(&self, servers: &[ClusterServer]) -> bool {
        let mut primaries = servers.iter().filter(|server| server.is_primary);
        let is_old =
            |server: &ClusterServer| server.all_slots().any(|slot| !self.may_have(server, slot));
        self.is_of_one_cluster_with(servers) && primaries.any(is_old)
    }

    /// Whether this server may have the slot, by its epoch.
    fn may_have(&self, server: &ClusterServer, slot: u16) -> bool {
        self.epochs.get(usize::from(slot)).is_none_or(|epoch| *epoch <= server.epoch)
    }

    /// Whether one of these servers leads a shard.
    // If none does, the cluster was made anew. Its epochs begin again, so they are lower than those
    // of the former cluster, by which its answers would not be believed.
    fn is_of_one_cluster_with(&self, servers: &[ClusterServer]) -> bool {
        let leads =
            |server: &ClusterServer| self.leaders.iter().any(|leader| leader.id == server.id);
        servers.iter().any(leads)
    }

    /// The map after this answer, and what has moved since.
    pub(super) fn next(&self, servers: &[ClusterServer]) -> (Self, Vec<Move>) {
        // A slot that no server has now keeps its shard: whoever gets it later got it from there.
        let mut next = self.clone();
        next.shards.resize(usize::from(SLOTS), None);
        next.epochs.resize(usize::from(SLOTS), 0);
        if !self.is_of_one_cluster_with(servers) {
            next.epochs.fill(0);
        }
        let lives = |shard: usize| {
            let id = &self.leaders[shard].id;
            servers.iter().any(|server| server.is_primary && server.id == *id)
        };
        let mut moves = Vec::new();
        for server in servers.iter().filter(|server| server.is_primary) {
            let slots: Vec<u16> =
                server.all_slots().filter(|slot| next.may_have(server, *slot)).collect();
            // It had them once, as a primary that is cut off during a failover. With a shard of its
            // own, its next takeover would pass for a migration.
            if slots.is_empty() && server.has_slots() {
                continue;
            }
            let own = next.leaders.iter().rposition(|leader| leader.id == server.id);
            let is_new = own.is_none();
            let was_leader = self.leaders.iter().any(|leader| leader.id == server.id);
            // Another server has just taken over, and this one does not know yet that it is a
            // replica now. No shard of its own, for the same reason.
            if is_new && was_leader && server.slots.is_empty() {
                continue;
            }
            let orphan = || self.orphan(&next, &slots, servers);
            let shard = own.or_else(orphan).unwrap_or(next.leaders.len());
            let ClusterServer { id, endpoint, alias, .. } = server.clone();
            let leader = ClusterLeader { id, endpoint, alias };
            if shard == next.leaders.len() {
                next.leaders.push(leader);
            } else {
                if is_new {
                    moves.push(Move { from: shard, to: shard, lost: true });
                }
                next.leaders[shard] = leader;
            }
            for slot in slots {
                next.epochs[usize::from(slot)] = server.epoch;
                next.shards[usize::from(slot)] = Some(shard);
                if let Some(from) = self.shard(slot).filter(|from| *from != shard) {
                    moves.push(Move { from, to: shard, lost: is_new || !lives(from) });
                }
            }
        }
        next.retire(servers);
        moves.sort_unstable();
        moves.dedup();
        (next, moves)
    }

    /// The shard of these slots whose leader serves no slots now and has no successor yet.
    // A server that was no primary before continues this shard: it was a replica, and may know less
    // than its primary. Under a new shard its data would pass for those of a migration.
    fn orphan(&self, next: &Self, slots: &[u16], servers: &[ClusterServer]) -> Option<usize> {
        let serves = |shard: &usize| {
            let id = &self.leaders[*shard].id;
            servers.iter().any(|it| it.is_primary && it.id == *id && it.has_slots())
        };
        let mut shards = slots.iter().filter_map(|slot| self.shard(*slot));
        let orphan = shards.find(|shard| !serves(shard));
        orphan.filter(|shard| next.leaders[*shard].id == self.leaders[*shard].id)
    }

    /// Takes shards from leaders that have no slots and are no primaries any more.
    // Such a server is a replica now. If it becomes a primary again, it may lack what the primary
    // between has granted, so it must not have its old shard then.
    fn retire(&mut self, servers: &[ClusterServer]) {
        let mut leads = vec![false; self.leaders.len()];
        self.shards.iter().flatten().for_each(|shard| leads[*shard] = true);
        for (leader, leads) in self.leaders.iter_mut().zip(leads) {
            let is_it = |server: &ClusterServer| server.is_primary && server.id == leader.id;
            if !leads && !servers.iter().any(is_it) {
                *leader = ClusterLeader::default();
            }
        }
    }
}

/// Reads the answer to `CLUSTER NODES`. `asked`: the host of the server that answered; `by_name`:
/// uses names of hosts instead of numbers, as certificates are made for names.
fn read(text: &str, asked: &str, by_name: bool) -> Outcome<Vec<ClusterServer>> {
    let server = |line| server(line, asked, by_name);
    let servers: Vec<ClusterServer> = text.lines().filter_map(server).collect();
    if servers.is_empty() {
        return Err(Cause::Rejected(format!("no servers in the answer {text:?}").into()));
    }
    Ok(servers)
}

/// `id host:port@bus[,hostname] flags primary ping pong epoch link slot..`
fn server(line: &str, asked: &str, by_name: bool) -> Option<ClusterServer> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [id, address, flags, _, _, _, epoch, _, slots @ ..] = &*words else { return None };
    let (address, names) = address.split_once(',').unwrap_or((address, ""));
    let address = address.split_once('@').map_or(address, |(address, _)| address);
    let name = names.split(',').next().filter(|name| !name.is_empty() && !name.contains('='));
    let (host, port) = endpoint(address, asked)?;
    let (host, alias) = match name {
        Some(name) if by_name => (name.to_owned(), Some(host)),
        name => (host, name.map(str::to_owned)),
    };
    let flags: Vec<&str> = flags.split(',').collect();
    let has = |flag| flags.contains(&flag);
    Some(ClusterServer {
        id: (*id).to_owned(),
        endpoint: (host, port),
        alias,
        is_primary: has("master") && !has("fail") && !has("noaddr"),
        is_doubted: has("fail?") || has("fail"),
        epoch: epoch.parse().ok()?,
        // In brackets are slots that are moving; until they have moved, they are listed besides.
        slots: slots.iter().filter(|slots| !slots.starts_with('[')).filter_map(range).collect(),
    })
}

fn range(text: &&str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (last < SLOTS).then_some(first..=last)
}

/// Reads `host:port`; the host may be missing, and may have colons of its own. `asked`: the host of
/// the server that answered.
pub(super) fn endpoint(text: &str, asked: &str) -> Option<Endpoint> {
    let (host, port) = text.rsplit_once(':')?;
    // A server that has not been met by another does not know its own address.
    let host = if host.is_empty() { asked } else { host };
    let port = port.parse().ok().filter(|port| *port != 0)?;
    // A server that should be called by a name which it does not have is named `?`.
    (host != "?").then(|| (host.trim_matches(['[', ']']).to_owned(), port))
}

/// The first of these slots by [`rank`].
// The choice stays until that very slot moves away, whatever other slots come and go. Under another
// key there is no fingerprint, so the data would count as new.
fn choose(slots: impl Iterator<Item = u16>) -> Option<u16> {
    slots.min_by_key(|slot| rank(*slot))
}

/// An order of all slots, the same for all clients.
// In up to twelve equal parts of a cluster, the first slot of a part is not near its ends. From
// there slots are taken when the cluster grows.
fn rank(slot: u16) -> u32 {
    let (factor, summand) = (15_689, 5_958);
    (u32::from(slot) * factor + summand) % u32::from(SLOTS)
}

/// The map of one cluster, for all voters that are spread over it.
#[derive(Default)]
pub(crate) struct Topology {
    /// The servers that the user named.
    seeds: Vec<Access>,
    /// With which server to begin.
    // Drawn by lot: otherwise all clients would ask the first servers of the map.
    first: usize,
    latest: watch::Sender<LatestMap>,
    wanted: Notify,
    /// Servers to ask first.
    hints: Mutex<HashSet<Endpoint>>,
    /// The voters of the cluster, which hear of each move.
    listeners: Mutex<Vec<Arc<dyn VoterEvents>>>,
    /// The server that answered last. The task that has this locked keeps the map up to date.
    // The voters' tasks wait for the lock: when one voter is closed, the next goes on.
    source: tokio::sync::Mutex<Option<MapSource>>,
}

/// A server that answered, and the connection to it.
// Kept, because one or two new connections each ten seconds were 1,500 a second for 10,000 clients.
type MapSource = (Access, Arc<Inquirer>);

/// The latest map.
#[derive(Clone, Debug, Default)]
pub(super) struct LatestMap {
    /// Grows with every answer, whatever it says.
    pub(super) answers: u64,
    pub(super) map: Arc<Map>,
    /// Why the latest question had no answer.
    pub(super) trouble: Option<Cause>,
}

impl Topology {
    pub(crate) fn new(seeds: Vec<Access>) -> Arc<Self> {
        let first = rand::random_range(0..usize::from(u16::MAX));
        Arc::new(Self { seeds, first, ..Self::default() })
    }

    pub(super) fn add_listener(&self, listener: Arc<dyn VoterEvents>) {
        lock(&self.listeners).push(listener);
    }

    pub(super) fn watch(&self) -> watch::Receiver<LatestMap> {
        self.latest.subscribe()
    }

    pub(super) fn map(&self) -> Arc<Map> {
        Arc::clone(&self.latest.borrow().map)
    }

    /// How to reach a server of this cluster.
    pub(super) fn access(&self, (host, port): &Endpoint) -> Access {
        self.seeds[0].at(host, *port)
    }

    /// Asks for the map again, perhaps this server first.
    pub(super) fn refresh(&self, hint: Option<Endpoint>) {
        lock(&self.hints).extend(hint);
        self.wanted.notify_one();
    }

    /// Asks one server after the other until one says which servers have the slots. Reuses the
    /// connection to `source`, and keeps that to the server that answered.
    async fn ask(&self, source: &mut Option<MapSource>) -> Outcome<Vec<ClusterServer>> {
        // First the servers that redirects named, which know most; then those of the map; last
        // those that the user named, which may be gone.
        let mut places: Vec<Access> =
            lock(&self.hints).drain().map(|at| self.access(&at)).collect();
        let map = self.map();
        let mut serving = map.servers(Seat::new(0, 1));
        if let Some(first) = self.first.checked_rem(serving.len()) {
            serving.rotate_left(first);
        }
        places.extend(serving.into_iter().map(|(_, at)| self.access(at)));
        places.extend(self.seeds.iter().cloned());
        let mut asked = HashSet::new();
        places.retain(|access| asked.insert(Arc::clone(access.label())));
        let before = source.take();
        let answers = stream::iter(places).map(|access| self.ask_one(access, before.as_ref()));
        let mut answers = pin!(answers.buffer_unordered(AT_ONCE));
        // An answer to fall back on if no other comes. A server without slots may be new, or have
        // forgotten its cluster. A server that is cut off from the others shows an older map.
        let mut best = Err(Cause::Unheard);
        while let Some(answer) = answers.next().await {
            match answer {
                Ok((servers, _)) if !servers.iter().any(ClusterServer::has_slots) => {
                    best = best.or(Ok(servers));
                }
                Ok((servers, by)) if !map.is_newer_than(&servers) => {
                    *source = Some(by);
                    return Ok(servers);
                }
                Err(_) if best.is_ok() => {}
                other => best = other.map(|(servers, _)| servers),
            }
        }
        best
    }

    async fn ask_one(
        &self,
        access: Access,
        source: Option<&MapSource>,
    ) -> Outcome<(Vec<ClusterServer>, MapSource)> {
        if let Some((_, by)) = source.filter(|(source, _)| source.label() == access.label()) {
            match self.ask_by(&access, by).await {
                // The connection has ended since then. A server that did not answer in time is
                // not asked twice: its turn ends here.
                Err(Cause::Broken(_) | Cause::Unreachable(_)) => {}
                answer => return answer.map(|servers| (servers, (access, Arc::clone(by)))),
            }
        }
        let by = Arc::new(Inquirer::connect(access.clone()).await?);
        Ok((self.ask_by(&access, &by).await?, (access, by)))
    }

    async fn ask_by(&self, access: &Access, by: &Inquirer) -> Outcome<Vec<ClusterServer>> {
        match by.ask("CLUSTER", &["NODES"]).await? {
            Value::Text(text) => read(&text, access.host(), self.seeds[0].has_tls()),
            other => Err(Cause::Rejected(format!("CLUSTER NODES answers {other:?}").into())),
        }
    }

    /// Applies an answer. Returns whether the map has changed.
    fn apply(&self, answer: Outcome<Vec<ClusterServer>>) -> bool {
        let mut latest = self.latest.borrow().clone();
        let before = Arc::clone(&latest.map);
        match answer {
            Ok(servers) => {
                let (map, moves) = before.next(&servers);
                // Before anybody uses the new map: the votes of a server that took a slot over
                // without its data must not count (law 1).
                for Move { from, to, lost } in moves {
                    let listeners = lock(&self.listeners);
                    listeners.iter().for_each(|listener| listener.note_move(from, to, lost));
                }
                if map != *before {
                    latest.map = Arc::new(map);
                }
                latest.answers += 1;
                if latest.trouble.take().is_some() {
                    let servers = servers.len();
                    log::report(move || {
                        tracing::warn!(servers, "a server tells of the cluster again");
                    });
                }
            }
            Err(cause) => {
                latest.trouble = Some(cause.clone());
                log::report(move || tracing::warn!(%cause, "no server tells of the cluster"));
            }
        }
        let changed = latest.map != before;
        self.latest.send_replace(latest);
        changed
    }

    /// Keeps the map up to date for as long as this is polled. One voter does it for all.
    pub(super) async fn keep(&self) {
        let source = &mut *self.source.lock().await;
        let mut pauses = Pauses::new(PAUSE, LONGEST_PAUSE);
        let (mut has_reason, mut warned) = (true, false);
        loop {
            let again = match &*source {
                // Without a reason, one server and one command are enough.
                Some((access, by)) if !has_reason => self.ask_by(access, by).await.ok(),
                _ => None,
            };
            let answer = match again.filter(|servers| self.map().believes(servers)) {
                Some(servers) => Ok(servers),
                None => self.ask(source).await,
            };
            let trouble = answer.as_ref().err().cloned();
            if self.apply(answer) {
                pauses.reset();
            }
            if !warned && let Some((server, by)) = &*source {
                // With Redis's default, a cluster serves no slot while any slot has no primary.
                // Then one dead primary takes all voters.
                let coverage = by.setting("cluster-require-full-coverage").await;
                if coverage.is_some_and(|value| value == "yes") {
                    let server = Arc::clone(server.label());
                    log::report(move || {
                        tracing::warn!(
                            %server,
                            "cluster-require-full-coverage: one dead primary takes the whole cluster"
                        );
                    });
                }
                warned = true;
            }
            let why = trouble.as_ref().and_then(Cause::reason);
            time::sleep(pauses.after(why, 0)).await;
            // After the pause, so that reasons gather. `Notify` keeps one that came before.
            let wanted = self.wanted.notified();
            has_reason = trouble.is_some() || time::timeout(INTERVAL, wanted).await.is_ok();
        }
    }
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
