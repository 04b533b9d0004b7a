//! Who leads an election by the answers of the voters, and what is new to an observer.

use std::{collections::BTreeSet, fmt, mem, str, sync::Arc, time::Duration};

use super::{Backoff, Cause, Error, HoldId, Moment, Quorum, Token, Verdict};

/// A leader that a majority of the voters names, and that has confirmed that it leads.
///
/// This is no proof: the leader may have lost its lead since. A program that must not obey a former
/// leader compares [`token`](Self::token)s, and refuses the lower one.
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

    /// The value of the leader: what it campaigned with, or has proclaimed since.
    pub fn value(&self) -> &[u8] {
        self.value.bytes()
    }

    /// The value as text, if it is text.
    pub fn text(&self) -> Option<&str> {
        str::from_utf8(&self.value.0).ok()
    }
}

/// The value of a leader.
#[derive(Clone, PartialEq, Eq)]
pub struct LeaderValue(Arc<[u8]>);

impl LeaderValue {
    // Each voter stores it in the record, and each renewal carries it.
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

/// The entry of a leader in its record, as in `1 - =10.0.0.1:80`. A value that is no text is
/// written in hexadecimal digits behind a `#`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proclaimed {
    // A late renewal with an earlier value must not overwrite a later one
    // (`a_late_renewal_does_not_bring_an_old_value_back`).
    /// Grows with each new value. A voter keeps the highest.
    pub version: u64,
    // A candidate does not know that it will win. Only the winner writes its token, and by that
    // confirms that it leads (mutant `candidate_says_that_it_leads`).
    pub token: Option<Token>,
    pub value: LeaderValue,
}

impl Proclaimed {
    /// The version of a candidate.
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

    /// `None` for text that no leader has written.
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

/// The bytes of pairs of hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

/// The hold that has the vote of one voter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incumbent {
    pub hold: HoldId,
    /// What is left of its lease; `None` if the record has no expiry.
    pub left: Option<Duration>,
    pub said: Proclaimed,
}

/// The answer of one voter: the hold that has its vote, if there is one.
pub type Sight = Result<Option<Incumbent>, Cause>;

/// The answers of all voters so far.
#[derive(Clone, Debug)]
pub struct Census {
    quorum: Quorum,
    sights: Vec<Option<Sight>>,
}

/// What follows from the answers of all voters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhoLeads {
    /// A majority names this leader, which has confirmed that it leads.
    Led { leader: Leader, version: u64 },
    /// No hold can have a majority.
    Vacant,
    /// Too few voters gave a usable answer.
    Unclear,
}

impl Census {
    pub fn new(quorum: Quorum) -> Self {
        Self { quorum, sights: vec![None; quorum.voters()] }
    }

    pub fn hear(&mut self, voter: usize, sight: Sight) {
        self.sights[voter] = Some(sight);
    }

    /// Records every voter without an answer as one that did not answer in time.
    pub fn close(&mut self, after: Duration) {
        for sight in self.sights.iter_mut().filter(|sight| sight.is_none()) {
            *sight = Some(Err(Cause::TimedOut(after)));
        }
    }

    /// The result, once no answer that is still to come can change it.
    pub fn decide(&self) -> Option<WhoLeads> {
        let holds: BTreeSet<&HoldId> = self.incumbents().map(|(_, one)| &one.hold).collect();
        let names = |hold, voter| self.hold_at(voter) == Some(hold);
        if let Some(hold) = holds.iter().find(|it| self.quorum.reached(|at| names(**it, at))) {
            return self.led_by(hold);
        }
        // `None`: a hold that no voter has named so far. Nobody leads only if that cannot lead
        // either: the silent voters may all have voted for it (law 9).
        let all = holds.into_iter().map(Some).chain([None]);
        let may_lead = |hold: &_| self.quorum.reached_in_one(|voter| self.may_name(voter, *hold));
        let candidates: Vec<_> = all.filter(may_lead).collect();
        if candidates.is_empty() {
            return Some(WhoLeads::Vacant);
        }
        (!self.is_open()).then(|| self.led_by_the_latest(&candidates))
    }

    /// Of the holds that may have a majority of one set, the one with the highest token.
    fn led_by_the_latest(&self, candidates: &[Option<&HoldId>]) -> WhoLeads {
        // With two sets of voters, the leader may be a client of one set alone. It has written its
        // token; a candidate with a majority of one set that still asks the other has not. And the
        // other set may still name a leader that has resigned: that has the lower token.
        let token = |hold: &HoldId| {
            let names = |voter: usize| self.hold_at(voter) == Some(hold);
            self.latest_of(hold)?.token.filter(|_| self.quorum.reached_in_one(names))
        };
        // One candidate without a token makes all of this unclear: it may win at any moment.
        let tokens = candidates.iter().map(|hold| Some((token((*hold)?)?, (*hold)?)));
        let latest = tokens.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
        latest.and_then(|(_, hold)| self.led_by(hold)).unwrap_or(WhoLeads::Unclear)
    }

    /// A majority names this hold. It leads if any voter has its token.
    fn led_by(&self, hold: &HoldId) -> Option<WhoLeads> {
        // Without a token it may be a candidate that gave up before its late requests ran
        // (`a_candidate_that_has_given_up_is_never_seen_to_lead`), or a winner that has not
        // confirmed yet.
        let latest = self.latest_of(hold)?;
        let Some(token) = latest.token else {
            return (!self.is_open()).then_some(WhoLeads::Unclear);
        };
        let leader = Leader::new(hold.clone(), token, latest.value.clone());
        Some(WhoLeads::Led { leader, version: latest.version })
    }

