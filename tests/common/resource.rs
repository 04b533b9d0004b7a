//! What the lock protects, for those who hold it: stricter than a gate, which lets one through that
//! shows its token twice.

use std::sync::{Mutex, PoisonError};

use quorate::Token;

/// Knows the highest token that was shown to it by somebody who held the lock then.
#[derive(Debug, Default)]
pub struct Resource(Mutex<Option<Token>>);

impl Resource {
    /// A hold shows its token for the first time. The highest of all before it where that is not
    /// lower although the hold is held: then there were two at once, or the tokens went back.
    ///
    /// Whoever does not hold the lock any more has nothing to say: it may have come late.
    pub fn show(&self, token: Token, is_held: impl FnOnce() -> bool) -> Option<Token> {
        let mut highest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Asked after the highest is known: it was held when that was shown, or came later.
        if !is_held() {
            return None;
        }
        let before = highest.filter(|highest| *highest >= token);
        *highest = (*highest).max(Some(token));
        before
    }
}

#[test]
fn a_token_that_does_not_grow_is_found_where_its_hold_is_held() {
    let token = |number: u64| Token::try_from(number).unwrap();
    let resource = Resource::default();
    assert_eq!(resource.show(token(5), || true), None);
    assert_eq!(resource.show(token(7), || true), None);
    assert_eq!(resource.show(token(7), || true), Some(token(7)));
    assert_eq!(resource.show(token(6), || true), Some(token(7)));
    assert_eq!(resource.show(token(6), || false), None);
    assert_eq!(resource.show(token(9), || false), None, "it is late");
    assert_eq!(resource.show(token(8), || true), None);
}
