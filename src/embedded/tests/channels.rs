use super::*;
use crate::embedded::Fault;

#[tokio::test(start_paused = true)]
async fn a_release_calls_every_connection_that_listens() {
    let voter = voter();
    let ((first, hears), (second, hears_too)) = (connect(&voter), connect(&voter));
    first.subscribe("freed".into()).await.unwrap();
    second.subscribe("freed".into()).await.unwrap();
    second.subscribe("else".into()).await.unwrap();
    assert_eq!(voter.subscriptions(), ["else", "freed", "freed"]);
    first.run(acquire("a:1")).await.unwrap();
    first.run(release("a:1")).await.unwrap();
    assert_eq!((hears.heard(), hears_too.heard()), (vec!["freed".into()], vec!["freed".into()]));
    assert_eq!(voter.command(&["PUBLISH", "freed", "0"]), Ok(Reply::Int(2)));

    first.unsubscribe("freed".into()).await.unwrap();
    assert_eq!(voter.command(&["PUBLISH", "freed", "0"]), Ok(Reply::Int(1)));
    assert_eq!(hears.heard(), ["freed"], "only the one before");
}

#[tokio::test(start_paused = true)]
async fn subscriptions_end_with_their_connection() {
    let voter = voter();
    let ((first, _), (second, _)) = (connect(&voter), connect(&voter));
    for node in [&first, &second] {
        node.subscribe("freed".into()).await.unwrap();
    }
    first.close().await;
    assert_eq!(voter.subscriptions(), ["freed"]);
    drop(second);
    assert!(voter.subscriptions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_restarted_voter_is_listened_to_as_before_and_the_ear_is_told() {
    let (voter, node, hears) = connected();
    for channel in ["kept", "left"] {
        node.subscribe(channel.into()).await.unwrap();
    }
    voter.kill();
    assert!(voter.subscriptions().is_empty() && hears.heard().is_empty());
    assert!(node.subscribe("wanted".into()).await.is_err());
    assert!(node.unsubscribe("left".into()).await.is_err());
    voter.restart();
    assert_eq!((voter.subscriptions(), hears.heard()), (texts(&["kept", "wanted"]), texts(&["!"])));
}

#[tokio::test(start_paused = true)]
async fn a_message_takes_the_delay_of_the_way_back() {
    let (voter, node, hears) = connected();
    node.subscribe("freed".into()).await.unwrap();
    let _slow = voter.fault(Fault::Delay { there: ms(0), back: ms(30) });
    assert_eq!(voter.command(&["PUBLISH", "freed", "0"]), Ok(Reply::Int(1)));
    tokio::time::sleep(ms(29)).await;
    assert!(hears.heard().is_empty());
    tokio::time::sleep(ms(2)).await;
    assert_eq!(hears.heard(), ["freed"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_gets_lost_with_the_way_back_or_with_the_connection() {
    let (voter, node, hears) = connected();
    node.subscribe("freed".into()).await.unwrap();
    let lost = voter.fault(Fault::DropReplies);
    voter.command(&["PUBLISH", "freed", "0"]).unwrap();
    drop(lost);
    let slow = voter.fault(Fault::Delay { there: ms(0), back: ms(30) });
    voter.command(&["PUBLISH", "freed", "0"]).unwrap();
    drop(slow);
    voter.restart();
    tokio::time::sleep(ms(31)).await;
    assert_eq!(hears.heard(), ["!"]);
}

#[tokio::test(start_paused = true)]
async fn subscribing_is_answered_when_it_is_in_force() {
    let (voter, node, hears) = connected();
    voter.stop();
    let subscribed = pending(node.subscribe("freed".into()));
    voter.command(&["PUBLISH", "freed", "0"]).unwrap();
    voter.resume();
    subscribed.await.unwrap();
    voter.command(&["PUBLISH", "freed", "0"]).unwrap();
    assert_eq!(hears.heard(), ["freed"]);
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).into()).collect()
}
