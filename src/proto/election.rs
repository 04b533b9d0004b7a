//! Who leads, by what the voters say, and what is new to whoever watches.

use std::{collections::BTreeSet, fmt, str, sync::Arc, time::Duration};

use super::{Backoff, Cause, Error, HoldId, Moment, Quorum, Token, Verdict};

/// Who leads, by what a majority of the voters says, and has confirmed that it does.
///
/// It is what the voters say, and no proof: the leader may have lost its lead since. Whoever must
/// not listen to a leader that is no more compares [`token`](Self::token)s, and refuses the lower
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Leader {
    hold: HoldId,
    token: Token,
    value: LeaderValue,
}

impl Leader {
    pub(crate) fn new(hold: HoldId, token: Token, value: LeaderValue) -> Self {
        Self { hold, token, value }
    }

    /// The hold of the [`Leadership`](crate::Leadership).
    pub fn hold(&self) -> &HoldId {
        &self.hold
    }

    /// The token of the [`Leadership`](crate::Leadership): higher than that of every leader before.
    pub fn token(&self) -> Token {
        self.token
    }

    /// What the leader says of itself: what it campaigned with, or has proclaimed since.
    pub fn value(&self) -> &[u8] {
        self.value.bytes()
    }

    /// The value as text, if it is text.
    pub fn text(&self) -> Option<&str> {
        str::from_utf8(&self.value.0).ok()
    }
}

/// What a leader says of itself.
#[derive(Clone, PartialEq, Eq)]
pub struct LeaderValue(Arc<[u8]>);

impl LeaderValue {
    /// The most that it may have.
    pub const MOST_BYTES: usize = 4096;

    pub fn new(value: &[u8]) -> Result<Self, Error> {
        if value.len() > Self::MOST_BYTES {
            let (bytes, most) = (value.len(), Self::MOST_BYTES);
            let what = format!("the value of a leader has {bytes} bytes: {most} are the most");
            return Err(Error::invalid(what));
        }
        Ok(Self(value.into()))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for LeaderValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match str::from_utf8(&self.0) {
            Ok(text) => text.fmt(f),
            Err(_) => write!(f, "{:02x?}", self.0),
        }
    }
}

/// What stands in the record of a leader: `1 - =10.0.0.1:80`. What is no text is in hexadecimal
/// digits behind a `#`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proclaimed {
    /// Grows with what the leader says: a voter keeps the latest.
    pub version: u64,
    /// Unknown when it campaigned. Who has won says so by writing it down.
    pub token: Option<Token>,
    pub value: LeaderValue,
}

impl Proclaimed {
    /// What a candidate says.
    pub const FIRST: u64 = 1;

    pub fn to_text(&self) -> String {
        let Self { version, token, value } = self;
        let token = token.map_or_else(|| "-".into(), |token| token.to_string());
        if let Ok(text) = str::from_utf8(&value.0) {
            return format!("{version} {token} ={text}");
        }
        let digits = value.0.iter().map(|byte| format!("{byte:02x}"));
        format!("{version} {token} #{}", digits.collect::<String>())
    }

    /// `None` for what no leader has written.
    pub fn parse(text: &str) -> Option<Self> {
        let (version, rest) = text.split_once(' ')?;
        let (token, value) = rest.split_once(' ')?;
        let token = if token == "-" { None } else { Some(token.parse().ok()?) };
        let value: Arc<[u8]> = match value.split_at_checked(1)? {
            ("=", text) => text.as_bytes().into(),
            ("#", digits) => bytes(digits)?.into(),
            _ => return None,
        };
        Some(Self { version: version.parse().ok()?, token, value: LeaderValue(value) })
    }
}

/// The bytes that stand there as pairs of hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

/// Who has the vote of one voter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incumbent {
    pub hold: HoldId,
    /// What is left of its lease; `None` where the record has no expiry.
    pub left: Option<Duration>,
    pub said: Proclaimed,
}

/// What one voter says of who leads: who has its vote, if anybody has.
pub type Sight = Result<Option<Incumbent>, Cause>;

/// What the voters say, as far as they have been heard.
#[derive(Clone, Debug)]
pub struct Census {
    quorum: Quorum,
    sights: Vec<Option<Sight>>,
}

/// What they say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhoLeads {
    /// A majority names this hold, which has confirmed that it leads, and said so much.
    Led { leader: Leader, version: u64 },
    /// No hold can have a majority.
    Vacant,
    /// Too few voters say something that can be relied on.
    Unclear,
}

