use super::*;
use crate::embedded::Fault;

const SLOW: Fault = Fault::Delay { there: ms(20), back: ms(30) };

fn broken(why: &str) -> Outcome<Answer> {
    Err(Cause::Broken(why.into()))
}

#[tokio::test(start_paused = true)]
async fn a_delay_counts_both_ways_and_ends_with_its_guard() {
    let (voter, node, _) = connected();
    let clock = Clock::tokio();
    let slow = voter.fault(SLOW);
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    assert_eq!(passed(&clock), ms(50));
    drop(slow);
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    assert_eq!(passed(&clock), ms(50));
}

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
async fn a_cut_answers_at_once_and_the_connection_goes_on() {
    let (voter, node, listener) = connected();
    for (fault, runs) in [(Fault::CutBeforeRun, 0), (Fault::CutAfterRun, 1)] {
        voter.fault_next(1, fault);
        assert_eq!(node.run(acquire("a:1")).now_or_never(), Some(broken("cut")));
        assert_eq!((voter.commands_seen(), listener.heard()), (runs, vec!["!".to_owned()]));
    }
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cut_takes_all_that_is_under_way_on_its_connection_and_nothing_else() {
    let voter = voter();
    let ((node, _), (other, _)) = (connect(&voter), connect(&voter));
    let slow = voter.fault(SLOW);
    let mut answers: Vec<_> = [("a:1", &node), ("b:1", &other)]
        .map(|(hold, node)| node.run(acquire(hold)).boxed())
        .into_iter()
        .collect();
    assert!(answers.iter_mut().all(|answer| answer.now_or_never().is_none()));
    tokio::time::sleep(ms(21)).await;
    drop(slow);
    voter.fault_next(1, Fault::CutBeforeRun);
    assert_eq!(node.run(acquire("c:1")).now_or_never(), Some(broken("cut")));
    assert_eq!(answers.remove(0).await, broken("cut"));
    assert_eq!(code(answers.remove(0).await), 0);
    assert_eq!(voter.commands_seen(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_kill_breaks_what_is_under_way_whether_it_ran_or_not() {
    let (voter, node, _) = connected();
    let _slow = voter.fault(SLOW);
    let ran = pending(node.run(acquire("a:1")));
    tokio::time::sleep(ms(21)).await;
    let unsent = pending(node.run(acquire("b:1")));
    voter.kill();
    assert_eq!((ran.await, unsent.await), (broken("killed"), broken("killed")));
    assert_eq!(voter.commands_seen(), 1);
    let unreachable = Cause::Unreachable("killed".into());
    assert_eq!(node.run(acquire("c:1")).await, Err(unreachable.clone()));
    assert_eq!(node.subscribe("freed".into()).await, Err(unreachable));
    assert_eq!(voter.command(&["TIME"]), Err("connection refused".into()));
}

#[tokio::test(start_paused = true)]
async fn a_restart_keeps_the_data_or_not_and_changes_the_run_id() {
    let (voter, node, _) = connected();
    let first = node.identify().await.unwrap();
    assert_eq!((first.run_id.len(), node.identify().await.unwrap()), (40, first.clone()));
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    voter.kill();
    voter.restart();
    assert_eq!(voter.keys(), ["lock"]);
    let second = node.identify().await.unwrap();
    voter.restart_empty();
    assert!(voter.keys().is_empty());
    let third = node.identify().await.unwrap();
    assert!(first != second && second != third && third != first);
}

#[tokio::test(start_paused = true)]
async fn leases_run_out_while_a_voter_is_down() {
    let (voter, node, _) = connected();
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    voter.kill();
    tokio::time::advance(ms(30_001)).await;
    voter.restart();
    assert_eq!(code(node.run(acquire("b:1")).await), 1);
}

#[tokio::test(start_paused = true)]
async fn a_killed_voter_that_was_stopped_runs_after_its_restart() {
    let (voter, node, _) = connected();
    voter.stop();
    voter.kill();
    voter.resume();
    assert!(node.identify().await.is_err(), "only a restart brings it back");
    voter.restart();
    assert!(node.identify().await.is_ok());
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
