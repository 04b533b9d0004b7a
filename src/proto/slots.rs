//! The numbered slots of a semaphore.

use std::sync::Arc;

/// The slots of a hold, in the order in which it has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots(Arc<[u16]>);

impl Slots {
    /// So many permits a semaphore has at most.
    pub const MOST: u16 = 10_000;
    /// So many of them a hold has at most, and the requests of a call together.
    pub const AT_ONCE: u16 = 256;

    pub fn new(slots: impl IntoIterator<Item = u16>) -> Self {
        Self(slots.into_iter().collect())
    }

    pub fn list(&self) -> &[u16] {
        &self.0
    }

    /// Reads ranges with both ends, as scripts write them: `7-9,0-0`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut slots = Vec::new();
        for range in text.split(',') {
            let (first, last) = range.split_once('-')?;
            let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
            let most = usize::from(Self::AT_ONCE);
            if first > last || last >= Self::MOST || slots.len() + usize::from(last - first) >= most
            {
                return None;
            }
            slots.extend(first..=last);
        }
        Some(Self(slots.into()))
    }

    /// As scripts read them.
    pub fn text(&self) -> String {
        let ranges = self.0.chunk_by(|one, next| one.checked_add(1) == Some(*next));
        let ranges = ranges.map(|range| format!("{}-{}", range[0], range[range.len() - 1]));
        ranges.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn slots_are_written_as_ranges_and_keep_their_order() {
        let slots = Slots::new([7, 8, 9, 0, 2, 3]);
        assert_eq!(slots.text(), "7-9,0-0,2-3");
        assert_eq!(Slots::parse("7-9,0-0,2-3"), Some(slots));
    }

    #[test]
    fn what_no_script_writes_is_no_slots() {
        // The second is a token.
        let too_many = "0-255,0-0";
        for text in ["", "1763766000123456", "5", "3-2", "-1-2", "0-10000", "1-2,", too_many] {
            assert_eq!(Slots::parse(text), None, "{text}");
        }
        assert_eq!(Slots::parse("9744-9999").unwrap().list().len(), 256);
    }

    proptest! {
        #[test]
        fn slots_are_read_as_they_are_written(slots in vec(0..Slots::MOST, 1..20)) {
            let slots = Slots::new(slots);
            prop_assert_eq!(Slots::parse(&slots.text()), Some(slots));
        }
    }
}
