//! Mutants: bugs that stand in the code on purpose, each beside the rule that it breaks.
//!
//! `crate::mutant!(..)` with the name of a mutant is the constant `false`, and the compiler leaves
//! nothing of the mutant. Only the hunt compiles the library with `--cfg quorate_mutants`. A mutant
//! is then alive if the environment variable `QUORATE_MUTANT` has its name. `tests/proofs/mutants`
//! lists all mutants and shows that the simulation finds each. A refactor moves a mutant with its
//! rule.

/// Whether this mutant is alive.
#[cfg(not(quorate_mutants))]
macro_rules! mutant {
    ($name:literal) => {
        false
    };
}

/// Whether this mutant is alive.
#[cfg(quorate_mutants)]
macro_rules! mutant {
    ($name:literal) => {
        $crate::mutant::is_alive($name)
    };
}

pub(crate) use mutant;

#[cfg(quorate_mutants)]
thread_local! {
    // Several models run at once, each on threads of its own.
    static WOKEN: std::cell::Cell<Option<&'static str>> = const { std::cell::Cell::new(None) };
}

/// From here on this one is alive on this thread: for the models, which run in one process.
#[cfg(quorate_mutants)]
pub fn wake(name: Option<&'static str>) {
    WOKEN.set(name);
}

#[cfg(quorate_mutants)]
pub(crate) fn is_alive(name: &str) -> bool {
    static ALIVE: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    WOKEN.get().is_some_and(|woken| woken == name)
        || ALIVE.get_or_init(|| std::env::var("QUORATE_MUTANT").ok()).as_deref() == Some(name)
}

/// A mutant of a script: embedded voters run the script with another text in it.
#[cfg(any(test, quorate_mutants))]
#[derive(Debug)]
pub(crate) struct ScriptMutant {
    pub(crate) name: &'static str,
    /// As in the catalog.
    pub(crate) script: &'static str,
    /// Stands in the script exactly once.
    pub(crate) find: &'static str,
    pub(crate) replace: &'static str,
}

