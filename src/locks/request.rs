//! What is asked of every voter.

use std::{
    iter::{empty, once},
    sync::Arc,
    time::Duration,
};

use crate::{
    acquire::{ElectionAsked, LockRecord},
    keys::Word,
    proto::{HoldId, Rules, Ticket, Token},
    scripts::Script,
    voter::{Call, Request, Requests},
};

/// What one asks who has no hold of the lock.
pub(crate) trait LockAsked: LockRecord {
    /// Asks who has it and who waits; of a semaphore for the slots from `from` on, as many as one
    /// call may tell.
    fn inspect(&self, from: u64) -> Call;

    /// Ends a named hold; its mark stays for `marker`.
    fn force_release(&self, hold: &HoldId, marker: Duration) -> Call;

    /// Takes out who waits, and what is none of its records.
    fn clear(&self) -> Call;

    /// The question who leads, of an election.
    fn leader_asked(self: Arc<Self>) -> Option<ElectionAsked> {
        None
    }
}

/// What all requests of one script have in common, whatever hold they are for.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    script: &'static Script,
    shared: Arc<[Arc<str>]>,
    /// How long each voter has to answer.
    deadline: Duration,
    /// And how long at most, where it was seen to need longer.
    longest: Duration,
}

impl Form {
    /// `shared`: as in the script's header, without the command that publishes.
    pub(crate) fn new(script: &'static Script, rules: Rules, shared: &[&str]) -> Self {
        debug_assert_eq!(
            shared.len() + usize::from(script.publishes()),
            script.shared.len(),
            "{}",
            script.name
        );
        let Rules { voter_deadline: deadline, longest_deadline: longest, .. } = rules;
        Self { script, shared: shared.iter().map(|&arg| arg.into()).collect(), deadline, longest }
    }

    /// A request for a hold, which is the first argument.
    pub(crate) fn request<'a, const K: usize, const A: usize>(
        &self,
        keys: [impl Into<Word<'a>>; K],
        hold: &HoldId,
        args: [Word<'_>; A],
    ) -> Call {
        let args = once(Word::from(hold.text())).chain(args);
        self.fill(keys.map(Into::into), args, Some(hold))
    }

    /// A request for nobody's hold.
    pub(crate) fn question<'a, const K: usize>(&self, keys: [impl Into<Word<'a>>; K]) -> Call {
        self.fill(keys.map(Into::into), empty(), None)
    }

    pub(super) fn fill<'a, const K: usize>(
        &self,
        keys: [Word<'a>; K],
        args: impl Iterator<Item = Word<'a>> + Clone,
        hold: Option<&HoldId>,
    ) -> Call {
        let Self { script, shared, .. } = self;
        let request = Request::new(keys, args, hold);
        debug_assert_eq!(
            (K, request.args().len()),
            (script.keys.len(), script.args.len()),
            "{}",
            script.name
        );
        Call {
            script,
            shared: Arc::clone(shared),
            requests: Requests::One(request),
            deadline: self.deadline,
            longest: self.longest,
        }
    }
}

/// The settings see to it that leases are whole milliseconds.
pub(crate) fn millis(time: Duration) -> String {
    time.as_millis().to_string()
}

/// A token or a floor for one as an argument; empty for a hold without tokens.
pub(crate) fn token(token: Option<Token>) -> Word<'static> {
    token.map(Word::number).into()
}

/// Whether this is so.
pub(crate) fn flag(is_so: bool) -> Word<'static> {
    if is_so { "1".into() } else { Word::NOTHING }
}

/// The place in a queue that has been given out already.
pub(super) fn ticket(ticket: Option<Ticket>) -> Word<'static> {
    ticket.map(|Ticket(ticket)| Word::number(ticket)).into()
}

/// The place to leave, if any.
pub(super) fn place(place: Option<&HoldId>) -> Word<'_> {
    place.map(HoldId::text).into()
}
