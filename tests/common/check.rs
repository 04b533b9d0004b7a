//! The laws, held against what was written down. Nothing here knows the library.

use std::collections::BTreeMap;

use crate::event::{Event, Mode, What};

/// So many permits the semaphore has.
pub const PERMITS: usize = 3;
/// Where the order of asking is looked at, by a task of each process.
pub const FAIR: &str = "fair";
/// What was seen in the queue has a fixed ticket when the voters' deadline of 400 ms has passed; as
/// long again for a busy machine.
const SETTLED: u64 = 800 * MS;
/// A waiter hears of a release by a message: three of four have the lock within 90 ms, on a machine
/// with far too much to do within 670 ms. Without it, one in four has it after a second.
const PROMPT: u64 = 900 * MS;
/// Who has asked for so long stands in the queue, and listens.
const WAITING: u64 = 100 * MS;
/// Fewer releases say nothing.
const ENOUGH: usize = 20;
pub const MS: u64 = 1_000_000;

/// In the words of `tests/README.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    Exclusion,
    TokensGrow,
    Order,
    Once,
    Leaders,
    Told,
    Forked,
    Woken,
    Explained,
}

/// How often each law was held against something, and how it was broken.
#[derive(Debug, Default)]
pub struct Findings(pub BTreeMap<Law, (usize, Vec<String>)>);

impl Findings {
    fn check(&mut self, law: Law, times: usize) {
        self.0.entry(law).or_default().0 += times;
    }

    fn broken(&mut self, law: Law, how: String) {
        self.0.entry(law).or_default().1.push(how);
    }
}

/// Locks that somebody trusted from one time to another.
#[derive(Clone, Debug)]
pub struct Hold<'a> {
    pub who: &'a str,
    pub lock: &'a str,
    pub mode: &'a Mode,
    pub asked: u64,
    pub enter: u64,
    /// The last time of which it is sure that the holder trusted the lock.
    pub leave: u64,
    /// Whether it was given back.
    pub is_left: bool,
    pub is_lost: bool,
    by: &'a str,
    place: &'a str,
}

/// What is known of a task.
#[derive(Debug, Default)]
struct Task {
    asked: u64,
    /// Of what it holds.
    holds: Vec<usize>,
    /// When it trusted that last, and for how much longer.
    seen: (u64, u64),
}

/// All holds, by the time at which they began.
pub fn holds(events: &[Event]) -> Vec<Hold<'_>> {
    let (mut holds, mut tasks) = (Vec::new(), BTreeMap::<&str, Task>::new());
    for Event { at, who, what } in events {
        let task = tasks.entry(who).or_default();
        match what {
            What::Asked { .. } => task.asked = *at,
            What::Got { locks, by, hold, left } => {
                let first = holds.len();
                let place = hold.rsplit_once('.').map_or("", |(place, _)| place);
                holds.extend(locks.iter().map(|share| Hold {
                    who,
                    lock: &share.lock,
                    mode: &share.mode,
                    asked: task.asked,
                    enter: *at,
                    leave: *at,
                    is_left: false,
                    is_lost: false,
                    by,
                    place,
                }));
                task.holds = (first..holds.len()).collect();
                task.seen = (*at, *left);
            }
            What::Held { left } => task.seen = (*at, *left),
            What::Left {} | What::Lost { .. } | What::Mute {} => {
                let (seen, left) = task.seen;
                // Who comes back after the deadline has trusted the lock until then. Who hears of
                // the loss before may have lost it at any time since.
                let is_lost = !matches!(what, What::Left {});
                let leave = if is_lost && *at > seen + left { seen + left } else { seen };
                for hold in task.holds.drain(..) {
                    let hold = &mut holds[hold];
                    (hold.leave, hold.is_left, hold.is_lost) = (leave, !is_lost, is_lost);
                }
            }
            _ => {}
        }
    }
    // Who was killed: nobody could have it before its deadline.
    for Task { holds: open, seen: (seen, left), .. } in tasks.values() {
        for hold in open {
            holds[*hold].leave = seen + left;
        }
    }
    holds.sort_by_key(|hold| hold.enter);
    holds
}

/// When troubles of some kinds befell somebody.
fn bands(events: &[Event], is_one: impl Fn(&str) -> bool) -> Vec<(u64, u64)> {
    let band = |event: &Event| match &event.what {
        What::Trouble { kind, until, .. } if is_one(kind) => Some((event.at, *until)),
        _ => None,
    };
    events.iter().filter_map(band).collect()
}

fn meets(bands: &[(u64, u64)], from: u64, to: u64) -> bool {
    bands.iter().any(|(began, ended)| *began <= to && *ended >= from)
}

