//! All mutants, and the laws that they break.

use crate::sim::laws::Law::{
    self, AnswersInTime, Exclusion, FairOrder, FewestTrips, MinorityChangesNothing, NoPanic,
    NothingLeaks, Once, ReadersApart, RenewalNeverHarms, TokensGrow, TrustEndsEarly, WhatIsTold,
};

/// One bug.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    /// In one sentence, what the library does wrong where it is alive.
    pub(crate) what: &'static str,
    /// Of these laws at least one is broken in the first schedule that breaks any.
    pub(crate) breaks: &'static [Law],
    /// The seed at which the hunt begins.
    pub(crate) from: u64,
}

impl Mutant {
    const fn new(name: &'static str, what: &'static str, breaks: &'static [Law]) -> Self {
        Self { name, what, breaks, from: 0 }
    }

    /// Starts the hunt at this seed. An earlier one breaks another law first, or no law: leaving
    /// out many that break none saves time. A change of the simulation makes other schedules of
    /// the same seeds. If the hunt then fails, look for the first seed again, from 0 on.
    const fn from(self, from: u64) -> Self {
        Self { from, ..self }
    }
}

pub(crate) const ALL: &[Mutant] = &[
    // Votes and validity
    Mutant::new(
        "half_is_a_majority",
        "Half of an even number of voters is enough.",
        &[TrustEndsEarly, Exclusion],
    ),
    Mutant::new(
        "majority_of_the_answered",
        "A majority of the voters that answered is enough.",
        &[TrustEndsEarly, Exclusion],
    ),
    Mutant::new(
        "validity_from_the_reply",
        "Trust counts from the last answer, not from before the first request.",
        &[TrustEndsEarly],
    ),
    Mutant::new("no_drift", "Trust lasts for the whole lease.", &[TrustEndsEarly]),
    Mutant::new(
        "no_quorum_is_busy",
        "Where too few voters answer the lock is said to be another's.",
        // A waiter that is told so enters the queue, where a hand-off to it may take longer.
        &[WhatIsTold, AnswersInTime, FewestTrips],
    ),
    Mutant::new(
        "limit_is_taken_for_silence",
        "What the caller's limit cuts off counts as silence of the voters.",
        &[MinorityChangesNothing],
    )
    .from(401_000_158),
    Mutant::new(
        "waits_for_all_grants",
        "An attempt is won when all voters have answered.",
        &[FewestTrips],
    ),
    // Two sets of voters
    Mutant::new(
        "one_set_decides",
        "A client of two sets needs a majority of one of them.",
        &[TrustEndsEarly, Exclusion, TokensGrow],
    ),
    Mutant::new(
        "lowest_of_one_set",
        "A ticket, and when a majority is free, is what a majority of the new voters said.",
        // Whoever takes a lock for free that is not asks for it without a pause.
        &[FairOrder, AnswersInTime, FewestTrips],
    ),
    // Voters that forget
    Mutant::new(
        "quarantined_vote_counts",
        "A new hold counts the vote of a voter in quarantine.",
        &[Exclusion],
    ),
    Mutant::new(
        "restart_not_noticed",
        "Nobody notices that a voter came back as another.",
        &[Exclusion, TrustEndsEarly],
    ),
    Mutant::new(
        "deleted_data_not_noticed",
        "Nobody notices that an answer comes from other data than before.",
        &[Exclusion],
    ),
    Mutant::new(
        "settings_are_believed",
        "A voter that is met and writes every change to disk has lost nothing.",
        &[Exclusion],
    ),
    Mutant::new(
        "durability_is_believed",
        "A voter that says that it kept all is believed, whatever its data show.",
        &[Exclusion],
    ),
    Mutant::new(
        "clock_jump_not_noticed",
        "Nobody notices that a voter's clock was set.",
        &[Exclusion],
    ),
    Mutant::new(
        "clock_is_met_anew",
        "Nobody notices that a voter came back with its clock set.",
        &[Exclusion],
    ),
    Mutant::new(
        "renew_never_grants_again",
        "A voter that forgot a vote does not give it again.",
        &[MinorityChangesNothing],
    ),
    Mutant::new(
        "quarantine_of_half_the_length",
        "A voter that may have forgotten counts again after half of the longest lease.",
        &[Exclusion, TrustEndsEarly],
    ),
    Mutant::new(
        "grant_in_quarantine_is_proof",
        "A grant in quarantine proves that the hold had the vote before the voter forgot.",
        &[Exclusion, TrustEndsEarly],
    ),
    // Undo and release
    Mutant::new(
        "undoes_known_grants",
        "An undo goes only to voters that are known to have granted.",
        &[NothingLeaks, FewestTrips],
    ),
    Mutant::new(
        "undoes_once",
        "An undo is not sent again to a voter that does not answer.",
        &[NothingLeaks],
    ),
    Mutant::new(
        "cancelled_keeps_votes",
        "An attempt whose caller goes away keeps its votes.",
        &[NothingLeaks],
    ),
    Mutant::new(
        "releases_once",
        "A release is not sent again to a voter that does not answer.",
        &[NothingLeaks],
    ),
    Mutant::new(
        "release_awaits_everybody",
        "A release returns when all voters have answered.",
        &[FewestTrips],
    ),
    Mutant::new("dropped_guard_stays", "A guard that is dropped is not released.", &[NothingLeaks]),
    Mutant::new("claim_without_expiry", "A vote is given for ever.", &[NothingLeaks]),
    // Keeping a hold
    Mutant::new("renews_never", "No hold is renewed.", &[WhatIsTold, MinorityChangesNothing]),
    Mutant::new(
        "renews_from_the_reply",
        "A renewal counts from its last answer.",
        &[TrustEndsEarly],
    ),
    Mutant::new(
        "failed_round_gives_back",
        "A round of renewal that failed gives the votes back.",
        &[TrustEndsEarly, RenewalNeverHarms],
    ),
    Mutant::new(
        "held_until_the_watchdog_says",
        "A hold is held until its watchdog says that it is not.",
        &[TrustEndsEarly],
    ),
    Mutant::new(
        "work_outlives_the_deadline",
        "Work under a hold is stopped by a timer, not by the clock.",
        &[TrustEndsEarly],
    ),
    Mutant::new(
        "inner_release_gives_back",
        "Whoever leaves an inner entry gives all votes back.",
        &[TrustEndsEarly, RenewalNeverHarms],
    ),
    Mutant::new("claim_adds_up", "The count is added to what stands on the voter.", &[Once]),
    Mutant::new(
        "known_vote_is_not_looked_for",
        "A brief renewal is granted without a look for the vote.",
        &[TrustEndsEarly, Exclusion, WhatIsTold],
    ),
    Mutant::new(
        "vote_is_given_anew_unasked",
        "A renewal that finds its vote gone is given it again before its client has heard of that.",
        &[WhatIsTold],
    ),
    Mutant::new(
        "renewal_needs_room",
        "A voter that is full does not renew what it has.",
        &[RenewalNeverHarms],
    ),
    // Tokens
    Mutant::new(
        "token_is_not_stored",
        "The highest number of a majority is the token, and nobody is told.",
        &[TokensGrow],
    )
    .from(16),
    Mutant::new(
        "token_counts_twice",
        "A request that runs twice gets another number the second time.",
        &[Once],
    ),
    Mutant::new(
        "token_is_the_floor",
        "A free mutex gives the number that was asked for, though it gave a higher one before.",
        &[TokensGrow],
    ),
    // Waiting
    Mutant::new("release_calls_nobody", "A release calls nobody in the queue.", &[FewestTrips]),
    Mutant::new(
        "ended_sleep_is_awaited",
        "A sleep that has ended is waited for once more where a second round is due then.",
        &[NoPanic],
    ),
    Mutant::new(
        "no_patience",
        "Whoever waits gives up at the first round without a quorum.",
        &[FewestTrips, AnswersInTime],
    ),
    Mutant::new(
        "deadlock_is_waited_for",
        "An owner that reads and wants to write waits for itself.",
        &[WhatIsTold],
    ),
    // Order
    Mutant::new(
        "ticket_is_never_fixed",
        "Every voter has an order of arrival of its own.",
        &[AnswersInTime, NothingLeaks, FewestTrips],
    ),
    Mutant::new(
        "ticket_is_raised",
        "A place that a voter forgot comes back as the last, and takes that to the others.",
        &[FairOrder],
    ),
    Mutant::new(
        "highest_ticket_is_fixed",
        "A place takes the highest ticket that any voter told it.",
        &[FairOrder],
    ),
    Mutant::new(
        "undo_leaves_the_queue",
        "A bid that is lost gives its place up with its votes.",
        &[FairOrder],
    ),
    Mutant::new(
        "mutex_passes_the_queue",
        "Whoever does not ask in order is given a free vote before those who do.",
        &[FairOrder],
    ),
    Mutant::new(
        "free_lock_passes_the_queue",
        "A free mutex is given at once, though others wait for it in order.",
        &[FairOrder],
    ),
    Mutant::new(
        "release_looks_at_no_queue",
        "The release of a mutex takes no place out of the queue, and calls nobody there.",
        &[FairOrder, FewestTrips],
    ),
    Mutant::new(
        "place_ends_with_the_grant",
        "A voter takes a place out of the queue when it gives its vote.",
        &[FairOrder],
    ),
    Mutant::new(
        "holder_is_entered",
        "A first bid that runs twice is entered although it has the vote.",
        &[Once],
    ),
    Mutant::new(
        "unheard_fair_waiter_is_passed",
        "A fair waiter whose client does not hear its call loses its place.",
        &[FairOrder],
    ),
    Mutant::new("last_is_called", "A release calls the last who waits.", &[FewestTrips, FairOrder]),
    // Elections
    Mutant::new(
        "proclaimed_to_nobody_yet",
        "A leader is told that its new value is stored when it was only sent.",
        &[WhatIsTold, FewestTrips],
    ),
    Mutant::new(
        "observer_hears_nobody",
        "Whoever watches asks by the poll interval only.",
        &[FewestTrips],
    ),
    Mutant::new(
        "several_keep_what_they_have",
        "Whoever wants several locks keeps those that it has while it waits for others.",
        &[NothingLeaks, AnswersInTime],
    ),
    Mutant::new(
        "others_outlive_the_lost_one",
        "When one of several locks is lost, the others stay held.",
        &[WhatIsTold],
    ),
    Mutant::new(
        "several_are_never_taken_in_order",
        "Whoever wants several locks gives back what it has whenever another has one of them.",
        &[NothingLeaks, AnswersInTime],
    ),
    // Readers and writers
    Mutant::new(
        "reader_looks_at_no_writer",
        "A read is given although another writes.",
        &[Exclusion, WhatIsTold, FairOrder],
    ),
    Mutant::new(
        "one_end_for_all_readers",
        "Who gives a reader its lease gives it to all readers.",
        &[ReadersApart],
    ),
    Mutant::new(
        "mark_of_a_writer_stays",
        "A writer that has released still counts as one that waits.",
        &[NothingLeaks],
    ),
    Mutant::new(
        "reader_comes_first",
        "A reader that is to wait its turn stands before all writers.",
        &[FairOrder],
    ),
    Mutant::new(
        "last_reader_calls_nobody",
        "Where the last reader leaves, the first writer is not called.",
        &[FewestTrips, AnswersInTime],
    ),
    // Permits
    Mutant::new(
        "any_slot_is_a_vote",
        "A majority that gave a hold any slots is enough: permits are counted.",
        &[TrustEndsEarly, Exclusion],
    ),
    Mutant::new(
        "slot_is_given_twice",
        "A voter gives a slot that another hold has.",
        &[Exclusion, TrustEndsEarly],
    ),
    Mutant::new(
        "waiter_for_permits_is_passed",
        "Whoever wants few permits passes one who waits for many.",
        &[FairOrder],
    ),
    Mutant::new(
        "served_place_is_forgotten",
        "A place leaves the queue for good when it is given permits.",
        &[FairOrder],
    ),
    Mutant::new(
        "next_for_permits_is_not_called",
        "Whoever is given permits calls nobody, though more are free.",
        &[FewestTrips, AnswersInTime],
    ),
    Mutant::new(
        "release_of_permits_calls_nobody",
        "A release of permits calls nobody.",
        &[FewestTrips, AnswersInTime],
    ),
    Mutant::new(
        "dead_hold_keeps_its_slot",
        "Slots come back when the last lease of all holds ends.",
        &[FewestTrips, NothingLeaks, AnswersInTime, WhatIsTold],
    ),
    Mutant::new(
        "quarantined_slot_counts",
        "A new hold counts the slots that a voter in quarantine gave it.",
        &[Exclusion, TrustEndsEarly],
    ),
    Mutant::new(
        "renewal_takes_a_slot",
        "A renewal takes a slot that another hold has.",
        &[RenewalNeverHarms, Exclusion, TrustEndsEarly],
    ),
    Mutant::new(
        "renewal_shortens_a_slot",
        "A renewal of permits shortens their lease.",
        &[RenewalNeverHarms, TrustEndsEarly],
    ),
];
