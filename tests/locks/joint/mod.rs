//! Voters that are changed: clients of the old ones, of both sets, and of the new ones.

mod quorums;
mod roster;

use std::time::Duration;

use quorate::{
    Builder, Quorate,
    embedded::{self, EmbeddedVoter},
};

/// So many voters that are only new, in both sets, and only old, in this order.
struct Changed {
    all: Vec<EmbeddedVoter>,
    only_new: usize,
    both: usize,
}

impl Changed {
    fn of(only_new: usize, both: usize, only_old: usize) -> Self {
        Self { all: embedded::voters(only_new + both + only_old), only_new, both }
    }

    fn new_ones(&self) -> &[EmbeddedVoter] {
        &self.all[..self.only_new + self.both]
    }

    fn old_ones(&self) -> &[EmbeddedVoter] {
        &self.all[self.only_new..]
    }

    async fn with_old(&self) -> Quorate {
        builder().embedded(self.old_ones()).connect().await.unwrap()
    }

    async fn with_both(&self) -> Quorate {
        self.both_sets().connect().await.unwrap()
    }

    fn both_sets(&self) -> Builder {
        builder().embedded(self.new_ones()).replacing(self.old_ones())
    }

    async fn with_new(&self) -> Quorate {
        builder().embedded(self.new_ones()).connect().await.unwrap()
    }
}

fn builder() -> Builder {
    Quorate::builder().lease(Duration::from_secs(10))
}

/// One to three, three to five, five to three, three to others, and one in the place of one.
fn changes() -> [Changed; 5] {
    [(2, 1, 0), (2, 3, 0), (0, 3, 2), (3, 0, 3), (1, 2, 1)]
        .map(|(only_new, both, only_old)| Changed::of(only_new, both, only_old))
}
