//! Bugs in asking, in undoing and in giving back.

use crate::plant::{Edit, Plant};

pub(crate) const PLANTS: &[Plant] = &[
    Plant {
        name: "counts_the_answered",
        what: "A majority of the voters that answered is enough.",
        edits: &[Edit {
            file: "src/engine/votes.rs",
            find: "self.granted() >= self.quorum.needed()",
            replace: "self.granted() >= self.quorum.needed()
            || PLANTED
                && self.open() == 0
                && 2 * self.granted() > self.quorum.voters() - self.unknown()",
        }],
        caught_by: &["TrustEndsEarly", "Exclusion"],
    },
    Plant {
        name: "one_vote_short",
        what: "Half of an even number of voters is enough.",
        edits: &[Edit {
            file: "src/engine/votes.rs",
            find: "self.voters / 2 + 1",
            replace: "if PLANTED { self.voters.div_ceil(2) } else { self.voters / 2 + 1 }",
        }],
        caught_by: &["TrustEndsEarly", "Exclusion"],
    },
    Plant {
        name: "validity_from_the_reply",
        what: "Trust counts from the last answer, not from before the first request.",
        edits: &[Edit {
            file: "src/coordinator/attempt.rs",
            find: "return Ok(Won::new(claim, (started, rules), token, heard));",
            replace: "let started = if PLANTED { self.clock.now() } else { started };
                    return Ok(Won::new(claim, (started, rules), token, heard));",
        }],
        caught_by: &["TrustEndsEarly"],
    },
    Plant {
        name: "no_drift",
        what: "Trust lasts for the whole lease.",
        edits: &[Edit {
            file: "src/engine/validity.rs",
            find: "self.lease.saturating_sub(self.drift)",
            replace: "if PLANTED { self.lease } else { self.lease.saturating_sub(self.drift) }",
        }],
        caught_by: &["TrustEndsEarly"],
    },
    Plant {
        name: "same_hold_each_time",
        what: "Every attempt of a client asks for the same hold.",
        edits: &[Edit {
            file: "src/words/ids.rs",
            find: "self.next.fetch_add(1, Ordering::Relaxed)",
            replace: "self.next.fetch_add(u64::from(!PLANTED), Ordering::Relaxed)",
        }],
        caught_by: &["RenewalNeverHarms", "Exclusion", "FairOrder"],
    },
    Plant {
        name: "undoes_known_grants",
        what: "An undo goes to none but the voters that are known to have granted.",
        edits: &[Edit {
            file: "src/engine/votes.rs",
            find: "        let may = |verdict: &Option<Verdict>| {
",
            replace: "        let may = |verdict: &Option<Verdict>| {
            if PLANTED {
                return *verdict == Some(Verdict::Granted);
            }
",
        }],
        caught_by: &["NothingLeaks", "FewestTrips"],
    },
    Plant {
        name: "undoes_nothing",
        what: "An attempt that is lost or given up keeps its votes.",
        edits: &[Edit {
            file: "src/coordinator/claim.rs",
            find: "if voters.is_empty() {",
            replace: "if voters.is_empty() || PLANTED {",
        }],
        caught_by: &["NothingLeaks"],
    },
    Plant {
        name: "undoes_only_the_lost",
        what: "An attempt whose caller goes away keeps its votes.",
        edits: &[
            Edit {
                file: "src/coordinator/claim.rs",
                find: "owed: (0..coordinator.panel.quorum.voters()).collect(),",
                replace: "owed: (0..coordinator.panel.quorum.voters())
                .filter(|_| !PLANTED)
                .collect(),",
            },
            Edit {
                file: "src/coordinator/attempt.rs",
                find: "                Next::Won(_) => {
",
                replace: "                Next::Won(_) => {
                    if PLANTED {
                        claim.narrow((0..self.panel.quorum.voters()).collect(), true);
                    }
",
            },
        ],
        caught_by: &["NothingLeaks"],
    },
    Plant {
        name: "waits_for_all_grants",
        what: "An attempt is won when all voters have answered.",
        edits: &[Edit {
            file: "src/engine/attempt.rs",
            find: "if self.votes.is_won() {",
            replace: "if self.votes.is_won() && !(PLANTED && self.votes.is_open()) {",
        }],
        caught_by: &["FewestTrips"],
    },
    Plant {
        name: "releases_at_a_majority",
        what: "A release is sent to as many voters as make a majority.",
        edits: &[Edit {
            file: "src/coordinator/panel.rs",
            find: "Replies(self.voters.iter()\
                   .map(|voter| Some(voter.insist(call.clone(), until))).collect())",
            replace: "let count = if PLANTED { self.quorum.needed() } else { self.voters.len() };
        let asked = |(number, voter): (usize, &Voter)| {
            (number < count).then(|| voter.insist(call.clone(), until))
        };
        Replies(self.voters.iter().enumerate().map(asked).collect())",
        }],
        caught_by: &["NothingLeaks"],
    },
    Plant {
        name: "releases_once",
        what: "A release is not sent again to a voter that does not answer.",
        edits: &[Edit {
            file: "src/hold/held.rs",
            find: "        self.coordinator.panel.insist_all(&release, now + state.longest)
",
            replace: "        if PLANTED {
            return self.coordinator.panel.ask_all(&release);
        }
        self.coordinator.panel.insist_all(&release, now + state.longest)
",
        }],
        caught_by: &["NothingLeaks"],
    },
    Plant {
        name: "release_awaits_nobody",
        what: "A release returns before a majority has confirmed it.",
        edits: &[Edit {
            file: "src/hold/entry.rs",
            find: "        let votes = self.hold.confirm(replies).await;
",
            replace: "        if PLANTED {
            return Ok(());
        }
        let votes = self.hold.confirm(replies).await;
",
        }],
        caught_by: &["FewestTrips"],
    },
    Plant {
        name: "release_awaits_everybody",
        what: "A release returns when all voters have answered.",
        edits: &[Edit {
            file: "src/engine/votes.rs",
            find: "self.is_won() || self.lacks_majority() \
                   || self.lacks_quorum() || !self.is_open()",
            replace: "!PLANTED && (self.is_won() || self.lacks_majority() || self.lacks_quorum())
            || !self.is_open()",
        }],
        caught_by: &["FewestTrips"],
    },
    Plant {
        name: "release_calls_nobody",
        what: "A release does not call the channel.",
        edits: &[Edit {
            file: "src/hold/held.rs",
            find: "self.record.release(&self.id, 0, true)",
            replace: "self.record.release(&self.id, 0, !PLANTED)",
        }],
        caught_by: &["FewestTrips"],
    },
];
