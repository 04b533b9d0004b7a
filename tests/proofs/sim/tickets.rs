//! Holds that clients hand over by tickets, in some of the schedules.

use quorate::{HoldTicket, MutexGuard};
use rand::rngs::StdRng;

use crate::sim::{
    laws::{
        minority,
        tickets::{self, LOCK, Parked},
        tokens,
    },
    prelude::*,
    tasks::{GivenUp, Task, give_up},
};

/// What is held is a mutex with the client's own lease.
const STEP: Step = Step {
    pause_ms: 0,
    number: 1,
    kind: Kind::Plain,
    owner: None,
    lease: Lease::Default,
    how: How::Try,
    cancel: Cancel::Never,
    further: Further::Nothing,
    meanwhile: Meanwhile::Sleep(0),
    end: End::Drop,
};

impl Task {
    /// Parks holds and resumes those of any client, until the faults end.
    pub(crate) async fn pass_tickets(self) {
        let mut chance = chance(&self.world.plan, 6_000 + self.client);
        let lease_ms = self.world.plan.times.lease_ms;
        let mut own = Vec::new();
        while !self.healed.is_so() {
            self.pause(chance.random_range(1..=lease_ms / 2)).await;
            let ticket = tickets::any(&self.world, chance.random()).filter(|_| chance.random());
            let done = match ticket {
                Some(parked) => self.resume(&parked, &mut chance, &mut own).await,
                None => self.take_and_park(&mut chance, &mut own).await,
            };
            match done {
                Err(error) if error.is_closed() => return,
                Err(error) => self.say(|| format!("hands nothing over: {error}")),
                Ok(()) => {}
            }
        }
        self.end_own(own).await;
    }

    async fn take_and_park(&self, chance: &mut StdRng, own: &mut Vec<Parked>) -> Result<(), Error> {
        let _busy = self.world.busy(self.client, LOCK);
        let asked_ms = self.world.now_ms();
        let locked = match self.quorum.mutex(&LOCK.name).try_lock().await {
            Err(error) => {
                minority::failed(&self.world, self.client, "asking", &error, None);
                return Err(error);
            }
            Ok(locked) => locked,
        };
        let Some(guard) = locked else { return Ok(()) };
        self.say(|| format!("has {guard:?}"));
        self.hold_for_a_while(guard, asked_ms, chance, own).await
    }

    /// Shows a guard to the laws for a while, and ends it in some way.
    async fn hold_for_a_while(
        &self,
        guard: MutexGuard,
        asked_ms: u64,
        chance: &mut StdRng,
        own: &mut Vec<Parked>,
    ) -> Result<(), Error> {
        let guard = Arc::new(Guard::Mutex(guard));
        tokens::handed_out(&self.world, STEP, &guard, asked_ms, false);
        self.world.watch(self.client, STEP, &guard);
        self.pause(chance.random_range(0..=self.world.plan.times.lease_ms)).await;
        let Some(Guard::Mutex(guard)) = Arc::into_inner(guard) else {
            unreachable!("nobody else keeps it")
        };
        self.world.changed.notify_one();
        match chance.random_range(0..6) {
            0 => guard.release().await,
            1 => {
                drop(guard);
                Ok(())
            }
            _ => self.park(guard, chance, own).await,
        }
    }

