//! Random calls of the scripts, and what they may find.

use proptest::{collection::vec, prelude::*, sample::select};

use crate::scripts::{
    Step,
    semaphore::{is_of_a_semaphore, semaphore_call},
    words,
};

/// Leases this long, and further apart than the tolerance, cannot be taken for one another.
pub(crate) const LEASES_MS: [u32; 3] = [100_000, 200_000, 300_000];
/// What the leases of a step are longer than those of the step before it. The order of two
/// deadlines on one side is the order on the other then, whenever they were set.
const APART_MS: u32 = 2_400;
/// Stands before a lease until it is known which step it is of.
const LEASE: &str = "lease:";

/// The step of this number, counted from 0, with its leases.
pub(crate) fn with_leases(step: &[String], number: usize) -> Step {
    let later = u32::try_from(number).expect("there are few") * APART_MS;
    let word = |word: &String| match word.strip_prefix(LEASE) {
        Some(lease) => (lease.parse::<u32>().expect("in ms") + later).to_string(),
        None => word.clone(),
    };
    step.iter().map(word).collect()
}

const LOCKS: [&str; 3] = ["lock:1", "lock:2", "lock:3"];
/// Locks that are read and written: few, so that more happens to each.
const RW_LOCKS: [&str; 2] = ["lock:1", "lock:2"];
/// The last four are of two places in a queue.
const HOLDS: [&str; 8] = [
    "client-a:1",
    "client-a:2",
    "client-b:1",
    "client-a:7.1",
    "client-a:7.2",
    "client-b:7.1",
    "client-b:7.2",
    "client-b:~8.1",
];
/// Of three places and of none, and what reads under three of these.
const RW_HOLDS: [&str; 9] = [
    "client-a:1",
    "client-b:1",
    "client-a:7.1",
    "client-a:7.2",
    "client-b:7.1",
    "client-c:7.1",
    "client-a:1/7",
    "client-a:1/8",
    "client-a:7.1/8",
];
/// Of tokens, or tokens themselves; the last is the end of all counting.
const FLOORS: [&str; 6] = ["", "", "1", "4", "7", "9007199254740991"];
const FENCE_MS: &str = "400000";
const LIVES: [&str; 2] = ["8e4a2f/", "8e4a2f/c03d71"];
const TICKETS: [&str; 4] = ["", "", "1", "3"];
/// The last is that of readers behind all writers.
const RW_TICKETS: [&str; 7] = ["", "", "", "0", "1", "3", LAST];
pub(crate) const LAST: &str = "1000000000000";
const TURNS: [&str; 3] = ["first", "last", "next"];

