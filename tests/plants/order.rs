//! Bugs in waiting in order.

use crate::plant::{Edit, Plant};

pub(crate) const PLANTS: &[Plant] = &[
    Plant {
        name: "ticket_is_raised",
        what: "A place that a voter forgot comes back as the last, and tells that to the others.",
        edits: &[
            Edit {
                file: "lua/fair/acquire.lua",
                find: "if ticket == '' then",
                replace: "if ticket == '' or not redis.call('ZSCORE', queue, place) then",
            },
            Edit {
                file: "src/engine/bid.rs",
                find: "self.ticket.or_else(|| self.tickets.fixed())",
                replace: "if PLANTED {
            return self.tickets.fixed().max(self.ticket);
        }
        self.ticket.or_else(|| self.tickets.fixed())",
            },
            Edit {
                file: "src/engine/ticket.rs",
                find: "        said.get(self.quorum.needed() - 1).copied()",
                replace: "        if PLANTED && said.len() >= self.quorum.needed() {
            return said.last().copied();
        }
        said.get(self.quorum.needed() - 1).copied()",
            },
        ],
        caught_by: &["FairOrder"],
    },
    Plant {
        name: "ticket_is_never_fixed",
        what: "Every voter has an order of arrival of its own.",
        edits: &[Edit {
            file: "src/coordinator/queue.rs",
            find: "lease, ticket: self.ticket, token }",
            replace: "lease, ticket: self.ticket.filter(|_| !PLANTED), token }",
        }],
        caught_by: &["AnswersInTime", "NothingLeaks", "FewestTrips"],
    },
    Plant {
        name: "the_dead_stay",
        what: "A place counts for ever.",
        edits: &[Edit {
            file: "lua/lib/queue.lua",
            find: "ipairs(redis.call('ZRANGEBYSCORE', alive, '-inf', now_ms()))",
            replace: "ipairs({})",
        }],
        caught_by: &["FewestTrips", "NothingLeaks"],
    },
    Plant {
        name: "release_keeps_the_place",
        what: "Whoever releases or gives up stays in the queue.",
        edits: &[Edit {
            file: "lua/mutex/release.lua",
            find: "    leave(place, queue, alive)",
            replace: "",
        }],
        caught_by: &["NothingLeaks"],
    },
    Plant {
        name: "mutex_passes_the_queue",
        what: "Whoever does not ask in order is given a free vote before those who do.",
        edits: &[Edit {
            file: "lua/mutex/acquire.lua",
            find: "if head and redis.call('EXISTS', lock) == 0 then",
            replace: "if false then",
        }],
        caught_by: &["FairOrder"],
    },
    Plant {
        name: "undo_leaves_the_queue",
        what: "A bid that is lost gives its place up with its votes.",
        edits: &[Edit {
            file: "src/lock/mutex_record.rs",
            find: "        self.give_back(hold, 0, \"\", wake)",
            replace: "        if PLANTED {
            return self.release(hold, 0, wake);
        }
        self.give_back(hold, 0, \"\", wake)",
        }],
        caught_by: &["FairOrder"],
    },
    Plant {
        name: "first_is_not_called",
        what: "A release calls nobody who waits in order.",
        edits: &[Edit { file: "lua/lib/queue.lua", find: "    call(calls, head)", replace: "" }],
        caught_by: &["FewestTrips", "FairOrder"],
    },
    Plant {
        name: "last_is_called",
        what: "A release calls the last who waits.",
        edits: &[Edit {
            file: "lua/lib/queue.lua",
            find: "  local head = first(queue)
  if not head then",
            replace: "  local head = redis.call('ZRANGE', queue, -1, -1)[1]
  if not head then",
        }],
        caught_by: &["FewestTrips", "FairOrder"],
    },
    Plant {
        name: "leaving_calls_nobody",
        what: "Where the first gives up while the vote is free, the next one is not called.",
        edits: &[Edit {
            file: "lua/mutex/release.lua",
            find: "if was_first and not by then",
            replace: "if false then",
        }],
        caught_by: &["AnswersInTime", "FewestTrips"],
    },
    Plant {
        name: "grant_looks_at_nobody",
        what: "A free vote is given to whoever asks first, whatever the queue.",
        edits: &[Edit {
            file: "lua/fair/acquire.lua",
            find: "if ahead and by ~= hold then",
            replace: "if false then",
        }],
        caught_by: &["FairOrder"],
    },
    Plant {
        name: "refresh_extends_nothing",
        what: "A place ends when it was to end at first, though its waiter tells it again.",
        edits: &[Edit {
            file: "lua/lib/enter.lua",
            find: "redis.call('ZADD', alive, now_ms()",
            replace: "redis.call('ZADD', alive, 'NX', now_ms()",
        }],
        caught_by: &["FairOrder"],
    },
];
