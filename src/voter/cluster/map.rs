//! Which server has which slot, what became of the data when that changes, and who is asked for it.
//!
//! Slots that one server has form a shard: what it forgets, it forgets for all of them. A shard
//! goes on when a server takes the place of its own that was no primary before: a replica, which
//! may know less. Where slots go from one primary to another, and the first goes on living, their
//! data goes with them, as that is what a migration is; where the first is gone, it is lost.
//!
//! A server that is cut off from the others goes on to tell what it knew. Each primary has a config
//! epoch, and one that takes a slot over has a higher one than its predecessor. So a primary that
//! is told to have a slot, with a lower epoch than the slot is known with, had it once.

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
        seat::{SLOTS, Seat, led_into},
        single::Inquirer,
    },
};

/// How often the map is asked for without a reason.
const INTERVAL: Duration = Duration::from_secs(10);
/// Between two questions, also where there are many reasons; it doubles while nothing has changed.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest of these, also between two questions that nobody answers.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// How many servers are asked at once.
const AT_ONCE: usize = 2;

/// A host and a port.
pub(super) type Endpoint = (String, u16);

/// The slots of a cluster, by their shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Map {
    /// By slot. Empty before the first map is known.
    shards: Vec<Option<usize>>,
    /// By slot, the config epoch of the primary that has it.
    epochs: Vec<u64>,
    /// Who leads each shard; nobody where it has no slots and its server is no primary any more.
    leaders: Vec<ClusterLeader>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ClusterLeader {
    /// The server's name in the cluster, which stays when it restarts.
    id: String,
    endpoint: Endpoint,
    /// What else its host is called.
    alias: Option<String>,
}

impl ClusterLeader {
    fn is_at(&self, (host, port): &Endpoint) -> bool {
        let names = [Some(&self.endpoint.0), self.alias.as_ref()];
        self.endpoint.1 == *port && names.contains(&Some(host))
    }
}

/// A server as the cluster tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClusterServer {
    pub(super) id: String,
    pub(super) endpoint: Endpoint,
    pub(super) alias: Option<String>,
    /// It is a primary, and not known to have failed.
    pub(super) is_primary: bool,
    /// Who tells of it does not reach it.
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
    /// Without what was in them.
    pub(super) lost: bool,
}

impl Map {
    /// Who has this slot.
    pub(super) fn route(&self, slot: u16) -> Option<(usize, &Endpoint)> {
        let shard = self.shard(slot)?;
        Some((shard, &self.leaders[shard].endpoint))
    }

    pub(super) fn shard(&self, slot: u16) -> Option<usize> {
        self.shards.get(usize::from(slot)).copied().flatten()
    }

    /// Where the fingerprint is of the server that leads this shard: in one of its own slots.
    /// Nothing where that has no slots, and so nothing that it could have forgotten.
    pub(super) fn fingerprint(&self, shard: usize, key: &str) -> Option<Arc<str>> {
        led_into(chosen((0..SLOTS).filter(|slot| self.shard(*slot) == Some(shard)))?, key)
    }

    /// Which shard this server leads.
    pub(super) fn led_by(&self, at: &Endpoint) -> Option<usize> {
        // The last, as an address may be another's by now.
        self.leaders.iter().rposition(|leader| leader.is_at(at))
    }

    /// The shards of a voter, each with its server.
    pub(super) fn servers(&self, seat: Seat) -> Vec<(usize, &Endpoint)> {
        let mut shards: Vec<_> = seat.slots().filter_map(|slot| self.shard(slot)).collect();
        shards.sort_unstable();
        shards.dedup();
        shards.into_iter().map(|shard| (shard, &self.leaders[shard].endpoint)).collect()
    }

    /// A voter whose part of some lock is on the same server as this one's, with the slot of this
    /// one's.
    pub(super) fn shared(&self, seat: Seat) -> Option<(u16, u16)> {
        let shared = |slot| self.twin(seat, slot, 0..seat.voters).map(|other| (other, slot));
        seat.slots().find_map(shared)
    }

