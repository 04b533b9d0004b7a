//! Bugs in waiting: in the line, in listening, in being called.

use crate::plant::{Edit, Plant};

pub(crate) const PLANTS: &[Plant] = &[
    Plant {
        name: "call_is_a_grant",
        what: "Whoever is called has the lock, whatever the voters say.",
        edits: &[
            Edit {
                file: "src/coordinator/mod.rs",
                find: "    pub(crate) gate: Gate,
",
                replace: "    pub(crate) gate: Gate,
    /// The locks for which a call has come since the last attempt.
    woken: Mutex<std::collections::BTreeSet<String>>,
",
            },
            Edit {
                file: "src/coordinator/mod.rs",
                find: "            gate: Gate::open(),
",
                replace: "            gate: Gate::open(),
            woken: Mutex::default(),
",
            },
            Edit {
                file: "src/coordinator/waiting.rs",
                find: "cause = heard => cause,",
                replace: "cause = heard => {
                if PLANTED {
                    coordinator.woken.lock().unwrap().insert(self.record.key().to_string());
                }
                cause
            }",
            },
            Edit {
                file: "src/coordinator/attempt.rs",
                find: "                Next::Lost(loss) => {
",
                replace: "                Next::Lost(_)
                    if PLANTED && self.woken.lock().unwrap().remove(&**record.key()) =>
                {
                    let heard = (attempt.into_votes(), replies);
                    return Ok(Won::new(claim, (started, rules), None, heard));
                }
                Next::Lost(loss) => {
",
            },
        ],
        caught_by: &["TrustEndsEarly", "Exclusion"],
    },
    Plant {
        name: "failure_keeps_the_turn",
        what: "An error does not let the next one in line come first.",
        edits: &[Edit {
            file: "src/hold/enter.rs",
            find: "coordinator.acquire(&wish.record, wish.rules, limit, (&place, &turn)).await\
                   .map(Asked::won)",
            replace: "let front = (&place, &turn);
    let won = coordinator.acquire(&wish.record, wish.rules, limit, front).await;
    if PLANTED && won.is_err() {
        std::mem::forget(turn);
    }
    won.map(Asked::won)",
        }],
        caught_by: &["NothingLeaks", "AnswersInTime"],
    },
    Plant {
        name: "no_limit",
        what: "Waiting for a limited time has no limit.",
        edits: &[Edit {
            file: "src/lock/exclusive.rs",
            find: "        self.enter(self.asking.within(limit)).await
",
            replace: "        if PLANTED {
            return self.enter(Limit::Never).await;
        }
        self.enter(self.asking.within(limit)).await
",
        }],
        caught_by: &["AnswersInTime"],
    },
    Plant {
        name: "no_patience",
        what: "Whoever waits gives up at the first round without a quorum.",
        edits: &[Edit {
            file: "src/coordinator/silence.rs",
            find: "self.since.is_some_and(|since| now.since(since) >= patience)",
            replace: "PLANTED && self.since.is_some()
            || self.since.is_some_and(|since| now.since(since) >= patience)",
        }],
        caught_by: &["FewestTrips", "AnswersInTime"],
    },
    Plant {
        name: "listens_to_nobody",
        what: "Whoever waits does not listen to the channel.",
        edits: &[Edit {
            file: "src/coordinator/waiting.rs",
            find: "Loss::Held if self.listening.is_none() =>",
            replace: "Loss::Held if self.listening.is_none() && !PLANTED =>",
        }],
        caught_by: &["FewestTrips"],
    },
    Plant {
        name: "misses_nothing",
        what: "Calls that may have been lost with a connection are not made up for.",
        edits: &[Edit {
            file: "src/coordinator/waiting.rs",
            find: "                listening.missed().await;
",
            replace: "                if PLANTED {
                    std::future::pending::<()>().await;
                }
                listening.missed().await;
",
        }],
        caught_by: &["FewestTrips"],
    },
    Plant {
        name: "listens_for_ever",
        what: "Nobody stops listening.",
        edits: &[Edit {
            file: "src/wakeup.rs",
            find: "voter.unsubscribe(Arc::clone(&self.channel));",
            replace: "if !PLANTED {
                        voter.unsubscribe(Arc::clone(&self.channel));
                    }",
        }],
        caught_by: &["NothingLeaks"],
    },
];