    async fn park(
        &self,
        guard: MutexGuard,
        chance: &mut StdRng,
        own: &mut Vec<Parked>,
    ) -> Result<(), Error> {
        let (world, lease_ms) = (&self.world, self.world.plan.times.lease_ms);
        let _busy = world.busy(self.client, LOCK);
        let time_ms = chance.random_range(lease_ms / 2..=4 * lease_ms);
        let (view, token) = (guard.view(), guard.token().into());
        let hold = guard.hold().to_string();
        let until_ms = world.now_ms() + time_ms;
        self.say(|| format!("parks {hold} for {time_ms} ms"));
        let parked =
            give_up(guard.detach_for(Duration::from_millis(time_ms)), cancel(chance)).await;
        if view.is_held() {
            let what = format!("{hold} is held after it was detached");
            world.breach(Law::TrustEndsEarly, None, what);
        }
        let ticket = match parked {
            Err(GivenUp) => return Ok(()),
            Ok(Err(error)) => {
                self.failed_to("detach", &error);
                return Err(error);
            }
            Ok(Ok(ticket)) => ticket,
        };
        self.say(|| format!("has {ticket:?}"));
        if let Some(ends) = self.quorum.parked(&ticket) {
            let (world, client, label) = (Arc::clone(world), self.client, self.label.clone());
            let parking = async move {
                let _busy = world.busy(client, LOCK);
                let why = ends.await;
                world.note(&label, || format!("parks it no more: {why}"));
            };
            tokio::spawn(self.world.machines[self.client].run(parking));
        }
        let parked = Parked { ticket, client: self.client, hold, token, until_ms };
        own.push(parked.clone());
        tickets::parked(world, parked);
        Ok(())
    }

    async fn resume(
        &self,
        parked: &Parked,
        chance: &mut StdRng,
        own: &mut Vec<Parked>,
    ) -> Result<(), Error> {
        let world = &self.world;
        let _busy = world.busy(self.client, LOCK);
        let asked_ms = world.now_ms();
        let is_forged = chance.random_ratio(1, 8);
        let ticket = if is_forged { forged(&parked.ticket) } else { parked.ticket.clone() };
        self.say(|| format!("resumes {ticket:?}, forged: {is_forged}"));
        match give_up(self.quorum.resume(&ticket), cancel(chance)).await {
            Err(GivenUp) => {
                self.say(|| "gives up".into());
                Ok(())
            }
            Ok(Ok(guard)) => {
                self.say(|| format!("has resumed {guard:?}"));
                let token = guard.token().into();
                let hold = guard.hold().to_string();
                tickets::resumed(world, parked, &hold, token, is_forged);
                self.hold_for_a_while(guard, asked_ms, chance, own).await
            }
            Ok(Err(error)) => {
                if !error.is_ticket_ended() && !error.is_invalid() {
                    self.failed_to("resume", &error);
                } else if !is_forged {
                    tickets::ended(world, parked, asked_ms, &error);
                }
                Err(error)
            }
        }
    }

    /// A hold that has the votes of few voters may need one that is in quarantine: that is no loss of
    /// what somebody works under.
    fn failed_to(&self, what: &str, error: &Error) {
        if self.world.plan.mood == Mood::Calm {
            minority::failed(&self.world, self.client, what, error, None);
        }
    }

    /// Leaves nothing parked.
    async fn end_own(&self, own: Vec<Parked>) {
        for parked in own {
            let Some(ends) = self.quorum.parked(&parked.ticket) else { continue };
            let _busy = self.world.busy(self.client, LOCK);
            match self.quorum.resume(&parked.ticket).await {
                Ok(guard) => {
                    let (hold, token) = (guard.hold().to_string(), guard.token().into());
                    tickets::resumed(&self.world, &parked, &hold, token, false);
                    drop(guard.release().await);
                }
                Err(error) if error.is_closed() => return,
                Err(_) => drop(ends.await),
            }
        }
    }
}

fn cancel(chance: &mut StdRng) -> Cancel {
    match chance.random_range(0..6) {
        0 => Cancel::AfterPolls(chance.random_range(1..4)),
        1 => Cancel::AfterMs(chance.random_range(1..100)),
        _ => Cancel::Never,
    }
}

/// The same with another secret.
fn forged(ticket: &HoldTicket) -> HoldTicket {
    let mut text = ticket.to_string();
    let last = text.pop().expect("it has a secret");
    text.push(if last == '0' { '1' } else { '0' });
    text.parse().expect("any secret is one")
}
