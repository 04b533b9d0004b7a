//! The laws, one file each, and what each is judged by.
//!
//! | file | law |
//! |---|---|
//! | `exclusion` | no two holds of a lock are held at one moment, unless both read |
//! | `trust` | what is held has the votes of a majority, which last longer than the trust |
//! | `once` | a script that runs twice leaves what it left the first time |
//! | `leaks` | no key without an expiry; after the faults all can be had, and nothing is left |
//! | `readers` | what a voter has of readers ends with the last |
//! | `renewal` | no script touches the vote of another's hold, and nothing gives up what is held |
//! | `traces` | what is given up leaves no trace, not even for a lease |
//! | `trips` | one round trip to the fastest majority, and a hand-off without waiting for a timer |
//! | `turns` | the same in order, by the terms of each kind: who enters with whom, who is called |
//! | `several` | several locks at once are lost together, and others who take them starve nobody |
//! | `minority` | where at most a minority is in trouble nothing fails |
//! | `told` | what callers are told is so |
//! | `tokens` | whoever is given an exclusive hold later has the higher token, which is stored |
//! | `leaders` | who is said to lead has won by a majority, and what it says is the latest |
//! | `tickets` | a parked hold is resumed once, and nobody has the lock in between |
//! | `firings` | what is done of a job is known to a majority, and is not done again while it is |
//! | `order` | whoever stood in the queue on a majority comes before those who asked later |
//! | `shares` | a client that hands a lock on leaves others their share |
//! | `answers` | no call takes longer than it may, and a loss is told at once |
//!
//! `calm` is where some of them measure, after all faults. All are judged by the true time, by what
//! the voters have, and by what users can see. None knows how the library works inside.

pub(crate) mod answers;
pub(crate) mod calm;
pub(crate) mod exclusion;
pub(crate) mod firings;
pub(crate) mod leaders;
pub(crate) mod leaks;
pub(crate) mod minority;
pub(crate) mod once;
pub(crate) mod order;
pub(crate) mod readers;
pub(crate) mod renewal;
pub(crate) mod several;
pub(crate) mod shares;
pub(crate) mod tickets;
pub(crate) mod tokens;
pub(crate) mod told;
pub(crate) mod traces;
pub(crate) mod trips;
pub(crate) mod trust;
pub(crate) mod turns;

use crate::sim::{prelude::*, steps};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Law {
    Exclusion,
    TrustEndsEarly,
    Once,
    NothingLeaks,
    RenewalNeverHarms,
    ReadersApart,
    FewestTrips,
    MinorityChangesNothing,
    AnswersInTime,
    WhatIsTold,
    FairOrder,
    TokensGrow,
    /// A firing of a job that a majority remembers is done once.
    DoneOnce,
    /// A parked hold is resumed once at most, and nobody has the lock in between.
    Tickets,
    /// No code of the library panics, and no script fails.
    NoPanic,
}

/// Looks at everything whenever something changes, just before a trust would end, and now and then.
pub(crate) async fn watch(world: Arc<World>) {
    let mut idle = answers::Idle::default();
    loop {
        let look = world.look();
        steps::look(&world, &look);
        idle.check(&world, &look);
        exclusion::check(&world, &look);
        trust::check(&world, &look);
        traces::check(&world, &look);
        readers::check(&world, &look);
        leaders::check(&world, &look);
        let ends = look.held.iter().map(|held| held.remaining.as_millis());
        let soon = ends.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX).saturating_sub(1)).min();
        // What nobody has does not change by itself.
        let wanted = world.locks.iter().any(|lock| world.is_wanted(*lock));
        let nothing = !wanted && look.held.is_empty() && look.records.iter().all(Vec::is_empty);
        let longest_ms = if nothing { 60_000 } else { 50 };
        // Never again at the same moment, unless something happens at it.
        let pause = Duration::from_millis(soon.unwrap_or(u64::MAX).clamp(1, longest_ms));
        tokio::select! {
            biased;
            () = world.changed.notified() => {}
            () = sleep(pause) => {}
        }
    }
}
