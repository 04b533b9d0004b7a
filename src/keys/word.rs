//! A key, a channel or an argument of a request, before it is written out.

use std::{
    fmt::{self, Display, Formatter, Write as _},
    sync::Arc,
};

/// One word of a request.
// In parts until it is written into the request: a lock has half a dozen names of keys that share
// their beginning, and most are never used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    /// Three texts, one behind the other.
    Text([&'a str; 3]),
    Number(u64),
}

impl Word<'_> {
    /// An empty word.
    pub(crate) const NOTHING: Self = Self::Text([""; 3]);

    pub(crate) fn number(number: impl Into<u64>) -> Self {
        Self::Number(number.into())
    }

    /// How many bytes the word has at most.
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Text(parts) => parts.iter().map(|part| part.len()).sum(),
            // As many digits as the largest number has.
            Self::Number(_) => 20,
        }
    }

    pub(crate) fn write(&self, to: &mut String) {
        match self {
            Self::Text(parts) => parts.iter().for_each(|part| to.push_str(part)),
            Self::Number(number) => write!(to, "{number}").expect("memory takes it"),
        }
    }
}

impl Display for Word<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(parts) => parts.iter().try_for_each(|part| f.write_str(part)),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

impl From<Word<'_>> for Arc<str> {
    fn from(word: Word<'_>) -> Self {
        word.to_string().into()
    }
}

impl<'a> From<&'a str> for Word<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(["", text, ""])
    }
}

impl<'a> From<&'a String> for Word<'a> {
    fn from(text: &'a String) -> Self {
        text.as_str().into()
    }
}

impl<'a> From<&'a Arc<str>> for Word<'a> {
    fn from(text: &'a Arc<str>) -> Self {
        (**text).into()
    }
}

impl<'a, T: Into<Word<'a>>> From<Option<T>> for Word<'a> {
    fn from(word: Option<T>) -> Self {
        word.map_or(Self::NOTHING, Into::into)
    }
}
