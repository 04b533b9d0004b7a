//! Names: of clients, of their holds, of owners and of locks.

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
    /// So many digits follow the name: 80 random bits.
    const DIGITS: usize = 20;

    /// `<name>@<random digits>`, with the name [encoded](ClientName); a UUID where there is none.
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

    /// What the client is called, as it stands in its id.
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
    /// For simulations that repeat themselves. Else the random digits are the operating system's:
    /// what this process drew itself, a copy of it would draw too.
    seeded: Option<Mutex<StdRng>>,
}

impl HoldIds {
    /// `chance`: what to draw from in place of the operating system.
    pub fn new(client: ClientId, chance: Option<StdRng>) -> Self {
        Self { client, next: AtomicU64::new(1), seeded: chance.map(Mutex::new) }
    }

    pub fn client(&self) -> &ClientId {
        &self.client
    }

    pub fn fresh(&self) -> HoldId {
        self.outermost("")
    }

    /// A fresh hold that reads, or its place in the queue.
    pub fn fresh_read(&self) -> HoldId {
        self.outermost("r")
    }

    /// A fresh place in a queue that is owed no turn in order: voters pass it where its client does
    /// not hear them.
    pub fn fresh_unordered(&self) -> HoldId {
        self.outermost("~")
    }

    /// A fresh hold that nobody has: the one who knows the secret of this hash can resume it.
    pub fn parked(&self, hash: &str) -> HoldId {
        HoldId::of(format_args!("{}-{hash}", self.outermost("p")))
    }

    /// A fresh hold that resumes the parked one of this hash.
    pub fn resuming(&self, hash: &str) -> HoldId {
        HoldId::of(format_args!("{}-{hash}", self.outermost("")))
    }

    /// 128 bits that nobody can guess, as hexadecimal digits.
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

/// Names one outermost acquisition of one lock: `<client>:<number>`. The client is what it is
/// [called](crate::Builder::client_name) and random digits, as in
/// `web-1.4711@5f0ad4b396b14a3c8c2f`, or a UUID where it has no name. In the name each byte that is
/// no ASCII letter, digit, `.`, `_` or `-` is percent-encoded: `web%3A1` is `web:1`. Where it waited
/// in a queue, the hold is `<place>.<number>`, with a place of the same form. Before the number stands `r` if
/// it reads, and `~` for a place in the queue of a plain mutex. A hold that reads under a write of
/// the same owner is `<write hold>/<number>`. Each number counts up and ends with random digits.
/// Behind the number stands a [note](crate::Mutex::note) between two `=`, if there is one, encoded
/// as the name: `=job%2042=`. A write of a lock of [Redisson](crate::Redisson) ends with `:write`. A
/// hold that is [parked](crate::MutexGuard::detach_for) has `p` before its number, and ends with `-`
/// and a hash of its ticket's secret; so does the hold that resumes it, without `p`.
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
/// assert_eq!(hold.client_name().as_deref(), Some("web-1.4711"));
/// assert_eq!(hold.to_string().parse::<HoldId>()?, hold);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(Arc<str>);

impl HoldId {
    /// As long as most of them: a text of so much room does not grow while it is written.
    const ROOM: usize = 80;

    /// So many digits of the hash of a ticket's secret stand in the id of a parked hold.
    pub(crate) const HASH: usize = 32;

    fn of(words: fmt::Arguments<'_>) -> Self {
        let mut text = String::with_capacity(Self::ROOM);
        text.write_fmt(words).expect("a text takes all words");
        Self(text.into())
    }

    pub(crate) fn parse(text: &str) -> Self {
        Self(text.into())
    }

