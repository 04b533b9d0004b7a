//! What a candidate, or a leader, says of itself.

use std::sync::{Arc, Mutex};

use crate::{
    proto::{LeaderValue, Proclaimed, Token},
    sync::lock,
};

/// What a candidate, or a leader, says of itself.
#[derive(Debug)]
pub(crate) struct AnnouncedValue(Mutex<Announcement>);

#[derive(Debug)]
struct Announcement {
    value: LeaderValue,
    /// How often it was changed.
    changes: u64,
}

impl AnnouncedValue {
    pub(crate) fn of(value: LeaderValue) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Announcement { value, changes: 0 })))
    }

    /// From now on every renewal says this.
    pub(crate) fn change(&self, value: LeaderValue) {
        let mut announcement = lock(&self.0);
        *announcement = Announcement { value, changes: announcement.changes + 1 };
    }

    /// As it is asked for the vote with this floor. It says no token before it has won: nobody is
    /// to see it lead if it gives up.
    pub(crate) fn first(&self, floor: Option<Token>) -> String {
        let token = floor.filter(|_| crate::mutant!("candidate_says_that_it_leads"));
        let value = lock(&self.0).value.clone();
        Proclaimed { version: Proclaimed::FIRST, token, value }.to_text()
    }

    /// As it is renewed: a later version than that of the candidate, with the token.
    pub(crate) fn latest(&self, token: Option<Token>) -> String {
        let announcement = lock(&self.0);
        let version = Proclaimed::FIRST + 1 + announcement.changes;
        Proclaimed { version, token, value: announcement.value.clone() }.to_text()
    }
}
