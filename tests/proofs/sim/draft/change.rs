//! Plans in which the voters are changed: clients of the old voters, of both, and of the new ones.

use super::Draft;
use crate::sim::{
    locks::Lock,
    plan::{Change, Mood, Plan, Sets},
};

impl Draft {
    /// The voters, the clients and the troubles are drawn as ever. All clients of the old voters
    /// come to their end before the first client of the new voters begins: those wait for that.
    pub(super) fn change(mut self, seed: u64) -> Plan {
        let mood = self.pick(&[Mood::Calm, Mood::Chaos, Mood::Chaos]);
        self.forces = self.one_in(8);
        self.kinds = self.kinds();
        let times = self.times();
        let change = self.pick(&[
            Change { only_new: 2, both: 3, only_old: 0 },
            Change { only_new: 0, both: 3, only_old: 2 },
            Change { only_new: 3, both: 0, only_old: 3 },
            Change { only_new: 1, both: 2, only_old: 1 },
            Change { only_new: 1, both: 1, only_old: 1 },
            Change { only_new: 2, both: 1, only_old: 0 },
            Change { only_new: 0, both: 1, only_old: 2 },
            Change { only_new: 1, both: 0, only_old: 1 },
            Change { only_new: 1, both: 0, only_old: 3 },
        ]);
        let voters = self.voters_of(mood, change.voters());
        let locks = self.pick(&[1, 1, 1, Lock::MOST]);
        let heals_at_ms = self.between(4, 7) * times.lease_ms;
        let mut clients = Vec::new();
        while clients.len() < 3 {
            // The old ones are to end before the faults do, and the new ones to begin.
            clients.extend(self.clients(mood, times, locks, heals_at_ms / 2));
        }
        clients.truncate(5);
        for (number, client) in clients.iter_mut().enumerate() {
            client.sets = match number {
                0 => Sets::Old,
                1 => Sets::Joint,
                2 => Sets::New,
                _ => self.pick(&[Sets::Old, Sets::Joint, Sets::Joint, Sets::New]),
            };
        }
        let network = self.network(mood, times);
        let mut plan = Plan {
            change: Some(change),
            clients,
            network,
            ..Plan::new(seed, mood, voters, times, heals_at_ms)
        };
        plan.troubles = self.troubles(&plan);
        plan
    }
}