    /// The same with what its user says of it.
    pub(crate) fn noted(&self, note: &Note) -> Self {
        Self::of(format_args!("{self}={}=", note.0))
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
    pub fn client_name(&self) -> Option<String> {
        ClientId::name(self.client()?).map(decoded)
    }

    /// What its user [says of it](crate::Mutex::note), if anything.
    pub fn note(&self) -> Option<String> {
        let (_, noted) = self.0[self.client()?.len()..].split_once('=')?;
        let (note, _) = noted.split_once('=')?;
        Some(decoded(note))
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
        self.write().is_some() || self.number().is_some_and(|number| number.starts_with('r'))
    }

    /// What stands behind the client.
    fn number(&self) -> Option<&str> {
        self.0[self.client()?.len()..].strip_prefix(':')
    }

    /// Whether it is [parked](crate::MutexGuard::detach_for): nobody has the lock by it, and
    /// whoever has its ticket can resume it.
    pub fn is_parked(&self) -> bool {
        self.hash().is_some() && self.number().is_some_and(|number| number.starts_with('p'))
    }

    /// Of a parked hold, and of one that resumes it: the hash of the ticket's secret.
    pub(crate) fn hash(&self) -> Option<&str> {
        let (rest, hash) = self.0.split_at_checked(self.0.len().checked_sub(Self::HASH)?)?;
        // Each request asks this, and few ids have a hash: most end here.
        let number = if rest.ends_with('-') { self.number()? } else { return None };
        // A note may end like this too, with its `=`.
        let is_hash = hash.bytes().all(|digit| digit.is_ascii_hexdigit());
        (is_hash && number.len() > Self::HASH).then_some(hash)
    }

    /// Whether it was made by whoever has the ticket of that hold.
    pub(crate) fn resumes(&self, parked: &Self) -> bool {
        parked.is_parked() && !self.is_parked() && self.hash() == parked.hash()
    }

    /// Requests of these holds leave in order.
    pub(crate) fn party(&self) -> &str {
        self.hash().unwrap_or_else(|| self.place_or_self())
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

/// The name of a client as its id begins with it. It is any text of 1 to [`ClientName::LONGEST`]
/// bytes without control characters. What means something in an id, a key, a channel or a log is
/// percent-encoded, and so is what is not ASCII.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientName(Arc<str>);

impl ClientName {
    pub const LONGEST: usize = 64;
    /// So much is left of the name of a host: the end, which tells pods of one service apart. Then
    /// the id of a hold without a note has 64 bytes at most, up to which servers keep records small.
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
        // No program takes such an id for an option.
        let host = host.trim_start_matches(['-', '.']);
        let host = if host.is_empty() { "unknown-host" } else { host };
        Self(format!("{host}.{process}").into())
    }
}

/// What a user says of a hold, as its id carries it: any text of 1 to [`Note::LONGEST`] bytes
/// without control characters, encoded as a [`ClientName`] is. In an id it has a `=` on each side:
/// so none of its digits are the end of the id, by which scripts know an attempt or a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note(Arc<str>);

impl Note {
    pub const LONGEST: usize = 200;

    pub fn parse(note: &str) -> Result<Self, Error> {
        Ok(Self(printable(note, "note", Self::LONGEST)?.into()))
    }

    /// As it was given.
    pub fn text(&self) -> String {
        decoded(&self.0)
    }
}

/// Encoded, if it has no control characters. `what`: for the error.
fn printable(text: &str, what: &str, most: usize) -> Result<String, Error> {
    let text = within(text, what, most)?;
    match text.chars().find(|sign| sign.is_control()) {
        Some(sign) => Err(Error::invalid(format!("the {what} {text:?} has {sign:?} in it"))),
        None => Ok(encoded(text)),
    }
}

/// Only what is plain stays as it is, so the text is ASCII, and no two texts become the same.
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

/// The text that is encoded so.
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

/// The name that is encoded so. Of other programs' holds it is the text itself.
fn decoded(text: &str) -> String {
    let name = decode(text).filter(|name| !name.chars().any(char::is_control));
    name.unwrap_or_else(|| text.to_owned())
}

/// `what`: for the error.
fn within<'a>(text: &'a str, what: &str, most: usize) -> Result<&'a str, Error> {
    match text.len() {
        0 => Err(Error::invalid(format!("the {what} is empty"))),
        length if length > most => {
            Err(Error::invalid(format!("the {what} has {length} bytes, the limit is {most}")))
        }
        _ => Ok(text),
    }
}

/// It means nothing in an id, a key or a channel.
fn is_plain(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '.' | '_' | '-')
}

/// What the system calls this host; empty where it does not say.
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
/// It is a plain value: every copy of it, on any task or thread, is the same owner. It counts only
/// within one client (one [`Quorate`](crate::Quorate)). Two clients with the same owner are still
/// two parties.
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
/// It is shown as a UUID, and read from one. So the id of a request or of a job can be its owner,
/// and an owner in a log can be found again:
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
        // Not a count: one that was read from another process's text must equal none made here.
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

    /// The same of a text that is shared.
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
