//! What failures of voters may do to those who take locks meanwhile, and nothing else.

use std::{
    fmt::{Display, Formatter, Result as Written},
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

use quorate::Error;

/// How often.
#[derive(Debug, Default)]
pub struct Failures {
    lost: AtomicU64,
    without_a_quorum: AtomicU64,
}

impl Failures {
    /// Notes how a turn ended; panics at an error that no failure explains.
    pub fn note(&self, turn: Result<(), Error>) {
        match turn {
            Ok(()) => {}
            Err(error) if error.is_lost() => drop(self.lost.fetch_add(1, SeqCst)),
            Err(error) if error.is_no_quorum() => drop(self.without_a_quorum.fetch_add(1, SeqCst)),
            // The lease, or what goes on in the background, ends it.
            Err(error) if error.is_unconfirmed() || error.is_not_entered() => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// It was refused before anything was sent, with the values that are wrong.
#[track_caller]
pub fn assert_invalid(error: &Error, message: &str) {
    assert!(error.is_invalid() && error.to_string().contains(message), "{error}");
    assert!(error.voters().is_empty(), "{error}");
}

impl Display for Failures {
    fn fmt(&self, f: &mut Formatter<'_>) -> Written {
        write!(f, "{:?} lost, {:?} without a quorum for long", self.lost, self.without_a_quorum)
    }
}
