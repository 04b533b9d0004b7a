//! Whoever stood in the queue on a majority of the voters comes before everybody who asked later,
//! whether these asked in order or not; with read/write locks before everybody whom it excludes,
//! but for readers that come first or last in any case.
//!
//! A place stands on a voter while the voter has it, alive, with the ticket that its waiter fixed.
//! Those that stand on a majority are noted when a call begins. If that call gets the lock, each of
//! them must have had it before, have left, or have been forgotten by so many voters that what is
//! left is no majority.

use quorate::embedded::Reply;

use crate::sim::prelude::*;

/// What is known of the queues.
#[derive(Default)]
pub(crate) struct Queues {
    /// The tickets that the waiters told the voters.
    fixed: BTreeMap<String, String>,
    /// How it was asked for a read/write lock from each place.
    turns: BTreeMap<String, Turn>,
    /// When each voter last heard from a place, and for how long that counts.
    asked: BTreeMap<(usize, String), (u64, u64)>,
    /// Where a place stood and stands no more.
    gone: BTreeMap<(usize, String), Gone>,
    /// The places that told a voter that they leave, and after which of their bids.
    left: BTreeMap<String, u64>,
    /// The holds and the places that had the lock.
    had: BTreeSet<String>,
    /// What is a breach if the place turns out to have this ticket.
    doubts: Vec<(String, String, String)>,
    /// What each bid without a ticket was told on each voter, and when.
    told: BTreeMap<String, BTreeMap<usize, (String, u64)>>,
    /// The places whose first ticket was looked at.
    judged: BTreeSet<String>,
    /// Every bid that ran: when, where, and from which place.
    pub(crate) bids: Vec<(u64, usize, String)>,
}

/// The end of a place on a voter.
struct Gone {
    /// The number of the script with which it was seen.
    script: u64,
    why: Why,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// Its waiter left, or has another ticket, or was owed no turn and did not hear a call.
    Left,
    /// The voter lost it, or its clock was set or ran wild.
    Forgotten,
    /// Nothing was heard from its waiter for as long as it counts.
    Silent,
    /// Somebody ended a vote that was asked for from it.
    Forced,
    /// It was given permits of a semaphore, which may have permits for others.
    Served,
}

/// Where in the queue of a read/write lock somebody comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// A writer.
    Write,
    /// A reader that lets nobody pass.
    First,
    /// A reader among the writers.
    Next,
    /// A reader behind all writers.
    Last,
}

/// The places that stood on a majority when a call began.
pub(crate) struct Before {
    lock: Lock,
    kind: Kind,
    script: u64,
    stood: Vec<Stood>,
}

struct Stood {
    place: String,
    ticket: String,
    voters: Vec<usize>,
}

/// What comes before the last dot, for a hold that was asked for from a place.
pub(crate) fn place_of(hold: &str) -> Option<&str> {
    let (place, number) = hold.rsplit_once('.')?;
    // A read under a write from a place is not from one.
    number.parse::<u64>().is_ok().then_some(place)
}

/// An attempt's number ends with six random digits.
const CHANCE: u64 = 1_000_000;

/// An attempt without them.
fn numbered(bid: &str) -> String {
    let place = bid.rsplit_once('.').map_or(bid, |(place, _)| place);
    format!("{place}.{}", number_of(bid))
}

/// Which bid of its place a hold is.
fn number_of(hold: &str) -> u64 {
    let number: Option<u64> = hold.rsplit_once('.').and_then(|(_, number)| number.parse().ok());
    number.unwrap_or(0) / CHANCE
}

/// Who stands before a call that begins now.
pub(crate) fn who_stands(world: &World, lock: Lock, kind: Kind) -> Before {
    // What runs while the voters are looked at comes after this: a place that was seen before it
    // was served is no place that is passed.
    let script = world.scripts();
    let mut standing: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    // To look at a voter is also to let it do what is due, and tell what it did.
    let look = |voter: &EmbeddedVoter| {
        let records = voter.records();
        let waits = fields(&records, &lock.queue).is_some();
        (waits.then(|| time_ms(voter)).flatten(), records)
    };
    let seen: Vec<_> = world.voters.iter().map(look).collect();
    let queues = locked(&world.queues);
    for (number, (now_ms, records)) in seen.iter().enumerate() {
        // None of a voter that does not run.
        let Some(now_ms) = now_ms else { continue };
        for (place, ticket) in queues.alive(records, lock, *now_ms) {
            standing.entry((place, ticket)).or_default().push(number);
        }
    }
    standing.retain(|(place, _), voters| {
        decide(world, place, voters) && comes_behind(kind, queues.turn(place))
    });
    drop(queues);
    let stood = standing.into_iter();
    let stood = stood.map(|((place, ticket), voters)| Stood { place, ticket, voters }).collect();
    Before { lock, kind, script, stood }
}

