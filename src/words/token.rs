//! Fencing tokens.

use std::fmt;

/// A number that grows strictly from one exclusive hold of a lock to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u64);

impl Token {
    /// Beyond this, the numbers of a script are not told apart any more.
    pub(crate) const MOST: u64 = (1 << 53) - 1;

    pub(crate) fn new(number: u64) -> Option<Self> {
        (1..=Self::MOST).contains(&number).then_some(Self(number))
    }
}

impl From<Token> for u64 {
    fn from(token: Token) -> Self {
        token.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
