//! What a schedule does with its first mutex, as steps of the specification in `tests/proofs/spec`.

use quorate::embedded::Reply;

use crate::sim::prelude::*;

/// Something that voters did or clients were told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// So much time passed.
    Passed(u64),
    /// A voter gave its vote to one that asked for the lock, with this number.
    Voted { voter: usize, hold: String, number: u64 },
    /// A voter kept or gave again the vote of a hold that is renewed, and knows its number now.
    Kept { voter: usize, hold: String, number: u64 },
    /// A hold gave back the vote of a voter.
    Freed { voter: usize, hold: String },
    /// A voter lost its data.
    Lost { voter: usize },
    /// Somebody has the lock, for so long if it is not renewed.
    Won { hold: String, token: u64, left_ms: u64 },
    /// Renewed, it is held for so long from now on.
    Renewed { hold: String, left_ms: u64 },
}

/// What was seen so far.
pub(crate) struct Steps {
    is_on: bool,
    at_ms: u64,
    seen: Vec<Seen>,
    /// By hold: until when it was last seen to be held.
    until_ms: BTreeMap<String, u64>,
}

impl Steps {
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on, at_ms: 0, seen: Vec::new(), until_ms: BTreeMap::new() }
    }

    fn note(&mut self, now_ms: u64, seen: Seen) {
        if !self.is_on {
            return;
        }
        if now_ms > self.at_ms {
            self.seen.push(Seen::Passed(now_ms - self.at_ms));
            self.at_ms = now_ms;
        }
        self.seen.push(seen);
    }

    /// All that was seen; from here on nothing is.
    pub(crate) fn take(&mut self) -> Vec<Seen> {
        self.is_on = false;
        std::mem::take(&mut self.seen)
    }
}

fn note(world: &World, seen: Seen) {
    locked(&world.steps).note(world.now_ms(), seen);
}

/// A script ran. The second run of one request changes nothing: that is a law of its own.
pub(crate) fn ran(world: &World, voter: usize, run: &Ran<'_>) {
    let is_of_it = run.keys().next() == Some(&*Lock::Mutex(0).records[0]);
    let (Ok((1, ..)), Some(hold)) = (run.answer(), run.arg("hold")) else { return };
    if !is_of_it || run.again() {
        return;
    }
    let hold = hold.to_owned();
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"));
    match run.script() {
        "mutex/acquire" => {
            let Some(Reply::Text(told)) = run.more().first() else {
                panic!("a vote without a number: {run:?}")
            };
            note(world, Seen::Voted { voter, hold, number: number(told) });
        }
        "mutex/renew" => {
            let told = run.arg("token").unwrap_or_default();
            note(world, Seen::Kept { voter, hold, number: number(told) });
        }
        "mutex/release" if run.arg("count") == Some("0") => {
            note(world, Seen::Freed { voter, hold });
        }
        _ => {}
    }
}

pub(crate) fn lost(world: &World, voter: usize) {
    note(world, Seen::Lost { voter });
}

/// Somebody was given the lock.
pub(crate) fn won(world: &World, step: Step, guard: &Guard) {
    let (Some(token), Lock::Mutex(0)) = (guard.token(), step.lock()) else { return };
    let (hold, left_ms) = (guard.hold().as_str().to_owned(), whole_ms(guard.remaining()));
    let mut steps = locked(&world.steps);
    steps.until_ms.insert(hold.clone(), world.now_ms() + left_ms);
    steps.note(world.now_ms(), Seen::Won { hold, token: token.into(), left_ms });
}

/// Who is held for longer than when that was last seen was renewed.
pub(crate) fn look(world: &World, look: &Look) {
    let mut steps = locked(&world.steps);
    for held in look.held.iter().filter(|held| held.lock == Lock::Mutex(0)) {
        let (now_ms, left_ms) = (world.now_ms(), whole_ms(held.remaining));
        let Some(until_ms) = steps.until_ms.get_mut(&held.hold) else { continue };
        // A moment is told in whole milliseconds.
        if now_ms + left_ms > *until_ms + 1 {
            *until_ms = now_ms + left_ms;
            steps.note(now_ms, Seen::Renewed { hold: held.hold.clone(), left_ms });
        }
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
