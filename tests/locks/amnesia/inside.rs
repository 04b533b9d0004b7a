//! Voters inside the process that have run for long, and clients of them.

use std::slice;

use quorate_tests::{inside::fault_client, prelude::*};

/// The longest lease by default.
pub(crate) const LEASE: Duration = secs(30);
/// What its holder trusts of it.
pub(crate) const TRUSTED: Duration = Duration::from_millis(29_698);

/// Voters that no client takes for young.
pub(crate) fn old_voters(count: usize) -> Vec<EmbeddedVoter> {
    let voters = embedded::voters(count);
    for voter in &voters {
        voter.set_uptime(secs(3600));
    }
    voters
}

/// A client of these voters that waits for longer than a quarantine takes.
pub(crate) fn builder(voters: &[EmbeddedVoter]) -> Builder {
    Quorate::builder().embedded(voters).quorum_timeout(3 * LEASE)
}

pub(crate) async fn client(voters: &[EmbeddedVoter]) -> Quorate {
    builder(voters).connect().await.expect("a majority answers")
}

pub(crate) async fn old_with_client(count: usize) -> (Vec<EmbeddedVoter>, Quorate) {
    let voters = old_voters(count);
    let client = client(&voters).await;
    (voters, client)
}

pub(crate) async fn client_with(voters: &[EmbeddedVoter], guard: RestartGuard) -> Quorate {
    builder(voters).restart_guard(guard).connect().await.expect("a majority answers")
}

pub(crate) async fn client_on(machine: &Machine, voters: &[EmbeddedVoter]) -> Quorate {
    builder(voters).machine(machine).connect().await.expect("a majority answers")
}

/// Nothing of what the client on this machine asks arrives at the voter.
pub(crate) fn cut_off(voter: &EmbeddedVoter, machine: &Machine) {
    fault_client(slice::from_ref(voter), machine.label(), Fault::DropRequests);
}

/// Why a voter's grant did not count, and for how long it would not have; and that the error's text
/// says both.
pub(crate) fn blamed(error: &Error, voter: usize) -> (Quarantine, Duration) {
    assert!(error.is_no_quorum(), "{error}");
    let Verdict::Unknown(Cause::Quarantined(quarantined)) = error.voters()[voter].verdict else {
        panic!("not in quarantine: {error}")
    };
    let (why, left) = (quarantined.why, quarantined.left);
    let told = Duration::from_millis(u64::try_from(left.as_millis()).expect("a time"));
    let told = format!("in quarantine for {told:?} more: {why}");
    assert!(error.to_string().contains(&told), "{error}");
    (why, left)
}

/// Why a voter's grants do not count for this client now, and for how long they will not.
pub(crate) async fn kept_out(client: &Quorate, voter: usize) -> (Quarantine, Duration) {
    let seen = client.mutex("a").inspect().await.expect("a majority answers");
    let quarantined = seen.voters[voter].quarantine.expect("it is in quarantine");
    (quarantined.why, quarantined.left)
}
