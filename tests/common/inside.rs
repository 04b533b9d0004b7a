//! Voters inside the process: a client of them, and what goes wrong on the way.

use quorate::{
    Quorate,
    embedded::{self, EmbeddedVoter, Fault, FaultGuard},
};

use crate::fixture::{ms, secs};

/// A client with the settings that a user has who sets none.
pub async fn client(voters: &[EmbeddedVoter]) -> Quorate {
    Quorate::builder().embedded(voters).connect().await.expect("all voters answer")
}

/// So many voters, and such a client of them.
pub async fn with_client(count: usize) -> (Vec<EmbeddedVoter>, Quorate) {
    let voters = embedded::voters(count);
    let client = client(&voters).await;
    (voters, client)
}

/// Three voters, which never have longer than 200 ms, and a client with a patience of 2 s.
pub async fn impatient() -> (Vec<EmbeddedVoter>, Quorate) {
    let voters = embedded::voters(3);
    let builder = Quorate::builder().embedded(&voters).quorum_timeout(secs(2));
    let client = builder.voter_deadline(ms(200)).connect().await.expect("all voters answer");
    (voters, client)
}

/// The same at each of these voters, for as long as the guards live.
pub fn all(voters: &[EmbeddedVoter], fault: Fault) -> Vec<FaultGuard> {
    voters.iter().map(|voter| voter.fault(fault)).collect()
}

/// From now on this happens to all that the client sends these voters.
pub fn fault_client(voters: &[EmbeddedVoter], client: &str, fault: Fault) {
    for voter in voters {
        let client = client.to_owned();
        voter.fault_each(move |sent| {
            (sent.client() == client).then_some(fault).into_iter().collect()
        });
    }
}

/// From now on these voters get nothing of this script.
pub fn drop_script(voters: &[EmbeddedVoter], script: &'static str) {
    for voter in voters {
        voter.fault_each(move |sent| match sent.script() {
            Some(sent) if sent == script => vec![Fault::DropRequests],
            _ => Vec::new(),
        });
    }
}

/// What happened to a client or a script happens no more.
pub fn heal(voters: &[EmbeddedVoter]) {
    for voter in voters {
        voter.fault_each(|_| Vec::new());
    }
}
