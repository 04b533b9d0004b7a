//! Replies, decoded: what each script answers, as a type of its own.

use std::{sync::Arc, time::Duration};

use crate::words::{Cause, HoldId, Token, Verdict};

/// What a script answered, free of any client library's types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Nil,
    Int(i64),
    Text(String),
    List(Vec<Value>),
}

/// One request's part of a reply: `code, ms, id`, and up to two entries more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    code: i64,
    ms: i64,
    id: String,
    more: [Value; 2],
    /// Which shard of the voter it came from.
    pub(crate) shard: usize,
}

/// What a script of kind `acquire` answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vote {
    pub(crate) verdict: Verdict,
    /// The number with which the voter granted.
    pub(crate) token: Option<Token>,
    /// That of the place in the queue, where there is one.
    pub(crate) ticket: Option<u64>,
}

/// What a script of kind `renew` answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Renewal {
    pub(crate) verdict: Verdict,
    /// Granted to a hold that had no vote here any more.
    pub(crate) is_anew: bool,
}

/// What `mutex/inspect` answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MutexSeen {
    pub(crate) holder: Option<Holding>,
    pub(crate) waiting: Vec<ListEntry>,
}

/// What `rw/inspect` answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RwSeen {
    pub(crate) writer: Option<Holding>,
    pub(crate) readers: Vec<ListEntry>,
    pub(crate) waiting_writers: Vec<ListEntry>,
    pub(crate) waiting_readers: Vec<ListEntry>,
}

/// The hold in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) hold: HoldId,
    pub(crate) count: u32,
    /// What is left of the lease; `None` where the record has no expiry.
    pub(crate) left: Option<Duration>,
}

/// A place in a queue, or a hold that reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListEntry {
    pub(crate) id: HoldId,
    pub(crate) ticket: u64,
    pub(crate) left: Duration,
}

/// What `voter/look` answered: what a voter's mark says of its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The name that the first client to meet the data gave them; none where nobody could.
    pub(crate) birth: Option<Arc<str>>,
    /// For how long at least they are known in this life of their server.
    pub(crate) age: Duration,
    /// Nobody had met them before.
    pub(crate) is_new: bool,
    /// Why the server did not write the mark.
    pub(crate) refusal: Option<Arc<str>>,
}

impl Answer {
    #[cfg(test)]
    pub(crate) fn of(code: i64, ms: i64, id: &str, more: [Value; 2]) -> Self {
        Self { code, ms, id: id.into(), more, shard: 0 }
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> i64 {
        self.code
    }

    /// What came of each of so many requests; one that failed alone, and a reply of another shape,
    /// are causes.
    pub(crate) fn each(value: Value, requests: usize, width: usize) -> Vec<Result<Self, Cause>> {
        let entries = match value {
            Value::List(entries) if entries.len() == width * requests => entries,
            Value::List(entries) => return vec![Err(misshapen(&entries)); requests],
            value => return vec![Err(misshapen(&[value])); requests],
        };
        let mut entries = entries.into_iter();
        (0..requests).map(|_| Self::read(entries.by_ref().take(width))).collect()
    }

    fn read(mut entries: impl Iterator<Item = Value>) -> Result<Self, Cause> {
        let mut next = || entries.next().unwrap_or(Value::Nil);
        match ([next(), next(), next()], [next(), next()]) {
            ([Value::Int(-1), _, Value::Text(message)], _) => Err(Cause::Rejected(message.into())),
            ([Value::Int(code), Value::Int(ms), Value::Text(id)], more) => {
                Ok(Self { code, ms, id, more, shard: 0 })
            }
            (head, _) => Err(misshapen(&head)),
        }
    }

    /// Whether what was asked for was done.
    pub(crate) fn is_done(&self) -> bool {
        self.code == 1
    }

    /// What the voter's clock showed when it granted, since 1970; of a script that votes.
    pub(crate) fn clock(&self) -> Option<Duration> {
        self.left().filter(|_| self.is_done())
    }

    /// Whose the vote is now, of a script that does not vote.
    pub(crate) fn whose(&self) -> Verdict {
        match self.named() {
            Some(by) => Verdict::Refused { by, ttl: self.left() },
            None => Verdict::Absent,
        }
    }

    /// Of a release; granted means done.
    pub(crate) fn released(&self) -> Verdict {
        match self.code {
            1 => Verdict::Granted,
            0 => self.whose(),
            _ => Verdict::Unknown(self.unexpected()),
        }
    }

    fn verdict(&self) -> Verdict {
        match (self.code, self.named()) {
            (1, _) => Verdict::Granted,
            (2, _) => Verdict::Revoked,
            (0, Some(by)) => Verdict::Refused { by, ttl: self.left() },
            (3, Some(place)) => Verdict::Behind { place, ttl: self.left() },
            _ => Verdict::Unknown(self.unexpected()),
        }
    }

    /// What is left of a time; `None` where the record has no expiry.
    fn left(&self) -> Option<Duration> {
        u64::try_from(self.ms).ok().map(Duration::from_millis)
    }

    fn named(&self) -> Option<HoldId> {
        (!self.id.is_empty()).then(|| HoldId::parse(&self.id))
    }

    fn unexpected(&self) -> Cause {
        Cause::Rejected(format!("unexpected answer {self:?}").into())
    }
}

impl Vote {
    pub(crate) fn read(answer: &Answer) -> Self {
        let [token, ticket] = &answer.more;
        let token = match token {
            Value::Text(text) if answer.is_done() => text.parse().ok().and_then(Token::new),
            _ => None,
        };
        Self { verdict: answer.verdict(), token, ticket: number(ticket) }
    }

