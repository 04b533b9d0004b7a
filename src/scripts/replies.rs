//! The replies of scripts, decoded into types of their own.

use std::{sync::Arc, time::Duration};

use crate::proto::{
    Cause, Done, HoldId, Incumbent, Proclaimed, Reason, Shard, Slots, Ticket, Token, Verdict, Vote,
};

/// The reply of a script.
// Not a type of the Redis client, which only `voter/single/carrier.rs` names. Embedded voters
// answer with the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Nil,
    Int(i64),
    Text(String),
    List(Vec<Value>),
}

/// The entries of one request: `code, ms, id`, and up to two more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    code: i64,
    ms: i64,
    id: String,
    more: [Value; 2],
    /// The shard that answered.
    pub(crate) shard: Shard,
    /// The name of the voter's data, in the first answer of a call with the fingerprint.
    pub(crate) data: Option<String>,
}

/// The answer of a script that inspects a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockSeen {
    /// The hold that excludes all others.
    pub(crate) holder: Option<Holding>,
    /// The holds that share the lock, and the waiters: lists in the order of the script.
    pub(crate) lists: Vec<Vec<ListEntry>>,
    /// The token of the latest hold that had the vote. For a semaphore: the smallest number of
    /// permits in recent requests.
    pub(crate) number: Option<Token>,
    /// For a semaphore: the slot from which on more may be taken.
    pub(crate) next: Option<u64>,
}

/// The hold in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) hold: HoldId,
    pub(crate) count: u32,
    /// What is left of the lease; `None` if the record has no expiry.
    pub(crate) left: Option<Duration>,
}

/// A place in a queue with its ticket, a hold that reads, or a hold with the number of its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListEntry {
    pub(crate) id: HoldId,
    pub(crate) ticket: u64,
    pub(crate) left: Duration,
}

/// The answer of `voter/look`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// The name that the first client gave the data; `None` if it could not be stored.
    pub(crate) birth: Option<Arc<str>>,
    /// How long at least the data have lost nothing.
    pub(crate) age: Duration,
    /// Why the server did not write the fingerprint.
    pub(crate) refusal: Option<Arc<str>>,
    /// How old the fingerprint was at the first look in this life of the server.
    pub(crate) began: Duration,
    /// By how much the server's clock was set back since a look, if it has forgotten nothing.
    pub(crate) set_back: Duration,
    /// What the server's clock showed, since 1970.
    pub(crate) clock: Option<Duration>,
}

