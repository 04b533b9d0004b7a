use super::*;
use crate::{
    clock::Machine,
    embedded::{Fault, InFlight},
};

fn ages(met: &[(Identity, Stamp)]) -> Vec<u64> {
    met.iter().map(|(identity, _)| identity.age.as_secs()).collect()
}

fn durable(met: &[(Identity, Stamp)]) -> Vec<bool> {
    met.iter().map(|(identity, _)| identity.durable).collect()
}

#[tokio::test(start_paused = true)]
async fn a_voter_is_met_at_each_connection_and_is_the_same_until_it_starts_again() {
    let (voter, node, hears) = connected();
    voter.cut(InFlight::Lost);
    voter.fault_next(1, Fault::CutBeforeRun);
    assert!(node.run(acquire("a:1")).await.is_err());
    voter.kill();
    voter.restart();
    let met = hears.met();
    let ids: Vec<_> = met.iter().map(|(identity, _)| &identity.run_id).collect();
    assert_eq!(ids.len(), 4, "at the opening, two cuts and the restart");
    assert!(ids[0] == ids[1] && ids[1] == ids[2] && ids[2] != ids[3]);
    assert_eq!(node.identify().await.unwrap(), met[3].0);
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
    let voter = voter();
    let (_node, hears) = connect(&voter);
    voter.restart();
    voter.restart_empty();
    voter.cut(InFlight::Lost);
    voter.restart();
    assert_eq!(durable(&hears.met()), [true, true, false, false, true]);
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
    assert_eq!(ages(&hears.met()), [1, 2, 2, 11, 11], "with its data");
    let told = node.survey("".into()).await.unwrap().remove(0).info.expect("it answers");
    assert_eq!(told.uptime, ms(0));
    for lose in [EmbeddedVoter::wipe, EmbeddedVoter::restart_empty] {
        lose(&voter);
        voter.cut(InFlight::Lost);
        tokio::time::advance(ms(1_000)).await;
    }
    // It did not write to disk before, whatever it does now.
    voter.restart();
    voter.restart();
    assert_eq!(ages(&hears.met()), [0, 0, 0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn the_stamp_is_of_the_voters_clock_at_a_moment_of_the_clients() {
    let voter = voter();
    voter.jump_clock(2_500_001);
    let machine = Machine::new("a");
    machine.set_clock_rate(1_000_000);
    tokio::time::advance(ms(1_000)).await;
    let listener = Arc::new(Listener::default());
    let clock = Clock::Machine(machine);
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
