//! What a voter does, as `lua/semaphore.lua` does it.

use super::rules::{Broken, CLIENTS, Rules};

/// What a client asks of a voter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Request {
    /// For slots, of which none is before its floor.
    Ask(Vec<u16>),
    /// For exactly these.
    Renew(Vec<u16>),
    GiveBack,
}

/// What a voter has given each client, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Voter {
    pub(crate) given: [Vec<u16>; CLIENTS],
}

impl Voter {
    /// Runs a request: the slots that the client has then, if that is what it asked for.
    pub(crate) fn run(
        &mut self,
        client: usize,
        request: &Request,
        rules: &Rules,
    ) -> Option<Vec<u16>> {
        match request {
            Request::Ask(floors) => self.ask(client, floors, rules),
            Request::Renew(slots) => self.renew(client, slots, rules),
            Request::GiveBack => {
                self.given[client].clear();
                None
            }
        }
    }

    fn is_taken(&self, slot: u16) -> bool {
        self.given.iter().flatten().any(|taken| *taken == slot)
    }

    fn ask(&mut self, client: usize, floors: &[u16], rules: &Rules) -> Option<Vec<u16>> {
        let (own, wanted) = (&self.given[client], rules.wanted[client]);
        let is_behind = own.iter().zip(floors).all(|(slot, floor)| slot >= floor);
        if own.len() == wanted && is_behind && !rules.is_broken(Broken::CopyMovesBack) {
            return Some(own.clone());
        }
        self.given[client].clear();
        let (mut found, mut from) = (Vec::new(), 0);
        for at in 0..wanted {
            from = floors.get(at).map_or(from, |floor| from.max(*floor));
            let is_free = |slot: &u16| !self.is_taken(*slot) || rules.is_broken(Broken::GivesTaken);
            let free = (from..rules.permits).find(is_free)?;
            found.push(free);
            from = free + 1;
        }
        self.given[client].clone_from(&found);
        Some(found)
    }

    fn renew(&mut self, client: usize, slots: &[u16], rules: &Rules) -> Option<Vec<u16>> {
        if !self.given[client].is_empty() && rules.is_broken(Broken::RenewalMovesNothing) {
            return None;
        }
        let own = std::mem::take(&mut self.given[client]);
        if rules.is_broken(Broken::RenewalTakes) {
            self.given.iter_mut().for_each(|given| given.retain(|slot| !slots.contains(slot)));
        }
        let others = slots.iter().any(|slot| self.is_taken(*slot));
        if others {
            // What it has elsewhere is free from now on.
            self.given[client] = own.into_iter().filter(|slot| slots.contains(slot)).collect();
            return None;
        }
        self.given[client] = slots.to_vec();
        Some(slots.to_vec())
    }
}