impl Census {
    pub fn new(quorum: Quorum) -> Self {
        Self { quorum, sights: vec![None; quorum.voters()] }
    }

    pub fn hear(&mut self, voter: usize, sight: Sight) {
        self.sights[voter] = Some(sight);
    }

    /// Counts every voter that has not been heard as one that did not answer in time.
    pub fn close(&mut self, after: Duration) {
        for sight in self.sights.iter_mut().filter(|sight| sight.is_none()) {
            *sight = Some(Err(Cause::TimedOut(after)));
        }
    }

    /// What they say, once nothing that is still to come changes it.
    pub fn decide(&self) -> Option<WhoLeads> {
        let holds: BTreeSet<&HoldId> = self.incumbents().map(|(_, one)| &one.hold).collect();
        let names = |hold, voter| self.hold_at(voter) == Some(hold);
        if let Some(hold) = holds.iter().find(|it| self.quorum.reached(|at| names(**it, at))) {
            return self.led_by(hold);
        }
        // And one that no voter has named so far.
        let all = holds.into_iter().map(Some).chain([None]);
        let may_lead = |hold: &_| self.quorum.reached_in_one(|voter| self.may_name(voter, *hold));
        let candidates: Vec<_> = all.filter(may_lead).collect();
        if candidates.is_empty() {
            return Some(WhoLeads::Vacant);
        }
        (!self.is_open()).then(|| self.led_by_the_latest(&candidates))
    }

    /// Where there are two sets of voters, a leader may be a client that has one of them alone. Its
    /// token tells it from a candidate that has a majority of one set and still asks for the other:
    /// nobody knows its token before it leads. The other set may still name one that has resigned
    /// or lost there: that has the lower token.
    fn led_by_the_latest(&self, candidates: &[Option<&HoldId>]) -> WhoLeads {
        let token = |hold: &HoldId| {
            let names = |voter: usize| self.hold_at(voter) == Some(hold);
            self.latest_of(hold)?.token.filter(|_| self.quorum.reached_in_one(names))
        };
        let told = candidates.iter().map(|hold| Some((token((*hold)?)?, (*hold)?)));
        let latest = told.collect::<Option<Vec<_>>>().and_then(|told| told.into_iter().max());
        latest.and_then(|(_, hold)| self.led_by(hold)).unwrap_or(WhoLeads::Unclear)
    }

    /// A majority names this hold. It leads if it has told its token anywhere. Until then it may
    /// have been given up before the voters gave their votes, or may lead and not have said so yet.
    fn led_by(&self, hold: &HoldId) -> Option<WhoLeads> {
        let latest = self.latest_of(hold)?;
        let Some(token) = latest.token else {
            return (!self.is_open()).then_some(WhoLeads::Unclear);
        };
        let leader = Leader::new(hold.clone(), token, latest.value.clone());
        Some(WhoLeads::Led { leader, version: latest.version })
    }

    /// The latest that a hold has said, of what the voters know.
    fn latest_of(&self, hold: &HoldId) -> Option<&Proclaimed> {
        let said = self.incumbents().filter(|(_, one)| one.hold == *hold);
        said.map(|(_, one)| &one.said).max_by_key(|said| said.version)
    }

    /// A majority names a hold that has not confirmed that it leads. Who has won does so at once.
    pub fn awaits_winner(&self) -> bool {
        let mut holds = self.incumbents().map(|(_, one)| &one.hold);
        holds.any(|hold| {
            self.quorum.reached(|voter| self.hold_at(voter) == Some(hold))
                && self.latest_of(hold).is_some_and(|said| said.token.is_none())
        })
    }

    /// When the last of those that some voter names ends, if none of them is renewed.
    pub fn longest_left(&self) -> Option<Duration> {
        self.incumbents().filter_map(|(_, one)| one.left).max()
    }

    /// Some voter has not been heard.
    pub fn is_open(&self) -> bool {
        self.sights.iter().any(Option::is_none)
    }

    fn incumbents(&self) -> impl Iterator<Item = (usize, &Incumbent)> {
        (0..self.sights.len()).filter_map(|voter| Some((voter, self.incumbent(voter)?)))
    }

    fn incumbent(&self, voter: usize) -> Option<&Incumbent> {
        self.sights[voter].as_ref()?.as_ref().ok()?.as_ref()
    }

    fn hold_at(&self, voter: usize) -> Option<&HoldId> {
        self.incumbent(voter).map(|one| &one.hold)
    }

