//! Random calls of the scripts, and what they may find.

use proptest::{
    array::uniform10,
    collection::vec,
    prelude::*,
    sample::{Index, select},
};

use crate::scripts::{Step, words};

/// Leases this long, and further apart than the tolerance, cannot be taken for one another.
const LEASES_MS: [u32; 3] = [100_000, 200_000, 300_000];
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

/// What each script takes: its keys, what all requests of a call share, and what only one says.
const SCRIPTS: &str = "\
mutex/acquire | lock queue alive fence | calls lease memory lease | hold floor ticket
mutex/pass | lock revoked fence queue alive | calls lease memory | heir former secret floor
mutex/renew | lock revoked fence | lease memory | hold count floor flag anew
mutex/release | lock queue alive | calls flag PUBLISH | hold count left channel
mutex/shorten | lock alive | | hold lease
mutex/force_release | lock revoked queue alive | calls flag PUBLISH | hold lease channel
mutex/clear | lock revoked fence queue alive | |
mutex/inspect | lock queue alive fence | |
election/acquire | lock queue alive fence | calls lease memory lease | hold floor ticket said
election/renew | lock revoked fence | lease memory PUBLISH | hold floor said channel anew
election/look | lock | |
once/note | lock done | | hold firing moment age
once/forget | done | |
voter/configuration | configurations | lease | config agree hold heard
voter/look | fingerprint | lease | name life durable lost
rw/acquire | writer readers queue alive writers fence | calls mode turn lease memory wait | \
    hold floor ticket
rw/renew | writer readers revoked fence | mode lease memory | hold count floor anew
rw/release | writer readers queue alive writers | calls | hold count left
rw/shorten | writer readers alive | | hold lease
rw/force_release | writer readers revoked queue alive writers | calls | hold lease
rw/clear | writer readers revoked fence queue alive writers | |
rw/inspect | writer readers queue alive writers fence | |
semaphore/acquire | slots ends queue served alive permits | calls lease wait | \
    hold asked many start floors ticket
semaphore/renew | slots ends revoked queue served alive permits | calls lease | \
    hold asked given anew
semaphore/release | slots ends queue served alive | calls | hold count left
semaphore/shorten | slots ends | | hold lease many
semaphore/force_release | slots ends revoked queue served alive | calls | hold lease
semaphore/clear | slots ends revoked queue served alive permits | |
semaphore/inspect | slots ends queue alive permits | | start
redisson/queue | queue alive | |
redisson/rw_acquire | lock stem fence | lease memory | hold floor
redisson/rw_renew | lock stem revoked fence | lease memory | hold count floor anew
redisson/rw_release | lock stem | PUBLISH | hold count channel
redisson/rw_force_release | lock stem revoked | PUBLISH | hold lease channel
redisson/rw_clear | lock revoked fence | |
redisson/rw_inspect | lock stem fence | |";

/// Scripts that use the same keys: of so many locks, few, so that more happens to each.
#[derive(Debug)]
struct Family {
    prefix: &'static str,
    locks: usize,
    keys: &'static [&'static str],
    holds: &'static [&'static str],
    tickets: &'static [&'static str],
}

/// The last four holds are of two places in a queue.
static ONE_HOLDER: Family = Family {
    prefix: "",
    locks: 3,
    keys: &["revoked", "queue", "alive", "fence", "fingerprint", "done"],
    holds: &["a:1", "a:2", "b:1", "a:7.1", "a:7.2", "b:7.1", "b:7.2", "b:~8.1"],
    tickets: &["", "", "1", "3"],
};
/// Holds of three places and of none, and what reads under three of these. The last ticket is that
/// of readers behind all writers.
static RW: Family = Family {
    prefix: "rw-",
    locks: 2,
    keys: &["writer", "readers", "revoked", "queue", "alive", "writers", "fence"],
    holds: &["a:1", "b:1", "a:7.1", "a:7.2", "b:7.1", "c:7.1", "a:1/7", "a:1/8", "a:7.1/8"],
    tickets: &["", "", "", "0", "1", "3", LAST],
};
/// Holds of three places and of none; of one slot each, `b:1` of two, and the last two of three.
static SEMAPHORE: Family = Family {
    prefix: "semaphore-",
    locks: 2,
    keys: &["slots", "ends", "revoked", "queue", "served", "alive", "permits"],
    holds: &["a:1", "b:1", "a:7.1", "a:7.2", "b:7.1", "c:7.1", "c:7.2"],
    tickets: &["", "", "", "1", "3"],
};
/// An `RReadWriteLock` of Redisson: who reads, who writes, who reads under each write, and a thread
/// in Java that does both.
static JAVA_RW: Family = Family {
    prefix: "java-",
    locks: 2,
    keys: &["lock", "stem", "revoked", "fence"],
    holds: &["a:r1", "b:r1", "a:1:write", "b:1:write", "a:1:write/7", "j:81", "j:81:write"],
    tickets: &[""],
};

