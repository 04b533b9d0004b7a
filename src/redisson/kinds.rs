//! The kinds of locks that Redisson has, as differences to ours: names of keys, and scripts.

use crate::{
    kinds::{FAIR_MUTEX, Kind, MUTEX, WRITE},
    proto::HolderKind,
    scripts::redisson,
};

/// An `RLock`.
// Our mutex scripts run on its record: a hash with a field for each hold, as in Redisson.
pub(super) static JAVA_MUTEX: Kind = Kind {
    is_foreign: true,
    // Java adds 1 to the token that it finds, and begins at 1 if there is none: a token that
    // expires would fall (law 3).
    forgets_fence: false,
    // Java's waiters for an `RFairLock` stand in a queue of Redisson, which our scripts do not look
    // at: we would pass them. So waiting for such a name is refused.
    foreign_queue: Some(("an RFairLock in Java", &redisson::QUEUE)),
    names: &[
        ("revoked", ["", ":quorate_revoked"]),
        ("fence", ["redisson_lock_token:", ""]),
        ("queue", ["", ":quorate_queue"]),
        ("alive", ["", ":quorate_alive"]),
        ("channel", ["redisson_lock__channel:", ""]),
        ("waiting", ["redisson_lock_queue:", ""]),
        ("timeouts", ["redisson_lock_timeout:", ""]),
    ],
    ..MUTEX
};

/// The same lock, in the order of asking among our waiters.
pub(super) static FAIR_JAVA_MUTEX: Kind =
    Kind { name: FAIR_MUTEX.name, is_fair: true, ..JAVA_MUTEX };

/// The side of an `RReadWriteLock` that writes.
// Readers and the writer are fields of one hash, so the record does not tell the two sides apart,
// as it does for other kinds: two names that no other lock has do.
pub(super) static JAVA_WRITE: Kind = Kind {
    holder: |hold| {
        if hold.as_str().ends_with(":write") { HolderKind::Write } else { HolderKind::Read }
    },
    is_fair: false,
    is_foreign: true,
    // Java's readers join a read without looking at any queue of ours, so a place would promise
    // nothing.
    has_queue: false,
    record: "",
    names: &[
        ("stem", ["", ""]),
        ("revoked", ["", ":quorate_rw_revoked"]),
        ("fence", ["", ":quorate_rw_fence"]),
        ("channel", ["redisson_rwlock:", ""]),
    ],
    identity: Some("fence"),
    other_side: Some("channel"),
    grants: Some(&JAVA_READ),
    ending: ":write",
    acquire: &redisson::RW_ACQUIRE,
    renew: &redisson::RW_RENEW,
    release: &redisson::RW_RELEASE,
    shorten: None,
    end: &redisson::RW_FORCE_RELEASE,
    clear: &redisson::RW_CLEAR,
    look: (&redisson::RW_INSPECT, 3),
    ..WRITE
};

pub(super) static JAVA_READ: Kind = Kind {
    name: "read",
    is_shared: true,
    is_fenced: false,
    identity: Some("channel"),
    other_side: Some("fence"),
    grants: None,
    ending: "",
    ..JAVA_WRITE
};
