//! Who holds.

use std::{
    fmt::{self, Write},
    str::FromStr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rand::{
    Rng, TryRng,
    rngs::{StdRng, SysRng},
};
use uuid::Uuid;

use super::Error;

/// One connected client; the first half of every [`HoldId`] it makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientId(Arc<str>);

impl ClientId {
    /// So many digits follow the name: 80 random bits.
    const DIGITS: usize = 20;

    /// `<name>@<random digits>`; a UUID where there is no name.
    pub fn new(bytes: [u8; 16], name: Option<&str>) -> Self {
        let uuid = uuid::Builder::from_random_bytes(bytes).into_uuid();
        Self(match name {
            Some(name) => {
                let random = u128::from_le_bytes(bytes) >> (128 - 4 * Self::DIGITS);
                format!("{name}@{random:020x}").into()
            }
            None => uuid.to_string().into(),
        })
    }

    /// What the client is called.
    fn name(text: &str) -> Option<&str> {
        let (name, random) = text.rsplit_once('@')?;
        let is_random = random.len() == Self::DIGITS
            && random.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        (is_random && !name.is_empty()).then_some(name)
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Makes the hold ids of one client: fresh each time, never reused, also not by a copy of the
/// process that was restored from a snapshot and has the same client id and the same count.
#[derive(Debug)]
pub struct HoldIds {
    client: ClientId,
    next: AtomicU64,
    chance: Chance,
}

/// Where the random digits of ids come from.
#[derive(Debug)]
enum Chance {
    /// The operating system. What this process drew itself, a copy of it would draw too.
    System,
    /// For simulations that repeat themselves.
    Seeded(Box<Mutex<StdRng>>),
}

impl Chance {
    fn draw(&self) -> u64 {
        match self {
            Self::System => SysRng.try_next_u64().expect("the system has random numbers"),
            Self::Seeded(chance) => {
                chance.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
            }
        }
    }
}

impl HoldIds {
    /// `chance`: what to draw from in place of the operating system.
    pub fn new(client: ClientId, chance: Option<StdRng>) -> Self {
        let chance =
            chance.map_or(Chance::System, |chance| Chance::Seeded(Box::new(Mutex::new(chance))));
        Self { client, next: AtomicU64::new(1), chance }
    }

    pub fn client(&self) -> &ClientId {
        &self.client
    }

    pub fn fresh(&self) -> HoldId {
        let chance = self.chance.draw() % 1_000_000_000_000;
        HoldId::of(format_args!("{}:{}{chance:012}", self.client, self.number()))
    }

    /// A fresh hold that reads, or its place in the queue.
    pub fn fresh_read(&self) -> HoldId {
        let chance = self.chance.draw() % 1_000_000_000_000;
        HoldId::of(format_args!("{}:r{}{chance:012}", self.client, self.number()))
    }

    /// A fresh place in a queue that is owed no turn in order: voters pass it where its client does
    /// not hear them.
    pub fn fresh_unordered(&self) -> HoldId {
        let chance = self.chance.draw() % 1_000_000_000_000;
        HoldId::of(format_args!("{}:~{}{chance:012}", self.client, self.number()))
    }

    /// A fresh hold that reads under `write`, which its own owner has.
    pub fn under(&self, write: &HoldId) -> HoldId {
        self.inner(write, '/', self.number())
    }

    /// The hold of an attempt that is made from this place in a queue.
    pub fn attempt(&self, place: &HoldId, number: u32) -> HoldId {
        self.inner(place, '.', number.into())
    }

    fn inner(&self, outer: &HoldId, sign: char, number: u64) -> HoldId {
        let chance = self.chance.draw() % 1_000_000;
        HoldId::of(format_args!("{outer}{sign}{number}{chance:06}"))
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// Names one outermost acquisition of one lock: `<client>:<number>`. The client is what it is
/// [called](crate::Builder::client_name) and random digits, as in
/// `web-1.4711@5f0ad4b396b14a3c8c2f`, or a UUID where it has no name. Where it waited in a queue,
/// the hold is `<place>.<number>`, with a place of the same form. Before the number stands `r` if
/// it reads, and `~` for a place in the queue of a plain mutex. A hold that reads under a write of
/// the same owner is `<write hold>/<number>`. Each number counts up and ends with random digits.
/// A write of a lock of [Redisson](crate::Redisson) ends with `:write`, behind its number.
///
/// Tasks of one client that hand a mutex on have it one after the other under the same id. To end
/// such a hold by force also ends it for those that get it within the next 50 ms.
///
/// Voters store it as text, so a hold of another program is whatever text stands in its record.
/// It is shown as that text, and read from it: any text but the empty one.
///
/// ```
/// # fn main() -> Result<(), quorate::Error> {
/// use quorate::HoldId;
///
/// // From a log, or from the command line of a tool for operators.
/// let hold: HoldId = "web-1.4711@5f0ad4b396b14a3c8c2f:1000000000042".parse()?;
/// assert_eq!(hold.client(), Some("web-1.4711@5f0ad4b396b14a3c8c2f"));
/// assert_eq!(hold.client_name(), Some("web-1.4711"));
/// assert_eq!(hold.to_string().parse::<HoldId>()?, hold);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(Arc<str>);

impl HoldId {
    /// As long as most of them: a text of so much room does not grow while it is written.
    const ROOM: usize = 80;

    fn of(words: fmt::Arguments<'_>) -> Self {
        let mut text = String::with_capacity(Self::ROOM);
        text.write_fmt(words).expect("a text takes all words");
        Self(text.into())
    }

    pub(crate) fn parse(text: &str) -> Self {
        Self(text.into())
    }

    /// The text that stands on the voters.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn text(&self) -> &Arc<str> {
        &self.0
    }

    /// The client that made it, by its id; `None` of a hold of another program.
    pub fn client(&self) -> Option<&str> {
        let (client, _) = self.0.split_once(':')?;
        let is_ours = ClientId::name(client).is_some() || Uuid::try_parse(client).is_ok();
        is_ours.then_some(client)
    }

    /// What the client that made it is [called](crate::Builder::client_name), if it has a name.
    pub fn client_name(&self) -> Option<&str> {
        ClientId::name(self.client()?)
    }

    /// The place in a queue from which its lock was asked for, if there was one. All attempts that
    /// a waiter makes have the same place.
    pub fn place(&self) -> Option<&str> {
        self.outer('.')
    }

    /// The write under which it reads, if it does.
    pub fn write(&self) -> Option<&str> {
        self.outer('/')
    }

    /// Whether it is a hold of a read/write lock that reads.
    pub(crate) fn reads(&self) -> bool {
        let number = self.client().and_then(|client| self.0[client.len()..].strip_prefix(':'));
        self.write().is_some() || number.is_some_and(|number| number.starts_with('r'))
    }

    /// What requests for it have in common with others of the same waiter.
    pub(crate) fn place_or_self(&self) -> &str {
        self.place().unwrap_or(&self.0)
    }

    /// The same, as a text that is shared.
    pub(crate) fn shared_place_or_self(&self) -> Arc<str> {
        self.place().map_or_else(|| Arc::clone(&self.0), Arc::from)
    }

    /// As scripts read it: what stands before the last `sign`, where a number follows.
    fn outer(&self, sign: char) -> Option<&str> {
        let (outer, number) = self.0.rsplit_once(sign)?;
        let is_number = !number.is_empty() && number.bytes().all(|sign| sign.is_ascii_digit());
        (is_number && !outer.is_empty()).then_some(outer)
    }
}

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for HoldId {
    type Err = Error;

    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for the empty text.
    fn from_str(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::invalid("\"\" is no hold id: those have at least one character"));
        }
        Ok(Self::parse(text))
    }
}

impl fmt::Debug for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HoldId({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;

    fn ids(chance: Option<StdRng>) -> HoldIds {
        HoldIds::new(ClientId::new([7; 16], None), chance)
    }

    /// One of each form.
    fn drawn(ids: &HoldIds) -> [HoldId; 5] {
        let hold = ids.fresh();
        let (attempt, under) = (ids.attempt(&hold, 3), ids.under(&hold));
        [hold, attempt, under, ids.fresh_read(), ids.fresh_unordered()]
    }

    #[test]
    fn hold_ids_are_never_reused_and_name_their_client() {
        let ids = ids(None);
        let (first, second) = (ids.fresh(), ids.fresh());
        assert_ne!(first, second);
        let (client, number) = first.as_str().split_once(':').unwrap();
        assert_eq!((client, number.len()), (&*ids.client().to_string(), 13));
        assert!(number.starts_with('1') && number.parse::<u64>().is_ok(), "{number}");
    }

    // A snapshot of a process that is restored twice: the same client, and the same count.
    #[test]
    fn copies_of_a_client_make_the_same_hold_ids_only_where_they_are_seeded() {
        let (one, other) = (ids(None), ids(None));
        for (one, other) in drawn(&one).into_iter().zip(drawn(&other)) {
            assert_ne!(one, other);
        }
        let place = one.fresh();
        assert_ne!(one.attempt(&place, 1), other.attempt(&place, 1), "from one place in a queue");
        let seeded = || drawn(&ids(Some(StdRng::seed_from_u64(1))));
        assert_eq!(seeded(), seeded());
    }

    #[test]
    fn scripts_find_the_place_of_an_attempt_and_the_write_of_a_read_under_it() {
        let ids = ids(None);
        let hold = ids.fresh();
        let (attempt, read) = (ids.attempt(&hold, 12), ids.under(&hold));
        assert_eq!((attempt.place(), attempt.write()), (Some(hold.as_str()), None));
        assert_eq!((read.place(), read.write()), (None, Some(hold.as_str())));
        assert_eq!((hold.place(), hold.write()), (None, None));
        for id in [&hold, &attempt, &read] {
            assert_eq!(id.client(), Some(&*ids.client().to_string()));
        }
        // Of other programs.
        for text in ["", ".", ".1", "a.", "a.b", "a/1b", "no uuid:1", "no uuid:r1"] {
            let other = HoldId::parse(text);
            let parts = [other.place(), other.write(), other.client()];
            assert_eq!((parts, other.reads()), ([None; 3], false), "{text}");
        }
    }

    #[test]
    fn a_hold_id_says_whether_it_reads() {
        let ids = ids(None);
        let (write, read) = (ids.fresh(), ids.fresh_read());
        assert!(!write.reads() && !ids.attempt(&write, 1).reads());
        assert!(read.reads() && ids.attempt(&read, 1).reads() && ids.under(&write).reads());
        assert_eq!(ids.attempt(&read, 1).place(), Some(read.as_str()));
        // As another library has it.
        let ends = HoldId::parse(&format!("{write}:write"));
        let under = ids.under(&ends);
        assert!(!ends.reads() && under.reads());
        assert_eq!((under.write(), under.client()), (Some(ends.as_str()), ends.client()));
    }

    #[test]
    fn the_id_of_a_client_with_a_name_begins_with_it() {
        let client = ClientId::new([0xab; 16], Some("web-1.4711"));
        assert_eq!(client.to_string(), format!("web-1.4711@{}", "ab".repeat(10)));
        let ids = HoldIds::new(client.clone(), None);
        let (hold, read) = (ids.fresh(), ids.fresh_read());
        for id in [&hold, &read, &ids.attempt(&hold, 1), &ids.under(&hold)] {
            assert_eq!(id.client(), Some(&*client.to_string()));
            assert_eq!(id.client_name(), Some("web-1.4711"));
        }
        assert!(read.reads() && !hold.reads() && hold.place().is_none());
        for text in ["web@1:7", "@abababababababababab:1", "web-1.4711@ABababababababababab:1"] {
            assert_eq!(HoldId::parse(text).client_name(), None, "{text}");
        }
    }

    #[test]
    fn the_empty_text_is_no_hold_id() {
        let error = "".parse::<HoldId>().unwrap_err();
        assert!(error.is_invalid() && error.to_string().starts_with("\"\" is no hold id"));
    }

    proptest! {
        #[test]
        fn a_hold_id_is_read_as_it_is_shown(text in "(?s).{1,40}") {
            let hold: HoldId = text.parse().unwrap();
            prop_assert_eq!(hold.to_string(), text);
            prop_assert_eq!(hold.to_string().parse::<HoldId>().unwrap(), hold);
        }
    }
}
