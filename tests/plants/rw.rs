//! Bugs in read/write locks.

use crate::plant::{Edit, Plant};

pub(crate) const PLANTS: &[Plant] = &[
    Plant {
        name: "writer_looks_at_no_reader",
        what: "A write is given although others read.",
        edits: &[Edit {
            file: "lua/lib/rw.lua",
            find: "return last_reader(readers, hold)",
            replace: "return nil",
        }],
        caught_by: &["Exclusion", "FewestTrips", "WhatIsTold"],
    },
    Plant {
        name: "reader_looks_at_no_writer",
        what: "A read is given although another writes.",
        edits: &[Edit {
            file: "lua/lib/rw.lua",
            find: "if by and by ~= hold and by ~= write_of(hold) then",
            replace: "if by and by ~= hold and mode == 'write' then",
        }],
        caught_by: &["Exclusion", "WhatIsTold"],
    },
    Plant {
        name: "own_read_for_anybody",
        what: "Whoever shares a client with the writer reads under its write.",
        edits: &[Edit {
            file: "lua/lib/rw.lua",
            find: "if by and by ~= hold and by ~= write_of(hold) then",
            replace: "local client = string.match(hold, '^[^:]*')
  local own = mode == 'read' and by and string.match(by, '^[^:]*') == client
  if by and by ~= hold and not own then",
        }],
        caught_by: &["Exclusion"],
    },
    Plant {
        name: "one_deadline_for_all_readers",
        what: "Who gives a reader its lease gives it to all readers.",
        edits: &[Edit {
            file: "lua/lib/rw.lua",
            find: "  redis.call('ZADD', readers, ends, hold)
",
            replace: "  redis.call('ZADD', readers, ends, hold)
  for _, other in ipairs(redis.call('ZRANGE', readers, 0, -1)) do
    redis.call('ZADD', readers, ends, other)
  end
",
        }],
        caught_by: &["ReadersApart"],
    },
    Plant {
        name: "readers_end_with_the_latest_to_ask",
        what: "The record of the readers ends with the reader that asked last.",
        edits: &[Edit {
            file: "lua/lib/rw.lua",
            find: "if redis.call('PTTL', readers) < ends - now then",
            replace: "if true then",
        }],
        caught_by: &["ReadersApart", "TrustEndsEarly"],
    },
    Plant {
        name: "readers_without_expiry",
        what: "The record of the readers has no end.",
        edits: &[Edit {
            file: "lua/lib/rw.lua",
            find: "local done = redis.pcall('PEXPIREAT', readers, ends)",
            replace: "local done = 1",
        }],
        caught_by: &["NothingLeaks"],
    },
    Plant {
        name: "dead_readers_stay",
        what: "A reader counts for as long as another does.",
        edits: &[Edit {
            file: "lua/lib/rw.lua",
            find: "ipairs(redis.call('ZRANGEBYSCORE', readers, '-inf', '(' .. now_ms()))",
            replace: "ipairs({})",
        }],
        caught_by: &["FewestTrips", "NothingLeaks"],
    },
    Plant {
        name: "release_of_all_readers",
        what: "A reader's release gives back the votes of all readers.",
        edits: &[Edit {
            file: "lua/lib/rw.lua",
            find: "    redis.call('ZREM', readers, hold)
    refit(readers, ends)
",
            replace: "    redis.call('DEL', readers)
",
        }],
        caught_by: &["RenewalNeverHarms"],
    },
    Plant {
        name: "read_renews_over_a_writer",
        what: "A voter that forgot a read gives its vote again although another writes.",
        edits: &[Edit {
            file: "lua/rw/renew.lua",
            find: "  if holder then",
            replace: "  if holder and mode == 'write' then",
        }],
        caught_by: &["Exclusion", "WhatIsTold"],
    },
    Plant {
        name: "write_renews_over_readers",
        what: "A voter that forgot a write gives its vote again although others read.",
        edits: &[Edit {
            file: "lua/rw/renew.lua",
            find: "  if holder then",
            replace: "  if holder and mode == 'read' then",
        }],
        caught_by: &["Exclusion", "WhatIsTold"],
    },
    Plant {
        name: "shared_renewal_ignores_the_mark",
        what: "A read or a write that was ended by force gets its votes again.",
        edits: &[Edit {
            file: "lua/rw/renew.lua",
            find: "if redis.call('HEXISTS', revoked, hold) == 1 then",
            replace: "if false then",
        }],
        caught_by: &["WhatIsTold"],
    },
    Plant {
        name: "mark_of_a_writer_stays",
        what: "A writer that gave up or has released still counts as one that waits.",
        edits: &[Edit {
            file: "lua/rw/release.lua",
            find: "leave(place, queue, alive, writers)",
            replace: "leave(place, queue, alive)",
        }],
        caught_by: &["NothingLeaks", "NoPanic"],
    },
    Plant {
        name: "mark_of_a_dead_writer_stays",
        what: "A writer that died still counts as one that waits.",
        edits: &[Edit {
            file: "lua/lib/queue.lua",
            find: "    leave(place, queue, alive, writers)
  end
  if",
            replace: "    leave(place, queue, alive)
  end
  if",
        }],
        caught_by: &["FewestTrips", "NothingLeaks"],
    },
    Plant {
        name: "reader_passes_writers",
        what: "A reader that lets writers pass does not wait for those that wait.",
        edits: &[Edit {
            file: "lua/rw/acquire.lua",
            find: "if ahead and not has then",
            replace: "if ahead and not has and turn ~= 'last' then",
        }],
        caught_by: &["FairOrder"],
    },
    Plant {
        name: "reader_in_turn_comes_first",
        what: "A reader that is to wait its turn stands before all writers.",
        edits: &[Edit {
            file: "src/lock/rw_record.rs",
            find: "            (Access::Write, _) | (Access::Read, Preference::Fair) => \"next\",
",
            replace: "            (Access::Read, Preference::Fair) if PLANTED => \"first\",
            (Access::Write, _) | (Access::Read, Preference::Fair) => \"next\",
",
        }],
        caught_by: &["FairOrder"],
    },
    Plant {
        name: "writer_passes_readers",
        what: "A writer waits for no reader that came before it and does not read yet.",
        edits: &[Edit {
            file: "lua/rw/acquire.lua",
            find: "local places = mode == 'read' and writers or queue",
            replace: "local places = writers",
        }],
        caught_by: &["FairOrder"],
    },
    Plant {
        name: "last_reader_calls_no_writer",
        what: "Where the last reader leaves, the first writer is not called.",
        edits: &[Edit {
            file: "lua/lib/rw.lua",
            find: "if next_writer ~= place and redis.call('EXISTS', readers) == 0 then",
            replace: "if next_writer ~= place and gone == 'write' then",
        }],
        caught_by: &["FewestTrips", "AnswersInTime"],
    },
    Plant {
        name: "writer_calls_no_readers",
        what: "Where a writer leaves, the readers who are next are not called.",
        edits: &[Edit {
            file: "lua/lib/rw.lua",
            find: "elseif gone == 'write' then",
            replace: "elseif false then",
        }],
        caught_by: &["FewestTrips", "FairOrder", "AnswersInTime"],
    },
    Plant {
        name: "writer_calls_one_reader",
        what: "Where a writer leaves, only the first of the readers is called.",
        edits: &[Edit {
            file: "lua/lib/rw.lua",
            find: "redis.call('ZRANGE', queue, 0, rank >= 0 and rank - 1 or -1)",
            replace: "redis.call('ZRANGE', queue, 0, 0)",
        }],
        caught_by: &["FewestTrips", "AnswersInTime"],
    },
    Plant {
        name: "downgrade_lets_go_first",
        what: "A write that becomes a read is given back before the read stands.",
        edits: &[
            Edit {
                file: "src/lock/write_guard.rs",
                find: "        let read = self.read().await?;
",
                replace: "        if PLANTED {
            self.0.let_go();
        }
        let read = self.read().await?;
",
            },
            Edit {
                file: "src/hold/entry.rs",
                find: "    pub(crate) fn name(&self) -> &str {
",
                replace: "    pub(crate) fn let_go(&self) {
        let release = self.hold.record().release(self.hold.id(), 0, true);
        drop(self.hold.coordinator().panel.ask_all(&release));
    }

    pub(crate) fn name(&self) -> &str {
",
            },
        ],
        caught_by: &["FewestTrips", "RenewalNeverHarms", "TrustEndsEarly"],
    },
    Plant {
        name: "deadlock_is_waited_for",
        what: "An owner that reads and wants to write waits for itself.",
        edits: &[Edit {
            file: "src/hold/enter.rs",
            find: "        refuse_deadlock(holds, wish)?;
",
            replace: "        if !PLANTED {
            refuse_deadlock(holds, wish)?;
        }
",
        }],
        caught_by: &["WhatIsTold"],
    },
];