    /// Whether two voters have their parts on one server for at least half of all locks: that stays
    /// as it is until somebody deals the slots out anew.
    pub(super) fn is_cramped(&self, seat: Seat) -> bool {
        let together = seat.slots().filter(|slot| self.is_shared(seat, *slot));
        2 * together.count() >= seat.slots().count()
    }

    /// A slot of a lock whose parts are all on servers of their own; the same lock for all voters.
    pub(super) fn apart(&self, seat: Seat) -> Option<u16> {
        seat.slots().find(|slot| !self.is_shared(seat, *slot))
    }

    /// Whether two voters have their parts of a lock on one server.
    fn is_shared(&self, seat: Seat, slot: u16) -> bool {
        (1..seat.voters).any(|voter| {
            let at = seat.sibling(slot, voter);
            self.twin(Seat::new(voter, seat.voters), at, 0..voter).is_some()
        })
    }

    /// Which of these other voters has its part of the lock on the same server.
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

    /// Whether an answer is to be believed without asking anybody else. One who does not reach a
    /// server with slots may be cut off from the others; one who knows of no slots has forgotten.
    pub(super) fn follows(&self, servers: &[ClusterServer]) -> bool {
        let mut leaders = servers.iter().filter(|server| server.has_slots()).peekable();
        leaders.peek().is_some()
            && leaders.all(|server| !server.is_doubted)
            && !self.is_ahead_of(servers)
    }

    /// Whether some of this is older than what is known.
    pub(super) fn is_ahead_of(&self, servers: &[ClusterServer]) -> bool {
        let mut primaries = servers.iter().filter(|server| server.is_primary);
        let is_old =
            |server: &ClusterServer| server.all_slots().any(|slot| !self.is_news(server, slot));
        self.is_told_of(servers) && primaries.any(is_old)
    }

    /// Whether this server may have the slot, as far as is known.
    fn is_news(&self, server: &ClusterServer, slot: u16) -> bool {
        self.epochs.get(usize::from(slot)).is_none_or(|known| *known <= server.epoch)
    }

    /// Whether one of them leads a shard. If not, this is another cluster, made in its place, whose
    /// epochs are its own.
    fn is_told_of(&self, servers: &[ClusterServer]) -> bool {
        let leads =
            |server: &ClusterServer| self.leaders.iter().any(|leader| leader.id == server.id);
        servers.iter().any(leads)
    }

    /// The map as the servers tell it now, and what has moved since.
    pub(super) fn next(&self, servers: &[ClusterServer]) -> (Self, Vec<Move>) {
        // What nobody serves now stays with whom it was, so that it is known where it came from.
        let mut next = self.clone();
        next.shards.resize(usize::from(SLOTS), None);
        next.epochs.resize(usize::from(SLOTS), 0);
        if !self.is_told_of(servers) {
            next.epochs.fill(0);
        }
        let lives = |shard: usize| {
            let id = &self.leaders[shard].id;
            servers.iter().any(|server| server.is_primary && server.id == *id)
        };
        // Whoever led the shard still has slots.
        let serves = |shard: usize| {
            let id = &self.leaders[shard].id;
            let has = |server: &ClusterServer| server.is_primary && !server.slots.is_empty();
            servers.iter().any(|server| server.id == *id && has(server))
        };
        let mut moves = Vec::new();
        for server in servers.iter().filter(|server| server.is_primary) {
            let slots: Vec<u16> =
                server.all_slots().filter(|slot| next.is_news(server, *slot)).collect();
            if slots.is_empty() && server.has_slots() {
                // It had them once, and nothing else that is told of it is news either.
                continue;
            }
            let ClusterServer { id, endpoint, alias, .. } = server.clone();
            let leader = ClusterLeader { id, endpoint, alias };
            let own = next.leaders.iter().rposition(|leader| leader.id == server.id);
            // Who was no primary before was a replica, and may know less than its primary.
            let orphan = || {
                let mut shards = slots.iter().filter_map(|slot| self.shard(*slot));
                let orphan = shards.find(|at| !serves(*at));
                orphan.filter(|at| next.leaders[*at].id == self.leaders[*at].id)
            };
            let is_new = own.is_none();
            let had_one = self.leaders.iter().any(|leader| leader.id == server.id);
            if is_new && had_one && server.slots.is_empty() {
                // Another has just taken its place, and it does not know that it is a replica now.
                continue;
            }
            let shard = own.or_else(orphan).unwrap_or(next.leaders.len());
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

    /// Who has neither slots nor the place of a primary leads nothing: when it is a primary again
    /// it may know less than the one before it.
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
/// hosts that have names are called by them, as certificates do.
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
        // In brackets are those on their way, which still count as where they were.
        slots: slots.iter().filter(|slots| !slots.starts_with('[')).filter_map(range).collect(),
    })
}

