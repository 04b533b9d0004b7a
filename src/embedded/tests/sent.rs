use super::*;
use crate::embedded::{Fault, Sent};

/// Lets `decide` decide, and writes down what it was asked.
fn decided(
    voter: &EmbeddedVoter,
    mut decide: impl FnMut(&Sent<'_>) -> Vec<Fault> + Send + 'static,
) -> Arc<Mutex<Vec<String>>> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&asked);
    voter.fault_each(move |sent| {
        let note = format!("{} {:?} {}", sent.client(), sent.script(), sent.is_message());
        notes.lock().unwrap().push(note);
        decide(sent)
    });
    asked
}

#[tokio::test(start_paused = true)]
async fn each_request_and_each_message_to_a_listener_is_decided_about_as_it_is_sent() {
    let voter = voter();
    let ((first, _), (second, _)) = (connect(&voter), connect(&voter));
    let asked = decided(&voter, |_| Vec::new());
    for node in [&first, &second] {
        node.subscribe("freed".into()).await.unwrap();
    }
    first.run(acquire("a:1")).await.unwrap();
    first.run(release("a:1")).await.unwrap();
    second.identify().await.unwrap();
    voter.kill();
    assert!(second.identify().await.is_err(), "nothing is sent to a killed voter");
    let expected = [
        "1 None false",
        "2 None false",
        r#"1 Some("mutex/acquire") false"#,
        r#"1 Some("mutex/release") false"#,
        "1 None true",
        "2 None true",
        "2 None false",
    ];
    assert_eq!(*asked.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn what_is_decided_is_for_one_request_and_on_top_of_the_faults_in_force() {
    let (voter, node, _) = connected();
    let clock = Clock::tokio();
    let delay = Fault::Delay { there: ms(20), back: ms(30) };
    let _slow = voter.fault(delay);
    let mut decisions = vec![vec![delay, delay], vec![Fault::CutAfterRun]].into_iter();
    decided(&voter, move |_| decisions.next().unwrap_or_default());
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    assert_eq!(passed(&clock), ms(150));
    assert_eq!(node.run(acquire("a:1")).await, Err(Cause::Broken("cut".into())));
    assert_eq!(passed(&clock), ms(170));
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    assert_eq!(passed(&clock), ms(220));
}

#[tokio::test(start_paused = true)]
async fn messages_are_delayed_and_lost_for_each_listener_alone() {
    let voter = voter();
    let ((first, hears), (second, hears_too)) = (connect(&voter), connect(&voter));
    for node in [&first, &second] {
        node.subscribe("freed".into()).await.unwrap();
    }
    for lost in [Fault::DropReplies, Fault::DropRequests] {
        voter.fault_each(move |sent| match sent.client() {
            "1" => vec![lost],
            _ => vec![Fault::Delay { there: ms(50), back: ms(10) }],
        });
        assert_eq!(voter.command(&["PUBLISH", "freed", "0"]), Ok(Reply::Int(2)));
        tokio::time::sleep(ms(9)).await;
        assert!(hears_too.heard().is_empty());
        tokio::time::sleep(ms(2)).await;
        assert_eq!((hears.heard(), hears_too.heard()), (vec![], vec!["freed".to_owned()]));
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_decider_decides_and_one_that_was_replaced_may_own_a_client() {
    let (voter, node, _) = connected();
    let (other, _) = connect(&voter);
    voter.fault_each(move |_| {
        assert!(!format!("{other:?}").is_empty());
        vec![Fault::CutBeforeRun]
    });
    let cut = Err(Cause::Broken("cut".into()));
    assert_eq!(node.run(acquire("a:1")).now_or_never(), Some(cut));
    voter.fault_each(|_| Vec::new());
    assert_eq!(node.run(acquire("a:1")).now_or_never().map(code), Some(1));
}
