//! How nodes become a cluster.

use super::{ASKED_AGAIN_AFTER, Cluster, RedisServer, SLOTS, Settings, succeeds, view};

/// A failover within a few seconds, and none where the machine is merely busy.
const FLAGS: [&str; 12] = [
    "--cluster-enabled",
    "yes",
    "--cluster-announce-ip",
    "127.0.0.1",
    "--cluster-node-timeout",
    "1500",
    "--cluster-replica-validity-factor",
    "0",
    "--cluster-require-full-coverage",
    "no",
    "--cluster-migration-barrier",
    "99",
];

/// Starts nodes that know of no others and have no slots.
pub(super) fn blank(count: usize, settings: &Settings) -> Cluster {
    let settings = settings.clone().flags_before(&FLAGS);
    let nodes = RedisServer::start_many(&settings, count);
    let ids = nodes.iter().map(id).collect();
    Cluster { nodes, ids }
}

/// Tells the nodes who they are; they agree about it a little later.
pub(super) fn form(cluster: &Cluster, primaries: usize) {
    let count = cluster.nodes.len();
    for node in 0..count {
        // Different from the start: otherwise the nodes have to settle which is the greater.
        cluster.tell(node, &["CLUSTER", "SET-CONFIG-EPOCH", &(node + 1).to_string()]);
    }
    for node in 0..primaries {
        // One by one: servers older than 7.0 take no range.
        let (first, last) = slots(node, primaries);
        let own: Vec<String> = (first..=last).map(|slot| slot.to_string()).collect();
        let words = ["CLUSTER", "ADDSLOTS"].into_iter().chain(own.iter().map(String::as_str));
        cluster.tell(node, &words.collect::<Vec<_>>());
    }
    let mut looked = 0_u32;
    succeeds("the nodes know each other", || {
        if looked.is_multiple_of(ASKED_AGAIN_AFTER) {
            // Later on also to those that have lost sight of one that the first knows.
            let tellers = if looked == 0 { 1 } else { count };
            (0..tellers).for_each(|teller| cluster.introduce(teller));
        }
        looked += 1;
        cluster.know_each_other()
    });
    for replica in primaries..count {
        let primary = cluster.id((replica - primaries) % primaries);
        cluster.tell(replica, &["CLUSTER", "REPLICATE", primary]);
    }
}

fn id(node: &RedisServer) -> String {
    node.command(&["CLUSTER", "MYID"]).expect("it has one").text()
}

/// The first and the last slot of the primary at this place: equal shares, rounded to the nearest,
/// as `redis-cli --cluster create` gives them.
fn slots(place: usize, primaries: usize) -> (u32, u32) {
    let count = u32::try_from(primaries).expect("not so many");
    let end = |place: u32| (2 * place * SLOTS + count) / (2 * count);
    let place = u32::try_from(place).expect("not so many");
    (end(place), end(place + 1) - 1)
}

impl Cluster {
    /// Runs a command that must succeed.
    #[track_caller]
    pub(super) fn tell(&self, node: usize, words: &[&str]) {
        self[node].command(words).unwrap_or_else(|cause| panic!("node {node}: {words:?}: {cause}"));
    }

    /// Names to a node those that it does not know. It forgets one whose handshake took longer than
    /// the node timeout, as with TLS on a busy machine.
    fn introduce(&self, teller: usize) {
        let known = view::members(&self[teller]).unwrap_or_default();
        for node in &self.nodes {
            if !known.iter().any(|member| member.port == node.port()) {
                self.tell(teller, &["CLUSTER", "MEET", "127.0.0.1", &node.port().to_string()]);
            }
        }
    }

    fn know_each_other(&self) -> Result<(), String> {
        self.nodes.iter().try_for_each(|node| {
            let members = view::members(node)?;
            let known = members.iter().filter(|member| !member.is("handshake")).count();
            let all = known == self.nodes.len();
            all.then_some(()).ok_or_else(|| format!("{} knows {known} nodes", node.port()))
        })
    }
}
