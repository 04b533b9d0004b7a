use super::*;

#[tokio::test(start_paused = true)]
async fn a_release_calls_every_connection_that_listens_until_it_ends() {
    let voter = voter();
    let ((first, hears), (second, hears_too)) = (connect(&voter), connect(&voter));
    first.subscribe("freed".into()).await.unwrap();
    second.subscribe("freed".into()).await.unwrap();
    second.subscribe("else".into()).await.unwrap();
    assert_eq!(voter.subscriptions(), ["else", "freed", "freed"]);
    first.run(acquire("a:1")).await.unwrap();
    first.run(release("a:1")).await.unwrap();
    assert_eq!((hears.heard(), hears_too.heard()), (vec!["freed".into()], vec!["freed".into()]));
    assert_eq!(publish(&voter), Reply::Int(2));

    first.unsubscribe("freed".into()).await.unwrap();
    assert_eq!(publish(&voter), Reply::Int(1));
    assert_eq!(hears.heard(), ["freed"], "only the one before");
    first.subscribe("freed".into()).await.unwrap();
    first.close().await;
    assert_eq!(voter.subscriptions(), ["else", "freed"]);
    drop(second);
    assert!(voter.subscriptions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_restarted_voter_is_listened_to_as_before_and_the_listener_hears_of_it() {
    let (voter, node, hears) = connected();
    for channel in ["kept", "left"] {
        node.subscribe(channel.into()).await.unwrap();
    }
    voter.kill();
    assert!(voter.subscriptions().is_empty() && hears.heard().is_empty());
    assert!(node.subscribe("wanted".into()).await.is_err());
    assert!(node.unsubscribe("left".into()).await.is_err());
    voter.restart();
    assert_eq!(voter.subscriptions(), ["kept", "wanted"]);
    assert_eq!(hears.heard(), ["!"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_is_lost_with_the_way_back_and_no_limited_fault_is_for_it() {
    let (voter, node, hears) = connected();
    node.subscribe("freed".into()).await.unwrap();
    voter.fault_next(1, Fault::DropReplies);
    for (fault, heard) in [(Fault::DropReplies, 0), (Fault::DropRequests, 1)] {
        let _lost = voter.fault(fault);
        publish(&voter);
        assert_eq!(hears.heard().len(), heard, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn subscribing_is_answered_when_it_is_in_force() {
    let (voter, node, hears) = connected();
    voter.stop();
    let subscribed = pending(node.subscribe("freed".into()));
    publish(&voter);
    voter.resume();
    subscribed.await.unwrap();
    publish(&voter);
    assert_eq!(hears.heard(), ["freed"]);
}
