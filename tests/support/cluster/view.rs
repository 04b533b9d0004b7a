//! What the nodes of a cluster know about it, and whether they agree.

use std::ops::RangeInclusive;

use super::{RedisServer, SLOTS};

/// How far above the port for clients that for the other nodes is.
const BUS: u16 = 10_000;

/// A node of the cluster as one node sees it: a line of `CLUSTER NODES`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    id: String,
    /// For clients.
    pub(super) port: u16,
    flags: Vec<String>,
    /// Of a replica.
    pub(super) primary: Option<String>,
    /// Of two that claim a slot the one with the greater has it.
    pub(super) epoch: u64,
    connected: bool,
    slots: Vec<RangeInclusive<u16>>,
}

impl Member {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let id = words.next()?.to_owned();
        // ip:port@busport, and perhaps more.
        let (_, address) = words.next()?.rsplit_once(':')?;
        let (port, bus) = address.split_once('@')?;
        // By the socket, which has no TLS, later servers do not tell the port that has.
        let of_the_bus = bus.split(',').next()?.parse::<u16>().ok()?.saturating_sub(BUS);
        let port = port.parse().ok().filter(|port| *port != 0).unwrap_or(of_the_bus);
        let flags = words.next()?.split(',').map(str::to_owned).collect();
        let primary = Some(words.next()?).filter(|&id| id != "-").map(str::to_owned);
        let epoch = words.nth(2)?.parse().ok()?;
        let connected = words.next()? == "connected";
        // What is on its way from or to it stands in brackets.
        let slots =
            words.filter(|word| !word.starts_with('[')).map(range).collect::<Option<_>>()?;
        Some(Self { id, port, flags, primary, epoch, connected, slots })
    }

    /// Whether it is marked so: `master`, `slave`, `fail?`, `fail`, `handshake`, `noaddr`.
    pub fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|own| own == flag)
    }

    /// Whether it is a primary, with or without slots.
    pub fn is_primary(&self) -> bool {
        self.is("master")
    }

    /// Whether the slot is its own.
    pub fn serves(&self, slot: u16) -> bool {
        self.slots.iter().any(|slots| slots.contains(&slot))
    }
}

/// `7` or `7-9`.
fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

pub(super) fn members(node: &RedisServer) -> Result<Vec<Member>, String> {
    let text = node.command(&["CLUSTER", "NODES"])?.text();
    let read = |line: &str| Member::read(line).ok_or_else(|| format!("no node: {line}"));
    text.lines().map(read).collect()
}

pub(super) fn itself(node: &RedisServer) -> Result<Member, String> {
    let mut members = members(node)?.into_iter();
    members.find(|member| member.is("myself")).ok_or_else(|| "it does not know itself".to_owned())
}

/// Why these nodes do not yet agree that they alone make a whole cluster.
pub(super) fn judge(nodes: &[&RedisServer]) -> Result<(), String> {
    let views = nodes.iter().map(|node| seen_by(node, nodes)).collect::<Result<Vec<_>, _>>()?;
    let Some((first, others)) = views.split_first() else { return Err("no node lives".to_owned()) };
    if let Some(other) = others.iter().find(|other| roles(other) != roles(first)) {
        return Err(format!("views differ: {first:?} and {other:?}"));
    }
    let ranges = first.iter().flat_map(|member| &member.slots);
    let served: u32 = ranges.map(|slots| u32::from(slots.end() - slots.start()) + 1).sum();
    if served != SLOTS {
        return Err(format!("{served} slots are served: {first:?}"));
    }
    nodes.iter().try_for_each(|node| linked(node, nodes, first))
}

/// What a node knows of those that live, in the order of their ports.
fn seen_by(node: &RedisServer, nodes: &[&RedisServer]) -> Result<Vec<Member>, String> {
    let failed = |cause: String| format!("node at port {}: {cause}", node.port());
    let state = node.info(&["CLUSTER", "INFO"], "cluster_state").map_err(failed)?;
    if state != "ok" {
        return Err(failed(format!("the cluster's state is {state}")));
    }
    let mut members = members(node).map_err(failed)?;
    members.retain(|member| nodes.iter().any(|node| node.port() == member.port));
    members.sort_by_key(|member| member.port);
    let troubles = ["handshake", "noaddr", "fail?", "fail"];
    let in_trouble =
        |member: &&Member| !member.connected || troubles.iter().any(|flag| member.is(flag));
    if let Some(member) = members.iter().find(in_trouble) {
        return Err(failed(format!("it sees trouble: {member:?}")));
    }
    if members.len() != nodes.len() {
        return Err(failed(format!("it knows {} of {}: {members:?}", members.len(), nodes.len())));
    }
    Ok(members)
}

/// The part on which views must be equal. A node that does not know the greatest epoch yet claims a
/// slot that it is given with too low a one, and loses it to whoever had it before.
fn roles(view: &[Member]) -> impl PartialEq {
    let role = |member: &Member| {
        let epoch = member.is_primary().then_some(member.epoch);
        (member.id.clone(), member.primary.clone(), member.slots.clone(), epoch)
    };
    view.iter().map(role).collect::<Vec<_>>()
}

/// A replica has the data of its primary, and a primary is a primary to its clients too.
fn linked(node: &RedisServer, nodes: &[&RedisServer], view: &[Member]) -> Result<(), String> {
    let itself = view.iter().find(|member| member.port == node.port()).expect("it is in its view");
    let Some(primary) = &itself.primary else {
        let role = node.info(&["INFO", "replication"], "role")?;
        let right = role == "master";
        return right.then_some(()).ok_or_else(|| format!("{} has the role {role}", node.port()));
    };
    let primary = view.iter().find(|member| member.id == *primary);
    let primary = primary.and_then(|seen| nodes.iter().find(|node| node.port() == seen.port));
    node.is_linked_to(primary.ok_or_else(|| format!("the primary of {} is dead", node.port()))?)
}
