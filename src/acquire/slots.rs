//! The slots of a hold that a majority has granted.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    Ask, Coordinator, LockRecord,
    claim::Claim,
    given::{FixedSlots, Given},
};
use crate::{
    clock::Moment,
    proto::{Loss, Rules, SlotNext, Ticket},
    voter::Replies,
};

/// For how many semaphores it is remembered that the client has warned.
const MOST: usize = 1024;

/// The semaphores that others use with fewer permits, as the log has it.
#[derive(Debug, Default)]
pub(super) struct FewerTold(Mutex<BTreeSet<Arc<str>>>);

/// An attempt whose votes came with different slots.
#[derive(Clone, Copy)]
pub(super) struct Granted {
    pub(super) rules: Rules,
    pub(super) ticket: Option<Ticket>,
    pub(super) started: Moment,
    pub(super) limit: Option<Moment>,
}

impl Coordinator {
    /// The slots of a hold that a majority granted: mostly all gave the same. Otherwise voters that
    /// are behind the others are asked to go on, until a majority has the same.
    pub(super) async fn fix_slots(
        &self,
        claim: &mut Claim,
        given: &mut Given,
        replies: &mut Replies,
        granted: Granted,
    ) -> Result<Option<FixedSlots>, Loss> {
        let Some(slots) = &given.slots else { return Ok(None) };
        let fixed = if let SlotNext::Fixed(fixed, votes) = slots.clone().advance() {
            let elsewhere = slots.elsewhere(&fixed);
            FixedSlots { slots: fixed, votes, elsewhere }
        } else {
            // A voter that refused may grant now.
            claim.owe_all();
            self.agree_on_slots(claim, given, replies, granted).await?
        };
        if let Some(fewer) = given.fewer {
            self.warn_of_fewer(claim.record(), fewer);
        }
        Ok(Some(fixed))
    }

    async fn agree_on_slots(
        &self,
        claim: &Claim,
        given: &mut Given,
        replies: &mut Replies,
        granted: Granted,
    ) -> Result<FixedSlots, Loss> {
        let Self { panel, clock, .. } = self;
        let Granted { rules, ticket, started, limit } = granted;
        let due = clock.now() + panel.adapt(rules).voter_deadline;
        let due = limit.filter(|limit| *limit > clock.now()).map_or(due, |limit| limit.min(due));
        while rules.is_in_time(started, clock.now())
            && let Some(slots) = &mut given.slots
        {
            match slots.advance() {
                SlotNext::Fixed(fixed, votes) => {
                    let elsewhere = slots.elsewhere(&fixed);
                    return Ok(FixedSlots { slots: fixed, votes, elsewhere });
                }
                SlotNext::Ask { floors, voters } => {
                    let (hold, lease) = (claim.hold(), rules.terms.lease);
                    let slots = Some(&floors);
                    let ask = Ask { ticket, slots, ..Ask::new(hold, lease) };
                    panel.ask_again(replies, &voters, &claim.record().acquire(&ask));
                }
                SlotNext::Wait => tokio::select! {
                    biased;
                    (voter, outcome) = replies.next() => {
                        let vote = panel.hear(given, voter, &outcome, started);
                        given.late.push((voter, vote));
                    }
                    () = clock.sleep_until(due) => return Err(slots.loss()),
                },
                SlotNext::Apart => return Err(Loss::Split),
            }
        }
        Err(Loss::NoQuorum)
    }

    /// Says once of each semaphore that others use it with fewer permits: these count from now on.
    fn warn_of_fewer(&self, record: &dyn LockRecord, fewer: u16) {
        let (key, lock) = (Arc::clone(&record.info().key), record.info().name.as_str());
        let mut told = self.fewer_told.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= MOST {
            told.clear();
        }
        if told.insert(key) {
            let permits = record.info().permits;
            tracing::warn!(lock, permits, fewer, "others use the semaphore with fewer permits");
        }
    }
}
