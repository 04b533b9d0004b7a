//! The ids and names of clients, holds, owners and locks.

use std::{
    env,
    fmt::{self, Write},
    process,
    str::FromStr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use rand::{
    Rng, TryRng,
    rngs::{StdRng, SysRng},
};
use uuid::Uuid;

use super::Error;
use crate::sync::lock;

/// One connected client; the first half of every [`HoldId`] it makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientId(Arc<str>);

impl ClientId {
    /// The number of hexadecimal digits behind the name: 80 random bits.
    const DIGITS: usize = 20;

    /// `<name>@<random digits>`, with the name [encoded](ClientName); a UUID if it has no name.
    pub fn new(bytes: [u8; 16], name: Option<&ClientName>) -> Self {
        let uuid = uuid::Builder::from_random_bytes(bytes).into_uuid();
        Self(match name {
            Some(ClientName(name)) => {
                let random = u128::from_le_bytes(bytes) >> (128 - 4 * Self::DIGITS);
                format!("{name}@{random:020x}").into()
            }
            None => uuid.to_string().into(),
        })
    }

    /// The encoded name of the client in its id.
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

/// Makes the hold ids of one client, each of them once.
// A process that is restored twice from one snapshot has the same client id and count in both
// copies. Without the random digits behind each count, voters took both for one holder (law 1).
#[derive(Debug)]
pub struct HoldIds {
    client: ClientId,
    next: AtomicU64,
    // For simulations, which repeat themselves. Otherwise the operating system is asked each time:
    // a generator in this process would be copied with it.
    seeded: Option<Mutex<StdRng>>,
}

impl HoldIds {
    /// `chance`: the generator to use in place of the operating system.
    pub fn new(client: ClientId, chance: Option<StdRng>) -> Self {
        Self { client, next: AtomicU64::new(1), seeded: chance.map(Mutex::new) }
    }

    pub fn client(&self) -> &ClientId {
        &self.client
    }

    pub fn fresh(&self) -> HoldId {
        self.outermost("")
    }

    /// A fresh hold that reads, or a place of one in the queue.
    pub fn fresh_read(&self) -> HoldId {
        self.outermost("r")
    }

    /// A fresh place in a queue without a promised order. Voters remove it if its client does not
    /// hear its wake-up.
    pub fn fresh_unordered(&self) -> HoldId {
        self.outermost("~")
    }

    /// A fresh parked hold. Whoever has the secret of this hash can resume it.
    pub fn parked(&self, hash: &str) -> HoldId {
        HoldId::of(format_args!("{}-{hash}", self.outermost("p")))
    }

    /// A fresh hold that resumes the parked one of this hash.
    pub fn resuming(&self, hash: &str) -> HoldId {
        HoldId::of(format_args!("{}-{hash}", self.outermost("")))
    }

    /// 128 random bits as hexadecimal digits.
    pub fn secret(&self) -> String {
        format!("{:016x}{:016x}", self.draw(), self.draw())
    }

    fn outermost(&self, sign: &str) -> HoldId {
        let (number, chance) = (self.number(), self.draw() % 1_000_000_000_000);
        HoldId::of(format_args!("{}:{sign}{number}{chance:012}", self.client))
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
        let chance = self.draw() % 1_000_000;
        HoldId::of(format_args!("{outer}{sign}{number}{chance:06}"))
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn draw(&self) -> u64 {
        match &self.seeded {
            Some(chance) => lock(chance).next_u64(),
            None => SysRng.try_next_u64().expect("the system has random numbers"),
        }
    }
}

/// Names one outermost acquisition of one lock: `<client>:<number>`.
///
/// - The client is its [name](crate::Builder::client_name) and random digits, as in
///   `web-1.4711@5f0ad4b396b14a3c8c2f`, or a UUID if it has no name. In the name every byte that is
///   no ASCII letter, digit, `.`, `_` or `-` is percent-encoded: `web%3A1` is `web:1`.
/// - The number is a counter and random digits. It begins with `r` if the hold reads, and with `~`
///   for a place in the queue of a plain mutex.
/// - A hold that waited in a queue is `<place>.<number>`, with a place of the same form.
/// - A hold that reads under a write of the same owner is `<write hold>/<number>`.
/// - A [note](crate::Mutex::note) stands between two `=` behind the number, encoded like the name:
///   `=job%2042=`.
/// - A write of a lock of [Redisson](crate::Redisson) ends with `:write`.
/// - A [parked](crate::MutexGuard::detach_for) hold has `p` before its number, and ends with `-`
///   and a hash of its ticket's secret. So does the hold that resumes it, without `p`.
///
/// Tasks of one client that hand a mutex on have it one after the other under the same id. If such
/// a hold is ended by force, so are the holds of all tasks that get it within the next 50 ms.
///
/// Voters store the id as text, so a hold of another program is whatever text is in its record. An
/// id is shown as that text and parsed from it: from any text but the empty one.
///
/// ```
/// # fn main() -> Result<(), quorate::Error> {
/// use quorate::HoldId;
///
/// // From a log, or from the command line of a tool for operators.
/// let hold: HoldId = "web-1.4711@5f0ad4b396b14a3c8c2f:1000000000042".parse()?;
/// assert_eq!(hold.client(), Some("web-1.4711@5f0ad4b396b14a3c8c2f"));
/// assert_eq!(hold.client_name().as_deref(), Some("web-1.4711"));
/// assert_eq!(hold.to_string().parse::<HoldId>()?, hold);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(Arc<str>);

impl HoldId {
    // Most ids are shorter. A text with this capacity does not grow while it is written.
    const ROOM: usize = 80;

    /// How many digits of the hash of a ticket's secret are in the id of a parked hold.
    pub(crate) const HASH: usize = 32;

    fn of(words: fmt::Arguments<'_>) -> Self {
        let mut text = String::with_capacity(Self::ROOM);
        text.write_fmt(words).expect("a text takes all words");
        Self(text.into())
    }

    pub(crate) fn parse(text: &str) -> Self {
        Self(text.into())
    }

    /// The same hold with a note.
    pub(crate) fn noted(&self, note: &Note) -> Self {
        Self::of(format_args!("{self}={}=", note.0))
    }

    /// The id as voters store it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn text(&self) -> &Arc<str> {
        &self.0
    }

    /// The id of the client that made it; `None` for a hold of another program.
    pub fn client(&self) -> Option<&str> {
        let (client, _) = self.0.split_once(':')?;
        let is_ours = ClientId::name(client).is_some() || Uuid::try_parse(client).is_ok();
        is_ours.then_some(client)
    }

    /// The [name](crate::Builder::client_name) of the client that made it, if it has one.
    pub fn client_name(&self) -> Option<String> {
        ClientId::name(self.client()?).map(decoded)
    }

    /// Its [note](crate::Mutex::note), if it has one.
    pub fn note(&self) -> Option<String> {
        let (_, noted) = self.0[self.client()?.len()..].split_once('=')?;
        let (note, _) = noted.split_once('=')?;
        Some(decoded(note))
    }

    /// The place in the queue from which its lock was requested, if there was one. All attempts of
    /// one waiter have the same place.
    pub fn place(&self) -> Option<&str> {
        self.outer('.')
    }

    /// The write under which it reads, if there is one.
    pub fn write(&self) -> Option<&str> {
        self.outer('/')
    }

    /// Whether it reads in a read/write lock.
    pub(crate) fn reads(&self) -> bool {
        self.write().is_some() || self.number().is_some_and(|number| number.starts_with('r'))
    }

    /// The part behind the client.
    fn number(&self) -> Option<&str> {
        self.0[self.client()?.len()..].strip_prefix(':')
    }

    /// Whether it is [parked](crate::MutexGuard::detach_for): nobody works under it, and whoever
    /// has its ticket can resume it.
    pub fn is_parked(&self) -> bool {
        self.hash().is_some() && self.number().is_some_and(|number| number.starts_with('p'))
    }

    /// The hash of the ticket's secret, for a parked hold and for one that resumes it.
    pub(crate) fn hash(&self) -> Option<&str> {
        let (rest, hash) = self.0.split_at_checked(self.0.len().checked_sub(Self::HASH)?)?;
        // Each request asks this, and few ids have a hash: most return here.
        let number = if rest.ends_with('-') { self.number()? } else { return None };
        // A note may also end with digits, but behind a note there is `=`, which is no digit.
        let is_hash = hash.bytes().all(|digit| digit.is_ascii_hexdigit());
        (is_hash && number.len() > Self::HASH).then_some(hash)
    }

    /// Whether it resumes that parked hold.
    pub(crate) fn resumes(&self, parked: &Self) -> bool {
        parked.is_parked() && !self.is_parked() && self.hash() == parked.hash()
    }

    /// Requests of holds with the same party are sent in order.
    pub(crate) fn party(&self) -> &str {
        // All bids from one place: if the next request arrived before the undo of the last bid, the
        // vote of that bid would refuse it. And a parked hold with all holds that resume it, as
        // they pass the same votes on.
        self.hash().unwrap_or_else(|| self.place_or_self())
    }

    /// The place of a waiter's attempt, or the id itself.
    pub(crate) fn place_or_self(&self) -> &str {
        self.place().unwrap_or(&self.0)
    }

    /// The same as a shared text.
    pub(crate) fn shared_place_or_self(&self) -> Arc<str> {
        self.place().map_or_else(|| Arc::clone(&self.0), Arc::from)
    }

    /// The part before the last `sign`, if a number follows.
    // The same rule as `place_of` and `write_of` in Lua: voters and clients must agree on the place
    // of an attempt.
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

/// The name of a client as it stands in its id: any text of 1 to [`ClientName::LONGEST`] bytes
/// without control characters. All but ASCII letters, digits, `.`, `_` and `-` is percent-encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientName(Arc<str>);

impl ClientName {
    pub const LONGEST: usize = 64;
    // The end of a host's name differs between the pods of one service. With 20 bytes, the id of a
    // hold without a note has at most 64, up to which servers keep records in their small form.
    const HOST: usize = 20;

    pub fn parse(name: &str) -> Result<Self, Error> {
        Ok(Self(printable(name, "client name", Self::LONGEST)?.into()))
    }

    /// The host and the id of this process.
    pub fn of_this_process() -> Self {
        Self::of_host(&host(), process::id())
    }

    fn of_host(host: &str, process: u32) -> Self {
        let host: String = host.chars().filter(|sign| !sign.is_control()).collect();
        let mut ends = host.char_indices().map(|(at, _)| encoded(&host[at..]));
        let host = ends.find(|end| end.len() <= Self::HOST).unwrap_or_default();
        // A command line would take an id that begins with `-` for an option.
        let host = host.trim_start_matches(['-', '.']);
        let host = if host.is_empty() { "unknown-host" } else { host };
        Self(format!("{host}.{process}").into())
    }
}

/// What a hold is for, in the words of its user: any text of 1 to [`Note::LONGEST`] bytes without
/// control characters, encoded like a [`ClientName`].
// In the id, and in no key of its own: decided under *Words* in `docs/protocol.md`. The `=` on each
// side keeps a note that ends with digits from being taken for the number of an attempt or a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note(Arc<str>);

impl Note {
    pub const LONGEST: usize = 200;

    pub fn parse(note: &str) -> Result<Self, Error> {
        Ok(Self(printable(note, "note", Self::LONGEST)?.into()))
    }

    /// The note as its user wrote it.
    pub fn text(&self) -> String {
        decoded(&self.0)
    }
}

/// Encodes a text of at most `most` bytes without control characters. `what`: its name in errors.
fn printable(text: &str, what: &str, most: usize) -> Result<String, Error> {
    let text = within(text, what, most)?;
    match text.chars().find(|sign| sign.is_control()) {
        Some(sign) => Err(Error::invalid(format!("the {what} {text:?} has {sign:?} in it"))),
        None => Ok(encoded(text)),
    }
}

/// Percent-encodes all but plain characters. The result is ASCII, and no two texts have the same.
pub(super) fn encoded(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        match char::from(byte) {
            sign if is_plain(sign) => encoded.push(sign),
            _ => write!(encoded, "%{byte:02X}").expect("a text takes all words"),
        }
    }
    encoded
}

/// The text with this encoded form; `None` if it is the encoded form of no text.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        let is_code = code.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F'));
        bytes.push(u8::from_str_radix(code, 16).ok().filter(|_| is_code)?);
        bytes.extend(rest.bytes());
    }
    String::from_utf8(bytes).ok()
}