impl Answer {
    #[cfg(test)]
    pub(crate) fn of(code: i64, ms: i64, id: &str, more: [Value; 2]) -> Self {
        Self { code, ms, id: id.into(), more, shard: Shard::default(), data: None }
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> i64 {
        self.code
    }

    /// Splits a reply into the answers of its requests. A request that failed alone has a cause.
    pub(crate) fn each(value: Value, requests: usize, width: usize) -> Vec<Result<Self, Cause>> {
        // A reply of another length is no answer to any of them: entry by entry, a grant to one
        // request could be taken for a grant to another.
        let whole = width * requests;
        let mut entries = match value {
            Value::List(entries) if entries.len() == whole || entries.len() == whole + 1 => entries,
            Value::List(entries) => return vec![Err(misshapen(&entries)); requests],
            value => return vec![Err(misshapen(&[value])); requests],
        };
        let data = entries.drain(whole..).next();
        let mut entries = entries.into_iter();
        let mut answers: Vec<_> =
            (0..requests).map(|_| Self::read(entries.by_ref().take(width))).collect();
        if let (Some(first), Some(Value::Text(data))) = (answers.iter_mut().flatten().next(), data)
        {
            first.data = Some(data);
        }
        answers
    }

    fn read(mut entries: impl Iterator<Item = Value>) -> Result<Self, Cause> {
        let mut next = || entries.next().unwrap_or(Value::Nil);
        match ([next(), next(), next()], [next(), next()]) {
            ([Value::Int(-1), _, Value::Text(message)], _) => {
                Err(Cause::Rejected(Reason::of_server(message)))
            }
            ([Value::Int(code), Value::Int(ms), Value::Text(id)], more) => {
                Ok(Self { code, ms, id, more, shard: Shard::default(), data: None })
            }
            (head, _) => Err(misshapen(&head)),
        }
    }

    /// Whether the script did what was requested.
    pub(crate) fn is_done(&self) -> bool {
        self.code == 1
    }

    /// What the voter's clock showed when it granted, since 1970. For scripts that vote.
    pub(crate) fn clock(&self) -> Option<Duration> {
        self.left().filter(|_| self.is_done())
    }

    /// The hold that has the vote. For scripts that do not vote.
    pub(crate) fn holder_verdict(&self) -> Verdict {
        match self.named() {
            Some(by) => Verdict::Refused { by, ttl: self.left() },
            None => Verdict::Absent,
        }
    }

    /// The verdict on a release. A grant means that the vote was given back.
    pub(crate) fn released(&self) -> Verdict {
        match self.code {
            1 => Verdict::Granted,
            0 => self.holder_verdict(),
            _ => Verdict::Unknown(self.unexpected()),
        }
    }

    /// The verdict in the answer of a script that votes.
    pub(crate) fn verdict(&self) -> Verdict {
        match (self.code, self.named()) {
            (1, _) => Verdict::Granted,
            (2, _) => Verdict::Revoked,
            (4, None) => Verdict::Absent,
            (0, Some(by)) => Verdict::Refused { by, ttl: self.left() },
            (3, Some(place)) => Verdict::Behind { place, ttl: self.left() },
            // A code of a later release, or no voter at all. Neither is a yes or a no (law 9).
            _ => Verdict::Unknown(self.unexpected()),
        }
    }

    /// The time in `ms`; `None` if the record has no expiry.
    pub(crate) fn left(&self) -> Option<Duration> {
        u64::try_from(self.ms).ok().map(Duration::from_millis)
    }

    fn named(&self) -> Option<HoldId> {
        (!self.id.is_empty()).then(|| HoldId::parse(&self.id))
    }

    /// The text in its fourth entry.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.more[0] {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The latest firing that is done, in an answer of `once/note`.
    pub(crate) fn done(&self) -> Option<Done> {
        Done::parse(self.text()?)
    }

    pub(crate) fn unexpected(&self) -> Cause {
        Cause::Rejected(format!("unexpected answer {self:?}").into())
    }
}

impl Vote {
    /// Reads the answer of a script that acquires, or of one that renews, which has only a verdict.
    pub(crate) fn read(answer: &Answer) -> Self {
        let [given, ticket] = &answer.more;
        // A number beside a refusal is no token.
        let token = token_of(given).filter(|_| answer.is_done());
        let (slots, fewer) = slots_of(given);
        let ticket = number(ticket).map(Ticket);
        Self { verdict: answer.verdict(), token, ticket, slots, fewer }
    }

