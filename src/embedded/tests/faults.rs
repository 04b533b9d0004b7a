use super::*;

#[tokio::test(start_paused = true)]
async fn a_lost_request_does_not_run_and_a_lost_reply_is_of_one_that_ran() {
    let (voter, node, _) = connected();
    for (fault, runs) in [(Fault::DropRequests, 0), (Fault::DropReplies, 1)] {
        let lost = voter.fault(fault);
        assert_eq!(node.run(acquire("a:1")).await, Err(Cause::TimedOut(DEADLINE)));
        drop(lost);
        assert_eq!(voter.commands_seen(), runs);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_takes_all_that_is_under_way_on_its_connection_and_nothing_else() {
    for (fault, runs) in [(Fault::CutBeforeRun, 2), (Fault::CutAfterRun, 3)] {
        let voter = voter();
        let ((node, hears), (other, hears_nothing)) = (connect(&voter), connect(&voter));
        let unheard = sent(&voter, &node, acquire("a:1"), 20, 30);
        let others = sent(&voter, &other, acquire("b:1"), 20, 30);
        tokio::time::sleep(ms(21)).await;
        // Of two faults the worse applies.
        voter.fault_next(1, fault);
        voter.fault_next(1, Fault::DropReplies);
        assert_eq!(node.run(acquire("c:1")).now_or_never(), Some(broken("cut")));
        assert_eq!((unheard.await, code(others.await)), (broken("cut"), 0));
        assert_eq!((hears.heard(), hears_nothing.heard()), (vec!["!".to_owned()], vec![]));
        assert_eq!(voter.commands_seen(), runs);
        assert_eq!(code(node.run(acquire("a:1")).await), 1, "the connection goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kill_breaks_what_is_under_way_whether_it_ran_or_not() {
    let (voter, node, _) = connected();
    let ran = sent(&voter, &node, acquire("a:1"), 20, 30);
    tokio::time::sleep(ms(21)).await;
    let unsent = sent(&voter, &node, acquire("b:1"), 20, 30);
    voter.stop();
    voter.kill();
    voter.resume();
    assert_eq!((ran.await, unsent.await), (broken("killed"), broken("killed")));
    assert_eq!(voter.commands_seen(), 1);
    let unreachable = Cause::Unreachable("killed".into());
    assert_eq!(node.run(acquire("c:1")).await, Err(unreachable.clone()));
    assert_eq!(node.subscribe("freed".into()).await, Err(unreachable));
    assert_eq!(voter.command(&["TIME"]), Err("connection refused".into()));
    voter.restart();
    assert_eq!(code(node.run(acquire("a:1")).await), 1, "though it was stopped");
}

// A server looks at the first write of a script only: keeping and giving back begin with another.
#[tokio::test(start_paused = true)]
async fn a_full_voter_refuses_what_is_new_and_keeps_and_ends_what_it_has() {
    let (voter, node, _) = connected();
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    let full = voter.fault(Fault::NoRoom);
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    assert_eq!(code(node.run(release("a:1")).await), 1);
    let refused = node.run(acquire("b:1")).await.unwrap_err();
    assert!(refused.to_string().contains("OOM "), "{refused}");
    assert!(voter.records().iter().all(|record| record.key == "fence"));
    let planted = voter.command(&["EVAL", "return redis.call('SET', KEYS[1], 'x')", "1", "key"]);
    assert_eq!(planted, Ok(text("OK")), "no fault is for what a test does by itself");
    drop(full);
    assert_eq!(code(node.run(acquire("b:1")).await), 1);
}

#[tokio::test(start_paused = true)]
async fn each_request_and_each_message_to_a_listener_is_decided_about_as_it_is_sent() {
    let voter = voter();
    let ((first, _), (second, _)) = (connect(&voter), connect(&voter));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&asked);
    voter.fault_each(move |sent| {
        let note = format!("{} {:?} {}", sent.client(), sent.script(), sent.is_message());
        notes.lock().unwrap().push(note);
        Vec::new()
    });
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
    let slow = voter.fault(delay(20, 30));
    let decided = vec![vec![delay(20, 30), delay(20, 30)], vec![Fault::CutAfterRun]];
    let mut decisions = decided.into_iter();
    voter.fault_each(move |_| decisions.next().unwrap_or_default());
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    assert_eq!(passed(&clock), ms(150));
    assert_eq!(node.run(acquire("a:1")).await, broken("cut"));
    assert_eq!(passed(&clock), ms(170));
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    assert_eq!(passed(&clock), ms(220));
    drop(slow);
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
            _ => vec![delay(50, 10)],
        });
        assert_eq!(publish(&voter), Reply::Int(2));
        tokio::time::sleep(ms(9)).await;
        assert!(hears_too.heard().is_empty());
        tokio::time::sleep(ms(2)).await;
        assert_eq!((hears.heard(), hears_too.heard()), (vec![], vec!["freed".to_owned()]));
    }
}

#[tokio::test(start_paused = true)]
async fn who_decided_or_observed_before_may_own_a_client() {
    let (voter, node, _) = connected();
    let ((first, _), (second, _)) = (connect(&voter), connect(&voter));
    voter.observe(move |_| assert_eq!(first.part(""), 0));
    voter.observe(|_| ());
    voter.fault_each(move |_| {
        assert_eq!(second.part(""), 0);
        vec![Fault::CutBeforeRun]
    });
    assert_eq!(node.run(acquire("a:1")).now_or_never(), Some(broken("cut")));
    voter.fault_each(|_| Vec::new());
    assert_eq!(node.run(acquire("a:1")).now_or_never().map(code), Some(1));
}