#[cfg(any(test, quorate_mutants))]
pub(crate) const IN_SCRIPTS: &[ScriptMutant] = &[
    ScriptMutant {
        name: "claim_without_expiry",
        script: "mutex/acquire",
        find: "hold, '1')\n  expire(lock, lease_ms)\n",
        replace: "hold, '1')\n",
    },
    ScriptMutant {
        name: "claim_adds_up",
        script: "mutex/acquire",
        find: "      keep(lock, lease_ms)\n",
        replace: "      keep(lock, lease_ms)\n      redis.call('HSET', lock, hold, 2)\n",
    },
    ScriptMutant {
        name: "token_counts_twice",
        script: "mutex/acquire",
        find: "local latest = floor ~= '' and redis.call('GET', fence)",
        replace: "local latest = false",
    },
    ScriptMutant {
        name: "token_is_the_floor",
        script: "mutex/acquire",
        find: "if latest and (#latest > #floor",
        replace: "if false and latest and (#latest > #floor",
    },
    ScriptMutant {
        name: "free_lock_passes_the_queue",
        script: "mutex/acquire",
        find: "redis.call('EXISTS', lock, queue) > 0 then\n    return nil",
        replace: "redis.call('EXISTS', lock) > 0 then\n    return nil",
    },
    ScriptMutant {
        name: "release_looks_at_no_queue",
        script: "mutex/release",
        find: "if had and redis.call('ZCARD', queue) == 0 then",
        replace: "if had then",
    },
    ScriptMutant {
        name: "mutex_passes_the_queue",
        script: "mutex/acquire",
        find: "    if head then\n",
        replace: "    if false then\n",
    },
    ScriptMutant {
        name: "renewal_needs_room",
        script: "mutex/renew",
        find: "  keep(lock, lease_ms)\n  raise(",
        replace: "  redis.call('HSET', lock, hold, count)\n  keep(lock, lease_ms)\n  raise(",
    },
    ScriptMutant {
        name: "known_vote_is_not_looked_for",
        script: "mutex/renew",
        find: "known == '1' and redis.call('HGET', lock, hold) == count",
        replace: "known == '1'",
    },
    ScriptMutant {
        name: "vote_is_given_anew_unasked",
        script: "mutex/renew",
        find: "    if anew == '' then\n",
        replace: "    if false then\n",
    },
    ScriptMutant {
        name: "renew_never_grants_again",
        script: "mutex/renew",
        find: "  if not by then\n",
        replace: "  if not by then return 2, 0, '' end\n  if not by then\n",
    },
    ScriptMutant {
        name: "release_calls_nobody",
        script: "mutex/release",
        find: "tell(channel, waiting and call_first(",
        replace: "tell(channel, false and call_first(",
    },
    ScriptMutant {
        name: "last_is_called",
        script: "mutex/release",
        find: "  local head = first(queue)\n",
        replace: "  local head = redis.call('ZRANGE', queue, -1, -1)[1]\n",
    },
    ScriptMutant {
        name: "unheard_fair_waiter_is_passed",
        script: "mutex/release",
        find: "if not (alive and string.find(head, ':~', 1, true)) then",
        replace: "if not alive then",
    },
    ScriptMutant {
        name: "ticket_is_raised",
        script: "mutex/acquire",
        find: "  ticket = tonumber(ticket) or",
        replace: "  ticket = redis.call('ZSCORE', queue, place) and tonumber(ticket) or",
    },
    ScriptMutant {
        name: "place_ends_with_the_grant",
        script: "mutex/acquire",
        find: "  return 1, now_ms(), '', token, ticket or",
        replace: "  leave(place, queue, alive)\n  return 1, now_ms(), '', token, ticket or",
    },
    ScriptMutant {
        name: "holder_is_entered",
        script: "mutex/acquire",
        find: "if ticket or by ~= hold and (by or was_first) then",
        replace: "if ticket or by or was_first then",
    },
    ScriptMutant {
        name: "reader_looks_at_no_writer",
        script: "rw/acquire",
        find: "if by and by ~= hold and by ~= write_of(hold) then",
        replace: "if by and by ~= hold and mode == 'write' then",
    },
    ScriptMutant {
        name: "one_end_for_all_readers",
        script: "rw/acquire",
        find: "  redis.call('ZADD', readers, ends, hold)\n  if",
        replace: "  for _, one in ipairs({ hold, unpack(redis.call('ZRANGE', readers, 0, -1)) }) \
                  do redis.call('ZADD', readers, ends, one) end\n  if",
    },
    ScriptMutant {
        name: "mark_of_a_writer_stays",
        script: "rw/release",
        find: "leave(place, queue, alive, writers)\n    call_next",
        replace: "leave(place, queue, alive)\n    call_next",
    },
    ScriptMutant {
        name: "slot_is_given_twice",
        script: "semaphore/acquire",
        find: "return to - from + 1 - redis.call('ZCOUNT', slots, from, to)",
        replace: "return to - from + 1",
    },
    ScriptMutant {
        name: "waiter_for_permits_is_passed",
        script: "semaphore/acquire",
        find: "  if ahead and not had then\n",
        replace: "  if false then\n",
    },
    ScriptMutant {
        name: "served_place_is_forgotten",
        script: "semaphore/acquire",
        find: "    serve(place, hold, queue, served, alive)\n",
        replace: "    leave(place, queue, alive)\n",
    },
    ScriptMutant {
        name: "next_for_permits_is_not_called",
        script: "semaphore/acquire",
        find: "  if waiting and (moved or list and free > wanted) then\n",
        replace: "  if waiting and moved then\n",
    },
    ScriptMutant {
        name: "release_of_permits_calls_nobody",
        script: "semaphore/release",
        find: "    if had or was_first then\n",
        replace: "    if was_first then\n",
    },
    ScriptMutant {
        name: "dead_hold_keeps_its_slot",
        script: "semaphore/acquire",
        find: "if tonumber(soonest[at + 1]) < now_ms() then",
        replace: "if false then",
    },
    ScriptMutant {
        name: "renewal_takes_a_slot",
        script: "semaphore/renew",
        find: "      other = member\n",
        replace: "      ended[#ended + 1] = member\n",
    },
    ScriptMutant {
        name: "renewal_shortens_a_slot",
        script: "semaphore/renew",
        find: "local until_ms = math.max(now_ms() + lease_ms, former)",
        replace: "local until_ms = now_ms() + lease_ms",
    },
    ScriptMutant {
        name: "last_reader_calls_nobody",
        script: "rw/release",
        find: "if next_writer ~= place and redis.call('EXISTS', readers) == 0 then",
        replace: "if next_writer ~= place and gone == 'write' then",
    },
];

/// The script as it runs with the mutant that is alive.
#[cfg(all(quorate_mutants, feature = "embedded"))]
pub(crate) fn mutated(script: &str, source: &str) -> String {
    let alive = |mutant: &&ScriptMutant| mutant.script == script && is_alive(mutant.name);
    match IN_SCRIPTS.iter().find(alive) {
        Some(mutant) => source.replace(mutant.find, mutant.replace),
        None => source.to_owned(),
    }
}