    /// The same for an answer that may be missing.
    pub(crate) fn of(outcome: &Result<Answer, Cause>) -> Self {
        let unknown = |cause| Self {
            verdict: Verdict::Unknown(cause),
            token: None,
            ticket: None,
            slots: None,
            fewer: None,
        };
        outcome.as_ref().map_or_else(|cause| unknown(cause.clone()), Self::read)
    }
}

impl Incumbent {
    /// Reads an answer of `election/look`.
    pub(crate) fn read(answer: &Answer) -> Result<Option<Self>, Cause> {
        let Some(hold) = answer.named().filter(|_| answer.is_done()) else { return Ok(None) };
        let Value::Text(said) = &answer.more[0] else { return Err(answer.unexpected()) };
        let said = Proclaimed::parse(said).ok_or_else(|| answer.unexpected())?;
        Ok(Some(Self { hold, left: answer.left(), said }))
    }
}

impl LockSeen {
    /// `lists`: how many lists the script answers with.
    pub(crate) fn read(answer: &Answer, lists: usize) -> Result<Self, Cause> {
        let read = || {
            let Value::List(more) = &answer.more[1] else { return None };
            let (number, listed) = more.split_last()?;
            let listed = listed.iter().map(ListEntry::list).collect::<Option<Vec<_>>>()?;
            Some((listed, token_of(number))).filter(|(listed, _)| listed.len() == lists)
        };
        let (lists, number) = read().ok_or_else(|| answer.unexpected())?;
        let holder = Holding::read(answer);
        // With a holder, this entry is its count.
        let next = self::number(&answer.more[0]).filter(|next| *next > 0 && holder.is_none());
        Ok(Self { holder, lists, number, next })
    }

    /// Adds the answer to a request for the slots from `from` on.
    pub(crate) fn go_on(mut self, from: u64, mut more: Self) -> Self {
        // The second answer is of a later moment, so it replaces what the first says of its slots.
        // Only the first lists waiters.
        let held = &mut self.lists[0];
        held.retain(|held| held.ticket < from);
        held.append(&mut more.lists[0]);
        Self { lists: self.lists, ..more }
    }
}

impl Holding {
    fn read(answer: &Answer) -> Option<Self> {
        let count = number(&answer.more[0]).unwrap_or_default();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        Some(Self { hold: answer.named()?, count, left: answer.left() })
    }
}

impl ListEntry {
    /// Reads a flat list of ids, each with its ticket and the time left.
    fn list(value: &Value) -> Option<Vec<Self>> {
        let Value::List(values) = value else { return None };
        let (entries, rest) = values.as_chunks();
        let entry = |[id, ticket, ms]: &[Value; 3]| {
            let Value::Text(id) = id else { return None };
            let left = Duration::from_millis(number(ms)?);
            Some(Self { id: HoldId::parse(id), ticket: number(ticket)?, left })
        };
        if rest.is_empty() { entries.iter().map(entry).collect() } else { None }
    }
}

impl Fingerprint {
    pub(crate) fn read(answer: &Answer) -> Option<Self> {
        let Value::Text(refusal) = &answer.more[0] else { return None };
        let refusal: Option<Arc<str>> = (!refusal.is_empty()).then(|| refusal.as_str().into());
        // New data whose fingerprint could not be stored have no name: the next client would give
        // them another one.
        let is_new = answer.code == 2;
        let birth = (!is_new || refusal.is_none()).then(|| answer.id.as_str().into());
        let Value::List(times) = &answer.more[1] else { return None };
        let times: &[Value; 3] = times.as_slice().try_into().ok()?;
        let [clock, began, set_back] =
            times.each_ref().map(|ms| number(ms).map(Duration::from_millis));
        let (began, set_back) = (began?, set_back?);
        Some(Self { birth, age: answer.left()?, refusal, began, set_back, clock })
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

fn token_of(value: &Value) -> Option<Token> {
    match value {
        Value::Text(text) => text.parse().ok().and_then(Token::new),
        _ => None,
    }
}

/// Reads `7-9,0-0`, or `7-9,0-0 of 5` if others use the semaphore with fewer permits.
fn slots_of(value: &Value) -> (Option<Slots>, Option<u16>) {
    let Value::Text(text) = value else { return (None, None) };
    match text.split_once(' ') {
        Some((slots, more)) => {
            let fewer = more.strip_prefix("of ").and_then(|fewer| fewer.parse().ok());
            (Slots::parse(slots), fewer)
        }
        None => (Slots::parse(text), None),
    }
}

fn misshapen(values: &[Value]) -> Cause {
    Cause::Rejected(format!("expected code, ms, id but got {values:?}").into())
}

#[cfg(test)]
#[path = "replies_tests.rs"]
mod tests;