/// The text with this encoded form, or the form itself if another program wrote it.
fn decoded(text: &str) -> String {
    // Another program may have encoded control characters: these are never shown in a log.
    let name = decode(text).filter(|name| !name.chars().any(char::is_control));
    name.unwrap_or_else(|| text.to_owned())
}

/// Checks the length of a text. `what`: its name in errors.
fn within<'a>(text: &'a str, what: &str, most: usize) -> Result<&'a str, Error> {
    match text.len() {
        0 => Err(Error::invalid(format!("the {what} is empty"))),
        length if length > most => {
            Err(Error::invalid(format!("the {what} has {length} bytes, the limit is {most}")))
        }
        _ => Ok(text),
    }
}

/// Whether the character has no meaning in an id, a key or a channel.
fn is_plain(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '.' | '_' | '-')
}

/// The name of this host; empty if the system does not say.
fn host() -> String {
    #[cfg(target_os = "linux")]
    if let Ok(name) = rustix::system::uname().nodename().to_str() {
        return name.to_owned();
    }
    let named = ["HOSTNAME", "COMPUTERNAME"].iter().find_map(|name| env::var(name).ok());
    named.unwrap_or_default()
}

/// An identity that may enter a lock again while it holds it.
///
/// It is a plain value: every copy of it, on any task or thread, is the same owner, within one
/// client (one [`Quorate`](crate::Quorate)). Two clients with the same owner exclude each other.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), quorate::Error> {
/// # let voters = quorate::embedded::voters(3);
/// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
/// let owner = quorate::Owner::new();
/// let mutex = quorum.mutex("invoice:42").owner(&owner);
/// let outer = mutex.lock().await?;
/// let inner = mutex.lock().await?; // the same owner: enters at once
/// assert_eq!(outer.count(), 2);
/// # Ok(())
/// # }
/// ```
///
/// Its text form is a UUID. So the id of a request or of a job can be its owner, and an owner in a
/// log can be found again:
///
/// ```
/// # fn main() -> Result<(), quorate::Error> {
/// use quorate::Owner;
///
/// let request: Owner = "9e107d9d-372b-4b68-8f2a-3542a9d6d1e5".parse()?;
/// assert_eq!(request.to_string(), "9e107d9d-372b-4b68-8f2a-3542a9d6d1e5");
/// assert!("request 7".parse::<Owner>().unwrap_err().is_invalid());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner(Uuid);

