//! The numbers that order the holds of a lock.

use std::{collections::HashMap, fmt, str::FromStr, sync::Arc, time::Duration};

use super::{Error, Moment};

/// A fencing token: a number that grows strictly from one exclusive hold of a lock to the next.
///
/// It grows whichever voters granted and whichever restarted. If voters lose data, that relies on
/// the wall clocks of the clients: see [what is not guaranteed](crate#what-is-not-guaranteed). A
/// holder sends its token along with its work. The protected side refuses a token that is lower
/// than the highest that it has seen: see [`FenceGate`](crate::FenceGate). Tokens of different
/// locks are not comparable, though each is about the time of its hold in microseconds since 1970.
///
/// It lies between 1 and 2^53 - 1, so it fits an `i64`, a `BIGINT` of SQL, and a double without
/// loss. Its text form is plain digits.
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
    // Lua counts in doubles, and every number up to this is exact as a double. Beyond, two tokens
    // could be equal.
    /// The highest token.
    pub(crate) const MOST: u64 = (1 << 53) - 1;

    // Each task that gets the hold from another task of its client needs a higher token, without a
    // request (design 10). The same as `BLOCK` in `lua/lib.lua`.
    /// How many numbers a hold has. Voters store the last.
    pub(crate) const BLOCK: u64 = 64;

    /// `None` for 0, and for numbers above [`Token::MOST`].
    pub(crate) fn new(number: u64) -> Option<Self> {
        (1..=Self::MOST).contains(&number).then_some(Self(number))
    }

    /// The token that is lower by so much.
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
        // `u64` would also parse a sign.
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

/// The floors of a client's requests: the least that a voter may count to.
// Voters count on from what they store. If they have forgotten that, the floor keeps tokens growing
// (law 3). It is the wall clock in microseconds, as voters grant a lock at most 15,000 times a
// second: a count that ran ahead of the clocks would fall when it is lost (design 7).
#[derive(Debug)]
pub struct Floors {
    wall_micros: u64,
    // A clock that goes back further than this was wrong before. Floors that stayed so far ahead of
    // the voters' clocks would be capped by every voter.
    /// How far the clock may go back without being followed.
    margin_micros: u64,
    /// By lock, its last token, if that was above the wall clock.
    ahead: HashMap<Arc<str>, Token>,
    /// At how many entries the overtaken ones are removed.
    roomy: usize,
}

impl Floors {
    const FEW: usize = 64;
    // If this wall clock is behind the clocks of all others, every token is above it, and it
    // overtakes none of them.
    const MOST: usize = 10_000;

    /// `memory`: how long voters remember a token.
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
        // A block begins at the clock, or after the last token that this client has had.
        let first = self.wall_micros.max(seen + 1);
        let floor = (first + Token::BLOCK - 1).min(Token::MOST);
        Token::new(floor).expect("it was brought into the range")
    }

    /// Notes the token of a hold of this client.
    pub fn note_token(&mut self, lock: &Arc<str>, token: Token) {
        if u64::from(token) < self.wall_micros {
            return;
        }
        if self.ahead.len() >= self.roomy {
            self.make_room();
        }
        self.ahead.insert(Arc::clone(lock), token);
    }

    /// Removes the tokens that the wall clock has overtaken.
    fn make_room(&mut self) {
        // If that leaves too many, also the lower half: the clock overtakes these first.
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

/// How often a hold was handed on, and since when.
// Within one client only: between clients, the message that hands the lock on would itself be the
// grant, which needs thirteen more rules (design 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure {
    began: Moment,
    owners: u64,
}

impl Tenure {
    // Each owner needs a number of its own, and a hold has no more.
    const MOST: u64 = Token::BLOCK;
    // Other clients wait this long, and one critical section. Without an end, one client had 2,957
    // turns and the other none (design 10, mutant `handed_on_for_ever`).
    const LONGEST: Duration = Duration::from_millis(50);

    /// The voters have granted, and the first owner has the hold.
    pub fn begin(now: Moment) -> Self {
        Self { began: now, owners: 1 }
    }

    /// From this moment on the hold is not handed on any more.
    pub fn ends(&self) -> Moment {
        let is_endless = crate::mutant!("handed_on_for_ever");
        self.began + if is_endless { Duration::from_secs(3_600) } else { Self::LONGEST }
    }

    /// The tenure with the next owner; `None` if it is the turn of other clients.
    pub fn next(self, now: Moment) -> Option<Self> {
        let is_last = self.owners >= Self::MOST && !crate::mutant!("handed_on_for_ever");
        if is_last || now >= self.ends() {
            return None;
        }
        Some(Self { owners: self.owners + 1, ..self })
    }

    /// Whether this owner has the hold from another owner, and not from the voters.
    pub fn is_handed_on(&self) -> bool {
        self.owners > 1
    }

    /// The token of this owner. `last`: the last number of the hold's block, which voters store.
    pub fn token(&self, last: Token) -> Token {
        // The last owner has the last number. As voters store that from the beginning, the next
        // hold has a higher token than each owner of this one (law 3).
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
            floors.note_token(&lock, token(1_000 + number));
            assert!(floors.ahead.len() <= Floors::MOST, "{}", floors.ahead.len());
        }
        let latest = Arc::from("99999");
        assert_eq!(floors.floor(&latest, 1), block_of(101_000), "the latest are kept");
    }

    #[test]
    fn a_token_ahead_of_the_clock_is_the_floor_of_its_own_lock() {
        let (mut floors, [one, other]) = (floors(), ["a", "b"].map(Arc::from));
        assert_eq!(floors.floor(&one, 100), block_of(100));
        floors.note_token(&one, token(100));
        assert_eq!(floors.floor(&one, 100), block_of(101));
        floors.note_token(&one, token(500));
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
            floors.note_token(&lock, floor);
            assert!(floors.ahead.len() <= Floors::FEW, "{}", floors.ahead.len());
        }
    }

    #[test]
    fn clocks_beyond_the_range_stay_in_it() {
        let (mut floors, lock) = (floors(), Arc::from("a"));
        assert_eq!(floors.floor(&lock, 0), block_of(1));
        assert_eq!(floors.floor(&lock, u64::MAX), token(Token::MOST));
        floors.note_token(&lock, token(Token::MOST));
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