/// Whether one who asks now comes behind a place that stands.
fn comes_behind(kind: Kind, place: Turn) -> bool {
    match kind {
        Kind::Plain | Kind::Fair | Kind::Permits { .. } | Kind::Election | Kind::All => true,
        Kind::Write => place != Turn::Last,
        // Readers enter together.
        Kind::Read(Preference::Writers | Preference::Fair) => place == Turn::Write,
        Kind::Read(_) => false,
    }
}

/// By the voter's own clock.
pub(crate) fn time_ms(voter: &EmbeddedVoter) -> Option<u64> {
    let Ok(Reply::List(parts)) = voter.command(&["TIME"]) else { return None };
    let part = |at: usize| match parts.get(at) {
        Some(Reply::Text(text)) => text.parse::<u64>().ok(),
        _ => None,
    };
    Some(part(0)? * 1_000 + part(1)? / 1_000)
}

fn fields<'a>(records: &'a [Record], key: &str) -> Option<&'a [(String, String)]> {
    records.iter().find(|record| record.key == key).map(|record| record.fields.as_slice())
}

/// A call got the lock.
pub(crate) fn granted(world: &World, before: &Before, hold: &str) {
    let records: Vec<_> = world.voters.iter().map(EmbeddedVoter::records).collect();
    let mut queues = locked(&world.queues);
    if !queues.had.insert(hold.to_owned()) || hold.contains('/') {
        // Its owner entered again, or reads what it writes.
        return;
    }
    queues.had.extend(place_of(hold).map(str::to_owned));
    for Stood { place, ticket, voters } in &before.stood {
        if queues.had.contains(place) || queues.left.contains_key(place) || is_dead(world, place) {
            continue;
        }
        let stands = |voter: usize| {
            let standing = queues.standing(&records[voter], before.lock);
            standing.iter().any(|(one, its)| one == place && its == ticket)
        };
        let ends: Vec<(usize, Why)> = voters
            .iter()
            .filter_map(|voter| {
                let gone = queues.gone.get(&(*voter, place.clone()));
                match gone.filter(|gone| gone.script > before.script) {
                    Some(gone) => Some((*voter, gone.why)),
                    None if stands(*voter) => None,
                    None => Some((*voter, queues.why_silent(world, *voter, place)?)),
                }
            })
            .collect();
        if ends.iter().any(|(_, why)| *why == Why::Left) {
            continue;
        }
        let served = ends.iter().filter(|(_, why)| *why == Why::Served).count();
        if served > 0 && voters.len() - ends.len() < world.plan.quorum() {
            continue;
        }
        let what = format!(
            "{hold} ({:?}) passed {place}, which stood with ticket {ticket} on {voters:?}",
            before.kind
        );
        // Nothing else goes wrong at the others.
        let is_lost =
            |(voter, why): &(usize, Why)| *why == Why::Forced || world.plan.voters[*voter].troubled;
        let lost: BTreeMap<usize, Why> = ends.into_iter().filter(is_lost).collect();
        let left = voters.iter().copied().filter(|voter| !lost.contains_key(voter));
        let why = |why| lost.values().any(|one| *one == why);
        let excuse = if decide(world, place, &left.collect::<Vec<_>>()) {
            None
        } else if why(Why::Forgotten) {
            Some("a voter forgot its place")
        } else if why(Why::Forced) {
            Some("it was ended by force")
        } else {
            Some("a voter did not hear from it in time")
        };
        match queues.fixed.get(place) {
            Some(fixed) if fixed == ticket => world.breach(Law::FairOrder, excuse, what),
            // It may yet tell the voters that this is its ticket.
            None if excuse.is_none() => {
                queues.doubts.push((place.clone(), ticket.clone(), what));
            }
            _ => {}
        }
    }
}

/// Whether these voters are a majority, of each set that the client of the place has.
fn decide(world: &World, place: &str, voters: &[usize]) -> bool {
    let client = locked(&world.ledger).client(place);
    world.plan.decide(client, |voter| voters.contains(&voter))
}

fn is_dead(world: &World, place: &str) -> bool {
    let ledger = locked(&world.ledger);
    let is_gone = |client| ledger.dead.contains(&client) || ledger.closed.contains(&client);
    ledger.client(place).is_some_and(is_gone)
}

