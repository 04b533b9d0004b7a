//! Tables whose keys are hashes already.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A table by hash.
pub(super) type ByHash<V> = HashMap<u64, V, BuildHasherDefault<Same>>;

/// Hashes a hash: it stays what it is.
#[derive(Debug, Default)]
pub(super) struct Same(u64);

impl Hasher for Same {
    fn write(&mut self, bytes: &[u8]) {
        unreachable!("a hash is a number, not {bytes:?}")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
