//! A script that runs twice leaves the voter as it was after the first time.

use quorate::embedded::{Ran, Record};

use super::Law;
use crate::sim::world::World;

pub(crate) fn ran(world: &World, run: &Ran<'_>, before: &[Record], after: &[Record]) {
    if run.again() && before != after {
        let what = format!("{} ran again and made {after:?} of {before:?}", run.script());
        world.breach(Law::Once, None, what);
    }
}
