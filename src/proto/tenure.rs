//! Handing a hold on within one client: from task to task, without asking the voters. The hold
//! stays, and each of its owners has a token of its own.
//!
//! Known as lock cohorting (Dice, Marathe, Shavit: "Lock Cohorting", 2012).

use std::time::Duration;

use super::{Moment, Token};

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
    use super::*;
    use crate::proto::at;

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