fn range(text: &&str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (last < SLOTS).then_some(first..=last)
}

/// `host:port`; the host may be missing, and may have colons of its own.
pub(super) fn endpoint(text: &str, known: &str) -> Option<Endpoint> {
    let (host, port) = text.rsplit_once(':')?;
    let host = if host.is_empty() { known } else { host };
    let port = port.parse().ok().filter(|port| *port != 0)?;
    (host != "?").then(|| (host.trim_matches(['[', ']']).to_owned(), port))
}

/// The one of these slots that comes first in an order of all. All clients choose the same, and it
/// stays the same for as long as it is among them, whatever other slots come and go.
fn chosen(slots: impl Iterator<Item = u16>) -> Option<u16> {
    slots.min_by_key(|slot| rank(*slot))
}

/// An order without sense, but that in up to twelve equal parts of a cluster the first is not near
/// the ends, from where slots are taken when the cluster grows.
fn rank(slot: u16) -> u32 {
    let (factor, summand) = (15_689, 5_958);
    (u32::from(slot) * factor + summand) % u32::from(SLOTS)
}

/// The map of one cluster, for all voters that are spread over it.
#[derive(Default)]
pub(crate) struct Topology {
    /// Where the user says that servers are.
    seeds: Vec<Access>,
    /// With which of those that serve it begins: not all clients with the same.
    first: usize,
    news: watch::Sender<TopologyNews>,
    wanted: Notify,
    /// Where to ask first.
    hints: Mutex<HashSet<Endpoint>>,
    /// Who is told what has moved, before anybody goes by the new map.
    listener: Mutex<Vec<Arc<dyn VoterEvents>>>,
    /// Whoever has this keeps the map up to date. With the server that answered last.
    kept: tokio::sync::Mutex<Option<Kept>>,
}

/// A connection by which a server told of its cluster.
type Kept = (Access, Arc<Inquirer>);

/// The latest map.
#[derive(Clone, Debug, Default)]
pub(super) struct TopologyNews {
    /// Grows with every answer, whatever it says.
    pub(super) answers: u64,
    pub(super) map: Arc<Map>,
    /// Why there was no answer, since the latest.
    pub(super) trouble: Option<Cause>,
}

impl Topology {
    pub(crate) fn new(seeds: Vec<Access>) -> Arc<Self> {
        let first = rand::random_range(0..usize::from(u16::MAX));
        Arc::new(Self { seeds, first, ..Self::default() })
    }

    /// Has one of the voters told what moves from now on.
    pub(super) fn tell(&self, listener: Arc<dyn VoterEvents>) {
        lock(&self.listener).push(listener);
    }

    pub(super) fn news(&self) -> watch::Receiver<TopologyNews> {
        self.news.subscribe()
    }

    pub(super) fn map(&self) -> Arc<Map> {
        Arc::clone(&self.news.borrow().map)
    }

    /// How to reach a server of this cluster.
    pub(super) fn access(&self, (host, port): &Endpoint) -> Access {
        self.seeds[0].at(host, *port)
    }

    /// There is a reason to ask again, perhaps this server.
    pub(super) fn doubt(&self, hint: Option<Endpoint>) {
        lock(&self.hints).extend(hint);
        self.wanted.notify_one();
    }