    /// Whether a voter may have given this hold its vote, or `None`: one that no voter has named.
    fn may_name(&self, voter: usize, hold: Option<&HoldId>) -> bool {
        match &self.sights[voter] {
            None | Some(Err(_)) => true,
            Some(Ok(one)) => one.as_ref().is_some_and(|one| Some(&one.hold) == hold),
        }
    }

    /// What each voter said; one that was not heard is unheard.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let verdict = |sight: &Option<Sight>| match sight {
            Some(Ok(Some(one))) => Verdict::Refused { by: one.hold.clone(), ttl: one.left },
            Some(Ok(None)) => Verdict::Absent,
            Some(Err(cause)) => Verdict::Unknown(cause.clone()),
            None => Verdict::Unknown(Cause::Unheard),
        };
        self.sights.iter().map(verdict).collect()
    }
}

/// A voter counts whole milliseconds.
const EXPIRED: Duration = Duration::from_millis(2);

/// So long after the first call the others may come: mostly a change is told by all voters.
const GATHER: Duration = Duration::from_millis(5);

/// One who watches.
#[derive(Clone, Debug)]
pub struct LeaderWatch {
    quorum: Quorum,
    poll: Duration,
    /// When it asks next, if nobody calls.
    due: Moment,
    /// Where connections break again and again.
    after_loss: Backoff,
    /// Some voter has called since it last asked.
    is_called: bool,
    /// Calls may have been lost since then.
    has_missed: bool,
    told: Option<WhoLeads>,
    /// The latest that was heard of a leader, with its version.
    latest: Option<(Leader, u64)>,
}

/// What it does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchNext {
    Ask,
    /// Until then, or until a voter calls.
    Wait(Moment),
}

impl LeaderWatch {
    /// It asks at once.
    pub fn start(quorum: Quorum, poll: Duration, now: Moment) -> Self {
        let after_loss = Backoff::new(Duration::from_millis(1), Duration::from_millis(500));
        let (is_called, has_missed, told, latest) = (false, false, None, None);
        Self { quorum, poll, due: now, after_loss, is_called, has_missed, told, latest }
    }

    /// `called`: the voters that have called since it last asked. A change that lasts is one at a
    /// majority, and some of them may still be about to tell it.
    pub fn next(&mut self, now: Moment, called: &[bool]) -> WatchNext {
        let hears = !crate::mutant!("observer_hears_nobody");
        if hears && called.contains(&true) && !std::mem::replace(&mut self.is_called, true) {
            self.due = self.due.min(now + GATHER);
        }
        let has_called = |voter: usize| hears && called.get(voter) == Some(&true);
        let asks = self.quorum.reached(has_called) || now >= self.due;
        if asks { WatchNext::Ask } else { WatchNext::Wait(self.due) }
    }

    /// It asks now.
    pub fn ask(&mut self, now: Moment) {
        if !self.is_called && !self.has_missed {
            // Nothing was lost for as long as it waited.
            self.after_loss.reset();
        }
        (self.is_called, self.has_missed) = (false, false);
        self.due = now + self.poll;
    }

    /// Who leads ends then unless that one renews, and nobody tells that.
    pub fn expect_end(&mut self, end: Moment) {
        self.due = self.due.min(end + EXPIRED);
    }

    /// It is known to hear the voters: what changed before was not heard.
    pub fn hears(&mut self, now: Moment) {
        self.due = now;
    }

    /// Calls may have been lost.
    pub fn miss(&mut self, now: Moment, chance: u32) {
        if !std::mem::replace(&mut self.has_missed, true) {
            self.due = self.due.min(now + self.after_loss.pause(chance));
        }
    }

    /// What the voters said, if it is new.
    pub fn tell(&mut self, finding: WhoLeads) -> Option<WhoLeads> {
        let finding = self.not_earlier(finding);
        let is_known = match (&self.told, &finding) {
            // Only the version is another.
            (Some(WhoLeads::Led { leader: told, .. }), WhoLeads::Led { leader, .. }) => {
                told == leader
            }
            (told, finding) => told.as_ref() == Some(finding),
        };
        if is_known {
            return None;
        }
        self.told = Some(finding.clone());
        Some(finding)
    }

    /// Those that were heard this time may not have stored yet what others have.
    fn not_earlier(&mut self, finding: WhoLeads) -> WhoLeads {
        let WhoLeads::Led { leader, version } = &finding else { return finding };
        match &self.latest {
            Some((latest, known)) if latest.hold() == leader.hold() && known > version => {
                WhoLeads::Led { leader: latest.clone(), version: *known }
            }
            _ => {
                self.latest = Some((leader.clone(), *version));
                finding
            }
        }
    }
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;
