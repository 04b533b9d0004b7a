//! Why a hold ended without being released.

use std::{borrow::Cow, time::Duration};

use crate::words::Rounded;

/// Why a hold is lost.
#[derive(Clone, Copy, Debug)]
pub(super) enum HoldLoss {
    Expired,
    /// It was noticed so long after the deadline: nothing renewed it, nor looked at the clock.
    Unattended(Duration),
    Fixed,
    Revoked,
    Superseded,
    Vanished,
    Abandoned,
    /// Another one was lost that was acquired together with it.
    Forsaken,
    OutOfStep,
}

impl HoldLoss {
    /// What errors and the log say.
    pub(super) fn text(self) -> Cow<'static, str> {
        let text = match self {
            Self::Unattended(late) => {
                return format!(
                    "its validity ended {} before this was noticed: the process, its runtime or \
                     the machine stood still",
                    Rounded(late)
                )
                .into();
            }
            Self::Expired => "its validity ended without a renewal by a majority",
            Self::Fixed => "its fixed lease ended",
            Self::Revoked => "it was ended by force",
            Self::Superseded => "another hold has a majority",
            Self::Vanished => "a majority of voters no longer had its vote",
            Self::Abandoned => "the runtime in which its client was connected has ended",
            Self::Forsaken => "another lock of the same guard was lost",
            Self::OutOfStep => "clients disagree about the voters",
        };
        text.into()
    }

    /// What metrics call it.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Expired | Self::Unattended(_) => "expired",
            Self::Fixed => "fixed",
            Self::Revoked => "forced",
            Self::Superseded => "superseded",
            Self::Vanished => "vanished",
            Self::Abandoned => "abandoned",
            Self::Forsaken => "forsaken",
            Self::OutOfStep => "out_of_step",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_says_why() {
        let late = Duration::from_millis(40_400);
        for (loss, told) in [
            (HoldLoss::Expired, "its validity ended without a renewal by a majority"),
            (
                HoldLoss::Unattended(late),
                "its validity ended 40.4s before this was noticed: the process, its runtime or the \
                 machine stood still",
            ),
            (HoldLoss::Fixed, "its fixed lease ended"),
            (HoldLoss::Revoked, "it was ended by force"),
            (HoldLoss::Superseded, "another hold has a majority"),
            (HoldLoss::Vanished, "a majority of voters no longer had its vote"),
            (HoldLoss::Abandoned, "the runtime in which its client was connected has ended"),
            (HoldLoss::Forsaken, "another lock of the same guard was lost"),
            (HoldLoss::OutOfStep, "clients disagree about the voters"),
        ] {
            assert_eq!(loss.text(), told);
        }
    }
}