pub(crate) fn place_of(hold: &'static str) -> Option<&'static str> {
    let (place, _) = hold.split_once('.')?;
    (!hold.contains('/')).then_some(place)
}

pub(crate) fn lease(ms: u32) -> String {
    format!("{LEASE}{ms}")
}

/// What leaders say of themselves, by version; the last of these nobody of ours has written.
const SAID: [&str; 5] = ["1 - =a:1", "2 7 =a:1", "3 7 =a:2", "10 7 #ff00", "nothing"];

/// One request of a script.
#[derive(Clone, Debug)]
struct Request {
    lock: &'static str,
    hold: &'static str,
    lease_ms: u32,
    ticket: &'static str,
    floor: &'static str,
    count: u8,
    leaves: bool,
    said: &'static str,
}

fn request() -> impl Strategy<Value = Request> {
    let who = (select(&LOCKS), select(&HOLDS), select(&LEASES_MS));
    let numbers = (select(&TICKETS), select(&FLOORS), 0..3_u8);
    let speech = (any::<bool>(), select(&SAID));
    (who, numbers, speech).prop_map(|(who, (ticket, floor, count), (leaves, said))| {
        let (lock, hold, lease_ms) = who;
        Request { lock, hold, lease_ms, ticket, floor, count, leaves, said }
    })
}

/// One request of a script of the read/write lock.
#[derive(Clone, Debug)]
struct RwRequest {
    lock: &'static str,
    hold: usize,
    lease_ms: u32,
    ticket: &'static str,
    floor: &'static str,
    turn: &'static str,
    writes: bool,
    count: u8,
    leaves: bool,
    /// Its place counts for no time at all.
    is_late: bool,
}

fn rw_request() -> impl Strategy<Value = RwRequest> {
    let who = (select(&RW_LOCKS), 0..RW_HOLDS.len(), select(&LEASES_MS), any::<bool>());
    let turn = (select(&RW_TICKETS), select(&FLOORS), select(&TURNS), 0..12_u8);
    // Given back more often than entered again.
    let count = prop_oneof![2 => Just(0), 1 => 1..3_u8];
    (who, turn, count, any::<bool>()).prop_map(|(who, turn, count, leaves)| {
        let (lock, hold, lease_ms, writes) = who;
        let (ticket, floor, turn, fate) = turn;
        let is_late = fate == 0;
        RwRequest { lock, hold, lease_ms, ticket, floor, turn, writes, count, leaves, is_late }
    })
}

/// Of an `RReadWriteLock` of Redisson: who reads, who writes, who reads under each write, and a
/// thread in Java that does both.
const JAVA_HOLDS: [&str; 7] = [
    "client-a:r1",
    "client-b:r1",
    "client-a:1:write",
    "client-b:1:write",
    "client-a:1:write/7",
    "java:81",
    "java:81:write",
];

fn is_rw(script: &str) -> bool {
    script.starts_with("rw/")
}

fn is_election(script: &str) -> bool {
    script.starts_with("election/")
}

fn is_java_rw(script: &str) -> bool {
    script.starts_with("redisson/rw_")
}

/// A call of any script with one to four requests.
pub(crate) fn any_call() -> impl Strategy<Value = Step> {
    let weight = |is: &dyn Fn(&str) -> bool| {
        let count = quorate::scripts().filter(|(name, _)| is(name)).count();
        u32::try_from(count).expect("there are few")
    };
    let (rw, java) = (weight(&is_rw), weight(&is_java_rw));
    let semaphore = weight(&is_of_a_semaphore);
    let others = weight(&|_| true) - rw - java - semaphore;
    prop_oneof![
        others => other_call(),
        rw => rw_call(),
        java => java_rw_call(),
        semaphore => semaphore_call(),
    ]
}

fn other_call() -> impl Strategy<Value = Step> {
    let is_other = |name: &str| !is_rw(name) && !is_java_rw(name) && !is_of_a_semaphore(name);
    let scripts = quorate::scripts().filter(|(name, _)| is_other(name));
    let scripts: Vec<_> = scripts.collect();
    (select(scripts), vec(request(), 1..=4)).prop_map(|((name, source), requests)| {
        let shared = requests[0].shared(name);
        call(source, shared, requests.into_iter().map(|request| request.arguments(name)))
    })
}

/// A call of a script that an election runs, with one to four requests.
pub(crate) fn election_call() -> impl Strategy<Value = Step> {
    let ends = ["mutex/release", "mutex/force_release", "mutex/clear", "mutex/inspect"];
    let scripts = quorate::scripts().filter(|(name, _)| is_election(name) || ends.contains(name));
    let often = |(name, source)| vec![(name, source); if is_election(name) { 3 } else { 1 }];
    let scripts: Vec<_> = scripts.flat_map(often).collect();
    (select(scripts), vec(request(), 1..=4)).prop_map(|((name, source), requests)| {
        let shared = requests[0].shared(name);
        call(source, shared, requests.into_iter().map(|request| request.arguments(name)))
    })
}

/// A call of any script of the read/write lock with one to three requests.
pub(crate) fn rw_call() -> impl Strategy<Value = Step> {
    let scripts = quorate::scripts().filter(|(name, _)| is_rw(name));
    // Most is done by acquiring.
    let often = |(name, source)| vec![(name, source); if name == "rw/acquire" { 4 } else { 1 }];
    let scripts: Vec<_> = scripts.flat_map(often).collect();
    (select(scripts), vec(rw_request(), 1..=3)).prop_map(|((name, source), requests)| {
        let shared = requests[0].shared(name);
        call(source, shared, requests.into_iter().map(|request| request.arguments(name)))
    })
}

/// A call of any script of an `RReadWriteLock` with one to three requests.
pub(crate) fn java_rw_call() -> impl Strategy<Value = Step> {
    let scripts = quorate::scripts().filter(|(name, _)| is_java_rw(name));
    let often =
        |(name, source)| vec![(name, source); if name == "redisson/rw_acquire" { 4 } else { 1 }];
    let scripts: Vec<_> = scripts.flat_map(often).collect();
    (select(scripts), vec(rw_request(), 1..=3)).prop_map(|((name, source), requests)| {
        let shared = requests[0].java_shared(name);
        call(source, shared, requests.into_iter().map(|request| request.java_arguments(name)))
    })
}

pub(crate) fn call(
    source: &str,
    shared: Step,
    requests: impl Iterator<Item = (Step, Step)>,
) -> Step {
    let (keys, args): (Vec<_>, Vec<_>) = requests.unzip();
    let (keys, args) = (keys.concat(), args.concat());
    let head = [words(&["EVAL", source]), vec![keys.len().to_string()]];
    [head.concat(), keys, shared, args].concat()
}

impl Request {
    /// What all requests of a call share: as the first of them has it.
    fn shared(&self, script: &str) -> Step {
        let time_ms = &lease(self.lease_ms)[..];
        let shared: &[&str] = match script {
            "mutex/acquire" | "mutex/renew" => &[time_ms, FENCE_MS],
            "mutex/release" | "mutex/force_release" if self.leaves => &["calls:", "1", "PUBLISH"],
            "mutex/release" | "mutex/force_release" => &["calls:", "", "PUBLISH"],
            "fair/acquire" => &["calls:", time_ms, FENCE_MS, time_ms],
            "election/acquire" => &["calls:", time_ms, FENCE_MS, time_ms, "PUBLISH"],
            "election/renew" => &[time_ms, FENCE_MS, "PUBLISH"],
            "voter/look" | "voter/roster" => &[time_ms],
            _ => &[],
        };
        words(shared)
    }

    fn arguments(self, script: &str) -> (Step, Step) {
        let Self { lock, hold, lease_ms, ticket, floor, count, leaves, said } = self;
        let (count, time_ms) = (&count.to_string()[..], &lease(lease_ms)[..]);
        let [revoked, queue, alive, fence, mark, roster] =
            &["revoked", "queue", "alive", "fence", "mark", "roster"]
                .map(|kind| format!("{kind}:{lock}"));
        let place = place_of(hold);
        // Of the step before, and of one that clashes, both seen before whatever happens here.
        let heard = match count {
            "0" => "",
            "1" => {
                "500000 75000 1 3 5 3 30000 1 2 1\tclient-b:x web 1\n\
                 900000 75000 1 4 5 0 30000 1 2 1\tclient-c:x"
            }
            _ => "20000 75000 2 of another format\tclient-d:x",
        };
        // Only an attempt from a place asks so.
        let attempt = place.map_or("client-c:9.1", |_| hold);
        let left = place.filter(|_| leaves).unwrap_or_default();
        let known = if leaves { "1" } else { "" };
        let anew = if ticket.is_empty() { "" } else { "1" };
        let (keys, args): (&[&str], &[&str]) = match script {
            "mutex/acquire" => (&[lock, queue, alive, fence], &[hold, floor]),
            "mutex/renew" => (&[lock, revoked, fence], &[hold, count, floor, known, anew]),
            "mutex/release" => (&[lock, queue, alive], &[hold, count, left, "channel"]),
            "mutex/shorten" => (&[lock, alive], &[hold, time_ms]),
            "mutex/force_release" => (&[lock, revoked, queue, alive], &[hold, time_ms, "channel"]),
            "mutex/clear" => (&[lock, revoked, fence, queue, alive], &[]),
            "mutex/inspect" => (&[lock, queue, alive, fence], &[]),
            "fair/acquire" => (&[lock, queue, alive, fence], &[attempt, floor, ticket]),
            "election/acquire" => {
                (&[lock, queue, alive, fence], &[hold, floor, ticket, said, "channel"])
            }
            "election/renew" => (&[lock, revoked, fence], &[hold, floor, said, "channel", anew]),
            "election/look" => (&[lock, fence], &[]),
            "redisson/queue" => (&[queue, alive], &[]),
            "voter/roster" => (&[roster], &["1 2 3 0 30000 1 2 1", "75000", hold, heard]),
            "voter/look" => {
                let durable = if leaves { "1" } else { "0" };
                let lost = if left.is_empty() { "" } else { "planted" };
                (&[mark], &["name", LIVES[usize::from(count == "1")], durable, lost])
            }
            other => panic!("{other} is not compared: say here what it takes"),
        };
        (words(keys), words(args))
    }
}

impl RwRequest {
    /// Whoever stands under a write only reads.
    fn mode(&self) -> &'static str {
        if self.writes && !RW_HOLDS[self.hold].contains('/') { "write" } else { "read" }
    }

    /// What all requests of a call share: as the first of them has it.
    fn shared(&self, script: &str) -> Step {
        let (mode, lease) = (self.mode(), &lease(self.lease_ms)[..]);
        let turn = if mode == "write" { "next" } else { self.turn };
        let wait = if self.is_late { "0" } else { lease };
        let shared: &[&str] = match script {
            "rw/acquire" => &["calls:", mode, turn, lease, FENCE_MS, wait],
            "rw/renew" => &[mode, lease, FENCE_MS],
            "rw/release" | "rw/force_release" => &["calls:"],
            _ => &[],
        };
        words(shared)
    }

    fn arguments(self, script: &str) -> (Step, Step) {
        let Self { lock, hold, ticket, floor, leaves, .. } = self;
        let (hold, lease) = (RW_HOLDS[hold], &lease(self.lease_ms)[..]);
        let [writer, readers, revoked, queue, alive, writers, fence] =
            &RW_KEYS.map(|kind| format!("rw-{kind}:{lock}"));
        let count = &self.count.to_string()[..];
        let left = place_of(hold).filter(|_| leaves).unwrap_or_default();
        let anew = if leaves { "1" } else { "" };
        let waiting: &[&str] = &[writer, readers, queue, alive, writers];
        let (keys, args): (&[&str], &[&str]) = match script {
            "rw/acquire" => {
                (&[writer, readers, queue, alive, writers, fence], &[hold, floor, ticket])
            }
            "rw/renew" => (&[writer, readers, revoked, fence], &[hold, count, floor, anew]),
            "rw/release" => (waiting, &[hold, count, left]),
            "rw/shorten" => (&[readers, alive], &[hold, lease]),
            "rw/force_release" => {
                (&[writer, readers, revoked, queue, alive, writers], &[hold, lease])
            }
            "rw/clear" => (&[writer, readers, revoked, fence, queue, alive, writers], &[]),
            "rw/inspect" => (&[writer, readers, queue, alive, writers, fence], &[]),
            other => panic!("{other} is not compared: say here what it takes"),
        };
        (words(keys), words(args))
    }
}

