//! The slots and names of a lock's keys, for each voter of a cluster.
//!
//! Each of N voters has one of N equal ranges of hash slots. A lock has the same position in each
//! range, so its slots lie a range apart. If N servers or more have equal parts of the slots, no
//! server has two slots of a lock. An addition to the hash tag puts the keys there: `{invoice:42}`
//! becomes `{invoice:42#5r4}` for the first of three voters.

// All this depends on the lock and the number of voters alone. If it depended on the servers of the
// cluster, two clients with different maps would ask for one lock under different keys, and both
// could have it (law 1).

use std::sync::{Arc, LazyLock};

use crate::{
    scripts::Script,
    voter::{Call, Request},
};

/// The number of a voter, and how many voters its cluster has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(super) voter: u16,
    pub(super) voters: u16,
}

impl Seat {
    pub(crate) fn new(voter: u16, voters: u16) -> Self {
        debug_assert!(voter < voters);
        Self { voter, voters }
    }

    /// The first slot of the voter's range.
    pub(super) fn start(self) -> u16 {
        // Rounded as `redis-cli --cluster create` does, so that ranges and servers fit each other.
        let (voter, voters) = (u32::from(self.voter), u32::from(self.voters));
        let start = (2 * voter * u32::from(SLOTS) + voters) / (2 * voters);
        u16::try_from(start).unwrap_or(SLOTS)
    }

    /// The first position in a range that locks have, and how many positions they have.
    fn positions(self) -> (u16, u16) {
        // A sixteenth at either end stays free. If the servers' parts are not quite equal, two
        // ranges meet on one server there, and its death would cost a lock two votes.
        let size = SLOTS / self.voters;
        let margin = size / 16;
        (margin, size - 2 * margin)
    }

    /// All slots that locks may have for this voter.
    pub(super) fn slots(self) -> impl Iterator<Item = u16> {
        let (first, count) = if self.voters == 1 { (0, SLOTS) } else { self.positions() };
        (self.start() + first..).take(usize::from(count))
    }

    /// The slot of a key or a channel, which has the name outside of the cluster.
    pub(super) fn slot(self, key: &str) -> u16 {
        if self.voters == 1 {
            return slot_of(key);
        }
        let (margin, width) = self.positions();
        self.start() + margin + checksum(0, hash_tag(key).as_bytes()) % width
    }

    /// The slot for another voter of the lock that has `slot` for this one.
    pub(super) fn sibling(self, slot: u16, voter: u16) -> u16 {
        slot - self.start() + Self { voter, ..self }.start()
    }

    /// The name of a key or a channel for this voter, by its name outside.
    pub(super) fn name(self, key: &str) -> Arc<str> {
        // One voter has all keys as they are, so that locks of Redisson have the keys of Java's
        // clients, in a cluster too.
        if self.voters == 1 {
            return key.into();
        }
        if let Some(name) = name_in(self.slot(key), key) {
            return name;
        }
        // A channel for all locks, or the beginning of such channels. `PUBLISH` goes to all servers
        // of a cluster: without the number, a client would hear each wake-up from every voter.
        let at = key.rfind(':').map_or(0, |colon| colon + 1);
        format!("{}{}:{}", &key[..at], self.voter, &key[at..]).into()
    }

    /// A pattern of `SCAN` for what is added to hash tags.
    pub(super) fn any_ending(self) -> &'static str {
        if self.voters == 1 { "" } else { "#???" }
    }

    /// The name outside of a key that has this name here.
    pub(super) fn outside(self, key: &str) -> Option<String> {
        let (before, rest) = key.split_once('{')?;
        let (tag, after) = rest.split_once('}')?;
        if self.voters == 1 {
            return Some(key.to_owned());
        }
        let (name, _) = tag.split_at_checked(tag.len().checked_sub(1 + LENGTH)?)?;
        let outside = format!("{before}{{{name}}}{after}");
        // The name of a lock may end with `#abc` by itself, and the key may be another voter's.
        (*self.name(&outside) == *key).then_some(outside)
    }

    /// The name outside of a channel that has this name here.
    pub(super) fn outside_channel(self, channel: &str) -> Option<String> {
        if self.voters == 1 {
            return Some(channel.to_owned());
        }
        self.outside(channel).or_else(|| {
            let (before, last) = channel.rsplit_once(':')?;
            Some(format!("{}{last}", before.strip_suffix(&self.voter.to_string())?))
        })
    }

    /// A call with the names that its keys and channels have for this voter.
    pub(super) fn rename(self, call: &Call) -> Call {
        if self.voters == 1 {
            return call.clone();
        }
        let arg = |(text, name): (&str, &&str)| {
            let is_renamed = Script::is_channel(name) && !text.is_empty();
            if is_renamed { self.name(text) } else { text.into() }
        };
        let request = |request: &Arc<Request>| {
            let keys: Vec<_> = request.keys().map(|key| self.name(key)).collect();
            let args: Vec<_> = request.args().zip(call.script.args.iter()).map(arg).collect();
            request.renamed(&keys, &args)
        };
        let shared = call.shared.iter().map(|arg| &**arg);
        Call {
            shared: shared.zip(call.script.shared.iter()).map(arg).collect(),
            requests: call.requests.iter().map(request).collect(),
            ..call.clone()
        }
    }
}

