//! Where a voter's part of a lock is in a cluster.
//!
//! Each of N voters has one of N equal ranges of hash slots. A lock has the same place within each
//! range, so its slots lie a range apart, and no server has two of them where the slots are dealt
//! out in equal parts to N servers or more. The keys get there by what is added to their hash tag:
//! `{invoice:42}` becomes `{invoice:42#5r4}` for the first of three. That depends on the lock and
//! the number of voters alone, so all clients find the same, whatever the cluster looks like.

use std::sync::{Arc, LazyLock};

use crate::{
    scripts::Script,
    voter::{Call, Request},
};

/// Which of how many voters of one cluster.
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

    /// The first slot of its range, rounded as `redis-cli --cluster create` does.
    pub(super) fn start(self) -> u16 {
        let (voter, voters) = (u32::from(self.voter), u32::from(self.voters));
        let start = (2 * voter * u32::from(SLOTS) + voters) / (2 * voters);
        u16::try_from(start).unwrap_or(SLOTS)
    }

    /// The places within a range that locks have. Some at either end stay free: where the slots
    /// are not dealt out quite evenly, it is there that two ranges meet on one server.
    fn places(self) -> (u16, u16) {
        let size = SLOTS / self.voters;
        let margin = size / 16;
        (margin, size - 2 * margin)
    }

    /// All slots that a lock may have here.
    pub(super) fn slots(self) -> impl Iterator<Item = u16> {
        let (first, count) = if self.voters == 1 { (0, SLOTS) } else { self.places() };
        (self.start() + first..).take(usize::from(count))
    }

    /// The slot of a key or a channel, as the lock names it.
    pub(super) fn slot(self, key: &str) -> u16 {
        if self.voters == 1 {
            return slot_of(key);
        }
        let (margin, width) = self.places();
        self.start() + margin + checksum(0, hash_tag(key).as_bytes()) % width
    }

    /// What the lock's slot of another voter is where that of this one is `slot`.
    pub(super) fn sibling(self, slot: u16, voter: u16) -> u16 {
        slot - self.start() + Self { voter, ..self }.start()
    }

    /// A key or a channel, as it is named here.
    pub(super) fn name(self, key: &str) -> Arc<str> {
        if self.voters == 1 {
            return key.into();
        }
        if let Some(led) = led_into(self.slot(key), key) {
            return led;
        }
        // A channel for all locks, or what such channels begin with; all voters share the channels
        // of a cluster.
        let at = key.rfind(':').map_or(0, |colon| colon + 1);
        format!("{}{}:{}", &key[..at], self.voter, &key[at..]).into()
    }

    /// What keys have at the end of their hash tags here, as `SCAN` takes it.
    pub(super) fn any_ending(self) -> &'static str {
        if self.voters == 1 { "" } else { "#???" }
    }

    /// A key as the lock names it, of one that is named so here.
    pub(super) fn outside(self, key: &str) -> Option<String> {
        let (before, rest) = key.split_once('{')?;
        let (tag, after) = rest.split_once('}')?;
        if self.voters == 1 {
            return Some(key.to_owned());
        }
        let (name, _) = tag.split_at_checked(tag.len().checked_sub(1 + LENGTH)?)?;
        let outside = format!("{before}{{{name}}}{after}");
        (*self.name(&outside) == *key).then_some(outside)
    }

    /// A channel as the lock names it, of one that is listened to here.
    pub(super) fn outside_channel(self, channel: &str) -> Option<String> {
        if self.voters == 1 {
            return Some(channel.to_owned());
        }
        self.outside(channel).or_else(|| {
            let (before, last) = channel.rsplit_once(':')?;
            Some(format!("{}{last}", before.strip_suffix(&self.voter.to_string())?))
        })
    }

    /// A call with the names that its keys and channels have here.
    pub(super) fn place(self, call: &Call) -> Call {
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

/// A key with this slot, by what is added to its hash tag, if it has one.
pub(super) fn led_into(slot: u16, key: &str) -> Option<Arc<str>> {
    let (before, rest) = key.split_once('{')?;
    let (tag, after) = rest.split_once('}').filter(|(tag, _)| !tag.is_empty())?;
    let ending = ending(tag, slot);
    Some(format!("{before}{{{tag}{ending}}}{after}").into())
}

/// What puts a hash tag into this slot.
fn ending(tag: &str, slot: u16) -> String {
    let sum = checksum(checksum(0, tag.as_bytes()), b"#");
    // The checksum is linear: that of the whole is that of the whole with nothing at its end, and
    // that of the end, added without carries.
    let needed = (checksum(sum, &[0; LENGTH]) ^ slot) % SLOTS;
    let mut ending = String::from("#");
    ending.extend(ENDINGS[usize::from(needed)].map(char::from));
    ending
}

const LENGTH: usize = 3;
const LETTERS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

/// For each slot the first ending, in the order of the letters, that has it by itself.
static ENDINGS: LazyLock<Vec<[u8; LENGTH]>> = LazyLock::new(|| {
    let mut endings = vec![[0; LENGTH]; usize::from(SLOTS)];
    for one in LETTERS {
        for two in LETTERS {
            for three in LETTERS {
                let ending = [*one, *two, *three];
                let known = &mut endings[usize::from(checksum(0, &ending) % SLOTS)];
                if *known == [0; LENGTH] {
                    *known = ending;
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

/// What of a key is hashed: the text between the first `{` and the next `}`, if there is any.
pub(super) fn hash_tag(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// CRC16/XMODEM, gone on with from `seed`.
pub(super) fn checksum(seed: u16, bytes: &[u8]) -> u16 {
    bytes
        .iter()
        .fold(seed, |sum, byte| (sum << 8) ^ TABLE[usize::from((sum >> 8) ^ u16::from(*byte))])
}

/// What each byte comes to.
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
