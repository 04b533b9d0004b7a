//! Slots that move from one primary to another, in steps between which a test can stop.

use super::{Cluster, succeeds_async};

/// How many keys move at once.
const BATCH: usize = 100;

impl Cluster {
    /// Moves a slot with its keys to another primary, and waits until all live nodes know it.
    pub async fn migrate(&self, slot: u16, to: usize) {
        self.begin_migration(slot, to);
        self.move_keys(slot, to);
        self.end_migration(slot, to).await;
    }

    /// Opens the slot on both sides. From here on the old primary answers `ASK` for keys that it
    /// does not have, and the new one serves them to who says `ASKING` first.
    pub fn begin_migration(&self, slot: u16, to: usize) {
        let from = self.primary_of(slot);
        assert_ne!(from, to, "slot {slot} is there already");
        let slot = slot.to_string();
        self.tell(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", self.id(from)]);
        self.tell(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", self.id(to)]);
    }

    /// Moves the keys that are in the slot now.
    pub fn move_keys(&self, slot: u16, to: usize) {
        while self.move_some_keys(slot, to, BATCH) > 0 {}
    }

    /// As [`move_keys`](Self::move_keys), and no more than so many of them.
    pub fn move_some_keys(&self, slot: u16, to: usize, most: usize) -> usize {
        let from = self.primary_of(slot);
        let keys = self.keys_in(from, slot, most);
        if !keys.is_empty() {
            let port = self[to].port().to_string();
            let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000"];
            if let Some([name, password]) = self[to].master() {
                words.extend(["AUTH2", name, password]);
            }
            words.push("KEYS");
            words.extend(keys.iter().map(String::as_str));
            self.tell(from, &words);
        }
        keys.len()
    }

    /// Gives the slot to its new primary, and waits until all live nodes know it. Panics where the
    /// old one still has keys of it: it does not let go of them.
    pub async fn end_migration(&self, slot: u16, to: usize) {
        let from = self.primary_of(slot);
        let text = slot.to_string();
        // The new one first: if only the old one knew, nobody would serve the slot for a moment.
        let others = self.primaries().into_iter().filter(|&node| node != from && node != to);
        for node in [to, from].into_iter().chain(others) {
            self.tell(node, &["CLUSTER", "SETSLOT", &text, "NODE", self.id(to)]);
        }
        succeeds_async("all live nodes know the slot's new primary", async || {
            self.judge()?;
            let serving = self.serving(slot);
            let right = serving == Some(to);
            right.then_some(()).ok_or_else(|| format!("node {serving:?} serves {slot}"))
        })
        .await;
    }

    /// The names of at most so many keys that a node has in a slot, whoever serves it.
    fn keys_in(&self, node: usize, slot: u16, most: usize) -> Vec<String> {
        let (slot, most) = (slot.to_string(), most.to_string());
        let reply = self[node].command(&["CLUSTER", "GETKEYSINSLOT", &slot, &most]);
        reply.expect("it answers").texts()
    }
}
