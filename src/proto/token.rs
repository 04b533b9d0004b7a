//! The numbers that tell a later hold from an earlier one.

use std::{collections::HashMap, fmt, str::FromStr, sync::Arc, time::Duration};

use super::{Error, Moment};

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
    /// within its client gives each owner one of them. As `BLOCK` in `lua/lib.lua`.
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
        number.and_then(Self::new).ok_or_else(|| no_token(format_args!("{text:?}")))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// Why not clocks or counts alone, and why microseconds: decision 7 of `docs/design.md`.
/// The wall clock of a client, which does not go back a little, and the tokens that are ahead.
///
/// Voters count upwards from what they know; a client's floor keeps the count growing where they
/// know nothing any more. It is in microseconds, as voters grant no lock more than 15,000 times a
/// second: a count that ran ahead of the clocks would go back when it is lost. A hold has a block
/// of numbers, so that its client can hand it on: the floor is the last of a block that begins at
/// the clock.
#[derive(Debug)]
pub struct Floors {
    wall_micros: u64,
    /// How far the clock may go back without being believed. A clock that goes back further had
    /// been wrong, and voters would not take a floor that is so far ahead of their own clocks.
    margin_micros: u64,
    /// By lock. What the wall clock has overtaken is no longer needed.
    ahead: HashMap<Arc<str>, Token>,
    /// How many there may be before those are looked for.
    roomy: usize,
}

impl Floors {
    const FEW: usize = 64;
    /// Where the wall clock is behind those of all others, it overtakes nothing.
    const MOST: usize = 10_000;

    /// `memory`: for how long voters remember a token.
    pub fn new(memory: Duration) -> Self {
        let margin_micros = u64::try_from(memory.as_micros() / 2).unwrap_or(u64::MAX);
        Self { wall_micros: 0, margin_micros, ahead: HashMap::new(), roomy: Self::FEW }
    }

    pub fn floor(&mut self, lock: &Arc<str>, wall_micros: u64) -> Token {
        let wall_micros = wall_micros.clamp(1, Token::MOST);
        // A clock that is set back a little must not bring lower floors: where voters have
        // forgotten the count, the next token comes from here alone (law 3).
        if self.wall_micros.saturating_sub(wall_micros) > self.margin_micros {
            self.wall_micros = wall_micros;
        }
        self.wall_micros = self.wall_micros.max(wall_micros);
        let seen = self.ahead.get(lock).map_or(0, |token| u64::from(*token));
        // The first number of a block is the clock, or the one after what was seen.
        let first = self.wall_micros.max(seen + 1);
        let floor = (first + Token::BLOCK - 1).min(Token::MOST);
        Token::new(floor).expect("it was brought into the range")
    }

    /// A hold of this client has this token.
    pub fn seen(&mut self, lock: &Arc<str>, token: Token) {
        if u64::from(token) < self.wall_micros {
            return;
        }
        if self.ahead.len() >= self.roomy {
            self.make_room();
        }
        self.ahead.insert(Arc::clone(lock), token);
    }

    /// Forgets what the wall clock has overtaken; where that leaves too many, also the lower half.
    fn make_room(&mut self) {
        self.ahead.retain(|_, token| u64::from(*token) >= self.wall_micros);
        if self.ahead.len() >= Self::MOST {
            let mut tokens: Vec<Token> = self.ahead.values().copied().collect();
            let middle = tokens.len() / 2;
            let (_, middle, _) = tokens.select_nth_unstable(middle);
            self.ahead.retain(|_, token| *token > *middle);
        }
        self.roomy = (2 * self.ahead.len()).clamp(Self::FEW, Self::MOST);
    }
}

// Why within a client only, and why not for longer: decision 10 of `docs/design.md`.
/// How often a hold was handed on, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure {
    began: Moment,
    owners: u64,
}

impl Tenure {
    /// One owner for each number of a hold's block.
    const MOST: u64 = Token::BLOCK;
    /// Other clients wait no longer than this, and one critical section, for a tenure to end.
    const LONGEST: Duration = Duration::from_millis(50);

    /// The voters have granted: the first owner has the hold.
    pub fn begin(now: Moment) -> Self {
        Self { began: now, owners: 1 }
    }

    /// From then on it is not handed on any more.
    pub fn ends(&self) -> Moment {
        let is_endless = crate::mutant!("handed_on_for_ever");
        self.began + if is_endless { Duration::from_secs(3_600) } else { Self::LONGEST }
    }

