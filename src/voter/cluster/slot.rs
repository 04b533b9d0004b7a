//! Hash slots, as a cluster computes them.

/// How many there are in a cluster.
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

const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0_u16;
    while byte < 256 {
        let mut sum = byte << 8;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 0x8000 == 0 { sum << 1 } else { (sum << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte as usize] = sum;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

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
