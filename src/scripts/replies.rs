//! Replies, decoded.

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

/// One request's part of a reply: `code, ms, text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) code: i64,
    ms: i64,
    text: String,
    /// Which shard of the voter it came from.
    pub(crate) shard: usize,
}

/// What a voter's mark says of its data.
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
    pub(crate) fn of(code: i64, ms: i64, text: &str) -> Self {
        Self { code, ms, text: text.into(), shard: 0 }
    }

    /// What came of the only request.
    pub(crate) fn only(value: Value) -> Result<Self, Cause> {
        let entries = match value {
            Value::List(entries) => <[Value; 3]>::try_from(entries),
            value => Err(vec![value]),
        };
        entries.map_or_else(|other| Err(misshapen(&other)), Self::read)
    }

    /// What came of each of so many requests; one that failed alone, and a reply of another shape,
    /// are causes.
    pub(crate) fn each(value: Value, requests: usize) -> Vec<Result<Self, Cause>> {
        let entries = match value {
            Value::List(entries) if entries.len() == 3 * requests => entries,
            Value::List(entries) => return vec![Err(misshapen(&entries)); requests],
            value => return vec![Err(misshapen(&[value])); requests],
        };
        let mut entries = entries.into_iter();
        let mut next = || entries.next().unwrap_or(Value::Nil);
        (0..requests).map(|_| Self::read([next(), next(), next()])).collect()
    }

    fn read(entries: [Value; 3]) -> Result<Self, Cause> {
        match entries {
            [Value::Int(-1), _, Value::Text(message)] => Err(Cause::Rejected(message.into())),
            [Value::Int(code), Value::Int(ms), Value::Text(text)] => {
                Ok(Self { code, ms, text, shard: 0 })
            }
            entries => Err(misshapen(&entries)),
        }
    }

    /// What is left of the lease; `None` where the record has no expiry.
    pub(crate) fn ttl(&self) -> Option<Duration> {
        u64::try_from(self.ms).ok().map(Duration::from_millis)
    }

    /// What the voter's clock showed when it granted, since 1970.
    pub(crate) fn clock(&self) -> Option<Duration> {
        u64::try_from(self.ms).ok().filter(|_| self.code == 1).map(Duration::from_millis)
    }

    /// Reads an answer of `voter/look`.
    pub(crate) fn mark(&self) -> Option<Mark> {
        let (birth, refusal) = self.text.split_once(' ')?;
        let refusal: Option<Arc<str>> = (!refusal.is_empty()).then(|| refusal.into());
        let is_new = self.code == 2;
        let birth = (!is_new || refusal.is_none()).then(|| birth.into());
        Some(Mark { birth, age: self.ttl()?, is_new, refusal })
    }

    /// The token with which the voter granted.
    pub(crate) fn token(&self) -> Option<Token> {
        (self.code == 1).then(|| self.text.parse().ok().and_then(Token::new)).flatten()
    }

    /// Whether a renewal found no vote of the hold, and gave it one.
    pub(crate) fn is_anew(&self) -> bool {
        self.code == 1 && self.text == "anew"
    }

    /// The hold that the text names; `None` where it names nobody.
    pub(crate) fn holder(&self) -> Option<HoldId> {
        (!self.text.is_empty()).then(|| HoldId::parse(&self.text))
    }

    /// Takes the ticket off an answer to one in a queue; the rest reads as the answer to one in
    /// none.
    pub(crate) fn take_ticket(&mut self) -> Option<u64> {
        let (ticket, rest) = self.text.split_once(' ').unwrap_or((&self.text, ""));
        let ticket = ticket.parse().ok()?;
        self.text = rest.to_owned();
        Some(ticket)
    }

    /// Takes the first list off an answer of `inspect`, of places that wait or of holds that read:
    /// each with its ticket and the time for which it is kept. Behind the last list stands the
    /// holder.
    pub(crate) fn take_queue(&mut self) -> Option<Vec<(HoldId, u64, Duration)>> {
        let (count, mut rest) = self.text.split_once('\n')?;
        let mut queue = Vec::new();
        for _ in 0..count.parse::<usize>().ok()? {
            let line;
            (line, rest) = rest.split_once('\n')?;
            let (ticket, line) = line.split_once(' ')?;
            let (ms, place) = line.split_once(' ')?;
            let ms = Duration::from_millis(ms.parse().ok()?);
            queue.push((HoldId::parse(place), ticket.parse().ok()?, ms));
        }
        self.text = rest.to_owned();
        Some(queue)
    }

    /// Reads an answer of `acquire` or `renew`.
    pub(crate) fn vote(&self) -> Verdict {
        match (self.code, self.holder()) {
            (1, _) => Verdict::Granted,
            (2, _) => Verdict::Revoked,
            (0, Some(by)) => Verdict::Refused { by, ttl: self.ttl() },
            (3, Some(place)) => Verdict::Behind { place, ttl: self.ttl() },
            _ => Verdict::Unknown(self.unread()),
        }
    }

    /// Reads an answer of `release`: granted means done.
    pub(crate) fn released(&self) -> Verdict {
        match (self.code, self.holder()) {
            (1, _) => Verdict::Granted,
            (0, Some(by)) => Verdict::Refused { by, ttl: self.ttl() },
            (0, None) => Verdict::Absent,
            _ => Verdict::Unknown(self.unread()),
        }
    }

    /// Reads an answer of `inspect` or `force_release`: whose the vote is now.
    pub(crate) fn seen(&self) -> Verdict {
        let mut rest = self.clone();
        while rest.take_queue().is_some() {}
        match rest.holder() {
            Some(by) => Verdict::Refused { by, ttl: self.ttl() },
            None => Verdict::Absent,
        }
    }

    fn unread(&self) -> Cause {
        Cause::Rejected(format!("unexpected answer {self:?}").into())
    }
}