/// A script ran.
pub(crate) fn ran(world: &World, voter: usize, run: &Ran<'_>, before: &[Record], after: &[Record]) {
    let mut queues = locked(&world.queues);
    if let Some(place) = leaves(run) {
        let last = run.arg("hold").map_or(0, number_of);
        queues.left.entry(place.to_owned()).or_insert(last);
    }
    for record in before.iter().filter(|record| record.key.ends_with(":queue")) {
        let now = fields(after, &record.key).unwrap_or_default();
        let gone = record
            .fields
            .iter()
            .filter(|(place, ticket)| !now.iter().any(|(one, its)| one == place && its == ticket));
        for (place, _) in gone {
            let moved = now.iter().any(|(one, _)| one == place);
            let served = record.key.replace(":queue", ":served");
            let served = fields(after, &served).unwrap_or_default();
            let why = if is_forced(run, place) {
                Some(Why::Forced)
            } else if served.iter().any(|(one, _)| one == place) {
                Some(Why::Served)
            } else if moved || queues.left.contains_key(place) || is_passed_over(run, place) {
                Some(Why::Left)
            } else {
                queues.why_silent(world, voter, place)
            };
            let Some(why) = why else {
                let what = format!("{} took {place} out of a queue", run.script());
                world.breach(Law::FairOrder, None, what);
                continue;
            };
            let gone = Gone { script: world.scripts(), why };
            queues.gone.insert((voter, place.clone()), gone);
        }
    }
    let places = ["mutex/acquire", "rw/acquire", "semaphore/acquire", "election/acquire"];
    if places.contains(&run.script()) {
        queues.bid(world, voter, run);
    }
}

/// The place that a script takes out of its queue.
fn leaves<'a>(run: &'a Ran<'_>) -> Option<&'a str> {
    if let ("mutex/pass", Ok((1, ..))) = (run.script(), run.answer()) {
        return run.arg("former").and_then(place_of);
    }
    let place = run.arg("place").filter(|place| !place.is_empty());
    place.filter(|_| run.script().ends_with("/release"))
}

/// The script called this place, which is owed no turn in order, and nobody heard it.
fn is_passed_over(run: &Ran<'_>, place: &str) -> bool {
    place.contains(":~") && matches!(run.script(), "mutex/release" | "mutex/force_release")
}

/// The place goes with a vote that is ended by force, whether its bid was won or not.
fn is_forced(run: &Ran<'_>, place: &str) -> bool {
    run.script().ends_with("/force_release") && run.arg("hold").and_then(place_of) == Some(place)
}

impl Queues {
    /// Who waits for a mutex waits to have it alone.
    fn turn(&self, place: &str) -> Turn {
        self.turns.get(place).copied().unwrap_or(Turn::Write)
    }

    /// The places that a voter has, with their tickets.
    fn standing(&self, records: &[Record], lock: Lock) -> Vec<(String, String)> {
        let queue = fields(records, &lock.queue).unwrap_or_default();
        let writers = fields(records, &lock.writers).unwrap_or_default();
        // A writer stands before readers by its mark.
        let is_whole = |place: &str| {
            !matches!(lock, Lock::Rw(_))
                || self.turn(place) != Turn::Write
                || writers.iter().any(|(one, _)| one == place)
        };
        queue.iter().filter(|(place, _)| is_whole(place)).cloned().collect()
    }

    /// Those of them that count.
    fn alive(&self, records: &[Record], lock: Lock, now_ms: u64) -> Vec<(String, String)> {
        let mut standing = self.standing(records, lock);
        let alive = fields(records, &lock.alive).unwrap_or_default();
        let counts = |place: &str| {
            let until_ms = alive.iter().find(|(one, _)| one == place);
            until_ms.is_some_and(|(_, ms)| ms.parse().is_ok_and(|ms: u64| ms > now_ms))
        };
        standing.retain(|(place, _)| counts(place));
        standing
    }

    /// Why a place is gone from a voter whom nobody told to take it away. `None`: for no reason.
    fn why_silent(&self, world: &World, voter: usize, place: &str) -> Option<Why> {
        let Some((asked_ms, wait_ms)) = self.asked.get(&(voter, place.to_owned())).copied() else {
            // It may have been copied from the queue of another voter.
            let is_copy = |one: &Trouble| match one.what {
                What::VoterCopied { voter: copy, .. } => copy == voter,
                _ => false,
            };
            return world.plan.troubles.iter().any(is_copy).then_some(Why::Forgotten);
        };
        let is_wild = locked(&world.ledger).wild.contains(&voter);
        if is_wild || !world.is_steady(voter, asked_ms) {
            return Some(Why::Forgotten);
        }
        let silent_ms = world.now_ms() - asked_ms;
        (silent_ms * 101 / 100 + 2 >= wait_ms).then_some(Why::Silent)
    }

