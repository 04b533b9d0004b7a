//! What keeps a fault in force.

use std::{fmt, sync::Arc};

use super::{fault::Fault, server::Server};

/// Keeps a [`Fault`] in force until it is dropped.
#[must_use = "the fault ends when its guard is dropped"]
pub struct FaultGuard {
    server: Arc<Server>,
    rule: u64,
}

impl FaultGuard {
    pub(super) fn new(server: Arc<Server>, fault: Fault) -> Self {
        let rule = server.lock().rules.add(fault, None);
        Self { server, rule }
    }
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        self.server.lock().rules.remove(self.rule);
    }
}

impl fmt::Debug for FaultGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultGuard").field("rule", &self.rule).finish_non_exhaustive()
    }
}
