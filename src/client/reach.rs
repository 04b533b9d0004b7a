//! How servers are reached, and what is asked of them.

use std::fmt;

use crate::{
    proto::Error,
    settings::Settings,
    voter::{Address, Looks, Security},
};

/// An address as the user wrote it, which is never printed.
#[derive(Clone)]
pub(super) struct Secret(String);

impl Secret {
    pub(super) fn new(address: &str) -> Self {
        Self(address.to_owned())
    }

    pub(super) fn read(&self, security: &Security) -> Result<Address, Error> {
        Address::parse(&self.0, security)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<address>")
    }
}

/// What is asked of servers.
pub(super) fn looks(settings: &Settings) -> Looks {
    let Settings { replica_acks: acks, may_evict, ref keys, .. } = *settings;
    Looks { acks, mark: Some(keys.mark()), may_evict, is_sharded: false }
}
