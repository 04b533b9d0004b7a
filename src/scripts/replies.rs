//! Replies, decoded.

use std::time::Duration;

use crate::words::{Cause, HoldId, Verdict};

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
}

impl Answer {
    /// The answer of a call with one request; a request that failed alone, and a reply of another
    /// shape, are causes.
    pub(crate) fn only(value: Value) -> Result<Self, Cause> {
        match value {
            Value::List(entries) => match <[Value; 3]>::try_from(entries) {
                Ok([Value::Int(-1), _, Value::Text(message)]) => {
                    Err(Cause::Rejected(message.into()))
                }
                Ok([Value::Int(code), Value::Int(ms), Value::Text(text)]) => {
                    Ok(Self { code, ms, text })
                }
                Ok(entries) => Err(misshapen(&entries)),
                Err(entries) => Err(misshapen(&entries)),
            },
            value => Err(misshapen(&[value])),
        }
    }

    /// What is left of the lease; `None` where the record has no expiry.
    pub(crate) fn ttl(&self) -> Option<Duration> {
        u64::try_from(self.ms).ok().map(Duration::from_millis)
    }

    /// The hold that the text names; `None` where it names nobody.
    pub(crate) fn holder(&self) -> Option<HoldId> {
        (!self.text.is_empty()).then(|| HoldId::parse(&self.text))
    }

    /// Reads an answer of `acquire` or `renew`.
    pub(crate) fn vote(&self) -> Verdict {
        match (self.code, self.holder()) {
            (1, _) => Verdict::Granted,
            (2, _) => Verdict::Revoked,
            (0, Some(by)) => Verdict::Refused { by, ttl: self.ttl() },
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
    fn a_record_without_expiry_has_no_time_left_to_tell() {
        assert_eq!(answer(0, -1, "c:1").unwrap().ttl(), None);
    }

    #[test]
    fn a_request_that_failed_alone_is_a_rejection_with_its_message() {
        let failed = answer(-1, 0, "WRONGTYPE").unwrap_err();
        assert_eq!(failed, Cause::Rejected("WRONGTYPE".into()));
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
