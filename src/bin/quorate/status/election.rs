//! What the voters say about an election.

use quorate::{Error, Leader, Quorate, inspection::Inspection};

use crate::frame::quoted;

/// An election: who has the votes and who waits, and what the leader says of itself.
pub(super) struct ElectionSeen {
    pub(super) inspection: Inspection,
    pub(super) leader: Option<Leader>,
}

pub(super) async fn look_at_election(quorum: &Quorate, name: &str) -> Result<ElectionSeen, Error> {
    let election = quorum.election(name);
    let (inspection, leader) = tokio::join!(election.inspect(), election.leader());
    // Where that cannot be known, what each voter says is shown all the same.
    Ok(ElectionSeen { inspection: inspection?, leader: leader.ok().flatten() })
}

/// What a leader says of itself, as people read it.
pub(super) fn said(leader: &Leader) -> String {
    leader.text().map_or_else(|| format!("{} bytes", leader.value().len()), quoted)
}