impl RwRequest {
    /// The same in the format of Redisson.
    fn java_shared(&self, script: &str) -> Step {
        match script {
            "redisson/rw_acquire" | "redisson/rw_renew" => {
                words(&[&lease(self.lease_ms), FENCE_MS])
            }
            "redisson/rw_release" | "redisson/rw_force_release" => words(&["PUBLISH"]),
            _ => Step::new(),
        }
    }

    fn java_arguments(self, script: &str) -> (Step, Step) {
        let Self { lock, hold, lease_ms, floor, count, leaves, .. } = self;
        let anew = if leaves { "1" } else { "" };
        let (hold, count) = (JAVA_HOLDS[hold % JAVA_HOLDS.len()], &count.to_string()[..]);
        let time_ms = &lease(lease_ms)[..];
        let [lock, stem, revoked, fence] =
            &["java", "java-stem", "java-revoked", "java-fence"].map(|key| format!("{key}:{lock}"));
        let (keys, args): (&[&str], &[&str]) = match script {
            "redisson/rw_acquire" => (&[lock, stem, fence], &[hold, floor]),
            "redisson/rw_renew" => (&[lock, stem, revoked, fence], &[hold, count, floor, anew]),
            "redisson/rw_release" => (&[lock, stem], &[hold, count, "channel"]),
            "redisson/rw_force_release" => (&[lock, stem, revoked], &[hold, time_ms, "channel"]),
            "redisson/rw_clear" => (&[lock, revoked, fence], &[]),
            "redisson/rw_inspect" => (&[lock, stem, fence], &[]),
            other => panic!("{other} is not compared: say here what it takes"),
        };
        (words(keys), words(args))
    }
}

