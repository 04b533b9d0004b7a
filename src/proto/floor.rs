//! The least that the next token of a lock may be.

use std::{collections::HashMap, sync::Arc, time::Duration};

use crate::proto::Token;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
