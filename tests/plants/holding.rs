//! Bugs in keeping a hold, in entering it again, in leaving it and in telling its loss.

use crate::plant::{Edit, Plant};

pub(crate) const PLANTS: &[Plant] = &[
    Plant {
        name: "dropped_guard_stays",
        what: "A guard that is dropped is not released.",
        edits: &[Edit {
            file: "src/hold/entry.rs",
            find: "if !self.left {",
            replace: "if !self.left && !PLANTED {",
        }],
        caught_by: &["NothingLeaks"],
    },
    Plant {
        name: "renewed_after_the_deadline",
        what: "A renewal that comes after the deadline brings the hold back.",
        edits: &[
            Edit {
                file: "src/engine/lease.rs",
                find: "        if now >= self.deadline {
            return false;
",
                replace: "        if now >= self.deadline && !PLANTED {
            return false;
",
            },
            Edit {
                file: "src/engine/lease.rs",
                find: "            _ if now >= self.deadline => Duty::Lost,",
                replace: "            None if now >= self.deadline => Duty::Lost,
            _ if now >= self.deadline && !PLANTED => Duty::Lost,",
            },
            Edit {
                file: "src/engine/lease.rs",
                find: "            Some(renew_at) => Duty::Sleep(renew_at.min(self.deadline)),",
                replace: "            Some(renew_at) if PLANTED => Duty::Sleep(renew_at),
            Some(renew_at) => Duty::Sleep(renew_at.min(self.deadline)),",
            },
            Edit {
                file: "src/hold/keeper.rs",
                find: "() = clock.sleep_until(hold.deadline()) => {}",
                replace: "() = clock.sleep_until(hold.deadline()), if !PLANTED => {}",
            },
        ],
        caught_by: &["TrustEndsEarly"],
    },
    Plant {
        name: "renews_never",
        what: "No hold is renewed.",
        edits: &[Edit {
            file: "src/engine/lease.rs",
            find: "renew_at: renewed.then(",
            replace: "renew_at: (renewed && !PLANTED).then(",
        }],
        caught_by: &["WhatIsTold", "MinorityChangesNothing"],
    },
    Plant {
        name: "renews_late",
        what: "A hold is renewed when a twentieth of its lease is left.",
        edits: &[
            Edit {
                file: "src/engine/lease.rs",
                find: "(|| started + terms.lease / 3)",
                replace: "(|| {
                started + if PLANTED { terms.lease * 19 / 20 } else { terms.lease / 3 }
            })",
            },
            Edit {
                file: "src/engine/lease.rs",
                find: "self.renew_at.map(|_| started + terms.lease / 3)",
                replace: "self.renew_at.map(|_| {
            started + if PLANTED { terms.lease * 19 / 20 } else { terms.lease / 3 }
        })",
            },
        ],
        caught_by: &["WhatIsTold", "MinorityChangesNothing"],
    },
    Plant {
        name: "renews_from_the_reply",
        what: "A renewal counts from its last answer.",
        edits: &[Edit {
            file: "src/hold/held/rounds.rs",
            find: "state.lease.renewed(round.terms(), round.started(), clock.now());",
            replace: "let started = if PLANTED { clock.now() } else { round.started() };
                state.lease.renewed(round.terms(), started, clock.now());",
        }],
        caught_by: &["TrustEndsEarly"],
    },
    Plant {
        name: "failed_round_renews",
        what: "A round of renewal that failed moves the deadline.",
        edits: &[Edit {
            file: "src/engine/lease.rs",
            find: "        let pause = self.retry.pause(chance);
",
            replace: "        if PLANTED && now < self.deadline {
            self.deadline = self.deadline.max(self.terms.deadline(now));
        }
        let pause = self.retry.pause(chance);
",
        }],
        caught_by: &["TrustEndsEarly"],
    },
    Plant {
        name: "failed_round_gives_back",
        what: "A round of renewal that failed gives the votes back.",
        edits: &[Edit {
            file: "src/hold/held/rounds.rs",
            find: "                state.lease.failed(clock.now(), chance);
",
            replace: "                state.lease.failed(clock.now(), chance);
                if PLANTED {
                    let undo = self.record.release(&self.id, 0, true);
                    drop(self.coordinator.panel.ask_all(&undo));
                }
",
        }],
        caught_by: &["TrustEndsEarly", "RenewalNeverHarms"],
    },
    Plant {
        name: "renews_the_released",
        what: "The watchdog goes on after the release.",
        edits: &[
            Edit {
                file: "src/hold/keeper.rs",
                find: "        if over.read(|over| *over) {
",
                replace: "        if over.read(|over| *over) {
            if PLANTED {
                hold.renew_for_ever().await;
            }
",
            },
            Edit {
                file: "src/hold/held/rounds.rs",
                find: "    /// Sends within the lock, so that",
                replace: "    pub(in crate::hold) async fn renew_for_ever(&self) {
        while PLANTED {
            let terms = self.state().lease.terms();
            self.coordinator.clock.sleep(terms.lease / 3).await;
            let call = self.renewal(&self.state(), terms);
            drop(self.coordinator.panel.ask_all(&call));
        }
    }

    /// Sends within the lock, so that",
            },
        ],
        caught_by: &["NothingLeaks"],
    },
    Plant {
        name: "held_by_the_watchdog",
        what: "A hold is held until its watchdog says that it is not.",
        edits: &[Edit {
            file: "src/hold/entry.rs",
            find: "    pub(crate) fn is_held(&self) -> bool {
",
            replace: "    pub(crate) fn is_held(&self) -> bool {
        if PLANTED {
            return !self.hold.over().read(|over| *over);
        }
",
        }],
        caught_by: &["TrustEndsEarly"],
    },
    Plant {
        name: "loss_is_not_told",
        what: "Who waits for the loss of a hold is not told.",
        edits: &[Edit {
            file: "src/hold/entry.rs",
            find: "        self.hold.until_lost().await;
",
            replace: "        if PLANTED {
            std::future::pending::<()>().await;
        }
        self.hold.until_lost().await;
",
        }],
        caught_by: &["AnswersInTime", "WhatIsTold"],
    },
    Plant {
        name: "work_goes_on",
        what: "Work under a hold goes on after its deadline.",
        edits: &[Edit {
            file: "src/hold/entry.rs",
            find: "        let mut lost = pin!(self.lost());
",
            replace: "        if PLANTED {
            return Ok(work.await);
        }
        let mut lost = pin!(self.lost());
",
        }],
        caught_by: &["TrustEndsEarly"],
    },
    Plant {
        name: "work_outlives_a_late_timer",
        what: "Work under a hold is stopped by a timer, not by the clock.",
        edits: &[Edit {
            file: "src/hold/entry.rs",
            find: "            if !self.is_held() {
                return Poll::Ready(Err(self.hold.lost()));
",
            replace: "            if !self.is_held() && !PLANTED {
                return Poll::Ready(Err(self.hold.lost()));
",
        }],
        caught_by: &["TrustEndsEarly"],
    },
    Plant {
        name: "inner_release_gives_back",
        what: "Whoever leaves an inner entry gives all votes back.",
        edits: &[Edit {
            file: "src/hold/held.rs",
            find: "let release = self.record.release(&self.id, state.count, false);",
            replace: "let count = if PLANTED { 0 } else { state.count };
            let release = self.record.release(&self.id, count, false);",
        }],
        caught_by: &["TrustEndsEarly", "RenewalNeverHarms"],
    },
    Plant {
        name: "reentry_is_not_counted",
        what: "The first of several guards of a hold ends it.",
        edits: &[
            Edit {
                file: "src/hold/held/rounds.rs",
                find: "state.count += entries;",
                replace: "state.count += if PLANTED { 0 } else { entries };",
            },
            Edit {
                file: "src/hold/held.rs",
                find: "state.count -= 1;",
                replace: "state.count = if PLANTED { 0 } else { state.count - 1 };",
            },
        ],
        caught_by: &["MinorityChangesNothing"],
    },
];
