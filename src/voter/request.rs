//! The keys and arguments of one request.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use crate::{keys::Word, proto::HoldId};

/// The keys and arguments of one request.
// One text, not a text for each word: a client with 100,000 holds reads each of them from cold
// memory, which cost more than sending it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The keys, and behind them the arguments.
    text: Box<str>,
    /// Where each of them ends in the text.
    ends: [u32; Self::MOST],
    keys: usize,
    args: usize,
    /// A hash of the lock.
    lock: u64,
    /// Whether the hold reads, so that others may read at the same time.
    pub(super) reads: bool,
    /// A hash of the lock and the hold: requests with the same one keep their order.
    // Attempts from one place in a queue are one party: a later one may have left the queue for
    // good, and no earlier one may arrive behind it. So are a parked hold and those that resume it.
    pub(crate) party: u64,
    /// How many slots of a semaphore the request is about; 1 for any other lock.
    pub(crate) weight: u16,
}

impl Request {
    /// The most keys and arguments that a script takes for one request.
    pub(crate) const MOST: usize = 12;

    /// `hold`: the hold for which the request asks, if any.
    pub(crate) fn new<'a>(
        keys: impl IntoIterator<Item = Word<'a>, IntoIter: Clone>,
        args: impl IntoIterator<Item = Word<'a>, IntoIter: Clone>,
        hold: Option<&HoldId>,
    ) -> Arc<Self> {
        let mut request = Self::written(keys, args);
        let mut hasher = DefaultHasher::new();
        request.key().hash(&mut hasher);
        request.lock = hasher.finish();
        request.reads = hold.is_some_and(HoldId::reads);
        hold.map(HoldId::party).hash(&mut hasher);
        request.party = hasher.finish();
        Arc::new(request)
    }

    /// The same request with other names of its keys, and these arguments.
    // The hashes stay: they are by the names that the lock has, so a cluster's voter keeps the
    // same order as any other.
    pub(crate) fn renamed(&self, keys: &[Arc<str>], args: &[Arc<str>]) -> Arc<Self> {
        let [keys, args] = [keys, args].map(|words| words.iter().map(Word::from));
        let Self { lock, reads, party, weight, .. } = *self;
        Arc::new(Self { lock, reads, party, weight, ..Self::written(keys, args) })
    }

    fn written<'a>(
        keys: impl IntoIterator<Item = Word<'a>, IntoIter: Clone>,
        args: impl IntoIterator<Item = Word<'a>, IntoIter: Clone>,
    ) -> Self {
        let (keys, args) = (keys.into_iter(), args.into_iter());
        let words = keys.clone().chain(args);
        let mut text = String::with_capacity(words.clone().map(|word| word.length()).sum());
        let (mut ends, mut count) = ([0; Self::MOST], 0);
        for word in words {
            word.write(&mut text);
            ends[count] = u32::try_from(text.len()).expect("no lock has a name as long as that");
            count += 1;
        }
        let (keys, text) = (keys.count(), text.into());
        Self { text, ends, keys, args: count - keys, lock: 0, reads: false, party: 0, weight: 1 }
    }

    fn word(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[at] as usize]
    }

    /// A number for what a release by this hold gives back: the lock, or its part for reads.
    pub(crate) fn gives_back(&self) -> u64 {
        self.lock.wrapping_add(u64::from(self.reads))
    }

    /// The releases that a request for this hold must not overtake, by [`gives_back`].
    ///
    /// [`gives_back`]: Self::gives_back
    // A read may overtake the release of another read, which keeps nobody from reading. When each
    // read waited for them, many readers of one lock had a call each.
    pub(crate) fn awaits(&self) -> impl Iterator<Item = u64> + use<> {
        let by_readers = (!self.reads).then(|| self.lock.wrapping_add(1));
        [self.lock].into_iter().chain(by_readers)
    }

    /// The first key: that of the lock, or of the record that the script is about.
    pub(crate) fn key(&self) -> &str {
        self.word(0)
    }

    pub(crate) fn keys(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        (0..self.keys).map(|at| self.word(at))
    }

    pub(crate) fn args(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        (self.keys..self.keys + self.args).map(|at| self.word(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts;

    #[test]
    fn keys_and_arguments_are_read_as_they_were_written() {
        let keys = [Word::Text(["a:", "{name}", ":queue"]), "b".into()];
        let args =
            ["c:1".into(), Word::NOTHING, Word::number(7_u32), Some(Word::number(u64::MAX)).into()];
        let request = Request::new(keys, args, None);
        assert_eq!(request.key(), "a:{name}:queue");
        assert_eq!(request.keys().collect::<Vec<_>>(), ["a:{name}:queue", "b"]);
        let args: Vec<_> = request.args().collect();
        assert_eq!(args, ["c:1", "", "7", "18446744073709551615"]);
        let renamed = request.renamed(&["x".into(), "yy".into()], &["z".into()]);
        assert_eq!(renamed.keys().chain(renamed.args()).collect::<Vec<_>>(), ["x", "yy", "z"]);
        let order =
            |request: &Request| (request.gives_back(), request.awaits().last(), request.party);
        assert_eq!(order(&renamed), order(&request));
    }

    #[test]
    fn every_script_fits() {
        for script in scripts::ALL {
            let words = script.keys.len() + script.args.len();
            assert!(words <= Request::MOST, "{}: {words}", script.name);
        }
    }
}