    /// The same where there may be no answer.
    pub(crate) fn of(outcome: &Result<Answer, Cause>) -> Self {
        let unknown = |cause| Self { verdict: Verdict::Unknown(cause), token: None, ticket: None };
        outcome.as_ref().map_or_else(|cause| unknown(cause.clone()), Self::read)
    }
}

impl Renewal {
    pub(crate) fn read(answer: &Answer) -> Self {
        let is_anew = answer.is_done() && answer.more[0] == Value::Int(1);
        Self { verdict: answer.verdict(), is_anew }
    }

    /// The same where there may be no answer.
    pub(crate) fn of(outcome: &Result<Answer, Cause>) -> Self {
        let unknown = |cause| Self { verdict: Verdict::Unknown(cause), is_anew: false };
        outcome.as_ref().map_or_else(|cause| unknown(cause.clone()), Self::read)
    }
}

impl MutexSeen {
    pub(crate) fn read(answer: &Answer) -> Result<Self, Cause> {
        let waiting = ListEntry::list(&answer.more[1]).ok_or_else(|| answer.unexpected())?;
        Ok(Self { holder: Holding::read(answer), waiting })
    }
}

impl RwSeen {
    pub(crate) fn read(answer: &Answer) -> Result<Self, Cause> {
        let lists = match &answer.more[1] {
            Value::List(lists) => lists.iter().map(ListEntry::list).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let lists = lists.and_then(|lists| <[_; 3]>::try_from(lists).ok());
        let [readers, waiting_writers, waiting_readers] =
            lists.ok_or_else(|| answer.unexpected())?;
        Ok(Self { writer: Holding::read(answer), readers, waiting_writers, waiting_readers })
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
    /// Reads a flat list: id, ticket and time left of each.
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

impl Mark {
    pub(crate) fn read(answer: &Answer) -> Option<Self> {
        let Value::Text(refusal) = &answer.more[0] else { return None };
        let refusal: Option<Arc<str>> = (!refusal.is_empty()).then(|| refusal.as_str().into());
        let is_new = answer.code == 2;
        let birth = (!is_new || refusal.is_none()).then(|| answer.id.as_str().into());
        Some(Self { birth, age: answer.left()?, is_new, refusal })
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

fn misshapen(values: &[Value]) -> Cause {
    Cause::Rejected(format!("expected code, ms, id but got {values:?}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    fn one(entries: Vec<Value>) -> Result<Answer, Cause> {
        let width = entries.len();
        Answer::each(Value::List(entries), 1, width).remove(0)
    }

    fn answer(code: i64, ms: i64, id: &str, more: &[Value]) -> Answer {
        one([&[Value::Int(code), Value::Int(ms), text(id)], more].concat()).unwrap()
    }

    fn vote(code: i64, ms: i64, id: &str, token: &str, ticket: i64) -> Vote {
        Vote::read(&answer(code, ms, id, &[text(token), Value::Int(ticket)]))
    }

    #[test]
    fn a_refusal_names_the_holder_and_what_is_left_of_its_lease() {
        let refused = vote(0, 1500, "c:1", "", -1);
        let (by, ttl) = (HoldId::parse("c:1"), Some(MS(1500)));
        assert_eq!((refused.verdict, refused.ticket), (Verdict::Refused { by, ttl }, None));
        let endless = vote(0, -1, "c:1", "", -1).verdict;
        assert_eq!(endless, Verdict::Refused { by: HoldId::parse("c:1"), ttl: None });
    }

    #[test]
    fn who_asks_from_a_place_hears_its_ticket_whatever_else_it_hears() {
        let behind = vote(3, 1500, "c:1", "", 7);
        let place = HoldId::parse("c:1");
        assert_eq!(behind.verdict, Verdict::Behind { place, ttl: Some(MS(1500)) });
        let granted = vote(1, 30_000, "", "12", 7);
        assert_eq!((granted.verdict, granted.token), (Verdict::Granted, Token::new(12)));
        assert_eq!((behind.ticket, granted.ticket), (Some(7), Some(7)));
        assert_eq!(vote(0, 5, "c:1", "12", 7).token, None, "refused");
    }

    #[test]
    fn a_renewal_says_whether_the_vote_was_given_anew() {
        let renewal = |code, anew| Renewal::read(&answer(code, 5, "", &[Value::Int(anew)]));
        assert_eq!(renewal(1, 1), Renewal { verdict: Verdict::Granted, is_anew: true });
        assert!(!renewal(1, 0).is_anew);
        assert_eq!(renewal(2, 0), Renewal { verdict: Verdict::Revoked, is_anew: false });
    }

    #[test]
    fn a_release_of_a_vote_that_another_has_names_it_and_one_that_nobody_has_is_absent() {
        let released = |code, id| answer(code, 5, id, &[]).released();
        assert_eq!((released(1, ""), released(0, "")), (Verdict::Granted, Verdict::Absent));
        assert!(matches!(released(0, "c:1"), Verdict::Refused { .. }));
        assert!(matches!(released(3, "c:1"), Verdict::Unknown(_)));
    }

    #[test]
    fn what_waits_is_read_whatever_it_is_called() {
        let line = |id, ticket, ms| [text(id), Value::Int(ticket), Value::Int(ms)];
        let entry = |id, ticket, ms| ListEntry { id: HoldId::parse(id), ticket, left: MS(ms) };
        let two = || Value::List([line("a 1\n", 3, 100), line("b:1", 4, 90)].concat());
        let held = answer(1, 5, "another\nprogram's 1", &[Value::Int(2), two()]);
        let hold = HoldId::parse("another\nprogram's 1");
        let holder = Some(Holding { hold, count: 2, left: Some(MS(5)) });
        let waiting = vec![entry("a 1\n", 3, 100), entry("b:1", 4, 90)];
        let seen = MutexSeen::read(&held).unwrap();
        assert_eq!(seen, MutexSeen { holder, waiting: waiting.clone() });

        let none = || Value::List(Vec::new());
        let lists = Value::List(vec![two(), none(), none()]);
        let read = RwSeen::read(&answer(0, -2, "", &[Value::Int(0), lists])).unwrap();
        assert_eq!((read.writer, read.readers), (None, waiting));
        let short = Value::List(line("a:1", 3, 100)[..2].to_vec());
        assert!(MutexSeen::read(&answer(0, -2, "", &[Value::Int(0), short])).is_err());
        assert!(RwSeen::read(&answer(0, -2, "", &[Value::Int(0), none()])).is_err());
    }

    #[test]
    fn a_mark_has_a_name_an_age_and_perhaps_why_it_was_not_written() {
        let mark = |code, ms, why| Mark::read(&answer(code, ms, "b 1", &[text(why)])).unwrap();
        let (birth, age) = (Some("b 1".into()), MS(1_500));
        let known = Mark { birth, age, is_new: false, refusal: None };
        assert_eq!(mark(1, 1_500, ""), known);
        let refusal = Some("OOM command not allowed".into());
        let full = Mark { refusal: refusal.clone(), ..known };
        assert_eq!(mark(1, 1_500, "OOM command not allowed"), full);
        let new = Mark { birth: None, age: Duration::ZERO, is_new: true, refusal };
        assert_eq!(mark(2, 0, "OOM command not allowed"), new);
        assert_eq!(Mark::read(&answer(1, 5, "b1", &[])), None);
    }

    #[test]
    fn a_request_that_failed_alone_is_a_rejection_with_its_message() {
        let failed = one(vec![Value::Int(-1), Value::Int(0), text("WRONGTYPE"), text("")]);
        assert_eq!(failed, Err(Cause::Rejected("WRONGTYPE".into())));
    }

    #[test]
    fn each_request_has_its_own_answer_and_a_reply_that_is_short_of_one_is_none_at_all() {
        let entries = |code| [Value::Int(code), Value::Int(5), text("c:1"), text("")];
        let list = || [0, -1, 1].into_iter().flat_map(entries).collect::<Vec<_>>();
        let codes = Answer::each(Value::List(list()), 3, 4).into_iter();
        let codes: Vec<_> = codes.map(|answer| answer.map(|answer| answer.code)).collect();
        assert_eq!(codes, [Ok(0), Err(Cause::Rejected("c:1".into())), Ok(1)]);
        for short in [1, 4, 11] {
            let entries = list().into_iter().take(short).collect();
            assert!(Answer::each(Value::List(entries), 3, 4).iter().all(Result::is_err));
        }
    }

    #[test]
    fn a_reply_of_another_shape_is_never_taken_for_a_grant() {
        for value in [Value::Nil, Value::Int(1), Value::List(vec![Value::Int(1)])] {
            let answers = Answer::each(value, 1, 3);
            assert!(matches!(&answers[..], [Err(Cause::Rejected(_))]));
        }
        assert!(one(vec![text("1"), Value::Int(5), text("")]).is_err());
        for code in [0, 7] {
            assert!(matches!(vote(code, 5, "", "", -1).verdict, Verdict::Unknown(_)));
        }
    }
}