    /// The latest entry of a hold.
    fn latest_of(&self, hold: &HoldId) -> Option<&Proclaimed> {
        let said = self.incumbents().filter(|(_, one)| one.hold == *hold);
        said.map(|(_, one)| &one.said).max_by_key(|said| said.version)
    }

    /// Whether a majority names a hold that has not confirmed that it leads. A winner confirms at
    /// once.
    pub fn awaits_winner(&self) -> bool {
        let mut holds = self.incumbents().map(|(_, one)| &one.hold);
        holds.any(|hold| {
            self.quorum.reached(|voter| self.hold_at(voter) == Some(hold))
                && self.latest_of(hold).is_some_and(|said| said.token.is_none())
        })
    }

    /// The longest lease left of a hold that some voter names.
    pub fn longest_left(&self) -> Option<Duration> {
        self.incumbents().filter_map(|(_, one)| one.left).max()
    }

    /// Whether some voter has not been heard.
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

    /// Whether a voter may have given this hold its vote. `None`: a hold that no voter has named.
    fn may_name(&self, voter: usize, hold: Option<&HoldId>) -> bool {
        match &self.sights[voter] {
            None | Some(Err(_)) => true,
            Some(Ok(one)) => one.as_ref().is_some_and(|one| Some(&one.hold) == hold),
        }
    }

    /// The answer of each voter as a verdict.
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

// A voter ends leases in whole milliseconds: at the shown end the record may still be there.
const EXPIRED: Duration = Duration::from_millis(2);

// A change is usually published by all voters within this time, so one question hears all of them.
// A single message is enough in the end, as the others may be lost.
const GATHER: Duration = Duration::from_millis(5);

/// An observer of an election.
#[derive(Clone, Debug)]
pub struct LeaderWatch {
    quorum: Quorum,
    poll: Duration,
    /// When it asks next, if no message comes.
    due: Moment,
    // Connections that break again and again must not make the observer ask as often.
    after_loss: Backoff,
    /// Some voter has published since it last asked.
    is_woken: bool,
    /// Messages may have been lost since then.
    has_missed: bool,
    /// What was reported last.
    reported: Option<WhoLeads>,
    /// The latest entry of a leader, with its version.
    latest: Option<(Leader, u64)>,
}

/// What an observer does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchNext {
    Ask,
    /// Nothing before this moment, unless a voter publishes.
    Wait(Moment),
}

impl LeaderWatch {
    /// It asks at once.
    pub fn start(quorum: Quorum, poll: Duration, now: Moment) -> Self {
        let after_loss = Backoff::new(Duration::from_millis(1), Duration::from_millis(500));
        let (is_woken, has_missed, reported, latest) = (false, false, None, None);
        Self { quorum, poll, due: now, after_loss, is_woken, has_missed, reported, latest }
    }

    /// `called`: the voters that have published since it last asked.
    pub fn next(&mut self, now: Moment, called: &[bool]) -> WatchNext {
        let hears = !crate::mutant!("observer_hears_nobody");
        if hears && called.contains(&true) && !mem::replace(&mut self.is_woken, true) {
            self.due = self.due.min(now + GATHER);
        }
        let has_called = |voter: usize| hears && called.get(voter) == Some(&true);
        // A change that lasts is one of a majority: once that has published, all is to be heard.
        let asks = self.quorum.reached(has_called) || now >= self.due;
        if asks { WatchNext::Ask } else { WatchNext::Wait(self.due) }
    }

    /// It asks now.
    pub fn ask(&mut self, now: Moment) {
        // The connections held for the whole time since the last question.
        if !self.is_woken && !self.has_missed {
            self.after_loss.reset();
        }
        (self.is_woken, self.has_missed) = (false, false);
        self.due = now + self.poll;
    }

    /// The lease of the leader ends then unless it renews. Nobody publishes that.
    pub fn expect_end(&mut self, end: Moment) {
        self.due = self.due.min(end + EXPIRED);
    }

    /// It is subscribed from now on. It asks, as it heard no change before.
    pub fn hears(&mut self, now: Moment) {
        self.due = now;
    }

    /// Messages may have been lost.
    pub fn miss(&mut self, now: Moment, chance: u32) {
        if !mem::replace(&mut self.has_missed, true) {
            self.due = self.due.min(now + self.after_loss.pause(chance));
        }
    }

    /// The result of a question, if it is new.
    pub fn note_result(&mut self, finding: WhoLeads) -> Option<WhoLeads> {
        let finding = self.not_earlier(finding);
        let is_known = match (&self.reported, &finding) {
            // The same with a higher version is nothing new.
            (Some(WhoLeads::Led { leader: reported, .. }), WhoLeads::Led { leader, .. }) => {
                reported == leader
            }
            (reported, finding) => reported.as_ref() == Some(finding),
        };
        if is_known {
            return None;
        }
        self.reported = Some(finding.clone());
        Some(finding)
    }

    /// The latest entry of the same leader, if this result has an earlier one.
    // The majority that answered this time may not have stored a value yet that another has. An
    // observer never goes back to an earlier value.
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
