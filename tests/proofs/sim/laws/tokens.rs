//! Tokens grow: the guard of an exclusive hold that is handed out after another's has the higher
//! one. And none is handed out before a majority of the voters stores its number.
//!
//! A mutex is one lock whether it is asked for in order or not; of a read/write lock the writes
//! have tokens. Entering again changes nothing. Where tasks of a client hand a hold on, each has a
//! higher token than the one before.

use crate::sim::prelude::*;

/// What was handed out so far.
#[derive(Default)]
pub(crate) struct Tokens {
    /// By lock, in order.
    given: BTreeMap<Lock, Vec<Given>>,
    /// The latest of each hold.
    of: BTreeMap<String, u64>,
}

struct Given {
    token: u64,
    hold: String,
}

impl Tokens {
    /// That of a hold that somebody was given.
    pub(crate) fn of(&self, hold: &str) -> Option<u64> {
        self.of.get(hold).copied()
    }
}

/// The holds of a lock whose tokens lie between these two.
pub(crate) fn between(world: &World, lock: Lock, from: u64, to: u64) -> Vec<String> {
    let tokens = locked(&world.tokens);
    let given = tokens.given.get(&lock).into_iter().flatten();
    let between = given.filter(|given| from < given.token && given.token < to);
    between.map(|given| given.hold.clone()).collect()
}

/// Somebody was given a guard of a lock that it had asked for since then. `is_inner`: under another
/// guard of the same hold.
pub(crate) fn handed_out(world: &World, step: Step, guard: &Guard, asked_ms: u64, is_inner: bool) {
    // A read has none.
    let Some(token) = guard.token().map(u64::from) else { return };
    let (hold, lock) = (guard.hold().as_str(), step.lock());
    let mut tokens = locked(&world.tokens);
    if let Some(before) = tokens.of.get(hold).copied() {
        let is_entered_again = before == token && (is_inner || step.owner.is_some());
        // From another task of its client.
        let is_handed_on = before < token && !is_inner && step.kind == Kind::Plain;
        if !is_entered_again && !is_handed_on {
            let what = format!("{hold} had the token {before} and now has {token}");
            world.breach(Law::TokensGrow, None, what);
        }
        if !is_handed_on {
            return;
        }
    }
    tokens.of.insert(hold.to_owned(), token);
    let given = tokens.given.entry(lock).or_default();
    for other in given.iter().filter(|other| other.token >= token) {
        let what =
            format!("{hold} has the token {token}, {} before it {}", other.hold, other.token);
        world.breach(Law::TokensGrow, excuse(world, lock, hold, &other.hold), what);
    }
    given.push(Given { token, hold: hold.to_owned() });
    drop(tokens);
    is_stored(world, lock, (hold, token), asked_ms);
}

/// Where a voter forgot what the client of the later hold counted on, and it could not know.
fn excuse(world: &World, lock: Lock, hold: &str, other: &str) -> Option<&'static str> {
    let ledger = locked(&world.ledger);
    let forgotten = ledger.amnesia.excuse_of_token(&world.plan, lock, ledger.client(hold));
    ledger.excuse_of_two(&world.plan, hold, other).or(forgotten)
}

fn is_stored(world: &World, lock: Lock, (hold, token): (&str, u64), asked_ms: u64) {
    let knows = |voter: &EmbeddedVoter| {
        let records = voter.records();
        let record = records.iter().find(|record| record.key == lock.fence);
        let number = record.and_then(|record| record.fields.first());
        number
            .and_then(|(_, number)| number.parse().ok())
            .is_some_and(|number: u64| number >= token)
    };
    // Looking lets what is due happen there, and that is told.
    let knowing: Vec<bool> = world.voters.iter().map(knows).collect();
    let ledger = locked(&world.ledger);
    let knew = |voter: usize| knowing[voter] || ledger.amnesia.lost_fence(voter, lock, asked_ms);
    let stored: Vec<usize> = (0..knowing.len()).filter(|voter| knew(*voter)).collect();
    let client = ledger.client(hold);
    drop(ledger);
    if !world.plan.decide(client, |voter| stored.contains(&voter)) {
        let what = format!("{hold} has the token {token}: the voters {stored:?} store it");
        world.breach(Law::TokensGrow, None, what);
    }
}