pub fn judge(events: &[Event]) -> Findings {
    let (holds, mut findings) = (holds(events), Findings::default());
    let mut of_lock = BTreeMap::<&str, Vec<&Hold<'_>>>::new();
    for hold in &holds {
        of_lock.entry(hold.lock).or_default().push(hold);
    }
    for holds in of_lock.values() {
        exclusion(holds, &mut findings);
        tokens_grow(holds, &mut findings);
    }
    let fair = of_lock.get(FAIR).map_or(&[][..], |holds| holds);
    order(events, fair, &mut findings);
    woken(events, fair, &mut findings);
    one_by_one(events, &mut findings);
    findings
}

fn excludes(one: &Hold<'_>, other: &Hold<'_>) -> bool {
    let shares = match (one.mode, other.mode) {
        (Mode::Read, Mode::Read) => true,
        (Mode::Slots(one), Mode::Slots(other)) => one.iter().all(|slot| !other.contains(slot)),
        _ => false,
    };
    !shares && one.by != other.by
}

fn exclusion(holds: &[&Hold<'_>], findings: &mut Findings) {
    let mut open: Vec<&Hold<'_>> = Vec::new();
    for hold in holds {
        open.retain(|before| before.leave >= hold.enter);
        findings.check(Law::Exclusion, 1);
        for before in open.iter().filter(|before| excludes(before, hold)) {
            findings.broken(Law::Exclusion, format!("{before:?} beside {hold:?}"));
        }
        open.push(hold);
        let slots = open.iter().map(|hold| match hold.mode {
            Mode::Slots(slots) => slots.len(),
            _ => 0,
        });
        if slots.sum::<usize>() > PERMITS {
            findings.broken(Law::Exclusion, format!("more than {PERMITS} permits: {open:?}"));
        }
    }
}

fn tokens_grow(holds: &[&Hold<'_>], findings: &mut Findings) {
    let mut highest: Option<(u64, &Hold<'_>)> = None;
    for hold in holds {
        let Mode::Alone(token) = *hold.mode else { continue };
        findings.check(Law::TokensGrow, 1);
        match highest {
            Some((most, before)) if token < most || token == most && before.by != hold.by => {
                findings.broken(Law::TokensGrow, format!("{hold:?} after {before:?}"));
            }
            _ => highest = Some((token, hold)),
        }
    }
}

/// What leaves the queue and a majority of the servers alone: who stood in it goes on standing, and
/// hears of a release.
const ORDERLY: [&str; 8] =
    ["killed", "stopped", "cut", "refused", "swallowed", "replies held", "slow", "log stalled"];

fn order(events: &[Event], fair: &[&Hold<'_>], findings: &mut Findings) {
    let looks = events.iter().filter_map(|event| match &event.what {
        What::Looked { places, .. } => Some((event.at, places)),
        _ => None,
    });
    let looks: Vec<_> = looks.collect();
    // When each place was first seen with the ticket that it was seen with last.
    let mut first = BTreeMap::<&str, (u64, u64)>::new();
    for (at, places) in &looks {
        for (place, ticket) in *places {
            let entry = first.entry(place).or_insert((*ticket, *at));
            *entry = if entry.0 == *ticket { *entry } else { (*ticket, *at) };
        }
    }
    let disorder = bands(events, |kind| !ORDERLY.contains(&kind));
    for (at, later) in fair.iter().enumerate() {
        for earlier in fair[at + 1..].iter().take(64).filter(|hold| hold.asked < later.asked) {
            let Some((ticket, stood)) = first.get(earlier.place) else { continue };
            let end = later.enter;
            let between = looks.partition_point(|look| look.0 < *stood);
            let goes_on = looks[between..].iter().take_while(|look| look.0 <= end);
            let goes_on =
                goes_on.map(|look| look.1).all(|places| places.get(earlier.place) == Some(ticket));
            let has_stood = stood + SETTLED <= later.asked && goes_on;
            if has_stood && !meets(&disorder, *stood, end) {
                findings.broken(Law::Order, format!("{later:?} passed {earlier:?}"));
            }
        }
        findings.check(Law::Order, first.contains_key(later.place).into());
    }
}

/// What is seen in one event, or in it and those before.
fn one_by_one(events: &[Event], findings: &mut Findings) {
    let (mut done, mut leaders) = (None, BTreeMap::<&str, u64>::new());
    for event in events {
        let (law, is_broken) = match event.what {
            What::Done { firing, .. } => {
                done = done.max(Some(firing));
                continue;
            }
            What::Works { firing, .. } => (Law::Once, done >= Some(firing)),
            What::Sees { token, .. } => {
                let before = leaders.insert(&event.who, token);
                (Law::Leaders, before > Some(token))
            }
            What::Lost { .. } => (Law::Told, false),
            What::Mute {} => (Law::Told, true),
            What::Forked { holds } => (Law::Forked, holds),
            What::Failed { .. } => (Law::Explained, false),
            What::Odd { .. } => (Law::Explained, true),
            _ => continue,
        };
        findings.check(law, 1);
        if is_broken {
            findings.broken(law, format!("{event:?}"));
        }
    }
}

/// From a release to the entry of one that waited in another process.
fn woken(events: &[Event], fair: &[&Hold<'_>], findings: &mut Findings) {
    let deaf = bands(events, |kind| !ORDERLY.contains(&kind));
    let process = |hold: &Hold<'_>| hold.who.split('.').next().map(str::to_owned);
    let mut gaps: Vec<_> = fair
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .filter(|(before, next)| before.is_left && process(before) != process(next))
        .filter(|(before, next)| next.asked + WAITING < before.leave)
        .filter(|(before, _)| !meets(&deaf, before.leave - SETTLED / 2, before.leave))
        .map(|(before, next)| next.enter - before.leave.min(next.enter))
        .collect();
    gaps.sort_unstable();
    findings.check(Law::Woken, gaps.len());
    let slower = gaps.get(gaps.len() * 3 / 4).filter(|_| gaps.len() >= ENOUGH);
    if let Some(gap) = slower.filter(|gap| **gap > PROMPT) {
        let gap = gap / MS;
        findings.broken(Law::Woken, format!("one in four entered {gap} ms after a release"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Share;

    fn event(at: u64, who: &str, what: What) -> Event {
        Event { at: at * MS, who: who.to_owned(), what }
    }

    /// A hold from one time to another, that is given back.
    fn held(who: &str, mode: Mode, enter: u64, leave: u64) -> Vec<Event> {
        let lock = who.split('.').nth(1).unwrap_or_default().to_owned();
        let locks = vec![Share { lock: lock.clone(), mode }];
        let hold = format!("{who}:{enter}.1");
        vec![
            event(enter - 5, who, What::Asked { lock }),
            event(enter, who, What::Got { locks, by: who.to_owned(), hold, left: 4_000 * MS }),
            event(leave, who, What::Held { left: 4_000 * MS }),
            event(leave, who, What::Left {}),
        ]
    }

    fn alone(who: &str, token: u64, enter: u64, leave: u64) -> Vec<Event> {
        held(who, Mode::Alone(token), enter, leave)
    }

    /// The laws that a history breaks.
    fn broken(parts: &[Vec<Event>]) -> Vec<Law> {
        let mut events = parts.concat();
        events.sort_by_key(|event| event.at);
        let broken = judge(&events).0.into_iter().filter(|(_, (_, how))| !how.is_empty());
        broken.map(|(law, _)| law).collect()
    }

    #[test]
    fn what_keeps_to_the_laws_is_let_pass() {
        let slots = |who, slots: &[u32], at| held(who, Mode::Slots(slots.to_vec()), at, at + 50);
        assert_eq!(broken(&[alone("1.a.0", 1, 100, 200), alone("2.a.0", 2, 201, 300)]), []);
        // Several locks, readers, and other slots.
        assert_eq!(broken(&[alone("1.a.0", 5, 100, 200), alone("2.b.0", 2, 150, 300)]), []);
        let reads = [held("1.rw.0", Mode::Read, 100, 200), held("2.rw.0", Mode::Read, 150, 300)];
        assert_eq!(broken(&reads), []);
        assert_eq!(broken(&[slots("1.s.0", &[0, 1], 100), slots("2.s.0", &[2], 120)]), []);
    }

    #[test]
    fn two_that_trust_one_lock_are_found() {
        for one in [Mode::Alone(2), Mode::Read] {
            let writes = alone("1.rw.0", 1, 100, 200);
            assert_eq!(broken(&[writes, held("2.rw.0", one, 200, 300)]), [Law::Exclusion]);
        }
        let slots = |who, slots: &[u32], at| held(who, Mode::Slots(slots.to_vec()), at, at + 50);
        let one_twice = [slots("1.s.0", &[0], 100), slots("2.s.0", &[0], 120)];
        assert_eq!(broken(&one_twice), [Law::Exclusion]);
        let four = [slots("1.s.0", &[0, 1], 100), slots("2.s.0", &[2, 3], 120)];
        assert_eq!(broken(&four), [Law::Exclusion]);
    }

    #[test]
    fn who_was_killed_or_stood_still_has_it_until_its_deadline() {
        let mut killed = alone("1.a.0", 1, 100, 200);
        killed.truncate(3);
        let next = |enter| alone("2.a.0", 2, enter, enter + 10);
        assert_eq!(broken(&[killed.clone(), next(4_100)]), [Law::Exclusion]);
        assert_eq!(broken(&[killed.clone(), next(4_201)]), []);
        let lost = |at| vec![event(at, "1.a.0", What::Lost { why: String::new() })];
        assert_eq!(broken(&[killed.clone(), lost(6_000), next(4_100)]), [Law::Exclusion]);
        // It heard of the loss: nobody knows since when it was lost.
        assert_eq!(broken(&[killed, lost(1_000), next(1_500)]), []);
    }

    #[test]
    fn tokens_that_do_not_grow_are_found() {
        for token in [4, 5] {
            let histories = [alone("1.a.0", 5, 100, 200), alone("2.a.0", token, 300, 400)];
            assert_eq!(broken(&histories), [Law::TokensGrow]);
        }
    }

    #[test]
    fn who_passes_one_that_stood_in_the_queue_is_found() {
        let turn = |who, token, asked, enter| {
            let mut turn = alone(who, token, enter, enter + 10);
            turn[0].at = asked * MS;
            turn
        };
        let look = |at, places: &[(&str, u64)]| {
            let places = places.iter().map(|(place, ticket)| ((*place).to_owned(), *ticket));
            let (lock, places) = (FAIR.to_owned(), places.collect());
            vec![event(at, "onlooker", What::Looked { lock, places })]
        };
        let passed = |asked, second: &[(&str, u64)]| {
            let looks = [look(500, &[("1.fair.0:4000", 7)]), look(2_500, second)].concat();
            let (first, later) =
                (turn("1.fair.0", 2, 100, 4_000), turn("2.fair.0", 1, asked, 3_000));
            [looks, first, later]
        };
        let stands = [("1.fair.0:4000", 7)];
        assert_eq!(broken(&passed(2_000, &stands)), [Law::Order]);
        // Nobody had seen it for long, it stood elsewhere later, or it was gone meanwhile.
        assert_eq!(broken(&passed(1_000, &stands)), []);
        assert_eq!(broken(&passed(2_000, &[("1.fair.0:4000", 8)])), []);
        assert_eq!(broken(&passed(2_000, &[])), []);
        let trouble = |kind: &str| {
            let (kind, whom) = (kind.to_owned(), "server 1".to_owned());
            vec![event(2_000, "troubles", What::Trouble { kind, whom, until: 2_100 * MS })]
        };
        let [looks, first, later] = passed(2_000, &stands);
        assert_eq!(broken(&[looks.clone(), first.clone(), later.clone(), trouble("emptied")]), []);
        assert_eq!(broken(&[looks, first, later, trouble("killed")]), [Law::Order]);
    }

    #[test]
    fn work_that_is_done_again_and_a_leader_that_comes_back_are_found() {
        let lock = String::new;
        let works = |at, firing| event(at, "1.once.0", What::Works { lock: lock(), firing });
        let done = |at, firing| event(at, "1.once.0", What::Done { lock: lock(), firing });
        assert_eq!(broken(&[vec![works(1, 4), works(2, 4), done(3, 4), works(5, 5)]]), []);
        assert_eq!(broken(&[vec![works(1, 4), done(3, 4), works(5, 4)]]), [Law::Once]);
        let sees = |at, who, token| event(at, who, What::Sees { lock: lock(), token });
        assert_eq!(broken(&[vec![sees(1, "1.e.0", 4), sees(2, "2.e.0", 3)]]), []);
        assert_eq!(broken(&[vec![sees(1, "1.e.0", 4), sees(2, "1.e.0", 3)]]), [Law::Leaders]);
    }

    #[test]
    fn what_workers_say_of_themselves_is_found() {
        let odd = What::Odd { why: String::new() };
        assert_eq!(broken(&[vec![event(1, "1.a.0", What::Mute {})]]), [Law::Told]);
        assert_eq!(broken(&[vec![event(1, "1.a.0", What::Forked { holds: true })]]), [Law::Forked]);
        assert_eq!(broken(&[vec![event(1, "1.a.0", odd)]]), [Law::Explained]);
    }

    #[test]
    fn releases_that_wake_nobody_are_found() {
        let turns = |gap: u64, kind: &str| {
            let turn = |at: u64| {
                let who = format!("{}.fair.0", at % 2);
                let enter = 10_000 + at * (100 + gap);
                let mut turn = alone(&who, 1 + at, enter, enter + 100);
                // Before the one that it follows has left.
                turn[0].at -= (gap + 150) * MS;
                turn
            };
            let (kind, whom, until) = (kind.to_owned(), "servers [1]".to_owned(), 60_000 * MS);
            let trouble = vec![event(0, "troubles", What::Trouble { kind, whom, until })];
            broken(&(0..30).map(turn).chain([trouble]).collect::<Vec<_>>())
        };
        assert_eq!(turns(20, "killed"), []);
        assert_eq!(turns(1_300, "killed"), [Law::Woken]);
        assert_eq!(turns(1_300, "parted"), []);
    }
}
