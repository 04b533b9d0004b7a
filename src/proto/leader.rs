//! Who leads, and what a leader says of itself.

use std::{fmt, str, sync::Arc, time::Duration};

use super::{Error, HoldId, Token};

/// Who leads, by what a majority of the voters says.
///
/// It is what the voters say, and no proof: the leader may have lost its lead since. Whoever must
/// not listen to a leader that is no more compares [`token`](Self::token)s, and refuses the lower
/// one.
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

    /// What the leader says of itself: what it campaigned with, or has proclaimed since.
    pub fn value(&self) -> &[u8] {
        self.value.bytes()
    }

    /// The value as text, if it is text.
    pub fn text(&self) -> Option<&str> {
        str::from_utf8(&self.value.0).ok()
    }
}

/// What a leader says of itself.
#[derive(Clone, PartialEq, Eq)]
pub struct LeaderValue(Arc<[u8]>);

impl LeaderValue {
    /// The most that it may have.
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

/// What stands in the record of a leader: `1 - =10.0.0.1:80`. What is no text is in hexadecimal
/// digits behind a `#`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proclaimed {
    /// Grows with what the leader says: a voter keeps the latest.
    pub version: u64,
    /// Unknown to the leader when it campaigned.
    pub token: Option<Token>,
    pub value: LeaderValue,
}

impl Proclaimed {
    /// What a candidate says.
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

    /// `None` for what no leader has written.
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

/// The bytes that stand there as pairs of hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

/// Who has the vote of one voter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incumbent {
    pub hold: HoldId,
    /// What is left of its lease; `None` where the record has no expiry.
    pub left: Option<Duration>,
    /// The number of the latest hold that had the vote: this one's.
    pub number: Option<Token>,
    pub said: Proclaimed,
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn said(version: u64, token: Option<u64>, value: &[u8]) -> Proclaimed {
        let (token, value) = (token.and_then(Token::new), LeaderValue::new(value).unwrap());
        Proclaimed { version, token, value }
    }

    #[test]
    fn the_record_of_a_leader_is_pinned() {
        assert_eq!(said(1, None, b"10.0.0.1:80").to_text(), "1 - =10.0.0.1:80");
        assert_eq!(said(3, Some(7), "né à 9 h".as_bytes()).to_text(), "3 7 =né à 9 h");
        assert_eq!(said(2, Some(7), b"\xff\0").to_text(), "2 7 #ff00");
        assert_eq!(said(2, None, b"").to_text(), "2 - =");
    }

    #[test]
    fn what_no_leader_has_written_is_none() {
        for text in
            ["", "1", "1 -", "1 - ", "1 - x", "x - =", "1 0 =", "1 - #f", "1 - #fg", "1 - é"]
        {
            assert_eq!(Proclaimed::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_value_has_4096_bytes_at_most() {
        assert!(LeaderValue::new(&[0; 4096]).is_ok());
        let error = LeaderValue::new(&[0; 4097]).unwrap_err();
        assert!(error.is_invalid());
        let told = "the value of a leader has 4097 bytes: 4096 are the most";
        assert_eq!(error.to_string(), told);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            version in 1..u64::MAX,
            token in proptest::option::of(1..=Token::MOST),
            bytes in vec(any::<u8>(), 0..40),
            text in ".{0,20}",
        ) {
            for value in [&bytes[..], text.as_bytes()] {
                let said = said(version, token, value);
                prop_assert_eq!(Proclaimed::parse(&said.to_text()), Some(said));
            }
        }
    }
}