/// What Java may leave there, and what nobody would: more entries of a reader, some of which have
/// ended; and records of other kinds.
pub(crate) fn java_rw_planted() -> impl Strategy<Value = Step> {
    let of = |key: &'static str| select(&RW_LOCKS).prop_map(move |lock| format!("{key}:{lock}"));
    let timeout = (of("java-stem"), select(&JAVA_HOLDS), 1..3_u8);
    let timeout =
        timeout.prop_map(|(stem, hold, entry)| format!("{stem}:{hold}:rwlock_timeout:{entry}"));
    let any = select(&["java", "java-stem", "java-revoked", "java-fence"]).prop_flat_map(of);
    prop_oneof![
        3 => timeout.clone().prop_map(|key| words(&["SET", &key, "1", "PX", "250000"])),
        3 => timeout.prop_map(|key| words(&["DEL", &key])),
        3 => of("java").prop_map(|key| words(&["HSET", &key, "java:81", "2"])),
        1 => of("java").prop_map(|key| words(&["HDEL", &key, "mode"])),
        1 => of("java").prop_map(|key| words(&["HSET", &key, "mode", "other", "a", "no number"])),
        1 => any.clone().prop_map(|key| words(&["SET", &key, "text"])),
        2 => any.prop_map(|key| words(&["DEL", &key])),
        1 => of("java").prop_map(|key| words(&["PEXPIRE", &key, "-1"])),
        1 => Just(words(&["FLUSHALL"])),
    ]
}

