//! What users of several locks at once rely on. Each test's name is the claim; each claim is
//! written once and holds on voters inside the process and on real servers.

mod basics;
mod crowd;
mod ends;

use quorate::{AllGuard, Quorate};

use quorate_tests::fixture::Fixture;

/// Servers on a busy machine may not confirm it in time: then it goes on by itself.
async fn release(on: &Fixture, guard: AllGuard) {
    match guard.release().await {
        Err(error) if on.is_real() && error.is_unconfirmed() => {}
        released => released.expect("all are held"),
    }
}

/// One more client: another party.
pub(crate) async fn client(on: &Fixture) -> Quorate {
    let client = on.client().await;
    Quorate::clone(&client)
}
