//! What one asks about a lock of any kind without a hold of it.

use super::{
    handle::LockHandle,
    view::{Holder, LockState, LockView, VoterView},
};
use crate::{
    kinds::LockRecord,
    proto::{Error, Place},
    scripts::{Answer, LockSeen},
    settings::Settings,
    voter::{Call, ONLY, Outcome},
};

/// What all voters say, and who leads an election.
pub(super) async fn look(handle: &LockHandle, record: &LockRecord) -> Result<LockView, Error> {
    let (kind, voters) = (record.kind().lock, ask_all(handle, record));
    if record.kind().leader.is_none() {
        return Ok(LockView::new(handle.name(), kind, voters.await?));
    }
    let (voters, leader) = tokio::join!(voters, handle.coordinator().ask_who_leads(record));
    // Where that cannot be known, what each voter says is shown all the same.
    let leader = leader.ok().flatten();
    Ok(LockView { leader, ..LockView::new(handle.name(), kind, voters?) })
}

pub(super) async fn ask_all(
    handle: &LockHandle,
    record: &LockRecord,
) -> Result<Vec<VoterView>, Error> {
    let (kind, (_, lists)) = (record.kind().lock, record.kind().look);
    let read = |answer: Outcome<Answer>| LockSeen::read(&answer?, lists);
    let panel = handle.coordinator().panel();
    let answers = ask(handle, record, &record.look(0)).await?;
    let now = handle.coordinator().clock().now();
    let quarantined = |(voter, answer): (usize, &Outcome<Answer>)| {
        let place = answer.as_ref().map_or(Place { voter, shard: ONLY }, |it| it.place);
        Some(panel.standings.kept_out(place, now)?.quarantined)
    };
    let quarantined: Vec<_> = answers.iter().enumerate().map(quarantined).collect();
    let mut seen: Vec<_> = answers.into_iter().map(read).collect();
    while let Some(from) = seen.iter().flatten().filter_map(|seen| seen.next).min() {
        let more = ask(handle, record, &record.look(from)).await?.into_iter().map(read);
        let add = |(seen, more): (Outcome<LockSeen>, Outcome<_>)| Ok(seen?.go_on(from, more?));
        seen = seen.into_iter().zip(more).map(add).collect();
    }
    let view = |(voter, (seen, quarantine)): (usize, (Outcome<LockSeen>, _))| VoterView {
        voter: panel.voters[voter].label().to_string(),
        side: panel.quorum.side(voter),
        state: seen.map(|seen| LockState::read(kind, seen)),
        quarantine,
    };
    Ok(seen.into_iter().zip(quarantined).enumerate().map(view).collect())
}

/// Ends a named hold; says how many voters have confirmed it.
pub(super) async fn end(
    handle: &LockHandle,
    record: &LockRecord,
    held: &Holder,
) -> Result<usize, Error> {
    let Holder { hold, slots, ttl, .. } = held;
    // It is remembered for longer than the holder, which renews from a third of its lease on, can
    // go on without its vote.
    let left = ttl.unwrap_or_default().min(Settings::LONGEST_LEASE);
    let marker = (left * 4).max(handle.settings().lease);
    // Only that of a semaphore has slots.
    let slots = u16::try_from(slots.len().max(1)).unwrap_or(u16::MAX);
    let answers = ask(handle, record, &record.end(hold, slots, marker)).await?;
    Ok(answers.iter().filter(|answer| answer.is_ok()).count())
}

/// What every voter answers that does so in time.
pub(super) async fn ask(
    handle: &LockHandle,
    record: &LockRecord,
    call: &Call,
) -> Result<Vec<Outcome<Answer>>, Error> {
    handle.coordinator().ask_until(record, call, record.rules(), |_| false).await
}