/// What a script may find: keys of another type, records without an expiry or without sense.
pub(crate) fn planted() -> impl Strategy<Value = Step> {
    let key = select(&LOCKS);
    let derived =
        (select(&["revoked", "queue", "alive", "fence", "mark", "client"]), select(&LOCKS));
    let derived = derived.prop_map(|(kind, lock)| format!("{kind}:{lock}"));
    // Of a clock that was set back since, or a long time ago.
    let mark = (select(&LOCKS), select(&LIVES), select(&["1000", "99999999999999"]));
    let marked = mark.prop_map(|(lock, life, seen)| {
        words(&["SET", &format!("mark:{lock}"), &format!("planted {life} 70 {seen} 1 60")])
    });
    prop_oneof![
        2 => key.clone().prop_map(|key| words(&["SET", key, "text"])),
        1 => derived.clone().prop_map(|key| words(&["SET", &key, "text"])),
        1 => marked,
        1 => derived.prop_map(|key| words(&["DEL", &key])),
        1 => key.clone().prop_map(|key| words(&["HSET", key, "other", "no number"])),
        1 => key.clone().prop_map(|key| words(&["ZADD", key, "1", "other"])),
        2 => key.clone().prop_map(|key| words(&["DEL", key])),
        1 => key.prop_map(|key| words(&["PEXPIRE", key, "-1"])),
        1 => Just(words(&["FLUSHALL"])),
    ]
}

const RW_KEYS: [&str; 7] = ["writer", "readers", "revoked", "queue", "alive", "writers", "fence"];

/// The same of a read/write lock; and readers and places whose time has long passed.
pub(crate) fn rw_planted() -> impl Strategy<Value = Step> {
    let key = (select(&RW_KEYS), select(&RW_LOCKS));
    let key = key.prop_map(|(kind, lock)| format!("rw-{kind}:{lock}"));
    let ended = (select(&RW_LOCKS), select(&RW_HOLDS), any::<bool>());
    let ended = ended.prop_map(|(lock, hold, waits)| match place_of(hold).filter(|_| waits) {
        Some(place) => words(&["ZADD", &format!("rw-alive:{lock}"), "XX", "1", place]),
        None => words(&["ZADD", &format!("rw-readers:{lock}"), "1", hold]),
    });
    prop_oneof![
        4 => key.clone().prop_map(|key| words(&["DEL", &key])),
        4 => ended,
        1 => key.clone().prop_map(|key| words(&["SET", &key, "text"])),
        1 => key.prop_map(|key| words(&["PEXPIRE", &key, "-1"])),
        1 => Just(words(&["FLUSHALL"])),
    ]
}
