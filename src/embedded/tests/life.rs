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
    let _node = voter.connect(Arc::clone(&listener) as Arc<dyn VoterEvents>, clock.clone());
    let Stamp { shown, asked, answered } = listener.met()[0].1;
    assert_eq!(shown, Duration::from_micros(1_700_000_003_500_001));
    assert_eq!((asked, answered), (clock.now(), clock.now()));
    assert_eq!(asked.since(Moment::BEGINNING), ms(2_000), "its clock runs twice as fast");
}

#[tokio::test(start_paused = true)]
async fn no_script_passes_before_the_listener_has_heard_who_answers() {
    let (voter, node, listener) = connected();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (hasty, outcomes) = (Arc::clone(&node), Arc::clone(&asked));
    let asks = move || outcomes.lock().unwrap().push(hasty.run(acquire("a:1")).now_or_never());
    assert!(listener.when_met.set(Box::new(asks)).is_ok());
    voter.restart_empty();
    let refused = Some(Err(Cause::Unreachable("not identified yet".into())));
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
    assert_eq!(refused.holder_verdict(), Verdict::Refused { by, ttl: Some(ms(27_500)) });
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

#[tokio::test(start_paused = true)]
async fn a_client_looks_now_and_then_who_the_voter_is_and_when() {
    let (voter, node, hears) = connected();
    tokio::time::sleep(ms(9_999)).await;
    assert!(hears.seen().is_empty());
    let _slow = voter.fault(delay(20, 30));
    voter.look_every(ms(500));
    tokio::time::sleep(ms(52)).await;
    let (identity, Stamp { shown, asked, answered }) = hears.seen().remove(0);
    assert_eq!(identity.run_id, hears.met()[0].0.run_id);
    assert_eq!((answered.since(asked), identity.age), (ms(50), ms(10_000)));
    assert_eq!(shown, ms(1_700_000_010_050));
    tokio::time::sleep(ms(550)).await;
    assert_eq!(hears.seen().len(), 1);
    // What is meant for a request is left for it.
    voter.fault_next(1, Fault::DropReplies);
    tokio::time::sleep(ms(550)).await;
    assert_eq!(hears.seen().len(), 1);
    assert!(node.run(acquire("a:1")).await.is_err());
    // While it is away nobody hears of it, and once the client is gone nobody looks.
    voter.kill();
    tokio::time::sleep(ms(5_000)).await;
    voter.restart();
    assert!(hears.seen().is_empty());
    tokio::time::sleep(ms(1_100)).await;
    assert!(!hears.seen().is_empty());
    node.close().await;
    tokio::time::sleep(ms(5_000)).await;
    assert!(hears.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn data_without_a_fingerprint_have_no_name_until_a_client_looks() {
    for lose in [EmbeddedVoter::lose_fingerprint, EmbeddedVoter::wipe] {
        let (voter, node, hears) = connected();
        let data = async || node.send(acquire("a:1")).await.remove(0).unwrap().data.unwrap();
        let first = data().await;
        voter.set_uptime(ms(60_000));
        lose(&voter);
        assert_eq!([data().await, data().await], ["", ""]);
        tokio::time::sleep(ms(10_001)).await;
        let (identity, _) = hears.seen().remove(0);
        let name = identity.birth.unwrap().name;
        assert_eq!((data().await, identity.age), (name.to_string(), ms(0)));
        assert!(*name != *first && !name.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_ahead_at_a_look_was_set_back_until_the_data_are_renamed_or_forgotten() {
    let set_back = async |node: &Arc<dyn Node>| {
        node.identify().await.unwrap().birth.expect("the data have a name").set_back
    };
    for renames in [true, false] {
        let (voter, node, _) = connected();
        voter.jump_clock(60_000_000);
        voter.jump_clock(-60_000_000);
        assert_eq!(set_back(&node).await, ms(0), "nobody has looked meanwhile");
        voter.jump_clock(60_000_000);
        assert_eq!(set_back(&node).await, ms(0));
        tokio::time::sleep(ms(5_000)).await;
        voter.jump_clock(-60_000_000);
        assert_eq!([set_back(&node).await, set_back(&node).await], [ms(55_000); 2]);
        // A machine that starts again mostly has its clock set right.
        voter.restart();
        assert_eq!(set_back(&node).await, ms(55_000), "it has forgotten nothing");
        if renames {
            node.rename(ONLY).await.unwrap();
        } else {
            voter.restart_empty();
        }
        assert_eq!(set_back(&node).await, ms(0), "renamed: {renames}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_another_has_its_data_its_name_and_its_age_until_it_is_renamed() {
    let (other, voter) = (voter(), voter());
    let (node, _hears) = connect(&other);
    other.set_uptime(ms(60_000));
    assert_eq!(code(node.run(acquire("a:1")).await), 1);
    let (copy, hears) = connect(&voter);
    let run_id = hears.met()[0].0.run_id.clone();
    voter.restart_with_copy_of(&other);
    assert_eq!(voter.records(), other.records());
    let [its, now] = [node.identify().await.unwrap(), copy.identify().await.unwrap()];
    let name = |identity: &Identity| identity.birth.clone().unwrap().name;
    assert!(now.run_id != its.run_id && now.run_id != run_id);
    assert_eq!((name(&now), now.age, now.durable), (name(&its), ms(60_000), true));
    copy.rename(ONLY).await.unwrap();
    let renamed = copy.identify().await.unwrap();
    assert!(name(&renamed).ends_with(&format!("~{}", name(&its))) && renamed.age == ms(0));
    // It is renamed once, and the other keeps its name.
    copy.rename(ONLY).await.unwrap();
    assert_eq!(name(&copy.identify().await.unwrap()), name(&renamed));
    assert_eq!(name(&node.identify().await.unwrap()), name(&its));
}