/// The name of a key in this slot, if the key has a hash tag.
pub(super) fn name_in(slot: u16, key: &str) -> Option<Arc<str>> {
    let (before, rest) = key.split_once('{')?;
    let (tag, after) = rest.split_once('}').filter(|(tag, _)| !tag.is_empty())?;
    let ending = ending(tag, slot);
    Some(format!("{before}{{{tag}{ending}}}{after}").into())
}

/// The addition to a hash tag that puts it into this slot.
fn ending(tag: &str, slot: u16) -> String {
    let sum = checksum(checksum(0, tag.as_bytes()), b"#");
    // CRC16 is linear: the checksum of the tag with its ending is the checksum of the tag with
    // zeros there, XOR that of the ending alone. So one table of endings serves all tags.
    let needed = (checksum(sum, &[0; LENGTH]) ^ slot) % SLOTS;
    let mut ending = String::from("#");
    ending.extend(ENDINGS[usize::from(needed)].map(char::from));
    ending
}

// 64 letters to the power of 3 are 16 times as many as there are slots: each slot has an ending.
// Two letters would be 4,096, too few.
const LENGTH: usize = 3;
// No letter that ends a hash tag or has a meaning in a pattern of `SCAN`.
const LETTERS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

/// For each slot the first ending, in the order of the letters, whose own checksum leads there.
// The first one, as clients of all versions must choose the same (test
// `names_and_slots_are_pinned`).
static ENDINGS: LazyLock<Vec<[u8; LENGTH]>> = LazyLock::new(|| {
    let mut endings = vec![[0; LENGTH]; usize::from(SLOTS)];
    for one in LETTERS {
        for two in LETTERS {
            for three in LETTERS {
                let ending = [*one, *two, *three];
                let first = &mut endings[usize::from(checksum(0, &ending) % SLOTS)];
                if *first == [0; LENGTH] {
                    *first = ending;
                }
            }
        }
    }
    endings
});

/// How many hash slots there are in a cluster.
pub(crate) const SLOTS: u16 = 16_384;

/// The slot of a key.
pub(crate) fn slot_of(key: &str) -> u16 {
    checksum(0, hash_tag(key).as_bytes()) % SLOTS
}