impl Family {
    fn of(script: &str) -> &'static Self {
        let begins = [("rw/", &RW), ("semaphore/", &SEMAPHORE), ("redisson/rw_", &JAVA_RW)];
        let found = begins.iter().find(|(begin, _)| script.starts_with(begin));
        found.map_or(&ONE_HOLDER, |(_, family)| family)
    }

    fn key(&self, kind: &str, lock: usize) -> String {
        format!("{}{kind}:{lock}", self.prefix)
    }
}

/// Of tokens, or tokens themselves; the last is the end of all counting.
const FLOORS: [&str; 6] = ["", "", "1", "4", "7", "9007199254740991"];
const LIVES: [&str; 2] = ["8e4a2f/", "8e4a2f/c03d71"];
pub(crate) const LAST: &str = "1000000000000";
const TURNS: [&str; 3] = ["first", "last", "next"];
/// Of how many permits a semaphore is: mostly the same.
const PERMITS: [usize; 5] = [5, 5, 5, 5, 3];
/// What leaders say of themselves, by version; the last of these nobody of ours has written.
const SAID: [&str; 5] = ["1 - =a:1", "2 7 =a:1", "3 7 =a:2", "10 7 #ff00", "nothing"];
/// Of the step before, and of one that clashes, both seen before whatever happens here.
const HEARD: [&str; 3] = [
    "",
    "500000 75000 1 3 5 3 30000 1 2 1\tb:x web 1\n900000 75000 1 4 5 0 30000 1 2 1\tc:x",
    "20000 75000 2 of another format\td:x",
];

/// Holds that pass votes on: of an owner, from a place, parked by the secret "secret", and resumed.
const PASSED: [&str; 4] = [
    "a:1",
    "b:7.1",
    "a:p9-e5e9fa1ba31ecd1ae84f75caaa474f3a",
    "b:9-e5e9fa1ba31ecd1ae84f75caaa474f3a",
];
const SECRETS: [&str; 3] = ["secret", "secret", "another"];

