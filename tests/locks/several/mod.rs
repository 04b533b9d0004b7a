//! What users of several locks at once rely on. Each test's name is the claim; each claim is
//! written once and holds on voters inside the process and on real servers.

mod basics;
mod crowd;
mod ends;

use quorate::Quorate;

use quorate_tests::fixture::Fixture;

/// One more client: another party.
pub(crate) async fn client(on: &Fixture) -> Quorate {
    let client = on.client().await;
    Quorate::clone(&client)
}
