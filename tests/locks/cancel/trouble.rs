//! What goes wrong at some of the voters meanwhile.

use quorate_tests::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Nothing,
    /// An error at once.
    Killed,
    /// Well within the voter deadline.
    Slow,
    /// Beyond the voter deadline: what was given up long ago still runs.
    Late,
    /// Never, until it goes on with all that has arrived.
    Stopped,
    RequestsLost,
    RepliesLost,
    CutBeforeRun,
    CutAfterRun,
}

impl Trouble {
    pub(crate) const ALL: [Self; 9] = [
        Self::Nothing,
        Self::Killed,
        Self::Slow,
        Self::Late,
        Self::Stopped,
        Self::RequestsLost,
        Self::RepliesLost,
        Self::CutBeforeRun,
        Self::CutAfterRun,
    ];

    fn fault(self) -> Option<Fault> {
        let delay = |way| Fault::Delay { there: way, back: way };
        match self {
            Self::Nothing | Self::Killed | Self::Stopped => None,
            Self::Slow => Some(delay(Duration::from_millis(5))),
            Self::Late => Some(delay(Duration::from_millis(300))),
            Self::RequestsLost => Some(Fault::DropRequests),
            Self::RepliesLost => Some(Fault::DropReplies),
            Self::CutBeforeRun => Some(Fault::CutBeforeRun),
            Self::CutAfterRun => Some(Fault::CutAfterRun),
        }
    }

    /// By when a request that was just sent has run everywhere where requests run.
    pub(crate) fn round_trip(self) -> Duration {
        Duration::from_millis(match self {
            Self::Slow => 11,
            Self::Late => 601,
            // Where no answers come, a call leaves some time after the one before.
            Self::RepliesLost => 3,
            _ => 1,
        })
    }

    /// Whether every request that is sent runs all the same.
    pub(crate) fn lets_requests_run(self) -> bool {
        matches!(self, Self::Nothing | Self::Slow | Self::Late | Self::RepliesLost)
    }
}

/// Trouble at some voters, until it is healed.
#[derive(Debug)]
pub(crate) struct Troubled {
    trouble: Trouble,
    voters: Vec<EmbeddedVoter>,
    faults: Vec<FaultGuard>,
}

impl Troubled {
    pub(crate) fn inflict(trouble: Trouble, voters: &[EmbeddedVoter]) -> Self {
        for voter in voters {
            match trouble {
                Trouble::Killed => voter.kill(),
                Trouble::Stopped => voter.stop(),
                _ => {}
            }
        }
        let fault = trouble.fault();
        let faults = voters.iter().filter_map(|voter| Some(voter.fault(fault?))).collect();
        Self { trouble, voters: voters.to_vec(), faults }
    }

    /// Ends it, and waits for what is still on its way.
    pub(crate) async fn heal(self) {
        drop(self.faults);
        for voter in &self.voters {
            match self.trouble {
                // No stream has holes: where requests were swallowed the connection has ended.
                Trouble::Killed | Trouble::RequestsLost => voter.restart(),
                Trouble::Stopped => voter.resume(),
                _ => {}
            }
        }
        sleep(self.trouble.round_trip()).await;
    }
}
