//! Random calls of the scripts of a semaphore, and what they may find.

use proptest::{collection::vec, prelude::*, sample::select};

use crate::scripts::{
    Step,
    calls::{LEASES_MS, call, lease, place_of},
    words,
};

/// Few, so that more happens to each.
const LOCKS: [&str; 2] = ["lock:1", "lock:2"];
/// Of three places and of none; of so many slots each.
const HOLDS: [(&str, u8); 7] = [
    ("client-a:1", 1),
    ("client-b:1", 2),
    ("client-a:7.1", 1),
    ("client-a:7.2", 1),
    ("client-b:7.1", 1),
    ("client-c:7.1", 3),
    ("client-c:7.2", 3),
];
const TICKETS: [&str; 5] = ["", "", "", "1", "3"];
const KEYS: [&str; 7] = ["slots", "ends", "revoked", "queue", "served", "alive", "permits"];
/// Of how many permits it is: mostly the same.
const ASKED: [u8; 5] = [5, 5, 5, 5, 3];

#[derive(Clone, Debug)]
struct Request {
    lock: &'static str,
    hold: usize,
    lease_ms: u32,
    asked: u8,
    start: u8,
    /// From where on, one behind the other, it asks for its slots, or has them.
    from: Option<u8>,
    ticket: &'static str,
    count: u8,
    leaves: bool,
    /// Its place counts for no time at all.
    is_late: bool,
}

fn request() -> impl Strategy<Value = Request> {
    let who = (select(&LOCKS), 0..HOLDS.len(), select(&LEASES_MS));
    let slots =
        (select(&ASKED), 0..5_u8, prop_oneof![2 => Just(None), 1 => (0..5_u8).prop_map(Some)]);
    // Given back more often than counted.
    let count = prop_oneof![3 => Just(0_u8), 1 => Just(1)];
    (who, slots, select(&TICKETS), count, any::<bool>(), 0..12_u8).prop_map(
        |(who, slots, ticket, count, leaves, fate)| {
            let ((lock, hold, lease_ms), (asked, start, from)) = (who, slots);
            let (start, is_late) = (start % asked, fate == 0);
            Request { lock, hold, lease_ms, asked, start, from, ticket, count, leaves, is_late }
        },
    )
}

pub(crate) fn is_of_a_semaphore(script: &str) -> bool {
    script.starts_with("semaphore/")
}

/// A call of any script of the semaphore with one to three requests.
pub(crate) fn semaphore_call() -> impl Strategy<Value = Step> {
    let scripts = quorate::scripts().filter(|(name, _)| is_of_a_semaphore(name));
    // Most is done by acquiring.
    let often =
        |(name, source)| vec![(name, source); if name == "semaphore/acquire" { 5 } else { 1 }];
    let scripts: Vec<_> = scripts.flat_map(often).collect();
    (select(scripts), vec(request(), 1..=3)).prop_map(|((name, source), requests)| {
        let shared = requests[0].shared(name);
        call(source, shared, requests.into_iter().map(|request| request.arguments(name)))
    })
}

impl Request {
    /// What all requests of a call share: as the first of them has it.
    fn shared(&self, script: &str) -> Step {
        let lease = &lease(self.lease_ms)[..];
        let wait = if self.is_late { "0" } else { lease };
        let shared: &[&str] = match script {
            "semaphore/acquire" => &["calls:", lease, wait],
            "semaphore/renew" => &["calls:", lease],
            "semaphore/release" | "semaphore/force_release" => &["calls:"],
            _ => &[],
        };
        words(shared)
    }

    /// So many slots one behind the other, round to the first.
    fn slots(&self, from: u8, wanted: u8) -> String {
        let slots = (0..wanted).map(|at| (from + at) % self.asked.max(wanted));
        slots.map(|slot| format!("{slot}-{slot}")).collect::<Vec<_>>().join(",")
    }

    fn arguments(self, script: &str) -> (Step, Step) {
        let Self { lock, hold, lease_ms, ticket, leaves, .. } = self;
        let ((hold, wanted), lease) = (HOLDS[hold], &lease(lease_ms)[..]);
        let [slots, ends, revoked, queue, served, alive, permits] =
            &KEYS.map(|kind| format!("semaphore-{kind}:{lock}"));
        let numbers = [self.count, self.asked, wanted, self.start].map(|number| number.to_string());
        let [count, asked, many, start] = &numbers;
        let floors = self.from.map_or_else(String::new, |from| self.slots(from, wanted));
        let given = self.slots(self.from.unwrap_or_default(), wanted);
        let ticket = if place_of(hold).is_some() { ticket } else { "" };
        let left = place_of(hold).filter(|_| leaves).unwrap_or_default();
        let anew = if leaves { "1" } else { "" };
        let (keys, args): (&[&str], &[&str]) = match script {
            "semaphore/acquire" => (
                &[slots, ends, queue, served, alive, permits],
                &[hold, asked, many, start, &floors, ticket],
            ),
            "semaphore/renew" => (
                &[slots, ends, revoked, queue, served, alive, permits],
                &[hold, asked, &given, anew],
            ),
            "semaphore/release" => (&[slots, ends, queue, served, alive], &[hold, count, left]),
            "semaphore/shorten" => (&[slots, ends], &[hold, lease, many]),
            "semaphore/force_release" => {
                (&[slots, ends, revoked, queue, served, alive], &[hold, lease])
            }
            "semaphore/clear" => (&[slots, ends, revoked, queue, served, alive, permits], &[]),
            "semaphore/inspect" => (&[slots, ends, queue, alive, permits], &[start]),
            other => panic!("{other} is not compared: say here what it takes"),
        };
        (words(keys), words(args))
    }
}

/// Keys that are gone or of another type, and holds and places whose time has long passed.
pub(crate) fn semaphore_planted() -> impl Strategy<Value = Step> {
    let key = (select(&KEYS), select(&LOCKS));
    let key = key.prop_map(|(kind, lock)| format!("semaphore-{kind}:{lock}"));
    let ended = (select(&LOCKS), select(&HOLDS), any::<bool>());
    let ended = ended.prop_map(|(lock, (hold, _), waits)| match place_of(hold).filter(|_| waits) {
        Some(place) => words(&["ZADD", &format!("semaphore-alive:{lock}"), "XX", "1", place]),
        None => words(&["ZADD", &format!("semaphore-ends:{lock}"), "XX", "1", hold]),
    });
    prop_oneof![
        4 => key.clone().prop_map(|key| words(&["DEL", &key])),
        4 => ended,
        1 => key.clone().prop_map(|key| words(&["SET", &key, "text"])),
        1 => key.prop_map(|key| words(&["PEXPIRE", &key, "-1"])),
        1 => Just(words(&["FLUSHALL"])),
    ]
}
