//! How `serde` writes values for which its derived form is not what other programs need.

use std::{fmt::Display, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Cause, Error, HoldId, HoldTicket, LeaderValue, Owner, Persistence};

/// Whole milliseconds, in fields whose names end with `_ms`.
pub(crate) fn millis<S: Serializer>(
    time: &(impl Copy + Into<Option<Duration>>),
    to: S,
) -> Result<S::Ok, S::Error> {
    number((*time).into().map(|time| time.as_millis()), to)
}

/// Whole microseconds, in fields whose names end with `_us`.
pub(crate) fn micros<S: Serializer>(
    time: &(impl Copy + Into<Option<Duration>>),
    to: S,
) -> Result<S::Ok, S::Error> {
    number((*time).into().map(|time| time.as_micros()), to)
}

fn number<S: Serializer>(number: Option<u128>, to: S) -> Result<S::Ok, S::Error> {
    match number {
        // Not as `u128`, which many formats and readers of JSON do not have.
        Some(number) => to.serialize_u64(u64::try_from(number).unwrap_or(u64::MAX)),
        None => to.serialize_none(),
    }
}

/// Each value as its `Display` shows it.
pub(crate) fn texts<T: Display, S: Serializer>(all: &[T], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().map(ToString::to_string))
}

/// The fields of the answer, or the field `error` if there was no answer.
pub(crate) fn or_error<T: Serialize, S: Serializer>(
    said: &Result<T, Cause>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match said {
        Ok(said) => said.serialize(to),
        Err(error) => to.collect_map([("error", error)]),
    }
}

/// The cause of an error; `null` if there is none.
pub(crate) fn error_of<S: Serializer>(is_so: &Result<(), Cause>, to: S) -> Result<S::Ok, S::Error> {
    is_so.as_ref().err().serialize(to)
}

/// The settings, and whether a restart forgets nothing with them.
// `is_durable` depends on five settings. A program that reads this need not know the rule.
pub(crate) fn durability<S: Serializer>(
    persistence: &Persistence,
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Shown<'a> {
        is_durable: bool,
        #[serde(flatten)]
        persistence: &'a Persistence,
    }
    Shown { is_durable: persistence.is_durable(), persistence }.serialize(to)
}

/// A string if the value is text, or else a list of bytes.
impl Serialize for LeaderValue {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match str::from_utf8(self.bytes()) {
            Ok(text) => to.serialize_str(text),
            Err(_) => to.collect_seq(self.bytes()),
        }
    }
}

macro_rules! as_text {
    ($($what:ty),+) => {$(
        impl Serialize for $what {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $what {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                text.parse().map_err(|error: Error| de::Error::custom(error))
            }
        }
    )+};
}

as_text!(HoldId, HoldTicket, Owner);