impl Owner {
    /// An owner equal to no other but its own copies.
    ///
    /// # Panics
    ///
    /// If the operating system has no random numbers.
    #[expect(clippy::new_without_default, reason = "two defaults that differ would surprise")]
    pub fn new() -> Self {
        let mut bytes = [0; 16];
        // Not a counter: an owner that was parsed from the text of another process must equal none
        // that is made here.
        SysRng.try_fill_bytes(&mut bytes).expect("the system has random numbers");
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Owner {
    type Err = Error;

    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for anything but a UUID.
    fn from_str(text: &str) -> Result<Self, Error> {
        let uuid = Uuid::try_parse(text);
        uuid.map(Self).map_err(|_| Error::invalid(format!("{text:?} is no owner: those are UUIDs")))
    }
}

/// A checked lock name: 1 to [`LockName::LONGEST`] bytes of UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockName(Arc<str>);

impl LockName {
    /// The longest name in bytes.
    pub const LONGEST: usize = 512;

    pub fn parse(name: &str) -> Result<Self, Error> {
        Self::checked(name.into())
    }

    /// The same for a shared text.
    pub(crate) fn checked(name: Arc<str>) -> Result<Self, Error> {
        within(&name, "lock name", Self::LONGEST)?;
        Ok(Self(name))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
#[path = "ids_tests.rs"]
mod tests;
