//! All mutants, and the laws that they break.

use crate::sim::laws::Law::{
    self, AnswersInTime, DoneOnce, Exclusion, FairOrder, FewestTrips, MinorityChangesNothing,
    NoPanic, NothingLeaks, Once, ReadersApart, RenewalNeverHarms, Tickets, TokensGrow,
    TrustEndsEarly, WhatIsTold,
};

/// One bug.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    /// Of these laws at least one is broken in the first schedule that breaks any.
    pub(crate) breaks: &'static [Law],
    /// The seed at which the hunt begins.
    pub(crate) from: u64,
    /// A bug of a script: embedded voters run the script with another text in it.
    pub(crate) in_script: Option<ScriptMutant>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptMutant {
    /// As in the catalog.
    pub(crate) script: &'static str,
    /// Stands in the script exactly once.
    pub(crate) find: &'static str,
    pub(crate) replace: &'static str,
}

impl Mutant {
    const fn new(name: &'static str, breaks: &'static [Law]) -> Self {
        Self { name, breaks, from: 0, in_script: None }
    }

    const fn in_script(
        self,
        script: &'static str,
        find: &'static str,
        replace: &'static str,
    ) -> Self {
        Self { in_script: Some(ScriptMutant { script, find, replace }), ..self }
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
    Mutant::new("majority_of_the_answered", &[TrustEndsEarly, Exclusion, TokensGrow]),
    // Trust counts from the last answer, not from before the first request.
    Mutant::new("validity_from_the_reply", &[TrustEndsEarly]),
    // Trust lasts for the whole lease.
    Mutant::new("no_drift", &[TrustEndsEarly]),
    // Where too few voters answer the lock is said to be another's.
    // A waiter that is told so enters the queue, where a hand-off to it may take longer.
    Mutant::new("no_quorum_is_busy", &[WhatIsTold, AnswersInTime, FewestTrips]),
    // What the caller's limit cuts off counts as silence of the voters.
    Mutant::new("limit_is_taken_for_silence", &[MinorityChangesNothing]).from(401_000_172),
    // An attempt is won when all voters have answered.
    Mutant::new("waits_for_all_grants", &[FewestTrips]),
    // Two sets of voters

    // A client of two sets needs a majority of one of them.
    Mutant::new("one_set_decides", &[TrustEndsEarly, Exclusion, TokensGrow, DoneOnce]),
    // A ticket, and when a majority is free, is what a majority of the new voters said.
    // Whoever takes a lock for free that is not asks for it without a pause.
    Mutant::new("lowest_of_one_set", &[FairOrder, AnswersInTime, FewestTrips]),
    // Voters that forget

    // A new hold counts the vote of a voter in quarantine.
    Mutant::new("quarantined_vote_counts", &[Exclusion]),
    // Nobody notices that a voter came back as another.
    Mutant::new("restart_not_noticed", &[Exclusion, TrustEndsEarly]),
    // Nobody notices that an answer comes from other data than before.
    Mutant::new("deleted_data_not_noticed", &[Exclusion]).from(2189),
    // Nobody notices that a voter started with a copy of the data of another.
    Mutant::new("copy_not_noticed", &[Exclusion, TrustEndsEarly]).from(1719),
    // A voter that is met and writes every change to disk has lost nothing.
    Mutant::new("settings_are_believed", &[Exclusion]).from(950),
    // A voter that says that it kept all is believed, whatever its data show.
    Mutant::new("durability_is_believed", &[Exclusion]),
    // Nobody notices that a voter's clock was set.
    Mutant::new("clock_jump_not_noticed", &[Exclusion]).from(1103),
    // Nobody notices that a voter came back with its clock set.
    Mutant::new("clock_is_met_anew", &[Exclusion]).from(1103),
    // Nobody notices that a voter's clock was ahead when a client looked, and is right again.
    Mutant::new("set_back_not_noticed", &[Exclusion]),
    // A voter that forgot a vote does not give it again.
    Mutant::new("renew_never_grants_again", &[MinorityChangesNothing]).in_script(
        "mutex/renew",
        "  if not by then\n",
        "  if not by then return 2, 0, '' end\n  if not by then\n",
    ),
    // A voter that may have forgotten counts again after half of the longest lease.
    Mutant::new("quarantine_of_half_the_length", &[Exclusion, TrustEndsEarly]),
    // A grant in quarantine proves that the hold had the vote before the voter forgot.
    Mutant::new("grant_in_quarantine_is_proof", &[Exclusion, TrustEndsEarly]),
    // What a renewal has healed is forgotten, and with it that another may have had the lock.
    Mutant::new("healed_losses_are_dropped", &[WhatIsTold]),
    // A voter that never gave its vote cannot have given it to another.
    Mutant::new("missing_votes_do_not_count", &[WhatIsTold]),
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
    Mutant::new("claim_without_expiry", &[NothingLeaks]).in_script(
        "mutex/acquire",
        "hold, '1')\n  expire(lock, lease_ms)\n",
        "hold, '1')\n",
    ),
    // Keeping a hold

    // No hold is renewed.
    Mutant::new("renews_never", &[WhatIsTold, MinorityChangesNothing]),
    // A renewal counts from its last answer.
    Mutant::new("renews_from_the_reply", &[TrustEndsEarly]),
    // A round of renewal that failed gives the votes back.
    Mutant::new("failed_round_gives_back", &[TrustEndsEarly, RenewalNeverHarms]),
    // A hold is held until its watchdog says that it is not.
    Mutant::new("held_until_the_watchdog_says", &[TrustEndsEarly]),
    // A hold that is renewed does not end with its limit.
    Mutant::new("held_beyond_the_limit", &[TrustEndsEarly]),
    // Work under a hold is stopped by a timer, not by the clock.
    Mutant::new("work_outlives_the_deadline", &[TrustEndsEarly]),
    // Whoever leaves an inner entry gives all votes back.
    Mutant::new("inner_release_gives_back", &[TrustEndsEarly, RenewalNeverHarms]),
    // The count is added to what stands on the voter.
    Mutant::new("claim_adds_up", &[Once]).in_script(
        "mutex/acquire",
        "      keep(lock, lease_ms)\n",
        "      keep(lock, lease_ms)\n      redis.call('HSET', lock, hold, 2)\n",
    ),
    // A brief renewal is granted without a look for the vote.
    Mutant::new("known_vote_is_not_looked_for", &[TrustEndsEarly, Exclusion, WhatIsTold])
        .from(7)
        .in_script(
            "mutex/renew",
            "known == '1' and redis.call('HGET', lock, hold) == count",
            "known == '1'",
        ),
    // A renewal that finds its vote gone is given it again before its client has heard of that.
    Mutant::new("vote_is_given_anew_unasked", &[WhatIsTold]).in_script(
        "mutex/renew",
        "    if anew == '' then\n",
        "    if false then\n",
    ),
    // A voter that is full does not renew what it has.
    Mutant::new("renewal_needs_room", &[RenewalNeverHarms]).in_script(
        "mutex/renew",
        "  keep(lock, lease_ms)\n  raise(",
        "  redis.call('HSET', lock, hold, count)\n  keep(lock, lease_ms)\n  raise(",
    ),
    // Tokens

    // The highest number of a majority is the token, and nobody is told.
    Mutant::new("token_is_not_stored", &[TokensGrow]).from(16),
    // A request that runs twice gets another number the second time.
    Mutant::new("token_counts_twice", &[Once]).in_script(
        "mutex/acquire",
        "local latest = floor ~= '' and redis.call('GET', fence)",
        "local latest = false",
    ),
    // A free mutex gives the number that was asked for, though it gave a higher one before.
    Mutant::new("token_is_the_floor", &[TokensGrow]).in_script(
        "mutex/acquire",
        "if latest and floor - ",
        "if false and latest and floor - ",
    ),
    // A voter counts one further for each hold, though a hold has several numbers.
    Mutant::new("blocks_overlap", &[TokensGrow, FewestTrips]).in_script(
        "mutex/acquire",
        "return store(fence, latest + BLOCK, keep_ms)",
        "return store(fence, latest + 1, keep_ms)",
    ),
    // A client hands a hold on for as long as it lasts.
    Mutant::new("handed_on_for_ever", &[FairOrder, TokensGrow]),
    // Whoever gets a hold from another task has the same token.
    Mutant::new("handed_on_with_its_token", &[TokensGrow]),
    // Waiting

    // A release calls nobody in the queue.
    Mutant::new("release_calls_nobody", &[FewestTrips]).in_script(
        "mutex/release",
        "tell(channel, waiting and call_first(",
        "tell(channel, false and call_first(",
    ),
    // A sleep that has ended is waited for once more where a question goes on then.
    Mutant::new("ended_sleep_is_awaited", &[NoPanic]),
    // Whoever waits gives up at the first round without a quorum.
    Mutant::new("no_patience", &[FewestTrips, AnswersInTime]),
    // An owner that reads and wants to write waits for itself.
    Mutant::new("deadlock_is_waited_for", &[WhatIsTold]),
    // Order

    // Every voter has an order of arrival of its own.
    Mutant::new("ticket_is_never_fixed", &[AnswersInTime, NothingLeaks, FewestTrips]),
    // A place that a voter forgot comes back as the last, and takes that to the others.
    Mutant::new("ticket_is_raised", &[FairOrder]).in_script(
        "mutex/acquire",
        "  ticket = tonumber(ticket) or",
        "  ticket = redis.call('ZSCORE', queue, place) and tonumber(ticket) or",
    ),
    // A place takes the highest ticket that any voter told it.
    Mutant::new("highest_ticket_is_fixed", &[FairOrder]),
    // A bid that is lost gives its place up with its votes.
    Mutant::new("undo_leaves_the_queue", &[FairOrder]),
    // Whoever does not ask in order is given a free vote before those who do.
    Mutant::new("mutex_passes_the_queue", &[FairOrder]).in_script(
        "mutex/acquire",
        "    if head then\n",
        "    if false then\n",
    ),
    // A free mutex is given at once, though others wait for it in order.
    Mutant::new("free_lock_passes_the_queue", &[FairOrder]).in_script(
        "mutex/acquire",
        "redis.call('EXISTS', lock, queue) > 0 then\n    return nil",
        "redis.call('EXISTS', lock) > 0 then\n    return nil",
    ),
    // The release of a mutex takes no place out of the queue, and calls nobody there.
    Mutant::new("release_looks_at_no_queue", &[FairOrder, FewestTrips]).in_script(
        "mutex/release",
        "if had and redis.call('ZCARD', queue) == 0 then",
        "if had then",
    ),
    // A voter takes a place out of the queue when it gives its vote.
    Mutant::new("place_ends_with_the_grant", &[FairOrder]).in_script(
        "mutex/acquire",
        "  return 1, now_ms(), '', token, ticket or",
        "  leave(place, queue, alive)\n  return 1, now_ms(), '', token, ticket or",
    ),
    // A first bid that runs twice is entered although it has the vote.
    Mutant::new("holder_is_entered", &[Once]).in_script(
        "mutex/acquire",
        "if ticket or by ~= hold and (by or was_first) then",
        "if ticket or by or was_first then",
    ),
    // A fair waiter whose client does not hear its call loses its place.
    Mutant::new("unheard_fair_waiter_is_passed", &[FairOrder]).in_script(
        "mutex/release",
        "if not (alive and string.find(head, ':~', 1, true)) then",
        "if not alive then",
    ),
    // A release calls the last who waits.
    Mutant::new("last_is_called", &[FewestTrips, FairOrder]).in_script(
        "mutex/release",
        "  local head = first(queue)\n",
        "  local head = redis.call('ZRANGE', queue, -1, -1)[1]\n",
    ),
    // Elections

    // A leader is told that its new value is stored when it was only sent.
    Mutant::new("proclaimed_to_nobody_yet", &[WhatIsTold, FewestTrips]),
    // A candidate writes the token that it expects before it has won.
    Mutant::new("candidate_says_that_it_leads", &[WhatIsTold]),
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
    Mutant::new("reader_looks_at_no_writer", &[Exclusion, WhatIsTold, FairOrder]).in_script(
        "rw/acquire",
        "if by and by ~= hold and by ~= write_of(hold) then",
        "if by and by ~= hold and mode == 'write' then",
    ),
    // Who gives a reader its lease gives it to all readers.
    Mutant::new("one_end_for_all_readers", &[ReadersApart]).in_script(
        "rw/acquire",
        "  redis.call('ZADD', readers, ends, hold)\n  if",
        "  for _, one in ipairs({ hold, unpack(redis.call('ZRANGE', readers, 0, -1)) }) \
                  do redis.call('ZADD', readers, ends, one) end\n  if",
    ),
    // A writer that has released still counts as one that waits.
    Mutant::new("mark_of_a_writer_stays", &[NothingLeaks]).in_script(
        "rw/release",
        "leave(place, queue, alive, writers)\n    call_next",
        "leave(place, queue, alive)\n    call_next",
    ),
    // A reader that is to wait its turn stands before all writers.
    Mutant::new("reader_comes_first", &[FairOrder]),
    // Where the last reader leaves, the first writer is not called.
    Mutant::new("last_reader_calls_nobody", &[FewestTrips, AnswersInTime]).in_script(
        "rw/release",
        "if next_writer ~= place and redis.call('EXISTS', readers) == 0 then",
        "if next_writer ~= place and gone == 'write' then",
    ),
    // Permits

    // A majority that gave a hold any slots is enough: permits are counted.
    Mutant::new("any_slot_is_a_vote", &[TrustEndsEarly, Exclusion]),
    // A voter gives a slot that another hold has.
    Mutant::new("slot_is_given_twice", &[Exclusion, TrustEndsEarly]).in_script(
        "semaphore/acquire",
        "return to - from + 1 - redis.call('ZCOUNT', slots, from, to)",
        "return to - from + 1",
    ),
    // Whoever wants few permits passes one who waits for many.
    Mutant::new("waiter_for_permits_is_passed", &[FairOrder]).in_script(
        "semaphore/acquire",
        "  if ahead and not had then\n",
        "  if false then\n",
    ),
    // A place leaves the queue for good when it is given permits.
    Mutant::new("served_place_is_forgotten", &[FairOrder]).in_script(
        "semaphore/acquire",
        "    serve(place, hold, queue, served, alive)\n",
        "    leave(place, queue, alive)\n",
    ),
    // Whoever is given permits calls nobody, though more are free.
    Mutant::new("next_for_permits_is_not_called", &[FewestTrips, AnswersInTime]).in_script(
        "semaphore/acquire",
        "  if waiting and (moved or list and free > wanted) then\n",
        "  if waiting and moved then\n",
    ),
    // A release of permits calls nobody.
    Mutant::new("release_of_permits_calls_nobody", &[FewestTrips, AnswersInTime]).in_script(
        "semaphore/release",
        "    if had or was_first then\n",
        "    if was_first then\n",
    ),
    // Slots come back when the last lease of all holds ends.
    Mutant::new(
        "dead_hold_keeps_its_slot",
        &[FewestTrips, NothingLeaks, AnswersInTime, WhatIsTold],
    )
    .in_script(
        "semaphore/acquire",
        "if tonumber(soonest[at + 1]) < now_ms() then",
        "if false then",
    ),
    // A new hold counts the slots that a voter in quarantine gave it.
    Mutant::new("quarantined_slot_counts", &[Exclusion, TrustEndsEarly]).from(2186),
    // A renewal takes a slot that another hold has.
    Mutant::new("renewal_takes_a_slot", &[RenewalNeverHarms, Exclusion, TrustEndsEarly]).in_script(
        "semaphore/renew",
        "      other = member\n",
        "      ended[#ended + 1] = member\n",
    ),
    // A renewal of permits shortens their lease.
    Mutant::new("renewal_shortens_a_slot", &[RenewalNeverHarms, TrustEndsEarly]).in_script(
        "semaphore/renew",
        "local until_ms = math.max(now_ms() + lease_ms, former)",
        "local until_ms = now_ms() + lease_ms",
    ),
    // Which firing is done

    // A hold has it stored by a voter whose vote it has not.
    Mutant::new("done_without_the_vote", &[DoneOnce]).in_script(
        "once/note",
        "redis.call('HEXISTS', lock, hold) == 0",
        "false",
    ),
    // The lock is given back before a majority stores that the firing is done.
    Mutant::new("released_before_it_is_noted", &[DoneOnce]),
    // That a voter in quarantine knows of no firing counts.
    Mutant::new("not_done_in_quarantine", &[DoneOnce]),
    // While the voters are changed, a majority of one set stores it.
    Mutant::new("done_in_one_set", &[DoneOnce]),
    // A change of the voters leaves it with the old ones.
    Mutant::new("done_is_not_copied", &[DoneOnce]),
    // Tickets

    // A guard that was detached still says that it is held.
    Mutant::new("detached_hold_is_trusted", &[TrustEndsEarly, Exclusion]),
    // An attempt to resume a hold that fails gives the lock back.
    Mutant::new("failed_resume_frees_the_lock", &[Tickets]),
    // Who parks a hold takes an attempt to resume it for another holder, and gives the hold up.
    Mutant::new("resumer_is_a_stranger", &[Tickets]),
    // A vote is passed on from whoever has it.
    Mutant::new("vote_of_anybody_is_passed_on", &[RenewalNeverHarms, Exclusion, Tickets])
        .in_script("mutex/pass", "if by ~= former or not (may_pass", "if not (may_pass"),
    // A parked hold is resumed where nobody has the vote.
    Mutant::new("hold_is_resumed_from_nothing", &[Tickets, NothingLeaks]).in_script(
        "mutex/pass",
        "    return 4, 0, '', '', 0\n",
        "    give(lock, hold, '1', lease_ms)\n    \
         return 1, now_ms(), '', number(fence, floor, keep_ms), 0\n",
    ),
    // Whoever knows the id of a parked hold resumes it.
    Mutant::new("secret_is_not_looked_at", &[Tickets]).in_script(
        "mutex/pass",
        "return not hash or hash == string.sub(redis.sha1hex(secret), 1, 32)",
        "return true",
    ),
    // The hold that resumes another has its numbers.
    Mutant::new("numbers_are_passed_on", &[TokensGrow, FewestTrips]).in_script(
        "mutex/pass",
        "local token = number(fence, floor, keep_ms)",
        "local token = number_again(fence, floor, keep_ms)",
    ),
    // The hold that was detached goes on to have the vote.
    Mutant::new("former_hold_keeps_its_vote", &[Tickets, MinorityChangesNothing, NothingLeaks])
        .from(271)
        .in_script("mutex/pass", "  redis.call('HDEL', lock, former)\n", ""),
];
