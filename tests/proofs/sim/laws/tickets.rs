//! A ticket is resumed once at most, and by nobody who does not know its secret; between the hold
//! that was detached and the one that resumes it nobody has the lock; and attempts that fail leave
//! it as good as it was.

use quorate::HoldTicket;

use super::tokens;
use crate::sim::prelude::*;

/// The lock that is handed over by tickets.
pub(crate) const LOCK: Lock = Lock::Mutex(1);

/// A hold that somebody parked.
#[derive(Clone)]
pub(crate) struct Parked {
    pub(crate) ticket: HoldTicket,
    /// The client that parks it.
    pub(crate) client: usize,
    /// The hold that was detached, and its token.
    pub(crate) hold: String,
    pub(crate) token: u64,
    /// For so long it is parked at least.
    pub(crate) until_ms: u64,
}

/// What is known of all of them.
#[derive(Default)]
pub(crate) struct Tickets {
    latest: Vec<Parked>,
    /// By parked hold: the one that resumed it.
    resumed: BTreeMap<String, String>,
}

pub(crate) fn parked(world: &World, parked: Parked) {
    locked(&world.tickets).latest.push(parked);
}

/// One of the latest, resumed or not.
pub(crate) fn any(world: &World, chance: u32) -> Option<Parked> {
    let tickets = locked(&world.tickets);
    let back = 1 + chance as usize % 3;
    let at = tickets.latest.len().checked_sub(back)?;
    tickets.latest.get(at).cloned()
}

/// Somebody got a guard by a ticket.
pub(crate) fn resumed(world: &World, parked: &Parked, hold: &str, token: u64, is_forged: bool) {
    let id = parked.ticket.hold().as_str();
    let before = locked(&world.tickets).resumed.insert(id.to_owned(), hold.to_owned());
    if is_forged {
        let what = format!("{hold} resumed {id} without its secret");
        world.breach(Law::Tickets, None, what);
    }
    let excuse = |other: &str| {
        let ledger = locked(&world.ledger);
        let lost = [id, other, &parked.hold].into_iter().find_map(|hold| ledger.excuse(hold));
        lost.or_else(|| ledger.excuse_of_two(&world.plan, hold, other))
    };
    if let Some(before) = before {
        let what = format!("{before} resumed {id}, and then {hold} did");
        world.breach(Law::Tickets, excuse(&before), what);
    }
    for other in tokens::between(world, LOCK, parked.token, token) {
        let what = format!("{other} came between {}, which was detached, and {hold}", parked.hold);
        world.breach(Law::Tickets, excuse(&other), what);
    }
}

/// Somebody was told that a ticket is no good any more.
pub(crate) fn ended(world: &World, parked: &Parked, asked_ms: u64, error: &Error) {
    if world.plan.mood == Mood::Chaos || asked_ms.max(world.now_ms()) >= parked.until_ms {
        return;
    }
    let id = parked.ticket.hold().as_str();
    let is_resumed = locked(&world.tickets).resumed.contains_key(id);
    if !is_resumed {
        let excuse = locked(&world.ledger).excuse(id);
        let what = format!("nobody resumed {id} of client {}: {error}", parked.client);
        world.breach(Law::Tickets, excuse, what);
    }
}