fn place_of(hold: &'static str) -> Option<&'static str> {
    let (place, _) = hold.split_once('.')?;
    (!hold.contains('/')).then_some(place)
}

/// One request of any script, as ten choices: each script takes of it what it needs.
struct Request {
    lock: Index,
    hold: Index,
    lease: Index,
    ticket: Index,
    floor: Index,
    /// Whatever else is chosen.
    choice: Index,
    start: Index,
    writes: bool,
    leaves: bool,
    /// Given back more often than entered again.
    count: usize,
    /// From where on, one behind the other, it asks for its slots, or has them.
    from: Option<usize>,
}

impl Request {
    fn of(choices: &[Index; 10]) -> Self {
        let [lock, hold, lease, ticket, floor, choice, start, flags, count, from] = *choices;
        let (writes, leaves) = (flags.index(4) % 2 == 0, flags.index(4) < 2);
        let (count, from) = (*count.get(&[0, 0, 0, 0, 1, 2]), from.index(15).checked_sub(10));
        Self { lock, hold, lease, ticket, floor, choice, start, writes, leaves, count, from }
    }
}

/// A call of any script with one to four requests.
pub(crate) fn any_call() -> impl Strategy<Value = Step> {
    calls(often)
}

/// A call of a script whose name begins so.
pub(crate) fn calls_of(kind: &'static str) -> impl Strategy<Value = Step> {
    calls(move |script| if script.starts_with(kind) { often(script) } else { 0 })
}

/// A call of a script that an election runs.
pub(crate) fn election_call() -> impl Strategy<Value = Step> {
    let ends = ["mutex/release", "mutex/force_release", "mutex/clear", "mutex/inspect"];
    calls(move |script| match script.strip_prefix("election/") {
        Some(_) => 3,
        None => usize::from(ends.contains(&script)),
    })
}

/// Where locks are shared, most is done by acquiring.
fn often(script: &str) -> usize {
    match script {
        "rw/acquire" | "redisson/rw_acquire" | "semaphore/acquire" => 4,
        _ => 1,
    }
}

/// A call of a script, as often as its weight says.
fn calls(weight: impl Fn(&str) -> usize) -> impl Strategy<Value = Step> {
    let scripts = quorate::scripts();
    let scripts = scripts.flat_map(|(name, source)| vec![(name, source); weight(name)]);
    let scripts: Vec<_> = scripts.collect();
    let choices = vec(uniform10(any::<Index>()), 1..=4);
    (select(scripts), choices).prop_map(|((name, source), choices)| {
        let requests: Vec<_> = choices.iter().map(Request::of).collect();
        let mut rows = SCRIPTS.lines().map(|row| row.split('|').map(str::trim));
        let row = rows.find_map(|mut row| (row.next() == Some(name)).then_some(row));
        let row: Vec<_> = row.unwrap_or_else(|| panic!("{name}: what does it take?")).collect();
        let family = Family::of(name);
        let (mut keys, mut args) = (Step::new(), Step::new());
        for request in &requests {
            let lock = request.lock.index(family.locks);
            keys.extend(row[0].split_whitespace().map(|kind| family.key(kind, lock)));
            args.extend(row[2].split_whitespace().map(|word| request.says(family, word)));
        }
        // What all requests of a call share is as the first of them has it.
        let shared = row[1].split_whitespace().map(|word| requests[0].says(family, word));
        let head = [words(&["EVAL", source]), vec![keys.len().to_string()], keys].concat();
        [head, shared.collect(), args].concat()
    })
}

/// For each script that ends a hold by force, what does so.
pub(crate) fn forced_ends(hold: &str, marker_ms: u32) -> Vec<Step> {
    let named = |name: &str| name.ends_with("force_release");
    let ends = quorate::scripts().filter(|(name, _)| named(name)).map(|(name, source)| {
        let row = SCRIPTS.lines().find_map(|row| row.strip_prefix(&format!("{name} | ")));
        let row: Vec<_> = row.expect("it stands there").split('|').map(str::trim).collect();
        let keys: Vec<_> = row[0].split(' ').collect();
        let args = row[1..].iter().flat_map(|row| row.split(' ')).map(|word| match word {
            "hold" => hold.to_owned(),
            "lease" => marker_ms.to_string(),
            other => other.to_owned(),
        });
        let count = keys.len().to_string();
        let head = [&["EVAL", source, &count], &keys[..]].concat();
        words(&head).into_iter().chain(args).collect()
    });
    ends.collect()
}

impl Request {
    /// What a word of the table stands for.
    fn says(&self, family: &'static Family, word: &str) -> String {
        let hold = *self.hold.get(family.holds);
        // Whoever stands under a write only reads.
        let mode = if self.writes && !hold.contains('/') { "write" } else { "read" };
        let asked = *self.choice.get(&PERMITS);
        let wanted = match hold {
            "b:1" => 2,
            "c:7.1" | "c:7.2" => 3,
            _ => 1,
        };
        // So many slots one behind the other, round to the first.
        let slots = |from: usize| {
            let slots = (0..wanted).map(|at| (from + at) % asked.max(wanted));
            slots.map(|slot| format!("{slot}-{slot}")).collect::<Vec<_>>().join(",")
        };
        let said = match word {
            "hold" => hold,
            // Only an attempt from a place asks so.
            "attempt" => place_of(hold).map_or("c:9.1", |_| hold),
            "left" => place_of(hold).filter(|_| self.leaves).unwrap_or_default(),
            // Its place counts for no time at all.
            "wait" if self.lease.index(12) == 0 => "0",
            "lease" | "wait" => return format!("{LEASE}{}", self.lease.get(&LEASES_MS)),
            "memory" => "400000",
            "calls" => "calls:",
            "channel" | "name" | "PUBLISH" => word,
            "flag" if self.leaves => "1",
            "anew" if self.start.index(2) == 0 => "1",
            "lost" if self.leaves && self.start.index(2) == 0 => "planted",
            "flag" | "anew" | "lost" => "",
            "floor" | "firing" => self.floor.get(&FLOORS),
            "ticket" if family.prefix == SEMAPHORE.prefix && place_of(hold).is_none() => "",
            "ticket" => self.ticket.get(family.tickets),
            "said" => self.choice.get(&SAID),
            // Long ago, and remembered for long after that.
            "moment" => "1700000000000",
            "age" => "90000000000000",
            "mode" => mode,
            "heir" => self.choice.get(&PASSED),
            "former" => self.hold.get(&PASSED),
            "secret" => self.start.get(&SECRETS),
            "turn" if mode == "write" => "next",
            "turn" => self.choice.get(&TURNS),
            "config" => "1 2 3 0 30000 1 2 1",
            "agree" => "75000",
            "heard" => HEARD[self.count],
            "life" => LIVES[usize::from(self.count == 1)],
            "durable" => ["0", "1"][usize::from(self.leaves)],
            "count" => return self.count.to_string(),
            "asked" => return asked.to_string(),
            "many" => return wanted.to_string(),
            "start" => return self.start.index(asked).to_string(),
            "floors" => return self.from.map_or_else(String::new, slots),
            "given" => return slots(self.from.unwrap_or_default()),
            other => panic!("{other}: say here what it is"),
        };
        said.to_owned()
    }
}

/// What may happen to any of these keys: it is gone, of another type, or has ended.
fn spoilt(family: &'static Family, kinds: &'static [&str]) -> impl Strategy<Value = Step> {
    let key = (select(kinds), 0..family.locks);
    let key = key.prop_map(move |(kind, lock)| family.key(kind, lock));
    prop_oneof![
        4 => key.clone().prop_map(|key| words(&["DEL", &key])),
        2 => key.clone().prop_map(|key| words(&["SET", &key, "text"])),
        1 => key.prop_map(|key| words(&["PEXPIRE", &key, "-1"])),
        1 => Just(words(&["FLUSHALL"])),
    ]
}

/// What a script of locks with one holder may find: keys of another type, records without an expiry
/// or without sense.
pub(crate) fn planted() -> impl Strategy<Value = Step> {
    // Of a clock that was set back since, or a long time ago.
    let fingerprint = (0..3, select(&LIVES), select(&["1000", "99999999999999"]));
    let marked = fingerprint.prop_map(|(lock, life, seen)| {
        words(&["SET", &format!("fingerprint:{lock}"), &format!("planted {life} 70 {seen} 1 60")])
    });
    let lock = || (0..3).prop_map(|lock| format!("lock:{lock}"));
    prop_oneof![
        6 => spoilt(&ONE_HOLDER, &["lock"]),
        2 => spoilt(&ONE_HOLDER, ONE_HOLDER.keys),
        1 => marked,
        1 => lock().prop_map(|key| words(&["HSET", &key, "other", "no number"])),
        1 => lock().prop_map(|key| words(&["ZADD", &key, "1", "other"])),
    ]
}

/// The time of a member, if it is there, has long passed: one more would be lost with a key that is
/// about to end, and not without it.
fn ended_member(key: &str, member: &str) -> Step {
    const END: &str = "if redis.call('ZSCORE', KEYS[1], ARGV[1]) then
        redis.call('ZADD', KEYS[1], 1, ARGV[1]) end";
    words(&["EVAL", END, "1", key, member])
}

/// The same of a read/write lock; and readers and places whose time has long passed.
pub(crate) fn rw_planted() -> impl Strategy<Value = Step> {
    let chosen = (0..RW.locks, select(RW.holds), any::<bool>());
    let ended = chosen.prop_map(|(lock, hold, waits)| match place_of(hold).filter(|_| waits) {
        Some(place) => ended_member(&RW.key("alive", lock), place),
        None => words(&["ZADD", &RW.key("readers", lock), "1", hold]),
    });
    prop_oneof![7 => spoilt(&RW, RW.keys), 4 => ended]
}

/// The same of a semaphore; and holds and places whose time has long passed.
pub(crate) fn semaphore_planted() -> impl Strategy<Value = Step> {
    let chosen = (0..SEMAPHORE.locks, select(SEMAPHORE.holds), any::<bool>());
    let ended = chosen.prop_map(|(lock, hold, waits)| {
        let place = place_of(hold).filter(|_| waits);
        let key = SEMAPHORE.key(if place.is_some() { "alive" } else { "ends" }, lock);
        ended_member(&key, place.unwrap_or(hold))
    });
    prop_oneof![7 => spoilt(&SEMAPHORE, SEMAPHORE.keys), 4 => ended]
}

/// What Java may leave there, and what nobody would: more entries of a reader, some of which have
/// ended; and records of other kinds.
pub(crate) fn java_rw_planted() -> impl Strategy<Value = Step> {
    let of = |kind: &'static str| (0..2_usize).prop_map(move |lock| JAVA_RW.key(kind, lock));
    let timeout = (of("stem"), select(JAVA_RW.holds), 1..3_u8);
    let timeout =
        timeout.prop_map(|(stem, hold, entry)| format!("{stem}:{hold}:rwlock_timeout:{entry}"));
    prop_oneof![
        3 => timeout.clone().prop_map(|key| words(&["SET", &key, "1", "PX", "250000"])),
        3 => timeout.prop_map(|key| words(&["DEL", &key])),
        3 => of("lock").prop_map(|key| words(&["HSET", &key, "j:81", "2"])),
        1 => of("lock").prop_map(|key| words(&["HDEL", &key, "mode"])),
        1 => of("lock").prop_map(|key| words(&["HSET", &key, "mode", "other", "a", "no number"])),
        5 => spoilt(&JAVA_RW, JAVA_RW.keys),
    ]
}