    /// Asks one server after the other until one tells who has the slots: those that were hinted
    /// at, those that serve, those that the user named. One that knows of nobody may be new, or may
    /// have forgotten its cluster, and one that is cut off from the others tells what was: they are
    /// believed where the others know no more.
    ///
    /// `kept`: a connection to the one that answered last, which is used again.
    async fn ask(&self, kept: &mut Option<Kept>) -> Outcome<Vec<ClusterServer>> {
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
        let before = kept.take();
        let answers = stream::iter(places).map(|access| self.ask_one(access, before.as_ref()));
        // Several at once, as one that hangs must not hold up the others.
        let mut answers = pin!(answers.buffer_unordered(AT_ONCE));
        let mut known = Err(Cause::Unheard);
        while let Some(answer) = answers.next().await {
            match answer {
                Ok((servers, _)) if !servers.iter().any(ClusterServer::has_slots) => {
                    known = known.or(Ok(servers));
                }
                Ok((servers, by)) if !map.is_ahead_of(&servers) => {
                    *kept = Some(by);
                    return Ok(servers);
                }
                Err(_) if known.is_ok() => {}
                other => known = other.map(|(servers, _)| servers),
            }
        }
        known
    }

    async fn ask_one(
        &self,
        access: Access,
        kept: Option<&Kept>,
    ) -> Outcome<(Vec<ClusterServer>, Kept)> {
        if let Some((_, by)) = kept.filter(|(kept, _)| kept.label() == access.label()) {
            match self.ask_by(&access, by).await {
                // Its connection has ended since then.
                Err(Cause::Broken(_) | Cause::Unreachable(_)) => {}
                told => return told.map(|servers| (servers, (access, Arc::clone(by)))),
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

    /// Takes note of an answer. Whether it changes anything.
    fn heard(&self, answer: Outcome<Vec<ClusterServer>>) -> bool {
        let before = self.map();
        let mut news = self.news.borrow().clone();
        match answer {
            Ok(servers) => {
                let (map, moves) = news.map.next(&servers);
                for Move { from, to, lost } in moves {
                    lock(&self.listener).iter().for_each(|listener| listener.moved(from, to, lost));
                }
                if map != *news.map {
                    news.map = Arc::new(map);
                }
                news.answers += 1;
                if news.trouble.take().is_some() {
                    let servers = servers.len();
                    log::tell(move || {
                        tracing::warn!(servers, "a server tells of the cluster again");
                    });
                }
            }
            Err(cause) => {
                news.trouble = Some(cause.clone());
                log::tell(move || tracing::warn!(%cause, "no server tells of the cluster"));
            }
        }
        let changed = news.map != before;
        self.news.send_replace(news);
        changed
    }

    /// Keeps the map up to date for as long as this is polled. One voter does it for all.
    pub(super) async fn keep(&self) {
        let kept = &mut *self.kept.lock().await;
        let mut pauses = Pauses::new(PAUSE, LONGEST_PAUSE);
        let (mut has_reason, mut warned) = (true, false);
        loop {
            let again = match &*kept {
                // The one that answered last, unless others may know more.
                Some((access, by)) if !has_reason => self.ask_by(access, by).await.ok(),
                _ => None,
            };
            let answer = match again.filter(|servers| self.map().follows(servers)) {
                Some(servers) => Ok(servers),
                None => self.ask(kept).await,
            };
            let trouble = answer.as_ref().err().cloned();
            if self.heard(answer) {
                pauses.reset();
            }
            if !warned && let Some((server, by)) = &*kept {
                // With what is usual in Redis a cluster serves no slot while any of them has no
                // primary: then all its voters fail together.
                let coverage = by.setting("cluster-require-full-coverage").await;
                if coverage.is_some_and(|value| value == "yes") {
                    let server = Arc::clone(server.label());
                    log::tell(move || {
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
            // Without a reason by then it is asked without one.
            let wanted = self.wanted.notified();
            has_reason = trouble.is_some() || time::timeout(INTERVAL, wanted).await.is_ok();
        }
    }
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