fn misshapen(values: &[Value]) -> Cause {
    Cause::Rejected(format!("expected code, ms, text but got {values:?}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: i64, ms: i64, text: &str) -> Result<Answer, Cause> {
        Answer::only(Value::List(vec![Value::Int(code), Value::Int(ms), Value::Text(text.into())]))
    }

    #[test]
    fn a_refusal_names_the_holder_and_what_is_left_of_its_lease() {
        let refused = answer(0, 1500, "c:1").unwrap().vote();
        let by = HoldId::parse("c:1");
        assert_eq!(refused, Verdict::Refused { by, ttl: Some(Duration::from_millis(1500)) });
    }

    #[test]
    fn an_answer_from_a_queue_has_the_ticket_before_the_obstacle() {
        let mut refused = answer(3, 1500, "7 c:1").unwrap();
        assert_eq!(refused.take_ticket(), Some(7));
        let (place, ttl) = (HoldId::parse("c:1"), Some(Duration::from_millis(1500)));
        assert_eq!(refused.vote(), Verdict::Behind { place, ttl });
        let mut granted = answer(1, 30_000, "7").unwrap();
        assert_eq!((granted.take_ticket(), granted.vote()), (Some(7), Verdict::Granted));
        assert_eq!(answer(0, 5, "seven c:1").unwrap().take_ticket(), None);
    }

    #[test]
    fn the_queue_stands_before_the_holder_whatever_that_is_called() {
        let mut held = answer(1, 5, "2\n3 100 a:1\n4 90 b:1\nanother\nprogram's 1").unwrap();
        let ms = Duration::from_millis;
        let waiting = vec![(HoldId::parse("a:1"), 3, ms(100)), (HoldId::parse("b:1"), 4, ms(90))];
        assert_eq!(held.take_queue(), Some(waiting));
        assert_eq!(held.holder(), Some(HoldId::parse("another\nprogram's 1")));
        let mut free = answer(0, -2, "0\n").unwrap();
        assert_eq!((free.take_queue(), free.holder()), (Some(Vec::new()), None));
        assert_eq!(answer(1, 5, "c:1").unwrap().take_queue(), None);
    }

    #[test]
    fn a_record_without_expiry_has_no_time_left_to_tell() {
        assert_eq!(answer(0, -1, "c:1").unwrap().ttl(), None);
    }

    #[test]
    fn a_mark_has_a_name_an_age_and_perhaps_why_it_was_not_written() {
        let mark = |code, ms, text| answer(code, ms, text).unwrap().mark();
        let (birth, age) = (Some("b1".into()), Duration::from_millis(1_500));
        let known = Mark { birth, age, is_new: false, refusal: None };
        assert_eq!(mark(1, 1_500, "b1 "), Some(known.clone()));
        let refusal = Some("OOM command not allowed".into());
        let full = Mark { refusal: refusal.clone(), ..known };
        assert_eq!(mark(1, 1_500, "b1 OOM command not allowed"), Some(full));
        let new = Mark { birth: None, age: Duration::ZERO, is_new: true, refusal };
        assert_eq!(mark(2, 0, "b1 OOM command not allowed"), Some(new));
        assert_eq!(mark(1, 5, "b1"), None);
    }

    #[test]
    fn a_request_that_failed_alone_is_a_rejection_with_its_message() {
        let failed = answer(-1, 0, "WRONGTYPE").unwrap_err();
        assert_eq!(failed, Cause::Rejected("WRONGTYPE".into()));
    }

    #[test]
    fn each_request_has_its_own_answer_and_a_reply_that_is_short_of_one_is_none_at_all() {
        let entries = |code| [Value::Int(code), Value::Int(5), Value::Text("c:1".into())];
        let list = || [0, -1, 1].into_iter().flat_map(entries).collect::<Vec<_>>();
        let codes = Answer::each(Value::List(list()), 3).into_iter();
        let codes: Vec<_> = codes.map(|answer| answer.map(|answer| answer.code)).collect();
        assert_eq!(codes, [Ok(0), Err(Cause::Rejected("c:1".into())), Ok(1)]);
        for short in [1, 8] {
            let entries = list().into_iter().take(short).collect();
            assert!(Answer::each(Value::List(entries), 3).iter().all(Result::is_err));
        }
    }

    #[test]
    fn a_reply_of_another_shape_is_never_taken_for_a_grant() {
        for value in [Value::Nil, Value::Int(1), Value::List(vec![Value::Int(1)])] {
            assert!(matches!(Answer::only(value), Err(Cause::Rejected(_))));
        }
        assert!(matches!(answer(0, 5, "").unwrap().vote(), Verdict::Unknown(_)));
        assert!(matches!(answer(7, 5, "").unwrap().vote(), Verdict::Unknown(_)));
    }
}