    fn bid(&mut self, world: &World, voter: usize, run: &Ran<'_>) {
        let number = run.arg("hold").map_or(0, number_of);
        let shares = run.script() == "rw/acquire";
        let (Some(place), Some(ticket), Some(wait_ms)) = (
            run.arg("hold").and_then(place_of),
            run.arg("ticket"),
            run.arg("wait_ms").and_then(|wait| wait.parse().ok()),
        ) else {
            return;
        };
        if shares {
            let turn = match (run.arg("mode"), run.arg("turn")) {
                (Some("read"), Some("first")) => Turn::First,
                (Some("read"), Some("last")) => Turn::Last,
                (Some("read"), _) => Turn::Next,
                _ => Turn::Write,
            };
            self.turns.insert(place.to_owned(), turn);
        }
        if self.left.get(place).is_some_and(|last| number > *last) {
            let what = format!("{place} left the queue and waits on");
            world.breach(Law::FairOrder, None, what);
        }
        // Where others gave it permits, it does not ask for its place until its ticket is fixed.
        if !ticket.is_empty() || run.arg("floors").is_none_or(str::is_empty) {
            self.asked.insert((voter, place.to_owned()), (world.now_ms(), wait_ms));
        }
        self.bids.push((world.now_ms(), voter, place.to_owned()));
        if ticket.is_empty() {
            self.is_told(world, voter, run);
            return;
        }
        self.judge_first(world, voter, run, (place, ticket));
        let fixed = self.fixed.entry(place.to_owned()).or_insert_with(|| ticket.to_owned());
        if fixed != ticket {
            let what = format!("the ticket of {place} was {fixed} and is {ticket}");
            world.breach(Law::FairOrder, None, what);
        }
        let (confirmed, open) =
            std::mem::take(&mut self.doubts).into_iter().partition(|(one, _, _)| one == place);
        self.doubts = open;
        let confirmed: Vec<(String, String, String)> = confirmed;
        for (_, stood_with, what) in confirmed {
            if stood_with == ticket {
                world.breach(Law::FairOrder, None, what);
            }
        }
    }

    fn is_told(&mut self, world: &World, voter: usize, run: &Ran<'_>) {
        let Some(bid) = run.arg("hold") else { return };
        let (Ok((0 | 1 | 3, ..)), Some(Reply::Int(ticket))) = (run.answer(), run.more().get(1))
        else {
            return;
        };
        let told = self.told.entry(numbered(bid)).or_default();
        told.entry(voter).or_insert_with(|| (ticket.to_string(), world.now_ms()));
    }

    /// Where a majority told the waiter one ticket, and it heard that before it told any, that is
    /// its ticket, whatever slower voters said. What voters that are well say is heard in time.
    fn judge_first(
        &mut self,
        world: &World,
        voter: usize,
        run: &Ran<'_>,
        (place, ticket): (&str, &str),
    ) {
        let is_well = |voter: &usize| !world.plan.voters[*voter].troubled;
        let is_clients = world.machines.iter().any(|machine| machine.label() == run.client());
        if !is_well(&voter) || !is_clients || !self.judged.insert(place.to_owned()) {
            return;
        }
        let last = run.arg("hold").map_or(0, number_of).saturating_sub(1);
        let Some(told) = self.told.get(&format!("{place}.{last}")) else { return };
        // One way is this long at most: the answer, and the request that runs now.
        let heard_ms = world.now_ms().saturating_sub(2 * world.plan.network.usual_ms + 1);
        let heard = told.iter().filter(|(one, (_, at_ms))| is_well(one) && *at_ms < heard_ms);
        let tickets: BTreeMap<usize, &str> =
            heard.map(|(voter, (ticket, _))| (*voter, ticket.as_str())).collect();
        let client = locked(&world.ledger).client(place);
        let majority = |ticket: &&&str| {
            world.plan.decide(client, |voter| tickets.get(&voter) == Some(*ticket))
        };
        if let Some(first) = tickets.values().find(majority).filter(|first| **first != ticket) {
            let what = format!("a majority told {place} the ticket {first}, and it took {ticket}");
            world.breach(Law::FairOrder, None, what);
        }
    }
}
