use super::*;

const ALL: [InFlight; 2] = [InFlight::Lost, InFlight::Arrives];

fn holders(voter: &EmbeddedVoter) -> Vec<String> {
    let fields = voter.records().into_iter().flat_map(|record| record.fields);
    fields.map(|(holder, _)| holder).collect()
}

#[tokio::test(start_paused = true)]
async fn a_cut_fails_requests_at_once_and_listeners_hear_of_it_and_the_connections_go_on() {
    for in_flight in ALL {
        let voter = voter();
        let ((first, hears), (second, hears_too)) = (connect(&voter), connect(&voter));
        first.subscribe("freed".into()).await.unwrap();
        let there = sent(&voter, &first, acquire("a:1"), 20, 0);
        let back = sent(&voter, &second, acquire("b:1"), 0, 20);
        let faults = [Fault::DropReplies, delay(0, 20)].map(|fault| voter.fault(fault));
        let forsaken = pending(second.run(acquire("b:1")));
        let [lost, slow] = faults;
        drop(lost);
        publish(&voter);
        drop(slow);
        voter.cut(in_flight);
        for outcome in [there, back, forsaken] {
            assert_eq!(outcome.now_or_never(), Some(broken("cut")), "{in_flight:?}");
        }
        assert_eq!((hears.heard(), hears_too.heard()), (vec!["!".into()], vec!["!".into()]));
        assert_eq!(voter.subscriptions(), ["freed"]);
        assert_eq!(code(second.run(acquire("b:1")).await), 1);
        tokio::time::sleep(ms(21)).await;
        assert!(hears.heard().is_empty(), "the message was lost");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_runs_when_it_would_have_arrived_or_never() {
    for (in_flight, restarts, runs) in
        [(InFlight::Lost, false, 0), (InFlight::Arrives, false, 1), (InFlight::Arrives, true, 0)]
    {
        let (voter, node, _) = connected();
        let _outcome = sent(&voter, &node, acquire("a:1"), 20, 0);
        tokio::time::sleep(ms(5)).await;
        voter.cut(in_flight);
        if restarts {
            voter.restart();
        }
        tokio::time::sleep(ms(14)).await;
        assert_eq!(voter.commands_seen(), 0);
        tokio::time::sleep(ms(2)).await;
        assert_eq!(voter.commands_seen(), runs, "{in_flight:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_before_a_cut_may_run_after_what_was_sent_behind_it() {
    let (voter, node, _) = connected();
    let _slow = sent(&voter, &node, release("a:1"), 30, 0);
    voter.cut(InFlight::Arrives);
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    assert_eq!(holders(&voter), ["a:1"]);
    tokio::time::sleep(ms(31)).await;
    assert!(holders(&voter).is_empty(), "the release came last");
}

#[tokio::test(start_paused = true)]
async fn a_cut_does_nothing_to_a_killed_voter() {
    let (voter, node, hears) = connected();
    node.subscribe("freed".into()).await.unwrap();
    voter.kill();
    voter.cut(InFlight::Lost);
    assert!(hears.heard().is_empty() && voter.subscriptions().is_empty());
    assert!(node.identify().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn subscriptions_asked_for_before_a_cut_are_in_force_after_it_and_end_with_the_client() {
    for in_flight in ALL {
        let (voter, node, _) = connected();
        let slow = voter.fault(delay(20, 0));
        let subscribed = pending(node.subscribe("freed".into()));
        drop(slow);
        voter.cut(in_flight);
        assert_eq!(subscribed.await, Err(Cause::Broken("cut".into())));
        assert_eq!(voter.subscriptions(), ["freed"]);
        node.unsubscribe("freed".into()).await.unwrap();
        tokio::time::sleep(ms(21)).await;
        assert!(voter.subscriptions().is_empty(), "an old request subscribes nobody");
    }
}

#[tokio::test(start_paused = true)]
async fn one_client_s_connection_is_cut_alone() {
    let voter = voter();
    let ((first, hears), (second, hears_too)) = (connect(&voter), connect(&voter));
    let first = sent(&voter, &first, acquire("a:1"), 20, 0);
    let second = sent(&voter, &second, acquire("b:1"), 20, 0);
    voter.cut_client("1", InFlight::Lost);
    assert_eq!(first.await, broken("cut"));
    assert_eq!(code(second.await), 1);
    assert_eq!((hears.heard(), hears_too.heard()), (vec!["!".to_owned()], vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_a_client_left_under_way_arrives_though_client_and_connection_are_gone() {
    for in_flight in ALL {
        let (voter, node, hears) = connected();
        let _outcome = sent(&voter, &node, acquire("a:1"), 20, 0);
        drop(node);
        voter.cut(in_flight);
        tokio::time::sleep(ms(21)).await;
        assert_eq!(holders(&voter), ["a:1"]);
        assert!(hears.heard().is_empty(), "there is nobody to tell");
        assert!(voter.0.act(|state| state.links.is_empty()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_cuts_a_former_connection_loses_what_is_behind_it_and_nothing_else() {
    for (fault, runs) in [(Fault::CutBeforeRun, 1), (Fault::CutAfterRun, 2)] {
        let (voter, node, hears) = connected();
        voter.fault_next(1, fault);
        let _cuts = sent(&voter, &node, acquire("a:1"), 20, 0);
        let _behind = sent(&voter, &node, release("a:1"), 20, 0);
        voter.cut(InFlight::Arrives);
        let present = sent(&voter, &node, acquire("a:1"), 30, 0);
        assert_eq!((code(present.await), hears.heard().len()), (1, 1), "{fault:?}");
        assert_eq!((voter.runs("mutex/acquire"), voter.runs("mutex/release")), (runs, 0));
    }
}
