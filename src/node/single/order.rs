//! In which order requests left, and which scripts the server knows.
//!
//! Scripts are sent by their hash, or as a whole while it is not known that the server has them. A
//! server can forget them (`SCRIPT FLUSH`, a restart). It then answers NOSCRIPT, having run
//! nothing, and sending the script again as a whole would be right but for one thing: what left
//! meanwhile has overtaken it. An acquire that came in behind its own undo would leave a vote that
//! nobody wants. So a script that gives votes is sent again only where nothing with one of its
//! keys left since; a script that only takes votes away harms nobody by being late.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use fred::util::sha1_hash;

use crate::scripts::{ALL, Script};

/// Keys that share a place here count as one key: fewer repetitions, never a wrong one.
const PLACES: usize = 4096;

#[derive(Debug)]
pub(super) struct Order(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    count: u64,
    /// For the keys of each place, the number of the last request that left.
    last: Box<[u64]>,
    scripts: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    script: &'static Script,
    sha: Bytes,
    /// Whether the server has it, as far as we know.
    loaded: bool,
}

/// How a script is named in a request.
pub(super) enum Naming {
    Hash(Bytes),
    Source,
}

/// The hashes of the catalog, computed once.
static CATALOG: LazyLock<Vec<Known>> = LazyLock::new(|| ALL.into_iter().map(Known::new).collect());

impl Known {
    fn new(script: &'static Script) -> Self {
        Self { script, sha: sha1_hash(script.source).into(), loaded: false }
    }
}

impl Order {
    pub(super) fn new() -> Self {
        let scripts = CATALOG
            .iter()
            .map(|known| Known { sha: known.sha.clone(), loaded: false, ..*known })
            .collect();
        Self(Mutex::new(Inner { count: 0, last: vec![0; PLACES].into(), scripts }))
    }

    /// A request is about to leave: gives it its number, and says how to name the script.
    pub(super) fn leave(&self, script: &'static Script, keys: &[Arc<str>]) -> (u64, Naming) {
        let mut inner = self.lock();
        let number = inner.stamp(keys);
        let known = inner.known(script);
        (number, if known.loaded { Naming::Hash(known.sha.clone()) } else { Naming::Source })
    }

    /// The script was answered, so the server has it now.
    pub(super) fn loaded(&self, script: &'static Script) {
        self.lock().known(script).loaded = true;
    }

    /// The server said that it does not have the script.
    pub(super) fn unknown(&self, script: &'static Script) {
        self.lock().known(script).loaded = false;
    }

    /// Another connection: perhaps another server, with no scripts yet.
    pub(super) fn forget(&self) {
        self.lock().scripts.iter_mut().for_each(|known| known.loaded = false);
    }

    /// Runs `send`, with no other request leaving meanwhile, unless one with any of the keys left
    /// after this one and the script would do harm behind it.
    pub(super) fn again<T>(
        &self,
        (script, number): (&'static Script, u64),
        keys: &[Arc<str>],
        send: impl FnOnce() -> T,
    ) -> Option<T> {
        let mut inner = self.lock();
        if script.votes && keys.iter().any(|key| inner.last[place(key)] != number) {
            return None;
        }
        inner.stamp(keys);
        Some(send())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn stamp(&mut self, keys: &[Arc<str>]) -> u64 {
        self.count += 1;
        for key in keys {
            self.last[place(key)] = self.count;
        }
        self.count
    }

    fn known(&mut self, script: &'static Script) -> &mut Known {
        let at = self.scripts.iter().position(|known| std::ptr::eq(known.script, script));
        let at = at.unwrap_or_else(|| {
            self.scripts.push(Known::new(script));
            self.scripts.len() - 1
        });
        &mut self.scripts[at]
    }
}

pub(super) fn place(key: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let [first, second, ..] = hasher.finish().to_ne_bytes();
    usize::from(u16::from_ne_bytes([first, second])) % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::mutex;

    fn keys(names: &[&str]) -> Vec<Arc<str>> {
        names.iter().map(|&name| name.into()).collect()
    }

    #[test]
    fn a_script_goes_as_a_whole_until_it_was_answered_and_again_after_a_reconnection() {
        let order = Order::new();
        let whole =
            |order: &Order| matches!(order.leave(&mutex::ACQUIRE, &keys(&["a"])).1, Naming::Source);
        assert!(whole(&order));
        order.loaded(&mutex::ACQUIRE);
        assert!(!whole(&order));
        order.forget();
        assert!(whole(&order));
    }

    #[test]
    fn an_acquire_never_goes_again_behind_a_later_request_for_its_key() {
        let order = Order::new();
        let (acquire, _) = order.leave(&mutex::ACQUIRE, &keys(&["a"]));
        let (release, _) = order.leave(&mutex::RELEASE, &keys(&["a"]));
        let sent = order.again((&mutex::ACQUIRE, acquire), &keys(&["a"]), || ());
        assert_eq!(sent, None);
        let sent = order.again((&mutex::RELEASE, release), &keys(&["a"]), || ());
        assert_eq!(sent, Some(()));
    }

    #[test]
    fn an_acquire_goes_again_where_only_other_keys_left_since() {
        let order = Order::new();
        let other =
            (0..99).map(|n: u32| n.to_string()).find(|name| place(name) != place("a")).unwrap();
        let (acquire, _) = order.leave(&mutex::ACQUIRE, &keys(&["a"]));
        order.leave(&mutex::RELEASE, &keys(&[&other]));
        let sent = order.again((&mutex::ACQUIRE, acquire), &keys(&["a"]), || ());
        assert_eq!(sent, Some(()));
    }

    #[test]
    fn a_release_goes_again_even_behind_later_requests() {
        let order = Order::new();
        let (release, _) = order.leave(&mutex::RELEASE, &keys(&["a"]));
        order.leave(&mutex::ACQUIRE, &keys(&["a"]));
        let sent = order.again((&mutex::RELEASE, release), &keys(&["a"]), || ());
        assert_eq!(sent, Some(()));
    }
}
