use super::*;
use crate::embedded::Fault;

fn time(voter: &EmbeddedVoter) -> Reply {
    voter.command(&["TIME"]).unwrap()
}

fn left_ms(voter: &EmbeddedVoter) -> Option<i64> {
    voter.records().pop().and_then(|record| record.left_ms)
}

async fn held() -> (EmbeddedVoter, Arc<dyn Node>) {
    let (voter, node, _) = connected();
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    (voter, node)
}

#[tokio::test(start_paused = true)]
async fn a_fast_clock_ends_leases_early_and_a_slow_one_late() {
    for (ppm, left) in [(100_000, 19_000), (0, 20_000), (-100_000, 21_000), (-1_000_000, 30_000)] {
        let (voter, _node) = held().await;
        voter.set_clock_rate(ppm);
        tokio::time::advance(ms(10_000)).await;
        assert_eq!(left_ms(&voter), Some(left), "{ppm} ppm");
    }
}

#[tokio::test(start_paused = true)]
async fn scripts_and_commands_go_by_the_clock_of_the_voter() {
    let (voter, node) = held().await;
    voter.jump_clock(2_500_001);
    assert_eq!(time(&voter), Reply::texts(["1700000002", "500001"]));
    let refused = node.run(acquire("b:1")).await.unwrap();
    let by = HoldId::parse("a:1");
    assert_eq!(refused.whose(), Verdict::Refused { by, ttl: Some(ms(27_500)) });
    voter.jump_clock(-2_500_001);
    assert_eq!(time(&voter), Reply::texts(["1700000000", "0"]));
    assert_eq!(left_ms(&voter), Some(30_000));
    voter.jump_clock(30_001_000);
    assert_eq!(code(node.run(acquire("b:1")).await), 1);
}

#[tokio::test(start_paused = true)]
async fn what_has_expired_does_not_come_back_with_the_time() {
    let (voter, _node) = held().await;
    voter.jump_clock(30_001_000);
    voter.jump_clock(-30_001_000);
    assert!(voter.records().is_empty());
}

#[tokio::test(start_paused = true)]
async fn delays_go_by_true_time() {
    let (voter, node) = held().await;
    let clock = Clock::tokio();
    let _slow = voter.fault(Fault::Delay { there: ms(20), back: ms(30) });
    voter.set_clock_rate(500_000);
    voter.jump_clock(1_000_000);
    node.run(acquire("a:1")).await.unwrap();
    assert_eq!(passed(&clock), ms(50));
}

#[tokio::test(start_paused = true)]
async fn a_clock_goes_on_through_kills_and_restarts() {
    let voter = voter();
    voter.set_clock_rate(1_000_000);
    voter.jump_clock(1_000_000);
    voter.kill();
    tokio::time::advance(ms(1_000)).await;
    voter.restart_empty();
    assert_eq!(time(&voter), Reply::texts(["1700000003", "0"]));
}