    /// That of the next owner; `None` where the others' turn has come.
    pub fn next(self, now: Moment) -> Option<Self> {
        let is_last = self.owners >= Self::MOST && !crate::mutant!("handed_on_for_ever");
        if is_last || now >= self.ends() {
            return None;
        }
        Some(Self { owners: self.owners + 1, ..self })
    }

    /// Whether the owner before had the hold from the voters or from another owner.
    pub fn is_handed_on(&self) -> bool {
        self.owners > 1
    }

    /// The owner's token. The voters have stored `last`, which is the last number of the hold's
    /// block: so whoever comes after the hold has a higher one than each of its owners (law 3).
    pub fn token(&self, last: Token) -> Token {
        let owners = if crate::mutant!("handed_on_with_its_token") { 1 } else { self.owners };
        last.before(Self::MOST.saturating_sub(owners))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::proto::at;

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

    fn token(number: u64) -> Token {
        Token::new(number).unwrap()
    }

    /// The last number of the block that begins with this one.
    fn block_of(first: u64) -> Token {
        token(first + Token::BLOCK - 1)
    }

    /// Tokens are remembered for 100 microseconds.
    fn floors() -> Floors {
        Floors::new(Duration::from_micros(100))
    }

    #[test]
    fn it_is_the_wall_clock_which_does_not_go_back_unless_it_was_far_ahead() {
        for (walls, expected) in
            [([100, 50, 101], [100, 100, 101]), ([900, 100, 101], [900, 100, 101])]
        {
            let (mut floors, lock) = (floors(), Arc::from("a"));
            assert_eq!(walls.map(|wall| floors.floor(&lock, wall)), expected.map(block_of));
        }
    }

    #[test]
    fn a_client_whose_clock_is_behind_keeps_no_more_than_a_bounded_number_of_tokens() {
        let mut floors = floors();
        for number in 0..100_000_u64 {
            let lock = Arc::from(number.to_string());
            floors.floor(&lock, 1);
            floors.seen(&lock, token(1_000 + number));
            assert!(floors.ahead.len() <= Floors::MOST, "{}", floors.ahead.len());
        }
        let latest = Arc::from("99999");
        assert_eq!(floors.floor(&latest, 1), block_of(101_000), "the latest are kept");
    }

    #[test]
    fn a_token_ahead_of_the_clock_is_the_floor_of_its_own_lock() {
        let (mut floors, [one, other]) = (floors(), ["a", "b"].map(Arc::from));
        assert_eq!(floors.floor(&one, 100), block_of(100));
        floors.seen(&one, token(100));
        assert_eq!(floors.floor(&one, 100), block_of(101));
        floors.seen(&one, token(500));
        let both = (floors.floor(&one, 120), floors.floor(&other, 120));
        assert_eq!(both, (block_of(501), block_of(120)));
        assert_eq!(floors.floor(&one, 700), block_of(700));
    }

    #[test]
    fn what_the_clock_has_overtaken_is_forgotten() {
        let mut floors = floors();
        for number in 1..10_000_u64 {
            let lock = Arc::from(number.to_string());
            let floor = floors.floor(&lock, Token::BLOCK * number);
            floors.seen(&lock, floor);
            assert!(floors.ahead.len() <= Floors::FEW, "{}", floors.ahead.len());
        }
    }

    #[test]
    fn clocks_beyond_the_range_stay_in_it() {
        let (mut floors, lock) = (floors(), Arc::from("a"));
        assert_eq!(floors.floor(&lock, 0), block_of(1));
        assert_eq!(floors.floor(&lock, u64::MAX), token(Token::MOST));
        floors.seen(&lock, token(Token::MOST));
        assert_eq!(floors.floor(&lock, 0), token(Token::MOST));
    }

    #[test]
    fn each_owner_has_a_number_of_the_block_and_the_last_one_has_its_end() {
        let last = Token::new(1_000).unwrap();
        let (mut tenure, mut tokens) = (Some(Tenure::begin(at(0))), Vec::new());
        while let Some(owner) = tenure {
            assert_eq!(owner.is_handed_on(), !tokens.is_empty());
            tokens.push(u64::from(owner.token(last)));
            tenure = owner.next(at(49));
        }
        assert_eq!(tokens, (1_000 - Token::BLOCK + 1..=1_000).collect::<Vec<_>>());
    }

    #[test]
    fn it_ends_after_fifty_milliseconds_however_few_had_it() {
        let tenure = Tenure::begin(at(10));
        assert_eq!(tenure.ends(), at(60));
        assert!(tenure.next(at(59)).is_some());
        assert_eq!(tenure.next(at(60)), None);
    }
}
