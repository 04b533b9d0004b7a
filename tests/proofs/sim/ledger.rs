//! What has happened so far that the laws must know of.

use crate::sim::{amnesia::Amnesia, prelude::*};

/// What the promise does not cover, and who has to do with what.
#[derive(Default)]
pub(crate) struct Ledger {
    /// What voters forgot, or let expire by a clock beyond the allowance.
    pub(crate) amnesia: Amnesia,
    /// The holds that somebody ended by force.
    pub(crate) forced: BTreeSet<String>,
    /// The holds that were seen not to be held while somebody had their guard.
    pub(crate) over: BTreeSet<String>,
    /// The clients, by their ids.
    pub(crate) clients: BTreeMap<String, usize>,
    /// What each client does about each lock.
    pub(crate) about: BTreeMap<(usize, Lock), About>,
    /// The holds that were held while another was.
    pub(crate) overlapped: BTreeSet<String>,
    /// By when each hold that somebody ended by force must be over.
    pub(crate) forced_until_ms: BTreeMap<String, u64>,
    /// When each hold was last seen, and what was left of it.
    pub(crate) remaining: BTreeMap<String, (u64, Duration)>,
    /// The shortest lease that each hold asked for.
    pub(crate) leases_ms: BTreeMap<String, u64>,
    /// The voters whose clock is beyond the allowance now.
    pub(crate) wild: BTreeSet<usize>,
    /// How many troubles keep the machine of each client from going on.
    pub(crate) still: BTreeMap<usize, u32>,
    /// The clients that are no more.
    pub(crate) dead: BTreeSet<usize>,
    /// The clients that were closed before the end.
    pub(crate) closed: BTreeSet<usize>,
    /// The clients whose machine was suspended at some time.
    pub(crate) suspended: BTreeSet<usize>,
    /// When a voter's data or clock was last changed from outside.
    pub(crate) tampered_ms: BTreeMap<usize, u64>,
    /// By how much clocks were put back: votes last so much longer.
    pub(crate) put_back_ms: i64,
    /// By how much each client's wall clock that was set is ahead.
    pub(crate) walls_ms: BTreeMap<usize, i64>,
    /// The clients whose machines stand still with their clocks.
    pub(crate) pausing: BTreeSet<usize>,
    /// The holds that were theirs, or were asked for, before they did.
    pub(crate) paused: BTreeSet<String>,
    /// When a machine last stopped or went on.
    pub(crate) disturbed_ms: BTreeMap<usize, u64>,
}

/// Whether a client asks for a lock, and when it last began or ended something with it.
#[derive(Default)]
pub(crate) struct About {
    pub(crate) asking: u32,
    pub(crate) touched_ms: u64,
}

impl Ledger {
    /// Whether a client is connected.
    pub(crate) fn has_clients(&self) -> bool {
        self.amnesia.connected().any(|client| !self.closed.contains(&client))
    }

    /// Whether some hold of this client was seen not to be held.
    pub(crate) fn has_lost(&self, client: usize) -> bool {
        self.over.iter().any(|hold| self.client(hold) == Some(client))
    }

    /// Whose hold it is.
    pub(crate) fn client(&self, hold: &str) -> Option<usize> {
        let (id, _) = hold.rsplit_once(':')?;
        self.clients.get(id).copied()
    }

    /// One of the troubles that keep a machine is over; whether it was the last.
    pub(crate) fn goes_on(&mut self, client: usize) -> bool {
        let still = self.still.entry(client).or_default();
        *still = still.saturating_sub(1);
        let goes_on = *still == 0;
        if goes_on {
            self.pausing.remove(&client);
        }
        goes_on
    }

    /// The machine of a client stands still with its clocks. The client cannot know for how long
    /// before it has heard its voters again.
    pub(crate) fn pauses(&mut self, client: usize) {
        let holds = self.leases_ms.keys().filter(|hold| self.client(hold) == Some(client));
        let holds: Vec<String> = holds.cloned().collect();
        self.paused.extend(holds);
        self.pausing.insert(client);
    }

    /// Why a hold may be trusted for too long.
    pub(crate) fn excuse_of_trust(&self, hold: &str) -> Option<&'static str> {
        let paused = self.paused.contains(hold).then_some("its machine stood still unnoticed");
        self.excuse_of_force(hold).or(paused)
    }

    /// Why this hold may be lost although a majority of the voters is well.
    pub(crate) fn excuse_of_loss(&self, hold: &str) -> Option<&'static str> {
        let overlapped = self.overlapped.contains(hold).then_some("another hold had its votes");
        self.excuse(hold).or(overlapped)
    }

    pub(crate) fn asked(&mut self, hold: &str, lease_ms: u64) {
        let shortest = self.leases_ms.entry(hold.to_owned()).or_insert(lease_ms);
        *shortest = lease_ms.min(*shortest);
        // It was on its way when the machine began to stand still.
        if self.client(hold).is_some_and(|client| self.pausing.contains(&client)) {
            self.paused.insert(hold.to_owned());
        }
    }

    fn excuse_of_force(&self, hold: &str) -> Option<&'static str> {
        self.forced.contains(hold).then_some("it was ended by force")
    }

    /// Why the promise does not cover this hold, if it does not.
    pub(crate) fn excuse(&self, hold: &str) -> Option<&'static str> {
        self.excuse_of_force(hold).or_else(|| self.amnesia.excuse(hold))
    }

    /// Why two holds may be held at one moment that exclude each other.
    pub(crate) fn excuse_of_two(
        &self,
        plan: &Plan,
        one: &str,
        other: &str,
    ) -> Option<&'static str> {
        let beside = |hold: &str, rival: &str| {
            let rival = self.client(rival);
            self.excuse_of_trust(hold).or_else(|| self.amnesia.excuse_beside(plan, hold, rival))
        };
        beside(one, other).or_else(|| beside(other, one))
    }
}
