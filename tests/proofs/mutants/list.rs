//! All mutants, and the laws that they break.

use crate::sim::laws::Law::{
    self, AnswersInTime, Exclusion, FairOrder, FewestTrips, MinorityChangesNothing, NoPanic,
    NothingLeaks, Once, ReadersApart, RenewalNeverHarms, TokensGrow, TrustEndsEarly, WhatIsTold,
};

/// One bug.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    /// Of these laws at least one is broken in the first schedule that breaks any.
    pub(crate) breaks: &'static [Law],
    /// The seed at which the hunt begins.
    pub(crate) from: u64,
}

impl Mutant {
    const fn new(name: &'static str, breaks: &'static [Law]) -> Self {
        Self { name, breaks, from: 0 }
    }

    /// Starts the hunt at this seed. An earlier one breaks another law first, or no law: leaving
    /// out many that break none saves time. A change of the simulation makes other schedules of
    /// the same seeds. If the hunt then fails, look for the first seed again, from 0 on.
    const fn from(self, from: u64) -> Self {
        Self { from, ..self }
    }
}

/// Above each stands what the library does wrong where it is alive.
pub(crate) const ALL: &[Mutant] = &[
    // Votes and validity

    // Half of an even number of voters is enough.
    Mutant::new("half_is_a_majority", &[TrustEndsEarly, Exclusion]),
    // A majority of the voters that answered is enough.
    Mutant::new("majority_of_the_answered", &[TrustEndsEarly, Exclusion]),
    // Trust counts from the last answer, not from before the first request.
    Mutant::new("validity_from_the_reply", &[TrustEndsEarly]),
    // Trust lasts for the whole lease.
    Mutant::new("no_drift", &[TrustEndsEarly]),
    // Where too few voters answer the lock is said to be another's.
    // A waiter that is told so enters the queue, where a hand-off to it may take longer.
    Mutant::new("no_quorum_is_busy", &[WhatIsTold, AnswersInTime, FewestTrips]),
    // What the caller's limit cuts off counts as silence of the voters.
    Mutant::new("limit_is_taken_for_silence", &[MinorityChangesNothing]).from(401_000_158),
    // An attempt is won when all voters have answered.
    Mutant::new("waits_for_all_grants", &[FewestTrips]),
    // Two sets of voters

    // A client of two sets needs a majority of one of them.
    Mutant::new("one_set_decides", &[TrustEndsEarly, Exclusion, TokensGrow]),
    // A ticket, and when a majority is free, is what a majority of the new voters said.
    // Whoever takes a lock for free that is not asks for it without a pause.
    Mutant::new("lowest_of_one_set", &[FairOrder, AnswersInTime, FewestTrips]),
    // Voters that forget

    // A new hold counts the vote of a voter in quarantine.
    Mutant::new("quarantined_vote_counts", &[Exclusion]),
    // Nobody notices that a voter came back as another.
    Mutant::new("restart_not_noticed", &[Exclusion, TrustEndsEarly]),
    // Nobody notices that an answer comes from other data than before.
    Mutant::new("deleted_data_not_noticed", &[Exclusion]),
    // A voter that is met and writes every change to disk has lost nothing.
    Mutant::new("settings_are_believed", &[Exclusion]),
    // A voter that says that it kept all is believed, whatever its data show.
    Mutant::new("durability_is_believed", &[Exclusion]),
    // Nobody notices that a voter's clock was set.
    Mutant::new("clock_jump_not_noticed", &[Exclusion]),
    // Nobody notices that a voter came back with its clock set.
    Mutant::new("clock_is_met_anew", &[Exclusion]),
    // A voter that forgot a vote does not give it again.
    Mutant::new("renew_never_grants_again", &[MinorityChangesNothing]),
    // A voter that may have forgotten counts again after half of the longest lease.
    Mutant::new("quarantine_of_half_the_length", &[Exclusion, TrustEndsEarly]),
    // A grant in quarantine proves that the hold had the vote before the voter forgot.
    Mutant::new("grant_in_quarantine_is_proof", &[Exclusion, TrustEndsEarly]),
    // Undo and release

    // An undo goes only to voters that are known to have granted.
    Mutant::new("undoes_known_grants", &[NothingLeaks, FewestTrips]),
    // An undo is not sent again to a voter that does not answer.
    Mutant::new("undoes_once", &[NothingLeaks]),
    // An attempt whose caller goes away keeps its votes.
    Mutant::new("cancelled_keeps_votes", &[NothingLeaks]),
    // A release is not sent again to a voter that does not answer.
    Mutant::new("releases_once", &[NothingLeaks]),
    // A release returns when all voters have answered.
    Mutant::new("release_awaits_everybody", &[FewestTrips]),
    // A guard that is dropped is not released.
    Mutant::new("dropped_guard_stays", &[NothingLeaks]),
    // A vote is given for ever.
    Mutant::new("claim_without_expiry", &[NothingLeaks]),
    // Keeping a hold

    // No hold is renewed.
    Mutant::new("renews_never", &[WhatIsTold, MinorityChangesNothing]),
    // A renewal counts from its last answer.
    Mutant::new("renews_from_the_reply", &[TrustEndsEarly]),
    // A round of renewal that failed gives the votes back.
    Mutant::new("failed_round_gives_back", &[TrustEndsEarly, RenewalNeverHarms]),
    // A hold is held until its watchdog says that it is not.
    Mutant::new("held_until_the_watchdog_says", &[TrustEndsEarly]),
    // Work under a hold is stopped by a timer, not by the clock.
    Mutant::new("work_outlives_the_deadline", &[TrustEndsEarly]),
    // Whoever leaves an inner entry gives all votes back.
    Mutant::new("inner_release_gives_back", &[TrustEndsEarly, RenewalNeverHarms]),
    // The count is added to what stands on the voter.
    Mutant::new("claim_adds_up", &[Once]),
    // A brief renewal is granted without a look for the vote.
    Mutant::new("known_vote_is_not_looked_for", &[TrustEndsEarly, Exclusion, WhatIsTold]),
    // A renewal that finds its vote gone is given it again before its client has heard of that.
    Mutant::new("vote_is_given_anew_unasked", &[WhatIsTold]),
    // A voter that is full does not renew what it has.
    Mutant::new("renewal_needs_room", &[RenewalNeverHarms]),
    // Tokens

    // The highest number of a majority is the token, and nobody is told.
    Mutant::new("token_is_not_stored", &[TokensGrow]).from(16),
    // A request that runs twice gets another number the second time.
    Mutant::new("token_counts_twice", &[Once]),
    // A free mutex gives the number that was asked for, though it gave a higher one before.
    Mutant::new("token_is_the_floor", &[TokensGrow]),
    // Waiting

    // A release calls nobody in the queue.
    Mutant::new("release_calls_nobody", &[FewestTrips]),
    // A sleep that has ended is waited for once more where a second round is due then.
    Mutant::new("ended_sleep_is_awaited", &[NoPanic]),
    // Whoever waits gives up at the first round without a quorum.
    Mutant::new("no_patience", &[FewestTrips, AnswersInTime]),
    // An owner that reads and wants to write waits for itself.
    Mutant::new("deadlock_is_waited_for", &[WhatIsTold]),
    // Order

    // Every voter has an order of arrival of its own.
    Mutant::new("ticket_is_never_fixed", &[AnswersInTime, NothingLeaks, FewestTrips]),
    // A place that a voter forgot comes back as the last, and takes that to the others.
    Mutant::new("ticket_is_raised", &[FairOrder]),
    // A place takes the highest ticket that any voter told it.
    Mutant::new("highest_ticket_is_fixed", &[FairOrder]),
    // A bid that is lost gives its place up with its votes.
    Mutant::new("undo_leaves_the_queue", &[FairOrder]),
    // Whoever does not ask in order is given a free vote before those who do.
    Mutant::new("mutex_passes_the_queue", &[FairOrder]),
    // A free mutex is given at once, though others wait for it in order.
    Mutant::new("free_lock_passes_the_queue", &[FairOrder]),
    // The release of a mutex takes no place out of the queue, and calls nobody there.
    Mutant::new("release_looks_at_no_queue", &[FairOrder, FewestTrips]),
    // A voter takes a place out of the queue when it gives its vote.
    Mutant::new("place_ends_with_the_grant", &[FairOrder]),
    // A first bid that runs twice is entered although it has the vote.
    Mutant::new("holder_is_entered", &[Once]),
    // A fair waiter whose client does not hear its call loses its place.
    Mutant::new("unheard_fair_waiter_is_passed", &[FairOrder]),
    // A release calls the last who waits.
    Mutant::new("last_is_called", &[FewestTrips, FairOrder]),
    // Elections

    // A leader is told that its new value is stored when it was only sent.
    Mutant::new("proclaimed_to_nobody_yet", &[WhatIsTold, FewestTrips]),
    // Whoever watches asks by the poll interval only.
    Mutant::new("observer_hears_nobody", &[FewestTrips]),
    // Whoever wants several locks keeps those that it has while it waits for others.
    Mutant::new("several_keep_what_they_have", &[NothingLeaks, AnswersInTime]),
    // When one of several locks is lost, the others stay held.
    Mutant::new("others_outlive_the_lost_one", &[WhatIsTold]),
    // Whoever wants several locks gives back what it has whenever another has one of them.
    Mutant::new("several_are_never_taken_in_order", &[NothingLeaks, AnswersInTime]),
    // Readers and writers

    // A read is given although another writes.
    Mutant::new("reader_looks_at_no_writer", &[Exclusion, WhatIsTold, FairOrder]),
    // Who gives a reader its lease gives it to all readers.
    Mutant::new("one_end_for_all_readers", &[ReadersApart]),
    // A writer that has released still counts as one that waits.
    Mutant::new("mark_of_a_writer_stays", &[NothingLeaks]),
    // A reader that is to wait its turn stands before all writers.
    Mutant::new("reader_comes_first", &[FairOrder]),
    // Where the last reader leaves, the first writer is not called.
    Mutant::new("last_reader_calls_nobody", &[FewestTrips, AnswersInTime]),
    // Permits

    // A majority that gave a hold any slots is enough: permits are counted.
    Mutant::new("any_slot_is_a_vote", &[TrustEndsEarly, Exclusion]),
    // A voter gives a slot that another hold has.
    Mutant::new("slot_is_given_twice", &[Exclusion, TrustEndsEarly]),
    // Whoever wants few permits passes one who waits for many.
    Mutant::new("waiter_for_permits_is_passed", &[FairOrder]),
    // A place leaves the queue for good when it is given permits.
    Mutant::new("served_place_is_forgotten", &[FairOrder]),
    // Whoever is given permits calls nobody, though more are free.
    Mutant::new("next_for_permits_is_not_called", &[FewestTrips, AnswersInTime]),
    // A release of permits calls nobody.
    Mutant::new("release_of_permits_calls_nobody", &[FewestTrips, AnswersInTime]),
    // Slots come back when the last lease of all holds ends.
    Mutant::new(
        "dead_hold_keeps_its_slot",
        &[FewestTrips, NothingLeaks, AnswersInTime, WhatIsTold],
    ),
    // A new hold counts the slots that a voter in quarantine gave it.
    Mutant::new("quarantined_slot_counts", &[Exclusion, TrustEndsEarly]),
    // A renewal takes a slot that another hold has.
    Mutant::new("renewal_takes_a_slot", &[RenewalNeverHarms, Exclusion, TrustEndsEarly]),
    // A renewal of permits shortens their lease.
    Mutant::new("renewal_shortens_a_slot", &[RenewalNeverHarms, TrustEndsEarly]),
];
