//! Redisson's names and scripts, and beside them the names of what it has not.

use crate::{
    kinds::{FAIR_MUTEX, Kind, MUTEX, WRITE},
    proto::HolderKind,
    scripts::redisson,
};

/// An `RLock`: it has a token, a channel, and where it is fair a queue.
pub(super) static JAVA_MUTEX: Kind = Kind {
    is_foreign: true,
    // Java counts on from what it finds, and from 1 where that has ended.
    forgets_fence: false,
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

/// The same, in the order of asking among those of ours.
pub(super) static FAIR_JAVA_MUTEX: Kind =
    Kind { name: FAIR_MUTEX.name, is_fair: true, ..JAVA_MUTEX };

/// An `RReadWriteLock`: one hash of who writes or reads, and a key that expires for each who reads.
/// Nobody waits in a queue. Both sides have one record, so what tells them apart are two names that
/// no other lock has.
pub(super) static JAVA_WRITE: Kind = Kind {
    holder: |hold| {
        if hold.as_str().ends_with(":write") { HolderKind::Write } else { HolderKind::Read }
    },
    is_fair: false,
    is_foreign: true,
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
