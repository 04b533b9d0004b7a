//! The least that the next token of a lock may be.

use std::{collections::HashMap, sync::Arc};

use crate::words::Token;

/// The wall clock of a client, as it never goes back, and the tokens that are ahead of it.
///
/// Voters count upwards from what they know; a client's floor keeps the count growing where they
/// know nothing any more. It is in microseconds, as nobody takes a lock that often: a count that
/// ran ahead of the clocks would go back when it is lost.
#[derive(Debug, Default)]
pub(crate) struct Floors {
    wall_micros: u64,
    /// By lock. What the wall clock has overtaken is no longer needed.
    ahead: HashMap<Arc<str>, Token>,
    /// How many there may be before those are looked for.
    roomy: usize,
}

impl Floors {
    const FEW: usize = 64;

    pub(crate) fn floor(&mut self, lock: &Arc<str>, wall_micros: u64) -> Token {
        self.wall_micros = self.wall_micros.max(wall_micros).clamp(1, Token::MOST);
        let seen = self.ahead.get(lock).map_or(0, |token| u64::from(*token));
        let floor = self.wall_micros.max((seen + 1).min(Token::MOST));
        Token::new(floor).expect("it was brought into the range")
    }

    /// A hold of this client has this token.
    pub(crate) fn seen(&mut self, lock: &Arc<str>, token: Token) {
        if u64::from(token) < self.wall_micros {
            return;
        }
        if self.ahead.len() >= self.roomy.max(Self::FEW) {
            self.ahead.retain(|_, token| u64::from(*token) >= self.wall_micros);
            self.roomy = 2 * self.ahead.len();
        }
        self.ahead.insert(Arc::clone(lock), token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u64) -> Token {
        Token::new(number).unwrap()
    }

    #[test]
    fn it_is_the_wall_clock_which_never_goes_back() {
        let (mut floors, lock) = (Floors::default(), Arc::from("a"));
        assert_eq!(floors.floor(&lock, 100), token(100));
        assert_eq!(floors.floor(&lock, 40), token(100));
        assert_eq!(floors.floor(&lock, 101), token(101));
    }

    #[test]
    fn a_token_ahead_of_the_clock_is_the_floor_of_its_own_lock() {
        let (mut floors, [one, other]) = (Floors::default(), ["a", "b"].map(Arc::from));
        assert_eq!(floors.floor(&one, 100), token(100));
        floors.seen(&one, token(100));
        assert_eq!(floors.floor(&one, 100), token(101));
        floors.seen(&one, token(500));
        assert_eq!((floors.floor(&one, 120), floors.floor(&other, 120)), (token(501), token(120)));
        assert_eq!(floors.floor(&one, 700), token(700));
    }

    #[test]
    fn what_the_clock_has_overtaken_is_forgotten() {
        let mut floors = Floors::default();
        for number in 1..10_000_u64 {
            let lock = Arc::from(number.to_string());
            let floor = floors.floor(&lock, number);
            floors.seen(&lock, floor);
            assert!(floors.ahead.len() <= Floors::FEW, "{}", floors.ahead.len());
        }
    }

    #[test]
    fn clocks_beyond_the_range_stay_in_it() {
        let (mut floors, lock) = (Floors::default(), Arc::from("a"));
        assert_eq!(floors.floor(&lock, 0), token(1));
        assert_eq!(floors.floor(&lock, u64::MAX), token(Token::MOST));
        floors.seen(&lock, token(Token::MOST));
        assert_eq!(floors.floor(&lock, 0), token(Token::MOST));
    }
}
