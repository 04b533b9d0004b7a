//! Voters inside the process that have run for long, and clients of them.

use std::{collections::BTreeMap, time::Duration};

use metrics::LocalRecorderGuard;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use quorate::{
    Builder, Cause, Error, Quarantine, Quorate, RestartGuard, Verdict,
    embedded::{self, EmbeddedVoter, Fault, Machine},
};

use quorate_tests::fixture::secs;

/// The longest lease by default.
pub(crate) const LEASE: Duration = secs(30);
/// What its holder trusts of it.
pub(crate) const TRUSTED: Duration = Duration::from_millis(29_698);

/// Voters that no client takes for young.
pub(crate) fn old_voters(count: usize) -> Vec<EmbeddedVoter> {
    let voters = embedded::voters(count);
    for voter in &voters {
        voter.set_uptime(secs(3600));
    }
    voters
}

/// A client of these voters that waits for longer than a quarantine takes.
pub(crate) fn builder(voters: &[EmbeddedVoter]) -> Builder {
    Quorate::builder().embedded(voters).quorum_timeout(3 * LEASE)
}

pub(crate) async fn client(voters: &[EmbeddedVoter]) -> Quorate {
    builder(voters).connect().await.expect("a majority answers")
}

pub(crate) async fn client_with(voters: &[EmbeddedVoter], guard: RestartGuard) -> Quorate {
    builder(voters).restart_guard(guard).connect().await.expect("a majority answers")
}

pub(crate) async fn client_on(machine: &Machine, voters: &[EmbeddedVoter]) -> Quorate {
    builder(voters).machine(machine).connect().await.expect("a majority answers")
}

/// Nothing of what the client on this machine asks arrives at the voter.
pub(crate) fn cut_off(voter: &EmbeddedVoter, machine: &Machine) {
    let client = machine.label().to_owned();
    voter.fault_each(
        move |sent| {
            if sent.client() == client { vec![Fault::DropRequests] } else { Vec::new() }
        },
    );
}

/// What these voters get of this script never arrives.
pub(crate) fn drop_script(voters: &[EmbeddedVoter], script: &'static str) {
    for voter in voters {
        voter.fault_each(move |sent| {
            if sent.script() == Some(script) { vec![Fault::DropRequests] } else { Vec::new() }
        });
    }
}

pub(crate) fn heal(voters: &[EmbeddedVoter]) {
    for voter in voters {
        voter.fault_each(|_| Vec::new());
    }
}

/// Why a voter's grant did not count, and for how long it would not have; and that the error's text
/// says both.
pub(crate) fn blamed(error: &Error, voter: usize) -> (Quarantine, Duration) {
    assert!(error.is_no_quorum(), "{error}");
    let Verdict::Unknown(Cause::Quarantined(quarantined)) = error.voters()[voter].verdict else {
        panic!("not in quarantine: {error}")
    };
    let (why, left) = (quarantined.why, quarantined.left);
    let told = Duration::from_millis(u64::try_from(left.as_millis()).expect("a time"));
    let told = format!("in quarantine for {told:?} more: {why}");
    assert!(error.to_string().contains(&told), "{error}");
    (why, left)
}

/// Why a voter's grants do not count for this client now, and for how long they will not.
pub(crate) async fn kept_out(client: &Quorate, voter: usize) -> (Quarantine, Duration) {
    let seen = client.mutex("a").inspect().await.expect("a majority answers");
    let quarantined = seen.voters[voter].quarantine.expect("it is in quarantine");
    (quarantined.why, quarantined.left)
}

/// Whatever is recorded on this thread, for as long as the guard lives.
pub(crate) fn record() -> (Snapshotter, LocalRecorderGuard<'static>) {
    let recorder = Box::leak(Box::new(DebuggingRecorder::new()));
    (recorder.snapshotter(), metrics::set_default_local_recorder(recorder))
}

/// What was recorded of these metrics, by the values of the labels. Reading takes it all away: what
/// is not recorded again is zero.
pub(crate) fn recorded(snapshotter: &Snapshotter, names: &[&str]) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let value = match value {
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Counter(count) => f64::from(u32::try_from(count).expect("it is small")),
            DebugValue::Histogram(_) => continue,
        };
        if names.contains(&key.key().name()) {
            let labels: Vec<_> = key.key().labels().map(metrics::Label::value).collect();
            found.insert(labels.join(" "), value);
        }
    }
    found
}

/// Of what was counted, what has grown since.
pub(crate) fn counted(snapshotter: &Snapshotter, name: &str) -> BTreeMap<String, f64> {
    let mut counted = recorded(snapshotter, &[name]);
    counted.retain(|_, count| *count > 0.5);
    counted
}
