//! `quorate bench`: what it measures, and what it leaves.

use quorate_support::{Reply, eventually};
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    program::{Running, output},
    screen::Screen,
    status::json,
    voters::Voters,
};

/// The keys of its locks, on all servers.
fn keys(voters: &Voters) -> usize {
    let keys = voters.0.iter().map(|server| match server.command(&["KEYS", "*quorate-bench*"]) {
        Ok(Reply::List(keys)) => keys.len(),
        // It may have been killed.
        _ => 0,
    });
    keys.sum()
}

fn counted(histogram: &Value) -> u64 {
    let steps = histogram.as_array().expect("it is a list").iter();
    steps.map(|step| step["count"].as_u64().expect("a number")).sum()
}

#[test]
fn each_cycle_is_counted_and_nothing_is_left() {
    let voters = Voters::start();
    let arguments = ["bench", "--time", "500ms", "--tasks", "4", "--json"];
    let (code, seen) = json(&mut voters.quorate(&arguments));
    assert_eq!(code, 0, "{seen}");
    let cycles = seen["cycles"].as_u64().unwrap();
    assert!(cycles > 0 && seen["failed"] == 0, "{seen}");
    assert_eq!([&seen["version"], &seen["tasks"], &seen["locks"]], [1, 4, 4]);
    assert_eq!(counted(&seen["lock_histogram"]), cycles);
    for times in [&seen["lock_us"], &seen["release_us"]] {
        let at = |name: &str| times[name].as_u64().unwrap();
        let times = ["min", "p50", "p90", "p99", "p999", "max"].map(at);
        assert!(times[0] > 0 && times.is_sorted(), "{seen}");
    }
    assert_eq!(seen["round_trips_us"].as_array().unwrap().len(), 3);
    let [second, took] = ["cycles_per_second", "took_ms"].map(|name| seen[name].as_u64().unwrap());
    let per_second = cycles * 1_000 / took;
    assert!(took >= 500 && second.abs_diff(per_second) <= 1 + per_second / 100, "{seen}");
    eventually("the voters have forgotten its locks", || keys(&voters) == 0);
}

#[test]
fn one_lock_of_each_kind_is_shared_by_all_tasks() {
    let voters = Voters::start();
    for kind in ["--fair", "--read", "--write", "--permits=1"] {
        // Few, as the first cycle of each is not counted, and these follow one another as well.
        let arguments = ["--locks", "1", "--tasks", "4", "--hold", "5ms", "--time", "500ms", kind];
        let (code, said, errors) =
            output(&mut voters.quorate(&[&["bench"], &arguments[..]].concat()));
        assert_eq!(code, 0, "{kind}: {errors}");
        assert!(said.starts_with("3 voters, 4 tasks, 1 lock\n"), "{said}");
        let summary = said.lines().find(|line| line.contains(" locks taken and released in "));
        let cycles: u64 = summary.unwrap().split(' ').next().unwrap().parse().unwrap();
        // One after the other, each for 5 ms; readers hold it at the same time.
        assert!(
            (1..=100).contains(&cycles) || (kind == "--read" && cycles > 100),
            "{kind}: {said}"
        );
    }
}

#[test]
fn what_was_measured_until_a_signal_came_is_shown() {
    let voters = Voters::start();
    let mut running = Running::start_soon(&mut voters.quorate(&["bench", "--time", "1h"]));
    eventually("it locks", || keys(&voters) > 0);
    running.signal(Signal::INT);
    assert!(running.says().starts_with("3 voters, "));
    let (code, errors) = running.end();
    assert_eq!((code, &*errors), (0, ""));
}

#[test]
fn a_signal_ends_it_also_while_locks_are_held() {
    let voters = Voters::start();
    let holds = ["bench", "--time", "1h", "--hold", "1h"];
    let mut running = Running::start_soon(&mut voters.quorate(&holds));
    eventually("it locks", || keys(&voters) > 0);
    running.signal(Signal::INT);
    assert!(running.says().starts_with("3 voters, "));
    assert_eq!(running.end().0, 0);
}

#[test]
fn where_no_lock_could_be_taken_the_voters_are_named() {
    let mut voters = Voters::start();
    let mut running = Running::start_soon(&mut voters.quorate(&["bench", "--time", "4s"]));
    eventually("it locks", || keys(&voters) > 0);
    let dead: Vec<_> = voters.0.drain(1..).collect();
    let urls: Vec<_> = dead.iter().map(|server| server.url().replace("redis://", "")).collect();
    drop(dead);
    let (code, errors) = running.end();
    assert_eq!(code, 69, "{errors}");
    assert!(errors.starts_with("quorate: "), "{errors}");
    assert!(urls.iter().all(|url| errors.contains(url)), "{urls:?}: {errors}");
}

#[test]
fn a_terminal_shows_how_far_it_is() {
    let voters = Voters::start();
    let mut screen = Screen::start(&voters.quorate(&["bench", "--time", "1s"]));
    screen.shows("█");
    screen.shows("s of 1s  ");
    assert_eq!(screen.end(), Some(0));
    screen.shows("time to lock");
}
