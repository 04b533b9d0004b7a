//! A real Redis Cluster.
//!
//! Nodes are named by the number in which they started, primaries first; the numbers stay when the
//! roles change. A cluster is indexed by them: `cluster[2].kill()`. What waits is async, so that
//! other tasks of the test go on meanwhile; the rest blocks, as a `RedisServer` does.

mod form;
mod migration;
mod view;

use std::ops::{Index, IndexMut};

pub use self::view::Member;
use super::redis::RedisServer;
use super::resp::Reply;
use super::settings::Settings;
use super::wait::{succeeds, succeeds_async};

/// How many slots a cluster has.
const SLOTS: u32 = 16_384;

/// So often a replica is told again to fail over: a primary that voted for one short ago refuses
/// the next for twice the node timeout, and says so only in its log.
const ASKED_AGAIN_AFTER: u32 = 100;

/// Primaries and their replicas, each a process with a port of its own; killed when dropped.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<RedisServer>,
    /// The id of each node; it stays with the node's files.
    ids: Vec<String>,
}

impl Cluster {
    /// Starts so many primaries, with the slots that `redis-cli --cluster create` would give them,
    /// and so many replicas for each; returns when all nodes agree that the cluster is complete.
    ///
    /// Node `n` below `primaries` starts as a primary, and node `primaries + i` as a replica of
    /// `i % primaries`. Nothing is kept on disk but what a node knows about the cluster. A dead
    /// primary is replaced only while most primaries live: have three or more of them.
    pub fn start(primaries: usize, replicas_each: usize) -> Self {
        Self::start_with(primaries, replicas_each, &[])
    }

    /// As [`start`](Self::start) with further flags for each node, which win over the usual ones:
    /// `&["--appendonly", "yes", "--appendfsync", "always"]`.
    pub fn start_with(primaries: usize, replicas_each: usize, flags: &[&str]) -> Self {
        Self::start_as(primaries, replicas_each, &Settings::new().flags(flags))
    }

    /// As [`start`](Self::start), each node with these settings.
    pub fn start_as(primaries: usize, replicas_each: usize, settings: &Settings) -> Self {
        let cluster = form::blank(primaries * (1 + replicas_each), settings);
        form::form(&cluster, primaries);
        succeeds("the cluster is complete", || cluster.judge());
        cluster
    }

    /// Starts nodes that are to become primaries and know of no cluster yet.
    pub fn start_blank(primaries: usize) -> Self {
        form::blank(primaries, &Settings::new())
    }

    /// Makes blank nodes a cluster; they agree about it a little later.
    pub fn form(&self) {
        form::form(self, self.nodes.len());
    }

    /// The servers, in the order of their numbers.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The [`url`](RedisServer::url) of every node.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    /// The node's id in the cluster.
    pub fn id(&self, node: usize) -> &str {
        &self.ids[node]
    }

    /// The nodes that run and are not stopped.
    pub fn live(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&node| self[node].is_live()).collect()
    }

    /// The live nodes that say of themselves that they are primaries, with or without slots.
    pub fn primaries(&self) -> Vec<usize> {
        let is_primary = |node: &usize| self.itself(*node).is_ok_and(|itself| itself.is_primary());
        self.live().into_iter().filter(is_primary).collect()
    }

    /// The live nodes that say of themselves that they are replicas of this one.
    pub fn replicas_of(&self, node: usize) -> Vec<usize> {
        let of = Some(self.id(node));
        let is_replica =
            |other: &usize| self.itself(*other).is_ok_and(|itself| itself.primary.as_deref() == of);
        self.live().into_iter().filter(is_replica).collect()
    }

    /// The live node that serves the slot, asked now; panics while there is none.
    #[track_caller]
    pub fn primary_of(&self, slot: u16) -> usize {
        self.serving(slot).unwrap_or_else(|| panic!("no live node serves slot {slot}"))
    }

    /// As [`primary_of`](Self::primary_of), or nothing: while a failover is awaited, for one.
    pub fn serving(&self, slot: u16) -> Option<usize> {
        let claims = self.live().into_iter().filter_map(|node| {
            let itself = self.itself(node).ok()?;
            itself.serves(slot).then_some((itself.epoch, node))
        });
        // One that has slept through a failover claims its slots too, with the older epoch.
        claims.max().map(|(_, node)| node)
    }

    /// The slot of a key, as a live node computes it.
    pub fn slot_of(&self, key: &str) -> u16 {
        let node = *self.live().first().expect("a node is live");
        match self[node].command(&["CLUSTER", "KEYSLOT", key]) {
            Ok(Reply::Int(slot)) => slot.try_into().expect("a slot"),
            other => panic!("CLUSTER KEYSLOT answered {other:?}"),
        }
    }

    /// What a node knows about the nodes of the cluster.
    pub fn members(&self, node: usize) -> Result<Vec<Member>, String> {
        view::members(&self[node])
    }

    /// Waits until all live nodes agree: each says that the cluster is well, they know each other
    /// and the same roles, every slot is served by one of them, and replicas have their primary's
    /// data. Returns at once where it is so already.
    pub async fn settled(&self) {
        succeeds_async("all live nodes agree about the cluster", async || self.judge()).await;
    }

    /// Has a live replica take over from its primary (`CLUSTER FAILOVER`), and waits until all live
    /// nodes agree that it did. The old primary, if it lives, is its replica then.
    pub async fn failover(&self, replica: usize) {
        let mut asked = 0_u32;
        succeeds_async("the replica takes over", async || {
            if self.itself(replica)?.is_primary() {
                return self.judge();
            }
            if asked.is_multiple_of(ASKED_AGAIN_AFTER) {
                self[replica].command(&["CLUSTER", "FAILOVER"])?;
            }
            asked += 1;
            Err("it is still a replica".to_owned())
        })
        .await;
    }

    /// Waits until another live node than `old`, which was killed or stopped, serves the slot and
    /// all live nodes agree about it; returns that node.
    pub async fn wait_for_failover(&self, slot: u16, old: usize) -> usize {
        succeeds_async("another node serves the slot", async || {
            let new = self.serving(slot).ok_or_else(|| format!("nobody serves {slot}"))?;
            self.judge()?;
            (new != old).then_some(new).ok_or_else(|| format!("node {old} still serves {slot}"))
        })
        .await
    }

    fn itself(&self, node: usize) -> Result<Member, String> {
        view::itself(&self[node])
    }

    fn judge(&self) -> Result<(), String> {
        view::judge(&self.live().into_iter().map(|node| &self[node]).collect::<Vec<_>>())
    }
}

impl Index<usize> for Cluster {
    type Output = RedisServer;

    fn index(&self, node: usize) -> &RedisServer {
        &self.nodes[node]
    }
}

impl IndexMut<usize> for Cluster {
    fn index_mut(&mut self, node: usize) -> &mut RedisServer {
        &mut self.nodes[node]
    }
}
