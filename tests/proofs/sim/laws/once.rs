//! A script that runs twice leaves the voter as it was after the first time.

use quorate::embedded::{Ran, Record};

use super::Law;
use crate::sim::world::World;

pub(crate) fn ran(world: &World, run: &Ran<'_>, before: &[Record], after: &[Record]) {
    if run.again() && before != after && !is_let_in(run, before) {
        let what = format!("{} ran again and made {after:?} of {before:?}", run.script());
        world.breach(Law::Once, None, what);
    }
}

/// A call with several requests can run twice. One of them may be refused in the first run and
/// granted in the second, because a later one has freed permits: as if it had run only then.
fn is_let_in(run: &Ran<'_>, before: &[Record]) -> bool {
    let mut members = before.iter().flat_map(|record| &record.fields);
    run.script() == "semaphore/acquire"
        && run.answer().is_ok_and(|(code, ..)| code == 1)
        && members.all(|(member, _)| Some(&**member) != run.arg("hold"))
}
