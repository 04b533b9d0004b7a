//! What cannot work is refused by `connect`; what the server forbids is told.

use quorate::{Quorate, embedded};

use crate::replicas::scene::{Voter, assert_too_few, builder};
use quorate_tests::scene::{MS, connect};

#[tokio::test]
async fn voters_inside_the_process_have_no_replicas_to_ask() {
    let voters = embedded::voters(2);
    let error = Quorate::builder()
        .voter("redis://127.0.0.1:1")
        .embedded(&voters)
        .replica_acks(1)
        .connect()
        .await
        .expect_err("no replicas");
    assert!(error.is_invalid(), "{error}");
    let message = "voter embedded-1 is inside the process and has no replicas, but 1 must \
                   acknowledge each grant";
    assert_eq!(error.to_string(), message);
}

#[tokio::test]
async fn a_user_who_may_not_ask_for_replicas_gets_no_vote_and_is_told_so() {
    let voter = Voter::start(1);
    let rules = ["ACL", "SETUSER", "poor", "on", ">pw", "~*", "&*", "+@all", "-wait"];
    voter.primary.command(&rules).expect("a user");
    let url = format!("redis://poor:pw@127.0.0.1:{}", voter.primary.port());
    let quorum = Quorate::builder().voter(url).replica_acks(1).connect().await.expect("it answers");
    let error = quorum.mutex("a").try_lock().await.expect_err("it may not");
    assert!(error.is_no_quorum() && error.to_string().contains("NOPERM"), "{error}");
}

/// The replica is slower than the usual quarter of the deadline, and fast enough for this one.
#[tokio::test]
async fn the_timeout_is_the_one_that_was_set() {
    let voter = Voter::start(1);
    let quorum = connect(builder([&voter], 1).replica_timeout(MS(100))).await;
    voter.replicas[0].stop();
    let error = quorum.mutex("a").try_lock().await.expect_err("no replica answers");
    assert_too_few(&error, 0, 1, MS(100));
}
