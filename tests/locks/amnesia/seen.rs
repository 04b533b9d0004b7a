//! What is seen of quarantines from outside.

use quorate_tests::prelude::*;

use crate::amnesia::inside::{LEASE, client, old_voters, old_with_client};

const MINUTE_MICROS: i64 = 60_000_000;

/// The voters that are shown as in quarantine so long after one of them has restarted empty, while
/// nobody asks anything.
async fn kept_out(after: Duration) -> Vec<String> {
    let (snapshotter, _recording) = record();
    let (voters, ours) = old_with_client(3).await;
    if !after.is_zero() {
        voters[1].restart_empty();
        sleep(after).await;
    }
    let gauges = recorded(&snapshotter, &["quorate_quarantined"]);
    assert_eq!(gauges.len(), 3, "every voter is shown: {gauges:?}");
    // What it takes back when it ends is nothing to who listens next.
    drop(ours.close().await);
    gauges.into_iter().filter(|(_, value)| *value > 0.5).map(|(voter, _)| voter).collect()
}

#[tokio::test(start_paused = true)]
async fn a_quarantine_is_shown_while_it_lasts_and_ends_by_itself() {
    assert_eq!(kept_out(ms(0)).await, [""; 0], "nobody has restarted");
    assert_eq!(kept_out(ms(1)).await, ["embedded-2"]);
    assert_eq!(kept_out(LEASE.saturating_sub(ms(10))).await, ["embedded-2"]);
    assert_eq!(kept_out(LEASE + ms(10)).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn quarantines_are_counted_by_their_reason() {
    let (snapshotter, _recording) = record();
    let (voters, ours) = old_with_client(3).await;
    let counted = || counted(&snapshotter, "quorate_quarantines_total");
    assert_eq!(counted(), BTreeMap::new());
    let once = |reason: &str| BTreeMap::from([(format!("embedded-2 {reason}"), 1.0)]);

    voters[1].restart_empty();
    sleep(ms(1)).await;
    assert_eq!(counted(), once("restarted"));
    let fresh = client(&voters).await;
    assert_eq!(counted(), once("young"));
    drop(fresh.close().await);
    sleep(2 * LEASE).await;

    voters[1].jump_clock(MINUTE_MICROS);
    ours.mutex("a").lock().await.unwrap().release().await.unwrap();
    assert_eq!(counted(), once("clock_moved"));
    // This one has waited for long enough to know no more than what its clock says.
    voters[1].set_uptime(secs(3600));
    let fresh = client(&voters).await;
    // It meets this one and another first, and cannot tell then which of the two is wrong.
    let both = ["embedded-1", "embedded-2"].map(|voter| (format!("{voter} clock_apart"), 1.0));
    assert_eq!(counted(), BTreeMap::from(both));
    let seen = fresh.mutex("a").inspect().await.unwrap();
    let kept_out = seen.voters.iter().map(|view| view.quarantine.is_some());
    assert!(kept_out.eq([false, true, false]));
    drop(fresh.close().await);
}

#[tokio::test(start_paused = true)]
async fn how_far_each_clock_is_ahead_is_shown_from_the_first_connection_on() {
    let (snapshotter, _recording) = record();
    let voters = old_voters(3);
    voters[0].jump_clock(2_000_000);
    voters[1].jump_clock(-3_000_000);
    let ours = client(&voters).await;
    let ahead = || {
        let ahead = recorded(&snapshotter, &["quorate_clock_ahead_seconds"]);
        ahead.into_values().map(|ahead| format!("{ahead:+.1}")).collect::<Vec<_>>()
    };
    assert_eq!(ahead(), ["+2.0", "-3.0", "+0.0"]);
    voters[2].jump_clock(MINUTE_MICROS);
    drop(ours.mutex("a").try_lock().await);
    assert_eq!(ahead(), ["+2.0", "-3.0", "+60.0"]);
}
