//! Bugs in the scripts.

use crate::plant::{Edit, Plant};

pub(crate) const PLANTS: &[Plant] = &[
    Plant {
        name: "claim_takes_anybodys",
        what: "A vote is given although another hold has it.",
        edits: &[Edit {
            file: "lua/lib/claim.lua",
            find: "return 0, redis.call('PTTL', lock), by",
            replace: "redis.call('DEL', lock)",
        }],
        caught_by: &["Exclusion", "RenewalNeverHarms"],
    },
    Plant {
        name: "claim_without_expiry",
        what: "A vote is given for ever.",
        edits: &[Edit { file: "lua/lib/claim.lua", find: "expire(lock, ms)", replace: "" }],
        caught_by: &["NothingLeaks"],
    },
    Plant {
        name: "claim_shortens",
        what: "A vote that is given again lasts no longer than it is asked for now.",
        edits: &[Edit {
            file: "lua/lib/claim.lua",
            find: "ms = math.max(tonumber(ms), redis.call('PTTL', lock))",
            replace: "ms = ms",
        }],
        caught_by: &["RenewalNeverHarms", "TrustEndsEarly"],
    },
    Plant {
        name: "claim_adds_up",
        what: "The count is added to what stands on the voter.",
        edits: &[Edit {
            file: "lua/lib/claim.lua",
            find: "redis.call('HSET', lock, hold, count)",
            replace: "local old = tonumber(redis.call('HGET', lock, hold) or 0)
  redis.call('HSET', lock, hold, tostring(old + tonumber(count)))",
        }],
        caught_by: &["Once"],
    },
    Plant {
        name: "renew_for_half",
        what: "A renewal gives half of the lease.",
        edits: &[Edit {
            file: "lua/mutex/renew.lua",
            find: "return claim(lock, hold, count, lease_ms, function",
            replace: "return claim(lock, hold, count, math.floor(lease_ms / 2), function",
        }],
        caught_by: &["TrustEndsEarly"],
    },
    Plant {
        name: "renew_never_grants_again",
        what: "A voter that forgot a vote does not give it again.",
        edits: &[
            Edit {
                file: "lua/mutex/renew.lua",
                find: "  return claim(",
                replace: "  if redis.call('EXISTS', lock) == 0 then return 2, 0, '' end
  return claim(",
            },
            Edit {
                file: "lua/rw/renew.lua",
                find: "  grant(writer",
                replace: "  local has = redis.call('ZSCORE', readers, hold)
  if not has and redis.call('EXISTS', writer) == 0 then return 2, 0, '' end
  grant(writer",
            },
        ],
        caught_by: &["MinorityChangesNothing"],
    },
    Plant {
        name: "renew_ignores_the_mark",
        what: "A hold that was ended by force gets its votes again.",
        edits: &[Edit {
            file: "lua/mutex/renew.lua",
            find: "if redis.call('HEXISTS', revoked, hold) == 1 then",
            replace: "if false then",
        }],
        caught_by: &["WhatIsTold"],
    },
    Plant {
        name: "force_leaves_no_mark",
        what: "Nothing tells a renewal that its hold was ended by force.",
        edits: &[Edit {
            file: "lua/mutex/force_release.lua",
            find: "redis.call('HSET', revoked, hold, 1)",
            replace: "",
        }],
        caught_by: &["WhatIsTold"],
    },
    Plant {
        name: "force_ends_anybodys",
        what: "Ending a hold by force ends the one that came after it.",
        edits: &[Edit {
            file: "lua/mutex/force_release.lua",
            find: "if redis.call('HEXISTS', lock, hold) == 0 then",
            replace: "if redis.call('EXISTS', lock) == 0 then",
        }],
        caught_by: &["RenewalNeverHarms"],
    },
    Plant {
        name: "release_of_anybodys",
        what: "A release gives back a vote that another hold has.",
        edits: &[Edit {
            file: "lua/mutex/release.lua",
            find: "if by == hold then",
            replace: "if by then",
        }],
        caught_by: &["RenewalNeverHarms"],
    },
    Plant {
        name: "release_of_all_entries",
        what: "A release of one entry gives the vote back.",
        edits: &[Edit {
            file: "lua/mutex/release.lua",
            find: "if tonumber(count) > 0 then",
            replace: "if false then",
        }],
        caught_by: &["TrustEndsEarly", "RenewalNeverHarms"],
    },
    Plant {
        name: "release_is_silent",
        what: "A voter that gets its vote back calls nobody.",
        edits: &[Edit {
            file: "lua/lib/queue.lua",
            find: "local told = redis.pcall(publish, channel, '0')",
            replace: "local told",
        }],
        caught_by: &["FewestTrips"],
    },
    Plant {
        name: "release_keeps_the_vote",
        what: "A voter says that it has its vote back and has not.",
        edits: &[Edit {
            file: "lua/mutex/release.lua",
            find: "redis.call('DEL', lock)",
            replace: "",
        }],
        caught_by: &["NothingLeaks", "FewestTrips"],
    },
];
