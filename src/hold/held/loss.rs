//! Why a hold ended without being released.

/// Why a hold is lost.
#[derive(Clone, Copy, Debug)]
pub(super) enum HoldLoss {
    Expired,
    Fixed,
    Revoked,
    Superseded,
    Vanished,
    Abandoned,
}

impl HoldLoss {
    /// What errors and the log say.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Expired => "its validity ended without a renewal by a majority",
            Self::Fixed => "its fixed lease ended",
            Self::Revoked => "it was ended by force",
            Self::Superseded => "another hold has a majority",
            Self::Vanished => "a majority of voters no longer had its vote",
            Self::Abandoned => "the runtime in which its client was connected has ended",
        }
    }

    /// What metrics call it.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Fixed => "fixed",
            Self::Revoked => "forced",
            Self::Superseded => "superseded",
            Self::Vanished => "vanished",
            Self::Abandoned => "abandoned",
        }
    }
}
