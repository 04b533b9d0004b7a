//! The token of a hold: the highest number that a majority gave it, stored by a majority.

use super::{Quorum, Votes};
use crate::proto::{Token, Verdict};

/// The numbers that voters gave one hold with their votes.
#[derive(Clone, Debug)]
pub struct Tokens {
    quorum: Quorum,
    said: Vec<Option<Token>>,
}

impl Tokens {
    pub fn new(quorum: Quorum) -> Self {
        Self { quorum, said: vec![None; quorum.voters()] }
    }

    /// A voter whose vote counts gave this number with it.
    pub fn heard(&mut self, voter: usize, token: Token) {
        self.said[voter] = Some(token);
    }

    /// The token, if a majority of votes came with a number; and which voters store it. Others are
    /// to be told, until a majority does: only then does the next majority meet one that counts on
    /// from there. A voter whose vote another hold has is no help: that hold has its number.
    pub fn fix(&self) -> Option<(Token, Votes)> {
        let highest = self.said.iter().flatten().max().copied()?;
        let mut stored = Votes::new(self.quorum);
        for (voter, said) in self.said.iter().enumerate() {
            if *said == Some(highest) {
                stored.record(voter, Verdict::Granted);
            }
        }
        Some((highest, stored))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(said: [Option<u64>; 5]) -> Option<(u64, Vec<usize>, bool)> {
        let mut tokens = Tokens::new(Quorum::of(5));
        for (voter, said) in said.into_iter().enumerate() {
            if let Some(number) = said {
                tokens.heard(voter, Token::new(number).unwrap());
            }
        }
        let (token, stored) = tokens.fix()?;
        Some((token.into(), stored.unheard(), stored.is_won()))
    }

    #[test]
    fn the_highest_is_the_token_and_those_with_a_lower_one_are_to_be_told_until_a_majority_has_it()
    {
        for (said, token) in [
            ([None; 5], None),
            ([Some(7), Some(7), None, Some(7), None], Some((7, vec![2, 4], true))),
            ([Some(7), Some(9), None, Some(7), None], Some((9, vec![0, 2, 3, 4], false))),
            ([Some(9), Some(8), Some(9), Some(9), None], Some((9, vec![1, 4], true))),
        ] {
            assert_eq!(fixed(said), token);
        }
    }
}