/// The part of a key that is hashed: the text between the first `{` and the next `}`, if any.
pub(super) fn hash_tag(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// CRC16/XMODEM, continued from `seed`.
pub(super) fn checksum(seed: u16, bytes: &[u8]) -> u16 {
    bytes
        .iter()
        .fold(seed, |sum, byte| (sum << 8) ^ TABLE[usize::from((sum >> 8) ^ u16::from(*byte))])
}

/// The checksum of each byte.
const TABLE: [u16; 256] = {
    let (mut table, mut byte) = ([0; 256], 0_u16);
    while byte < 256 {
        let (mut sum, mut bit) = (byte << 8, 0);
        while bit < 8 {
            sum = if sum & 0x8000 == 0 { sum << 1 } else { (sum << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte as usize] = sum;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seats(voters: u16) -> impl Iterator<Item = Seat> {
        (0..voters).map(move |voter| Seat::new(voter, voters))
    }

    #[test]
    fn there_is_an_ending_for_every_slot_and_one_voter_has_the_keys_as_they_are() {
        assert!(ENDINGS.iter().all(|ending| *ending != [0; LENGTH]));
        let (key, only) = ("quorate:{invoice:42}", Seat::new(0, 1));
        assert_eq!((&*only.name(key), only.slot(key)), (key, slot_of(key)));
    }

    /// Clients of all versions must agree about these. `docs/protocol.md` has them too.
    #[test]
    fn names_and_slots_are_pinned() {
        for (name, voters, voter, ending, slot) in [
            ("invoice:42", 3, 0, "5r4", 4151),
            ("invoice:42", 3, 1, "7MC", 9612),
            ("invoice:42", 3, 2, "61k", 15_074),
            ("a", 5, 0, "B1E", 535),
            ("a", 5, 1, "4Gc", 3812),
            ("a", 5, 2, "6_l", 7089),
            ("a", 5, 3, "0BM", 10_365),
            ("a", 5, 4, "4Pi", 13_642),
            ("stock/sku 7", 3, 0, "5pS", 4630),
            ("stock/sku 7", 3, 1, "5Md", 10_091),
            ("stock/sku 7", 3, 2, "09A", 15_553),
            ("Grüße", 5, 0, "0S9", 444),
            ("Grüße", 5, 1, "08x", 3721),
            ("Grüße", 5, 2, "1LI", 6998),
            ("Grüße", 5, 3, "0QB", 10_274),
            ("Grüße", 5, 4, "065", 13_551),
        ] {
            let (seat, key) = (Seat::new(voter, voters), format!("quorate:{{{name}}}"));
            let placed = format!("quorate:{{{name}#{ending}}}");
            assert_eq!((seat.name(&key), seat.slot(&key)), (placed.into(), slot), "{name}");
        }
    }

    proptest! {
        #[test]
        fn each_key_is_in_its_voters_range_and_all_of_a_lock_in_one_slot(
            name in "[^{}]{1,40}", voters in 2_u16..=9,
        ) {
            for seat in seats(voters) {
                let keys = ["quorate:{N}", "quorate:{N}:fence", "quorate:{N}:wake"];
                let keys = keys.map(|key| key.replace('N', &name));
                let slot = seat.slot(&keys[0]);
                let end = seats(voters).nth(usize::from(seat.voter) + 1).map_or(SLOTS, Seat::start);
                prop_assert!((seat.start()..end).contains(&slot));
                for key in keys {
                    prop_assert_eq!(slot_of(&seat.name(&key)), slot);
                    prop_assert_eq!(seat.outside_channel(&seat.name(&key)), Some(key.clone()));
                    prop_assert_eq!(seat.outside(&seat.name(&key)), Some(key));
                }
                for other in seats(voters) {
                    let key = Arc::from(format!("quorate:{{{name}}}"));
                    prop_assert_eq!(seat.sibling(slot, other.voter), other.slot(&key));
                    prop_assert!(other.voter == seat.voter || seat.name(&key) != other.name(&key));
                }
            }
        }

        #[test]
        fn no_server_of_as_many_as_there_are_voters_has_two_slots_of_a_lock(
            name in "[^{}]{1,40}", voters in 2_u16..=7, more in 0_u16..=9,
        ) {
            let servers = u32::from(voters + more);
            // As `redis-cli --cluster create` deals them out.
            let start = |at: u32| (2 * at * 16_384 + servers) / (2 * servers);
            let server = |slot: u16| (0..servers).rfind(|at| u32::from(slot) >= start(*at));
            let key = format!("quorate:{{{name}}}");
            let mut at: Vec<_> = seats(voters).map(|seat| server(seat.slot(&key))).collect();
            at.dedup();
            prop_assert_eq!(at.len(), usize::from(voters));
        }
    }

    #[test]
    fn channels_for_all_locks_are_each_voters_own_and_their_beginnings_fit() {
        let seat = Seat::new(2, 3);
        let [all, one] = ["quorate:calls:", "quorate:calls:c-1"].map(|name| seat.name(name));
        assert_eq!((&*all, &*one), ("quorate:calls:2:", "quorate:calls:2:c-1"));
        let outside = ["quorate:calls:2:c-1", "2:alone"].map(|here| seat.outside_channel(here));
        assert_eq!(outside, ["quorate:calls:c-1", "alone"].map(|name| Some(name.into())));
    }

    /// As `CLUSTER KEYSLOT` answers on a server.
    #[test]
    fn slots_are_those_of_a_server() {
        assert_eq!(checksum(0, b"123456789"), 0x31c3);
        let known = [("foo", 12_182), ("{user1000}.following", 3_443), ("", 0), ("{}x", 10_595)];
        for (key, slot) in known {
            assert_eq!(slot_of(key), slot, "{key}");
        }
    }

    #[test]
    fn the_first_brace_and_the_next_closing_one_enclose_the_hash_tag() {
        for (key, tag) in
            [("a{b}c", "b"), ("a{{b}}", "{b"), ("a{}{b}", "a{}{b}"), ("a}b{c", "a}b{c")]
        {
            assert_eq!(hash_tag(key), tag);
        }
    }
}
