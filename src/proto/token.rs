//! The number that tells a later hold from an earlier one.

use std::{fmt, str::FromStr};

use super::Error;

/// A fencing token: a number that grows strictly from one exclusive hold of a lock to the next.
///
/// It grows whichever voters granted and whichever restarted. Where voters lose data, that relies
/// on the wall clocks of the clients: see [what is not guaranteed](crate#what-is-not-guaranteed). A
/// holder sends it along with its work, and the protected side refuses one that is lower than the
/// highest it has seen: see [`FenceGate`](crate::FenceGate). Tokens of different locks say nothing
/// about each other, though each is about the time of its hold in microseconds since 1970.
///
/// It lies between 1 and 2^53 - 1, so it fits an `i64`, a `BIGINT` of SQL, and a double without
/// loss. As text it is plain digits.
///
/// ```
/// # fn main() -> Result<(), quorate::Error> {
/// use quorate::Token;
///
/// let token: Token = "1763766000123456".parse()?;
/// assert_eq!(token, Token::try_from(1_763_766_000_123_456_u64)?);
/// // As a `BIGINT` of SQL has it.
/// assert_eq!(token, Token::try_from(i64::from(token))?);
/// assert!("12e3".parse::<Token>().unwrap_err().is_invalid());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "u64", try_from = "u64"))]
pub struct Token(u64);

impl Token {
    /// The highest token. Every number up to it is exact as a double, which Lua counts in.
    pub(crate) const MOST: u64 = (1 << 53) - 1;

    /// So many numbers end with the one that voters store for a hold: a hold that is handed on
    /// within its client gives each owner one of them. As `BLOCK` in `lua/lib/fence.lua`.
    pub(crate) const BLOCK: u64 = 64;

    /// Nothing for 0, and for what is above [`Token::MOST`].
    pub(crate) fn new(number: u64) -> Option<Self> {
        (1..=Self::MOST).contains(&number).then_some(Self(number))
    }

    /// So many numbers before this one.
    pub(super) fn before(self, by: u64) -> Self {
        Self(self.0.saturating_sub(by).max(1))
    }
}

impl From<Token> for u64 {
    fn from(token: Token) -> Self {
        token.0
    }
}

impl From<Token> for i64 {
    fn from(token: Token) -> Self {
        token.0.cast_signed()
    }
}

impl TryFrom<u64> for Token {
    type Error = Error;

    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for 0, and for what is above 2^53 - 1.
    fn try_from(number: u64) -> Result<Self, Error> {
        Self::new(number).ok_or_else(|| no_token(number))
    }
}

fn no_token(number: impl fmt::Display) -> Error {
    Error::invalid(format!("{number} is no token: those are 1 to {}", Token::MOST))
}

impl TryFrom<i64> for Token {
    type Error = Error;

    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for 0, for what is below, and for what is above 2^53 - 1.
    fn try_from(number: i64) -> Result<Self, Error> {
        u64::try_from(number).ok().and_then(Self::new).ok_or_else(|| no_token(number))
    }
}

impl FromStr for Token {
    type Err = Error;

    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for anything but plain digits between 1 and 2^53 - 1.
    fn from_str(text: &str) -> Result<Self, Error> {
        // `u64` would read a sign too.
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        number.and_then(Self::new).ok_or_else(|| {
            Error::invalid(format!("{text:?} is no token: those are 1 to {}", Self::MOST))
        })
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_out_of_range_or_no_plain_digits_is_no_token() {
        for number in [0, Token::MOST + 1, u64::MAX] {
            assert!(number.to_string().parse::<Token>().unwrap_err().is_invalid());
            let error = Token::try_from(number).unwrap_err();
            let told = format!("{number} is no token: those are 1 to 9007199254740991");
            assert!(error.is_invalid() && error.to_string() == told, "{error}");
        }
        assert!(Token::try_from(-7_i64).unwrap_err().to_string().starts_with("-7 is no token"));
        for text in ["", "+7", "-7", " 7", "7 ", "7.0", "7e3", "0x7", "٧", "99999999999999999999"]
        {
            let error = text.parse::<Token>().unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains(&format!("{text:?}")));
        }
    }

    proptest! {
        #[test]
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
        #[expect(clippy::cast_sign_loss)]
        fn a_token_is_read_as_it_is_shown_and_exact_as_a_double_and_an_i64(
            number in prop_oneof![1..=Token::MOST, Just(Token::MOST)],
        ) {
            let token = Token::new(number).unwrap();
            prop_assert_eq!(token.to_string().parse::<Token>().unwrap(), token);
            prop_assert_eq!(number as f64 as u64, number);
            prop_assert_eq!(u64::try_from(i64::from(token)), Ok(number));
        }
    }
}
