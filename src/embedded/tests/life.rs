//! Starts, data that are kept or not, and the clock.

use super::*;

fn told<T>(hears: &Listener, what: impl Fn(&Identity) -> T) -> Vec<T> {
    hears.met().iter().map(|(identity, _)| what(identity)).collect()
}

async fn held() -> (EmbeddedVoter, Arc<dyn Node>) {
    let (voter, node, _) = connected();
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    (voter, node)
}

fn left_ms(voter: &EmbeddedVoter) -> Option<i64> {
    voter.records().pop().and_then(|record| record.left_ms)
}

fn shows(voter: &EmbeddedVoter, micros: i64) {
    let parts = [1_700_000_000 + micros / 1_000_000, micros % 1_000_000];
    let time = parts.map(|part| text(&part.to_string()));
    assert_eq!(voter.command(&["TIME"]), Ok(Reply::List(time.into())));
}

#[tokio::test(start_paused = true)]
async fn a_voter_is_met_at_each_connection_and_is_the_same_until_it_starts_again() {
    let (voter, node, hears) = connected();
    voter.cut(InFlight::Lost);
    voter.fault_next(1, Fault::CutBeforeRun);
    assert!(node.run(acquire("a:1")).await.is_err());
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    voter.kill();
    voter.restart();
    assert_eq!(voter.keys(), ["lock"]);
    let last = node.identify().await.unwrap();
    let ids = told(&hears, |identity| identity.run_id.clone());
    assert_eq!((ids.len(), ids[3].len()), (4, 40), "at the opening, two cuts and the restart");
    assert!(ids[0] == ids[1] && ids[1] == ids[2] && ids[2] != ids[3] && ids[3] == last.run_id);
    voter.restart_empty();
    assert!(voter.keys().is_empty() && node.identify().await.unwrap().run_id != last.run_id);
}

#[tokio::test(start_paused = true)]
async fn a_dead_voter_is_met_when_it_starts_and_one_that_left_meets_nobody() {
    let voter = voter();
    voter.kill();
    let (node, hears) = connect(&voter);
    assert!(hears.met().is_empty());
    voter.restart();
    assert_eq!(hears.met().len(), 1);
    node.close().await;
    voter.restart();
    assert!(hears.met().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_voter_that_lost_its_data_is_not_durable_until_it_starts_with_what_it_has() {
    let (voter, _node, hears) = connected();
    voter.restart();
    voter.restart_empty();
    voter.cut(InFlight::Lost);
    voter.restart();
    let durable = told(&hears, |identity| identity.durable);
    assert_eq!(durable, [true, true, false, false, true]);
}

#[tokio::test(start_paused = true)]
async fn the_age_counts_whole_seconds_of_true_time_while_the_data_are_kept() {
    let voter = voter();
    voter.set_clock_rate(500_000);
    tokio::time::advance(ms(1_999)).await;
    let (node, hears) = connect(&voter);
    tokio::time::advance(ms(1)).await;
    voter.cut(InFlight::Lost);
    voter.jump_clock(60_000_000);
    voter.cut(InFlight::Lost);
    voter.set_uptime(ms(10_500));
    tokio::time::advance(ms(600)).await;
    voter.cut(InFlight::Lost);
    voter.restart();
    let ages = || told(&hears, |identity| identity.age.as_secs());
    assert_eq!(ages(), [1, 2, 2, 11, 11], "with its data");
    let info = node.survey("".into()).await.unwrap().remove(0).info.expect("it answers");
    assert_eq!(info.uptime, ms(0));
    for lose in [EmbeddedVoter::wipe, EmbeddedVoter::restart_empty] {
        lose(&voter);
        voter.cut(InFlight::Lost);
        tokio::time::advance(ms(1_000)).await;
    }
    // It did not write to disk before, whatever it does now.
    voter.restart();
    voter.restart();
    assert_eq!(ages(), [0, 0, 0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn the_stamp_is_of_the_voters_clock_at_a_moment_of_the_clients() {
    let voter = voter();
    voter.jump_clock(2_500_001);
    let machine = Machine::new("a");
    machine.set_clock_rate(1_000_000);
    tokio::time::advance(ms(1_000)).await;
    let (listener, clock) = (Arc::new(Listener::default()), Clock::Machine(machine));
    let _node = voter.connect(Arc::clone(&listener) as Arc<dyn Ear>, clock.clone());
    let Stamp { shown, asked, answered } = listener.met()[0].1;
    assert_eq!(shown, Duration::from_micros(1_700_000_003_500_001));
    assert_eq!((asked, answered), (clock.now(), clock.now()));
    assert_eq!(asked.since(Moment::BEGINNING), ms(2_000), "its clock runs twice as fast");
}

#[tokio::test(start_paused = true)]
async fn no_script_passes_until_the_ear_was_told() {
    let (voter, node, listener) = connected();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (hasty, outcomes) = (Arc::clone(&node), Arc::clone(&asked));
    let asks = move || outcomes.lock().unwrap().push(hasty.run(acquire("a:1")).now_or_never());
    assert!(listener.when_met.set(Box::new(asks)).is_ok());
    voter.restart_empty();
    let refused = Some(Err(Cause::Unreachable("not met yet".into())));
    assert_eq!(*asked.lock().unwrap(), [refused]);
    assert_eq!(voter.commands_seen(), 0);
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
}

#[tokio::test(start_paused = true)]
async fn leases_end_by_the_clock_of_the_voter_and_delays_by_true_time() {
    let (voter, node) = held().await;
    for (ppm, left) in [(100_000, 19_000), (0, 9_000), (-1_000_000, 9_000), (-100_000, 0)] {
        voter.set_clock_rate(ppm);
        tokio::time::advance(ms(10_000)).await;
        assert_eq!(left_ms(&voter), Some(left), "{ppm} ppm");
    }
    let clock = Clock::tokio();
    let _slow = voter.fault(delay(20, 30));
    voter.set_clock_rate(500_000);
    node.run(acquire("a:1")).await.unwrap();
    assert_eq!(passed(&clock), ms(50));
}

#[tokio::test(start_paused = true)]
async fn what_has_expired_does_not_come_back_with_the_time() {
    let (voter, node) = held().await;
    voter.jump_clock(2_500_001);
    shows(&voter, 2_500_001);
    let refused = node.run(acquire("b:1")).await.unwrap();
    let by = HoldId::parse("a:1");
    assert_eq!(refused.whose(), Verdict::Refused { by, ttl: Some(ms(27_500)) });
    voter.jump_clock(-2_500_001);
    assert_eq!(left_ms(&voter), Some(30_000));
    voter.jump_clock(30_001_000);
    voter.jump_clock(-30_001_000);
    assert!(voter.records().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_clock_goes_on_through_kills_and_never_backwards_nor_out_of_its_range() {
    let voter = voter();
    voter.set_clock_rate(1_000_000);
    voter.jump_clock(1_000_000);
    voter.kill();
    tokio::time::advance(ms(1_000)).await;
    voter.restart_empty();
    shows(&voter, 3_000_000);
    voter.set_clock_rate(i32::MIN);
    tokio::time::advance(ms(1_000)).await;
    shows(&voter, 3_000_000);
    voter.jump_clock(i64::MIN);
    shows(&voter, -1_700_000_000_000_000);
    voter.set_clock_rate(i32::MAX);
    for _ in 0..2 {
        voter.jump_clock(i64::MAX);
    }
    tokio::time::advance(ms(1_000)).await;
    shows(&voter, i64::MAX - 1_700_000_000_000_000);
}
