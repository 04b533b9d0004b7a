//! Every metric's name, unit and help, and nothing else about metrics.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Time from the first request to the answer of `lock`, `try_lock` or `lock_within`, waiting
/// included. Labels: `kind`, `outcome` (granted, held, no_quorum, cancelled, error).
pub(crate) const ACQUIRE_SECONDS: &str = "quorate_acquire_seconds";
/// Attempts to gather a majority. Labels: `kind`, `outcome` (won, held, split, no_quorum).
pub(crate) const ATTEMPTS: &str = "quorate_attempts_total";
/// Verdicts. Labels: `voter`, `verdict` (granted, refused, unknown).
pub(crate) const VERDICTS: &str = "quorate_verdicts_total";
/// Grants that too few replicas acknowledged in time. Label: `voter`.
pub(crate) const UNACKNOWLEDGED: &str = "quorate_unacknowledged_total";
/// Time from sending a request to a voter's answer. Label: `voter`.
pub(crate) const VOTER_SECONDS: &str = "quorate_voter_seconds";
/// Rounds of renewal. Labels: `kind`, `outcome` (renewed, failed, superseded).
pub(crate) const RENEWALS: &str = "quorate_renewals_total";
/// Time from the start of an acquisition to the end of its hold. Label: `kind`.
pub(crate) const HOLD_SECONDS: &str = "quorate_hold_seconds";
/// Holds that ended without being released. Label: `kind`.
pub(crate) const LOST: &str = "quorate_lost_total";
/// Locks held now. Label: `kind`.
pub(crate) const HELD: &str = "quorate_held";
/// Callers waiting for a lock now. Label: `kind`.
pub(crate) const WAITING: &str = "quorate_waiting";

/// Whether a voter is in quarantine now. Label: `voter`.
pub(crate) const QUARANTINED: &str = "quorate_quarantined";
/// Quarantines begun. Labels: `voter`, `reason` (restarted, young, clock_moved, clock_apart).
pub(crate) const QUARANTINES: &str = "quorate_quarantines_total";
/// By how much a voter's clock was ahead of the client's wall clock. Label: `voter`.
pub(crate) const CLOCK_AHEAD: &str = "quorate_clock_ahead_seconds";
/// Tokens that a majority had to be told before the lock was given. Label: `kind`, `outcome`
/// (stored, failed).
pub(crate) const TOKEN_REPAIRS: &str = "quorate_token_repairs_total";

/// Tells the installed recorder every unit and help text.
pub(crate) fn describe() {
    describe_histogram!(
        ACQUIRE_SECONDS,
        Unit::Seconds,
        "time to an acquire's answer, waiting included"
    );
    describe_counter!(ATTEMPTS, Unit::Count, "attempts to gather a majority");
    describe_counter!(VERDICTS, Unit::Count, "verdicts of voters");
    describe_counter!(
        UNACKNOWLEDGED,
        Unit::Count,
        "grants that too few replicas acknowledged in time"
    );
    describe_histogram!(VOTER_SECONDS, Unit::Seconds, "time to a voter's answer");
    describe_counter!(RENEWALS, Unit::Count, "rounds of renewal");
    describe_histogram!(
        HOLD_SECONDS,
        Unit::Seconds,
        "time from the start of an acquisition to its hold's end"
    );
    describe_counter!(LOST, Unit::Count, "holds that ended without being released");
    describe_gauge!(HELD, Unit::Count, "locks held now");
    describe_gauge!(WAITING, Unit::Count, "callers waiting for a lock now");
    describe_gauge!(QUARANTINED, Unit::Count, "whether a voter is in quarantine now");
    describe_counter!(QUARANTINES, Unit::Count, "quarantines begun");
    describe_gauge!(CLOCK_AHEAD, Unit::Seconds, "voter's clock ahead of the client's");
    describe_counter!(TOKEN_REPAIRS, Unit::Count, "tokens that a majority had to be told");
}
