//! What may happen in a model, and which rule is left out.

use quorate::proto::SlotOrder;

/// So many clients there are, of which some may want nothing.
pub(crate) const CLIENTS: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) permits: u16,
    /// How many slots each client wants.
    pub(crate) wanted: [usize; CLIENTS],
    /// The first client asks once more when it has given back what it had.
    pub(crate) again: bool,
    /// Nobody gives up or gives back.
    pub(crate) steadfast: bool,
    /// So many requests may be lost.
    pub(crate) losses: u8,
    /// So many requests may run once more, late.
    pub(crate) copies: u8,
    /// The first voter may forget all that it gave, so often.
    pub(crate) forgets: u8,
    /// So many holders reach the end of their lease: they trust it no more, and what voters gave
    /// them ends at any moment from then on.
    pub(crate) lapses: u8,
    pub(crate) broken: Option<Broken>,
}

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A majority of votes is enough, whichever slots came with them.
    AnySlotIsAVote,
    /// A voter looks for the first free slots again each time that it is asked.
    CopyMovesBack,
    /// A voter gives slots that another hold has.
    GivesTaken,
    /// Voters that gave a hold other slots keep them for it.
    RenewalMovesNothing,
    /// An undo goes only to voters that are known to have given something.
    KeepsOnGivingUp,
    /// What a voter in quarantine gives counts.
    QuarantinedSlotCounts,
    /// A renewal takes slots that another hold has.
    RenewalTakes,
}

impl Rules {
    /// All look for free slots from the first on, where they meet most often.
    pub(crate) const fn of(permits: u16, wanted: [usize; CLIENTS]) -> Self {
        let (again, steadfast, broken) = (false, false, None);
        let (losses, copies, forgets, lapses) = (0, 0, 0, 0);
        Self { permits, wanted, again, steadfast, losses, copies, forgets, lapses, broken }
    }

    pub(crate) const fn broken(self, broken: Broken) -> Self {
        Self { broken: Some(broken), ..self }
    }

    pub(crate) fn is_broken(&self, broken: Broken) -> bool {
        self.broken == Some(broken)
    }

    pub(crate) fn slot_order(&self) -> SlotOrder {
        SlotOrder { start: 0, permits: self.permits }
    }
}
