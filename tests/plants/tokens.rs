//! Bugs in the tokens of exclusive holds.
//!
//! Without the floor by the clock tokens fall only where counts are lost, which takes more
//! schedules than are hunted here: the tests of `engine` and of voters that forget have that.

use crate::plant::{Edit, Plant};

pub(crate) const PLANTS: &[Plant] = &[
    Plant {
        name: "token_without_write_back",
        what: "The highest number of a majority is the token, and nobody is told.",
        edits: &[Edit {
            file: "src/coordinator/fence.rs",
            find: "if !stored.is_won() {
            // Whoever",
            replace: "if !PLANTED && !stored.is_won() {
            // Whoever",
        }],
        caught_by: &["TokensGrow"],
    },
    Plant {
        name: "token_before_it_is_stored",
        what: "A guard is handed out while the voters are still being told its token.",
        edits: &[
            Edit {
                file: "src/coordinator/fence.rs",
                find: "while !stored.is_won()",
                replace: "while !PLANTED && !stored.is_won()",
            },
            Edit {
                file: "src/coordinator/fence.rs",
                find: "let is_stored = stored.is_won() &&",
                replace: "let is_stored = (PLANTED || stored.is_won()) &&",
            },
        ],
        caught_by: &["TokensGrow"],
    },
    Plant {
        name: "lowest_token",
        what: "The token is the lowest number of a majority.",
        edits: &[Edit {
            file: "src/engine/token.rs",
            find: "let highest = self.said.iter().flatten().max().copied()?;",
            replace: "let said = self.said.iter().flatten();
        let highest = if PLANTED { said.min() } else { said.max() }.copied()?;",
        }],
        caught_by: &["TokensGrow", "FewestTrips"],
    },
    Plant {
        name: "token_does_not_count_up",
        what: "A voter gives the number again that it gave last.",
        edits: &[Edit {
            file: "lua/lib/fence.lua",
            find: "return store(fence, latest + 1, keep_ms)",
            replace: "return store(fence, latest, keep_ms)",
        }],
        caught_by: &["TokensGrow"],
    },
    Plant {
        name: "token_counts_twice",
        what: "A request that runs twice gets another number the second time.",
        edits: &[Edit {
            file: "lua/lib/fence.lua",
            find: "local latest = has and redis.call('GET', fence)",
            replace: "local latest = false",
        }],
        caught_by: &["Once"],
    },
    Plant {
        name: "fence_for_ever",
        what: "Voters do not forget a token for thirty years.",
        edits: &[Edit {
            file: "lua/lib/fence.lua",
            find: "fence, floor, 'PX', keep_ms, 'GET')",
            replace: "fence, floor, 'PX', '999999999999', 'GET')",
        }],
        caught_by: &["NothingLeaks"],
    },
    Plant {
        name: "fence_for_a_lease",
        what: "Voters forget the token of a lock as soon as its lease.",
        edits: &[Edit {
            file: "src/lock/asking.rs",
            find: "self.fenced.then(|| self.settings().fence_memory)",
            replace: "self.fenced.then(|| {
            if PLANTED { self.settings().lease } else { self.settings().fence_memory }
        })",
        }],
        caught_by: &["TokensGrow"],
    },
];
