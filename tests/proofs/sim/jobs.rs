//! A job that all clients of a schedule start, in some of them.

use quorate::Firing;
use rand::rngs::StdRng;

use crate::sim::{
    laws::firings::{self, JOB},
    prelude::*,
    tasks::Task,
};

/// For so long a firing is remembered: for longer than a schedule takes.
pub(crate) const KEEP: Duration = Duration::from_hours(1);

impl Task {
    /// Does the latest firing again and again, until the faults end.
    pub(crate) async fn do_jobs(self) {
        let mut chance = chance(&self.world.plan, 5_000 + self.client);
        let lease_ms = self.world.plan.times.lease_ms;
        let sets = self.world.plan.clients[self.client].sets;
        while !self.healed.is_so() {
            self.pause(chance.random_range(1..=self.world.plan.job_pause_ms())).await;
            if sets == Sets::Joint && chance.random_ratio(1, 3) {
                self.copy().await;
            }
            // A timer fires late, and never early.
            let late_ms = chance.random_range(0..=lease_ms / 4);
            let firing = self.world.now_ms().saturating_sub(late_ms) / (2 * lease_ms);
            match self.do_firing(firing, &mut chance).await {
                Err(error) if error.is_closed() => return,
                Err(error) => self.say(|| format!("does not do the firing {firing}: {error}")),
                Ok(()) => {}
            }
        }
    }

    async fn do_firing(&self, firing: u64, chance: &mut StdRng) -> Result<(), Error> {
        let lease_ms = self.world.plan.times.lease_ms;
        let once = self.quorum.once(JOB).keep(KEEP);
        let limit = Duration::from_millis(chance.random_range(0..=lease_ms));
        let works_ms = chance.random_range(0..=lease_ms / 2);
        let Some(guard) = once.enter_or_busy(Firing::from(firing), limit).await? else {
            self.say(|| format!("is told that {firing} is done"));
            firings::told(&self.world, self.client, firing);
            return Ok(());
        };
        let hold = guard.hold().to_string();
        if !guard.is_held() {
            return Ok(());
        }
        self.say(|| format!("works on the firing {firing} under {hold}"));
        firings::works(&self.world, self.client, &hold, firing);
        self.pause(works_ms).await;
        match chance.random_range(0..6) {
            // It fails, and gives the lock back.
            0 => guard.release().await,
            1 => {
                drop(guard);
                Ok(())
            }
            _ if !guard.is_held() => Ok(()),
            _ => {
                guard.done().await?;
                self.say(|| format!("has done the firing {firing} under {hold}"));
                firings::told(&self.world, self.client, firing);
                Ok(())
            }
        }
    }

    /// Has what is done copied: both sets know then of what was done before.
    async fn copy(&self) {
        let started_ms = self.world.now_ms();
        let before = firings::remembered(&self.world, self.client);
        match self.quorum.admin().copy_once().await {
            Ok(jobs) => {
                self.say(|| format!("has copied what is done of {jobs} jobs, {before:?} before"));
                // Where one lost it meanwhile, no majority may have had it when it was asked.
                let mut voters = 0..self.world.voters.len();
                let steady = voters.all(|voter| self.world.is_steady(voter, started_ms));
                if let Some(before) = before.filter(|_| steady) {
                    firings::told(&self.world, self.client, before);
                }
            }
            Err(error) => self.say(|| format!("does not copy: {error}")),
        }
    }
}
