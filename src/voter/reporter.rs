//! Writes changes of the voters to the log and the metrics.

use std::sync::Arc;

use crate::{
    log,
    proto::{Change, Gauge, Quarantined, Quorum, Rounded, Shard},
    series::VoterSeries,
};

#[derive(Debug)]
pub(super) struct Reporter {
    labels: Vec<Arc<str>>,
    quorum: Quorum,
    pub(super) series: Vec<VoterSeries>,
}

impl Reporter {
    pub(super) fn new(labels: Vec<Arc<str>>, quorum: Quorum) -> Self {
        let series: Vec<_> = labels.iter().map(VoterSeries::new).collect();
        series.iter().for_each(VoterSeries::begin);
        Self { labels, quorum, series }
    }

    pub(super) fn label(&self, voter: usize) -> &Arc<str> {
        &self.labels[voter]
    }

    /// To be called without a mutex: this calls the recorder of metrics, which may take its time.
    // Whoever must look at a hold or a voter at once has been woken before, and no other thread
    // waits for a slow recorder (test
    // `no_answer_waits_for_a_recorder_and_what_changes_meanwhile_is_told_in_its_order`).
    pub(super) fn report(self: &Arc<Self>, change: &Change) {
        if !matches!(change, Change::QuarantineBegan { .. } | Change::Counted { .. }) {
            let (this, change) = (Arc::clone(self), change.clone());
            log::report(move || this.write(change));
        }
        self.count(change);
    }

    fn count(&self, change: &Change) {
        // Added, never set: the clients of a process share these gauges.
        let by = |is_counted| if is_counted { 1.0 } else { -1.0 };
        let of = |voter: &usize| &self.series[*voter];
        match change {
            Change::Connected { shard, .. } => of(&shard.voter).connections.change(1.0),
            Change::Disconnected { shard, .. } => of(&shard.voter).connections.change(-1.0),
            Change::QuarantineBegan { voter, reason } => of(voter).quarantines.of(reason).count(1),
            Change::Clash { voter, why } => {
                of(voter).configuration_mismatch.change(by(why.is_some()));
            }
            Change::Counted { voter, gauge, is_counted } => {
                let gauge = match gauge {
                    Gauge::Clients => &of(voter).clients,
                    Gauge::Quarantined => &of(voter).quarantined,
                    Gauge::Refusing => &of(voter).refusing,
                    Gauge::ConfigurationMismatch => &of(voter).configuration_mismatch,
                };
                gauge.change(by(*is_counted));
            }
            _ => {}
        }
    }
}

// On the thread of the log. The end of a trouble is a warning too: a service that logs from `warn`
// on would otherwise see that the quorum was lost, and not that it is back.
impl Reporter {
    fn write(&self, change: Change) {
        let of = |voter: usize| &self.labels[voter];
        match change {
            Change::Connected {
                shard: Shard { voter, number: shard },
                run_id,
                age,
                ends_trouble,
            } => {
                if ends_trouble {
                    tracing::warn!(voter = %of(voter), shard, run_id, ?age, "connected");
                } else {
                    tracing::info!(voter = %of(voter), shard, run_id, ?age, "connected");
                }
            }
            Change::Disconnected { shard: Shard { voter, number: shard }, why } => {
                if let Some(why) = why {
                    tracing::warn!(voter = %of(voter), shard, why, "connection lost");
                } else {
                    tracing::info!(voter = %of(voter), shard, "connection closed");
                }
            }
            Change::Quorum { is_there, missing } => self.write_quorum(is_there, &missing),
            Change::Refuses { shard: Shard { voter, number: shard }, why } => {
                let voter = of(voter);
                if let Some(why) = why {
                    tracing::warn!(%voter, shard, %why, "the voter takes no new votes");
                } else {
                    tracing::warn!(%voter, shard, "the voter takes new votes again");
                }
            }
            Change::Moved { from, to, lost } => {
                let (voter, from, to) = (of(to.voter), from.number, to.number);
                tracing::debug!(%voter, from, to, lost, "hash slots have moved");
            }
            Change::StoodStill(by) => {
                tracing::warn!(?by, "this machine stood still: leases end sooner");
            }
            other => self.write_trust(other),
        }
    }

    /// Whose votes count.
    fn write_trust(&self, change: Change) {
        let of = |voter: usize| &self.labels[voter];
        match change {
            Change::CameBack { voter, durable, data } => {
                tracing::info!(voter = %of(voter), durable, ?data, "a voter came back as another");
            }
            Change::Twin { voter, twin: Some(twin) } => {
                let (voter, twin) = (of(voter), of(twin));
                tracing::error!(%voter, %twin, "two voters are one server: one vote less");
            }
            Change::Twin { voter, twin: None } => {
                tracing::warn!(voter = %of(voter), "the voter is a server of its own again");
            }
            Change::Quarantined { voter, quarantined: Quarantined { why, left } } => {
                let text = "voter in quarantine: its votes count for no new lock";
                tracing::warn!(voter = %of(voter), %why, ends_in = %Rounded(left), "{text}");
            }
            Change::QuarantineEnded { voter } => {
                let text = "quarantine over: the voter's votes count for new locks";
                tracing::warn!(voter = %of(voter), "{text}");
            }
            Change::Clash { voter, why: Some(why) } => {
                let text = "clients disagree about the voters: no locks";
                tracing::error!(voter = %of(voter), %why, "{text}");
            }
            Change::Clash { voter, why: None } => {
                tracing::warn!(voter = %of(voter), "clients agree about the voters again");
            }
            _ => {}
        }
    }

    /// How many voters are connected, and which are not.
    fn write_quorum(&self, is_there: bool, missing: &[usize]) {
        let (needed, voters) = (self.quorum.needed(), self.labels.len());
        let answering = voters - missing.len();
        let missing: Vec<&str> = missing.iter().map(|voter| &*self.labels[*voter]).collect();
        let missing = missing.join(", ");
        let is_lost = "no quorum: no lock is given or renewed";
        let text = if is_there { "the quorum is back" } else { is_lost };
        tracing::warn!(answering, %needed, voters, %missing, "{text}");
    }
}
