//! How values are written for other programs, where that is not as `serde` derives it.

use std::{fmt::Display, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Cause, Error, HoldId, HoldTicket, LeaderValue, Owner, Persistence};

/// A time as users see it: whole milliseconds. Each field that has one ends with `_ms`.
pub(crate) fn millis<S: Serializer>(
    time: &(impl Copy + Into<Option<Duration>>),
    to: S,
) -> Result<S::Ok, S::Error> {
    number((*time).into().map(|time| time.as_millis()), to)
}

/// Whole microseconds, in fields that end with `_us`.
pub(crate) fn micros<S: Serializer>(
    time: &(impl Copy + Into<Option<Duration>>),
    to: S,
) -> Result<S::Ok, S::Error> {
    number((*time).into().map(|time| time.as_micros()), to)
}

fn number<S: Serializer>(number: Option<u128>, to: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => to.serialize_u64(u64::try_from(number).unwrap_or(u64::MAX)),
        None => to.serialize_none(),
    }
}

/// Each as it is shown.
pub(crate) fn texts<T: Display, S: Serializer>(all: &[T], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().map(ToString::to_string))
}

/// The fields of what was said; `error` in their place where nothing was.
pub(crate) fn or_error<T: Serialize, S: Serializer>(
    said: &Result<T, Cause>,
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Unsaid<'a> {
        error: &'a Cause,
    }
    match said {
        Ok(said) => said.serialize(to),
        Err(error) => Unsaid { error }.serialize(to),
    }
}

/// Why it is not so; `null` where it is.
pub(crate) fn error_of<S: Serializer>(is_so: &Result<(), Cause>, to: S) -> Result<S::Ok, S::Error> {
    is_so.as_ref().err().serialize(to)
}

/// Also whether that forgets nothing.
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

/// Text; a list of bytes where it is none.
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
